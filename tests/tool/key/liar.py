#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Something that answers like a key server, in the directory of one that bao.py has started, and lies:

    liar.py [HOST [CIPHERS]]     listens, in TLS 1.2 with CIPHERS only; "liar" gets its address, "liar.pid" its process,
                                 "liar.log" a line for each request

The first part of a request's path, where the mount of transit would be, says how it lies.  An honest one is what ends a server's
TLS: a line of its log has the first line and the headers but for the token.  It logs in by the certificate of a client that has
shown it.  Tokens that pass it are added to "seen".
"""
import base64
import http.server
import json
import os
import socket
import ssl
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bao                                                      # noqa: E402

LOG = open("liar.log", "a", buffering=1)
seen = {}


class Liar(http.server.BaseHTTPRequestHandler):
    def answer(self, status, text, *headers, length=None):
        text = text if isinstance(text, bytes) else json.dumps(text).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text) if length is None else length))
        self.end_headers()
        self.wfile.write(text)
        self.wfile.flush()

    def honest(self, path, body):
        certificate = ("client.pem", "client.key") if self.connection.getpeercert() else ()
        status, true = bao.api(self.command, path, body, self.headers["X-Vault-Token"], certificate)
        if true.get("auth"):
            with open("seen", "a") as file:
                print("token-of-a-login", true["auth"]["client_token"].encode().hex(), file=file)
        return status, true

    def lie(self, kind, path, body):
        what = path.split("/")[1]
        if kind == "redirect":
            return self.answer(307, {}, ("Location", open("address").read() + "/v1/" + path))
        if kind == "garbage":
            return self.answer(200, b"<html>Welcome to the portal</html>")
        if kind == "array":
            return self.answer(200, [])
        if kind == "empty":
            return self.answer(200, {"data": {}})
        if kind == "huge":
            return self.answer(200, b'{"data":"' + b"x" * 1000000 + b'"}')
        if kind == "endless":
            return self.answer(200, b"{}", length=10 ** 9)
        if kind == "headers":
            return self.answer(200, {}, *[("X-%d" % i, "y" * 1000) for i in range(90)])
        if kind == "slow":
            return time.sleep(30)
        if kind == "trickle":
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(b" ")
                time.sleep(0.1)
        if kind == "cut":
            return self.answer(200, b'{"data":', length=500)
        if kind == "close":
            return self.connection.shutdown(socket.SHUT_RDWR)
        if kind == "teapot":
            return self.answer(418, {"errors": ["I am a \u001b[31mteapot\n\" of the site"]})
        if kind == "busy":
            return self.answer(429, {"errors": ["rate limit"]})
        if kind == "once" and what == "keys" and path.endswith("rotate"):
            return self.connection.shutdown(socket.SHUT_RDWR)
        if kind == "later" and what == "keys" and path not in seen:     # somebody makes the key after this answer
            seen[path] = 1
            return self.answer(404, {"errors": []})
        if kind == "flaky":
            seen[path] = seen.get(path, 0) + 1
            if seen[path] % 3:
                return self.answer(503, {"errors": ["Vault is starting"]})
        status, true = self.honest(path, body)
        data = true.get("data", {})
        if kind == "later" and self.command == "POST":          # as Vault says it; OpenBao says nothing
            true["warnings"] = ["key lab already existed"]
        if kind == "wrong" and what == "decrypt":
            data["batch_results"] = [{"plaintext": base64.b64encode(bytes(32)).decode()} for _ in data["batch_results"]]
        if kind == "short" and what == "decrypt":
            data["batch_results"] = [{"plaintext": base64.b64encode(bytes(16)).decode()} for _ in data["batch_results"]]
        if kind == "none" and what == "decrypt":
            data["batch_results"] = []
        if kind == "more" and what == "decrypt":
            data["batch_results"] *= 2
        if kind == "name" and what == "keys":
            data["name"] = "another"
        if kind == "latest" and what == "keys":
            data["latest_version"] = 70000
        if kind == "exportable" and what == "keys":
            data["exportable"] = True
        if kind == "type" and what == "keys":
            data["type"] = "rsa-2048"
        if kind == "other" and what == "encrypt":               # of another label, whose key this user has, too
            data = true["data"] = bao.api("POST", "transit/encrypt/other", body)[1]["data"]
        if kind == "version" and what == "encrypt":
            data["ciphertext"] = data["ciphertext"].replace("vault:v1:", "vault:v2:")
        self.answer(status, true)

    def do_GET(self):
        kind, path = self.path[len("/v1/"):].split("/", 1)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        print(self.requestline, {name: value for name, value in self.headers.items() if name != "X-Vault-Token"}, file=LOG)
        self.close_connection = True
        try:
            self.lie(kind, ("auth/" if kind == "auth" else "transit/") + path, json.loads(body) if body else None)
        except OSError:
            pass                                                # the client went away

    do_POST = do_GET

    def log_message(self, *arguments):
        pass


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.keylog_filename = "keylog"
    context.load_cert_chain("server.pem", "server.key")
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations("ca.pem")
    host = sys.argv[1] if sys.argv[1:] else "127.0.0.1"
    if sys.argv[2:]:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(sys.argv[2])
    server = http.server.ThreadingHTTPServer((host, 0), Liar)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with open("liar.pid", "w") as file:
        file.write(str(os.getpid()))
    with open("liar.new", "w") as file:
        file.write("https://%s:%d" % (host, server.server_address[1]))
    os.rename("liar.new", "liar")
    server.serve_forever()


if __name__ == "__main__":
    main()
