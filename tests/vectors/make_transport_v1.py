#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Write transport-v1.txt: identities, PSKs, keys, records, addresses, groups and frames of docs/transport-format.rst.

An implementation of its own, on top of PyPI's `cryptography`; it shares nothing with the C
code.  It first checks itself against the trace of RFC 8448, section 3.  Version 1 is
frozen.  `make_transport_v1.py` writes the file, `--check` compares it.
"""

import hashlib
import ipaddress
import itertools
import os
import struct
import sys

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

# cipher: suite, hash, key bytes
SUITES = {
    "AES-128-GCM": (0x1301, hashes.SHA256(), 16, AESGCM),
    "AES-256-GCM": (0x1302, hashes.SHA384(), 32, AESGCM),
    "ChaCha20-Poly1305": (0x1303, hashes.SHA256(), 32, ChaCha20Poly1305),
}
DATA, HANDSHAKE, ALERT = 23, 22, 21
KEY_UPDATE, CLOSE_NOTIFY = bytes([24, 0, 0, 1, 0]), bytes([1, 0])
PLAIN_MAX = 16384
GROUPS = (0x11ec, 0x001d, 0x0017)       # the first that both have is taken


def stream(name, count):
    """Bytes that look random and are always the same."""
    return hashlib.shake_128(name.encode()).digest(count)


def plaintext(number, size):
    return bytes((i * 31 + i // 251 + number + 1) & 255 for i in range(size))


def expand_label(algorithm, secret, label, count):
    text = b"tls13 " + label.encode()
    info = struct.pack(">HB", count, len(text)) + text + b"\0"
    return HKDFExpand(algorithm=algorithm, length=count, info=info).derive(secret)


def name(nspace, rank, instance):
    return hashlib.sha256(nspace.encode()).digest() + struct.pack(">II", rank, instance)


def identity(claimed, wanted, link, attempt):
    return b"ompi" + bytes([1, 0]) + struct.pack(">HI", link, attempt) + claimed + wanted


def psk(prk, pk_client, pk_server, th, count):
    label = b"ompi-crypt v1 transport"
    info = struct.pack(">HB", count, len(label)) + label + pk_client + pk_server + th
    return HKDFExpand(algorithm=hashes.SHA256(), length=count, info=info).derive(prk)


def addresses(port, networks, groups):
    out = bytes([1, 0]) + struct.pack(">HB", port, len(networks))
    for network in map(ipaddress.ip_interface, networks):
        out += bytes([network.version, network.network.prefixlen]) + network.ip.packed
    return out + bytes([len(groups)]) + struct.pack(">%dH" % len(groups), *groups)


def fragment(tag, count):
    return struct.pack(">BBHI", 1, tag, 0, count)


def put(address, count):
    return struct.pack(">B7xQQ", 2, address, count)


def hello(kernel, version=1):
    return struct.pack(">BBBBI", 3, version, 1, kernel, 0)


def last():
    return struct.pack(">B7x", 4)


def join(rail, session, count):
    return struct.pack(">BB6xQQ", 5, rail, session, count)


# Of each type, at its limits; and what is none, as a whole record of it.
HEADERS = (
    ({"type": 1, "tag": 0, "bytes": 1 << 20}, fragment(0, 1 << 20)), ({"type": 1, "tag": 255, "bytes": 0}, fragment(255, 0)),
    ({"type": 2, "address": 1, "bytes": 1 << 40}, put(1, 1 << 40)),
    ({"type": 2, "address": 2 ** 64 - 8, "bytes": 7}, put(2 ** 64 - 8, 7)),
    ({"type": 3, "kernel": 0}, hello(0)), ({"type": 3, "kernel": 1}, hello(1)), ({"type": 4}, last()))
NO_HEADERS = (
    fragment(1, (1 << 20) + 1), fragment(1, 0)[:7], b"\1\1\0\1" + bytes(4), b"\1\1\1\0" + bytes(4),
    put(0, 1), put(1, 0), put(1, (1 << 40) + 1), put(2 ** 64 - 8, 8), put(2 ** 64 - 1, 2 ** 40), put(1, 1)[:23],
    b"\2\0\0\0\0\0\0\1" + put(1, 1)[8:],
    hello(2), hello(255), hello(0, 0), hello(0, 2), b"\3\1\0\0" + bytes(4), b"\3\1\1\0\0\0\0\1", hello(0)[:7], hello(0) + b"\0",
    b"\4" + bytes(6), b"\4\1" + bytes(6), b"\4\0\0\0\0\0\0\1", last() + b"\0",
    bytes(24), b"\5" + bytes(23), b"\377" + bytes(23))

# Rails came later, and have a file of their own: rails-v1.txt.
RAILS_HEADERS = (
    ({"type": 5, "rail": 1, "session": 1 << 32, "count": 1}, join(1, 1 << 32, 1)),
    ({"type": 5, "rail": 7, "session": 2 ** 64 - 1, "count": 2 ** 64 - 1}, join(7, 2 ** 64 - 1, 2 ** 64 - 1)))
RAILS_NO_HEADERS = (
    join(0, 1, 1), join(8, 1, 1), join(255, 1, 1), join(1, 1, 0), join(1, 1, 1)[:23], join(1, 1, 1)[:8], join(1, 1, 1) + b"\0",
    b"\5\1\1" + join(1, 1, 1)[3:], b"\5\1\0\0\0\0\0\1" + join(1, 1, 1)[8:], b"\6\1" + join(1, 1, 1)[2:])
# Frames in the order in which they come, by rail: a fragment f, a put p, a join of a rail with its count; and what is
# delivered, in order.  Fragments are numbered as they come, over all rails; puts are where they belong at once.
RAILS_ORDERS = (
    ("0f 0p 0f", "0 1"), ("1p 0j1,1 0f", "0"), ("0j1,1 0f 1p", "0"), ("0f 1p 1p 0j1,1 0f 0j1,2 0f", "0 1 2"),
    ("1f 0f 0j1,1 0f", "1 0 2"), ("1f 1f 0f 0j1,1 0f 0j1,2 0f", "2 0 3 1 4"), ("0j1,2 1p 0f 1f 0f", "1 0 2"),
    ("2f 1f 0j1,1 0j2,1 0f", "1 0 2"), ("0j2,1 0j1,1 0f 1f 2f", "2 1 0"), ("1p 1f 0j1,1 0f", "1"), ("0j1,2 0f 1p", ""),
    ("7f 0f", "1"), ("7f 7p 0f 0j7,2 0f", "1 0 2"), ("1f 2p 0j2,1 0f 0j1,1 0f", "1 0 2"))

# What the two ends of a connection send, record by record: each ends with close_notify.
CONVERSATION = {
    "client": (hello(0), fragment(65, 0), fragment(255, 5) + plaintext(1, 5), put(0x123456789abc, 7) + plaintext(2, 7),
               put(0xffffffff0000, 4097), plaintext(3, 4097), last()),
    "server": (hello(1), fragment(1, 300) + plaintext(4, 300), last()),
}


def common(ours, theirs):
    return next((group for group in GROUPS if group in ours and group in theirs), 0)


class Direction:
    def __init__(self, cipher, secret, renew=1 << 20):
        self.suite, self.algorithm, self.key_bytes, self.aead = SUITES[cipher]
        self.renew = renew
        self.start(secret)

    def start(self, secret):
        self.secret = secret
        self.key = expand_label(self.algorithm, secret, "key", self.key_bytes)
        self.iv = expand_label(self.algorithm, secret, "iv", 12)
        self.sequence = 0

    def record(self, kind, content):
        head = bytes([23, 3, 3]) + struct.pack(">H", len(content) + 17)
        nonce = (int.from_bytes(self.iv, "big") ^ self.sequence).to_bytes(12, "big")
        self.sequence += 1
        return head + self.aead(self.key).encrypt(nonce, content + bytes([kind]), head)

    def update(self):
        record = self.record(HANDSHAKE, KEY_UPDATE)
        self.start(expand_label(self.algorithm, self.secret, "traffic upd", self.algorithm.digest_size))
        return record

    def seal(self, plain):
        records = b""
        for at in range(0, len(plain), PLAIN_MAX):
            if self.sequence == self.renew - 1:
                records += self.update()
            records += self.record(DATA, plain[at:at + PLAIN_MAX])
        return records


def self_check():
    """RFC 8448, 3: the client's application keys, and its 50 bytes of data."""
    secret = bytes.fromhex("9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5")
    client = Direction("AES-128-GCM", secret)
    assert client.key.hex() == "17422dda596ed5d9acd890e3c63f5051"
    assert client.iv.hex() == "5b78923dee08579033e523d9"
    assert client.seal(bytes(range(50))).hex() == (
        "1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a"
        "20441e2b62974e1f5a6292a2977014bd1e3deae63aeebb21694915e4")
    return client


