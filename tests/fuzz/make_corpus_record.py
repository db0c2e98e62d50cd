#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Write corpus-record/: inputs of fuzz_record.c, good and bad ones.

Records are those of tests/vectors/records-v1.txt, with the parameters of the
fuzz target; certificates are made by PyPI `cryptography`."""

import datetime
import os
import struct

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

HERE = os.path.dirname(os.path.abspath(__file__))


def vectors():
    block = {}
    for line in open(os.path.join(HERE, "..", "vectors", "records-v1.txt")):
        name, equals, value = line.rstrip("\n").partition(" = ")
        if equals:
            block[name] = value
        elif block:
            yield block
            block = {}


def certificate(key, algorithm):
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Site"),
                      x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "hpc"),
                      x509.NameAttribute(NameOID.COMMON_NAME, "alice")])
    usage = x509.KeyUsage(True, *[False] * 8)
    return (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(1).not_valid_before(datetime.datetime(2020, 1, 1))
            .not_valid_after(datetime.datetime(2099, 1, 1)).add_extension(usage, True)
            .sign(key, algorithm).public_bytes(serialization.Encoding.DER))


def chain(*certificates):
    return bytes([len(certificates)]) + b"".join(struct.pack(">I", len(c)) + c for c in certificates)


def corpus():
    for number, block in enumerate(vectors(), 1):
        record = bytes.fromhex(block["a_record"])
        good = block.get("case") in ("3 none x25519", "7 none x25519")
        yield "record-%s-%d" % ("good" if good else "bad", number), b"\0" + record
        if "refused" in block:
            continue
        yield "record-psk-bad-%d" % number, b"\1" + record
        yield "record-version-bad-%d" % number, b"\0\0\2" + record[2:]
        yield "record-short-bad-%d" % number, b"\0" + record[:-1]
    keys = {"ed25519": (ed25519.Ed25519PrivateKey.generate(), None),
            "p256": (ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()),
            "p384": (ec.generate_private_key(ec.SECP384R1()), hashes.SHA256()),
            "rsa": (rsa.generate_private_key(65537, 2048), hashes.SHA256())}
    schemes = {"ed25519": 0x0807, "p256": 0x0403, "p384": 0x0503, "rsa": 0x0804}
    made = {name: certificate(*key) for name, key in keys.items()}
    for name, der in made.items():
        yield "chain-good-" + name, b"\2" + chain(der) + struct.pack(">HH", schemes[name], 64) + bytes(64)
    yield "chain-good-two", b"\2" + chain(made["ed25519"], made["p256"])
    yield "chain-bad-count", b"\2\x09" + chain(made["ed25519"])[1:]
    yield "chain-bad-length", b"\2\x01\xff\xff\xff\xff" + made["ed25519"]
    yield "chain-bad-tail", b"\2" + chain(made["ed25519"] + b"\0")


def main():
    directory = os.path.join(HERE, "corpus-record")
    os.makedirs(directory, exist_ok=True)
    for name, data in corpus():
        with open(os.path.join(directory, name), "wb") as file:
            file.write(data)


main()
