# SPDX-License-Identifier: Apache-2.0
"""Dashboards, rules and configurations as they are in the tree: up to date, linted, and tested offline."""

import copy
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from lib import dashlint
from lib.process import built

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
OBSERVE = os.path.join(TOP, "contrib/observe")
BOARDS = os.path.join(TOP, "contrib/grafana/dashboards")
RULES = os.path.join(TOP, "contrib/prometheus/pmdpulse.rules.yml")
RULE_TESTS = os.path.join(TOP, "tests/data/pmdpulse_rules_test.yml")

sys.path.insert(0, OBSERVE)
import alerts  # pylint: disable=wrong-import-position
import check  # pylint: disable=wrong-import-position
import expand  # pylint: disable=wrong-import-position
import generate  # pylint: disable=wrong-import-position
import metrics  # pylint: disable=wrong-import-position


def need(program, package):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed (package {package})")


def dashboards():
    found = {}
    for name in sorted(os.listdir(BOARDS)):
        if name.endswith(".json"):
            with open(os.path.join(BOARDS, name), encoding="utf-8") as file:
                found[name] = json.load(file)
    return found


def exclusions(title):
    with open(os.path.join(BOARDS, ".lint"), encoding="utf-8") as file:
        rules = yaml.safe_load(file)["exclusions"]
    return {(rule, entry["panel"]) for rule, what in rules.items() if what["reason"]
            for entry in what["entries"] if entry["dashboard"] == title}


def promtool(*args, rc=0):
    need("promtool", "prometheus")
    done = subprocess.run(["promtool", *args], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == rc, done.stdout + done.stderr
    return done.stdout


# The tables

def test_generated_files_are_up_to_date():
    done = subprocess.run([os.path.join(OBSERVE, "generate.py"), "--check"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr


def test_a_name_that_the_plugin_lacks_is_found(monkeypatch):
    table = dict(metrics.METRICS)
    table["thread_beast_total"] = table.pop("thread_beats_total")
    monkeypatch.setattr(check, "METRICS", table)
    said = "\n".join(check.problems(TOP, []))
    assert "metrics.py has thread_beast_total, which the plugin does not register" in said
    assert "metrics.py lacks thread_beats_total, which the plugin registers" in said
    assert "thread_beast_total is in no panel and no rule" in said


def test_a_kind_without_an_alert_is_found(monkeypatch):
    monkeypatch.setattr(alerts, "KINDS", alerts.KINDS[1:])
    said = "\n".join(check.problems(TOP, generate.boards()))
    assert f"no alert for incidents of kind {'pmd-starved'}: add a line to KINDS" in said


def test_a_wrong_runbook_is_found(monkeypatch):
    read = check._read  # pylint: disable=protected-access

    def spoiled(top, path):
        text = read(top, path)
        if not path.endswith("operations.md"):
            return text
        text = text.replace("### PmdpulseStall\n", "### PmdpulseStahl\n")
        return re.sub(r"### PmdpulseDrops\n(.*\n)+?\n", "### PmdpulseDrops\n\n", text)
    monkeypatch.setattr(check, "_read", spoiled)
    said = "\n".join(check.problems(TOP, generate.boards()))
    assert "docs/operations.md has no heading PmdpulseStall: the alert's runbook link leads nowhere" in said
    assert "docs/operations.md: PmdpulseStahl is no alert" in said
    assert "docs/operations.md: PmdpulseDrops says nothing" in said


@pytest.mark.parametrize("expr, what", [
    ("<thread_nothing>", "no metric"), ('<switch_up|thread="x">', "no label"),
    ("collectd_pmdpulse_switch_up", "write <NAME>")])
def test_a_wrong_query_stops_the_generator(expr, what):
    with pytest.raises(expand.Wrong, match=what):
        expand.expand(expr)


# Dashboards

def test_dashboards_are_clean():
    boards = dashboards()
    assert [b["title"] for b in boards.values()] == [
        "pmdpulse / Fleet", "pmdpulse / Incident", "pmdpulse / PMD health", "pmdpulse / Switch"]
    found = [f"{name}: {line}" for name, board in boards.items()
             for line in dashlint.problems(board, exclusions(board["title"]))]
    assert not found, "\n".join(found)


def spoil(board, change):
    board = copy.deepcopy(board)
    change(board, dashlint.panels(board)[0])
    return "\n".join(dashlint.problems(board, exclusions(board["title"])))


@pytest.mark.parametrize("rule, change", [
    ("template-datasource-rule", lambda b, p: b["templating"]["list"].pop(0)),
    ("template-job-rule", lambda b, p: b["templating"]["list"].pop(1)),
    ("template-instance-rule", lambda b, p: b["templating"]["list"][2].update(multi=False)),
    ("template-label-promql-rule",
     lambda b, p: b["templating"]["list"][1]["query"].update(query="label_values(job)")),
    ("template-on-time-change-reload-rule", lambda b, p: b["templating"]["list"][1].update(refresh=1)),
    ("uneditable-dashboard", lambda b, p: b.update(editable=True)),
    ("identity-rule", lambda b, p: b.update(uid="x" * 41)),
    ("panel-title-description-rule", lambda b, p: p.update(description="")),
    ("panel-datasource-rule", lambda b, p: p["datasource"].update(uid="prom")),
    ("panel-units-rule", lambda b, p: p["fieldConfig"]["defaults"].update(unit="seconds")),
    ("panel-no-targets-rule", lambda b, p: p.update(targets=[])),
    ("no-value-rule", lambda b, p: p["fieldConfig"]["defaults"].pop("noValue")),
    ("target-no-filler-rule",
     lambda b, p: p["targets"][0].update(expr=p["targets"][0]["expr"] + " or vector(0)")),
    ("target-promql-rule", lambda b, p: p["targets"][0].update(expr="1")),
    ("target-job-rule", lambda b, p: p["targets"][0].update(
        expr='sum(collectd_pmdpulse_switch_up{instance=~"$instance"})')),
    ("target-instance-rule", lambda b, p: p["targets"][0].update(
        expr='sum(collectd_pmdpulse_switch_up{job=~"$job"})')),
    ("target-counter-agg-rule", lambda b, p: p["targets"][0].update(
        expr='sum(collectd_pmdpulse_thread_beats_total{job=~"$job",instance=~"$instance"})')),
    ("target-rate-interval-rule", lambda b, p: p["targets"][0].update(
        expr='sum(rate(collectd_pmdpulse_thread_beats_total{job=~"$job",instance=~"$instance"}[5m]))')),
    ("layout-rule", lambda b, p: p["gridPos"].update(w=24, h=9)),
])
def test_the_checker_sees(rule, change):
    board = next(iter(dashboards().values()))
    assert rule in spoil(board, change)


def queries():
    """{name: PromQL} of all panels, with Grafana's variables as it would put them."""
    found = {}
    for board in dashboards().values():
        for panel in dashlint.panels(board):
            for target in panel["targets"]:
                expr = target["expr"].replace("$__rate_interval", "40s").replace("$__range_s", "3600")
                expr = expr.replace("$__range", "1h")
                found[f"{board['uid']}/{panel['title']}/{target['refId']}"] = \
                    re.sub(r"\$(\w+)", ".+", expr)
        for annotation in board["annotations"]["list"][1:]:
            found[f"{board['uid']}/{annotation['name']}"] = re.sub(r"\$(\w+)", ".+", annotation["expr"])
    return found


def test_every_query_is_promql(tmp_path):
    path = tmp_path / "queries.yml"
    rules = [{"record": f"query:q{n}", "expr": expr} for n, expr in enumerate(queries().values())]
    assert len(rules) > 100
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}), encoding="utf-8")
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(path))


