# SPDX-License-Identifier: Apache-2.0
"""The table of what Prometheus sees of pmdpulse: names, labels, units, meaning.

Rules (alerts.py) and dashboards (board_*.py) name a metric as <NAME> and get it from here, so that
a name that the plugin does not have stops the generator. check.py compares the table with the
plugin's own (contrib/collectd/pmdpulse_types.db, docs/metrics.md), in both directions.
"""

import dataclasses

PREFIX = "collectd_pmdpulse_"

# What carries a metric, and the labels that relabelling (scrape.py) makes of the plugin's label
# "pmdpulse" (INSTANCE or INSTANCE:NAME). job and instance, the host, are everywhere.
LABELS = {
    "switch": ("job", "instance", "switch"),
    "thread": ("job", "instance", "switch", "thread"),
    "port": ("job", "instance", "switch", "port"),
}


@dataclasses.dataclass(frozen=True)
class Metric:
    """One metric. detail: labels made of the plugin's label "type". unused: why no panel shows it."""
    name: str
    of: str
    kind: str
    unit: str
    help: str
    detail: tuple = ()
    unused: str = ""

    @property
    def full_name(self):
        return PREFIX + self.name

    @property
    def labels(self):
        return LABELS[self.of] + self.detail

    @property
    def collectd_type(self):
        """The collectd type: without _total and the unit."""
        name = self.name.removesuffix("_total")
        return name.removesuffix("_" + self.unit) if self.unit else name


_ROWS = """
switch_up                       gauge -        1 while the switch runs, else 0
switch_status                   gauge -        0 absent, 1 up, 2 stopped, 3 gone (died), 4 refused
switch_uptime_seconds           gauge seconds  since the start of the process
switch_cpu_seconds              gauge seconds  CPU time: user, system                             mode
switch_rss_bytes                gauge bytes    resident memory
switch_vsz_bytes                gauge bytes    address space
switch_restarts_total           count -        starts seen after the first
switch_alive_age_seconds        gauge seconds  since the control thread's last sign of life
switch_keepalive                gauge -        1 while enable-keepalive is true
switch_interval_seconds         gauge seconds  keepalive-interval
switch_threads                  gauge -        threads by state                                   state
thread_state                    gauge -        0 UNUSED, 1 ALIVE, 2 DEAD, 3 GONE, 4 MISSING, 5 DOZING, 6 SLEEP
thread_core                     gauge -        CPU that it is bound to, -1 none
thread_keepalive                gauge -        1 while it beats on purpose
thread_beats_total              count -        beats
thread_beat_age_seconds         gauge seconds  since the last beat; NaN where none is due
thread_stalls_total             count -        stalls of two intervals or more, the running one too
thread_stalled_seconds          gauge seconds  sum of these stalls, the running one too
thread_last_stall_seconds       gauge seconds  length of the last stall
thread_gaps_total               count -        self-timed gaps from 250 us up
thread_gap_time_seconds         gauge seconds  sum of these gaps
thread_longest_gap_seconds      gauge seconds  longest gap since its start
thread_gap_bucket_total         count -        iterations whose gap was at most so many seconds (cumulative; +Inf: all)  le
thread_time_seconds             gauge seconds  time spent: busy, idle, sleep                      mode
thread_iterations_total         count -        turns of its loop
thread_rx_packets_total         count packets  received
thread_rx_batches_total         count -        receive bursts with packets
thread_tx_packets_total         count packets  sent
thread_tx_batches_total         count -        transmit bursts
thread_recirculations_packets_total count packets further passes
thread_hits_packets_total       count packets  hits by cache: phwol, emc, smc, megaflow           cache
thread_misses_packets_total     count packets  upcalls
thread_lost_packets_total       count packets  failed upcalls
thread_malformed_packets_total  count packets  malformed frames, dropped or not
thread_drops_packets_total      count packets  drops by reason                                    reason
thread_in_flight_packets        gauge packets  received, not yet sent or dropped
thread_rxqs                     gauge -        receive queues that it polls
thread_incidents_total          count -        cleared, by cause and culprit                      cause,culprit
thread_incident_time_seconds    gauge seconds  durations of cleared incidents, by cause and culprit  cause,culprit
thread_run_hits_packets_total   count packets  hits that took over the result of the packet before
thread_subtable_lookups_total   count -        subtables visited for megaflow hits and misses
thread_upcall_time_seconds      gauge seconds  time in misses and revalidation, part of busy
thread_not_installed_packets_total count packets misses without a new megaflow: flow_limit, shapes  reason
thread_copies_packets_total     count packets  packets made by actions
thread_cache_entries            gauge -        entries in use: emc, smc                           cache
thread_megaflows                gauge -        flows of its classifier
thread_marked_megaflows         gauge -        of these, those that a device marks
thread_megaflow_shapes          gauge -        their distinct masks, over all input ports
port_link                       gauge -        1 up, 0 down, -1 unknown
port_admin                      gauge -        1 up, 0 down, -1 unknown
port_ofport                     gauge -        OpenFlow port number
port_mtu_bytes                  gauge bytes    largest frame payload
port_rxqs                       gauge -        receive queues
port_txqs                       gauge -        transmit queues
port_rx_packets_total           count packets  received
port_rx_bytes_total             count bytes    received
port_tx_packets_total           count packets  sent
port_tx_bytes_total             count bytes    sent
port_errors_packets_total       count packets  errors: rx, rx_missed, rx_nombuf, tx               error
port_tx_retries_total           count -        repeated tries to send
port_link_changes_total         count -        link up and down, counted
port_drops_packets_total        count packets  drops by reason                                    reason
agent_up                        gauge -        1 while the agent's sign of life is fresh
agent_alive_age_seconds         gauge seconds  since its last sign of life; NaN: never
agent_late_total                count -        times that it reported its own lateness
agent_events_total              count -        events read from it
incidents_total                 count -        raised, by kind                                    kind
incidents_open                  gauge -        open now, by kind                                  kind
incidents_cause_total           count -        cleared, by cause                                  cause
incidents_open_cause            gauge -        open now, by cause                                 cause
incidents_time_seconds          gauge seconds  durations of cleared incidents, by cause           cause
relay_active                    gauge -        1 relays the agent, 0 judges by itself
relay_events_lost_total         count -        events overwritten before they could be read
notifications_sent_total        count -        dispatched
notifications_lost_total        count -        dropped, the queue being full
notifications_queued            gauge -        waiting for a receiver
read_duration_seconds           gauge seconds  what the read callback took
round_duration_seconds          gauge seconds  what it took to read and queue all values
"""

