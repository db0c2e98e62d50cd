#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Run a command on a terminal of its own, and type when it asks:

    terminal.py [EXPECTED=TYPED ...] -- COMMAND...

TYPED is a line, or ^C, or kill (SIGTERM).  Prints what the terminal showed.  Exits as the command does, 128 + signal; 99 if what is
expected does not come, what was typed is shown, or the terminal has lost its echo.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios

TIOCGPTN = 0x80045430                   # the number of a terminal; Python has it from 3.13 on


def main():
    at = sys.argv.index("--")
    steps, command = [step.split("=", 1) for step in sys.argv[1:at]], sys.argv[at + 1:]
    pid, master = pty.fork()
    if pid == 0:
        os.execvp(command[0], command)
    number, = struct.unpack("i", fcntl.ioctl(master, TIOCGPTN, bytes(4)))
    slave = os.open("/dev/pts/%d" % number, os.O_RDWR | os.O_NOCTTY)
    shown, secrets = b"", []

    def show(until):
        nonlocal shown
        while until is None or until not in shown:
            if not select.select([master], [], [], 60)[0]:
                print("nothing came for a minute; expected: %s" % until)
                return False
            try:
                data = os.read(master, 4096)
            except OSError:
                data = b""
            if not data:
                return until is None
            shown += data
        return True

    good = True
    for expected, typed in steps:
        good = good and show(expected.encode())
        if not good:
            break
        shown = shown.split(expected.encode(), 1)[1]        # the next prompt is another
        if termios.tcgetattr(slave)[3] & termios.ECHO and "hrase" in expected:
            print("the terminal has echo at: " + expected)
            good = False
        if typed == "^C":
            os.write(master, b"\x03")
        elif typed == "kill":
            os.kill(pid, signal.SIGTERM)
        else:
            os.write(master, typed.encode() + b"\n")
            secrets += [re.sub(rb"^.*\x7f|\x15", b"", typed.encode())] if "hrase" in expected or "again" in expected else []
    if not good:
        os.kill(pid, signal.SIGKILL)
    # The slave that is open here keeps the terminal alive: its end does not tell that of the command.
    ended, status = 0, 0
    while True:
        if not ended:
            ended, status = os.waitpid(pid, os.WNOHANG)
        if select.select([master], [], [], 0.05)[0]:
            shown += os.read(master, 4096)
        elif ended:
            break
    sys.stdout.buffer.write(shown)
    for secret in secrets:
        if secret and secret in shown:
            print("what was typed is shown")
            good = False
    if not termios.tcgetattr(slave)[3] & termios.ECHO:
        print("the terminal has lost its echo")
        good = False
    if not good:
        return 99
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


if __name__ == "__main__":
    sys.exit(main())
