#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""first.py ADDRESS FIRST LAST FILE: connect to these ports before those do who should, again and again, and keep up to 200
connections, every second of which says something.  FILE gets a line for each connection that was made."""

import socket
import sys

address, first, last, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
held = []
with open(path, "w", buffering=1) as file:
    print("begun", file=file)
    while True:
        for port in range(first, last + 1):
            sock = socket.socket()
            if 0 != sock.connect_ex((address, port)):
                sock.close()
                continue
            print(port, file=file)
            held.append(sock)
            if len(held) % 2:
                try:
                    sock.sendall(b"\x16\x03\x01\x01\x01\x01")
                except OSError:
                    pass
            if len(held) > 200:
                held.pop(0).close()
