# SPDX-License-Identifier: Apache-2.0
"""Recording and alert rules.

Durations are written @2m: tests run the same rules with all of them divided. An incident kind whose
alert needs nothing of its own is one line of KINDS; the others name the alert that tells of them.
"""

import dataclasses
import re

from expand import Wrong, expand

# Where the package puts the manual; docs/prometheus.md says how to point at another copy.
RUNBOOK = "file:///usr/share/doc/pmdpulse/operations.md"
CRITICAL, WARNING, INFO = "critical", "warning", "info"

# Drops that somebody asked for.
WANTED_DROPS = "no_rule|action|meter|qos"


@dataclasses.dataclass(frozen=True)
class Recording:
    """Named LEVEL:METRIC:OPERATION."""
    record: str
    expr: str
    help: str


@dataclasses.dataclass(frozen=True)
class Alert:
    """hold: Prometheus' "for". summary and description are templates of Prometheus."""
    name: str
    severity: str
    expr: str
    summary: str
    description: str
    hold: str = ""

    @property
    def anchor(self):
        return self.name.lower()


ON_SWITCH = "{{ $labels.switch }} on {{ $labels.instance }}"
ON_THREAD = "{{ $labels.thread }} of " + ON_SWITCH
ON_PORT = "port {{ $labels.port }} of " + ON_SWITCH

RECORDINGS = [
    Recording("thread:pmdpulse_stalled:ratio_rate5m",
              "clamp_max(rate(<thread_stalled_seconds>[@5m]), 1)",
              "share of its time that a thread stalled"),
    Recording("thread:pmdpulse_gaps:ratio_rate5m",
              "clamp_max(rate(<thread_gap_time_seconds>[@5m]), 1)",
              "share of its time that a thread lost in gaps from 250 us up"),
    Recording("thread:pmdpulse_busy:ratio_rate2m",
              'sum by (job, instance, switch, thread) (rate(<thread_time_seconds|mode="busy">[@2m]))'
              ' / clamp_min(sum by (job, instance, switch, thread) '
              '(rate(<thread_time_seconds|mode=~"busy|idle">[@2m])), 1e-9)',
              "busy share of the time that a thread polled"),
    Recording("switch:pmdpulse_rx_packets:rate2m",
              "sum by (job, instance, switch) (rate(<thread_rx_packets_total>[@2m]))",
              "packets a second that a switch received"),
    Recording("switch:pmdpulse_drops:rate2m",
              "sum by (job, instance, switch, reason) (rate(<thread_drops_packets_total>[@2m]))",
              "packets a second that a switch dropped, by reason"),
    Recording("switch:pmdpulse_incidents:increase1h",
              "sum by (job, instance, switch, kind) (increase(<incidents_total>[@1h]))",
              "incidents in an hour, by kind"),
]

# (kind, alert, severity, what it says), one line per kind of incident that ends by itself or by
# the operator. It fires while an incident is open, and for two minutes after a short one.
KINDS = [
    ("pmd-starved", "PmdpulseStarved", WARNING, "loses 30 % of a PMD's time in short gaps"),
    ("pmd-no-progress", "PmdpulseNoProgress", CRITICAL, "has a PMD that beats but moves no packets"),
    ("control-stuck", "PmdpulseControlStuck", CRITICAL, "has a control thread that gives no sign of life"),
    ("agent-late", "PmdpulseAgentLate", WARNING, "is watched by an agent that looks too late"),
    ("version-mismatch", "PmdpulseVersionMismatch", WARNING, "and its agent are of two versions"),
]

# Kinds that one of ALERTS tells of, with more labels or without the agent.
TOLD_BY = {
    "pmd-stall": "PmdpulseStall",
    "thread-gone": "PmdpulseThreadGone",
    "switch-gone": "PmdpulseSwitchGone",
    "link": "PmdpulseLinkDown",
    "drops": "PmdpulseDrops",
    "agent-gone": "PmdpulseAgentGone",
}

_LAST_STALL = ("{{ with printf `collectd_pmdpulse_thread_last_stall_seconds{job=%q,instance=%q,"
               "switch=%q,thread=%q}` $labels.job $labels.instance $labels.switch $labels.thread"
               " | query }}Its last stall took {{ . | first | value | humanizeDuration }}. {{ end }}")

