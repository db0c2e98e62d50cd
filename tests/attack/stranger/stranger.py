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


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xffff:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


def syn_flood(port):
    """Connections that will never be: their first packets, from addresses of the network that nobody has."""
    network = socket.inet_aton(address)[:3]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        for i in range(10000):
            source, to = network + bytes([100 + i % 100]), socket.inet_aton(address)
            syn = struct.pack(">HHIIBBHHH", 1024 + i, port, i, 0, 5 << 4, 2, 1024, 0, 0)
            whole = checksum(source + to + struct.pack(">HH", 6, len(syn)) + syn)
            syn = syn[:16] + struct.pack(">H", whole) + syn[18:]
            head = struct.pack(">BBHHHBBH", 0x45, 0, 40, i & 0xffff, 0, 64, 6, 0) + source + to
            raw.sendto(head + syn, (address, 0))


def scan(low, high):
    """Who listens there?  Each connection is cut as soon as it is made."""
    found = []
    for port in range(low, high + 1):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if 0 == sock.connect_ex((address, port)):
            found.append(port)
        sock.close()
    return found


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

for _ in range(3):
    found = scan(21000, 21099)
    print(f"a scan of 100 ports finds {found}")
    failed = failed or not set(ports) <= set(found)
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
    for i in range(10000):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex((address, port))
        flood.append(sock)
        if len(flood) > 500:
            flood.pop(0).close()
    print(f"port {port}: 10000 connections, 500 of them at a time")
    for sock in flood:
        sock.close()
    syn_flood(port)
    print(f"port {port}: 10000 first packets of connections, from nobody")

sys.exit(1 if failed else 0)
