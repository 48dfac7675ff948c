# SPDX-License-Identifier: Apache-2.0
"""What leaves collectd by its own ways, of a notification as docs/collectd.md says, and of values. The network
plugin's part is in test_fleet.py."""

import glob
import http.server
import json
import os
import re
import socket
import subprocess
import threading

import pytest

from lib import collectd
from lib.collectd import Collectd
from lib.ves import Incidents
from lib.wait import wait_for

pytestmark = pytest.mark.skipif(bool(collectd.missing()), reason=collectd.missing() or "-")

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CUT_BYTES = 4095  # where write_http cuts a notification


@pytest.fixture
def posts():
    """Bodies that were posted to .url."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):  # pylint: disable=invalid-name
            self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(self.server.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):  # pylint: disable=arguments-differ
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.status, server.bodies, server.url = 200, [], f"http://127.0.0.1:{server.server_address[1]}/"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def incidents(processes, rundir, folder):
    processes.append(Incidents(rundir, folder))
    return processes[-1]


def test_write_http(processes, rundir, folder, posts, incidents):
    """Carries severity, message and meta data in the form of Alertmanager."""
    daemon = Collectd(rundir, folder, is_received=False, extra=f"""
PluginDir "{collectd.STOCK_PLUGINS}"
LoadPlugin write_http
<Plugin write_http>
    <Node "test">
        URL "{posts.url}"
        Format "JSON"
        Metrics false
        Notifications true
    </Node>
</Plugin>
""")
    processes.append(daemon)
    daemon.wait_log("relaying the agent's incidents")
    incidents.do("raise p1")
    wait_for(lambda: posts.bodies, what=daemon.log)
    alert = json.loads(posts.bodies[0])[0]
    assert alert["labels"]["alertname"] == "collectd_pmdpulse_incidents"
    assert alert["labels"]["severity"] == "FAILURE" and alert["labels"]["type"] == "pmd-stall"
    assert alert["annotations"]["culprit_comm"] == "hog"
    ves = json.loads(alert["annotations"]["ves"])
    assert ves["event"]["faultFields"]["alarmInterfaceA"] == "p1"
    # The end of an alarm is another alert there, not the end of the first one.
    incidents.do("clear p1")
    wait_for(lambda: len(posts.bodies) > 1, what=daemon.log)
    end = json.loads(posts.bodies[1])[0]
    assert end["labels"]["severity"] == "OKAY" and "endsAt" not in end
    # It cuts a body without a word; ours stay below that, whatever there is to tell.
    for number in range(17):
        name = f"{number}-" + '"' * 28
        incidents.do(f"raise {name} pmd-stall {number}")
        incidents.do(f"clear {name}")
    wait_for(lambda: len(posts.bodies) == 2 + 34, what=daemon.log)
    sizes = [len(body) for body in posts.bodies]
    print("bytes:", max(sizes))
    assert max(sizes) > 3000 and max(sizes) < CUT_BYTES, sizes
    for body in posts.bodies:
        json.loads(json.loads(body)[0]["annotations"]["ves"])
    # What fails is not tried again: the next body is the next notification.
    posts.status = 503
    incidents.do("raise p3")
    wait_for(lambda: len(posts.bodies) == 37, what=daemon.log)
    posts.status = 200
    incidents.do("raise p4")
    wait_for(lambda: len(posts.bodies) == 38, what=daemon.log)
    assert [json.loads(body)[0]["annotations"]["thread"] for body in posts.bodies[36:]] == ["p3", "p4"]


def test_write_kafka_takes_no_notifications():
    path = os.path.join(collectd.STOCK_PLUGINS, "write_kafka.so")
    if not os.path.exists(path):
        pytest.skip(f"no {path}")
    symbols = subprocess.run(["nm", "-D", path], capture_output=True, text=True, timeout=20, check=True).stdout
    assert "plugin_register_write" in symbols
    assert "plugin_register_notification" not in symbols


def preflight_kafka(folder, text):
    path = os.path.join(folder, "kafka.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'Hostname "test"\nBaseDir "{folder}"\nPIDFile "{folder}/pid"\nTypesDB "{collectd.TYPES_DB}"\n'
                   f'PluginDir "{collectd.STOCK_PLUGINS}"\n{text}')
    return subprocess.run([collectd.DAEMON, "-T", "-C", path], capture_output=True, text=True, timeout=60, check=False)


def test_write_kafka_takes_the_shipped_configuration(folder):
    path = os.path.join(collectd.STOCK_PLUGINS, "write_kafka.so")
    if not os.path.exists(path):
        pytest.skip(f"no {path}")
    if "not found" in subprocess.run(["ldd", path], capture_output=True, text=True, timeout=20, check=True).stdout:
        pytest.skip("write_kafka lacks a library (package librdkafka1)")
    with open(os.path.join(TOP, "contrib/collectd/fleet-kafka.conf"), encoding="utf-8") as file:
        text = file.read()
    done = preflight_kafka(folder, text)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ignoring" not in done.stderr.lower() and "invalid" not in done.stderr.lower(), done.stderr
    # It does look at the lines.
    done = preflight_kafka(folder, text.replace("metadata.broker.list", "no.such.setting"))
    assert "no.such.setting" in done.stdout + done.stderr, done.stdout + done.stderr


class UnixSock:
    """A client of collectd's unixsock."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(path)
        self.lines = self.socket.makefile("r", encoding="utf-8")

    def ask(self, *words):
        """The lines of the answer. A word is quoted as the plugin's page says."""
        quoted = ['"' + re.sub(r'(["\\])', r"\\\1", word) + '"' for word in words[1:]]
        self.socket.sendall((" ".join((words[0], *quoted)) + "\n").encode())
        number, text = self.lines.readline().split(" ", 1)
        assert int(number) >= 0, f"{words}: {number} {text}"
        return [self.lines.readline().rstrip("\n") for _ in range(int(number))]

    def close(self):
        self.lines.close()
        self.socket.close()


