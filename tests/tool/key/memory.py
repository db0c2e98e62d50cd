#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Stop a command where it writes to its standard output, and search for secrets in what others can see of it, or a core file
would have:

    memory.py NEEDLES CONTROL OUTPUT -- COMMAND...

NEEDLES, read when the command has stopped, has a name and a secret in hexadecimal as the first and last word of each line; they
are also searched for as digits.  @FILE is the key in a key file, or one in hexadecimal, which the command makes: it is read
afterwards.  CONTROL is text that must be
found in memory, or the search would prove nothing.  OUTPUT gets the standard output.  Memory that core files leave out (the flag
dd of smaps) is not searched.
"""
import os
import platform
import re
import subprocess
import sys
import time

WRITE = {"x86_64": 1, "aarch64": 64}[platform.machine()]


def blocked_in_write(pid):
    with open("/proc/%d/syscall" % pid) as file:
        words = file.read().split()
    return len(words) > 1 and words[0] == str(WRITE) and int(words[1], 16) == 1


def dumped(pid):
    """The readable memory that a core file would have."""
    with open("/proc/%d/smaps" % pid) as file:
        text = file.read()
    found = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) (\S+) .*?^VmFlags:([^\n]*)$", text, re.M | re.S)
    with open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
        for begin, end, rights, flags in found:
            if rights[0] != "r" or "dd" in flags.split() or "io" in flags.split():
                continue
            at = int(begin, 16)
            try:
                memory.seek(at)
                yield b"".join(iter(lambda: memory.read(min(1 << 20, int(end, 16) - memory.tell())), b""))
            except (OSError, ValueError, OverflowError):        # vvar, vsyscall
                continue


def secrets(path):
    """(name, [(how it is written, bytes)]) of the needles whose files are there."""
    with open(path) as file:
        lines = [line.split() for line in file if not line.startswith("#")]
    if not lines:
        sys.exit("there is nothing to search for")
    for name, *_, secret in lines:
        if secret[0] == "@":
            if not os.path.exists(secret[1:]):
                continue
            with open(secret[1:], "rb") as file:
                secret = re.search(rb"(?:^|^key plain )([0-9a-f]{64})$", file.read(4096), re.M)
            if not secret:              # wrapped
                continue
            secret = secret[1].decode()
        raw = bytes.fromhex(secret)
        yield name, [("bytes", raw), ("reversed", raw[::-1]), ("digits", secret.encode())]


def main():
    needles, control, output = sys.argv[1:4]
    command = sys.argv[sys.argv.index("--") + 1:]
    out, full = os.pipe()
    os.set_blocking(full, False)
    filled = 0
    try:
        while True:
            filled += os.write(full, b"x" * 4096)
    except BlockingIOError:
        pass
    os.set_blocking(full, True)
    process = subprocess.Popen(command, stdout=full)
    os.close(full)
    while not blocked_in_write(process.pid):
        if process.poll() is not None:
            print("it ended before it wrote anything: status %d" % process.returncode)
            return 1
        time.sleep(0.01)
    places = {"memory": list(dumped(process.pid))}
    for name in ("cmdline", "environ"):
        with open("/proc/%d/%s" % (process.pid, name), "rb") as file:
            places[name] = [file.read()]
    wanted = list(secrets(needles))
    with open(output, "wb") as file:
        data = b""
        while len(data) < filled:
            data += os.read(out, filled - len(data))
        while chunk := os.read(out, 65536):
            file.write(chunk)
    status = process.wait()
    bad = 0
    for name, forms in wanted:
        for how, needle in forms:
            for place, texts in places.items():
                if any(needle in text for text in texts):
                    print("%s is in %s, as %s" % (name, place, how))
                    bad += 1
    if not any(control.encode() in text for text in places["memory"]):
        print("the control is not found")
        bad += 1
    print("%d secrets, %d bytes of memory, status %d" % (len(wanted), sum(map(len, places["memory"])), status))
    return 1 if bad or status else 0


if __name__ == "__main__":
    sys.exit(main())
