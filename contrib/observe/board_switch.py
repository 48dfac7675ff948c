# SPDX-License-Identifier: Apache-2.0
"""Switch: what it forwards, how, and what it loses."""

from grafana import ANY_IS_BAD, LINK_MAPPING, STATUS_MAPPING, YES_MAPPING, Board, Query, steps

ALARMS = ("Alerts", "red", '<ALERTS|alertname=~"Pmdpulse.+",alertstate="firing",severity="critical">',
          "{{alertname}}",
          "{{thread}}{{port}} {{cause}} {{culprit}} {{reason}}", "severity,switch")
PASSES = ("scalar(clamp_min(sum(rate(<thread_hits_packets_total>[$__rate_interval]))"
          " + sum(rate(<thread_misses_packets_total>[$__rate_interval])), 1e-9))")


def per(labels, metric):
    return f"sum by ({labels}) (rate(<{metric}>[$__rate_interval]))"


def batch(way):
    return (f"{per('instance, thread', f'thread_{way}_packets_total')} / "
            f"clamp_min({per('instance, thread', f'thread_{way}_batches_total')}, 1e-9)")


def passes_by_thread():
    return (f"clamp_min({per('instance, thread', 'thread_hits_packets_total')} + "
            f"{per('instance, thread', 'thread_misses_packets_total')}, 1e-9)")


def now(b):
    b.row("Now")
    b.stat("State", "The worst of the switches chosen.", Query("sw_status", "max(<switch_status>)"),
           mappings=STATUS_MAPPING)
    b.stat("Uptime", "Since the start of the process; the youngest of the switches chosen. None while "
           "no switch runs.", Query("sw_uptime", "min(<switch_uptime_seconds>)"), unit="s",
           no_value="not running")
    b.stat("Starts again", "Starts of a switch seen after the first, in the time range shown.",
           Query("sw_restarts", "sum(increase(<switch_restarts_total>[$__range]))"), decimals=0,
           thresholds=steps(("green", None), ("orange", 1)))
    b.stat("Received", "Packets a second that all threads received.",
           Query("sw_rx_now", "sum(rate(<thread_rx_packets_total>[$__rate_interval]))"), unit="pps")
    b.stat("Busy", "Busy share of the time that the threads polled. A PMD that is idle polls on.",
           Query("sw_busy_now", 'sum(rate(<thread_time_seconds|mode="busy">[$__rate_interval])) / '
                 'clamp_min(sum(rate(<thread_time_seconds|mode=~"busy|idle">[$__rate_interval])), 1e-9)'),
           unit="percentunit", decimals=1,
           thresholds=steps(("green", None), ("orange", 0.8), ("red", 0.95)))
    b.stat("Dropped", "Packets a second dropped, for all reasons.",
           Query("sw_drops_now", "sum(rate(<thread_drops_packets_total>[$__rate_interval]))"),
           unit="pps", thresholds=steps(("green", None), ("orange", 1)))
    b.stat("Links down", "Ports in use whose link is down.",
           Query("sw_links_down", "sum((<port_link> == bool 0) * (<port_admin> == bool 1))"),
           thresholds=ANY_IS_BAD, no_value="no port")
    b.stat("Keepalive", "no: enable-keepalive is false for one of the switches chosen, so nobody sees a "
           "stall there.", Query("sw_keepalive", "min(<switch_keepalive>)"), mappings=YES_MAPPING)


def traffic(b):
    b.row("Traffic")
    b.graph("Received by port", "Packets a second that came in.",
            [Query("sw_port_rx", per("instance, port", "port_rx_packets_total"), "{{instance}} {{port}}")], unit="pps",
            no_value="no port")
    b.graph("Sent by port", "Packets a second that went out.",
            [Query("sw_port_tx", per("instance, port", "port_tx_packets_total"), "{{instance}} {{port}}")], unit="pps",
            no_value="no port")
    b.graph("Bandwidth by port", "Bytes a second; the thread's frames without checksum.",
            [Query("sw_port_rx_bytes", per("instance, port", "port_rx_bytes_total"), "{{instance}} {{port}} in"),
             Query("sw_port_tx_bytes", per("instance, port", "port_tx_bytes_total"), "{{instance}} {{port}} out")], unit="Bps",
            no_value="no port")
    b.graph("Received and sent by thread", "Packets a second of each thread. Copies are packets that actions "
            "made: with them, more goes out than came in.",
            [Query("sw_thread_rx", per("instance, thread", "thread_rx_packets_total"), "{{instance}} {{thread}} received"),
             Query("sw_thread_tx", per("instance, thread", "thread_tx_packets_total"), "{{instance}} {{thread}} sent"),
             Query("sw_thread_copies", per("instance, thread", "thread_copies_packets_total"), "{{instance}} {{thread}} copies")],
            unit="pps", no_value="no thread")
    b.graph("Busy share", "Busy share of the time that a thread polled.",
            [Query("sw_busy", 'sum by (instance, thread) (rate(<thread_time_seconds|mode="busy">[$__rate_interval])) '
                   '/ clamp_min(sum by (instance, thread) '
                   '(rate(<thread_time_seconds|mode=~"busy|idle">[$__rate_interval])), 1e-9)', "{{instance}} {{thread}}")],
            unit="percentunit", maximum=1, no_value="no thread")
    b.graph("Packets per batch", "Average packets of a receive burst and of a transmit burst; 0 without "
            "traffic. Small batches cost more cycles a packet.",
            [Query("sw_batch_rx", batch("rx"), "{{instance}} {{thread}} received"),
             Query("sw_batch_tx", batch("tx"), "{{instance}} {{thread}} sent")], no_value="no thread")


