# SPDX-License-Identifier: Apache-2.0
"""What leaves collectd by its own ways of a notification, as docs/collectd.md says. The network plugin's
part is in test_fleet.py."""

import http.server
import json
import os
import subprocess
import threading

import pytest

from lib import collectd
from lib.collectd import Collectd
from lib.ves import Incidents
from lib.wait import wait_for

pytestmark = pytest.mark.skipif(bool(collectd.missing()), reason=collectd.missing() or "-")

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
