#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Vectors for records and the key schedule, version 1.

Written from docs/wire-format.rst with PyPI `cryptography`, never from the C
code.  Prints records-v1.txt; every input is fixed, so two runs are equal.
"""
import hashlib
import hmac
import struct

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

METHODS = {"none": 1, "psk": 2}
KEX = {"x25519": 1, "p256": 2}

SCHEDULE_LABELS = [
    "ompi-crypt v1 direction",
    "ompi-crypt v1 chop",
    "ompi-crypt v1 local token",
]


def fixed(text, count=32):
    """Reproducible bytes that look like nothing in particular."""
    return hashlib.shake_256(b"records-v1 " + text.encode()).digest(count)


def expand(secret, label, context, count):
    info = struct.pack(">HB", count, len(label)) + label.encode() + context
    return HKDFExpand(algorithm=hashes.SHA256(), length=count, info=info).derive(secret)


class Process:
    def __init__(self, case, who, rank, kex):
        seed = fixed(f"{case} {who} private")
        if kex == "x25519":
            self.private = seed
            self.key = x25519.X25519PrivateKey.from_private_bytes(seed)
            self.public = self.key.public_key().public_bytes(
                serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        else:
            scalar = int.from_bytes(seed, "big") >> 1
            self.private = scalar.to_bytes(32, "big")
            self.key = ec.derive_private_key(scalar, ec.SECP256R1())
            self.public = self.key.public_key().public_bytes(
                serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        self.rank = rank
        self.boot = fixed(f"{case} {who} boot", 16)
        self.nonce = fixed(f"{case} {who} node", 16)


def pack_extensions(extensions):
    return b"".join(struct.pack(">HH", kind, len(value)) + value for kind, value in extensions)


def body(process, method, kex, name, agreed, flags, extensions):
    return (struct.pack(">HB", 1, len(name)) + name.encode()
            + struct.pack(">II", process.rank, 0)
            + bytes([METHODS[method], KEX[kex], 0, 20])
            + struct.pack(">H", flags)
            + process.boot + process.nonce
            + struct.pack(">Q", 1795250000 + process.rank)
            + struct.pack(">H", len(agreed)) + agreed.encode()
            + process.public
            + struct.pack(">H", len(extensions)) + extensions)


def show(name, value):
    print(f"{name} = {value.hex() if isinstance(value, bytes) else value}")


def case(number, method, kex, name, agreed, flags, extensions=()):
    title = f"{number} {method} {kex}"
    low, high = Process(title, "a", 0, kex), Process(title, "b", 1, kex)
    psk = fixed(f"{title} psk")
    mix = expand(psk, "ompi-crypt v1 psk mix", b"", 32) if method == "psk" else bytes(32)
    auth = expand(psk, "ompi-crypt v1 psk auth", b"", 32)

    show("case", title)
    show("method", method)
    show("kex", kex)
    show("psk", psk)
    show("psk_auth", auth)
    show("psk_mix", mix)
    for who, process in (("a", low), ("b", high)):
        text = body(process, method, kex, name, agreed, flags, pack_extensions(extensions))
        mac = hmac.new(auth, text, hashlib.sha256).digest() if method == "psk" else b""
        process.record = text + struct.pack(">I", len(mac)) + mac
        show(f"{who}_private", process.private)
        show(f"{who}_public", process.public)
        show(f"{who}_record", process.record)

    if kex == "x25519":
        secret = low.key.exchange(high.key.public_key())
    else:
        secret = low.key.exchange(ec.ECDH(), high.key.public_key())
    prk = hmac.new(mix, secret, hashlib.sha256).digest()
    first, second = sorted((low, high), key=lambda p: p.public)
    th = hashlib.sha256(b"ompi-crypt v1"
                        + struct.pack(">I", len(first.record)) + first.record
                        + struct.pack(">I", len(second.record)) + second.record).digest()
    show("secret", secret)
    show("prk", prk)
    show("th", th)
    for label in SCHEDULE_LABELS:
        for src, dst, names in ((low, high, "ab"), (high, low, "ba")):
            context = src.public + dst.public + th
            show(f"{label.split(' v1 ')[1].replace(' ', '_')}_{names}", expand(prk, label, context, 32))
    show("short_ab", expand(prk, SCHEDULE_LABELS[0], low.public + high.public + th, 16))
    print()


print("# Made by records-v1.py with PyPI cryptography.  Do not edit.\n")
case(1, "psk", "x25519", "1234567890", "pml_crypt_chunk_size=106400", 0)
case(2, "psk", "x25519", "prterun-node0-4711@1", "", 1)
case(3, "none", "x25519", "1234567890", "", 0)
case(4, "psk", "p256", "1234567890", "a=1;b=2", 0)
case(5, "none", "p256", "x", "", 0)
# 1: the known one.  0x1234: unknown, not critical, so that it is ignored.
case(6, "psk", "x25519", "n" * 255, "a=1", 0, [(1, b""), (0x1234, b"later"), (0x7fff, bytes(4096 - 17))])
case(7, "none", "x25519", "1234567890", "", 0, [(1, b"")])


def refused(reason, extensions, count=None):
    """A record whose authenticator is good, and which has to be refused."""
    process = Process(f"bad {reason}", "a", 0, "x25519")
    text = body(process, "none", "x25519", "1234567890", "", 0, extensions)
    if count is not None:
        at = len(text) - len(extensions) - 2
        text = text[:at] + struct.pack(">H", count) + text[at + 2:]
    show("refused", reason)
    show("a_record", text + struct.pack(">I", 0))
    print()


refused("unknown critical", pack_extensions([(1, b""), (0x8002, b"x")]))
refused("twice", pack_extensions([(2, b""), (2, b"")]))
refused("twice, once critical", pack_extensions([(1, b""), (0x8001, b"")]))
refused("falling", pack_extensions([(3, b""), (2, b"")]))
refused("type 0", pack_extensions([(0, b"")]))
refused("type 0, critical", pack_extensions([(0x8000, b"")]))
refused("report with bytes", pack_extensions([(1, b"x")]))
refused("length past the end", struct.pack(">HH", 2, 5) + b"four")
refused("cut in its head", struct.pack(">HB", 2, 0))
refused("list past the record", pack_extensions([(2, b"")]), count=9)
refused("list too long", pack_extensions([(2, bytes(4096 - 3))]))
