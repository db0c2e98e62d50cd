#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""between.py WHAT ADDRESS PORT COUNT TARGET FILE: stand between processes and those of the other node.

Listens at COUNT ports of ADDRESS, which they take for TARGET's.  WHAT is one of

    servers     answer hellos as nobody of the job does, each connection in another way
    handshake N pass all on to TARGET, with one bit changed in a record of the handshake; N: which come first

FILE gets a line when it listens, and one for each connection.  One that begins with BAD says that somebody of the job went on
where he must not."""

import os
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading

what, address, first, count, target, path = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], sys.argv[6]
log = open(path, "w", buffering=1)
lock = threading.Lock()
connections = int(what.split()[-1]) if what.startswith("handshake ") else 0


def say(text):
    with lock:
        print(text, file=log)


def receive(sock, size):
    data = b""
    while len(data) < size:
        try:
            more = sock.recv(size - len(data))
        except OSError:
            more = b""
        if not more:
            return None
        data += more
    return data


def record(sock):
    """The next one, or None at the end."""
    head = receive(sock, 5)
    body = None if head is None else receive(sock, struct.unpack(">H", head[3:])[0])
    return None if body is None else head + body


def close(*socks):
    for sock in socks:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        sock.close()


# ---- servers ----

def server_hello(random, suite, extensions, session=b""):
    body = b"\3\3" + random + bytes([len(session)]) + session + struct.pack(">HB", suite, 0)
    if extensions is not None:
        body += struct.pack(">H", len(extensions)) + extensions
    return b"\x16\3\3" + struct.pack(">HB", len(body) + 4, 2) + struct.pack(">I", len(body))[1:] + body


VERSION = b"\0\x2b\0\2\3\4"
SHARE = b"\0\x33\0\x24\0\x1d\0\x20" + bytes(31) + b"\x09"
PSK = b"\0\x29\0\2\0\0"
RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
RANDOM = bytes(range(32))
GOOD = server_hello(RANDOM, 0x1301, VERSION + SHARE + PSK)

answers = {
    "another hello wanted (HelloRetryRequest)": server_hello(RETRY, 0x1301, VERSION + b"\0\x33\0\2\0\x17"),
    "the same with our group": server_hello(RETRY, 0x1301, VERSION + b"\0\x33\0\2\0\x1d"),
    "TLS 1.2": server_hello(RANDOM, 0xc02f, None, bytes(32)),
    "TLS 1.2 with a sign of a downgrade": server_hello(RANDOM[:24] + b"DOWNGRD\1", 0xc02f, b"\xff\1\0\1\0"),
    "TLS 1.3 and no PSK": server_hello(RANDOM, 0x1301, VERSION + SHARE),
    "another suite": server_hello(RANDOM, 0x1302, VERSION + SHARE + PSK),
    "another group": server_hello(RANDOM, 0x1301, VERSION + SHARE.replace(b"\0\x1d", b"\0\x17") + PSK),
    "the second identity": server_hello(RANDOM, 0x1301, VERSION + SHARE + PSK[:-1] + b"\1"),
    "the right form without a key": GOOD + b"\x17\3\3\0\x17" + bytes(23) + b"\x17\3\3\0\x35" + bytes(53),
    "data at once": b"\x17\3\3\0\x40" + bytes(64),
    "a ChangeCipherSpec": b"\x14\3\3\0\1\1" + GOOD,
    "an alert": b"\x15\3\3\0\2\2\x28",
    "a ClientHello": None,
    "64 KiB": bytes(1 << 16),
    "half a ServerHello": GOOD[:50],
    "nothing": b"",
}


def certificate():
    """A context whose certificate nobody knows."""
    with tempfile.TemporaryDirectory() as directory:
        key, cert = os.path.join(directory, "key"), os.path.join(directory, "cert")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=node0", "-keyout", key, "-out", cert], check=True, stderr=subprocess.DEVNULL)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        return context


def with_certificate(sock, hello):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = context.wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(hello)
    try:
        end.do_handshake()
    except ssl.SSLError:
        pass
    said = outgoing.read()
    sock.sendall(said)
    return len(said)


def serve(sock, mine):
    hello = record(sock)
    names = ["a certificate"] + list(answers)
    name = names[mine % len(names)]
    try:
        if hello is None:
            say(f"{name}: no hello")
            return
        if "a certificate" == name:
            name += f" ({with_certificate(sock, hello)} bytes)"
        else:
            sock.sendall(hello if answers[name] is None else answers[name])
        more = record(sock)
    except OSError:
        more = None
    say(f"{'' if more is None else 'BAD: it went on: '}{name}")
    close(sock)


# ---- between ----

class Way:
    """One direction of a connection: records, counted."""

    def __init__(self, source, sink, name):
        self.source, self.sink, self.name, self.records = source, sink, name, 0

    def run(self, change):
        """change(way, number, record): records to pass on; None: the end."""
        try:
            while (one := record(self.source)) is not None:
                self.records += 1
                changed = change(self, self.records - 1, one)
                if changed is None:
                    break
                self.sink.sendall(changed)
        except OSError:
            pass
        close(self.source, self.sink)


def both(sock, port, change):
    server = socket.create_connection((target, port))
    out, back = Way(sock, server, "connects"), Way(server, sock, "listens")
    out.other, back.other = back, out
    threads = [threading.Thread(target=way.run, args=(change,)) for way in (out, back)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out, back


def handshake(sock, port, mine):
    """One bit of one record; who gets it may say nothing more."""
    side, which = [("connects", 0), ("listens", 0), ("listens", 1), ("listens", 2), ("connects", 1)][mine % 5]
    seen = {}

    def change(way, at, one):
        if (way.name, at) != (side, which):
            return one
        place = mine * 619 % len(one)
        if "connects" == side and 1 == which and place in (3, 4):
            place = 5               # a longer record is as good as bytes that are held back, which nobody can prevent
        seen.update(place=place, bytes=len(one), before=way.other.records)
        one = bytearray(one)
        one[place] ^= 1 << mine % 8
        return bytes(one)

    out, back = both(sock, port, change)
    if not seen:
        say(f"who {side}, record {which}: it did not come")
        return
    after = (back if "connects" == side else out).records
    went_on = after > seen["before"]
    say(f"{'BAD: it went on: ' if went_on else ''}who {side}, record {which}, byte {seen['place']} of {seen['bytes']}, bit {mine % 8}")


def meet(sock, port):
    global connections
    with lock:
        mine = connections
        connections += 1
    if "servers" == what:
        serve(sock, mine)
    else:
        handshake(sock, port, mine)


def listen(port, ready):
    with socket.create_server((address, port), backlog=64) as listener:
        ready.release()
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=meet, args=(sock, port), daemon=True).start()


context = certificate() if "servers" == what else None
ready = threading.Semaphore(0)
for port in range(first, first + count):
    threading.Thread(target=listen, args=(port, ready), daemon=True).start()
for _ in range(count):
    ready.acquire()
say("listening")
threading.Event().wait()
