#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Messages of docs/key-exchange.rst, written and read by PyPI cryptography; shares nothing with the C code.

    key_exchange_v1.py make [DIR]                               write key-exchange-v1.txt
    key_exchange_v1.py open MESSAGE (--passphrase FILE | --cert PEM --key PEM)     print the contents
    key_exchange_v1.py seal CONTENTS (--passphrase FILE | --cert PEM) > MESSAGE
    key_exchange_v1.py info MESSAGE                             print what is readable without a key
"""
import argparse
import hashlib
import os
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, keywrap, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.x963kdf import X963KDF


def stream(name, length):
    """Bytes that are the same in every run."""
    return hashlib.shake_128(name.encode()).digest(length)


# ---- DER ----

def der(tag, *parts):
    body = b"".join(parts)
    size = len(body)
    length = bytes([size]) if size < 128 else (lambda b: bytes([0x80 | len(b)]) + b)(size.to_bytes((size.bit_length() + 7) // 8, "big"))
    return bytes([tag]) + length + body


def oid(text):
    numbers = [int(part) for part in text.split(".")]
    out = bytes([40 * numbers[0] + numbers[1]])
    for number in numbers[2:]:
        part = [number & 127]
        while number > 127:
            number >>= 7
            part.append(128 | number & 127)
        out += bytes(reversed(part))
    return der(6, out)


def integer(value):
    return der(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def sequence(*parts):
    return der(0x30, *parts)


def octets(value):
    return der(4, value)


def read(data, at=0):
    """Tag, content, and where the next element begins."""
    tag, size, at = data[at], data[at + 1], at + 2
    if size > 127:
        digits = size & 127
        size, at = int.from_bytes(data[at:at + digits], "big"), at + digits
    assert at + size <= len(data)
    return tag, data[at:at + size], at + size


def children(content):
    found, at = [], 0
    while at < len(content):
        tag, body, after = read(content, at)
        found.append((tag, body, content[at:after]))
        at = after
    return found


DATA, AUTH, SIGNED, INFO = "1.2.840.113549.1.7.1", "1.2.840.113549.1.9.16.1.23", "1.2.840.113549.1.7.2", "1.2.840.113549.1.9.16.1.6"
GCM, WRAP, SHA256 = "2.16.840.1.101.3.4.1.46", "2.16.840.1.101.3.4.1.45", "2.16.840.1.101.3.4.2.1"
OAEP, MGF1, DH, EC = "1.2.840.113549.1.1.7", "1.2.840.113549.1.1.8", "1.3.132.1.11.1", "1.2.840.10045.2.1"


# ---- recipients ----

def scrypt_id(n, r, p, salt):
    return b"ompi-crypt" + bytes([1, n, r, p]) + salt


def kek_of(passphrase, key_id):
    assert key_id[:11] == b"ompi-crypt\1" and len(key_id) == 30
    n, r, p = key_id[11:14]
    return hashlib.scrypt(passphrase, salt=key_id[14:], n=1 << n, r=r, p=p, maxmem=1100 << 20, dklen=32)


def to_passphrase(cek, passphrase, n=14, r=8, p=1, salt=None, key_id=None):
    """The key is always that of the default parameters: others are for messages that must be refused."""
    key_id = key_id or scrypt_id(n, r, p, salt or os.urandom(16))
    kek = kek_of(passphrase, scrypt_id(14, 8, 1, key_id[14:]))
    return der(0xa2, integer(4), sequence(octets(key_id)), sequence(oid(WRAP)), octets(keywrap.aes_key_wrap(kek, cek)))


def issuer_and_serial(certificate):
    return sequence(certificate.issuer.public_bytes(), integer(certificate.serial_number))


def shared_info():
    return sequence(sequence(oid(WRAP)), der(0xa2, octets((256).to_bytes(4, "big"))))


def to_certificate(cek, certificate):
    key = certificate.public_key()
    sha256 = sequence(oid(SHA256))
    if isinstance(key, rsa.RSAPublicKey):
        wrapped = key.encrypt(cek, padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None))
        return sequence(integer(0), issuer_and_serial(certificate),
                        sequence(oid(OAEP), sequence(der(0xa0, sha256), der(0xa1, sequence(oid(MGF1), sha256)))), octets(wrapped))
    own = ec.generate_private_key(key.curve)
    point = own.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    kek = X963KDF(hashes.SHA256(), 32, shared_info()).derive(own.exchange(ec.ECDH(), key))
    return der(0xa1, integer(3), der(0xa0, der(0xa1, sequence(oid(EC)), der(3, b"\0", point))),
               sequence(oid(DH), sequence(oid(WRAP))),
               sequence(sequence(issuer_and_serial(certificate), octets(keywrap.aes_key_wrap(kek, cek)))))


# ---- messages ----

def message(recipients, cek, nonce, text, version=0, algorithm=GCM, tag=16, kind=AUTH, before=b"", after=b"", cipher_tag=0x80):
    sealed = AESGCM(cek).encrypt(nonce[:12], text, None)
    contents = sequence(oid(DATA), sequence(oid(algorithm), sequence(octets(nonce), integer(tag))), der(cipher_tag, sealed[:-16]))
    return sequence(oid(kind), der(0xa0, sequence(integer(version), before, der(0x31, *recipients), contents, octets(sealed[-16:]), after)))


def seal(text, recipient):
    cek = os.urandom(32)
    return message([recipient(cek)], cek, os.urandom(12), text)


def parts(data):
    """The recipient's tag and parts, nonce, ciphertext, tag; the certificate of a signer."""
    (tag, kind, _), (_, explicit, _) = children(read(data)[1])
    certificate = None
    if (tag, kind) == (6, oid(SIGNED)[2:]):
        signed = children(children(explicit)[0][1])
        (_, kind, _), (_, wrapped, _) = children(signed[2][1])
        assert kind == oid(INFO)[2:]
        certificate = children(signed[3][1])[0][2]
        (_, kind, _), (_, explicit, _) = children(read(children(wrapped)[0][1])[1])
    assert kind == oid(AUTH)[2:]
    _, recipients, contents, mac = children(children(explicit)[0][1])
    recipient, = children(recipients[1])
    _, algorithm, cipher = children(contents[1])
    nonce = children(children(algorithm[1])[1][1])[0][1]
    return recipient[0], children(recipient[1]), nonce, cipher[1], mac[1], certificate