ALERTS = [
    Alert("PmdpulseStall", CRITICAL,
          "<thread_state> == 2 or increase(<thread_stalls_total>[@2m]) > 0",
          ON_THREAD + " stalls",
          "A thread that polls gave no sign of life for two keepalive intervals, now or in the last "
          "two minutes; its packets waited. " + _LAST_STALL + "PmdpulseStallCause says why."),
    Alert("PmdpulseStallCause", WARNING,
          "sum by (job, instance, switch, thread, cause, culprit) "
          "(increase(<thread_incidents_total>[@5m])) > 0",
          ON_THREAD + " was stopped: {{ $labels.cause }}"
          "{{ with $labels.culprit }} by {{ . }}{{ end }}",
          "{{ $value | printf \"%.0f\" }} incident(s) of this cause ended in the last five minutes."),
    Alert("PmdpulseStalledShare", WARNING,
          "thread:pmdpulse_stalled:ratio_rate5m > 0.01",
          ON_THREAD + " stalled {{ $value | humanizePercentage }} of its time",
          "Stalls took more than a hundredth of the thread's last five minutes, and have for a while.",
          hold="@2m"),
    Alert("PmdpulseThreadGone", CRITICAL,
          # Not after the death of all, and not the dead of the last run, which collectd shows for two
          # intervals after the next start.
          "<thread_state> == 3 and on (job, instance, switch) <switch_uptime_seconds> > @90",
          ON_THREAD + " is gone",
          "The thread left a living process without announcing it: what it polled is not served."),
    Alert("PmdpulseSwitchGone", CRITICAL,
          # The unit starts it again after a second: no reading may see it gone, so the incident is counted too.
          '<switch_status> == 3 or sum by (job, instance, switch) '
          '(increase(<incidents_total|kind="switch-gone">[@2m])) > 0',
          ON_SWITCH + " died",
          "The process ended without a clean stop, now or in the last two minutes. Until it is back, nothing is "
          "forwarded."),
    Alert("PmdpulseSwitchDown", WARNING,
          "<switch_up> == 0 and <switch_status> != 3 and <switch_status> != 4",
          ON_SWITCH + " is not running",
          "There is no switch, or it was stopped, and nobody has started it for ten minutes.",
          hold="@10m"),
    Alert("PmdpulseSwitchRefused", WARNING,
          "<switch_status> == 4",
          "The segment of " + ON_SWITCH + " can't be read",
          "collectd's log says why: another version, another owner, or a broken file.",
          hold="@1m"),
    Alert("PmdpulseSwitchRestarts", WARNING,
          "increase(<switch_restarts_total>[@1h]) > 2.5",
          ON_SWITCH + " keeps restarting",
          "{{ $value | printf \"%.0f\" }} starts in an hour."),
    Alert("PmdpulseKeepaliveOff", INFO,
          "<switch_keepalive> == 0 and <switch_up> == 1",
          ON_SWITCH + " is not watched: keepalive is off",
          "enable-keepalive has been false for half an hour; no stall can be seen meanwhile.",
          hold="@30m"),
    Alert("PmdpulseAgentGone", WARNING,
          "<agent_up> == 0",
          "No agent watches " + ON_SWITCH,
          "The agent has given no sign of life for a minute. collectd judges meanwhile, but without "
          "causes, and slower.",
          hold="@1m"),
    Alert("PmdpulseDrops", WARNING,
          f'sum by (job, instance, switch, reason) '
          f'(rate(<thread_drops_packets_total|reason!~"{WANTED_DROPS}">[@2m])) > 1',
          ON_SWITCH + " drops packets: {{ $labels.reason }}",
          "{{ $value | humanize }} packets a second, for a reason that nobody asked for.",
          hold="@1m"),
    Alert("PmdpulsePortErrors", WARNING,
          "sum by (job, instance, switch, port, error) (rate(<port_errors_packets_total>[@2m])) > 1",
          ON_PORT + " has errors: {{ $labels.error }}",
          "{{ $value | humanize }} packets a second. rx_missed: its queues were full, the PMD was "
          "too slow or away.",
          hold="@1m"),
    Alert("PmdpulseLinkDown", WARNING,
          "<port_link> == 0 and <port_admin> == 1",
          ON_PORT + " has no link",
          "The port is in use and its link is down: cable, peer or guest.",
          hold="@10s"),
    Alert("PmdpulseLinkFlapping", WARNING,
          "increase(<port_link_changes_total>[@10m]) > 4.5",
          ON_PORT + " flaps",
          "Its link changed {{ $value | printf \"%.0f\" }} times in ten minutes."),
    Alert("PmdpulseEventsLost", WARNING,
          "increase(<relay_events_lost_total>[@10m]) > 0 or increase(<notifications_lost_total>[@10m]) > 0",
          "collectd lost events of " + ON_SWITCH,
          "{{ $value | printf \"%.0f\" }} in ten minutes: a receiver of notifications is too slow."),
    Alert("PmdpulseScrapeFailed", CRITICAL,
          'up{job="pmdpulse"} == 0',
          "{{ $labels.instance }} can't be scraped",
          "collectd or its write_prometheus does not answer: nothing is known of this host.",
          hold="@1m"),
    Alert("PmdpulseSeriesLost", CRITICAL,
          # Of one that ran: what never was is a placeholder, which ends with the first real one.
          "last_over_time(<switch_up>[@1d]) == 1 unless <switch_up>",
          "No values of " + ON_SWITCH,
          "It ran when its last value came, within the last day, and now none comes: collectd stands, or "
          "the network between it and a central collectd is cut.",
          # Longer than PmdpulseScrapeFailed, which hides it: one page for one host.
          hold="@2m"),
    Alert("PmdpulseSeriesAbsent", CRITICAL,
          'absent(<switch_up|job="pmdpulse">)',
          "No values of any switch",
          "Nothing at all is scraped: the target list, the job's name or every collectd is wrong.",
          hold="@2m"),
]