def blocks():
    client = self_check()
    yield {"kind": "rfc8448", "cipher": "AES-128-GCM", "secret": bytes.fromhex(
        "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5"),
        "key": client.key, "iv": client.iv, "plain": bytes(range(50)),
        "records": Direction("AES-128-GCM", client.secret).seal(bytes(range(50)))}

    for n, (nspace, claimed, wanted, link, attempt) in enumerate((
            ("4711", (1, 0), (0, 0), 0, 1), ("prterun-node0-17@1", (2 ** 32 - 1, 3), (7, 2 ** 32 - 1), 65535, 2 ** 32 - 1))):
        yield {"kind": "identity", "nspace": nspace, "claimed_rank": claimed[0], "claimed_instance": claimed[1],
               "wanted_rank": wanted[0], "wanted_instance": wanted[1], "link": link, "attempt": attempt,
               "identity": identity(name(nspace, *claimed), name(nspace, *wanted), link, attempt)}

    prk, th = stream("prk", 32), stream("transcript hash", 32)
    for kind, size in (("x25519", 32), ("p256", 65)):
        client_key, server_key = stream("client %s" % kind, size), stream("server %s" % kind, size)
        for count in (32, 48):
            yield {"kind": "psk", "prk": prk, "pk_client": client_key, "pk_server": server_key, "th": th,
                   "psk": psk(prk, client_key, server_key, th, count)}

    most = ["10.0.0.%d/8" % n for n in range(8)]
    for port, networks, groups in ((1024, ["10.0.0.7/24"], [0x11ec, 0x001d]), (65535, ["fd00::1/64", "192.168.3.4/16"], [0x0017]),
                                   (1, most, [0xfe00, 0x001d, 0x11ec, 0x11ed])):
        yield {"kind": "addresses", "port": port, "networks": " ".join(networks), "addresses": addresses(port, networks, groups),
               "groups": struct.pack(">%dH" % len(groups), *groups)}
    for ours, theirs in itertools.product(([0x001d], [0x11ec], [0x11ec, 0x001d], [0x0017], [0x0019, 0x0017]), repeat=2):
        yield {"kind": "group", "ours": struct.pack(">%dH" % len(ours), *ours), "theirs": struct.pack(">%dH" % len(theirs), *theirs),
               "group": struct.pack(">H", common(ours, theirs))}

    for fields, header in HEADERS:
        yield {"kind": "header", **fields, "header": header}
    for record in NO_HEADERS:
        yield {"kind": "no header", "record": record}
    for end, plains in CONVERSATION.items():
        secret = stream("traffic secret, %s" % end, 32)
        one = Direction("AES-128-GCM", secret)
        for n, plain in enumerate(plains):
            # What is inside can be read off, but for the one that is long.
            yield {"kind": "conversation", "end": end, "cipher": "AES-128-GCM", "secret": secret, "number": n,
                   "plain": plain if len(plain) < 1000 else b"", "record": one.record(DATA, plain)}
        yield {"kind": "conversation", "end": end, "cipher": "AES-128-GCM", "secret": secret, "number": len(plains),
               "plain": b"", "record": one.record(ALERT, CLOSE_NOTIFY)}

    for cipher, (_, algorithm, _, _) in SUITES.items():
        secret = stream("traffic secret, %s" % cipher, algorithm.digest_size)
        one = Direction(cipher, secret)
        yield {"kind": "keys", "cipher": cipher, "secret": secret, "key": one.key, "iv": one.iv,
               "next": expand_label(algorithm, secret, "traffic upd", algorithm.digest_size)}
        for renew, sizes in ((1 << 20, (1, 64, 65, 300)), (2, (5, 100, 1)), (3, (0x4001, 7, 2))):
            one = Direction(cipher, secret, renew)
            for n, size in enumerate(sizes):
                records = one.seal(plaintext(n, size))
                # Long ones by their hash: people read this file.
                yield {"kind": "records", "cipher": cipher, "secret": secret, "renew": renew, "number": n,
                       "sizes": " ".join(map(str, sizes)), "bytes": len(records),
                       "sha256": hashlib.sha256(records).digest(),
                       "records": records if len(records) < 1000 else b""}
            yield {"kind": "close", "cipher": cipher, "secret": secret, "renew": renew,
                   "sizes": " ".join(map(str, sizes)), "records": one.record(ALERT, CLOSE_NOTIFY)}


