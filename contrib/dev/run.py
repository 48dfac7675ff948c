#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The main job in the foreground: switch, agent and collectd on a built-in configuration.

usage: run.py [demo]        (make run, make demo)

Environment: BUILD (folder of the programs), DURATION (seconds; run until Ctrl-C when empty).
"""
import os
import subprocess
import sys
import time

import demo
import stack as stacks
import stopping
from stack import INSTANCE, say


def totals(stack):
    stats = stack.ask("pmd-stats-show")
    return sum(pmd["packets_received"] for pmd in stats["pmds"]) if stats else None


def status_line(stack, pps):
    health = stack.ask("pmd-health-show")
    if not health:
        return "no answer from the command"
    states = {}
    for thread in health["threads"]:
        states[thread["state"]] = states.get(thread["state"], 0) + 1
    worst = max((thread["longest_gap_s"] for thread in health["threads"]), default=0)
    stalls = sum(thread["stalls"] for thread in health["threads"])
    text = " ".join(f"{n} {state}" for state, n in sorted(states.items()))
    return (f"{pps / 1e6:.2f} Mpps  PMDs: {text}  stalls {stalls}  longest gap {worst * 1e3:.1f} ms  "
            f"agent {health['agent']['state']}")


def watch(stack, duration):
    """A live table on a terminal, one line a second elsewhere; until duration or a death."""
    end = time.monotonic() + duration if duration else None
    begin, first = time.monotonic(), totals(stack)
    before, then = first, begin
    pps = 0
    while end is None or time.monotonic() < end:
        if sys.stdout.isatty():
            subprocess.run([os.path.join(stack.build, "pmdpulse"), "--rundir", stack.rundir, "-i",
                            INSTANCE, "top", "-n", "1"], check=False)
        else:
            time.sleep(min(1, max(0, end - time.monotonic())) if end else 1)
            now, count = time.monotonic(), totals(stack)
            if count is not None and before is not None:
                pps = (count - before) / (now - then)
            before, then = count, now
            print(status_line(stack, pps), flush=True)
        if stack.dead():
            name = stack.dead()
            stack.fail(f"{name} ended by itself", name)
    last = totals(stack)
    if last is not None and first is not None:
        say(f"forwarded {last - first} packets, "
            f"{(last - first) / (time.monotonic() - begin) / 1e6:.3f} Mpps on average")


def play(stack, duration, is_demo):
    """Start, then watch or play the demo; the exit code."""
    if is_demo:
        demo.check_rights()
    stacks.start(stack)
    # Where the command looks by itself, nothing need be said.
    where = "" if stack.rundir == stacks.product_rundir() else f"PMDPULSE_RUNDIR={stack.rundir} "
    say(f"look around with: {where}{os.path.relpath(stack.build)}/pmdpulse status")
    if is_demo:
        return demo.play(stack)
    watch(stack, duration)
    return 0


def main():
    build = os.path.abspath(os.environ.get("BUILD") or "build")
    try:
        duration = float(os.environ.get("DURATION") or 0)
    except ValueError:
        say(f"DURATION={os.environ['DURATION']}: not a number of seconds")
        sys.exit(1)
    is_demo = sys.argv[1:] == ["demo"]

    stack = stacks.Stack(build)
    status = 1
    try:
        stopping.watch()
        status = play(stack, duration, is_demo)
    except stopping.Stopped:
        say("stopping")
        status = 0
    except (OSError, subprocess.SubprocessError) as error:
        say(f"{error}")
    finally:  # whatever happened, nothing stays behind
        stopping.ignore()
        if not stack.stop():
            status = 1
    sys.exit(status)


if __name__ == "__main__":
    main()
