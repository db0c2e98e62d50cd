# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Connections of btl/crypt (docs/transport-format.rst), for second.py: hellos, TLS records, frames.

The handshake between them is OpenSSL's, and its records stay closed: at most three in a direction.
"""
import struct

from cryptography.exceptions import InvalidTag

from make_transport_v1 import ALERT, CLOSE_NOTIFY, DATA, HANDSHAKE, KEY_UPDATE, PLAIN_MAX, SUITES, expand_label
from second import refuse

HANDSHAKE_RECORDS = 3


def records(stream):
    at = 0
    while at < len(stream):
        refuse(at + 5 > len(stream), "a record is cut in its head")
        kind, version, size = struct.unpack(">BHH", stream[at:at + 5])
        refuse(version not in (0x301, 0x303) or at + 5 + size > len(stream), "a record is cut, or is none")
        yield kind, stream[at:at + 5], stream[at + 5:at + 5 + size]
        at += 5 + size


class Opener:
    """One direction after its handshake."""

    def __init__(self, suite, secret):
        self.algorithm, self.key_bytes, self.aead = suite[1:]
        self.start(secret)

    def start(self, secret):
        self.secret, self.sequence = secret, 0
        self.key = self.aead(expand_label(self.algorithm, secret, "key", self.key_bytes))
        self.iv = int.from_bytes(expand_label(self.algorithm, secret, "iv", 12), "big")

    def open(self, head, sealed):
        plain = self.key.decrypt((self.iv ^ self.sequence).to_bytes(12, "big"), sealed, head)
        self.sequence += 1
        if plain == KEY_UPDATE + bytes([HANDSHAKE]):
            self.start(expand_label(self.algorithm, self.secret, "traffic upd", self.algorithm.digest_size))
        return plain[-1], plain[:-1]


class Frames:
    """Frames of one direction: each begins with a record."""

    def __init__(self, counts):
        self.counts, self.left, self.first, self.last = counts, 0, True, False

    def add(self, content):
        refuse(not 1 <= len(content) <= PLAIN_MAX, "a record of data has %d bytes" % len(content))
        if not self.left:
            content = content[self.header(content):]
        refuse(len(content) > self.left, "a record has bytes of two frames")
        self.left -= len(content)

    def header(self, content):
        kind, size = content[0], 24 if content[0] == 2 else 8
        refuse(len(content) < size, "a header is cut")
        refuse(self.last or (kind == 3) != self.first, "a frame is out of place")
        self.first = False
        if kind == 1:
            self.left, = struct.unpack(">I", content[4:8])
            refuse(content[2:4] != bytes(2) or self.left > 1 << 20, "a fragment's header")
        elif kind == 2:
            address, self.left = struct.unpack(">QQ", content[8:24])
            refuse(any(content[1:8]) or not address or not 1 <= self.left <= 1 << 40 or address + self.left >= 1 << 64, "a put's header")
        elif kind == 3:
            refuse(content[1:3] != b"\1\1" or content[3] > 1 or any(content[4:8]), "a hello")
        else:
            refuse(kind != 4 or any(content[1:8]), "the header of a frame")
            self.last = True
        name = {1: "fragments", 2: "puts", 3: "hellos", 4: "lasts"}[kind]
        self.counts[name] = self.counts.get(name, 0) + 1
        return size


class Reader:
    def __init__(self, keys):
        self.keys, self.hellos, self.rest, self.counts = keys, {}, [], {"connections": 0, "records": 0, "bytes": 0}

    def add(self, key, stream):
        """A connection of ours begins with a hello that has our identity, or answers one."""
        if stream[:2] == b"\x16\3" and b"ompi\1\0" in stream[:2048]:
            self.hellos[key] = stream
        else:
            self.rest.append((key, stream))

    def end(self):
        for key, stream in self.hellos.items():
            answers = [s for k, s in self.rest if k == (key[1], key[0])]
            refuse(len(answers) > 1, "two answers to a hello")
            if answers and answers[0][:1] == b"\x16":
                self.connection(stream, answers[0])
        return self.counts

    def connection(self, client, server):
        hello = next(records(server))[2]
        # ServerHello: head 4, version 2, random 32, session id 1 (length 0), suite 2
        number = struct.unpack(">H", hello[39:41])[0]
        suites = [suite for suite in SUITES.values() if suite[0] == number]
        refuse(not suites, "a suite that is none of ours")
        self.counts["connections"] += 1
        for stream in client, server:
            self.direction(suites[0], stream)

    def direction(self, suite, stream):
        opener, closed, frames = None, False, Frames(self.counts)
        handshake = 0
        for n, (kind, head, sealed) in enumerate(records(stream)):
            refuse(kind != (23 if n else 22), "record %d has type %d" % (n, kind))
            refuse(closed, "bytes after close_notify")
            if not n:
                continue
            if opener is None:
                opener, opened = self.find(suite, head, sealed)
                if opener is None:
                    handshake += 1
                    refuse(handshake > HANDSHAKE_RECORDS, "no secret of any process opens a record")
                    continue
            else:
                try:
                    opened = opener.open(head, sealed)
                except InvalidTag:
                    refuse(True, "record %d of a direction does not open" % n)
            self.counts["records"] += 1
            inner, content = opened
            if inner == DATA:
                self.counts["bytes"] += len(content)
                frames.add(content)
            elif inner == HANDSHAKE:
                refuse(content != KEY_UPDATE, "a message of TLS that is no KeyUpdate")
                self.counts["renewals"] = self.counts.get("renewals", 0) + 1
            else:
                refuse(inner != ALERT or content != CLOSE_NOTIFY or frames.left, "the end of a direction")
                closed = True
        refuse(opener is not None and not closed, "a direction was not closed")

    def find(self, suite, head, sealed):
        for secret in sorted(self.keys.traffic):
            if len(secret) == suite[1].digest_size:
                opener = Opener(suite, secret)
                try:
                    opened = opener.open(head, sealed)
                except InvalidTag:
                    continue
                self.keys.traffic.discard(secret)
                return opener, opened
        return None, None
