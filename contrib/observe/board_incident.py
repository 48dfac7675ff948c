# SPDX-License-Identifier: Apache-2.0
"""Incident: one stall, before, during and after. Choose its time range and the thread."""

from board_pmd import EACH, GAP_HEAT, GAP_HELP, LAST_WORDS, NO_THREAD, WHOSE, each
from board_switch import ALARMS
from grafana import ANY_IS_BAD, STATE_MAPPING, STATUS_MAPPING, Board, Query, mapping

STALLS = ("Stalls", "orange", "changes(<thread_stalls_total>[30s]) > 0", "stall",
          "{{thread}} of {{switch}} on {{instance}}", "thread")
FIRING = mapping({1: "firing"}, {"firing": "red"})


def rate(labels, metric):
    return f"sum by ({labels}) (rate(<{metric}>[$__rate_interval]))"


def what(b):
    b.row("What happened")
    b.stat("Stalls", "Stalls of the threads chosen in the time range shown.",
           Query("in_stalls", "sum(increase(<thread_stalls_total>[$__range]))"), decimals=0,
           thresholds=ANY_IS_BAD, no_value=NO_THREAD)
    b.stat("Time stalled", "Their sum.",
           Query("in_stalled", "sum(increase(<thread_stalled_seconds>[$__range]))"), unit="s",
           thresholds=ANY_IS_BAD, no_value=NO_THREAD)
    b.stat("Last stall", "Length of the last stall; the longest of the threads chosen. It may be older than "
           "the time range.", Query("in_last", "max(<thread_last_stall_seconds>)"), unit="s",
           no_value=NO_THREAD)
    b.stat("Longest gap", "Longest gap since the thread's start.",
           Query("in_longest", "max(<thread_longest_gap_seconds>)"), unit="s", no_value=NO_THREAD)
    b.stat("Open incidents", "Incidents of the switches chosen that are not over.",
           Query("in_open", "sum(<incidents_open>)"), thresholds=ANY_IS_BAD)
    b.stat("Drops", "Packets dropped in the time range shown, for all reasons.",
           Query("in_drops", "sum(increase(<thread_drops_packets_total>[$__range]))"), decimals=0,
           no_value=NO_THREAD)
    b.stat("Missed by devices", "Packets that the devices lost in the time range shown because no queue was "
           "free: what a stall costs.",
           Query("in_missed", 'sum(increase(<port_errors_packets_total|error=~"rx_missed|rx_nombuf">'
                 "[$__range]))"), decimals=0, no_value="no port")
    b.stat("Agent late", "Times in the range shown that the agent was late itself: its word on that moment is "
           "worth less.", Query("in_late", "sum(increase(<agent_late_total>[$__range]))"), decimals=0,
           thresholds=ANY_IS_BAD)
    b.timeline("Alerts", "Alerts of pmdpulse that fired. None on a healthy system, which it says; the rules "
               "must be loaded.",
               Query("in_alerts", 'max by (alertname, instance) '
                     '(<ALERTS|alertname=~"Pmdpulse.+",alertstate="firing">)',
                     "{{alertname}} {{instance}}"), FIRING, height=6, no_value="no alert fired")
    b.timeline("Thread", "State of each thread at every reading.",
               Query("in_state", each("<thread_state>"), WHOSE), STATE_MAPPING, height=5,
               no_value=NO_THREAD)
    b.timeline("Switch", "State of the switch.",
               Query("in_status", "max by (instance, switch) (<switch_status>)", "{{instance}} {{switch}}"),
               STATUS_MAPPING, height=4)


