# SPDX-License-Identifier: Apache-2.0
"""The manual pages say what the programs can do, and nothing else."""

import glob
import os
import re
import shutil
import subprocess

import pytest

from lib.process import built

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PAGES = sorted(glob.glob(os.path.join(TOP, "docs", "man", "*.scd")))


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as file:
        return file.read()


def page(name):
    return read("docs", "man", name + ".scd")


def said(program):
    return subprocess.run([built(program), "--help"], capture_output=True, text=True, check=True).stdout


def options_of(text):
    """Long and short options: `--rundir`, `-j`. Those in a word, such as pmd-stats, are none."""
    return set(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", text))


def bold(text):
    return set(re.findall(r"(?<!\w)\*([^*\n]+)\*", text))


def options_in(text):
    return set().union(*(options_of(word) for word in bold(text)))


def section(text, title):
    found = re.search(rf"^# {re.escape(title)}\n(.*?)(?=^# |\Z)", text, re.M | re.S)
    assert found, f"no section {title}"
    return found.group(1)


def entries(text):
    """What a section explains: the bold words of the lines that an indented text follows."""
    lines = text.split("\n")
    return [sorted(bold(line)) for line, after in zip(lines, lines[1:])
            if line.startswith("*") and after.startswith("\t")]


@pytest.mark.parametrize("program, name", [("pmdpulse", "pmdpulse.1"),
                                           ("pmdpulse-switch", "pmdpulse-switch.8"),
                                           ("pmdpulse-agent", "pmdpulse-agent.8"),
                                           ("pmdpulse-ves", "pmdpulse-ves.8")])
def test_options(program, name):
    text = section(page(name), "OPTIONS")
    usage = said(program)
    # Options of single commands stand with these.
    there = options_of("\n".join(line for line in usage.split("commands:")[0].split("\n")
                                 if re.match(r" {2,6}-", line)))
    there = {option for option in there if not re.match(r"-\d", option)}
    assert len(there) > 4
    documented = {o for o in options_in(text) if o != "--KEY"}
    if program == "pmdpulse-switch":
        documented.discard("-a")  # an option of EAL
    assert there - documented == set(), "options without a word in the page"
    assert documented - there == set(), "options in the page that the program does not have"


def synopses(text):
    """Commands and their arguments, of a section that explains them; lines may hold several."""
    lines = text.split("\n")
    return dict(one.replace("*", "").replace("_", "").partition(" ")[::2]
                for line, after in zip(lines, lines[1:]) if line.startswith("*") and after.startswith("\t")
                for one in line.split(", "))


def commands_of_the_switch():
    output = subprocess.run([built("tests/tools/sw_names")], capture_output=True, text=True, check=True).stdout
    return (dict(re.findall(r"^command (\S+) ?(.*)$", output, re.M)),
            set(re.findall(r"^setting (\S+)$", output, re.M)))


def test_commands_of_the_command():
    """Its own help, its page and what the switch says of itself are one."""
    usage = said("pmdpulse").split("commands:")[1]
    there = dict(re.findall(r"^  ([a-z][a-z-]*) ?(.*)$", usage, re.M))
    assert len(there) > 20
    assert synopses(section(page("pmdpulse.1"), "COMMANDS")) == there
    for name, arguments in commands_of_the_switch()[0].items():
        assert there[name] == arguments, name


def test_commands_and_settings_of_the_switch():
    commands, settings = commands_of_the_switch()
    assert len(commands) > 10 and len(settings) > 5
    text = page("pmdpulse-commands.7")
    assert synopses(section(text, "COMMANDS")) == commands
    assert {words[0] for words in entries(section(text, "SETTINGS"))} == settings


def test_keys_of_ports():
    keys = set(re.findall(r'CONF_KEY\("([^"]+)"', read("switch", "sw_port.c")))
    text = section(page("pmdpulse-commands.7"), "PORTS")
    assert "ofport" in keys
    assert {word for words in entries(text) for word in words} == keys


@pytest.mark.parametrize("program, name", [("pmdpulse-agent", "pmdpulse-agent.conf.5"),
                                           ("pmdpulse-ves", "pmdpulse-ves.8")])
def test_settings(program, name):
    keys = re.findall(r"^  --([a-z-]+)=", said(program), re.M)
    assert len(keys) > 10
    text = section(page(name), "SETTINGS")
    assert re.findall(r"^\*([a-z-]+)\* = ", text, re.M) == keys, "in the order of --help"


def test_options_of_the_plugin():
    known = re.search(r"known\[\] = \{(.*?)\}", read("collectd-plugin", "cp_config.c"), re.S).group(1)
    there = re.findall(r'"(\w+)"', known)
    assert len(there) > 5
    text = section(page("collectd-pmdpulse.5"), "OPTIONS")
    assert re.findall(r"^\*(\w+)\* ", text, re.M) == there
    assert set(re.findall(r"^\s*#?(\w+) [\"\dtf]", read("contrib", "collectd", "pmdpulse.conf")
                          .split("<Plugin")[1], re.M)) == set(there), "the example shows all options"


def test_functions_of_the_library():
    declared = set(re.findall(r"\b(pmdp_\w+)\(", read("lib", "pmdpulse.h")))
    mentioned = set(re.findall(r"\b(pmdp_\w+)\*?\(", page("pmdpulse.3")))
    assert len(mentioned) > 10
    assert mentioned - declared == set()


@pytest.mark.skipif(not shutil.which("scdoc"), reason="skipped: scdoc is not installed")
@pytest.mark.parametrize("path", PAGES, ids=os.path.basename)
def test_page_is_well_formed(path, tmp_path):
    with open(path, encoding="utf-8") as file:
        made = subprocess.run(["scdoc"], stdin=file, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    name, number = os.path.basename(path)[:-len(".scd")].rsplit(".", 1)
    assert re.search(rf'^\.TH "{re.escape(name)}" "{number}"', made.stdout, re.M)
    for wanted in ("NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"):
        if not (wanted == "SYNOPSIS" and number == "7"):
            assert re.search(rf'^\.SH "?{wanted}"?$', made.stdout, re.M), f"no section {wanted}"
    if shutil.which("mandoc"):
        target = tmp_path / f"{name}.{number}"
        target.write_text(made.stdout, encoding="utf-8")
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "error", target], capture_output=True,
                              text=True, check=False)
        assert lint.returncode == 0, lint.stdout


def test_pages_lead_to_pages_that_exist():
    names = {os.path.basename(path)[:-len(".scd")] for path in PAGES}
    seen = set()
    for path in PAGES:
        with open(path, encoding="utf-8") as file:
            seen |= {f"{name}.{number}" for name, number in
                     re.findall(r"\*((?:pmdpulse|collectd-pmdpulse)[\w.-]*)\*\((\d)\)", file.read())}
    assert seen - names == set()
    assert names - seen == set(), "nothing leads to these"


@pytest.mark.parametrize("where", ["docs/man/pmdpulse-agent.conf.5.scd", "contrib/conf/agent.conf"])
def test_examples_write_where_the_unit_may(where):
    unit = read("contrib", "systemd", "pmdpulse-agent.service")
    allowed = re.findall(r"^ReadWritePaths=(\S+)$", unit, re.M)
    allowed += ["/run/" + name for name in re.findall(r"^RuntimeDirectory=(\S+)$", unit, re.M)]
    files = re.findall(r"^#?json = (/\S+)$", read(where), re.M)
    assert files and len(allowed) == 2, (files, allowed)
    assert [file for file in files if os.path.dirname(file) not in allowed] == []
