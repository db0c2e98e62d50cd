#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Write corpus-frame/: inputs of fuzz_frame.c, good and bad ones.

They are made by the independent implementation in tests/vectors, with the keys
that fuzz_frame.c has.  A format that changes needs new ones.
"""

import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "vectors"))

import make_frame_v1 as v1    # noqa: E402

SECRETS = {"ompi-crypt v1 direction": 0x11, "ompi-crypt v1 chop": 0x21, "ompi-crypt v1 piece": 0x41}
v1.pair_secret = lambda label, count: bytes([SECRETS[label]]) * count
v1.GROUP_KEY, v1.GROUP_ID = b"\x50" * 32, b"\x60" * 16

AES = "AES-128-GCM"
CONTEXT, GENERATION = struct.pack(">QQ", 8, 9), 6


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def corpus():
    wide = v1.stream("context", 16)
    for n, (counter, tag, size) in enumerate(((0, 0, 0), (1 << 20, -27, 1), ((1 << 48) - 1, 7, 300))):
        frame = v1.sealed_direct(AES, 1, counter, wide, GENERATION, tag, v1.stream("plain", size))
        yield "direct-good-%d" % n, 0, wide, tag, frame
        yield "direct-bad-tag-%d" % n, 0, wide, tag, flipped(frame, len(frame) - 1)
        yield "direct-bad-header-%d" % n, 0, wide, tag, flipped(frame, n)
        yield "direct-bad-envelope-%d" % n, 0, wide, tag ^ 1, frame
        yield "direct-short-%d" % n, 0, wide, tag, frame[:23]
        yield "direct-as-final-%d" % n, 1, wide, tag, frame
        yield "direct-as-first-%d" % n, 2, wide, tag, frame

    frame = v1.sealed_direct(AES, 5, 4, CONTEXT, GENERATION, -1, struct.pack(">Q", 5))
    yield "final-good", 1, CONTEXT, -1, frame
    yield "final-as-direct", 0, CONTEXT, -1, frame
    yield "final-long", 1, CONTEXT, -1, v1.sealed_direct(AES, 5, 4, CONTEXT, GENERATION, -1, bytes(9))

    for n, (total, first, chunk) in enumerate(((0, 0, 1), (40, 40, 8), (100, 40, 24), (100, 4, 96))):
        parts = v1.sealed_chopped(AES, n << 20, CONTEXT, GENERATION, 3, v1.stream("chopped", total), first, chunk)
        yield "first-good-%d" % n, 2, CONTEXT, 3, parts[0]
        yield "first-bad-%d" % n, 2, CONTEXT, 3, flipped(parts[0], 23)
        yield "first-as-direct-%d" % n, 0, CONTEXT, 3, parts[0]

    # what only a holder of the key can send: a header that is authentic, and wrong
    shapes = (("good", 100, 24, 3, 40), ("none", 40, 24, 0, 40), ("count-low", 100, 24, 2, 40),
              ("count-high", 100, 24, 4, 40), ("count-zero", 100, 24, 0, 40), ("chunk-zero", 100, 0, 3, 40),
              ("chunk-huge", 100, (64 << 20) + 1, 1, 40), ("total-short", 39, 24, 0, 40),
              ("total-huge", (1 << 42) + 1, 64 << 20, 1 << 16, 1), ("total-most", 1 << 42, 64 << 20, 1 << 16, 0),
              ("total-wraps", (1 << 64) - 1, 1, (1 << 32) - 1, 0), ("count-31", 1 << 31, 1, 1 << 31, 0),
              ("count-most", (1 << 31) - 1, 1, (1 << 31) - 1, 0))
    for name, total, chunk, count, first in shapes:
        body = v1.stream("insider", first)
        yield "insider-" + name, 6, CONTEXT, 3, v1.header(2, 5) + struct.pack(">QII", total, chunk, count) + body
    yield "insider-type", 6, CONTEXT, 3, v1.header(1, 5) + struct.pack(">QII", 100, 24, 3) + bytes(40)
    yield "insider-reserved", 6, CONTEXT, 3, flipped(v1.header(2, 5), 1) + struct.pack(">QII", 100, 24, 3) + bytes(40)

    small, large = v1.header(3, 0) + b"\x31" * 16, v1.header(4, 0) + b"\x31" * 16 + struct.pack(">QQ", 1 << 33, 5)
    yield "local-small", 3, CONTEXT, 3, small + b"plain"
    yield "local-small-bad", 3, CONTEXT, 3, flipped(small, 23) + b"plain"
    yield "local-large", 4, CONTEXT, 3, large
    yield "local-large-short", 4, CONTEXT, 3, large[:-1]
    yield "local-large-as-small", 3, CONTEXT, 3, large

    for n, (counter, origin, destination, size) in enumerate(((0, 0, v1.TO_ALL, 0), (1 << 20, 2, 1, 100), (5, 2, v1.TO_ALL, 33))):
        fields = (7, 1, 2, origin, destination, 3, 4)
        sealed = v1.piece(AES, counter, CONTEXT, bytes([0x70 + origin]) * 32, fields, v1.stream("piece", size))
        described = struct.pack(">QBBIIII", *fields) + sealed
        yield "piece-good-%d" % n, 5, CONTEXT, 0, described
        yield "piece-other-%d" % n, 5, CONTEXT, 0, flipped(described, 21)
        yield "piece-bad-%d" % n, 5, CONTEXT, 0, flipped(described, 33)


def main():
    directory = os.path.join(HERE, "corpus-frame")
    os.makedirs(directory, exist_ok=True)
    for name, what, context, tag, frame in corpus():
        with open(os.path.join(directory, name), "wb") as file:
            file.write(bytes([what]) + v1.envelope(context, GENERATION, tag) + frame)


if __name__ == "__main__":
    main()
