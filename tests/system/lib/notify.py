# SPDX-License-Identifier: Apache-2.0
"""What a service says to its manager (sd_notify)."""

import socket
import time


class NotifySocket:
    """said: all lines so far, each with the time at which it was read."""

    def __init__(self, path):
        self.path = str(path)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(self.path)
        self.sock.setblocking(False)
        self.said = []

    def lines(self):
        """All lines so far."""
        try:
            while True:
                now = time.monotonic()
                self.said += [(now, line) for line in self.sock.recv(4096).decode().splitlines()]
        except BlockingIOError:
            pass
        return [line for _, line in self.said]

    def has(self, text):
        return any(text in line for line in self.lines())

    def count(self, line):
        return self.lines().count(line)
