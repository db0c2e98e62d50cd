#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""stranger.py ADDRESS PORT...: connect without a key, in all ways that we know, and expect no byte in return.

Prints one line for each way.  Nothing here waits for anything but the other end's closing."""

import os
import random
import socket
import ssl
import struct
import sys

address, ports = sys.argv[1], [int(port) for port in sys.argv[2:]]
failed = False


def connect(port):
    sock = socket.create_connection((address, port), timeout=60)
    return sock


def answer(sock):
    """All that comes before the end."""
    came = b""
    try:
        while chunk := sock.recv(65536):
            came += chunk
    except ConnectionResetError:
        pass
    return came


def expect(what, came):
    global failed
    print(f"{what}: {len(came)} bytes in return")
    failed = failed or len(came) > 0


def tls_hello(version):
    """What a client of TLS says first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        context.wrap_bio(incoming, outgoing).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


says = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "btl/tcp's hello": struct.pack("!QI", 0x123400000001, 0) + b"OMPI-TCP-BTL\0",
    "TLS 1.3 without a PSK": tls_hello(ssl.TLSVersion.TLSv1_3),
    "TLS 1.2": tls_hello(ssl.TLSVersion.TLSv1_2),
    "a record of data": b"\x17\x03\x03\x00\x40" + bytes(64),
    "an alert": b"\x15\x03\x03\x00\x02\x02\x28",
    "a hello longer than allowed": b"\x16\x03\x01\x40\x00" + bytes(16384),
    "a megabyte of zeros": bytes(1 << 20),
    "noise": random.Random(1).randbytes(4096),
}

for port in ports:
    for what, said in says.items():
        with connect(port) as sock:
            try:
                sock.sendall(said)
            except (ConnectionResetError, BrokenPipeError):
                pass
            expect(f"port {port}: {what}", answer(sock))
    with connect(port) as sock:                 # says nothing: 2 seconds
        expect(f"port {port}: silence", answer(sock))
    with connect(port) as sock:                 # half a hello
        sock.sendall(says["TLS 1.3 without a PSK"][:100])
        expect(f"port {port}: half a hello", answer(sock))

    flood = []
    for i in range(2000):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex((address, port))
        flood.append(sock)
        if len(flood) > 500:
            flood.pop(0).close()
    print(f"port {port}: 2000 connections, 500 of them at a time")
    for sock in flood:
        sock.close()

sys.exit(1 if failed else 0)
