# SPDX-License-Identifier: Apache-2.0
"""Takes every POST, for a machine that has nothing but Python: post_listener.py PORT FILE

Each becomes a line of FILE: {"path": ..., "body": the document}.
"""

import http.server
import json
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):  # pylint: disable=invalid-name
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open(sys.argv[2], "a", encoding="utf-8") as file:
            file.write(json.dumps({"path": self.path, "body": body}) + "\n")
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