def open_message(data, passphrase=None, certificate=None, key=None):
    tag, recipient, nonce, cipher, mac, _ = parts(data)
    if tag == 0xa2:
        cek = keywrap.aes_key_unwrap(kek_of(passphrase, children(recipient[1][1])[0][1]), recipient[3][1])
    elif tag == 0x30:
        assert recipient[1][2] == issuer_and_serial(certificate)
        cek = key.decrypt(recipient[3][1], padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None))
    else:
        point = children(children(recipient[1][1])[0][1])[1][1][1:]
        who, wrapped = children(children(recipient[3][1])[0][1])
        assert who[2] == issuer_and_serial(certificate)
        peer = ec.EllipticCurvePublicKey.from_encoded_point(key.curve, point)
        cek = keywrap.aes_key_unwrap(X963KDF(hashes.SHA256(), 32, shared_info()).derive(key.exchange(ec.ECDH(), peer)), wrapped[1])
    return AESGCM(cek).decrypt(nonce, cipher + mac, None)


# ---- contents ----

def fingerprint(key):
    return hashlib.sha256(b"ompi-crypt v1 key fingerprint" + keywrap.aes_key_wrap(key, b"ompi-crypt fingerprint 1")).digest()[:16]


def record(label, version, revoked=False, owners=(), escrow=b"", not_after=0, key=None, **other):
    key = key or stream("key %s %s" % (label, version), 32)
    fields = {"label": label, "version": version, "type": "aes", "bits": 256,
              "fingerprint": fingerprint(key[:32].ljust(32, b"\0")).hex(), "created": 1790000000, "not-after": not_after,
              "state": "revoked" if revoked else "active", "changes": 1 if revoked else 0}
    fields.update({name.replace("_", "-"): value for name, value in other.items()})
    lines = ["ompi-crypt key 1"] + ["%s %s" % field for field in fields.items()]
    lines += ["owners" + "".join(" %d" % owner for owner in owners), "escrow" + (" " + escrow.hex() if escrow else "")]
    return "\n".join(lines) + "\nkey %s\n" % key.hex()


def contents(*records, count=None, exported=1800000000, first="ompi-crypt keys 1", last="end\n"):
    return ("%s\nexported %s\nkeys %s\n%s%s" % (first, exported, len(records) if count is None else count, "".join(records), last)).encode()


def good_contents():
    yield "one", contents(record("lab", 1))
    yield "versions", contents(record("lab", 3), record("lab", 2, revoked=True), record("lab", 1, not_after=1900000000, owners=(0, 4294967294)))
    yield "labels", contents(record("A-1", 7), record("a", 1), record("b_-.9", 65535), record("c" * 64, 1, escrow=stream("spki", 800)))


