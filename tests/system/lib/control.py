# SPDX-License-Identifier: Apache-2.0
"""The control protocol: a JSON request a line, a JSON reply a line."""

import json
import socket


def request(path, command, *args, timeout=5):
    """The whole reply as a dict: {"id", "ok", "data" or "error"}."""
    return request_raw(path, json.dumps({"id": 1, "cmd": command, "args": list(args)}), timeout)


def request_raw(path, line, timeout=5):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(timeout)
        sock.connect(str(path))
        return exchange(sock, line)


def exchange(sock, line):
    """A request and its whole reply on a connection: one receive may give a part of the line."""
    sock.sendall(line.encode() + b"\n")
    with sock.makefile("rb") as replies:
        return json.loads(replies.readline())