def test_the_fleet_ranks_a_host_that_is_cut_off(tmp_path):
    """First of all for a day, once it was silent for 30 s; not a placeholder that ended, nor one that was stopped."""
    def series(metric, host, values, more=""):
        return {"series": f'collectd_pmdpulse_{metric}{{job="pmdpulse",instance="{host}",switch="default"{more}}}',
                "values": values}

    def row(host, value):
        return {"labels": f'{{instance="{host}",switch="default"}}', "value": value}
    alive = [series("switch_status", "alive", "1x9000"), series("agent_up", "alive", "0x9000"),
             series("switch_threads", "alive", "1x9000", ',state="dead"'),
             series("incidents_open", "alive", "1x9000", ',kind="pmd-stall"'),
             series("switch_up", "alive", "1x9000")]
    gone = [series("switch_up", "cut", "1x30 stale _x8970"), series("switch_up", "absent", "0x30 stale _x8970"),
            series("switch_up", "stopped", "1x25 0x4 stale _x8970")]
    expr = {name: text for name, text in queries().items() if name.startswith("pmdpulse-fleet/Switches, worst")}
    rank, silence = expr["pmdpulse-fleet/Switches, worst first/A"], expr["pmdpulse-fleet/Switches, worst first/J"]
    others = [row("alive", 111), row("absent", 0), row("stopped", 0)]
    path = tmp_path / "fleet.yml"
    path.write_text(yaml.safe_dump({"evaluation_interval": "10m", "tests": [{
        "interval": "10s", "input_series": alive + gone, "promql_expr_test": [
            {"expr": rank, "eval_time": "320s", "exp_samples": [row("cut", 0), *others]},
            {"expr": rank, "eval_time": "340s", "exp_samples": [row("cut", 2000), *others]},
            {"expr": rank, "eval_time": "12h", "exp_samples": [row("cut", 2000), *others]},
            {"expr": rank, "eval_time": "25h", "exp_samples": [row("alive", 111)]},
            {"expr": silence + " < 10", "eval_time": "12h", "exp_samples": [row("alive", 0)]},
        ]}]}), encoding="utf-8")
    promtool("test", "rules", str(path))


