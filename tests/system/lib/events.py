# SPDX-License-Identifier: Apache-2.0
"""Reading the agent's JSON lines."""

import json
import os

from .wait import TIMEOUT_S, wait_for


def json_lines(path):
    """The documents of a file of JSON lines that another process appends to; [] while there is none.

    A half-written last line is left for later. Read at once: iterating by lines would give the half, and
    then, when the rest has come, the other half as a line.
    """
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file.read().split("\n")[:-1]]


class Events:
    """A file of JSON lines that grows. Fields of an event are matched by name: kind="pmd-stall"."""

    def __init__(self, path):
        self.path = str(path)

    def all(self, **wanted):
        """The events so far whose fields equal wanted."""
        return [event for event in json_lines(self.path) if matches(event, wanted)]

    def wait(self, timeout=TIMEOUT_S, count=1, **wanted):
        """The first event that matches (or the count-th)."""
        return wait_for(lambda: self.all(**wanted)[count - 1:count], timeout,
                        lambda: f"event {wanted} in {self.describe()}")[0]

    def describe(self):
        return "[" + ", ".join(
            f"{e['kind']} {e['phase']} {(e['thread'] or {}).get('name', '')} {e['cause']}"
            for e in self.all()) + "]"


def matches(event, wanted):
    """wanted["thread"] is compared with the thread's name."""
    for key, value in wanted.items():
        found = event.get(key)
        if key == "thread":
            found = found and found["name"]
        if found != value:
            return False
    return True
