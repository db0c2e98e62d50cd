# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""mpicrypt doctor --fabric: for each host that a job may have, a plain ping-pong of two nodes and an encrypted one.  Open MPI
and UCX name what carries them, in what they say when asked to be verbose; what protects an encrypted job, or why there is none,
it says itself.  A host that does not answer must not keep the others from being tried, so every job has a limit."""
from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from statistics import median
from types import SimpleNamespace
from typing import Any

from . import table
from .jobs import Column, Plan, Site, Variant
from .launch import LATE, PATIENCE, Result, launch
from .rounds import Progress
from .table import Column as Heading, Row
from .verb import FAILED, MISSING, OK, Tool

TOTAL, EACH = 30.0, 10.0        # seconds: of all jobs, of one
SIZES = [1, 4 << 10, 64 << 10, 4 << 20]         # the first for the latency, the last for the throughput
TEST = ["pingpong", f"--size={','.join(map(str, SIZES))}", "--laps=3", "--lap-ms=30"]
HOSTS = ("default", "ob1", "ucx", "cm")
VERBOSE = ["pml_base_verbose=10", "bml_base_verbose=10", "btl_base_verbose=20", "mtl_base_verbose=10", "mtl_ofi_verbose=1"]
WITHIN = ("self", "sm", "vader")                # BTLs that leave no node
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}           # for the mpirun that we chose
HEADINGS = [Heading("host", "host"), Heading("plain_over", "plain over"), Heading("crypt_over", "encrypted over"),
            Heading("content", "content"), Heading("plain_us", "us plain", 1), Heading("crypt_us", "us encrypted", 1),
            Heading("plain_GBps", "GB/s plain", 2), Heading("crypt_GBps", "GB/s encrypted", 2)]


class Verb:
    """What doctor/doctor.c has parsed: all words, some of them empty."""
    name = "doctor"

    @staticmethod
    def parse(arguments: list[str]) -> SimpleNamespace:
        mpirun, mapping, program, form = arguments
        return SimpleNamespace(mpirun=mpirun.split(), mapping=mapping.split() if mapping else None, program=program,
                               json=form == "json", csv=None)


VERB = Verb()


def _once(words: list[str]) -> str:
    return " ".join(dict.fromkeys(words))


def carrier(pml: str, text: str) -> str:
    """Transports, devices and addresses between the nodes, from verbose output of Open MPI 4.1 to 6.0 and of UCX.  4.1 calls a
    provider of libfabric "prov" and its device "provider"; later releases say "provider" and "provider:domain"."""
    if pml == "ucx":
        lanes = re.findall(r"(?:inter-node cfg#\d+ ?|ep_cfg\[\d+\]: ?)(?:tag|am)\(([^)]*)\)", text)
        return _once([word for lane in lanes if not lane.startswith("self/") for word in lane.split()])
    if pml == "cm":
        old, named = re.findall(r"mtl:ofi:prov: (\S+)", text), re.findall(r"mtl:ofi:provider: (\S+)", text)
        return _once(re.findall(r"\(  mtl\) Selected component \[(\w+)\]", text) + old + named
                     + re.findall(r"mtl:ofi:provider:domain: (\S+)", text))
    networks = [name for name in re.findall(r"Using (\w+) btl for send to", text) if name not in WITHIN]
    return _once(networks + sorted(re.findall(r"btl:tcp: now connected to (\S+), process", text)
                                   + re.findall(r"met rank \d+ by \w+: (?:at|from) (\S+), port", text)))


def complaint(result: Result, seconds: float) -> str:
    """Why a job did not run, as far as one sentence says it: that of our own program, or else the first of a help text."""
    if result.code == LATE:
        return f"no answer within {seconds:.0f} s"
    lines = [line for line in result.err.split("\n") if not line.startswith("[")]
    own = [line[14:] for line in lines if line.startswith("mpicrypt-mpi: ")]
    parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n|-{40,}", "\n".join(own[:1] or lines)) if part.strip()]
    if not parts:
        return f"status {result.code}, without a message"
    first = f"{parts[0]} {parts[1]}" if parts[0].endswith(":") and len(parts) > 1 else parts[0]
    return first.split(". ")[0].rstrip(".")


@dataclass
class Run:
    """A job, and what it has shown."""
    ran: bool = False
    pml: str = "-"              # of an encrypted job the one below pml/crypt, its host
    over: str = "-"             # that, and what carries it
    policy: str = ""            # what protects it, or why it did not run
    us: float = math.nan
    rate: float = math.nan      # GB/s

    @property
    def wrong(self) -> bool:
        return not self.ran and "wrong byte" in self.policy


@dataclass
class Fabric:
    """The jobs, and what they say of the nodes."""
    plan: Plan
    ends: float
    library: str = ""
    nodes: dict[str, dict[str, None]] | None = None             # what each has, in its order

    def run(self, column: Column) -> Run:
        site = Site(self.plan, Variant(1) if self.plan.local else Variant(2, 2, 1))
        verb = ["nodes"] if self.plan.local else TEST
        command = [*site.launcher(), self.plan.program, *verb, f"--pml={column.pml}", "--fabric"]
        seconds = min(EACH, self.ends - time.monotonic() - PATIENCE)
        if seconds <= 0:
            return Run(policy=f"not run: {TOTAL:.0f} s were over")
        result = launch(command, {**(ROOT if self.plan.local else {}), **site.environment(column)}, seconds)
        laps = [(int(size), float(lap)) for size, _, lap, _, _ in result.said("value", 5)]
        if result.code != 0 or not (self.plan.local or {size for size, _ in laps} == set(SIZES)):
            return Run(policy=complaint(result, seconds))
        self._learn(result)
        return self._seen(result, laps)

    def _learn(self, result: Result) -> None:
        self.library = " ".join(text for [text] in result.said("library", 1)) or self.library
        self.nodes = self.nodes or {}
        hosts = {rank: host for rank, _, host, _, _, _ in result.said("rank", 6)}
        for rank, text in result.said("has", 2):
            self.nodes.setdefault(hosts.get(rank, rank), {})[text] = None

    def _seen(self, result: Result, laps: list[tuple[int, float]]) -> Run:
        text = result.out + result.err
        seals = result.said("seals", 3)
        pml = seals[0][0] if seals else "".join(re.findall(r"selected (\w+) best priority", text)[:1]) or "?"
        first, last = ([lap for size, lap in laps if size == wanted] or [math.nan] for wanted in (SIZES[0], SIZES[-1]))
        return Run(True, pml, f"{pml}: {carrier(pml, text) or '?'}", seals[0][2] if seals else "", 1e6 * median(first),
                   SIZES[-1] / median(last) / 1e9)


def _row(host: str, plain: Run, crypt: Run, tested: bool) -> Row:
    either = plain.ran or crypt.ran
    return {"host": host, "taken": crypt.pml, "plain_over": plain.over, "crypt_over": crypt.over,
            "content": "wrong" if plain.wrong or crypt.wrong else "right" if tested and either else "-",
            "plain_us": plain.us, "crypt_us": crypt.us, "plain_GBps": plain.rate, "crypt_GBps": crypt.rate,
            "plain": "runs" if plain.ran else plain.policy, "encrypted": "runs" if crypt.ran else "does not run",
            "policy": crypt.policy}


def _lines(rows: list[Row]) -> list[str]:
    """What the policy does over each host, and why."""
    found = []
    for row in rows:
        found.append(f"{row['host']}: {'' if row['encrypted'] == 'runs' else 'no encrypted job: '}{row['policy']}")
        if row["plain"] != "runs":
            found.append(f"{row['host']}: no plain job: {row['plain']}")
    return found


def _nodes(nodes: dict[str, dict[str, None]]) -> list[str]:
    """Nodes that have the same share a line."""
    texts = dict.fromkeys(text for has in nodes.values() for text in has)
    return [f"{', '.join(host for host, has in nodes.items() if text in has)}: {text}" for text in texts]


def main(options: SimpleNamespace, tool: Tool) -> int:
    local = not options.mpirun
    plan = Plan(options.mpirun or ["mpirun"], options.mapping, options.program, None, 0, 0, 0, False, 0, local)
    fabric = Fabric(plan, time.monotonic() + TOTAL)
    rows: list[Row] = []
    for number, host in enumerate(HOSTS):
        if rows and rows[0]["encrypted"] == "runs" and rows[0]["taken"] == host:
            continue
        named = host != "default"
        Progress.show(f"{host}, plain", 2 * number, 2 * len(HOSTS))
        plain = fabric.run(Column("plain", 0, [f"pml={host if named else '^crypt'}", "hook=^crypt", *VERBOSE]))
        Progress.show(f"{host}, encrypted", 2 * number + 1, 2 * len(HOSTS))
        crypt = fabric.run(Column("crypt", 0, ["pml=crypt", *([f"pml_crypt_host={host}"] if named else []),
                                               "crypt_verbose=10", *VERBOSE]))
        rows.append(_row(host, plain, crypt, not local))
    Progress.end()
    nodes = fabric.nodes or {}
    head: dict[str, Any] = {"library": fabric.library, "nodes": {host: list(has) for host, has in nodes.items()}}
    text = [fabric.library, *_nodes(nodes), "", table.text(HEADINGS, rows), *_lines(rows)]
    if local:
        text += ["", "--mpirun names two nodes for the self-test."]
    table.show(options, "doctor", head, "\n".join(text) + "\n", rows)
    if any(row["content"] == "wrong" for row in rows):
        return FAILED
    if not any("runs" in (row["plain"], row["encrypted"]) for row in rows):
        return MISSING
    return OK if rows[0]["encrypted"] == "runs" else FAILED
