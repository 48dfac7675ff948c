# SPDX-License-Identifier: Apache-2.0
"""The switch spoken to on its control socket, as tests of rules and commands need it."""

import os

from .control import request
from .switch import HOOKED, Switch
from .wait import TIMEOUT_S, wait_for

PMD_CORE = 1


class Refused(Exception):
    """The switch said no; the text is its reason."""


class FlowSwitch(Switch):
    """A switch with one PMD on a core of its own; lines: the rest of its start-up file."""

    def __init__(self, rundir, folder, *lines, hooks=False, **keywords):
        self.ctl_path = os.path.join(str(rundir), "default.ctl")
        self.config_path = os.path.join(folder, keywords.get("name", "switch") + ".conf")
        super().__init__(rundir, folder, (f"set pmd-cpu-mask={1 << PMD_CORE:#x}", *lines),
                         program=HOOKED if hooks else "pmdpulse-switch", **keywords)

    def do(self, command, *args, timeout=TIMEOUT_S):
        """The reply's data; Refused with the error otherwise."""
        reply = request(self.ctl_path, command, *args, timeout=timeout)
        if not reply["ok"]:
            raise Refused(reply["error"])
        return reply["data"]

    def stats(self):
        """Counters of the first PMD, once they can be read."""
        return wait_for(lambda: [pmd for pmd in self.do("pmd-stats-show")["pmds"] if pmd["readable"]],
                        what="counters of a PMD")[0]

    def port(self, name):
        return {port["name"]: port for port in self.do("dump-ports")["ports"]}[name]

    def flows(self):
        """What each rule has counted, by its match and actions."""
        return {f"{flow['match']} actions={flow['actions']}": flow["n_packets"]
                for flow in self.do("dump-flows")["flows"]}
