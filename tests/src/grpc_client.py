"""Calls gRPC targets for a test, and tells who answers.

An HTTP server, so that one process keeps its channels over many questions:
GET /?target=xds:///web&authority=&calls=10 answers {"answers": {NAME: COUNT}, "failures": {"CODE: DETAILS": COUNT}}.
"""

import collections
import http.server
import json
import os
import sys
import urllib.parse

port_file, bootstrap = sys.argv[1:]
os.environ["GRPC_XDS_BOOTSTRAP"] = bootstrap

import grpc  # noqa: E402: it reads the environment.

TIMEOUT_SECONDS = 5
channels = {}


def channel(target, authority):
    """One channel per target, as an application has it."""
    key = (target, authority)
    if key not in channels:
        # Otherwise a channel that failed waits for up to two minutes before it tries again.
        options = [("grpc.max_reconnect_backoff_ms", 500), ("grpc.initial_reconnect_backoff_ms", 100)]
        if authority:
            options.append(("grpc.default_authority", authority))
        channels[key] = grpc.insecure_channel(target, options=options)
    return channels[key]


def call(target, authority, calls):
    answers, failures = collections.Counter(), collections.Counter()
    method = channel(target, authority).unary_unary("/tower.test.Echo/Name")
    for _ in range(calls):
        try:
            answers[method(b"", timeout=TIMEOUT_SECONDS).decode()] += 1
        except grpc.RpcError as error:
            failures[f"{error.code().name}: {error.details()}"] += 1
    return {"answers": answers, "failures": failures}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        first = lambda name: query.get(name, [""])[0]
        body = json.dumps(call(first("target"), first("authority"), int(first("calls")))).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(port_file + ".new", "w") as file:
    file.write("%s:%d" % server.server_address)
os.rename(port_file + ".new", port_file)
server.serve_forever()
