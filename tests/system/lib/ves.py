# SPDX-License-Identifier: Apache-2.0
"""A VES collector that checks every event against the schema, and the poster beside it."""

import contextlib
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading

import jsonschema

from .process import Process, built
from .wait import TIMEOUT_S, wait_for

SCHEMA = os.path.join(os.path.dirname(__file__), "../../data/CommonEventFormat_30.2.1_ONAP.json")
LISTENER = "/eventListener/v7"


def parse(text):
    """A document, none of whose objects has a name twice: readers differ in which one counts."""
    def unique(pairs):
        names = [name for name, _ in pairs]
        assert len(set(names)) == len(names), f"a name twice: {names}"
        return dict(pairs)
    return json.loads(text, object_pairs_hook=unique)


def schema_validator():
    with open(SCHEMA, encoding="utf-8") as file:
        return jsonschema.Draft4Validator(json.load(file))


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection; kept open between requests, as a real collector does."""

    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self):  # pylint: disable=invalid-name
        collector = self.server.collector
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, headers = collector.receive(self.path, self.headers, body)
        if status == "hang":
            collector.released.wait(TIMEOUT_S)
            status = "drop"
        if status == "drop":
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            return
        answer = b"" if status == 202 else b'{"requestError": "as the test wants it"}'
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address, collector, context):
        self.collector, self.context, self.connections = collector, context, set()
        super().__init__(address, Handler)

    def get_request(self):
        connection, address = super().get_request()
        if self.context:
            connection = self.context.wrap_socket(connection, server_side=True,
                                                  do_handshake_on_connect=False)
        self.connections.add(connection)
        return connection, address

    def handle_error(self, *_):
        pass  # a client that went away, or did not like the certificate


class Collector:
    """behave(500), behave("hang"), behave("drop"), behave(202); die() and live() on the same port."""

    def __init__(self, context=None):
        self.validator, self.context = schema_validator(), context
        self.lock = threading.Lock()
        self.events, self.tries, self.errors = [], [], []
        self.rule, self.headers = (lambda event: 202), {}
        self.released = threading.Event()
        self.server, self.port = None, 0
        self.live()

    @property
    def url(self):
        return f"{'https' if self.context else 'http'}://127.0.0.1:{self.port}{LISTENER}"

    def live(self, context=None):
        self.context = context or self.context
        self.released.clear()
        self.server = Server(("127.0.0.1", self.port), self, self.context)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def die(self):
        """Closes the port and cuts every connection."""
        self.server.shutdown()
        self.server.server_close()
        self.released.set()
        for connection in self.server.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def behave(self, status, **headers):
        """For each try from now on: an HTTP status, "hang" or "drop", or a function of the events."""
        self.released.set()
        with self.lock:
            self.released = threading.Event()
            self.rule = status if callable(status) else lambda events: status
            self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def receive(self, path, headers, body):
        with self.lock:
            events = self._events_of(path, headers, body)
            status = self.rule(events)
            self.tries.append((path, dict(headers), events, status))
            if status == 202:
                self.events += events
            return status, self.headers

    def _events_of(self, path, headers, body):
        try:
            document = json.loads(body.decode())
        except ValueError as error:
            self.errors.append(f"{error}: {body!r}")
            return []
        wanted = {LISTENER: "event", LISTENER + "/eventBatch": "eventList"}.get(path)
        if list(document) != [wanted] or headers["Content-Type"] != "application/json":
            self.errors.append(f"{path}: {headers} {document}")
        self.errors += [f"{error.message} in {document}"
                        for error in self.validator.iter_errors(document)]
        return document["eventList"] if "eventList" in document else [document["event"]]

    # What was taken

    def of(self, domain):
        with self.lock:
            return [event for event in self.events if event["commonEventHeader"]["domain"] == domain]

    def faults(self):
        """(sequence, phase, thread or port) of each fault taken."""
        return [(event["commonEventHeader"]["sequence"],
                 event["faultFields"]["alarmAdditionalInformation"]["phase"],
                 event["faultFields"]["alarmInterfaceA"]) for event in self.of("fault")]

    def told_lost(self):
        """Sum of what the events say was lost before them."""
        total = 0
        for event in self.of("fault") + self.of("stateChange"):
            fields = event.get("faultFields", {}).get("alarmAdditionalInformation") or \
                event["stateChangeFields"]["additionalFields"]
            total += int(fields.get("events_lost_before", 0))
        return total

    def wait_faults(self, count, timeout=TIMEOUT_S, what=""):
        return wait_for(lambda: len(self.faults()) >= count and self.faults(), timeout,
                        lambda: f"{count} faults; got {self.faults()[-5:]} of {len(self.faults())},"
                                f" {len(self.tries)} tries; {what() if callable(what) else what}")

    def wait_tries(self, count, timeout=TIMEOUT_S):
        wait_for(lambda: len(self.tries) >= count, timeout, lambda: f"{count} tries, {self.tries}")

    def cleanup(self):
        self.die()


class Poster(Process):
    """pmdpulse-ves, quick to try again. options: "--batch=10"."""

    def __init__(self, rundir, folder, url, *options, name="ves", env=None):
        argv = [built("pmdpulse-ves"), f"--rundir={rundir}", f"--url={url}", "--retry-min=20",
                "--retry-max=200", "--timeout=10000", "--heartbeat-interval=0",
                "--source-name=host1", *options]
        super().__init__(argv, folder, name, env={"http_proxy": "", "https_proxy": "", "all_proxy": "",
                                                  "no_proxy": "*", **(env or {})})


class Incidents(Process):
    """tests/tools/incidents: writes the segment as the agent does."""

    def __init__(self, rundir, folder, *options, instance="default", name="incidents"):
        argv = [built("tests/tools/incidents"), f"--instance={instance}", f"--rundir={rundir}", *options]
        self.out_path = os.path.join(folder, name + ".out")  # of an earlier one, too
        self.n_answers = len(self._answers()) if os.path.exists(self.out_path) else 0
        super().__init__(argv, folder, name, stdin=subprocess.PIPE)
        wait_for(lambda: any(line == "ok open 0" for line in self._answers()[self.n_answers:]),
                 what=lambda: f"the segment; {self.err()}")
        self.n_answers = len(self._answers())

    def _answers(self):
        return [line for line in self.out().split("\n")[:-1] if line.startswith(("ok ", "error "))]

    def do(self, command):
        """The seq of the newest event."""
        self.popen.stdin.write(command.encode() + b"\n")
        self.popen.stdin.flush()
        answer = wait_for(lambda: self._answers()[self.n_answers:self.n_answers + 1],
                          what=lambda: f"an answer to {command!r}; {self.err()}")[0]
        self.n_answers += 1
        assert answer.startswith("ok "), answer
        return int(answer.split()[2])

    def quit(self):
        self.popen.stdin.write(b"quit\n")
        self.popen.stdin.flush()
        return self.wait()


def certificate(folder, name):
    """A self-signed certificate for 127.0.0.1 and its key, in one file; and a server's context."""
    path = os.path.join(folder, name + ".pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path + ".key", "-out", path],
                   check=True, capture_output=True, timeout=30)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, path + ".key")
    return path, context
