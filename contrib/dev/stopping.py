# SPDX-License-Identifier: Apache-2.0
"""Signals that stop the script: an exception wherever it is, except where it holds them back.

One is enough: a terminal and make both deliver it, and what the first one started must not be
interrupted by the next.
"""
import contextlib
import signal

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class Stopped(Exception):
    """One of SIGNALS."""


_held = 0
_came = False


def _on_signal(_signum, _frame):
    global _came  # pylint: disable=global-statement
    if _held:
        _came = True
    else:
        ignore()
        raise Stopped


def watch():
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, _on_signal)


def ignore():
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def held():
    """What came within raises Stopped at the end: for steps that must be whole, or not be.

    Not a blocked mask: a process started within would inherit it.
    """
    global _held  # pylint: disable=global-statement
    _held += 1
    try:
        yield
    finally:
        _held -= 1
    if _came and not _held:
        ignore()
        raise Stopped
