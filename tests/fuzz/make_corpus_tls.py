#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Write corpus-tls/: inputs of fuzz_tls.c, good and bad ones.

The ClientHello is built here from RFC 8446, with its PSK binder, and records are those of
tests/vectors/make_transport_v1.py, with the keys that fuzz_tls.c has.  A format that changes needs new ones.
"""

import hashlib
import hmac
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "vectors"))

import make_transport_v1 as v1    # noqa: E402

PSK = b"\7" * 32
SHA256 = v1.SUITES["AES-128-GCM"][1]


def part(length_bytes, data):
    return len(data).to_bytes(length_bytes, "big") + data


def extension(kind, body):
    return struct.pack(">H", kind) + part(2, body)


def derive(secret, label, transcript):
    text = b"tls13 " + label
    info = struct.pack(">H", 32) + part(1, text) + part(1, hashlib.sha256(transcript).digest())
    return v1.HKDFExpand(algorithm=SHA256, length=32, info=info).derive(secret)


def client_hello(claimed=(1, 0), wanted=(0, 0), extra=b"", modes=b"\1", suites=b"\x13\1", groups=b"\0\x1d", session=b"",
                 version=b"\3\4", psk=PSK, identities=1):
    identity = v1.identity(v1.name("4711", *claimed), v1.name("4711", *wanted), 0, 1)
    before = extension(43, part(1, version)) + extension(10, part(2, groups)) + extra
    before += extension(51, part(2, b"\0\x1d" + part(2, v1.stream("share", 32)))) + extension(45, part(1, modes))
    offered = part(2, (part(2, identity) + bytes(4)) * identities)
    binders = 33 * identities
    psk_extension = struct.pack(">HH", 41, len(offered) + 2 + binders) + offered
    body = b"\3\3" + v1.stream("random", 32) + part(1, session) + part(2, suites) + b"\1\0"
    body += struct.pack(">H", len(before) + len(psk_extension) + 2 + binders) + before + psk_extension
    head = b"\1" + (len(body) + 2 + binders).to_bytes(3, "big")
    early = hmac.new(bytes(32), psk, hashlib.sha256).digest()
    key = v1.expand_label(SHA256, derive(early, b"ext binder", b""), "finished", 32)
    binder = hmac.new(key, hashlib.sha256(head + body).digest(), hashlib.sha256).digest()
    return b"\x16\3\1" + part(2, head + body + part(2, part(1, binder) * identities))


def corpus():
    good = client_hello()
    for piece in (0, 6, 255):
        yield "hello-good-%d" % piece, bytes([0, piece]) + good
    yield "hello-then-more-good", b"\0\xff" + good + b"\x17\3\3\0\x35" + bytes(40)
    yield "hello-and-finished", b"\0\xff" + good + b"\x17\3\3\0\x35" + bytes(53)
    yield "hello-and-alert", b"\0\xff" + good + b"\x15\3\3\0\2\2\x28"
    for what, bad in (("stranger", client_hello(claimed=(2, 0))), ("for-another", client_hello(wanted=(3, 0))),
                      ("key", client_hello(psk=b"\x08" * 32)), ("early", client_hello(extra=extension(42, b""))),
                      ("cookie", client_hello(extra=extension(44, part(2, b"c")))), ("modes", client_hello(modes=b"\0\1")),
                      ("suites", client_hello(suites=b"\x13\1\x13\2")), ("groups", client_hello(groups=b"\0\x1d\0\x17")),
                      ("session", client_hello(session=bytes(32))), ("version", client_hello(version=b"\3\4\3\3")),
                      ("identities", client_hello(identities=2)), ("cut", good[:100]), ("http", b"GET / HTTP/1.1\r\n\r\n")):
        yield "hello-" + what, b"\0\xff" + bad
    server = b"\2\0\0\x5c\3\3" + v1.stream("server", 32) + b"\0\x13\1\0\0\x34" + extension(43, b"\3\4")
    server += extension(51, b"\0\x1d" + part(2, v1.stream("server share", 32))) + extension(41, b"\0\0")
    yield "server-hello", b"\1\xff" + b"\x16\3\3" + part(2, server[:1] + part(3, server[4:])) + b"\x17\3\3\0\x17" + bytes(23)

    def stream(*what):
        one = v1.Direction("AES-128-GCM", b"\t" * 32)
        return b"\2" + b"".join(one.update() if item == "update" else one.record(v1.ALERT, v1.CLOSE_NOTIFY) if item == "close"
                                else one.seal(v1.plaintext(0, item)) for item in what)

    for n, what in enumerate(((1,), (64, 65, 300), (5, "update", 5, "update", "update", 100), (10, "close"), ("close",))):
        yield "records-good-%d" % n, stream(*what)
        bad = bytearray(stream(*what))
        bad[-1] ^= 1
        yield "records-bad-%d" % n, bytes(bad)
    yield "records-deleted", stream(10, 10)[:1] + stream(10, 10)[1 + 32:]
    yield "records-after-close", stream("close", 10)
    for name, inner in (("data-good", b"abc\x17"), ("update-good", v1.KEY_UPDATE + b"\x16"), ("close-good", v1.CLOSE_NOTIFY + b"\x15"),
                        ("padding", b"abc\x17\0\0"), ("zeros", bytes(9)), ("asks", b"\x18\0\0\1\1\x16"), ("alert", b"\2\x28\x15"),
                        ("ticket", b"\4\0\0\1\0\x16"), ("early-end", b"\5\0\0\0\x16"), ("empty-handshake", b"\x16")):
        yield "insider-" + name, b"\3" + inner


def main():
    directory = os.path.join(HERE, "corpus-tls")
    os.makedirs(directory, exist_ok=True)
    for name, data in corpus():
        with open(os.path.join(directory, name), "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main()