def test_odd_names_by_unixsock_and_csv(start_publisher, processes, rundir, folder):
    """Each port has its own value, under the name that it has in the switch."""
    names = ('a"b', "a\\b", "plain")
    publisher = start_publisher(lanes=["p1"])
    for name, state in zip(names, ("up", "down", "up")):
        publisher.do(f"port {name} {state}")
    sock_path, csv = os.path.join(rundir, "collectd.sock"), os.path.join(folder, "csv")
    daemon = Collectd(rundir, folder, is_received=False, extra=f"""
PluginDir "{collectd.STOCK_PLUGINS}"
LoadPlugin unixsock
<Plugin unixsock>
    SocketFile "{sock_path}"
</Plugin>
LoadPlugin csv
<Plugin csv>
    DataDir "{csv}"
</Plugin>
""")
    processes.append(daemon)
    wait_for(lambda: os.path.exists(sock_path), what=daemon.log)
    client = UnixSock(sock_path)
    wanted = {name: f"testhost/pmdpulse-default:{name}/port_link" for name in names}

    def listed():
        return {line.split(" ", 1)[1] for line in client.ask("LISTVAL")}
    wait_for(lambda: set(wanted.values()) <= listed(), what=lambda: f"{sorted(listed())}\n{daemon.log()}")
    values = {name: client.ask("GETVAL", wanted[name]) for name in names}
    assert values == {'a"b': ["value=1.000000e+00"], "a\\b": ["value=0.000000e+00"], "plain": ["value=1.000000e+00"]}
    client.close()
    for name, value in zip(names, (1, 0, 1)):
        part = os.path.join(csv, os.path.dirname(wanted[name]))
        files = wait_for(lambda part=part: glob.glob(glob.escape(part) + "/port_link-*"), what=daemon.log)
        with open(files[0], encoding="utf-8") as file:
            lines = wait_for(lambda file=file: (file.seek(0), file.read().splitlines())[1][1:], what=daemon.log)
        assert {float(line.split(",")[1]) for line in lines} == {value}, lines
