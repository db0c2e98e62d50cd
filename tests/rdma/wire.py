#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""wire.py CAPTURE CANARY - in which phases of a capture of a wire do bytes of a program appear?

A UDP packet to port 9 with "phase NAME" begins a phase.  CANARY is 16 bytes in hex; any 8 of them in a row count.
Fails unless every phase of a plain job (plain-NAME) has them in packets of RDMA, and nothing else has them in any frame;
each NAME has both phases.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "attack", "leakscan"))
from between import ETHERNET, UDP, end_of, ip_bytes, port   # noqa: E402
from leakscan import packets                                # noqa: E402

RDMA, WINDOW, PACKETS_LEAST, NAMES_LEAST = 4791, 8, 20, 3
NO_JOB = ("before", "end")


def counted(path, canary):
    windows = [canary[at:at + WINDOW] for at in range(len(canary) - WINDOW + 1)]
    phase, seen = "before", {}
    for frame in packets(path):
        rdma = port(frame) == RDMA
        if port(frame) == 9:
            phase = frame[ETHERNET + ip_bytes(frame) + UDP:end_of(frame)].decode().split()[1]
        of = seen.setdefault(phase, {"frames": 0, "rdma": 0, "shown": 0, "elsewhere": 0})
        of["frames"] += 1
        of["rdma"] += rdma
        if any(window in frame for window in windows):
            of["shown" if rdma else "elsewhere"] += 1
    return seen


def wrong(phase, of):
    if of["elsewhere"] > 0 or (of["shown"] == 0) == phase.startswith("plain-"):
        return True
    return phase not in NO_JOB and of["rdma"] < PACKETS_LEAST    # of a job that was not seen


def main(path, canary):
    seen = counted(path, bytes.fromhex(canary))
    for phase, of in seen.items():
        print(f"{phase}: {of['frames']} frames, {of['rdma']} of RDMA; the program's bytes are in {of['shown']} of"
              f" these, and in {of['elsewhere']} others{': WRONG' if wrong(phase, of) else ''}")
    names = {phase.removeprefix("plain-") for phase in seen if phase not in NO_JOB}
    missing = {f"{way}{name}" for name in names for way in ("plain-", "")} - set(seen)
    if missing or len(names) < NAMES_LEAST:
        print(f"{len(names)} names; there is no {', '.join(sorted(missing)) or 'more'}: WRONG")
    sys.exit(bool(missing) or len(names) < NAMES_LEAST or any(wrong(*one) for one in seen.items()))


if __name__ == "__main__":
    main(*sys.argv[1:])
