# SPDX-License-Identifier: Apache-2.0
"""The three units on a machine that boots (lib/systemd.py): what they say, and what of it is a false alarm.

The machine may really take the PMD's time meanwhile: such an incident is true, so only other
accusations count as false alarms.
"""

import json
import time

from .events import matches
from .wait import wait_for

SWITCH, AGENT, COLLECTD = UNITS = ("pmdpulse-switch", "pmdpulse-agent", "collectd")
WATCHDOG_S = 5  # of the agent's unit
OF_THE_MACHINE = ("steal", "preempted", "irq")
# An agent that died is told by collectd, not by itself.
TRUE_KINDS = ("switch-stopped", "switch-back", "agent-late")


def status(machine):
    done = machine.run("pmdpulse", "-j", "-i", "default", "status", check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def told(machine, after=0, **wanted):
    """The agent's events with a seq above after."""
    return [e for e in machine.events() if e["seq"] > after and matches(e, wanted)]


def last_seq(machine):
    return max([e["seq"] for e in machine.events()], default=0)


def false_alarms(machine, after, allowed=()):
    return [e for e in told(machine, after, phase="raise")
            if e["kind"] not in (*TRUE_KINDS, *allowed) and e["cause"] not in OF_THE_MACHINE]


def received(machine):
    return sum(port["rx_packets"] for port in machine.pmdpulse("dump-ports")["ports"])


def sampled_until_back(machine):
    """Stop the agent by SIGSTOP; the samples [(time, packets)] of a switch without a gap until it is back."""
    pid = machine.main_pid(AGENT)
    samples = [(time.monotonic(), received(machine))]
    machine.kill(AGENT, "SIGSTOP")

    def is_back():
        samples.append((time.monotonic(), received(machine)))
        return machine.main_pid(AGENT) not in (0, pid) and machine.is_active(AGENT)
    wait_for(is_back, 3 * WATCHDOG_S, lambda: machine.describe(AGENT), every=0.1)
    took_s = samples[-1][0] - samples[0][0]
    rates = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(samples, samples[1:])]
    usual = sorted(rates)[len(rates) // 2]
    print(f"agent back after {took_s:.1f} s; {len(rates)} samples, {usual:.3g} packets/s, least {min(rates):.3g}")
    assert len(rates) > 10 and min(rates) > 0.2 * usual, samples
    return samples
