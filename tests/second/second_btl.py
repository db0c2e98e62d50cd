# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Connections of btl/crypt (docs/transport-format.rst), for second.py: hellos, TLS records, frames.

The handshake between them is OpenSSL's, and its records stay closed: at most three in a direction.
"""
import struct

from cryptography.exceptions import InvalidTag

from make_transport_v1 import ALERT, CLOSE_NOTIFY, DATA, HANDSHAKE, KEY_UPDATE, PLAIN_MAX, SUITES, expand_label
from second import refuse

HANDSHAKE_RECORDS = 3


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
        kind, size = content[0], 24 if content[0] in (2, 5) else 8
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
        elif kind == 5:
            refuse(not 1 <= content[1] <= 7 or any(content[2:8]) or not any(content[16:24]), "a join")
        else:
            refuse(kind != 4 or any(content[1:8]), "the header of a frame")
            self.last = True
        name = {1: "fragments", 2: "puts", 3: "hellos", 4: "lasts", 5: "joins"}[kind]
        self.counts[name] = self.counts.get(name, 0) + 1
        return size


class Direction:
    """What one end of a connection sends.  Connections whose hello is none of ours are left alone."""

    def __init__(self, reader, client):
        self.reader, self.client, self.other = reader, client, None
        self.suite = self.opener = None
        self.ours, self.closed, self.records, self.handshake = client, False, 0, 0
        self.frames = Frames(reader.counts)

    def feed(self, buffer):
        at = 0
        if self.ours and not self.records and buffer[:1] not in (b"", b"\x16"):
            self.ours = False
        while self.ours and at + 5 <= len(buffer):
            kind, version, size = struct.unpack(">BHH", buffer[at:at + 5])
            refuse(version not in (0x301, 0x303), "a record of version %x" % version)
            if at + 5 + size > len(buffer):
                break
            self.record(kind, bytes(buffer[at:at + 5]), bytes(buffer[at + 5:at + 5 + size]))
            at += 5 + size
        del buffer[:at if self.ours else len(buffer)]

    def record(self, kind, head, text):
        refuse(kind != (23 if self.records else 22), "record %d has type %d" % (self.records, kind))
        refuse(self.closed, "a record after close_notify")
        self.records += 1
        if self.records > 1:
            self.sealed(head, text)
        elif self.client:
            self.ours = self.other.ours = b"ompi\1\0" in text
        else:
            # ServerHello: head 4, version 2, random 32, session id 1 (length 0), suite 2
            number, = struct.unpack(">H", text[39:41])
            suites = [suite for suite in SUITES.values() if suite[0] == number]
            refuse(not suites, "a suite that is none of ours")
            self.suite = self.other.suite = suites[0]
            self.reader.counts["connections"] += 1

    def sealed(self, head, text):
        if self.opener is None:
            opened = self.find(head, text)
            if opened is None:
                self.handshake += 1
                refuse(self.handshake > HANDSHAKE_RECORDS, "no secret of any process opens a record")
                return
        else:
            try:
                opened = self.opener.open(head, text)
            except InvalidTag:
                refuse(True, "record %d of a direction does not open" % (self.records - 1))
        kind, content = opened
        counts = self.reader.counts
        counts["records"] += 1
        if kind == DATA:
            counts["bytes"] += len(content)
            self.frames.add(content)
        elif kind == HANDSHAKE:
            refuse(content != KEY_UPDATE, "a message of TLS that is no KeyUpdate")
            counts["renewals"] = counts.get("renewals", 0) + 1
        else:
            refuse(kind != ALERT or content != CLOSE_NOTIFY or self.frames.left, "the end of a direction")
            self.closed = True

    def find(self, head, text):
        for secret in sorted(self.reader.keys.traffic):
            if len(secret) == self.suite[1].digest_size:
                opener = Opener(self.suite, secret)
                try:
                    opened = opener.open(head, text)
                except InvalidTag:
                    continue
                self.reader.keys.traffic.discard(secret)
                self.opener = opener
                return opened
        return None

    def end(self, buffer):
        refuse(self.ours and len(buffer), "a record is cut")
        client = self if self.client else self.other
        # Of two connections that two processes begin at once, one stays: the client of the other drops it in the handshake.
        refuse(self.handshake and self.opener is None and client.records > 1, "no secret of any process opens a direction")
        # An end that has close_notify expects nothing more, and need not send its own.
        refuse(self.opener is not None and not self.closed and (not self.other.closed or self.frames.left),
               "the %s's direction was cut after %d records" % ("client" if self.client else "server", self.records))


class Reader:
    def __init__(self, keys):
        self.keys, self.begun, self.counts = keys, {}, {"connections": 0, "records": 0, "bytes": 0}

    def begin(self, key, client):
        one = self.begun[key] = Direction(self, client)
        if not client:
            one.other = self.begun[key[1], key[0]]
            one.ours, one.other.other = one.other.ours, one
        return one
