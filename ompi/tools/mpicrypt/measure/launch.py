# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Running a command, and collecting what it writes.  It stays in this process group, so a terminal's signals reach both.  A
second signal would make mpirun leave its processes behind, so only one that came to this process alone is passed on, once.
While a command runs, signals are blocked and `sigwaitinfo` waits for them, as it says who sent one."""
from __future__ import annotations

import fcntl
import math
import os
import signal
import subprocess
import sys
import time
from itertools import takewhile
from typing import BinaryIO, NamedTuple

from .verb import harmless

PATIENCE = 0.8                  # seconds for a launcher that was told to end
LATE = 124                      # the exit code of one that was ended, as timeout(1) has it


class Result(NamedTuple):
    out: str
    err: str
    code: int                   # exit code, 128 + signal; 127: it could not be started

    def said(self, name: str, count: int) -> list[list[str]]:
        """What mpicrypt-mpi wrote: the words of each line "@mpicrypt NAME ...", `count` of them; the last may have blanks."""
        lines = [line.split(" ", count + 1) for line in self.out.split("\n")]
        return [words[2:] for words in lines if words[:2] == ["@mpicrypt", name] and len(words) == count + 2]


def _wait(process: subprocess.Popen[bytes], name: str, watched: set[signal.Signals], seconds: float) -> tuple[int, bool]:
    """Until it has ended.  The number of a signal that is to end us, or whether it took longer than `seconds`: either way the
    command then has PATIENCE."""
    caught, late, ends = 0, False, time.monotonic() + seconds
    while process.poll() is None:
        left = max(0.0, ends - time.monotonic())
        info = signal.sigtimedwait(watched, left) if math.isfinite(left) else signal.sigwaitinfo(watched)
        if info is None and (caught or late):
            if caught:
                print(f"mpicrypt: {name} (process {process.pid}) has not ended yet", file=sys.stderr)
            break
        if info is None:
            late, ends = True, time.monotonic() + PATIENCE
            process.terminate()
        elif info.si_signo != signal.SIGCHLD and not caught:
            caught, ends = info.si_signo, time.monotonic() + PATIENCE
            if info.si_code <= 0:               # sent by a process, to this one
                process.send_signal(caught)
    return caught, late


def _file() -> BinaryIO:
    """In memory, and opened for appending, so that a script that opens /dev/stderr again overwrites nothing."""
    number = os.memfd_create("output")
    fcntl.fcntl(number, fcntl.F_SETFL, os.O_APPEND)
    return open(number, "w+b")


def launch(command: list[str], settings: dict[str, str | None], seconds: float = math.inf) -> Result:
    """Run it with these settings in its environment (None: taken out), stdin empty, and wait, at most so long."""
    environment = {name: value for name, value in {**os.environ, **settings}.items() if value is not None}
    fatal = {number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
             if signal.getsignal(number) != signal.SIG_IGN}                     # nohup
    watched = fatal | {signal.SIGCHLD}
    with _file() as out, _file() as err:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
        try:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before))
            caught, late = _wait(process, command[0], watched, seconds)
        except OSError as error:
            return Result("", f"{command[0]}: {error.strerror}\n", 127)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if caught:
            sys.stdout.flush()
            os.kill(os.getpid(), caught)
        if late:
            process.kill()
            process.wait()
        code = LATE if late else process.returncode if process.returncode >= 0 else 128 - process.returncode
        out.seek(0), err.seek(0)
        return Result(*(harmless(os.fsdecode(file.read())) for file in (out, err)), code)


def is_srun(command: list[str]) -> bool:
    """Words before the first option may start another command: "nice srun"."""
    return any(os.path.basename(word) == "srun" for word in takewhile(lambda word: not word.startswith("-"), command))


def binds(command: list[str]) -> bool:
    """Does the command or the environment already set a binding of ranks?"""
    options = ("bind-to", "cpu-set", "cpu-list", "cpus-per-proc", "cpus-per-rank", "rankfile", "binding_policy")
    variables = {"OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy"}
    return any(option in word for word in command for option in options) \
        or any(word == "-rf" or ":pe=" in word.lower() for word in command) or bool(variables & os.environ.keys())
