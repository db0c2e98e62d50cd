#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Write frame-v1.txt: golden frames of wire format version 1.

An implementation of docs/wire-format.rst of its own, on top of PyPI's
`cryptography`; it shares nothing with the C code.  The file is frozen with the
format: run this to check it (`make_frame_v1.py --check`), not to change it.
"""

import hashlib
import os
import struct
import sys

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

SHIFT = 20
KEY_BYTES = {"AES-128-GCM": 16, "AES-192-GCM": 24, "AES-256-GCM": 32, "ChaCha20-Poly1305": 32}


def stream(name, count):
    """Bytes that look random and are always the same."""
    return hashlib.shake_128(name.encode()).digest(count)


PRK = stream("prk", 32)
PK_SRC = stream("public key of the sender", 32)
PK_DST = stream("public key of the receiver", 32)
TH = stream("transcript hash", 32)
GROUP_KEY = stream("group key", 32)
GROUP_ID = stream("group id", 16)
TO_ALL = 2 ** 32 - 1


def expand(secret, label, context, count):
    label = label.encode()
    info = struct.pack(">HB", count, len(label)) + label + context
    return HKDFExpand(algorithm=hashes.SHA256(), length=count, info=info).derive(secret)


def pair_secret(label, count):
    return expand(PRK, label, PK_SRC + PK_DST + TH, count)


def aead(cipher, key):
    return ChaCha20Poly1305(key) if cipher == "ChaCha20-Poly1305" else AESGCM(key)


def header(kind, counter):
    return bytes([1 << 4 | kind, 0]) + counter.to_bytes(6, "big")


def envelope(context, generation, tag):
    return context + struct.pack(">Ii", generation, tag)


def epoch_nonce(iv, counter):
    return (int.from_bytes(iv, "big") ^ counter).to_bytes(12, "big")


def sealed_direct(cipher, kind, counter, context, generation, tag, plain):
    epoch = struct.pack(">Q", counter >> SHIFT)
    parent = pair_secret("ompi-crypt v1 direction", 32)
    key = expand(parent, "ompi-crypt v1 epoch key", epoch, KEY_BYTES[cipher])
    iv = expand(parent, "ompi-crypt v1 epoch iv", epoch, 12)
    head = header(kind, counter)
    aad = head + envelope(context, generation, tag)
    return head + aead(cipher, key).encrypt(epoch_nonce(iv, counter), plain, aad)


def sealed_chopped(cipher, counter, context, generation, tag, plain, first, chunk, synchronous=False):
    epoch = struct.pack(">Q", counter >> SHIFT)
    parent = pair_secret("ompi-crypt v1 chop", 32)
    bytes_of_key = KEY_BYTES[cipher]
    chop_key = expand(parent, "ompi-crypt v1 chop key", epoch, bytes_of_key)
    ecb = Cipher(algorithms.AES(chop_key), modes.ECB()).encryptor()
    derived = b"".join(ecb.update(bytes([j]) + bytes(9) + counter.to_bytes(6, "big")) for j in range(3))
    subkey, prefix = derived[:bytes_of_key], derived[bytes_of_key:bytes_of_key + 7]

    count = max(-(-(len(plain) - first) // chunk), int(synchronous))
    head = header(2, counter) + struct.pack(">QII", len(plain), chunk, count)
    parts = []
    for segment in range(count + 1):
        nonce = prefix + bytes([segment == count]) + struct.pack(">I", segment)
        if segment == 0:
            text, aad, before = plain[:first], head + envelope(context, generation, tag), head
        else:
            at = first + (segment - 1) * chunk
            text, aad, before = plain[at:at + chunk], None, b""
        parts.append(before + aead(cipher, subkey).encrypt(nonce, text, aad))
    return parts


def piece_keys(cipher, counter, context, sender_hash, destination):
    epoch = struct.pack(">Q", counter >> SHIFT)
    if destination == TO_ALL:
        secret, scope, use = GROUP_KEY, GROUP_ID + context + sender_hash + epoch, "group"
    else:
        secret, scope, use = pair_secret("ompi-crypt v1 piece", 32), epoch, "piece"
    return (expand(secret, "ompi-crypt v1 %s key" % use, scope, KEY_BYTES[cipher]),
            expand(secret, "ompi-crypt v1 %s iv" % use, scope, 12))


def piece(cipher, counter, context, sender_hash, fields, plain):
    destination = fields[4]
    key, iv = piece_keys(cipher, counter, context, sender_hash, destination)
    head = struct.pack(">Q", counter)
    aad = head + GROUP_ID + struct.pack(">QBBIIIIQ", *fields, len(plain))
    aad += context if destination != TO_ALL else b""
    return head + aead(cipher, key).encrypt(epoch_nonce(iv, counter), plain, aad)


def host_tag(bits, tag):
    below_zero = 2 ** (bits - 1)
    if tag < -2 ** 31 + 256:
        return tag + 2 ** 31 - below_zero
    lowest = -below_zero // 2
    return tag if tag >= lowest else lowest - 1 - (lowest - 1 - tag) % (below_zero // 8)


def segments_tag(bits, counter):
    below_zero = 2 ** (bits - 1)
    return -below_zero // 2 - below_zero // 8 - 1 - counter % (below_zero // 4)


def body_tag(bits, number):
    below_zero = 2 ** (bits - 1)
    return -below_zero // 2 - below_zero // 8 - below_zero // 4 - 1 - number % (below_zero // 16)


class Writer:
    def __init__(self):
        self.lines = ["# Golden frames of wire format version 1, made by make_frame_v1.py.  Do not edit.", "",
                      "kind = pair"]
        for name, value in (("prk", PRK), ("pk_src", PK_SRC), ("pk_dst", PK_DST), ("th", TH)):
            self.put(name, value)

    def put(self, name, value):
        self.lines.append("%s = %s" % (name, value.hex() if isinstance(value, bytes) else value))

    def block(self, kind, **fields):
        self.lines += ["", "kind = %s" % kind]
        for name, value in fields.items():
            self.put(name, value)


def make():
    out = Writer()
    counters = (0, 1, (1 << 20) - 1, 1 << 20, (5 << 20) + 77, (1 << 48) - 1)
    contexts = (bytes(16), stream("context", 16))
    generations = (1, 2, 2 ** 32 - 1, 0x01020304, 1, 3)

    # direct: every cipher, epochs 0, 1, 5 and the last, tags of all signs, sizes around a block
    for cipher in KEY_BYTES:
        for i, counter in enumerate(counters):
            size = (0, 1, 16, 17, 100, 255)[i]
            tag = (0, 7, -1, -2 ** 31, 2 ** 31 - 1, -27)[i]
            plain = stream("direct %s %d" % (cipher, counter), size)
            context, generation = contexts[i % 2], generations[i]
            out.block("direct", cipher=cipher, counter=counter, context=context, generation=generation, tag=tag,
                      plain=plain, frame=sealed_direct(cipher, 1, counter, context, generation, tag, plain))
        out.block("final", cipher=cipher, counter=9, context=contexts[1], generation=1, tag=-3, sent=10,
                  frame=sealed_direct(cipher, 5, 9, contexts[1], 1, -3, struct.pack(">Q", 10)))

    # chopped: total, first, chunk
    shapes = ((100, 40, 24),        # the last segment is shorter
              (112, 40, 24),        # ... is full
              (50, 40, 24),         # one segment
              (64, 40, 24),         # one full segment
              (40, 40, 24),         # none
              (30, 0, 7),           # nothing in the first part
              (0, 0, 1))            # nothing at all
    for cipher in KEY_BYTES:
        for i, (total, first, chunk) in enumerate(shapes):
            counter = (3, 4, 1 << 20, (5 << 20) + 1, 8, 9, 10)[i]
            tag = (11, -11)[i % 2]
            plain = stream("chopped %s %d" % (cipher, i), total)
            parts = sealed_chopped(cipher, counter, contexts[i % 2], i + 1, tag, plain, first, chunk)
            out.block("chopped", cipher=cipher, counter=counter, context=contexts[i % 2], generation=i + 1, tag=tag,
                      first=first, chunk=chunk, plain=plain, count=len(parts) - 1,
                      **{"part%d" % n: part for n, part in enumerate(parts)})

    # synchronous: all of it in the first part, and one segment without payload
    for cipher in KEY_BYTES:
        for i, total in enumerate((0, 1, 33)):
            plain = stream("synchronous %s %d" % (cipher, i), total)
            parts = sealed_chopped(cipher, 20 + i, contexts[i % 2], 7, 5, plain, total, 1, True)
            out.block("chopped", cipher=cipher, counter=20 + i, context=contexts[i % 2], generation=7, tag=5,
                      first=total, chunk=1, plain=plain, count=1, part0=parts[0], part1=parts[1])

    # local: token 16 || base 4; what stands before a small message, and all of a large one's frame
    secret = pair_secret("ompi-crypt v1 local token", 20)
    total, number = 3 << 32 | 5, 7 << 40 | 9
    out.block("local", base=int.from_bytes(secret[16:], "big"), small=header(3, 0) + secret[:16],
              total=total, id=number, large=header(4, 0) + secret[:16] + struct.pack(">QQ", total, number))

    # pieces, for all and for one: sequence, operation, algorithm, origin, destination, index, count
    out.block("group", key=GROUP_KEY, id=GROUP_ID)
    for cipher in KEY_BYTES:
        for i, counter in enumerate(counters):
            fields = (i + 1, 1, i, 2, (TO_ALL, 0)[i % 2], i % 3, 3)
            plain = stream("piece %s %d" % (cipher, i), 20 * i)
            sender = stream("hash of a member's public key", 32)
            out.block("piece", cipher=cipher, counter=counter, context=contexts[i % 2], sender=sender,
                      sequence=fields[0], operation=fields[1], algorithm=fields[2], origin=fields[3],
                      destination=fields[4], index=fields[5], count=fields[6], plain=plain,
                      sealed=piece(cipher, counter, contexts[i % 2], sender, fields, plain))

    # tags: of Open MPI, reserved, and of what follows a first part or a large message's frame
    for bits in (16, 20, 24, 32):
        half = 2 ** (bits - 2)
        tags = (0, 7, -1, -27, -half, -half - 1, -half - half // 4, -half - half // 4 - 1, -2 * half, -4 * half - 5,
                -2 ** 30, -2 ** 31 + 16, -2 ** 31 + 17, -2 ** 31 + 18)
        out.block("tags", bits=bits, **{"tag%d" % n: tag for n, tag in enumerate(tags) if tag >= -2 ** 31},
                  **{"host%d" % n: host_tag(bits, tag) for n, tag in enumerate(tags) if tag >= -2 ** 31})
        for counter in (0, 1, half // 2 - 1, half // 2, 2 ** 48 - 1):
            out.block("rest", bits=bits, counter=counter, segments=segments_tag(bits, counter),
                      body=body_tag(bits, counter))
    return "\n".join(out.lines) + "\n"


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frame-v1.txt")
    text = make()
    if sys.argv[1:] == ["--check"]:
        with open(path) as file:
            same = file.read() == text
        print("frame-v1.txt is %s" % ("as made" if same else "DIFFERENT"))
        return 0 if same else 1
    with open(path, "w") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
