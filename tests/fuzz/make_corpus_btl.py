#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Write corpus-btl/: inputs of fuzz_btl.c, good and bad ones.

Their form is in the heads of fuzz_btl_unauthenticated.h, fuzz_btl_peer.h and fuzz_btl_pair.h; frames are those of
docs/transport-format.rst.  What is good delivers a fragment, or is a process that gets in."""

import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))

# ---- a peer with the keys ----

DATA, HANDSHAKE, ALERT = 23, 22, 21
LEFT_OUT, TWICE, CHANGED = 1, 2, 4
HELLO = b"\3\1\1\0\0\0\0\0"
LAST = b"\4" + bytes(7)
KEY_UPDATE = b"\x18\0\0\1\0"
CLOSE = b"\1\0"


def record(plain=b"", zeros=0, kind=DATA, how=0, piece=0xffff):
    return bytes((how, kind, len(plain))) + plain + struct.pack(">HH", zeros, piece)


def fragment(size, tag=1, first=None, piece=0xffff, **more):
    """Its first record, and the others of zeros."""
    first = min(size, 16376) if first is None else first
    made = record(struct.pack(">BBHI", 1, tag, 0, size), first, piece=piece, **more)
    for at in range(first, size, 16384):
        made += record(zeros=min(16384, size - at), piece=piece)
    return made


def put(size, offset=0, first=None, piece=0xffff):
    first = min(size, 16360) if first is None else first
    made = record(struct.pack(">B7xQQ", 2, 65536 + offset, size), first, piece=piece)
    for at in range(first, size, 16384):
        made += record(zeros=min(16384, size - at), piece=piece)
    return made


def peer(*records, connects=0):
    return bytes((1, connects)) + b"".join(records)


def peers():
    hello, close = record(HELLO), record(CLOSE, kind=ALERT)
    update = record(KEY_UPDATE, kind=HANDSHAKE)
    yield "good-fragments", peer(hello, fragment(0), fragment(1), fragment(100), fragment(16376), fragment(16377), fragment(50000))
    yield "good-connects", peer(hello, fragment(10), close, connects=1)
    yield "good-largest", peer(hello, fragment(1 << 20), fragment(1))
    yield "good-puts", peer(hello, put(1), put(60000, 5000), put(40, 65500), fragment(3, 7), put(30000, first=0), fragment(2))
    yield "good-pieces", peer(hello, fragment(300, piece=0), fragment(20000, piece=10), put(20000, piece=100), fragment(5, piece=2))
    yield "good-one-by-one", peer(hello, fragment(9, first=1), record(b"x", piece=0), fragment(4, first=0, piece=3))
    yield "good-renewed", peer(hello, update, fragment(20000), update, update, fragment(5), record(KEY_UPDATE, kind=HANDSHAKE, piece=1))
    yield "good-renewed-within", peer(hello, record(b"\1\1\0\0\0\0\0\x0a", 5), update, record(zeros=5), close)
    yield "good-end", peer(hello, fragment(1000, piece=0), close)
    yield "good-before-a-gap", peer(hello, fragment(5), fragment(6, how=LEFT_OUT), fragment(7))
    yield "good-before-a-copy", peer(hello, fragment(5, how=TWICE), fragment(7))
    for i in range(0, 32, 5):
        yield "good-before-a-change-%d" % i, peer(hello, fragment(5), fragment(60, how=CHANGED | i << 3), fragment(7))
    yield "bad-declined", peer(close, connects=1)
    yield "good-replaced", peer(hello, fragment(20000), record(LAST), close)
    yield "good-replaced-late", peer(hello, fragment(5), record(LAST, piece=3), record(CLOSE, kind=ALERT, piece=1), connects=1)
    yield "good-last", peer(hello, fragment(5), record(LAST))
    yield "bad-last-first", peer(record(LAST), hello)
    yield "bad-last-long", peer(hello, record(LAST, 1))
    yield "bad-after-last", peer(hello, record(LAST), fragment(5))
    yield "bad-after-last-and-end", peer(hello, record(LAST), close, fragment(5))
    yield "bad-no-hello", peer(fragment(5))
    yield "bad-no-hello-put", peer(put(5), connects=1)
    yield "bad-two-hellos", peer(hello, hello)
    yield "bad-hello-long", peer(record(HELLO, 1))
    yield "bad-hello-cut", peer(record(HELLO[:7]))
    yield "bad-hello-version", peer(record(b"\3\2\1\0\0\0\0\0"))
    yield "bad-hello-flags", peer(record(b"\3\1\1\2\0\0\0\0"), fragment(5))
    yield "good-kernel", peer(record(b"\3\1\1\1\0\0\0\0"), fragment(100), update, fragment(20000), put(50000), close)
    yield "bad-empty", peer(hello, record())
    yield "bad-too-long", peer(hello, record(b"\1\1\0\0\0\0\x50\0", 16377))
    yield "bad-short-header", peer(hello, record(b"\1\1\0\0\0\0\0"))
    yield "bad-short-put", peer(hello, record(b"\2" + bytes(7) + bytes(7) + b"\1" + bytes(7)))
    yield "bad-fragment-shorter", peer(hello, record(b"\1\1\0\0\0\0\0\x05", 6))
    yield "bad-fragment-shorter-later", peer(hello, record(b"\1\1\0\0\0\0\0\x64", 50), record(zeros=51))
    yield "bad-fragment-large", peer(hello, record(b"\1\1\0\0\0\x10\0\1", 5))
    yield "bad-fragment-zeros", peer(hello, record(b"\1\1\0\1\0\0\0\1", 1))
    yield "bad-put-shorter", peer(hello, record(struct.pack(">B7xQQ", 2, 65536, 10), 11))
    yield "bad-put-shorter-later", peer(hello, record(struct.pack(">B7xQQ", 2, 65536, 100), 50), record(zeros=51))
    for name, address, size in (("nothing", 65536, 0), ("address", 0, 5), ("large", 65536, (1 << 40) + 1), ("wraps", (1 << 64) - 5, 6)):
        yield "bad-put-" + name, peer(hello, record(struct.pack(">B7xQQ", 2, address, size), 5 if size else 0))
    yield "bad-put-zeros", peer(hello, record(struct.pack(">B7sQQ", 2, b"\0\0\0\1\0\0\0", 65536, 5), 5))
    yield "bad-type", peer(hello, record(b"\4\0\0\0\0\0\0\0"))
    yield "bad-end-within", peer(hello, record(b"\1\1\0\0\0\0\0\x64", 50), close)
    yield "bad-end-within-put", peer(hello, record(struct.pack(">B7xQQ", 2, 65536, 100), 50), close)
    yield "bad-behind-the-end", peer(hello, record(CLOSE, kind=ALERT, piece=0xffff), fragment(5, piece=0))
    yield "bad-padding", peer(hello, record(b"\1\1\0\0\0\0\0\0", kind=0))
    yield "bad-alert", peer(hello, record(b"\2\x28", kind=ALERT))
    yield "bad-ticket", peer(hello, record(b"\4\0\0\1\0", 300, kind=HANDSHAKE))
    yield "bad-asks-for-update", peer(hello, record(b"\x18\0\0\1\1", kind=HANDSHAKE))
    # Delivered, and refused by who gets it.
    yield "good-no-tag", peer(hello, fragment(5, 99), fragment(6))


# ---- two ends ----

SEND, PUT, PUMP, READ, REAP, CARRY, CUT = range(7)
SIZES = (0, 1, 7, 8, 9, 100, 4096, 8192, 16375, 16376, 16377, 16384, 32760, 65536, 300000, 1 << 20)
BOTH_CLOSE, ONE_CLOSES, MIDST, IS_CUT = range(4)


def step(what, who, *rest, more=0):
    return bytes((more << 4 | who << 3 | what,) + rest)


def send(who, size, tag=1):
    return step(SEND, who, SIZES.index(size), tag)


def put_to(who, size, to):
    return step(PUT, who, SIZES.index(size), to >> 8, to & 255)


def two(*steps, end=BOTH_CLOSE, rings=0, renew=0, room=0):
    return bytes((2, end << 5 | rings << 4 | renew << 2 | room)) + step(READ, 0) + b"".join(steps)


def pairs():
    talk = b"".join(send(i % 2, size, i) + step(READ, 1 - i % 2) + step(REAP, i % 2) for i, size in enumerate(SIZES[:14]))
    large = send(0, 1 << 20) + send(1, 300000) + send(0, 1) + step(CARRY, 0, more=5) + send(1, 0) + send(0, 65536)
    puts = b"".join(put_to(i % 2, size, 999 * i) for i, size in enumerate(SIZES[:15])) + send(0, 8) + send(1, 8)
    crowd = b"".join(send(0, 16377, i) + send(1, 32760, i) + put_to(1, 100, i) for i in range(20))
    calls = b"".join(send(i % 2, 100, 0x80 | i) for i in range(60))
    for name, steps in (("talk", talk), ("large", large), ("puts", puts), ("crowd", crowd), ("calls", calls)):
        yield "good-%s" % name, two(steps)
        yield "good-%s-closed" % name, two(steps, end=ONE_CLOSES)
        yield "good-%s-narrow" % name, two(steps, room=1, rings=1)
        yield "good-%s-renewed" % name, two(steps, room=2, renew=1, rings=1)
        yield "good-%s-renewed-later" % name, two(steps, room=3, renew=3)
        yield "%s-midst" % name, two(steps, end=MIDST, room=2)
        yield "%s-cut" % name, two(steps, step(CUT, 0, more=15), steps[:20], end=IS_CUT)


# ---- strangers ----

ARRIVES, SAYS, IS, FORTH, BACK, TIME, LEAVES = (bytes((i,)) for i in range(7))


def says(who, text):
    return SAYS + bytes((who, len(text))) + text


def passes(what, who, count=0xffff, at=0xffff, change=0):
    return what + bytes((who,)) + struct.pack(">HHB", count, at, change)


def process(who, key=0):
    return IS + bytes((who, key))


def crowds():
    shakes = passes(FORTH, 0) + passes(BACK, 0) + passes(FORTH, 0) + passes(BACK, 0)
    good = ARRIVES + process(0)
    yield "good-process", good + shakes * 2
    yield "good-process-slowly", good + (passes(FORTH, 0, 20) + passes(BACK, 0, 30)) * 30
    yield "good-process-in-a-crowd", good + passes(FORTH, 0) + ARRIVES * 60 + passes(BACK, 0) + passes(FORTH, 0) + ARRIVES * 20
    yield "good-then-changed", good + shakes + passes(FORTH, 0, at=3, change=1)
    yield "good-then-leaves", good + shakes + LEAVES + b"\0" + TIME + b"\xff"
    yield "bad-key", ARRIVES + process(0, 1) + shakes
    yield "bad-crowd", ARRIVES * 90 + says(0, b"x") + says(70, b"\x16\3\1\1\0") + TIME + b"\xff" + ARRIVES * 2 + says(89, b"\x16")
    yield "bad-time", good + passes(FORTH, 0, 100) + (TIME + b"\x64") * 3 + passes(FORTH, 0) + passes(BACK, 0)
    yield "bad-leaves", good + passes(FORTH, 0) + LEAVES + b"\0" + passes(BACK, 0) + process(0)
    yield "bad-says-first", good + says(0, b"\x16") + shakes
    yield "bad-http", ARRIVES + says(0, b"GET / HTTP/1.1\r\n\r\n") + says(0, b"x")
    for at in (0, 5, 20, 60, 120, 240):
        yield "bad-hello-%d" % at, good + passes(FORTH, 0, at=at, change=1) + passes(BACK, 0)
    for at in (0, 40, 100, 150):
        yield "bad-answer-%d" % at, good + passes(FORTH, 0) + passes(BACK, 0, at=at, change=0x80) + passes(FORTH, 0)
    yield "bad-finished", good + passes(FORTH, 0) + passes(BACK, 0) + passes(FORTH, 0, at=30, change=1) + passes(BACK, 0)


def main():
    directory = os.path.join(HERE, "corpus-btl")
    os.makedirs(directory, exist_ok=True)
    for mode, inputs in ((b"", peers()), (b"", pairs()), (b"\0", crowds())):
        for name, data in inputs:
            with open(os.path.join(directory, name), "wb") as file:
                file.write(mode + data)


if __name__ == "__main__":
    main()