def kind_alerts():
    return [Alert(name, severity,
                  f'<incidents_open|kind="{kind}"> > 0 or '
                  f'increase(<incidents_total|kind="{kind}">[@2m]) > 0',
                  ON_SWITCH + " " + says,
                  f"An incident of kind {kind} is open, or was in the last two minutes: "
                  f"pmdpulse events has it.")
            for kind, name, severity, says in KINDS]


def all_alerts():
    alerts = ALERTS + kind_alerts()
    if len({alert.name for alert in alerts}) != len(alerts):
        raise Wrong("two alerts have one name")
    return alerts


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def durations(text, divide=1):
    """@2m -> 2m, @90 (a number of seconds) -> 90; all divided, one second at least."""
    def one(match):
        seconds = int(match[1]) * _UNITS.get(match[2], 1)
        if divide == 1:
            return match[1] + match[2]
        return f"{max(1, round(seconds / divide))}" + ("s" if match[2] else "")
    return re.sub(r"@(\d+)([smhd]?)\b", one, text)


def _quoted(text):
    return "'" + text.replace("'", "''") + "'"


def _rule(head, expr, divide, extra=()):
    return [f"      - {head}", f"        expr: {_quoted(durations(expand(expr), divide))}", *extra]


def rules_yml(divide=1, interval=""):
    """The rule file. divide: all durations by this, for tests."""
    lines = ["# SPDX-License-Identifier: Apache-2.0",
             "# Recording and alert rules of pmdpulse. Made by contrib/observe/generate.py from alerts.py.",
             "", "groups:", "  - name: pmdpulse-recordings"]
    lines += [f"    interval: {interval}"] if interval else []
    lines.append("    rules:")
    for recording in RECORDINGS:
        lines.append(f"      # {recording.help}")
        lines += _rule(f"record: {recording.record}", recording.expr, divide)
    lines += ["", "  - name: pmdpulse-alerts"]
    lines += [f"    interval: {interval}"] if interval else []
    lines.append("    rules:")
    for alert in all_alerts():
        hold = [f"        for: {durations(alert.hold, divide)}"] if alert.hold else []
        lines += _rule(f"alert: {alert.name}", alert.expr, divide, hold + [
            "        labels:",
            f"          severity: {alert.severity}",
            "        annotations:",
            f"          summary: {_quoted(alert.summary)}",
            f"          description: {_quoted(alert.description)}",
            f"          runbook_url: {RUNBOOK}#{alert.anchor}"])
    return "\n".join(lines) + "\n"
