# SPDX-License-Identifier: Apache-2.0
"""prometheus.yml: how to scrape collectd, and the labels that the plugin's two become."""

from metrics import METRICS, PREFIX


def _one_of(names):
    return "|".join(sorted(names))


def relabelling():
    """[(source_labels, regex, target_label, replacement)] in the order of their use."""
    rules = [
        (("__name__", "pmdpulse"), f"{PREFIX}.*;([^:]+)(?::.*)?", "switch", "$1"),
        (("__name__", "pmdpulse"), f"{PREFIX}thread_.*;[^:]+:(.*)", "thread", "$1"),
        (("__name__", "pmdpulse"), f"{PREFIX}port_.*;[^:]+:(.*)", "port", "$1"),
    ]
    details = {}
    for metric in METRICS.values():
        if metric.detail:
            details.setdefault(metric.detail, []).append(metric.name)
    for labels, users in sorted(details.items()):
        # CAUSE or CAUSE:CULPRIT; every other detail is one label.
        patterns = ["(.*)"] if len(labels) == 1 else ["([^:]+)(?::.*)?", "[^:]+:(.*)"]
        for label, pattern in zip(labels, patterns):
            rules.append((("__name__", "type"), f"{PREFIX}(?:{_one_of(users)});{pattern}", label,
                          "$1"))
    for label in ("pmdpulse", "type"):
        rules.append((("__name__",), f"{PREFIX}.*", label, ""))
    return rules


def relabelling_yaml(indent):
    lines = []
    for sources, regex, target, replacement in relabelling():
        lines += [f"- source_labels: [{', '.join(sources)}]",
                  f"  regex: '{regex}'",
                  f"  target_label: {target}"]
        if replacement != "$1":
            lines.append(f"  replacement: '{replacement}'")
    return "\n".join(" " * indent + line for line in lines)


def prometheus_yml(targets=("localhost:9103",), alertmanager="localhost:9093", interval="10s",
                   rule_file="pmdpulse.rules.yml"):
    """A whole configuration. Tests ask for other addresses and a shorter interval."""
    target_list = ", ".join(f"'{target}'" for target in targets)
    return f"""\
# SPDX-License-Identifier: Apache-2.0
# Prometheus for pmdpulse: scrapes write_prometheus of collectd, loads the rules, sends alerts.
# Made by contrib/observe/generate.py. Copy the job pmdpulse into a configuration that you have.

global:
  scrape_interval: {interval}
  evaluation_interval: {interval}

rule_files:
  - {rule_file}

alerting:
  alertmanagers:
    - static_configs:
        - targets: ['{alertmanager}']

scrape_configs:
  - job_name: pmdpulse
    # collectd says which host a value is of: that is the label instance, also at a central collectd.
    honor_labels: true
    # collectd's own timestamps would keep what has ended (a thread of the switch's last run, a removed
    # port) alive for five minutes after its last value.
    honor_timestamps: false
    # As often as collectd reads (Interval): a shorter stall is counted all the same.
    scrape_interval: {interval}
    static_configs:
      - targets: [{target_list}]
    relabel_configs:
      # So that "up" has the same instance as the values: name targets as the hosts call themselves.
      - source_labels: [__address__]
        regex: '(.*):\\d+'
        target_label: instance
    metric_relabel_configs:
{relabelling_yaml(6)}
"""
