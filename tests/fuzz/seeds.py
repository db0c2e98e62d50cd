#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Take inputs for the fuzz targets out of tests/vectors: seeds.py DIRECTORY

Writes DIRECTORY/map/*, DIRECTORY/sidecar/*, DIRECTORY/header/*."""
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
    for block in blocks(os.path.join(vectors, "sidecar-v1.txt")):
        if block["kind"] == "entry":
            put("sidecar", bytes.fromhex(block["entry"]))
        elif block["kind"] == "room":
            put("sidecar", bytes.fromhex(block["head"]))
    # The header, and what is in place 1: in the pieces of a file.
    head = b""
    for block in blocks(os.path.join(vectors, "onefile-v1.txt")):
        if block["kind"] == "piece" and block["at"] == "0":
            head = bytes.fromhex(block["bytes"]).ljust(512, b"\0")
        elif block["kind"] == "piece" and bytes.fromhex(block["bytes"]).startswith(b"MPICRYPT") and head:
            put("header", head + bytes.fromhex(block["bytes"]))
    put("sidecar", (b"MPICRYPT" + struct.pack("<HHI16sQQ", 1, 3, 1, b"u" * 16, 2101248, 181)).ljust(4096, b"\0"))
    put("sidecar", struct.pack("<QQ", 2105344, 2113536).ljust(512, b"\0"))
    put("sidecar", b"ompi-crypt key 1\nlabel lab\nversion 1\ntype aes\nbits 256\ncreated 1800000000\nnot-after 0\n"
                   b"state active\nchanges 0\nowners 0 1000\nescrow 00ff\n")
    put("sidecar", struct.pack("<BBHH", 1, 1, 1, 40) + bytes(42))


if __name__ == "__main__":
    main(sys.argv[1])
