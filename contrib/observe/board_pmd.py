# SPDX-License-Identifier: Apache-2.0
"""PMD health: does every thread do its work, and if not, who stops it."""

from board_switch import ALARMS
from grafana import ANY_IS_BAD, STATE_MAPPING, YES_MAPPING, Board, Query, steps
from metrics import GAP_BOUNDS, SHORT_GAP

EACH = "instance, switch, thread"
WHOSE = "{{instance}} {{thread}}"
STALLED_SHARE = "clamp_max(increase(<thread_stalled_seconds>[$__range]) / $__range_s, 1)"
LONG_BOUNDS = "|".join(bound.replace(".", "[.]").replace("+", "[+]")
                       for bound in GAP_BOUNDS[GAP_BOUNDS.index(SHORT_GAP):])
# Iterations longer than SHORT_GAP, counted by bucket: the millions of short ones left out.
GAP_HEAT = (f'sum by (le) (increase(<thread_gap_bucket_total|le=~"{LONG_BOUNDS}">[$__rate_interval]))'
            f" - on () group_left () sum(increase("
            f'<thread_gap_bucket_total|le="{SHORT_GAP}">[$__rate_interval]))')
GAP_HELP = ("How many turns of the loop took how long, from 262 us up (shorter ones are left out). A healthy "
            "PMD leaves it empty but for the lowest rows.")
NO_THREAD = "no thread"
LAST_WORDS = {"instance": "Host", "switch": "Switch", "thread": "Thread", "cause": "Cause",
              "culprit": "Culprit"}


def each(expr):
    return f"max by ({EACH}) ({expr})"


def now(b):
    b.row("Now")
    b.stat("Alive", "Threads that beat.", Query("pmd_alive", "sum(<thread_state> == bool 1)"))
    b.stat("Dead", "Threads without a beat for two intervals.",
           Query("pmd_dead", "sum(<thread_state> == bool 2)"), thresholds=ANY_IS_BAD)
    b.stat("Gone", "Threads that left without a word, or whose process died.",
           Query("pmd_gone", "sum(<thread_state> == bool 3)"), thresholds=ANY_IS_BAD)
    b.stat("Stalls", "Stalls in the time range shown.",
           Query("pmd_stalls_range", "sum(increase(<thread_stalls_total>[$__range]))"), decimals=0,
           thresholds=ANY_IS_BAD)
    b.stat("Time stalled", "Sum of these stalls.",
           Query("pmd_stalled_range", "sum(increase(<thread_stalled_seconds>[$__range]))"), unit="s",
           thresholds=steps(("green", None), ("orange", 0.001), ("red", 1)))
    b.stat("Availability", "Share of the time range shown in which the worst thread did not stall.",
           Query("pmd_availability", f"1 - max({STALLED_SHARE})"), unit="percentunit", decimals=4,
           thresholds=steps(("red", None), ("orange", 0.999), ("green", 0.99999)))
    b.stat("Oldest beat", "Time since the last beat of the worst thread. None where no beat is due.",
           Query("pmd_age_now", "max(<thread_beat_age_seconds>)"), unit="s",
           thresholds=steps(("green", None), ("orange", 0.05), ("red", 0.1)), no_value="none is due")
    b.stat("Interval", "keepalive-interval: a thread is MISSING after one, DEAD after two.",
           Query("pmd_interval", "max(<switch_interval_seconds>)"), unit="s", no_value="not known")


def states(b):
    b.row("State")
    b.timeline("State of the threads", "What each thread was at every reading. A stall shorter than a "
               "reading is not seen here, but counted below.",
               Query("pmd_state", each("<thread_state>"), WHOSE), STATE_MAPPING,
               no_value=NO_THREAD)
    b.graph("Beat age", "Time since the last beat, at the moment of reading. None for a thread that "
            "announced a sleep.",
            [Query("pmd_beat_age", each("<thread_beat_age_seconds>"), WHOSE)], unit="s", log=True,
            no_value="none is due")
    b.graph("Beats", "Beats a second: turns of the loop while keepalive is on.",
            [Query("pmd_beats", each("rate(<thread_beats_total>[$__rate_interval])"), WHOSE)],
            unit="ops", no_value=NO_THREAD)


