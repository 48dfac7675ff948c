#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the Prometheus configuration, the rules and the dashboards from the tables here.

generate.py            writes them
generate.py --check    says whether those in the tree are up to date, and whether the tables agree
                       with the plugin; needs nothing but Python
"""

import json
import os
import sys

import alerts
import board_fleet
import board_incident
import board_pmd
import board_switch
import check
import scrape
from expand import Wrong

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def boards():
    return [module.board() for module in (board_fleet, board_switch, board_pmd, board_incident)]


def files():
    """{path: content} of all that is generated."""
    made = {
        "contrib/prometheus/prometheus.yml": scrape.prometheus_yml(),
        "contrib/prometheus/pmdpulse.rules.yml": alerts.rules_yml(),
    }
    for board in boards():
        made[f"contrib/grafana/dashboards/{board.uid}.json"] = \
            json.dumps(board.json(), indent=2, ensure_ascii=False) + "\n"
    return made


def main():
    try:
        made = files()
        wrong = check.problems(TOP, boards())
    except Wrong as error:
        print(f"contrib/observe: {error}", file=sys.stderr)
        return 1
    for path, content in made.items():
        full = os.path.join(TOP, path)
        if sys.argv[1:] != ["--check"]:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(content)
        elif not os.path.exists(full) or open(full, encoding="utf-8").read() != content:
            wrong.append(f"{path} is not up to date: run contrib/observe/generate.py")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
