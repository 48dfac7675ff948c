# SPDX-License-Identifier: Apache-2.0
"""Processes under test: started with their output kept, stopped with a deadline, never left behind."""

import ctypes
import os
import shutil
import signal
import subprocess

from .wait import TIMEOUT_S, wait_for

BUILD = os.environ.get("BUILD", os.path.join(os.path.dirname(__file__), "../../../build"))
NOBODY = 65534
PR_SET_PDEATHSIG = 1
SIGTERM = signal.SIGTERM  # Process.signal hides the module in the class body
_libc = ctypes.CDLL(None, use_errno=True)


def built(name):
    """Path of a program in the build folder: "pmdpulse-agent", "tests/tools/publisher"."""
    return os.path.abspath(os.path.join(BUILD, name))


def ordinary_user(*options):
    """What to put before a command so that NOBODY runs it (options: more for setpriv), or a skip."""
    import pytest  # pylint: disable=import-outside-toplevel  # benchmarks run without it
    prefix = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *options)
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv to become an ordinary user with")
    if subprocess.run([*prefix, "test", "-x", built("pmdpulse-switch")], check=False).returncode:
        pytest.skip(f"an ordinary user can't reach {built('.')}")
    return prefix


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """A child process; stdout and stderr go to files in folder (name.out, name.err)."""

    def __init__(self, argv, folder, name=None, stdin=subprocess.DEVNULL, stdout=None, env=None):
        self.argv = [str(arg) for arg in argv]
        self.name = name or os.path.basename(self.argv[0])
        self.out_path = os.path.join(folder, self.name + ".out")
        self.err_path = os.path.join(folder, self.name + ".err")
        with open(self.out_path, "ab") as out, open(self.err_path, "ab") as err:
            self.popen = subprocess.Popen(
                self.argv, stdin=stdin, stdout=out if stdout is None else stdout, stderr=err,
                env={**os.environ, **(env or {})}, preexec_fn=_die_with_parent,
                start_new_session=True)  # so that nice counts beyond this session (autogroup)

    @property
    def pid(self):
        return self.popen.pid

    def is_alive(self):
        return self.popen.poll() is None

    def out(self):
        with open(self.out_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def err(self):
        with open(self.err_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_err(self, text, timeout=TIMEOUT_S):
        """Until the process has logged text."""
        wait_for(lambda: text in self.err(), timeout,
                 lambda: f"{self.name} to log {text!r}; it said:\n{self.err()}")

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self, timeout=TIMEOUT_S):
        """Exit code; AssertionError when it still runs at the deadline."""
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {timeout} s") from None

    def stop(self, number=SIGTERM, timeout=TIMEOUT_S):
        """Ask it to end; returns the exit code."""
        if self.is_alive():
            self.signal(number)
        return self.wait(timeout)

    def kill(self):
        return self.stop(signal.SIGKILL)

    def state(self):
        """The letter of /proc/PID/stat: R, S, T, ..."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]

    def pause(self):
        """SIGSTOP, and wait until it stands."""
        self.signal(signal.SIGSTOP)
        wait_for(lambda: self.state() == "T", what=f"{self.name} to stop")

    def resume(self):
        self.signal(signal.SIGCONT)

    def cleanup(self):
        """End it in any case; safe to call twice."""
        if self.is_alive():
            self.popen.kill()
        self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout):
            if stream:
                stream.close()
