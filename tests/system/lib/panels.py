# SPDX-License-Identifier: Apache-2.0
"""The queries of all dashboards, asked as Grafana asks them, and what they must answer.

A Check takes the series of an answer that have certain labels, reduces them to one number, and says
between which bounds that must lie. Every query of every panel has one (tests/system/test_prometheus.py
makes them from what was really done), so that a new panel needs one, too.
"""

import dataclasses
import json
import math
import os
import re

BOARDS = os.path.join(os.path.dirname(__file__), "../../../contrib/grafana/dashboards")


@dataclasses.dataclass
class Question:
    board: str
    panel: str
    ref: str
    expr: str
    is_instant: bool
    empty_means: str  # the panel's own word for an empty answer

    @property
    def name(self):
        return f"{self.board}/{self.panel}/{self.ref}"


@dataclasses.dataclass
class Check:
    low: float
    high: float
    how: str = "max"  # of all values of all series: max, min, last (sum of the last ones), count (series)
    labels: dict = dataclasses.field(default_factory=dict)

    def number(self, series):
        chosen = [values for labels, values in series
                  if all(labels.get(key) == value for key, value in self.labels.items())]
        if self.how == "count":
            return len(chosen)
        numbers = [[v for _, v in values if not math.isnan(v)] for values in chosen]
        if not any(numbers):
            return math.nan
        if self.how == "last":
            return sum(values[-1] for values in numbers if values)
        return {"max": max, "min": min}[self.how](v for values in numbers for v in values)

    def is_right(self, number):
        return self.low <= number <= self.high

    def __str__(self):
        labels = ",".join(f"{key}={value}" for key, value in self.labels.items())
        bounds = f"{self.low:.6g}" if self.low == self.high else f"{self.low:.6g} to {self.high:.6g}"
        return f"{self.how}{'{' + labels + '}' if labels else ''} {bounds}"


def questions():
    found = []
    for name in sorted(os.listdir(BOARDS)):
        if not name.endswith(".json"):
            continue
        with open(os.path.join(BOARDS, name), encoding="utf-8") as file:
            board = json.load(file)
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                found.append(Question(board["uid"], panel["title"], target["refId"], target["expr"],
                                      target["instant"], panel["fieldConfig"]["defaults"]["noValue"]))
        for annotation in board["annotations"]["list"][1:]:
            found.append(Question(board["uid"], "annotation", annotation["name"], annotation["expr"], False,
                                  "nothing to mark"))
    return found


def substitute(expr, range_s, rate_interval, chosen=None):
    """As Grafana does; chosen: {variable: value}, all values of those left out."""
    expr = expr.replace("$__range_s", str(range_s)).replace("$__range", f"{range_s}s")
    expr = expr.replace("$__rate_interval", rate_interval)
    return re.sub(r"\$(\w+)", lambda match: (chosen or {}).get(match[1], ".+"), expr)


def ask(server, question, start, end, step=1, chosen=None):
    """[(labels, [(time, value)])] for the time range shown."""
    expr = substitute(question.expr, max(1, round(end - start)), "4s", chosen)
    if question.is_instant:
        return [(labels, [(end, value)]) for labels, value in server.query(expr, end)]
    return server.query_range(expr, start, end, step)


def print_table(rows):
    """rows: tuples of texts; the first is the heading."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
