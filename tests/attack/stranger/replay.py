#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""replay.py CAPTURE FIRST LAST: say every hello of the capture again that went to a port from FIRST to LAST, and expect that
none has two answers, counting that in the capture.  (One that the listener had dropped unread may have its first here.)  Some
of the repeats end as soon as they are said, so that they have failed when they are answered."""

import os
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "leakscan"))
from leakscan import packets  # noqa: E402

capture, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def segments():
    """((address, port), (address, port), bytes) from and to, of each that begins like a record of a handshake."""
    for frame in packets(capture):
        if frame[12:14] != b"\x08\x00" or frame[23] != 6:
            continue
        ip = frame[14:]
        tcp = ip[4 * (ip[0] & 15):struct.unpack(">H", ip[2:4])[0]]
        ports, said = struct.unpack(">HH", tcp[:4]), tcp[4 * (tcp[12] >> 4):]
        if said[:2] == b"\x16\x03":
            yield (socket.inet_ntoa(ip[12:16]), ports[0]), (socket.inet_ntoa(ip[16:20]), ports[1]), said


def again(to, hello, ends):
    with socket.create_connection(to, timeout=60) as sock:
        sock.sendall(hello)
        if ends:
            sock.shutdown(socket.SHUT_WR)
        try:
            return len(sock.recv(65536))
        except ConnectionResetError:
            return 0


all_segments = list(segments())
answered = {(to, source) for source, to, _ in all_segments if first <= source[1] <= last}
failed = not answered
for source, to, hello in all_segments:
    if first <= to[1] <= last:
        answers = int((source, to) in answered)
        came = [again(to, hello, ends) for ends in (True, True, False, False)]
        answers += sum(bytes > 0 for bytes in came)
        print(f"{to[0]}:{to[1]}: {len(hello)} bytes, four times again: {came} in return, {answers} answers in all")
        failed = failed or answers > 1
sys.exit(1 if failed else 0)
