# SPDX-License-Identifier: Apache-2.0
"""A foreign program knows the library from its installed header and pkg-config file alone."""

import os
import re
import shutil
import subprocess

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = os.path.join(TOP, "tests", "foreign", "publish.c")


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """`make install-lib` into a folder of its own."""
    folder = str(tmp_path_factory.mktemp("stage"))
    command = ["make", "-s", "-C", TOP, "install-lib", f"DESTDIR={folder}", "PREFIX=/usr"]
    if os.environ.get("SANITIZE"):
        command.append(f"SANITIZE={os.environ['SANITIZE']}")
    elif os.environ.get("BUILD"):
        command.append(f"BUILD={os.path.relpath(os.environ['BUILD'], TOP)}")
    subprocess.run(command, check=True, timeout=300)
    return folder


def pkg_config(stage, *options):
    env = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=stage,
               PKG_CONFIG_PATH=os.path.join(stage, "usr/lib/pkgconfig"))
    done = subprocess.run(["pkg-config", *options, "pmdpulse"], env=env, check=True,
                          stdout=subprocess.PIPE, text=True)
    return done.stdout.split()


def build(stage, compiler, source, program, *options):
    sanitize = os.environ.get("SANITIZE")
    flags = [f"-fsanitize={sanitize}"] if sanitize else []
    subprocess.run([compiler, "-O2", "-Wall", "-Wextra", "-Werror", *flags, *options, "-o", program,
                    source, *pkg_config(stage, "--cflags", "--libs"),
                    f"-Wl,-rpath,{stage}/usr/lib"], check=True, timeout=120)


def run(program, rundir, *args):
    return subprocess.run([program, *args], env=dict(os.environ, PMDPULSE_RUNDIR=rundir),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                          check=False)


def test_program_is_small_and_foreign():
    with open(SOURCE, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert len(lines) < 60
    includes = [line for line in lines if line.startswith("#include")]
    assert [line for line in includes if "pmdp" in line] == ["#include <pmdpulse.h>"]
    assert not [line for line in includes if '"' in line]
    calls = set(re.findall(r"\b(pmdp_\w+)\(", "\n".join(lines)))
    assert calls == {"pmdp_open", "pmdp_beat", "pmdp_close",
                     "pmdp_reader_open", "pmdp_reader_look", "pmdp_reader_close"}


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_publishes_and_reads(stage, tmp_path, rundir, compiler):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    if compiler == "clang" and "address" in os.environ.get("SANITIZE", ""):
        pytest.skip("clang's runtime of the address sanitizer is not that of gcc, which the library has")
    program = str(tmp_path / "publish")
    build(stage, compiler, SOURCE, program)
    done = run(program, rundir, "mine", "200")
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"lane 0: 200 beats, the last ([0-9.]+) s ago, every 0.050 s is due\n",
                         done.stdout)
    assert found, done.stdout
    assert float(found.group(1)) < 10
    assert os.listdir(rundir) == []  # a clean stop leaves nothing


def test_says_why_it_can_not(stage, tmp_path, rundir):
    program = str(tmp_path / "publish")
    build(stage, "gcc", SOURCE, program)
    done = run(program, rundir, "no/instance", "1")
    assert done.returncode == 1
    assert done.stderr == "pmdp_open: Invalid argument\n"


def test_from_cplusplus(stage, tmp_path, rundir):
    """The header is C++ too, with the inline beat."""
    if not shutil.which("g++"):
        pytest.skip("no g++ here")
    source = tmp_path / "beat.cc"
    source.write_text("""
        #include <pmdpulse.h>
        int main()
        {
            struct pmdp *p;
            if (pmdp_open("plusplus", nullptr, &p) < 0)
                return 1;
            pmdp_beat(p);
            struct pmdp_lane *lane = pmdp_lane_of(p);
            pmdp_lane_crumb(lane, PMDP_CRUMB(PMDP_STAGE_USER, 0, 0));
            pmdp_lane_beat(lane, pmdp_lane_clock(lane));
            struct pmdp_reader *reader;
            struct pmdp_look look;
            if (pmdp_reader_open("plusplus", nullptr, &reader) < 0 ||
                pmdp_reader_look(reader, &look) < 0 || look.lanes[0].beats != 2)
                return 2;
            pmdp_reader_close(reader);
            pmdp_close(p);
        }
    """, encoding="utf-8")
    program = str(tmp_path / "beat")
    build(stage, "g++", str(source), program)
    done = run(program, rundir)
    assert done.returncode == 0, done.stderr


def test_library_needs_no_dpdk_and_exports_its_own_names_only(stage):
    library = os.path.join(stage, "usr/lib/libpmdpulse.so.1")
    if os.environ.get("SANITIZE"):
        pytest.skip("a sanitizer adds names of its own")
    dynamic = subprocess.run(["readelf", "-d", library], check=True, stdout=subprocess.PIPE,
                             text=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*?)\]", dynamic)
    assert not [name for name in needed if not name.startswith(("libc.", "libyajl.", "ld-linux"))]
    names = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split("\n")
    names = [line.split()[2].split("@")[0] for line in names if line and " A " not in line]
    with open(os.path.join(stage, "usr/include/pmdpulse/pmdpulse.h"), encoding="utf-8") as file:
        header = file.read()
    inline = set(re.findall(r"^static inline.*?(pmdp_\w+)\(", header, re.M))
    declared = set(re.findall(r"^(?!static|#|//| \*)\w[\w *]*?(pmdp_\w+)\(", header, re.M)) - inline
    assert "pmdp_open" in names
    assert sorted(names) == sorted(declared), "lib/libpmdpulse.map and the installed header differ"