# Metrics that no panel and no rule shows, and why.
UNUSED = {}


def _parse():
    metrics = {}
    for line in _ROWS.strip().splitlines():
        name, kind, unit, rest = line.split(None, 3)
        words, _, detail = rest.partition("  ")
        of = name.split("_")[0]
        metrics[name] = Metric(name, of if of in LABELS else "switch", kind,
                               "" if unit == "-" else unit, words.strip(),
                               tuple(detail.strip().split(",")) if detail.strip() else (),
                               UNUSED.get(name, ""))
    return metrics


METRICS = _parse()

# Series that are not the plugin's, and the labels that may be relied upon.
FOREIGN = {
    "up": ("job", "instance"),
    "ALERTS": ("job", "instance", "alertname", "alertstate", "severity"),
}

# Upper bounds of the gap histogram as the plugin writes them: powers of two of nanoseconds.
GAP_BOUNDS = [repr(2 ** bit / 1e9) for bit in range(14, 37)] + ["+Inf"]
# Gaps up to this one are the loop's daily work; what is longer, heat maps show.
SHORT_GAP = repr(2 ** 18 / 1e9)

THREAD_STATES = {0: "UNUSED", 1: "ALIVE", 2: "DEAD", 3: "GONE", 4: "MISSING", 5: "DOZING",
                 6: "SLEEP"}
SWITCH_STATUS = {0: "absent", 1: "up", 2: "stopped", 3: "gone", 4: "refused"}
