# SPDX-License-Identifier: Apache-2.0
"""Do the tables agree with the plugin, the words of the library and the manual?"""

import os
import re

import alerts
from expand import names
from metrics import FOREIGN, METRICS


def _read(top, path):
    with open(os.path.join(top, path), encoding="utf-8") as file:
        return file.read()


def plugin_metrics(types_db):
    """{name without prefix: (kind, unit)} of the plugin's data sets."""
    found = {}
    for line in types_db.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, sources = line.split(None, 1)
        for source in sources.split(","):
            unit, kind = source.strip().split(":")[:2]
            unit = "" if unit == "value" else unit
            full = name + (f"_{unit}" if unit else "") + ("" if kind == "GAUGE" else "_total")
            found[full] = ("gauge" if kind == "GAUGE" else "count", unit)
    return found


def _metric_problems(top):
    plugin = plugin_metrics(_read(top, "contrib/collectd/pmdpulse_types.db"))
    doc = dict(re.findall(r"^\| `collectd_pmdpulse_(\w+)` \| \w+ \| (.*) \|$",
                          _read(top, "docs/metrics.md"), re.M))
    for name in sorted(set(METRICS) - set(plugin)):
        yield f"metrics.py has {name}, which the plugin does not register"
    for name in sorted(set(plugin) - set(METRICS)):
        yield f"metrics.py lacks {name}, which the plugin registers"
    for name in sorted(set(plugin) & set(METRICS)):
        metric = METRICS[name]
        if (metric.kind, metric.unit) != plugin[name]:
            yield f"metrics.py: {name} is {plugin[name]} in the plugin"
        if doc.get(name) != metric.help:
            yield f"metrics.py: docs/metrics.md says of {name}: {doc.get(name)}"


def _use_problems(boards):
    used = set()
    for board in boards:
        for expr in board.queries.values():
            used |= set(names(expr))
    for rule in alerts.RECORDINGS + alerts.all_alerts():
        used |= set(names(rule.expr))
    for name, metric in METRICS.items():
        if name not in used and not metric.unused:
            yield f"{name} is in no panel and no rule: show it, or say in metrics.py why not"
        if name in used and metric.unused:
            yield f"{name} is shown: take it out of UNUSED in metrics.py"
    for name in used - set(METRICS) - set(FOREIGN):
        yield f"{name} is in no table"


def _kind_problems(top):
    """Every kind of incident that an operator must hear of has its alert."""
    words = _read(top, "lib/pmdp_names.c")
    kinds = set(re.findall(r'\[PMDP_KIND_\w+\] = "([\w-]+)"', words))
    good_news = set(re.findall(r"^\| `([\w-]+)` \| OKAY \|", _read(top, "docs/states.md"), re.M))
    told = {kind for kind, *_ in alerts.KINDS} | set(alerts.TOLD_BY)
    for kind in sorted(kinds - good_news - told):
        yield f"alerts.py has no alert for incidents of kind {kind}: add a line to KINDS"
    for kind in sorted(told - kinds):
        yield f"alerts.py has an alert for {kind}, which is no kind of incident"
    alert_names = {alert.name for alert in alerts.all_alerts()}
    for kind, name in alerts.TOLD_BY.items():
        if name not in alert_names:
            yield f"alerts.py: {kind} is told by {name}, which is no alert"


def _anchor(heading):
    return re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")


def _runbook_problems(top):
    """Every alert has a part of the runbook that says something, and every part is of an alert."""
    path = "docs/operations.md"
    text = _read(top, path)
    parts = {_anchor(heading): body for heading, body in
             re.findall(r"^#+ +(.*)\n((?:(?!#).*\n?)*)", text, re.M)}
    anchors = {alert.anchor: alert.name for alert in alerts.all_alerts()}
    for anchor, name in anchors.items():
        if anchor not in parts:
            yield f"{path} has no heading {name}: the alert's runbook link leads nowhere"
        elif not parts[anchor].strip():
            yield f"{path}: {name} says nothing"
    for heading in re.findall(r"^#+ +(Pmdpulse\w+)", text, re.M):
        if _anchor(heading) not in anchors:
            yield f"{path}: {heading} is no alert"


def problems(top, boards):
    return [*_metric_problems(top), *_use_problems(boards), *_kind_problems(top),
            *_runbook_problems(top)]
