#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""middle.py ADDRESS PORT THERE ACT AT FILE: somebody between two processes.

Accepts at ADDRESS and PORT, connects to the same port of THERE, and hands on the records of TLS in both
directions; with number AT of one direction (from 1; THERE's are the answers) he does ACT, once.  FILE gets a line when
he listens, and one when he has done it.  Who connects sends the Finished of the handshake first, and then the hello;
who listens two records of the handshake before that.

  flip, tag     one bit of the ciphertext, or of the tag
  type, length  one bit of the record's type, or one byte more of its length
  drop, repeat, swap    a record, or two
  old, reflect  instead of it, one from before, or one of the other direction
  forge, alert  before it, one of random bytes, or a plain close_notify
  half          half of it
  late          it, two seconds later
  again         it; and somebody else sends the connection's ClientHello, and a stranger's bytes, to who answered it: "answered" in FILE
                if a byte comes back
  cut, end      no more, and the sockets are closed; or one direction of one, as TCP ends it
  part          who connected sees a cut; the other end is read on, and hears nothing
  mute          no more of this direction goes on, and nobody sees a cut
  pass          nothing is done
"""
import os
import socket
import sys
import threading
import time

address, port, there, act, at, path = sys.argv[1:]
port, answers, at = int(port), at.startswith("-"), abs(int(at))
DATA = 23
SHORTEST = 30                           # an alert, to a caller that is not kept, is shorter than a frame
lock = threading.Lock()
done = False
kept = {False: [], True: []}
hellos = []
halves = set()


def exactly(source, count):
    got = b""
    while len(got) < count:
        some = source.recv(count - len(got))
        if not some:
            return None
        got += some
    return got


def record(source):
    head = exactly(source, 5)
    body = head and exactly(source, int.from_bytes(head[3:5], "big"))
    return None if body is None else head + body


def bent(one, source, answer):
    """What goes on in the place of this record."""
    changed = bytearray(one)
    if act == "flip":
        changed[5 + len(changed[5:]) // 2] ^= 1
    elif act == "tag":
        changed[-1] ^= 128
    elif act == "type":
        changed[0] ^= 1
    elif act == "length":
        changed[3:5] = (len(one) - 4).to_bytes(2, "big")
    elif act == "drop":
        return b""
    elif act == "repeat":
        return one + one
    elif act == "swap":
        return (record(source) or b"") + one
    elif act == "old":
        return kept[answer][-9]
    elif act == "reflect":
        return kept[not answer][-1]
    elif act == "forge":
        return one[:3] + (80).to_bytes(2, "big") + os.urandom(80) + one
    elif act == "alert":
        return bytes((21, 3, 3, 0, 2, 1, 0)) + one
    elif act == "half":
        return one[:len(one) // 2]
    return bytes(changed)


def waits_for(one):
    """So many bytes must follow before the other end can notice, without anybody's sending more."""
    return {"length": 1, "drop": 1, "swap": 1, "half": len(one) // 2 + 1}.get(act, 0)


def follow(source, count):
    try:
        return count == 0 or len(source.recv(count, socket.MSG_PEEK | socket.MSG_DONTWAIT)) >= count
    except BlockingIOError:
        return False


def due(one, number, source):
    """Ours to bend?  Once."""
    global done
    with lock:
        if done or number < at or one[0] != DATA or not follow(source, waits_for(one)) or \
                (act in ("part", "mute") and len(one) < SHORTEST):
            return False
        done = True
    return True


def connect():
    """Marked: nobody else reaches these ports of the other node (records.sh)."""
    far = socket.socket()
    try:
        far.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, 1)
        far.connect((there, port))
    except OSError:
        far.close()
        raise
    return far


def again(file):
    """As somebody who has recorded all hellos, and as one who has not."""
    for said in hellos + [os.urandom(300)]:
        with connect() as stranger:
            stranger.settimeout(10)
            try:
                stranger.sendall(said)
                if stranger.recv(1):
                    print("answered", file=file)
            except ConnectionError:
                pass
    print("asked", file=file)


def swallow(source):
    while source.recv(1 << 16):
        pass


def hand_on(source, sink, answer, file):
    number = 0
    try:
        while (one := record(source)) is not None:
            number += one[0] == DATA
            if not answer and one[0] != DATA:
                hellos.append(one)
            if answer == answers and due(one, number, source):
                print("done", file=file)
                if act in ("cut", "end"):
                    break
                if act in ("part", "mute"):
                    if act == "part":
                        halves.add(sink)
                        sink.shutdown(socket.SHUT_RDWR)
                    swallow(source)
                    break
                if act == "late":
                    time.sleep(2)
                elif act == "again":
                    again(file)
                else:
                    one = bent(one, source, answer)
            else:
                kept[answer] = (kept[answer] + [one])[-20:]
            sink.sendall(one)
    except OSError:
        pass
    if source in halves:
        return
    for end, how in ((sink, socket.SHUT_WR), (source, socket.SHUT_RD)) if act == "end" else \
            ((sink, socket.SHUT_RDWR), (source, socket.SHUT_RDWR)):
        try:
            end.shutdown(how)
        except OSError:
            pass


with socket.create_server((address, port)) as listener, open(path, "w", buffering=1) as out:
    print("listening", file=out)
    while True:
        near = listener.accept()[0]
        try:
            far = connect()
        except OSError:
            near.close()
            continue
        for pair in ((near, far, False, out), (far, near, True, out)):
            threading.Thread(target=hand_on, args=pair, daemon=True).start()