def rails_blocks():
    for fields, header in RAILS_HEADERS:
        yield {"kind": "header", **fields, "header": header}
    for record in RAILS_NO_HEADERS:
        yield {"kind": "no header", "record": record}
    for attempt, nspace, rank in ((1, "4711", 0), (2 ** 32 - 1, "prterun-node0-17@1", 2 ** 32 - 1)):
        claimed = name(nspace, rank, 0)
        yield {"kind": "session", "attempt": attempt, "claimed": claimed, "session": struct.pack(
            ">II", attempt, (int.from_bytes(claimed[:4], "big") + rank) % 2 ** 32)}
    for frames, delivered in RAILS_ORDERS:
        yield {"kind": "order", "frames": frames, "delivered": delivered}


def text(blocks):
    out = ["# Vectors of docs/transport-format.rst, made by make_transport_v1.py.  Do not edit.\n"]
    for block in blocks:
        out.append("")
        for key, value in block.items():
            out.append("%s = %s" % (key, value.hex() if isinstance(value, bytes) else value))
    return "\n".join(out) + "\n"


def main():
    for file_name, made in (("transport-v1.txt", text(blocks())), ("rails-v1.txt", text(rails_blocks()))):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), file_name)
        if sys.argv[1:] == ["--check"]:
            with open(path) as file:
                if file.read() != made:
                    sys.exit("%s differs from what this script makes" % path)
        else:
            with open(path, "w") as file:
                file.write(made)


if __name__ == "__main__":
    main()
