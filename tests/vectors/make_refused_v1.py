#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Write refused-v1.txt: what docs/wire-format.rst and docs/transport-format.rst say is refused.

Each is sealed, or made, by a holder of the right keys, and departs from the format in one way; the first of each kind
is good, and shows that nothing else is wrong.  `--check` compares.
"""
import os
import struct
import sys

from make_frame_v1 import PK_DST, PK_SRC, PRK, TH, aead, envelope, epoch_nonce, expand, header, pair_secret, stream
from make_transport_v1 import ALERT, CLOSE_NOTIFY, DATA, HANDSHAKE, KEY_UPDATE, Direction

CIPHER, CONTEXT, COUNTER = "AES-128-GCM", stream("context", 16), 77


# ---- records ----

def record(**other):
    field = {"version": 1, "name": b"1234567890", "kex": 1, "flags": 0, "agreed": b"a=1", "agreed_count": None, "public": stream("public", 32),
             "extensions": b"", "extensions_count": None, "authenticator": b"", "authenticator_count": None, "after": b""}
    field.update(other)

    def counted(kind, name):
        count = field[name + "_count"]
        return struct.pack(kind, len(field[name]) if count is None else count) + field[name]

    return (struct.pack(">HB", field["version"], len(field["name"])) + field["name"] + struct.pack(">II", 1, 0)
            + bytes([1, field["kex"], 0, 20]) + struct.pack(">H", field["flags"]) + bytes(range(32)) + struct.pack(">Q", 1795250000)
            + counted(">H", "agreed") + field["public"] + counted(">H", "extensions") + counted(">I", "authenticator") + field["after"])


def records():
    yield "good", record()
    yield "no name", record(name=b"")
    yield "a name with a zero", record(name=b"12\x00345")
    yield "key agreement 0", record(kex=0)
    yield "key agreement 3", record(kex=3)
    yield "flag 1", record(flags=2)
    yield "flag 15", record(flags=1 << 15)
    yield "parameters with a zero", record(agreed=b"a=\x001")
    yield "1025 bytes of parameters", record(agreed=b"a" * 1025)
    yield "parameters past the end", record(agreed_count=200)
    yield "a short point of P-256", record(kex=2)
    yield "4097 bytes of extensions", record(extensions=struct.pack(">HH", 2, 4093) + bytes(4093))
    yield "an extension of the table with another length", record(extensions=struct.pack(">HHB", 1, 1, 0))
    yield "161 bytes of addresses", record(extensions=struct.pack(">HH", 0x10, 161) + bytes(161))
    yield "an authenticator past the end", record(authenticator=bytes(32), authenticator_count=33)
    yield "a byte after the authenticator", record(after=b"\0")
    yield "16385 bytes", record(authenticator=bytes(16385 - len(record())))


# ---- frames ----

def direct(kind=1, reserved=0, version=1, plain=b"payload", source=PK_SRC, target=PK_DST, generation=3, tag=7, context=CONTEXT, cut=None):
    """Under the keys of direct frames, with whatever stands in its header."""
    parent = expand(PRK, "ompi-crypt v1 direction", source + target + TH, 32)
    key, iv = (expand(parent, "ompi-crypt v1 epoch " + what, bytes(8), count) for what, count in (("key", 16), ("iv", 12)))
    head = bytes([version << 4 | kind, reserved]) + COUNTER.to_bytes(6, "big")
    return (head + aead(CIPHER, key).encrypt(epoch_nonce(iv, COUNTER), plain, head + envelope(context, generation, tag)))[:cut]


def first(total=100, chunk=24, count=3, plain=bytes(40)):
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    ecb = Cipher(algorithms.AES(expand(pair_secret("ompi-crypt v1 chop", 32), "ompi-crypt v1 chop key", bytes(8), 16)), modes.ECB()).encryptor()
    derived = b"".join(ecb.update(bytes([j]) + bytes(9) + COUNTER.to_bytes(6, "big")) for j in range(2))
    head = header(2, COUNTER) + struct.pack(">QII", total, chunk, count)
    return head + aead(CIPHER, derived[:16]).encrypt(derived[16:23] + bytes([count == 0]) + bytes(4), plain, head + envelope(CONTEXT, 3, 7))


def frames():
    yield "direct", "good", direct()
    yield "direct", "version 0", direct(version=0)
    yield "direct", "version 2", direct(version=2)
    for kind in (0, 2, 3, 4, 5, 6, 15):
        yield "direct", "type %d" % kind, direct(kind=kind)
    yield "direct", "reserved byte", direct(reserved=1)
    yield "direct", "another context", direct(context=bytes(16))
    yield "direct", "another generation", direct(generation=4)
    yield "direct", "another tag", direct(tag=8)
    yield "direct", "sent by the receiver", direct(source=PK_DST, target=PK_SRC)
    yield "direct", "23 bytes", direct(plain=b"", cut=23)
    yield "direct", "a changed bit", direct()[:-1] + bytes([direct()[-1] ^ 1])
    yield "final", "good", direct(kind=5, plain=struct.pack(">Q", 10))
    yield "final", "type 1", direct(kind=1, plain=struct.pack(">Q", 10))
    yield "first", "good", first()
    yield "first", "no segments, good", first(total=40, count=0)
    yield "first", "a segment without payload, good", first(total=40, count=1)
    yield "first", "total below the first part", first(total=39)
    yield "first", "total above 2^42", first(total=(1 << 42) + 1, chunk=1 << 26, count=1 << 16)
    yield "first", "chunk 0", first(chunk=0)
    yield "first", "chunk above 64 MiB", first(total=1 << 30, chunk=(1 << 26) + 1, count=16)
    yield "first", "too few segments", first(count=2)
    yield "first", "too many segments", first(count=4)
    yield "first", "two segments for nothing", first(total=40, count=2)
    yield "first", "count above 2^30", first(total=40 + (1 << 30) + 1, chunk=1, count=(1 << 30) + 1)


# ---- records of TLS ----

def sealed(content, head=bytes([23, 3, 3]), sequence=0, count=None):
    one = Direction("AES-128-GCM", stream("traffic secret, refused", 32))
    head += struct.pack(">H", len(content) + 16 if count is None else count)
    nonce = (int.from_bytes(one.iv, "big") ^ sequence).to_bytes(12, "big")
    return head + one.aead(one.key).encrypt(nonce, content, head)


def tls():
    yield "good", sealed(b"data" + bytes([DATA]))
    yield "padding", sealed(b"data" + bytes([DATA, 0]))
    yield "only padding", sealed(bytes(3))
    yield "no data", sealed(bytes([DATA]))
    yield "no content", sealed(b"")
    yield "16385 bytes of data", sealed(bytes(16385) + bytes([DATA]))
    yield "type 24", sealed(b"data" + bytes([24]))
    yield "change of ciphers", sealed(bytes([1, 20]))
    yield "a fatal alert", sealed(bytes([2, 20, ALERT]))
    yield "another warning", sealed(bytes([1, 90, ALERT]))
    yield "close_notify and a byte", sealed(CLOSE_NOTIFY + bytes([0, ALERT]))
    yield "KeyUpdate that asks for another", sealed(KEY_UPDATE[:-1] + bytes([1, HANDSHAKE]))
    yield "KeyUpdate twice", sealed(KEY_UPDATE * 2 + bytes([HANDSHAKE]))
    yield "half a KeyUpdate", sealed(KEY_UPDATE[:3] + bytes([HANDSHAKE]))
    yield "a ticket", sealed(bytes([4, 0, 0, 13]) + bytes(13) + bytes([HANDSHAKE]))
    yield "outer type 22", sealed(b"data" + bytes([DATA]), bytes([22, 3, 3]))
    yield "outer type 20", bytes([20, 3, 3, 0, 1, 1]) + bytes(16)
    yield "version 3 1", sealed(b"data" + bytes([DATA]), bytes([23, 3, 1]))
    yield "of the next sequence", sealed(b"data" + bytes([DATA]), sequence=1)
    yield "a changed bit", sealed(b"data" + bytes([DATA]))[:-1] + bytes([sealed(b"data" + bytes([DATA]))[-1] ^ 1])


def blocks():
    yield {"kind": "pair", "prk": PRK, "pk_src": PK_SRC, "pk_dst": PK_DST, "th": TH}
    for name, value in records():
        yield {"kind": "record", "name": name, "a_record": value}
    for kind, name, value in frames():
        yield {"kind": kind, "name": name, "cipher": CIPHER, "counter": COUNTER, "context": CONTEXT, "generation": 3, "tag": 7, "frame": value}
    for name, value in tls():
        yield {"kind": "tls", "name": name, "cipher": CIPHER, "secret": stream("traffic secret, refused", 32), "record": value}


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "refused-v1.txt")
    text = "# What is refused, made by make_refused_v1.py.  Do not edit.\n"
    for block in blocks():
        text += "\n" + "".join("%s = %s\n" % (key, value.hex() if isinstance(value, bytes) else value) for key, value in block.items())
    if sys.argv[1:] == ["--check"]:
        with open(path) as file:
            sys.exit(0 if file.read() == text else "%s differs from what this script makes" % path)
    with open(path, "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
