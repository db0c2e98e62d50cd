#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""replay.py CAPTURE FIRST LAST: say every hello of the capture again that went to a port from FIRST to LAST, three times, and
expect no byte in return."""

import os
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "leakscan"))
from leakscan import packets  # noqa: E402

capture, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def hellos():
    """(address, port, ClientHello) of each connection; a hello is one segment."""
    for frame in packets(capture):
        if frame[12:14] != b"\x08\x00" or frame[23] != 6:
            continue
        ip = frame[14:]
        tcp = ip[4 * (ip[0] & 15):struct.unpack(">H", ip[2:4])[0]]
        port, said = struct.unpack(">H", tcp[2:4])[0], tcp[4 * (tcp[12] >> 4):]
        if first <= port <= last and said[:3] == b"\x16\x03\x01" and len(said) == 5 + struct.unpack(">H", said[3:5])[0]:
            yield socket.inet_ntoa(ip[16:20]), port, said


found = list(hellos())
failed = not found
print(f"{len(found)} hellos in the capture")
for address, port, hello in 3 * found:
    with socket.create_connection((address, port), timeout=60) as sock:
        sock.sendall(hello)
        try:
            came = sock.recv(65536)
        except ConnectionResetError:
            came = b""
    print(f"{address}:{port}: {len(hello)} bytes again, {len(came)} in return")
    failed = failed or len(came) > 0
sys.exit(1 if failed else 0)
