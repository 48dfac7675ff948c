# SPDX-License-Identifier: Apache-2.0
"""A real fault and its alarm: a SCHED_FIFO hog takes the PMD's core for 300 ms.

The hog has a random name and times itself. Shown is what the agent (JSON lines), the command
(events) and collectd (its log of notifications) say; the demo succeeds when all of them raise and clear
it, name the hog's pid and give its own duration within 10 %.
"""
import json
import os
import random
import re
import string
import subprocess
import sys

from stack import say

HOG_MS = 300
TOLERANCE = 0.10


def hog_path(build):
    return os.path.join(build, "tests/tools/hog")


def check_rights():
    """Exit 1 with the reason where the kernel refuses real-time scheduling."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError as error:
        say(f"demo: this user can't make the fault: SCHED_FIFO: {error.strerror}")
        say("demo: run it as root, or allow real-time priority (ulimit -r)")
        sys.exit(1)


def run_hog(build, core):
    name = "hog-" + "".join(random.choices(string.ascii_lowercase + string.digits, k=6))
    out = subprocess.run([hog_path(build), "--core", str(core), "--class", "fifo", "--ms", str(HOG_MS),
                          "--name", name], capture_output=True, text=True, timeout=30, check=False)
    if out.returncode != 0:
        say(f"demo: the hog {hog_path(build)} made no fault: exit {out.returncode}: "
            f"{out.stderr.strip() or 'it said nothing'}")
        sys.exit(1)
    return json.loads(out.stdout)


def phases(events, pid):
    """The raise, and the clear with the same id, of the stall that names pid."""
    ids = {e["id"] for e in events if (e["culprit"] or {}).get("pid") == pid}
    mine = [e for e in events if e["id"] in ids]
    begin = next((e for e in mine if e["phase"] == "raise"), None)
    end = next((e for e in mine if e["phase"] == "clear"), None)
    return (begin, end) if begin and end else None


def events_of_agent(stack):
    try:
        with open(stack.path("incidents.jsonl"), encoding="utf-8") as file:
            text = file.read()  # at once: the agent appends, and the last line may be half there
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.split("\n")[:-1]]


def events_of_command(stack):
    out = subprocess.run([os.path.join(stack.build, "pmdpulse"), "--rundir", stack.rundir, "-i", "default",
                          "-j", "events"], capture_output=True, text=True, timeout=10, check=False)
    return [json.loads(line) for line in out.stdout.splitlines()]


def notifications_of_collectd(stack, incident):
    """Lines of collectd's log that carry the incident's message, by severity."""
    try:
        with open(stack.path("collectd-notifications.log"), encoding="utf-8") as log:
            lines = [line.strip() for line in log if "Notification: severity" in line]
    except FileNotFoundError:
        return None
    mine = [line for line in lines if incident in line]
    begin = [line for line in mine if "severity = FAILURE" in line]
    end = [line for line in mine if "severity = OKAY" in line]
    return (begin, end) if begin and end else None


def judge(who, hog, pid, duration_s, complaints):
    spun_s = hog["spun_ns"] / 1e9
    if pid != hog["pid"]:
        complaints.append(f"{who} names pid {pid}, the hog is {hog['pid']}")
    if abs(duration_s - spun_s) > TOLERANCE * spun_s:
        complaints.append(f"{who} says {duration_s:.4f} s, the hog spun for {spun_s:.4f} s")


def show(who, event):
    culprit = event["culprit"] or {}
    print(f"  {who:9} {event['phase']:6} {event['kind']} cause {event['cause']} culprit "
          f"{culprit.get('comm')} (pid {culprit.get('pid')}, {culprit.get('class')}) "
          f"duration {event['duration_s']:.4f} s")
    print(f"  {'':9} {event['message']}")


def play(stack):
    thread = next(t for t in stack.ask("pmd-health-show")["threads"] if t["kind"] == "pmd")
    # The alarm must be the hog's: let the start settle until no incident is open.
    stack.wait("quiet start (no open incident)", lambda: stack.ask("status")["open_incidents"] == 0, 30)
    hog = run_hog(stack.build, thread["core"])
    print(f"\nThe fault: {hog['comm']} (pid {hog['pid']}) took core {thread['core']} from "
          f"{thread['name']} for {hog['spun_ns'] / 1e9:.4f} s by its own clock.\n", flush=True)
    agent = stack.wait("raise and clear from the agent", lambda: phases(events_of_agent(stack), hog["pid"]), 20)
    command = stack.wait("raise and clear from events", lambda: phases(events_of_command(stack), hog["pid"]), 10)
    collectd = stack.wait("raise and clear from collectd",
                          lambda: notifications_of_collectd(stack, hog["comm"]), 10)
    complaints = []
    print("What was said of it:")
    for who, (begin, end) in (("agent", agent), ("events", command)):
        show(who, begin)
        show(who, end)
        if (begin["cause"], end["cause"]) != ("preempted", "preempted"):
            complaints.append(f"{who} gives cause {begin['cause']}, then {end['cause']}")
        judge(who, hog, end["culprit"]["pid"], end["duration_s"], complaints)
    for line in (collectd[0][0], collectd[1][-1]):
        print(f"  collectd  {line}")
    match = re.search(r"for ([0-9.]+) s.*\(pid (\d+)", collectd[1][-1])
    if match:
        judge("collectd", hog, int(match[2]), float(match[1]), complaints)
    else:
        complaints.append("collectd's clear names no duration and pid")
    for complaint in complaints:
        say(f"demo: {complaint}")
    print("\ndemo: " + ("FAILED" if complaints else "raised and cleared everywhere, with the hog's pid and "
          "duration"), flush=True)
    return 1 if complaints else 0
