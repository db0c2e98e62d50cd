# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""mpicrypt bench PATTERN: the papers' benchmarks of communication, plain and encrypted compared within one run.

    for each variant (pairs, dimensions, computation, ranks on nodes):
        round 1: A B C ...   round 2: B C ... A   until the rule is satisfied

A letter is a job.  Most columns are a job of their own; algorithms of a collective are columns that share one, and take turns
in it.
"""
from __future__ import annotations

import copy
import math
import sys
from itertools import product
from types import SimpleNamespace
from typing import NamedTuple

from . import figure, nas, page, papers, report, table
from .columns import Columns
from .jobs import Column, Plan, Site, Variant, program
from .rounds import Series
from .tune_coll import RANKS_MAX, shapes
from .verb import (Option, Refusal, Tool, Verb, between, choice, choices, complain, harmless, names, require, size, sizes,
                   writable)

MESSAGE_SIZES = "1,1K,4K,16K,64K,256K,1M,8M"
WORKLOADS, ACCESSES, OPS = ("tile", "noncontig", "rows", "matmul"), ("row", "column", "block"), ("write", "read", "overwrite")


class Pattern(NamedTuple):
    sizes: str = MESSAGE_SIZES
    schemes: str = "tuned,naive,crypt"
    collective: bool = False


PATTERNS = {
    "pingpong": Pattern(),
    "pairs": Pattern(),
    "stencil": Pattern(),
    "allgather": Pattern("1,1K,4K,16K,64K,256K,1M", "ring,hop,auto,naive,o-ring,o-rd,o-rd2,c-ring,c-rd,hs1,hs2,hs3", True),
    "bcast": Pattern("1,1K,4K,16K,64K,128K,256K,1M", "auto,hop,binomial,chain", True),
    "alltoall": Pattern("1,1K,4K,16K,32K,64K,256K", "auto,hop,node,rows,pairs", True),
    "io": Pattern(),
    "nas": Pattern(schemes="naive,crypt"),
}

VERB = Verb(
    name="bench",
    summary="compare plain and encrypted communication between your nodes",
    synopsis="PATTERN [OPTION]... [COLUMN]...",
    description=
    "Compares communication between nodes, plain and encrypted. It starts jobs through mpirun.\n\n"
    "'pingpong': one-way time of a message. 'pairs': several senders each send a window of messages and get one answer; the "
    "time of a window. 'stencil': every rank computes, then exchanges a message with each neighbor of a periodic grid in 2, 3 "
    "or 4 dimensions; the time of a step. 'allgather', 'bcast', 'alltoall': collectives over all ranks, back to back; the time "
    "of a call on the slowest rank. 'io': all ranks write or read a file, from opening to closing, with a sync after writing; "
    "the size is the block size. 'nas': programs of the NAS Parallel Benchmarks that you have built; communication between "
    "nodes, all communication and the whole run, as in CryptMPI's Table III. 'all': mpicrypt speed and all of these but nas, "
    "with their defaults; io only if there is a --label.\n\n"
    "Each column of the results is one configuration, and plain is always the first. The columns of io are plain, plain-cycles "
    "(plain, in cycles of 4 MiB, as for encrypted files), messages (pml/crypt, plain files) and file (encrypted files, too), "
    "one for each of --bits. A COLUMN of your own is one quoted word: a name, then MCA parameters, such as 'big pml=crypt "
    "pml_crypt_chunk_size=524288'. If a parameter does not exist, or a job does not use the PML of its column, the benchmark "
    "ends with an error.\n\n"
    "Open MPI chooses the PML in MPI_Init, so each column is a job of its own (the algorithms of coll/cryptag share one). In "
    "every round each column has one short job, in rotating order, and ratios are taken within a round. Rounds go on until "
    "there are enough FAST ones; the rule is printed with the results. 'slow' is the ratio in the other rounds. For "
    "collectives and io, every round counts.",
    options=(
        Option("schemes", names, "LIST", None, "Columns in addition to plain. For messages (default: tuned,naive,crypt; for "
               "nas and --paper naive,crypt): tuned (plain, btl/tcp with fragments of 512 KiB and without put), raised (plain, "
               "btl/tcp with limits of 256 KiB), naive (plain, the benchmark encrypts every message with OpenSSL, as in the "
               "papers), bare (the same with pml/crypt's provider and one context), crypt (pml/crypt), crypt-tuned and "
               "crypt-raised (crypt with the settings of tuned and raised), pipe (crypt with one thread), threads (crypt with "
               "one chunk), both (crypt with chunks and threads), pml and btl (crypt with that crypt_transport), btl-ktls "
               "(btl, sealed by the kernel), socket and socket-sealed (for pingpong and pairs: one TCP socket of a pair, "
               "without MPI, plain or sealed in records of 16 KiB with pml/crypt's provider: the limit of a transport), "
               "socket-copied (socket-sealed, and the receiver copies each message once more). For collectives (default: all): "
               "ring (plain, Open MPI's ring all-gather), hop (pml/crypt with Open MPI's own algorithms, encrypting on every "
               "hop), auto (coll/cryptag's choice), and coll/cryptag's algorithms: for allgather naive, o-ring, o-rd, o-rd2, "
               "c-ring, c-rd, hs1, hs2, hs3; for bcast binomial, chain; for alltoall node, rows, pairs."),
        Option("bits", choices("128", "192", "256"), "LIST", "128", "Key sizes of the encrypted columns: 128, 192, 256."),
        Option("size", between(0, 1 << 30, sizes), "LIST", None, "Message sizes in bytes; K, M and G are powers of 1024. For "
               "allgather, what a rank contributes; for alltoall, the block between two ranks. Default: "
               f"{MESSAGE_SIZES}; for collectives at most 1M."),
        Option("pairs", between(1, 1 << 16, sizes), "LIST", "1,2", "For pairs: how many pairs at once."),
        Option("window", between(1, 1 << 16, size), "N", "64", "For pairs: messages in flight for each sender."),
        Option("both", None, None, None, "For pairs: both ranks of a pair send a window at once, and nobody answers."),
        Option("dims", between(2, 4, sizes), "LIST", "2,3,4", "For stencil: dimensions, 2 to 4."),
        Option("compute", between(0, 95, sizes), "LIST", "0,50", "For stencil: computation in percent of the time of a plain "
               "step, 0 to 95."),
        Option("ranks", between(2, RANKS_MAX, sizes), "LIST", "4", "For stencil and io: numbers of ranks. For nas: one "
               "number."),
        Option("dir", str, "DIR", ".", "For io: a directory that all nodes share."),
        Option("label", str, "LABEL", None, "For io: the label of the files' key (mpicrypt key new)."),
        Option("workload", choices(*WORKLOADS), "LIST", None, "For io: what the ranks access. Default: "
               "tile,noncontig,rows,matmul."),
        Option("access", choices(*ACCESSES), "LIST", None, "For io: how the ranks share a file. The encryption map is by rows; "
               "with row it equals the view. Default: row,column,block."),
        Option("op", choices(*OPS), "LIST", None, "For io: write a new file, read a file, or overwrite one. Not for matmul. "
               "Default: write,read,overwrite."),
        Option("data", between(1, 1 << 30, size), "SIZE", "8M", "For io: bytes of each rank."),
        Option("row", between(1, 1 << 30, size), "SIZE", "256K", "For io: bytes of a row of the file, a multiple of 16 x "
               "ranks."),
        Option("block-size", between(512, 16 << 20, sizes), "LIST", "64K", "For io: block sizes of the encrypted files."),
        Option("npb", str, "DIR", None, "For nas: where the NAS Parallel Benchmarks (MPI version) were built. The programs are "
               "in DIR/bin."),
        Option("kernels", names, "LIST", "cg,lu,sp,bt", "For nas: the programs."),
        Option("class", str, "LETTER", "D", "For nas: the problem class that was built."),
        Option("shape", shapes, "LIST", "4x2", "For collectives: NODESxRANKS, with RANKS on each node."),
        Option("order", choices("block", "cyclic"), "LIST", "block,cyclic", "For collectives: block (the ranks of a node are "
               "consecutive) or cyclic (ranks are placed round robin)."),
        Option("paper", None, None, None, "As in the papers. For collectives: shapes 8x16 and 7x13 and keys of 128 and 256 "
               "bits. For messages: CryptMPI's sizes, iterations, 1 to 16 pairs, 30, 60 and 80 % computation, 128 bits and "
               "stopping rule. If the nodes are too small, ranks or iterations are scaled down, and the results say so."),
        Option("per-cpu", between(1, 1024, size), "N", "8", "With --paper: the most ranks for each processor."),
        Option("percent", between(1, 100, size), "N", "100", "With --paper: percentage of the paper's iterations of "
               "messages."),
        Option("published", None, None, None, "Also show what the papers print: in the report of --html their ratios beside "
               "yours, after nas CryptMPI's Table III."),
        Option("fast", between(1, 10000, size), "N", None, "Stop when every size has N FAST rounds. A round is FAST if plain "
               "took at most 1.10 times the first quartile of plain's times. For collectives, io and nas: run N rounds, which "
               "all count. Default: 9, or --rounds if that is less. With --paper and messages: at least N rounds, by default "
               "10."),
        Option("rounds", between(1, 10000, size), "N", None, "Stop after N rounds in any case. Default: 36, or --fast if that "
               "is more; with --paper and messages, 100."),
        Option("quick", None, None, None, "A first look: at most 3 FAST rounds, 6 rounds and 3 laps. For io, the defaults are "
               "then tile,noncontig by row,column with write,read."),
        Option("laps", between(1, 1000, size), "N", "5", "Measurements of each size in a job; their median is its value."),
        Option("lap-ms", between(0.001, 60000, float), "MS", None, "Target duration of one of them, in milliseconds. Default: "
               "10; for collectives 50."),
        Option("mpirun", str.split, "COMMAND", "mpirun", "The launcher and its arguments, separated by blanks: 'mpirun "
               "--hostfile hosts', 'srun --mpi=pmix'."),
        Option("mapping", str.split, "WORDS", None, "Launcher options that place ranks round robin on nodes (default: --map-by "
               "node; for srun --distribution=cyclic) or, for collectives, by --shape and --order (default: --map-by "
               "ppr:N:node, with --rank-by node for cyclic, or their counterparts for srun). Not used with --local."),
        Option("host", choice("ob1", "ucx", "cm"), "NAME", "ob1", "The PML of plain, and the host of pml/crypt: ob1, ucx or "
               "cm."),
        Option("local", None, None, None, "Both partners on one node, where pml/crypt does not encrypt unless crypt_scope says "
               "so."),
        Option("no-pin", None, None, None, "Do not pin ranks. By default each rank is pinned to a core, if there are enough "
               "and the launcher does not bind."),
        Option("cpus-per-rank", between(1, 1024, size), "N", "1", "Pin each rank to N processors, if there are enough. With "
               "more than one, mpirun is told not to bind ranks, unless the command or the environment sets a binding."),
        Option("csv", str, "FILE", None, "Also write the results as CSV. '-' is standard output, instead of the table."),
        Option("raw", str, "FILE", None, "Also write the values of all rounds as CSV."),
        Option("json", None, None, None, "Print JSON instead of the table."),
        Option("plot", str, "FILE", None, "Also plot times, and ratios to plain, over message size. FILE ends in .svg or .png. "
               "It needs matplotlib (Debian: python3-matplotlib)."),
        Option("html", str, "FILE", None, "Write a report instead: one self-contained HTML page with tables and, by "
               "matplotlib, plots."),
        Option("program", str, "FILE", None, "Run this on the nodes instead of the installed mpicrypt-mpi."),
    ),
    examples="mpicrypt bench pingpong --mpirun 'mpirun --host a,b'\n"
             "mpicrypt bench pingpong --schemes raised,crypt,crypt-raised --bits 128,256\n"
             "mpicrypt bench pingpong --schemes pml,btl,socket,socket-sealed\n"
             "mpicrypt bench pairs --pairs 1,2,4 --size 4M --plot pairs.svg\n"
             "mpicrypt bench pairs --pairs 1,2 --both --schemes pml,btl,socket,socket-sealed\n"
             "mpicrypt bench stencil --ranks 16 --compute 25,50,75 --size 64K,1M\n"
             "mpicrypt bench allgather --shape 4x2,8x2 --order block,cyclic --plot allgather.svg\n"
             "mpicrypt bench allgather --paper --csv paper.csv\n"
             "mpicrypt bench all --mpirun 'mpirun --hostfile hosts' --html report.html\n"
             "mpicrypt bench io --dir /scratch --label results --quick --ranks 2,8,16\n"
             "mpicrypt bench io --dir /scratch --label results --workload tile --block-size 4K,64K,1M\n"
             "mpicrypt bench nas --npb NPB3.4-MPI --class C --ranks 64 --mpirun 'mpirun --hostfile hosts'",
    operands=True)


# ---- what the options leave open, and whether what they say can be ----

def _rounds(options: SimpleNamespace, messages_of_paper: bool) -> None:
    """Of --fast and --rounds, what is not given gives way."""
    least, most = (papers.LEAST, papers.MOST) if messages_of_paper else (9, 36)
    options.fast = options.fast or min(options.rounds or least, least)
    options.rounds = options.rounds or max(options.fast, most)
    if options.quick:
        options.fast, options.rounds, options.laps = min(options.fast, 3), min(options.rounds, 6), min(options.laps, 3)
    require(options.rounds >= options.fast, f"--rounds: {options.rounds} is not between {options.fast} and 10000")


def _as_in_paper(options: SimpleNamespace, name: str) -> None:
    if PATTERNS[name].collective:
        options.bits, options.shape = ["128", "256"], papers.SHAPES
        return
    require(name in papers.MESSAGES, "--paper is for messages (pingpong, pairs, stencil) and collectives")
    options.bits, options.pairs, options.compute = ["128"], [1, 2, 4, 8, 16], [30, 60, 80]
    options.size = options.size or sizes(papers.MESSAGES[name].sizes)
    options.window, options.laps, options.schemes = 64, 1, options.schemes or ["naive", "crypt"]


def _files(options: SimpleNamespace) -> None:
    """A file of whole rows for every rank, and rows of whole pieces."""
    require(not options.schemes, "--schemes: the columns of io are always plain, plain-cycles, messages and file")
    require(options.label is not None, "io needs --label")
    require(options.data % options.row == 0 and all(options.row % (16 * ranks) == 0 for ranks in options.ranks),
            "--row is a multiple of 16 x --ranks, --data one of --row")
    options.size = options.block_size
    for name, known, count in (("workload", WORKLOADS, 2), ("access", ACCESSES, 2), ("op", OPS, 2)):
        default = known[:count] if options.quick else known
        setattr(options, name, getattr(options, name) or list(default))


def settle(options: SimpleNamespace, name: str) -> None:
    """Everything that depends on the pattern."""
    pattern = PATTERNS[name]
    options.pattern, options.collective = name, pattern.collective
    options.paper_messages = options.paper and not pattern.collective
    require(not (pattern.collective and options.local), "--local is not for collectives, which are over all ranks")
    if options.paper:
        _as_in_paper(options, name)
    if name == "io":
        _files(options)
    _rounds(options, options.paper_messages)
    if name == "nas":
        require(options.raw is None and options.plot is None, "nas has no --raw and --plot")
    options.every = pattern.collective or name == "io" or options.paper_messages
    options.lap_ms = options.lap_ms or (50 if pattern.collective else 10)
    options.bits = [int(bits) for bits in options.bits]
    options.schemes = options.schemes or names(pattern.schemes)
    options.size = options.size or sizes(pattern.sizes)


def plan_of(options: SimpleNamespace) -> Plan:
    words = ["--both"] * options.both + ["--local"] * options.local
    if options.pattern == "io":
        words += [f"--io-dir={options.dir}", f"--data={options.data}", f"--row={options.row}"]
    paper = papers.MESSAGES[options.pattern] if options.paper_messages else None
    return Plan(options.mpirun, options.mapping, "", options.host, options.bits[0], options.laps, options.lap_ms,
                not options.no_pin and options.pattern != "nas", options.cpus_per_rank, options.local, options.window,
                tuple(words), paper and (lambda size: paper.iterations(size, options.percent)))


def columns_of(options: SimpleNamespace, plan: Plan) -> list[Column]:
    columns = Columns(plan, options.pattern, options.bits, options.size, [])
    columns.named("plain")
    if options.collective:
        columns.collective(options.schemes, PATTERNS[options.pattern].schemes)
    elif options.pattern == "io":
        columns.files(options.label)
    else:
        for name in options.schemes:
            if name != "plain":
                columns.named(name)
    for text in options.operands:
        columns.custom(text)
    return columns.found


# ---- variants ----

def _pairs(options: SimpleNamespace, plan: Plan) -> list[Variant]:
    factor, both, where = options.window * (2 if options.both else 1), " both ways" * options.both, ", one node" * options.local
    return [Variant(2 * pairs, name=f"{pairs} pair{'s' * (pairs > 1)} x {options.window}{both}{where}",
                    words=(f"--pairs={pairs}", "--dims=2"), moved=lambda size, _, pairs=pairs: factor * pairs * size)
            for pairs in options.pairs]


def _stencils(options: SimpleNamespace, plan: Plan) -> list[Variant]:
    many, where = len(options.ranks) > 1, ", one node" * options.local
    return [Variant(ranks, name=f"{dims}D {compute}%{f' {ranks} ranks' * many}{where}", words=("--pairs=1", f"--dims={dims}"),
                    moved=lambda size, messages: messages * size, compute=compute)
            for dims, ranks, compute in product(options.dims, options.ranks, options.compute)]


def _accesses(options: SimpleNamespace, plan: Plan) -> list[Variant]:
    """In matmul a rank reads matrix B more than once, and computes: bytes in its time say nothing."""
    found = []
    for ranks, workload in product(options.ranks, options.workload):
        matmul = workload == "matmul"
        for access, op in [("row", "run")] if matmul else product(options.access, options.op):
            ending = f" {ranks} ranks" * (len(options.ranks) > 1) + ", one node" * options.local
            bytes_moved = math.nan if matmul else options.data * ranks
            found.append(Variant(ranks, name=f"{workload} {access} {op}{ending}", words=(
                "--pairs=1", "--dims=2", f"--workload={workload}", f"--access={access}", f"--op={op}"),
                moved=lambda _size, _messages, moved=bytes_moved: moved))
    return found


def _shapes(options: SimpleNamespace, plan: Plan) -> list[Variant]:
    found, site = [], None
    for (nodes, width), order in product(options.shape, options.order):
        cyclic, of_paper, name = order == "cyclic", width, ""
        if options.paper:       # fewer ranks a node, if its processors would have more than --per-cpu each
            if site is None or site.variant.nodes != nodes:
                site = Site.find(plan, Variant(nodes, nodes, 1, cyclic))
            width = min(max(1, int(options.per_cpu * site.processors + papers.ROOM)), width)
            name = f"{nodes}x{width} {order} (paper: {nodes}x{of_paper})"
            options.scaling[name] = papers.shape_scaling(nodes, width, of_paper, site.processors, options.per_cpu)
        found.append(Variant(nodes * width, nodes, width, cyclic, name))
    return found


def variants_of(options: SimpleNamespace, plan: Plan) -> list[Variant]:
    options.scaling, options.processors = {}, 0
    if options.pattern == "pingpong":
        return [Variant(2, name="pingpong" + ", one node" * options.local)]
    make = {"pairs": _pairs, "stencil": _stencils, "io": _accesses}.get(options.pattern, _shapes)
    found = make(options, plan)
    if options.paper and options.pattern == "pairs":        # no more than --per-cpu ranks on a processor allow
        options.processors = Site.find(plan, found[0]).processors
        found = [one for number, one in enumerate(found)
                 if number == 0 or one.ranks / 2 <= options.per_cpu * options.processors + papers.ROOM]
    return found


# ---- one benchmark ----

def _measure(options: SimpleNamespace, plan: Plan, columns: list[Column], variant: Variant) -> Series:
    series = Series(Site.find(plan, variant), options.pattern, columns, options.size, options.every)
    if options.paper_messages:
        series.measure(options.fast, options.rounds, lambda series: papers.complete(series, options.fast))
        if not papers.complete(series, options.fast):
            print(f"mpicrypt bench: {series.variant}: after {len(series.rounds)} rounds the paper's rule was not satisfied",
                  file=sys.stderr)
        return series
    series.measure(options.fast, options.rounds)
    if series.fewest_fast() < options.fast:         # no failure
        print(f"mpicrypt bench: {series.variant}: {len(series.rounds)} rounds did not give {options.fast} FAST ones at every "
              "size", file=sys.stderr)
    return series


def run(options: SimpleNamespace, name: str) -> report.Report:
    """What was measured, if it was not nothing."""
    settle(options, name)
    if name == "nas":
        nas.check(options)
    plan = plan_of(options)
    columns = columns_of(options, plan)
    plan.program = program(options.program)
    if name == "nas":
        return nas.run(options, plan, columns)
    done: list[Series] = []
    variants = variants_of(options, plan)
    for variant in variants:
        try:
            done.append(_measure(options, plan, columns, variant))
        except Refusal as refusal:          # what has been measured is not lost
            if not done:
                raise
            complain("bench", refusal)
            print(f"mpicrypt bench: only {len(done)} of {len(variants)} parts have been measured; these are shown",
                  file=sys.stderr)
            return report.of_series(options, columns, done, refusal.code)
    return report.of_series(options, columns, done)


def main(options: SimpleNamespace, tool: Tool) -> int:
    known = ", ".join(PATTERNS)
    require(bool(options.operands), f"which benchmark: {known} or all?")
    name = options.operands.pop(0)
    require(name in PATTERNS or name == "all", f"there is no benchmark '{name}', only {known}, all")
    if name == "all" or options.html is not None:
        page.check(options, name)
        counted = copy.copy(options)
        _rounds(counted, options.paper and not (name in PATTERNS and PATTERNS[name].collective))
        return page.run(options, name, counted.fast, tool, run)
    require(not options.json or options.csv != "-", "--json and --csv - both want standard output")
    figure.check(options.plot)
    writable(options.csv, options.raw, options.plot)
    found = run(options, name)
    if options.json:
        print(table.document("bench", found.head, found.rows), end="")
    elif options.csv != "-":
        print(harmless(found.text), end="")
    table.to_csv(found.rows, options.csv)
    table.to_csv(found.raw, options.raw)
    if options.plot:
        figure.draw(name, found.panels, options.plot)
    return found.code
