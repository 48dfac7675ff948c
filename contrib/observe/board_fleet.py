# SPDX-License-Identifier: Apache-2.0
"""Fleet: a row per host and instance, the worst first."""

from grafana import ANY_IS_BAD, PLAIN, STATUS_MAPPING, YES_MAPPING, Board, Query, steps

# What makes a switch worse than another: gone, unreadable, threads that don't work, incidents, no agent.
TROUBLE = ("1000 * max by (instance, switch) (<switch_status> == bool 3)"
           " + 500 * max by (instance, switch) (<switch_status> == bool 4)"
           ' + 100 * sum by (instance, switch) (<switch_threads|state=~"dead|gone|missing">)'
           " + 10 * sum by (instance, switch) (<incidents_open>)"
           " + (1 - max by (instance, switch) (<agent_up>))")
# Since the last value, for a day: exact while values come and in the first ten minutes, later to two minutes.
# "+ 0" is for speed: timestamp() of a bare name searches all chunks for each step, 60 times as long.
SILENCE = ("time() - (timestamp(<switch_up>) or max_over_time(timestamp(<switch_up> + 0)[10m:5s])"
           " or max_over_time(timestamp(<switch_up> + 0)[1d:2m]))")
# A host that is cut off has no values to add up, and one that ran is worse than any that says what it has.
# As PmdpulseSeriesLost: a placeholder, or a switch that was stopped first, is none.
CUT_OFF = (f"max by (instance, switch) (2000 * (({SILENCE}) > bool 30)"
           " * (last_over_time(<switch_up>[1d]) == bool 1))")
BOTH = "{{instance}} {{switch}}"


