#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Take inputs for the fuzz targets out of tests/vectors: seeds.py DIRECTORY

Writes DIRECTORY/map/*, DIRECTORY/slot/*, DIRECTORY/header/*, DIRECTORY/key_exchange/*, DIRECTORY/vault/*."""
import os
import struct
import sys


def blocks(path):
    block = {}
    for line in open(path):
        name, equals, value = line.rstrip("\n").partition(" = ")
        if equals:
            block[name] = value
        elif block:
            yield block
            block = {}
    if block:
        yield block


def main(directory):
    vectors = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors")
    count = {}

    def put(target, data):
        count[target] = count.get(target, 0) + 1
        os.makedirs(os.path.join(directory, target), exist_ok=True)
        with open(os.path.join(directory, target, "seed%d" % count[target]), "wb") as file:
            file.write(data)

    for block in blocks(os.path.join(vectors, "map-v1.txt")):
        if block["kind"] == "map":
            put("map", bytes.fromhex(block["map"]))
            put("map", bytes.fromhex(block["digest"]))
    # The header, and what is in place 1: in the pieces of a file.
    head = b""
    for block in blocks(os.path.join(vectors, "onefile-v1.txt")):
        if block["kind"] == "piece" and block["at"] == "0":
            head = bytes.fromhex(block["bytes"]).ljust(512, b"\0")
        elif block["kind"] == "piece" and bytes.fromhex(block["bytes"]).startswith(b"MPICRYPT") and head:
            put("header", head + bytes.fromhex(block["bytes"]))
    # Entries, as a place has them, and the head of a room.
    slot = [struct.pack("<IIQ16s16s", flags, 100, 5, b"s" * 16, b"t" * 16) for flags in (1, 3)]
    for entry in (bytes(96), slot[1] + bytes(48), slot[0] + slot[1], slot[1] + struct.pack("<I", 4 | 7 << 8) + bytes(44),
                  struct.pack("<IIQ", 4095, 0, 2 ** 33) + slot[0] + slot[0] + bytes(16)):
        put("slot", entry)
    put("slot", b"ompi-crypt key 1\nlabel lab\nversion 1\ntype aes\nbits 256\nfingerprint 000102030405060708090a0b0c0d0e0f\ncreated 1800000000\nnot-after 0\n"
                   b"state active\nchanges 0\nowners 0 1000\nescrow 00ff\n")
    for block in blocks(os.path.join(vectors, "key-exchange-v1.txt")):
        for part in ("message", "contents"):
            if part in block:
                put("key_exchange", bytes.fromhex(block[part]))
    put("slot", struct.pack("<BBH16sQH", 1, 1, 1, b"f" * 16, 1800000000, 40) + bytes(42))
    put("slot", struct.pack("<BBH16sQH", 1, 3, 1, b"f" * 16, 1800000000, 60) + bytes(62))
    for body in (b'{"data":{"batch_results":[{"plaintext":"AAAA","error":""},{"error":"no \\u0041 \\"b"}]},"n":[-1.5e3,0,true,null]}',
                 b'{"data":{"keys":{"1":1800000000},"latest_version":1,"name":"lab"}}'):
        put("vault", b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        put("vault", b"HTTP/1.1 400 Bad\r\n\r\n" + body)


if __name__ == "__main__":
    main(sys.argv[1])
