#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""mute.py ADDRESS PORT FILE: accept there, and never say anything.  FILE gets a line when it listens, and one for each
connection."""

import socket
import sys

address, port, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
held = []
with socket.create_server((address, port)) as listener, open(path, "w", buffering=1) as file:
    print("listening", file=file)
    while True:
        held.append(listener.accept())
        print("connection", file=file)