def stalls(b):
    b.row("Stalls")
    b.heatmap("Gaps between turns", GAP_HELP, Query("pmd_heat", GAP_HEAT), no_value=NO_THREAD)
    b.graph("Stalls by thread", "Stalls of two intervals or more, also those between two readings.",
            [Query("pmd_stalls", each("increase(<thread_stalls_total>[$__rate_interval])"), WHOSE)],
            width=8, is_bars=True, decimals=0, no_value=NO_THREAD)
    b.graph("Incidents by cause", "Incidents of the threads that are over, by cause. Only the agent can "
            "tell causes beyond the plainest.",
            [Query("pmd_causes", "sum by (cause) (increase(<thread_incidents_total>[$__rate_interval]))",
                   "{{cause}}")], width=8, is_bars=True, is_stacked=True, decimals=0, no_value=NO_THREAD)
    b.graph("Time taken by cause", "Durations of these incidents.",
            [Query("pmd_cause_time", "sum by (cause) "
                   "(increase(<thread_incident_time_seconds>[$__rate_interval]))", "{{cause}}")],
            width=8, unit="s", is_bars=True, is_stacked=True, no_value=NO_THREAD)
    group = f"sum by ({EACH}, cause, culprit) "
    b.table("Who stopped whom", "Incidents of the time range shown that are over: how many, and how long in "
            "all. Empty on a healthy switch, which it says.",
            [(Query("pmd_culprits", group + "(increase(<thread_incidents_total>[$__range])) > 0"),
              "Incidents", {"decimals": 0}),
             (Query("pmd_culprit_time",
                    group + "(increase(<thread_incident_time_seconds>[$__range])) > 0"), "Time taken",
              {"unit": "s"})],
            LAST_WORDS, width=12, sort="Time taken", no_value="nobody stopped a thread in this time")
    b.table("Threads", "What each thread is and has lost, since its start and in the time range shown.",
            [(Query("pmd_t_state", each("<thread_state>")), "State", {"mappings": STATE_MAPPING}),
             (Query("pmd_t_core", each("<thread_core>")), "Core", {"unit": "none"}),
             (Query("pmd_t_rxqs", each("<thread_rxqs>")), "Queues", {}),
             (Query("pmd_t_keepalive", each("<thread_keepalive>")), "Beats", {"mappings": YES_MAPPING}),
             (Query("pmd_t_last", each("<thread_last_stall_seconds>")), "Last stall", {"unit": "s"}),
             (Query("pmd_t_longest", each("<thread_longest_gap_seconds>")), "Longest gap", {"unit": "s"}),
             (Query("pmd_t_available", f"1 - {each(STALLED_SHARE)}"), "Availability",
              {"unit": "percentunit", "decimals": 4, "thresholds": steps(
                  ("red", None), ("orange", 0.999), ("green", 0.99999))})],
            {"instance": "Host", "switch": "Switch", "thread": "Thread"}, width=12, no_value=NO_THREAD)


def losses(b):
    b.row("Lost time")
    b.graph("Time stalled", "Share of each thread's time that went into stalls.",
            [Query("pmd_stalled", each("clamp_max(rate(<thread_stalled_seconds>[$__rate_interval]), 1)"),
                   WHOSE)], width=8, unit="percentunit", no_value=NO_THREAD)
    b.graph("Availability", "Share of the last hour that no stall took, thread by thread.",
            [Query("pmd_available", f"1 - {each('clamp_max(rate(<thread_stalled_seconds>[1h]), 1)')}",
                   WHOSE)], width=8, unit="percentunit", minimum=None, maximum=1, decimals=4,
            no_value=NO_THREAD)
    b.graph("Gaps from 250 us up", "Share of each thread's time lost in gaps that it timed itself, and how many "
            "a second.",
            [Query("pmd_gap_share", each("clamp_max(rate(<thread_gap_time_seconds>[$__rate_interval]), 1)"),
                   WHOSE)], width=8, unit="percentunit", no_value=NO_THREAD)
    b.graph("Gaps a second", "Self-timed gaps from 250 us up.",
            [Query("pmd_gaps", each("rate(<thread_gaps_total>[$__rate_interval])"), WHOSE)],
            width=8, unit="ops", no_value=NO_THREAD)
    b.graph("Longest gap", "Longest gap of each thread since its start.",
            [Query("pmd_longest", each("<thread_longest_gap_seconds>"), WHOSE)], width=8, unit="s",
            log=True, no_value=NO_THREAD)
    b.graph("One turn in a hundred thousand", "Gap that 99.999 % of the turns stay below, from the histogram.",
            [Query("pmd_quantile", "histogram_quantile(0.99999, sum by (instance, thread, le) "
                   "(rate(<thread_gap_bucket_total>[$__rate_interval])))", WHOSE)], width=8, unit="s",
            log=True, no_value="the threads do not turn")


def work(b):
    b.row("Work")
    b.graph("Time by use", "How the threads spent their time: with packets, polling without, asleep. Each thread makes "
            "100 %.",
            [Query("pmd_time", "sum by (mode) (rate(<thread_time_seconds>[$__rate_interval]))", "{{mode}}")],
            width=8, is_stacked=True, unit="percentunit", no_value=NO_THREAD)
    b.graph("Turns of the loop", "Iterations a second.",
            [Query("pmd_turns", each("rate(<thread_iterations_total>[$__rate_interval])"), WHOSE)],
            width=8, unit="ops", no_value=NO_THREAD)
    b.graph("In flight", "Packets received and not yet sent or dropped.",
            [Query("pmd_in_flight", each("<thread_in_flight_packets>"), WHOSE)], width=8,
            no_value=NO_THREAD)


def board():
    b = Board("pmdpulse-pmd", "pmdpulse / PMD health",
              "Does every poll-mode thread do its work, and if not, who stops it.",
              ["job", "instance", "switch", "thread"], annotations=[ALARMS])
    for part in (now, states, stalls, losses, work):
        part(b)
    return b
