#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""hellos.py wrong CAPTURE FIRST LAST
hellos.py old CAPTURE FIRST LAST ADDRESS PORT
hellos.py as CAPTURE FIRST LAST RANK

Say hellos of the capture that went to a port from FIRST to LAST, and expect no answer.  wrong: to whom they were said, each
with every byte changed, and in every name of a job of 64, of each instance from 0 to 3, with a higher number of its attempt.
old: as they are, to a process of a later job.  as: in the name of RANK, with a higher number of its attempt."""

import socket
import struct
import sys

from capture import segments

what, capture, first, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
AT_ONCE = 32
IDENTITY = b"ompi\1\0"
LINK, ATTEMPT, RANK = 6, 8, 12 + 32         # places in an identity


def answers(to, hellos):
    """How many of them got any."""
    count = 0
    for at in range(0, len(hellos), AT_ONCE):
        socks = []
        for hello in hellos[at:at + AT_ONCE]:
            sock = socket.create_connection(to, timeout=60)
            try:
                sock.sendall(hello)
                sock.shutdown(socket.SHUT_WR)       # a record of which more is awaited ends here
            except OSError:
                pass
            socks.append(sock)
        for sock in socks:
            try:
                count += len(sock.recv(65536)) > 0
            except OSError:
                pass
            sock.close()
    return count


def put(hello, place, value):
    at = hello.index(IDENTITY) + place
    return hello[:at] + struct.pack(">I", value) + hello[at + 4:]


def changed(hello):
    for at in range(len(hello)):
        yield hello[:at] + bytes([hello[at] ^ 1 << at % 8]) + hello[at + 1:]


def claims(hello):
    for rank in range(64):
        for instance in range(4):
            yield put(put(put(hello, RANK, rank), RANK + 4, instance), ATTEMPT, 1 << 30)


known = {said: to for _, to, said in segments(capture) if first <= to[1] <= last and IDENTITY in said}
failed = not known
for hello, to in known.items():
    if "old" == what:
        to = sys.argv[5], int(sys.argv[6])
        ways = {"as it is": [hello]}
    elif "as" == what:
        ways = {"in the name of " + sys.argv[5]: [put(put(hello, RANK, int(sys.argv[5])), ATTEMPT, 1 << 30)]}
    else:
        ways = {"every byte changed": list(changed(hello)), "every name": list(claims(hello))}
    for way, hellos in ways.items():
        came = answers(to, hellos)
        print(f"{to[0]}:{to[1]}: a hello of {len(hello)} bytes, {way}: {len(hellos)}, {came} answers")
        failed = failed or came > 0
sys.exit(1 if failed else 0)