def caches(b):
    b.row("Caches")
    b.graph("Where passes hit", "Share of the passes that each cache answered; the rest are upcalls. "
            "All 0 without traffic.",
            [Query("sw_hits", f"{per('cache', 'thread_hits_packets_total')} / {PASSES}", "{{cache}}"),
             Query("sw_miss_share", "sum(rate(<thread_misses_packets_total>[$__rate_interval])) / "
                   + PASSES, "miss")], unit="percentunit", decimals=1, maximum=1, is_stacked=True,
            no_value="no thread")
    b.graph("Passes again and upcalls", "Recirculations, upcalls and upcalls that failed, a second.",
            [Query("sw_recirculations", "sum(rate(<thread_recirculations_packets_total>[$__rate_interval]))",
                   "recirculations"),
             Query("sw_misses", "sum(rate(<thread_misses_packets_total>[$__rate_interval]))", "upcalls"),
             Query("sw_lost", "sum(rate(<thread_lost_packets_total>[$__rate_interval]))", "failed upcalls")],
            unit="pps", no_value="no thread")
    b.graph("Run hits", "Share of the passes that took over the result of the packet before. They are among "
            "the hits of the caches. 0 without traffic.",
            [Query("sw_run_hits", f"{per('instance, thread', 'thread_run_hits_packets_total')} / {passes_by_thread()}",
                   "{{instance}} {{thread}}")], width=8, unit="percentunit", maximum=1, no_value="no thread")
    b.graph("Cache entries", "Entries in use. EMC and SMC stay empty while a port's megaflows have one mask, "
            "and the SMC while smc-enable is false.",
            [Query("sw_cache_entries", "sum by (instance, thread, cache) (<thread_cache_entries>)",
                   "{{instance}} {{thread}} {{cache}}")], width=8, no_value="no thread")
    b.graph("Megaflows", "Flows of each thread's classifier, and those of them that a device marks.",
            [Query("sw_megaflows", "sum by (instance, thread) (<thread_megaflows>)", "{{instance}} {{thread}} megaflows"),
             Query("sw_marked", "sum by (instance, thread) (<thread_marked_megaflows>)", "{{instance}} {{thread}} marked")],
            width=8, no_value="no thread")
    b.graph("Subtables", "Masks of the megaflows over all input ports, and subtables visited for each packet "
            "that hits or misses the megaflows: below 1 where one lookup serves a burst, 0 without such packets. "
            "More visits cost more cycles a packet.",
            [Query("sw_shapes", "sum by (instance, thread) (<thread_megaflow_shapes>)", "{{instance}} {{thread}} masks"),
             Query("sw_visits", f"{per('instance, thread', 'thread_subtable_lookups_total')} / clamp_min("
                   'sum by (instance, thread) (rate(<thread_hits_packets_total|cache="megaflow">[$__rate_interval])) + '
                   f"{per('instance, thread', 'thread_misses_packets_total')}, 1e-9)",
                   "{{instance}} {{thread}} visited")], width=8, no_value="no thread")
    b.graph("Time in upcalls", "Share of a thread's time that upcalls and revalidation took; it is part of busy. "
            "Much of it: many new flows, or rules that change often.",
            [Query("sw_upcall_time", per("instance, thread", "thread_upcall_time_seconds"), "{{instance}} {{thread}}")],
            width=8, unit="percentunit", no_value="no thread")
    b.graph("Upcalls without a megaflow", "Packets a second that were translated one by one, because the "
            "thread has as many megaflows (flow_limit) or a port as many masks (shapes) as it may.",
            [Query("sw_not_installed", per("instance, thread, reason", "thread_not_installed_packets_total"),
                   "{{instance}} {{thread}} {{reason}}")], width=8, unit="pps", no_value="no thread")


def losses(b):
    b.row("Losses")
    b.graph("Drops by reason", "Packets a second, by reason. no_rule, action, meter and qos are drops that "
            "the rules asked for.",
            [Query("sw_drops", per("reason", "thread_drops_packets_total"), "{{reason}}")], unit="pps",
            is_stacked=True, no_value="no thread")
    b.graph("Drops by port", "Packets a second that were dropped on the way into or out of each port.",
            [Query("sw_port_drops", per("instance, port", "port_drops_packets_total"), "{{instance}} {{port}}")], unit="pps",
            no_value="no port")
    b.graph("Port errors", "Errors that the devices count. rx_missed: the queue was full, because the PMD "
            "was too slow or away.",
            [Query("sw_errors", per("instance, port, error", "port_errors_packets_total"), "{{instance}} {{port}} {{error}}")],
            unit="pps", no_value="no port")
    b.graph("Malformed frames and transmit retries", "Malformed frames a second, dropped or not, and "
            "repeated tries to send.",
            [Query("sw_malformed", "sum(rate(<thread_malformed_packets_total>[$__rate_interval]))",
                   "malformed frames"),
             Query("sw_retries", per("instance, port", "port_tx_retries_total"), "{{instance}} {{port}} retries")],
            unit="ops", no_value="no thread")


