# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Starts mpicrypt-mpi through the launcher, and finds out where that puts the ranks.  Open MPI's parameters are set in the
environment, which mpirun and srun both pass on, and which does not clash with what the user wrote after mpirun; the program
checks that they took effect.  rank/rank.h defines its output."""
from __future__ import annotations

import os
import pathlib
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import Callable, Iterable, NamedTuple

from .launch import Result, binds, is_srun, launch
from .verb import FAILED, MISSING, Refusal, between, choice, choices, size, sizes

# Open MPI ignores unknown parameters, but a plain job warns about those of encrypted messages.
OF_MESSAGES = tuple(f"OMPI_MCA_{name}" for name in ("crypt_", "btl_crypt_", "pml_crypt_", "coll_cryptag_"))
NOT_OF_MESSAGES = tuple(f"OMPI_MCA_crypt_{name}" for name in (
    "fips", "keystore", "pkcs11_", "required", "secret_on_netfs", "verbose"))
AT_ONCE = ("OMPI_MCA_odls_base_sigkill_timeout", "PRTE_MCA_odls_base_sigkill_timeout")
WINDOW = 16                     # messages of a stream (pairs)
RANKS_MAX = 1 << 20
LIBEXEC = pathlib.Path(__file__).resolve().parent.parent


def shapes(text: str) -> list[tuple[int, int]]:
    """What --shape says."""
    found = []
    for one in text.split(","):
        shape = re.fullmatch("([0-9]{1,6})x([0-9]{1,6})", one)
        nodes, width = (int(shape[1]), int(shape[2])) if shape else (0, 0)
        if nodes < 2 or width < 1:
            raise ValueError(f"'{one}' is not NODESxRANKS with two nodes or more, as in 4x2")
        if nodes * width > RANKS_MAX:
            raise ValueError(f"'{one}' has more than {RANKS_MAX} ranks")
        found.append((nodes, width))
    return found


OF_JOBS = {"size": between(0, 1 << 30, sizes), "shape": shapes, "order": choices("block", "cyclic"),
           "laps": between(1, 1000, size), "lap-ms": between(0.001, 60000, float), "mpirun": str.split, "mapping": str.split,
           "host": choice("ob1", "ucx", "cm")}


def program(given: str | None) -> str:
    """mpicrypt-mpi, or what the user gave instead."""
    path = given or str(LIBEXEC / "mpicrypt-mpi")
    if not os.access(path, os.X_OK):
        raise Refusal(MISSING, f"there is no program {path}; --program names another one")
    return path


@dataclass
class Plan:
    """What the options say about all jobs."""
    mpirun: list[str]
    mapping: list[str] | None
    program: str
    host: str | None            # the host PML; None: what an encrypted job takes
    bits: int
    laps: int
    lap_ms: float
    pin: bool
    cpus_per_rank: int          # 0: all that a rank can have
    local: bool = False         # one node will do
    window: int = WINDOW        # messages at once (pairs)
    words: tuple[str, ...] = ()                             # for every job
    iterations: Callable[[int], int] | None = None          # of a lap, by its size; None: as many as take lap_ms
    said: set[str] = field(default_factory=set)             # warnings of jobs, each shown once

    def plain(self, label: str = "plain", *settings: str) -> Column:
        return Column(label, 0, [f"pml={self.host}", *settings])

    def crypt(self, label: str, *settings: str, bits: int = 0, algorithm: str = "") -> Column:
        bits = bits or self.bits
        return Column(label, bits, ["pml=crypt", f"pml_crypt_host={self.host}", f"crypt_key_bits={bits}", *settings], algorithm)


class Column(NamedTuple):
    """One configuration."""
    label: str
    bits: int                   # 0: nothing is encrypted
    settings: list[str]         # PARAMETER=VALUE of Open MPI, the first that of pml
    algorithm: str = ""         # of coll/cryptag: columns with the same settings share a job
    words: tuple[str, ...] = ()                             # for mpicrypt-mpi

    @property
    def pml(self) -> str:
        return self.settings[0].partition("=")[2]


@dataclass(frozen=True)
class Variant:
    """What a line of a table measures, apart from the size."""
    ranks: int
    nodes: int = 0              # collectives: nodes, with `width` ranks each; 0: the launcher decides
    width: int = 0
    cyclic: bool = False
    name: str = ""
    words: tuple[str, ...] = ("--pairs=1", "--dims=2")      # for mpicrypt-mpi
    moved: Callable[[int, int], float] | None = None        # bytes in the time, by size and messages of a rank
    compute: int = 0            # percent of plain's time

    @property
    def order(self) -> str:
        return "cyclic" if self.cyclic else "block"

    def fits(self, rank: int, node: int) -> bool:
        return self.nodes == 0 or node == (rank % self.nodes if self.cyclic else rank // self.width)

    def mapping(self, srun: bool) -> list[str]:
        """Options that make the launcher place ranks in this way."""
        if self.nodes == 0:
            return ["--distribution=cyclic"] if srun else ["--map-by", "node"]
        if srun:
            return [f"--nodes={self.nodes}", f"--ntasks-per-node={self.width}", f"--distribution={self.order}"]
        return ["--map-by", f"ppr:{self.width}:node", *(["--rank-by", "node"] if self.cyclic else [])]


class Job(NamedTuple):
    """What a job has measured."""
    seconds: list[list[float]]  # [column][size]: medians of the laps
    work: list[list[float]]     # in that time
    unit: float                 # seconds of a unit of work
    messages: int               # of a rank in a step of a stencil


class Place(NamedTuple):
    """Where a rank runs.  `boot` identifies the machine, which virtual nodes share."""
    node: int
    host: str
    boot: str
    tcp: str
    cpus: tuple[int, ...]


@dataclass
class Site:
    """Where the launcher puts the ranks of a variant, and the jobs that run there."""
    plan: Plan
    variant: Variant
    places: list[Place] = field(default_factory=list)
    nodes: int = 0
    shared: bool = False        # several nodes are one machine
    tcp: str = ""               # congestion control
    pinning: str = ""
    library: str = ""
    processor: str = ""
    provider: str = ""
    host: str = ""              # of an encrypted job: the host PML, and what encrypts
    protection: str = ""
    kernel: bool = False        # all nodes have the module tls
    cpus: str = ""              # for --cpus; empty: ranks are not pinned
    each: int = 0               # the fewest processors that a rank is pinned or bound to
    crowded: bool = False       # more ranks than processors somewhere
    processors: float = 0       # the smallest share of a rank

    @classmethod
    def find(cls, plan: Plan, variant: Variant, encrypted: bool = False) -> Site:
        """Starts a job to find out; an encrypted one also sets the plan's host, unless that is given."""
        site, launcher = cls(plan, variant), " ".join(plan.mpirun)
        settings = [f"pml={plan.host}"]
        if encrypted:
            settings = ["pml=crypt", f"crypt_key_bits={plan.bits}", *([f"pml_crypt_host={plan.host}"] if plan.host else [])]
        command = site._command("nodes")
        result = launch(command, _environment(settings))
        if result.code != 0 or not site._read(result):
            raise failed(command, "(placement)", result)
        if not all(variant.fits(rank, place.node) for rank, place in enumerate(site.places)):
            raise Refusal(MISSING, f"'{launcher}' does not put {variant.width} ranks on each of {variant.nodes} nodes in "
                          f"{variant.order} order; --mapping has other words for it")
        if site.nodes < 2 and not plan.local:
            raise Refusal(MISSING, f"'{launcher}' puts all {variant.ranks} ranks on one node; two are needed")
        if encrypted and not site.protection:
            raise Refusal(FAILED, f"'{launcher}' started a job that is not encrypted: does it set pml?")
        site._divide()
        if plan.pin and 1 < plan.cpus_per_rank and site.each < plan.cpus_per_rank:
            print(f"mpicrypt: warning: --cpus-per-rank {plan.cpus_per_rank}: '{launcher}' leaves a rank only {site.each}",
                  file=sys.stderr)
        plan.host = plan.host or site.host
        return site

    def _read(self, result: Result) -> bool:
        """Reads what the verb nodes of mpicrypt-mpi wrote; false if some of it is missing."""
        self.library, self.processor, self.provider = (
            " ".join(text for [text] in result.said(name, 1)) for name in ("library", "processor", "provider"))
        for self.host, kernel, self.protection in result.said("seals", 3):
            self.kernel = kernel == "1"
        places = {int(rank): Place(int(node), host, boot, tcp, tuple(map(int, cpus.split(","))))
                  for rank, node, host, boot, tcp, cpus in result.said("rank", 6)}
        self.places = [place for _, place in sorted(places.items())]
        self.nodes = len({place.node for place in self.places})
        self.shared = len({place.boot for place in self.places}) < self.nodes
        kinds = {place.tcp for place in self.places}
        self.tcp = "different" if len(kinds) > 1 else "".join(kinds)
        return sorted(places) == list(range(self.variant.ranks))

    def _divide(self) -> None:
        """Gives each rank processors of its own, unless the launcher has bound ranks to different ones.  With fewer processors
        than ranks none is pinned, as that would decide which ranks share one."""
        machines = Counter(place.boot for place in self.places)
        sets = Counter((place.boot, place.cpus) for place in self.places)
        shares = [len(place.cpus) // sets[place.boot, place.cpus] for place in self.places]
        self.processors = min(len(place.cpus) / sets[place.boot, place.cpus] for place in self.places)
        together = len(machines) == len(sets)
        self.crowded, self.each = together and min(shares) == 0, min(shares)
        if together and self.plan.pin and not self.crowded:
            parts: list[tuple[int, ...]] = []
            used: Counter[str] = Counter()
            for place, share in zip(self.places, shares):
                each = self.plan.cpus_per_rank or share
                mine = place.cpus[used[place.boot]:][:each if each <= share else 1]
                used[place.boot] += len(mine)
                parts.append(mine)
            self.cpus, self.each = ",".join("+".join(map(str, mine)) for mine in parts), min(map(len, parts))
        bound = self.plan.pin and not self.crowded
        self.pinning = "pinned" if self.cpus else "bound by the launcher" if bound else "not pinned"

    @property
    def where(self) -> str:
        return (f"{self.nodes} node{'s' if self.nodes != 1 else ''}"
                f"{' (virtual: they share one machine)' if self.shared else ''}, ranks {self.pinning}"
                f"{', more ranks than processors' if self.crowded else ''}")

    def launcher(self) -> list[str]:
        plan, srun = self.plan, is_srun(self.plan.mpirun)
        mapping = self.variant.mapping(srun) if plan.mapping is None else plan.mapping
        command = [*plan.mpirun, *([] if plan.local else mapping)]
        # Otherwise mpirun would bind each rank to one core, and it could not be pinned to others.
        if plan.pin and plan.cpus_per_rank != 1 and not srun and not binds(command):
            command += ["--bind-to", "none"]
        return [*command, "-n", str(self.variant.ranks)]

    def _command(self, verb: str, sizes: list[int] | None = None) -> list[str]:
        plan, command = self.plan, [*self.launcher(), self.plan.program, verb]
        if sizes is not None:
            command += [f"--size={_list(sizes)}", f"--laps={plan.laps}", f"--lap-ms={plan.lap_ms:g}"]
            command += [f"--cpus={self.cpus}"] if self.cpus else []
        return command

    def seal(self, sizes: list[int]) -> Result:
        """Sealing without messages."""
        return launch(self._command("seal", sizes), _environment(
            [f"pml={self.plan.host}", f"crypt_key_bits={self.plan.bits}", f"mpi_yield_when_idle={int(self.crowded)}"]))

    def environment(self, column: Column) -> dict[str, str | None]:
        values = _environment([f"mpi_yield_when_idle={int(self.crowded)}", *column.settings])
        if column.pml != "crypt":
            values.update((name, None) for name in os.environ if name.startswith(OF_MESSAGES)
                          and not name.startswith(NOT_OF_MESSAGES) and name not in values)
        return values

    def times(self, pattern: str, columns: list[Column], sizes: list[int], units: list[int]) -> Job:
        """Runs a job, with `units` of work for each size, if any.  Several columns are algorithms of a collective."""
        plan, column = self.plan, columns[0]
        command = [*self._command(pattern, sizes), *self.variant.words, f"--window={plan.window}", f"--pml={column.pml}",
                   "--require=" + ",".join(one.partition("=")[0] for one in column.settings), *plan.words, *column.words]
        if plan.iterations:
            command.append(f"--iterations={_list(map(plan.iterations, sizes))}")
        if column.algorithm:
            command += [f"--choose=coll_cryptag_{pattern}_algorithm", "--choices=" + ",".join(one.algorithm for one in columns)]
        if units:
            command.append(f"--work={_list(units)}")
        result = launch(command, self.environment(column))
        laps: dict[tuple[int, int], list[tuple[float, float]]] = {}
        for of_size, _, seconds, work, number in result.said("value", 5):
            laps.setdefault((int(number), int(of_size)), []).append((float(seconds), float(work)))
        wanted = [[laps.get((number, size), []) for size in sizes] for number in range(len(columns))]
        complete = result.said("done", 0) and all(len(of) >= plan.laps for line in wanted for of in line)
        if result.code != 0 or not complete:
            raise failed(command, column.label, result)
        if result.err not in plan.said:
            plan.said.add(result.err)
            sys.stderr.write(result.err)
        seconds, work = ([[median(lap[part] for lap in of) for of in line] for line in wanted] for part in (0, 1))
        return Job(seconds, work, *(kind(*([word for [word] in result.said(name, 1)][-1:] or ["0"]))
                                    for kind, name in ((float, "unit"), (int, "messages"))))


def _list(values: Iterable[int]) -> str:
    return ",".join(map(str, values))


def _environment(settings: list[str]) -> dict[str, str | None]:
    """Parameters as variables, and those that make mpirun end at once after a signal: these jobs have nothing to save."""
    values = {f"OMPI_MCA_{name}": value for name, _, value in (setting.partition("=") for setting in settings)}
    return {**{name: os.environ.get(name, "0") for name in AT_ONCE}, **values}


def failed(command: list[str], label: str, result: Result) -> Refusal:
    status = "but its results are not complete" if result.code == 0 else "its messages are above"
    return Refusal(MISSING if result.code in (127, MISSING) else FAILED,
                   f"column {label}: this command ended with status {result.code}, {status}:\n    {' '.join(command)}",
                   result.err)