def test_types_of_grafana():
    tools = built("pictures")
    if not os.path.isdir(os.path.join(tools, "node_modules")):
        pytest.skip("Grafana's types are not here: make lint-grafana fetches them with npm")
    done = subprocess.run(["node", os.path.join(tools, "types.mjs"), BOARDS], capture_output=True, text=True,
                          check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_provisioning_names_what_is_there():
    base = os.path.join(TOP, "contrib/grafana/provisioning")
    with open(os.path.join(base, "datasources/pmdpulse.yaml"), encoding="utf-8") as file:
        source = yaml.safe_load(file)["datasources"][0]
    assert (source["type"], source["access"]) == ("prometheus", "proxy")
    with open(os.path.join(base, "dashboards/pmdpulse.yaml"), encoding="utf-8") as file:
        provider = yaml.safe_load(file)["providers"][0]
    assert provider["type"] == "file"
    assert provider["options"]["path"].endswith("/pmdpulse/grafana/dashboards")


# Rules

def test_rules_are_clean():
    promtool("check", "rules", "--lint-fatal", RULES)
    promtool("check", "config", os.path.join(TOP, "contrib/prometheus/prometheus.yml"))


def test_every_rule_has_a_unit_test_and_passes():
    with open(RULE_TESTS, encoding="utf-8") as file:
        text = file.read()
    tests = yaml.safe_load(text)["tests"]
    fires, silent = set(), set()
    for case in tests:
        for one in case.get("alert_rule_test", ()):
            (fires if one.get("exp_alerts") else silent).add(one["alertname"])
    names = {alert.name for alert in alerts.all_alerts()}
    assert fires == names, f"not shown to fire: {names - fires}; unknown: {fires - names}"
    assert silent == names, f"not shown to be silent: {names - silent}"
    for recording in alerts.RECORDINGS:
        assert recording.record in text
    promtool("test", "rules", RULE_TESTS)


def test_lost_values_are_told_for_a_day(tmp_path):
    """Not in the file with the others: at their pace, a day takes half a minute."""
    path = tmp_path / "day.yml"
    name = {"job": "pmdpulse", "instance": "h1", "switch": "default"}
    labels = ",".join(f'{key}="{value}"' for key, value in name.items())
    expr = 'count(ALERTS{alertname="PmdpulseSeriesLost",alertstate="firing"})'
    path.write_text(yaml.safe_dump({"rule_files": [RULES], "evaluation_interval": "10m", "tests": [{
        "interval": "10s", "input_series": [{"series": f"collectd_pmdpulse_switch_up{{{labels}}}",
                                             "values": "1x5 stale _x9500"}],
        "promql_expr_test": [{"expr": expr, "eval_time": "23h", "exp_samples": [{"labels": "{}", "value": 1}]},
                             {"expr": expr, "eval_time": "25h", "exp_samples": []}]}]}), encoding="utf-8")
    promtool("test", "rules", str(path))


def test_alertmanager_configuration():
    need("amtool", "prometheus-alertmanager")
    path = os.path.join(TOP, "contrib/alertmanager/alertmanager.yml")
    done = subprocess.run(["amtool", "check-config", path], capture_output=True, text=True, check=False,
                          timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    names = {alert.name for alert in alerts.all_alerts()}
    with open(path, encoding="utf-8") as file:
        config = yaml.safe_load(file)
    used = set()
    for rule in config["inhibit_rules"]:
        for matcher in rule["source_matchers"] + rule["target_matchers"]:
            for word in re.search(r'"(.*)"', matcher)[1].split("|"):
                hit = {name for name in names if re.fullmatch(word, name)}
                assert hit, f"{word} is no alert"
                used |= hit
    assert {"PmdpulseSwitchGone", "PmdpulseStall", "PmdpulseThreadGone"} <= used


@pytest.mark.parametrize("labels, receiver", [
    (("alertname=PmdpulseStall", "severity=critical"), "on-call"),
    (("alertname=PmdpulseSeriesLost", "severity=critical"), "on-call"),
    (("alertname=PmdpulseDrops", "severity=warning"), "operators"),
    (("alertname=PmdpulseKeepaliveOff", "severity=info"), "nobody"),
])
def test_routes(labels, receiver):
    need("amtool", "prometheus-alertmanager")
    done = subprocess.run(
        ["amtool", "config", "routes", "test", "--config.file",
         os.path.join(TOP, "contrib/alertmanager/alertmanager.yml"), f"--verify.receivers={receiver}",
         *labels], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