def why(b):
    b.row("Why")
    group = f"sum by ({EACH}, cause, culprit) "
    b.table("Who stopped whom", "Incidents that ended in the time range shown, with cause and culprit. Empty on a "
            "healthy switch, which it says.",
            [(Query("in_culprits", group + "(increase(<thread_incidents_total>[$__range])) > 0"), "Incidents",
              {"decimals": 0}),
             (Query("in_culprit_time", group + "(increase(<thread_incident_time_seconds>[$__range])) > 0"),
              "Time taken", {"unit": "s"})],
            LAST_WORDS, width=12, sort="Time taken", no_value="nobody stopped a thread in this time")
    b.table("Incidents by kind", "Raised in the time range shown, and open now.",
            [(Query("in_kinds", "sum by (kind) (increase(<incidents_total>[$__range]))"), "Raised",
              {"decimals": 0, "thresholds": ANY_IS_BAD}),
             (Query("in_kinds_open", "sum by (kind) (<incidents_open>)"), "Open",
              {"thresholds": ANY_IS_BAD})],
            {"kind": "Kind"}, width=12, sort="Raised")
    b.graph("Open incidents by cause", "Open at each reading; the cause may change while more is found out.",
            [Query("in_open_cause", "sum by (cause) (<incidents_open_cause>)", "{{cause}}")], width=8,
            is_stacked=True, decimals=0)
    b.graph("Cleared by cause", "Incidents of the whole switch that ended.",
            [Query("in_cleared", "sum by (cause) (increase(<incidents_cause_total>[$__rate_interval]))",
                   "{{cause}}")], width=8, is_bars=True, is_stacked=True, decimals=0)
    b.graph("Time taken by cause", "Durations of the incidents that ended.",
            [Query("in_cause_time", "sum by (cause) (increase(<incidents_time_seconds>[$__rate_interval]))",
                   "{{cause}}")], width=8, unit="s", is_bars=True, is_stacked=True)


def course(b):
    b.row("Before, during, after")
    b.graph("Beat age", "Time since the last beat, at the moment of reading.",
            [Query("in_age", each("<thread_beat_age_seconds>"), WHOSE)], unit="s", log=True,
            no_value="none is due")
    b.graph("Time stalled", "Share of the time that went into stalls.",
            [Query("in_share", each("clamp_max(rate(<thread_stalled_seconds>[$__rate_interval]), 1)"),
                   WHOSE)], unit="percentunit", no_value=NO_THREAD)
    b.heatmap("Gaps between turns", GAP_HELP, Query("in_heat", GAP_HEAT), no_value=NO_THREAD)
    b.graph("Received", "Packets a second of each thread: what the stall took, and whether it came back.",
            [Query("in_rx", rate("instance, thread", "thread_rx_packets_total"), WHOSE)], width=8, unit="pps",
            no_value=NO_THREAD)
    b.graph("In flight", "Packets received and not yet sent or dropped.",
            [Query("in_flight", each("<thread_in_flight_packets>"), WHOSE)], width=8,
            no_value=NO_THREAD)
    b.graph("Drops by reason", "Packets a second.",
            [Query("in_reasons", rate("reason", "thread_drops_packets_total"), "{{reason}}")], width=8,
            unit="pps", is_stacked=True, no_value=NO_THREAD)
    b.graph("Use of the time", "Busy, idle and announced sleep by the threads' own clocks: a stall counts as what "
            "it interrupted. Each thread makes 100 %. Compare the CPU of the process.",
            [Query("in_time", rate("mode", "thread_time_seconds"), "{{mode}}")], width=8, is_stacked=True,
            unit="percentunit", no_value=NO_THREAD)
    b.graph("CPU of the process", "Seconds of CPU a second, user and system.",
            [Query("in_cpu", "sum by (instance, switch, mode) (rate(<switch_cpu_seconds>[$__rate_interval]))",
                   "{{instance}} {{switch}} {{mode}}")],
            width=8, unit="percentunit", is_stacked=True, no_value="not running")
    b.graph("Watchers", "Age of the agent's and the control thread's sign of life: who could have seen it.",
            [Query("in_agent_age", "max by (instance, switch) (<agent_alive_age_seconds>)", "{{instance}} {{switch}} agent"),
             Query("in_control_age", "max by (instance, switch) (<switch_alive_age_seconds>)", "{{instance}} {{switch}} control")],
            width=8, unit="s", no_value="nobody has lived yet")


def board():
    b = Board("pmdpulse-incident", "pmdpulse / Incident",
              "One stall, before, during and after: choose its time range and the thread.",
              ["job", "instance", "switch", "thread"], "now-15m", annotations=[ALARMS, STALLS])
    for part in (what, why, course):
        part(b)
    return b
