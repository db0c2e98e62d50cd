#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""replay.py CAPTURE FIRST LAST: say every hello of the capture again that went to a port from FIRST to LAST, and expect that
none has two answers, counting that in the capture.  (One that the listener had dropped unread may have its first here.)  Some
of the repeats end as soon as they are said, so that they have failed when they are answered."""

import socket
import sys

from capture import segments

capture, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def again(to, hello, ends):
    with socket.create_connection(to, timeout=60) as sock:
        sock.sendall(hello)
        if ends:
            sock.shutdown(socket.SHUT_WR)
        try:
            return len(sock.recv(65536))
        except ConnectionResetError:
            return 0


all_segments = list(segments(capture))
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
