# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""flip.py pml|btl CAPTURE CHANGED: the last bit of the longest packet of a connection of ours is another."""
import sys

way, source, target = sys.argv[1:]
with open(source, "rb") as file:
    capture = bytearray(file.read())
at, longest = 24, (0, 0)
ports = set()
while at + 16 <= len(capture):
    size = int.from_bytes(capture[at + 8:at + 12], "little")
    frame = capture[at + 16:at + 16 + size]
    if frame[12:14] == b"\x08\x00" and len(frame) > 34 and frame[23] == 6:
        key = frozenset((bytes(frame[26:30] + frame[34:36]), bytes(frame[30:34] + frame[36:38])))
        if (b"OPAL-TCP-BTL" if way == "pml" else b"ompi\1\0") in frame:
            ports.add(key)
        if key in ports:
            longest = max(longest, (size, at + 16 + size))
    at += 16 + size
assert longest[0] > 100
capture[longest[1] - 1] ^= 1
with open(target, "wb") as file:
    file.write(capture)
