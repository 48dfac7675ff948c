#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""All benchmarks one after the other, into BUILD/bench.json.

usage: run.py [NAME...]     (make bench; BENCH='rate cost' for some)

Each benchmark is a program of its own that prints one JSON document as its last line; what it says
before goes through. A benchmark that can't run here exits 77 and says why; that stands in the file.
"""
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("BUILD") or "build")

BENCHES = {
    "beat": [os.path.join(BUILD, "tests/bench/beat")],
    "classify": [os.path.join(BUILD, "tests/bench/sw_classify")],
    "upcall": [os.path.join(BUILD, "tests/bench/sw_upcall")],
    "rate": [sys.executable, os.path.join(HERE, "rate.py")],
    "cost_null": [sys.executable, os.path.join(HERE, "cost.py"), "--ports", "null"],
    "cost_flows": [sys.executable, os.path.join(HERE, "cost.py"), "--ports", "flows"],
    "peers": [sys.executable, os.path.join(HERE, "peers.py")],
    "latency": [sys.executable, os.path.join(HERE, "latency.py")],
    "agent_cost": [sys.executable, os.path.join(HERE, "agent_cost.py")],
}


def run(name, argv):
    begin = time.monotonic()
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False,
                          env=dict(os.environ, BUILD=BUILD))
    lines = done.stdout.strip().splitlines()
    print(done.stdout, end="", flush=True)
    result = {"command": " ".join(os.path.relpath(word) if os.path.isabs(word) else word for word in argv),
              "seconds": round(time.monotonic() - begin, 1), "exit": done.returncode}
    try:
        result["result"] = json.loads(lines[-1])
    except (IndexError, ValueError):
        result["output"] = lines
    print(f"bench: {name}: " + ("done" if done.returncode == 0 else f"exit {done.returncode}"), flush=True)
    return result


def machine():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "?")
    version = subprocess.run([os.path.join(BUILD, "pmdpulse"), "--version"], capture_output=True, text=True,
                             check=False).stdout.splitlines()
    return {"cpu": model, "cores": os.cpu_count(), "kernel": os.uname().release, "build": version}


def main():
    wanted = sys.argv[1:] or os.environ.get("BENCH", "").split() or list(BENCHES)
    unknown = [name for name in wanted if name not in BENCHES]
    if unknown:
        print(f"bench: no such benchmark: {unknown[0]} (there are {' '.join(BENCHES)})", file=sys.stderr)
        return 2
    results = {"machine": machine(), "benches": {}}
    for name in wanted:
        results["benches"][name] = run(name, BENCHES[name])
        with open(os.path.join(BUILD, "bench.json"), "w", encoding="utf-8") as out:
            json.dump(results, out, indent=1)
            out.write("\n")
    failed = [name for name, result in results["benches"].items() if result["exit"] not in (0, 77)]
    print(f"bench: wrote {os.path.relpath(os.path.join(BUILD, 'bench.json'))}"
          + (f"; failed: {' '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
