# SPDX-License-Identifier: Apache-2.0
"""Rules for Grafana dashboards: those that grafana/dashboard-linter has, and some of our own.

problems(dashboard) gives lines "RULE: PANEL: what is wrong". Exclusions stand in the file .lint beside
the dashboards, in the linter's own format.
"""

import re

UNITS = {"short", "none", "s", "percentunit", "pps", "Bps", "bytes", "ops"}
RANGED = ("rate", "irate", "increase", "changes")
SELECTOR = re.compile(r'\b((?:collectd_|ALERTS\b|up\b)\w*)(\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?(\[[^\]]*\])?')
# Gauges by type that grow like counters: sums of seconds.
SUMS = ("thread_stalled_seconds", "thread_gap_time_seconds", "thread_time_seconds", "switch_cpu_seconds",
        "thread_incident_time_seconds", "incidents_time_seconds",
        "thread_upcall_time_seconds")


def panels(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def _templates(dashboard):
    variables = {v["name"]: v for v in dashboard["templating"]["list"]}
    source = variables.get("datasource", {})
    if (source.get("type"), source.get("query"), source.get("label")) != \
            ("datasource", "prometheus", "Data source"):
        yield "template-datasource-rule", "datasource", "no variable of type datasource for prometheus"
    for name in ("job", "instance"):
        if name not in variables:
            yield f"template-{name}-rule", name, "no such variable"
    for name, variable in variables.items():
        if name == "datasource":
            continue
        rule = f"template-{name}-rule"
        if variable["type"] != "query" or not variable["multi"] or variable["allValue"] != ".+":
            yield rule, name, "must be a query, multi, with allValue .+"
        if variable["datasource"]["uid"] != "$datasource":
            yield rule, name, "must ask $datasource"
        if variable["label"].lower() != name:
            yield rule, name, f"is labelled {variable['label']}"
        if not re.fullmatch(r"label_values\(collectd_pmdpulse_\w+(\{.*\})?, \w+\)",
                            variable["query"]["query"]):
            yield "template-label-promql-rule", name, variable["query"]["query"]
        if variable["refresh"] != 2:
            yield "template-on-time-change-reload-rule", name, "must be read anew when the time changes"


def _panel(panel):
    title = panel.get("title") or f"panel {panel.get('id')}"
    if not panel.get("title") or not panel.get("description"):
        yield "panel-title-description-rule", title, "needs a title and a description"
    if panel.get("datasource", {}).get("uid") != "$datasource":
        yield "panel-datasource-rule", title, "must ask $datasource"
    units = [panel["fieldConfig"]["defaults"].get("unit")]
    units += [p["value"] for override in panel["fieldConfig"]["overrides"]
              for p in override["properties"] if p["id"] == "unit"]
    for unit in units:
        if unit not in UNITS:
            yield "panel-units-rule", title, f"unit {unit!r} is none that we use"
    if not panel.get("targets"):
        yield "panel-no-targets-rule", title, "asks nothing"
    if not panel["fieldConfig"]["defaults"].get("noValue"):
        yield "no-value-rule", title, "does not say what an empty answer means"
    for target in panel.get("targets", ()):
        for rule, what in _target(target):
            yield rule, title, what


def _target(target):
    expr = target["expr"]
    if target["datasource"]["uid"] != "$datasource":
        yield "panel-datasource-rule", "a target must ask $datasource"
    for bad in ("vector(", "absent(", "or on"):
        if bad in expr:
            yield "target-no-filler-rule", f"{bad} hides that there is no answer: {expr}"
    selectors = list(SELECTOR.finditer(expr))
    if not selectors:
        yield "target-promql-rule", f"no metric in {expr}"
    for match in selectors:
        name, matchers, window = match[1], match[2] or "", match[3] or ""
        for label in ("job", "instance"):
            if f'{label}=~"${label}"' not in matchers:
                yield f"target-{label}-rule", f"{name} is not of the {label} chosen: {expr}"
        before = expr[:match.start()]
        is_ranged = before.endswith(tuple(f + "(" for f in RANGED))
        grows = name.endswith("_total") or name.endswith(SUMS)
        if grows and not (is_ranged and window):
            yield "target-counter-agg-rule", f"{name} only grows: rate() or increase() it: {expr}"
        if not grows and is_ranged:
            yield "target-counter-agg-rule", f"{name} is no counter: {expr}"
        if window and window != "[$__rate_interval]" and not (window == "[$__range]"
                                                              and target["instant"]):
            yield "target-rate-interval-rule", f"{window} in {expr}"


def problems(dashboard, excluded=()):
    """excluded: {(rule, panel title)}"""
    found = list(_templates(dashboard))
    if dashboard.get("editable", True):
        found.append(("uneditable-dashboard", dashboard["title"], "must not be editable"))
    if not dashboard.get("uid") or len(dashboard["uid"]) > 40 or dashboard.get("id") is not None:
        found.append(("identity-rule", dashboard["title"], "needs a uid of at most 40, and no id"))
    for panel in panels(dashboard):
        found += _panel(panel)
    found += _layout(dashboard)
    return [f"{rule}: {where}: {what}" for rule, where, what in found if (rule, where) not in excluded]


def _layout(dashboard):
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(set(ids)) != len(ids):
        yield "layout-rule", dashboard["title"], "two panels have one id"
    taken = {}
    for panel in dashboard["panels"]:
        pos = panel["gridPos"]
        if pos["x"] + pos["w"] > 24:
            yield "layout-rule", panel["title"], "goes beyond column 24"
        for x in range(pos["x"], pos["x"] + pos["w"]):
            for y in range(pos["y"], pos["y"] + pos["h"]):
                other = taken.setdefault((x, y), panel["title"])
                if other != panel["title"]:
                    yield "layout-rule", panel["title"], f"lies on {other}"
                    return