def ports(b):
    b.row("Ports")
    b.timeline("Links", "Link of each port: up, down, or unknown where the device can't tell.",
               Query("sw_link", "max by (instance, switch, port) (<port_link>)", "{{instance}} {{port}}"), LINK_MAPPING,
               height=6, no_value="no port")
    by_port = "max by (instance, switch, port) "
    b.table("Ports", "Settings and state of each port. Changes: how often its link changed in the time "
            "range shown.",
            [(Query("sw_p_ofport", by_port + "(<port_ofport>)"), "OpenFlow port", {"unit": "none"}),
             (Query("sw_p_link", by_port + "(<port_link>)"), "Link", {"mappings": LINK_MAPPING}),
             (Query("sw_p_admin", by_port + "(<port_admin>)"), "In use", {"mappings": YES_MAPPING}),
             (Query("sw_p_mtu", by_port + "(<port_mtu_bytes>)"), "MTU", {"unit": "none"}),
             (Query("sw_p_rxqs", by_port + "(<port_rxqs>)"), "Receive queues", {}),
             (Query("sw_p_txqs", by_port + "(<port_txqs>)"), "Transmit queues", {}),
             (Query("sw_p_changes", by_port + "(increase(<port_link_changes_total>[$__range]))"), "Changes",
              {"decimals": 0})],
            {"instance": "Host", "switch": "Switch", "port": "Port"}, no_value="no port")


def process(b):
    b.row("Process, agent and collectd")
    b.graph("CPU of the process", "Seconds of CPU a second. A PMD that polls takes one whole.",
            [Query("sw_cpu", "sum by (instance, switch, mode) (rate(<switch_cpu_seconds>[$__rate_interval]))",
                   "{{instance}} {{switch}} {{mode}}")], width=8, unit="percentunit", is_stacked=True,
            no_value="not running")
    b.graph("Memory of the process", "Resident memory, without hugepages, and address space, with them.",
            [Query("sw_rss", "sum by (instance, switch) (<switch_rss_bytes>)", "{{instance}} {{switch}} resident"),
             Query("sw_vsz", "sum by (instance, switch) (<switch_vsz_bytes>)", "{{instance}} {{switch}} address space")], width=8,
            unit="bytes", log=True, no_value="not running")
    b.graph("Signs of life", "Age of the control thread's and the agent's last sign of life.",
            [Query("sw_alive_age", "max by (instance, switch) (<switch_alive_age_seconds>)", "{{instance}} {{switch}} control"),
             Query("sw_agent_age", "max by (instance, switch) (<agent_alive_age_seconds>)", "{{instance}} {{switch}} agent")],
            width=8, unit="s", no_value="nobody has lived yet")
    b.graph("Agent and relay", "1 while the agent is up, and while collectd relays what it finds; 0: collectd "
            "judges by itself.",
            [Query("sw_agent_up", "min by (instance, switch) (<agent_up>)", "{{instance}} {{switch}} agent"),
             Query("sw_relay", "min by (instance, switch) (<relay_active>)", "{{instance}} {{switch}} relay")], width=8, maximum=1)
    b.graph("Events and notifications", "Events read from the agent, notifications sent, and what of both "
            "was lost.",
            [Query("sw_events", per("instance, switch", "agent_events_total"), "{{instance}} {{switch}} events"),
             Query("sw_sent", per("instance, switch", "notifications_sent_total"), "{{instance}} {{switch}} sent"),
             Query("sw_events_lost", per("instance, switch", "relay_events_lost_total"), "{{instance}} {{switch}} events lost"),
             Query("sw_lost_notifications", per("instance, switch", "notifications_lost_total"),
                   "{{instance}} {{switch}} notifications lost"),
             Query("sw_queued", "sum by (instance, switch) (<notifications_queued>)", "{{instance}} {{switch}} waiting")],
            width=8, unit="short")
    b.graph("Cost of reading", "Time that collectd's read callback took, and a round of all values.",
            [Query("sw_read", "max by (instance) (<read_duration_seconds>)", "{{instance}} callback"),
             Query("sw_round", "max by (instance) (<round_duration_seconds>)", "{{instance}} round")],
            width=8, unit="s")


def board():
    b = Board("pmdpulse-switch", "pmdpulse / Switch",
              "What a switch forwards, how it finds its flows, and what it loses.",
              ["job", "instance", "switch"], annotations=[ALARMS])
    for part in (now, traffic, caches, losses, ports, process):
        part(b)
    return b
