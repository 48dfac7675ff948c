#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs test programs and pytest, and adds them all up.

The last line is always `N passed, N failed, N skipped`; the exit code is 1 if any failed.
A program is a cmocka binary (its closing lines are counted) or a plain one (exit code 0
passed, 77 skipped with its last line as the reason, anything else failed). Each has a run directory
of its own. --side-by-side: unit tests, which need no core to themselves, run as many at once as there
are cores; the rest follow one by one.
"""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from multiprocessing.pool import ThreadPool

CMOCKA_TOTAL = re.compile(r"^\[ +(PASSED|FAILED|SKIPPED) +\] (\d+) test\(s\)", re.M)
SKIP_REASON = re.compile(r"^.*\bskip(?:ped|s)?\b *:.*$", re.M | re.I)
EXIT_SKIP = 77
TMPFS = "/dev/shm" if os.path.isdir("/dev/shm") else None


class Totals:
    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def count_program(code, output):
    """The totals of one program, from its exit code and all that it printed."""
    counts = {"PASSED": 0, "FAILED": 0, "SKIPPED": 0}
    for word, number in CMOCKA_TOTAL.findall(output):
        counts[word] += int(number)
    totals = Totals(counts["PASSED"], counts["FAILED"], counts["SKIPPED"])
    if not any(counts.values()):
        return Totals(int(code == 0), int(code not in (0, EXIT_SKIP)), int(code == EXIT_SKIP))
    if code != 0 and totals.failed == 0:
        totals.failed = 1  # it crashed, or a sanitizer spoke after the last test
    return totals


def run(command, timeout_s, **pipes):
    """Exit code (-1 after the timeout) and output of a command that leaves no process behind."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True,
                          **pipes) as process:
        try:
            output = process.communicate(timeout=timeout_s)[0]
            return process.returncode, output or b""
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output = process.communicate()[0] or b""
            return -1, output + f"\nstill running after {timeout_s:.0f} s\n".encode()
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGTERM)
            raise


def run_program(path, timeout_s):
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pmdpulse-tests-", dir=TMPFS) as rundir:
        code, output = run([path], timeout_s, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           env={**os.environ, "PMDPULSE_RUNDIR": rundir})  # never that of the machine
    output = output.decode(errors="replace")
    totals = count_program(code, output)
    lines = []
    if totals.failed:
        lines = [output.strip()]
    elif totals.skipped:
        lines = SKIP_REASON.findall(output) or output.strip().splitlines()[-1:]
    details = [f"{totals.passed} ok"]
    if totals.failed:
        details += [f"{totals.failed} FAILED", f"exit code {code}"]
    if totals.skipped:
        details.append(f"{totals.skipped} skipped")
    verdict = "FAIL" if totals.failed else "PASS"
    lines.append(f"{verdict} {path}: {', '.join(details)} ({time.monotonic() - started:.1f} s)")
    print("\n".join(lines), flush=True)
    return totals


def run_pytest(folder, build, timeout_s, extra):
    report = os.path.join(build, "pytest.xml")
    if os.path.exists(report):
        os.unlink(report)
    command = [sys.executable, "-m", "pytest", "-q", "-rfEs", "--durations=5", "-p", "no:cacheprovider",
               f"--junitxml={report}", folder, *extra]
    code, _ = run(command, timeout_s)
    totals = Totals()
    try:
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skipped = int(suite.get("skipped", 0))
            totals.add(Totals(int(suite.get("tests", 0)) - failed - skipped, failed, skipped))
    except (OSError, ElementTree.ParseError) as error:
        print(f"pytest left no report (exit code {code}): {error}")
    if code not in (0, 5) and totals.failed == 0:  # 5: no tests there
        totals.failed = 1
    return totals


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="where reports go")
    parser.add_argument("--timeout", type=float, default=300, metavar="S", help="per program")
    parser.add_argument("--pytest-timeout", type=float, default=1200, metavar="S", help="for all")
    parser.add_argument("--side-by-side", type=shlex.split, default=[], metavar="PROGRAMS")
    parser.add_argument("--pytest", metavar="FOLDER", help="a folder of pytest files")
    parser.add_argument("--pytest-args", type=shlex.split, default=[], metavar="WORDS")
    parser.add_argument("programs", nargs="*")
    args = parser.parse_args()

    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    totals = Totals()
    with ThreadPool(os.cpu_count()) as pool:
        for one in pool.imap_unordered(lambda path: run_program(path, args.timeout), args.side_by_side):
            totals.add(one)
    for path in args.programs:
        totals.add(run_program(path, args.timeout))
    if args.pytest:
        totals.add(run_pytest(args.pytest, args.build, args.pytest_timeout, args.pytest_args))
    print(totals)
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.exit(main())
