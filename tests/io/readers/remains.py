# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Search for secrets in what a reader leaves where others may see it:

    remains.py NEEDLES process DIRECTORY COMMAND...     a command that reads, and writes more than a pipe holds: while it waits
                                                        there it is searched, and then killed by a signal that makes a core file
    remains.py NEEDLES pid PID                          a process, which goes on
    remains.py NEEDLES files PATH...

NEEDLES has a name and bytes in hexadecimal on each line.  A name that begins with control- must be found in memory and core, or
the search would prove nothing.  Prints a line for each place; the exit status is 1 if a secret was found, 2 if a control was not.
"""
import glob
import os
import re
import signal
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tool", "key"))
from memory import blocked_in_write, dumped

status = 0


def search(needles, place, texts, controls=False):
    """Prints what is found in a place; `controls`: they have to be."""
    global status
    texts = list(texts)
    found = sorted({name for name, raw in needles for form in (raw, raw[::-1], raw.hex().encode()) if any(form in text for text in texts)})
    secrets = [name for name in found if not name.startswith("control-")]
    missing = [name for name, _ in needles if controls and name.startswith("control-") and name not in found]
    status = max(status, 2 if missing else 1 if secrets else 0)
    print(f"{place}: {sum(map(len, texts))} bytes, {' '.join(secrets) or 'nothing'}" + "".join(f", {name} is missing" for name in missing))


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def look_at(needles, pid):
    for name in ("cmdline", "environ"):
        search(needles, name, [contents(f"/proc/{pid}/{name}")])
    for number in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{number}"
        if stat.S_ISREG(os.stat(path).st_mode):
            search(needles, "descriptor of " + os.readlink(path), [contents(path)])


def core_limit(pid):
    return re.search(r"^Max core file size +(\S+)", contents(f"/proc/{pid}/limits").decode(), re.M)[1]


def process(needles, directory, *command):
    out, full = os.pipe()
    with subprocess.Popen(command, stdout=full, cwd=directory) as child:
        os.close(full)
        while not blocked_in_write(child.pid):
            if child.poll() is not None:
                sys.exit(f"it ended before the pipe was full: status {child.returncode}")
            time.sleep(0.01)
        look_at(needles, child.pid)
        search(needles, "memory", dumped(child.pid), True)
        limit = core_limit(child.pid)
        child.send_signal(signal.SIGSEGV)
    os.close(out)
    cores = glob.glob(os.path.join(directory, "core*"))
    assert (limit in "01") == (not cores), (limit, cores)       # 1: less than a page
    for core in cores:
        search(needles, "core", [contents(core)], True)
        os.remove(core)
    if not cores:
        print("core: none, as its limit is", limit)


def files(needles, *paths):
    for path in paths:
        below = [os.path.join(place, name) for place, _, names in os.walk(path) for name in names]
        for file in filter(os.path.isfile, below if os.path.isdir(path) else [path]):
            search(needles, file, [contents(file)])


if __name__ == "__main__":
    with open(sys.argv[1], encoding="ascii") as file:
        needles = [(name, bytes.fromhex(digits)) for name, digits in map(str.split, file)]
    if sys.argv[2] == "pid":
        look_at(needles, sys.argv[3])
        search(needles, "memory", dumped(int(sys.argv[3])), True)
        print("core: limit", core_limit(sys.argv[3]))
    else:
        {"process": process, "files": files}[sys.argv[2]](needles, *sys.argv[3:])
    sys.exit(status)