def board():
    b = Board("pmdpulse-fleet", "pmdpulse / Fleet",
              "All hosts and their switches, the worst first.", ["job", "instance"], "now-3h")

    b.row("Now")
    b.stat("Hosts", "Hosts whose collectd delivers values of a switch.",
           Query("fleet_hosts", "count(count by (instance) (<switch_up>))"))
    b.stat("Switches up", "Switches that run.", Query("fleet_up", "sum(<switch_up>)"))
    b.stat("Switches gone", "Switches whose process died without a clean stop.",
           Query("fleet_gone", "sum(<switch_status> == bool 3)"), thresholds=ANY_IS_BAD)
    b.stat("Threads alive", "Threads that beat.",
           Query("fleet_alive", 'sum(<switch_threads|state="alive">)'))
    b.stat("Threads in trouble", "Threads that are DEAD, GONE or MISSING now.",
           Query("fleet_trouble", 'sum(<switch_threads|state=~"dead|gone|missing">)'),
           thresholds=ANY_IS_BAD)
    b.stat("Open incidents", "Incidents that have been raised and not cleared.",
           Query("fleet_open", "sum(<incidents_open>)"), thresholds=ANY_IS_BAD)
    b.stat("Stalls", "Stalls of all threads in the time range shown.",
           Query("fleet_stalls", "sum(increase(<thread_stalls_total>[$__range]))"), decimals=0,
           thresholds=ANY_IS_BAD, no_value="no thread seen")
    b.stat("Longest silence", "Time since the last value of the switch that was heard of longest ago, within "
           "the last day.", Query("fleet_age", f"max({SILENCE})"), unit="s", decimals=0,
           thresholds=steps(("green", None), ("orange", 30), ("red", 60)))

    b.table("Switches, worst first",
            "A row per host and switch. Trouble is 2000 for one that ran and was not heard of for 30 seconds. Else "
            "it adds up what is wrong: 1000 for a dead process, 500 for a segment that can't be read, 100 for "
            "each thread that is DEAD, GONE or MISSING, 10 for each open incident, 1 without an agent.",
            [(Query("fleet_rank", f"({TROUBLE}) or {CUT_OFF}"), "Trouble", {"thresholds": steps(
                ("green", None), ("yellow", 1), ("orange", 10), ("red", 100)), "unit": "none", "custom.width": 80}),
             (Query("fleet_status", "max by (instance, switch) (<switch_status>)"), "Switch state",
              {"mappings": STATUS_MAPPING}),
             (Query("fleet_row_alive", 'sum by (instance, switch) (<switch_threads|state="alive">)'),
              "Alive", {}),
             (Query("fleet_row_trouble",
                    'sum by (instance, switch) (<switch_threads|state=~"dead|gone|missing">)'),
              "Not alive", {"thresholds": ANY_IS_BAD}),
             (Query("fleet_row_open", "sum by (instance, switch) (<incidents_open>)"), "Open incidents",
              {"thresholds": ANY_IS_BAD}),
             (Query("fleet_row_stalls",
                    "sum by (instance, switch) (increase(<thread_stalls_total>[$__range]))"), "Stalls",
              {"decimals": 0}),
             (Query("fleet_row_lost",
                    "sum by (instance, switch) (increase(<thread_stalled_seconds>[$__range]))"),
              "Time stalled", {"unit": "s"}),
             (Query("fleet_row_rx",
                    "sum by (instance, switch) (rate(<thread_rx_packets_total>[$__rate_interval]))"),
              "Received", {"unit": "pps"}),
             (Query("fleet_row_agent", "max by (instance, switch) (<agent_up>)"), "Agent",
              {"mappings": YES_MAPPING}),
             (Query("fleet_row_age", f"max by (instance, switch) ({SILENCE})"), "Last heard of",
              {"unit": "s", "decimals": 0, "thresholds": steps(("green", None), ("orange", 30), ("red", 60))})],
            {"instance": "Host", "switch": "Switch"}, height=9, sort="Trouble",
            no_value="no switch is reported")

    b.row("Over time")
    b.timeline("State of the switches", "What each switch was: up, stopped, gone, refused or absent.",
               Query("fleet_history", "max by (instance, switch) (<switch_status>)", BOTH),
               STATUS_MAPPING, height=6)
    b.graph("Stalls", "Stalls of all threads of a switch.",
            [Query("fleet_stall_rate",
                   "sum by (instance, switch) (increase(<thread_stalls_total>[$__rate_interval]))", BOTH)],
            is_bars=True, decimals=0, no_value="no thread seen")
    b.graph("Time stalled", "Share of a thread's time that went into stalls: the worst thread of each switch.",
            [Query("fleet_stalled_share", "max by (instance, switch) "
                   "(clamp_max(rate(<thread_stalled_seconds>[$__rate_interval]), 1))", BOTH)],
            unit="percentunit", no_value="no thread seen")
    b.graph("Oldest beat", "Time since the last beat: the worst thread of each switch.",
            [Query("fleet_beat_age", "max by (instance, switch) (<thread_beat_age_seconds>)", BOTH)],
            unit="s", log=True, no_value="no thread seen")
    b.graph("Incidents raised", "Incidents of all switches, by kind.",
            [Query("fleet_kinds", "sum by (kind) (increase(<incidents_total>[$__rate_interval]))",
                   "{{kind}}")], is_bars=True, is_stacked=True, decimals=0)
    b.graph("Received", "Packets a second that each switch received.",
            [Query("fleet_rx", "sum by (instance, switch) "
                   "(rate(<thread_rx_packets_total>[$__rate_interval]))", BOTH)], unit="pps",
            no_value="no thread seen")
    b.graph("Dropped", "Packets a second that each switch dropped, for all reasons.",
            [Query("fleet_drops", "sum by (instance, switch) "
                   "(rate(<thread_drops_packets_total>[$__rate_interval]))", BOTH)], unit="pps",
            no_value="no thread seen")
    b.graph("Link changes", "How often links of each switch went up or down.",
            [Query("fleet_links", "sum by (instance, switch) "
                   "(increase(<port_link_changes_total>[$__rate_interval]))", BOTH)],
            is_bars=True, decimals=0, no_value="no port seen")
    b.graph("Agents", "Age of each agent's last sign of life; without one, collectd judges by itself.",
            [Query("fleet_agent_age", "max by (instance, switch) (<agent_alive_age_seconds>)", BOTH)],
            unit="s", thresholds=PLAIN, no_value="no agent was ever seen")
    return b
