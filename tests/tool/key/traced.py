#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Run a command under strace, and search for secrets in all that it and its children write, send, name, or give to a program:

    traced.py NEEDLES ALLOWED -- COMMAND...

NEEDLES as memory.py has them.  Only a write to a file whose name fits ALLOWED, a regular expression, may have one.
"""
import re
import subprocess
import sys
import tempfile

import memory

CALLS = "execve,execveat,open,openat,openat2,creat,memfd_create,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat," \
    "write,writev,pwrite64,pwritev,pwritev2,send,sendto,sendmsg,sendmmsg,connect,setxattr,fsetxattr,prctl"


def main():
    needles, allowed = sys.argv[1:3]
    command = sys.argv[sys.argv.index("--") + 1:]
    with tempfile.NamedTemporaryFile("r", dir=".") as trace:
        status = subprocess.call(["strace", "-f", "-v", "-y", "-xx", "-s", "2097152", "-e", "signal=none", "-e", "trace=" + CALLS,
                                  "-o", trace.name] + command)
        lines = trace.read().split("\n")
    bad = legal = 0
    # Paths behind descriptors are in hexadecimal, too.
    plain = re.compile(r"^\d+ +p?writev?\w*\(\d+<([^>]*)>")
    for name, forms in memory.secrets(needles):
        for how, needle in forms:
            digits = "".join("\\x%02x" % byte for byte in needle)
            for line in lines:
                if digits not in line:
                    continue
                to = plain.match(line)
                place = bytes.fromhex(to[1].replace("\\x", "")).decode() if to and "\\x" in to[1] else to[1] if to else line[:60]
                if to and re.search(allowed, place):
                    legal += 1
                else:
                    print("%s is in a call, as %s: %s" % (name, how, place))
                    bad += 1
    print("%d calls, %d that may have a secret, status %d" % (len(lines), legal, status))
    return 1 if bad or status or len(lines) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
