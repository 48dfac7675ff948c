#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs test programs and pytest, and adds them all up.

The last line is always `N passed, N failed, N skipped`; the exit code is 1 if any failed.
A program is a cmocka binary (its closing lines are counted) or a plain one (exit code 0
passed, 77 skipped with its last line as the reason, anything else failed).
"""

import argparse
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

CMOCKA_TOTAL = re.compile(r"^\[ +(PASSED|FAILED|SKIPPED) +\] (\d+) test\(s\)", re.M)
SKIP_REASON = re.compile(r"^.*\bskip(?:ped|s)?\b *:.*$", re.M | re.I)
EXIT_SKIP = 77


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


def run_program(path, timeout_s):
    started = time.monotonic()
    try:
        done = subprocess.run([path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, timeout=timeout_s, check=False)
        code, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        code, output = -1, (late.stdout or b"") + f"\nstill running after {timeout_s} s\n".encode()
    output = output.decode(errors="replace")
    totals = count_program(code, output)
    if totals.failed:
        print(output, end="" if output.endswith("\n") else "\n")
    elif totals.skipped:
        reasons = SKIP_REASON.findall(output) or output.strip().splitlines()[-1:]
        print("\n".join(reasons))
    details = [f"{totals.passed} ok"]
    if totals.failed:
        details += [f"{totals.failed} FAILED", f"exit code {code}"]
    if totals.skipped:
        details.append(f"{totals.skipped} skipped")
    verdict = "FAIL" if totals.failed else "PASS"
    print(f"{verdict} {path}: {', '.join(details)} ({time.monotonic() - started:.1f} s)", flush=True)
    return totals


def run_pytest(folder, build, extra):
    report = os.path.join(build, "pytest.xml")
    if os.path.exists(report):
        os.unlink(report)
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
               f"--junitxml={report}", folder, *extra]
    code = subprocess.run(command, check=False).returncode
    totals = Totals()
    try:
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skipped = int(suite.get("skipped", 0))
            totals.add(Totals(int(suite.get("tests", 0)) - failed - skipped, failed, skipped))
    except (OSError, ElementTree.ParseError) as error:
        print(f"no pytest report: {error}")
    if code not in (0, 5) and totals.failed == 0:  # 5: no tests there
        totals.failed = 1
    return totals


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="where reports go")
    parser.add_argument("--timeout", type=float, default=300, metavar="S", help="per program")
    parser.add_argument("--pytest", metavar="FOLDER", help="a folder of pytest files")
    parser.add_argument("programs", nargs="*")
    args, extra = parser.parse_known_args()

    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    totals = Totals()
    for path in args.programs:
        totals.add(run_program(path, args.timeout))
    if args.pytest:
        totals.add(run_pytest(args.pytest, args.build, extra))
    print(totals)
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.exit(main())
