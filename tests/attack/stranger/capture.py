# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Hellos of a capture, for replay.py and hellos.py."""

import os
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "leakscan"))
from leakscan import packets  # noqa: E402


def segments(capture):
    """((address, port), (address, port), bytes) from and to, of each that begins like a record of a handshake."""
    for frame in packets(capture):
        if frame[12:14] != b"\x08\x00" or frame[23] != 6:
            continue
        ip = frame[14:]
        tcp = ip[4 * (ip[0] & 15):struct.unpack(">H", ip[2:4])[0]]
        ports, said = struct.unpack(">HH", tcp[:4]), tcp[4 * (tcp[12] >> 4):]
        if said[:2] == b"\x16\x03":
            yield (socket.inet_ntoa(ip[12:16]), ports[0]), (socket.inet_ntoa(ip[16:20]), ports[1]), said