def bad_contents():
    one = contents(record("lab", 1))
    yield "empty", contents()
    yield "format 2", contents(record("lab", 1), first="ompi-crypt keys 2")
    yield "record format 2", one.replace(b"key 1\n", b"key 2\n")
    yield "more than counted", contents(record("lab", 2), record("lab", 1), count=1)
    yield "fewer than counted", contents(record("lab", 1), count=2)
    yield "count with a zero", contents(record("lab", 1), count="01")
    yield "count with a sign", contents(record("lab", 1), count="+1")
    yield "count of 2^32 + 1", contents(record("lab", 1), count=4294967297)
    yield "count of 4097", contents(record("lab", 1), count=4097)
    yield "negative time", contents(record("lab", 1), exported=-1)
    yield "time of 2^63", contents(record("lab", 1), exported=1 << 63)
    yield "versions ascend", contents(record("lab", 1), record("lab", 2))
    yield "versions repeat", contents(record("lab", 1), record("lab", 1))
    yield "labels descend", contents(record("b", 1), record("a", 1))
    yield "label comes again", contents(record("a", 2), record("b", 1), record("a", 1))
    yield "label with a slash", contents(record("../x", 1))
    yield "label with a dot first", contents(record(".x", 1))
    yield "label of 65", contents(record("c" * 65, 1))
    yield "version 0", contents(record("lab", 0))
    yield "version 65536", contents(record("lab", 65536))
    yield "128 bits", contents(record("lab", 1, bits=128))
    yield "another type", contents(record("lab", 1, type="rsa"))
    yield "another state", contents(record("lab", 1, state="expired"))
    yield "key of zeros", contents(record("lab", 1, key=bytes(32)))
    yield "key of 31", contents(record("lab", 1, key=stream("key", 31)))
    yield "key of 33", contents(record("lab", 1, key=stream("key", 33)))
    yield "large digits", one.replace(stream("key lab 1", 32).hex().encode(), stream("key lab 1", 32).hex().upper().encode())
    yield "fingerprint of another key", contents(record("lab", 1, fingerprint=fingerprint(stream("key lab 2", 32)).hex()))
    yield "half a fingerprint", contents(record("lab", 1, fingerprint=fingerprint(stream("key lab 1", 32))[:8].hex()))
    yield "17 owners", contents(record("lab", 1, owners=range(17)))
    yield "recovery key of 801", contents(record("lab", 1, escrow=stream("spki", 801)))
    yield "no end", contents(record("lab", 1), last="")
    yield "half an end", contents(record("lab", 1), last="end")
    yield "more after the end", contents(record("lab", 1), last="end\n\n")
    yield "a zero byte", one.replace(b"label lab", b"label l\0b")
    yield "lines of DOS", one.replace(b"\n", b"\r\n")


# ---- forms ----

PASSPHRASE = b"correct horse battery staple"


