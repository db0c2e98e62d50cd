# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""second.py pml|btl CAPTURE KEYS-DIRECTORY: a second reader of the wire.

Opens everything that a job's processes sent to another node, from a capture of both directions and the keys that
keys.c wrote down.  It is made from docs/wire-format.rst and docs/transport-format.rst, with the functions of
tests/vectors, and shares nothing with the C code.  Every byte of every connection must belong to a frame that opens;
what is left over is an error.  Prints what it opened, as one line of JSON.
"""
import hashlib
import hmac
import json
import os
import struct
import sys

from cryptography.exceptions import InvalidTag

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, os.pardir, where) for where in ("vectors", "attack/leakscan")]
from leakscan import Stream, packets  # noqa: E402
from make_frame_v1 import expand  # noqa: E402


def refuse(condition, text):
    if condition:
        sys.exit("second: " + text)


def read(path, reader):
    """Give the reader the bytes of each direction of each connection, as they come: it takes them out of the buffer."""
    streams = {}

    def end(stream, direction):
        refuse(stream.early, "bytes are missing in the capture")
        direction.end(stream.phase)

    for frame in packets(path):
        if frame[12:14] != b"\x08\x00" or frame[23] != 6:
            continue
        ip = frame[14:14 + struct.unpack(">H", frame[16:18])[0]]
        tcp = ip[4 * (ip[0] & 15):]
        key = (ip[12:16] + tcp[0:2], ip[16:20] + tcp[2:4])
        sequence, offset, flags = struct.unpack(">4xI4xBB", tcp[:14])
        if flags & 2:
            if key in streams:
                end(*streams.pop(key))
            streams[key] = Stream(), reader.begin(key, not flags & 16)
            streams[key][0].begin(sequence)
        elif key in streams:
            stream, direction = streams[key]
            stream.add(sequence, tcp[4 * (offset >> 4):])
            if stream.phase:
                direction.feed(stream.phase)
    for one in streams.values():
        end(*one)


class Keys:
    """What the processes derived, each of it checked by deriving it again."""

    def __init__(self, directory):
        self.pairs, self.traffic, self.checked = {}, set(), 0
        secrets, used = set(), set()
        for name in os.listdir(directory):
            with open(os.path.join(directory, name)) as file:
                for line in file:
                    kind, *fields = line.split()
                    first, second, out = (b"" if field == "-" else bytes.fromhex(field) for field in fields)
                    self.checked += 1
                    if kind == "extract":
                        refuse(hmac.new(first or bytes(32), second, hashlib.sha256).digest() != out, "an Extract differs")
                        secrets.add(out)
                        continue
                    count, size = struct.unpack(">HB", second[:3])
                    label, context = second[3:3 + size].decode(), second[3 + size:]
                    refuse(count != len(out), "info has another length than the key")
                    if label.startswith("tls13 "):
                        self.traffic.add(first)
                        continue
                    refuse(expand(first, label, context, count) != out, "an Expand differs: " + label)
                    if label in ("ompi-crypt v1 direction", "ompi-crypt v1 transport"):
                        size = (len(context) - 32) // 2
                        self.pairs.setdefault((context[:size], context[size:2 * size]), set()).add((first, context[-32:]))
                        used.add(first)
        # A process draws the secrets of a session with itself.
        refuse(used - secrets, "a key of two processes was not extracted from what they share")


def main():
    way, capture, directory = sys.argv[1:]
    keys = Keys(directory)
    if way == "pml":
        from second_pml import Reader
    else:
        from second_btl import Reader
    reader = Reader(keys)
    read(capture, reader)
    print(json.dumps(dict(sorted({**reader.counts, "derivations": keys.checked}.items()))))


if __name__ == "__main__":
    try:
        main()
    except InvalidTag:
        sys.exit("second: a tag does not verify")