def forms(text):
    """Name, message: each departs from the form in one way."""
    cek, nonce, salt = stream("cek form", 32), stream("nonce form", 12), stream("salt form", 16)

    def to(**how):
        return to_passphrase(cek, PASSPHRASE, salt=salt, **how)

    def of(recipients=None, nonce=nonce, **how):
        return message([to()] if recipients is None else recipients, cek, nonce, text, **how)

    plain, plain_id = of(), scrypt_id(14, 8, 1, salt)
    yield "nonce of 11", of(nonce=stream("nonce", 11))
    yield "nonce of 16", of(nonce=stream("nonce", 16))
    yield "nonce of 4096", of(nonce=stream("nonce", 4096))
    yield "tag of 12", of(tag=12)
    yield "tag of 15", of(tag=15)
    yield "version 1", of(version=1)
    yield "AES-128-GCM", of(algorithm="2.16.840.1.101.3.4.1.6")
    yield "AES-256-CBC", of(algorithm="2.16.840.1.101.3.4.1.42")
    yield "EnvelopedData", of(kind="1.2.840.113549.1.7.3")
    yield "no recipient", of([])
    yield "two recipients", of([to(), to()])
    yield "originator", of(before=der(0xa0))
    yield "authenticated attributes", of(after=der(0xa1, sequence(oid(DATA), der(0x31))))
    yield "other attributes", of(after=der(0xa2, sequence(oid(DATA), der(0x31))))
    yield "ciphertext in pieces", of(cipher_tag=0xa0)
    yield "password recipient", of([der(0xa3, integer(0), sequence(oid(WRAP)), octets(salt))])
    yield "other recipient", of([der(0xa4, oid(DATA))])
    for name, n, r, p in (("N of 2^13", 13, 8, 1), ("N of 2^21", 21, 1, 1), ("N of 2^64", 64, 8, 1), ("r of 0", 14, 0, 1), ("p of 0", 14, 8, 0),
                          ("p of 5", 14, 8, 5), ("more than 1 GiB", 20, 9, 1)):
        yield name, of([to(n=n, r=r, p=p)])
    yield "key id 2", of([to(key_id=plain_id[:10] + b"\2" + plain_id[11:])])
    yield "other key id", of([to(key_id=b"ompi-crypX" + plain_id[10:])])
    yield "short key id", of([der(0xa2, integer(4), sequence(octets(plain_id[:-1])), sequence(oid(WRAP)), octets(bytes(40)))])
    yield "key id with a date", of([der(0xa2, integer(4), sequence(octets(plain_id), der(0x18, b"20260101000000Z")), sequence(oid(WRAP)),
                                        octets(bytes(40)))])
    yield "key of 32 wrapped in 48", of([der(0xa2, integer(4), sequence(octets(plain_id)), sequence(oid(WRAP)), octets(bytes(48)))])
    yield "AES-128-WRAP", of([der(0xa2, integer(4), sequence(octets(plain_id)), sequence(oid("2.16.840.1.101.3.4.1.5")), octets(bytes(40)))])
    yield "byte after", plain + b"\0"
    yield "byte before", b"\0" + plain
    yield "indefinite length", b"\x30\x80" + read(plain)[1] + b"\0\0"
    yield "length with a zero", bytes([0x30, 0x83, 0]) + plain[2:]
    yield "length too long for it", plain.replace(octets(nonce), b"\x04\x81\x0c" + nonce)
    yield "length of 2^31", bytes([0x30, 0x84, 0x80, 0, 0, 0]) + read(plain)[1]
    yield "negative length", bytes([0x30, 0x83, 0xff, 0xff, 0xff]) + read(plain)[1]
    yield "empty", b""
    yield "one byte", b"\x30"
    yield "text", text
    yield "signed, other type", sequence(oid(SIGNED), der(0xa0, sequence(integer(3), der(0x31, sequence(oid(SHA256))), sequence(
        oid(DATA), der(0xa0, octets(plain))), der(0xa0, sequence()), der(0x31, sequence()))))
    yield "signed, no signer", sequence(oid(SIGNED), der(0xa0, sequence(integer(3), der(0x31, sequence(oid(SHA256))), sequence(
        oid(INFO), der(0xa0, octets(plain))), der(0xa0, sequence()), der(0x31))))
    yield "signed in signed", sequence(oid(SIGNED), der(0xa0, sequence(integer(3), der(0x31, sequence(oid(SHA256))), sequence(
        oid(INFO), der(0xa0, octets(sequence(oid(SIGNED), der(0xa0, plain))))), der(0xa0, sequence()), der(0x31, sequence()))))


def make(directory):
    with open(os.path.join(directory, "key-exchange-v1.txt"), "w") as out:
        def section(kind, name, **fields):
            print("\nkind = %s\nname = %s" % (kind, name), file=out)
            for field, value in fields.items():
                print("%s = %s" % (field, value.hex()), file=out)

        def sealed(name, text):
            cek = stream("cek " + name, 32)
            return message([to_passphrase(cek, PASSPHRASE, salt=stream("salt " + name, 16))], cek, stream("nonce " + name, 12), text)

        print("# Made by key_exchange_v1.py with PyPI cryptography.  Do not edit.", file=out)
        section("passphrase", "all", passphrase=PASSPHRASE)
        for name, text in good_contents():
            section("good", name, message=sealed(name, text), contents=text)
        for name, text in bad_contents():
            section("contents", name, contents=text)
        for name, data in forms(contents(record("lab", 1))):
            section("form", name, message=data)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("make", "open", "seal", "info"))
    parser.add_argument("file", nargs="?", default=".")
    parser.add_argument("--passphrase")
    parser.add_argument("--cert")
    parser.add_argument("--key")
    given = parser.parse_args()
    if given.what == "make":
        make(given.file)
        return
    data = open(given.file, "rb").read()
    passphrase = open(given.passphrase, "rb").read().rstrip(b"\n") if given.passphrase else None
    certificate = x509.load_pem_x509_certificate(open(given.cert, "rb").read()) if given.cert else None
    key = serialization.load_pem_private_key(open(given.key, "rb").read(), None) if given.key else None
    if given.what == "open":
        sys.stdout.buffer.write(open_message(data, passphrase, certificate, key))
    elif given.what == "seal":
        sys.stdout.buffer.write(seal(data, lambda cek: to_passphrase(cek, passphrase) if passphrase else to_certificate(cek, certificate)))
    else:
        tag, recipient, nonce, cipher, mac, signer = parts(data)
        key_id = children(recipient[1][1])[0][1] if tag == 0xa2 else b"\0" * 14
        print("recipient %02x nonce %d tag %d signed %s scrypt %d %d %d" % (tag, len(nonce), len(mac), "yes" if signer else "no", *key_id[11:14]))


if __name__ == "__main__":
    main()
