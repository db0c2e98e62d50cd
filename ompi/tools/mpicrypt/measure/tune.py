# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""mpicrypt tune: measure these nodes and write what suits them."""
from __future__ import annotations

import pathlib
import sys
import time
from types import SimpleNamespace

from . import figure, fit, table, tune_btl, tune_coll
from .jobs import Plan, Site, Variant, program
from .tune_pml import Tuning
from .verb import Option, Tool, Verb, between, cannot_write, choice, choices, require, say, size, sizes, writable

VERB = Verb(
    name="tune",
    summary="measure your nodes and write parameters that suit them",
    synopsis="[--coll] [--mpirun COMMAND] [--out FILE] [OPTION]...",
    description=
    "Without --coll: runs jobs of two ranks on two of your nodes. The first one shows whether btl/crypt or pml/crypt encrypts "
    "jobs with these options and this environment (crypt_transport, pml_crypt_host). The parameters of that component are "
    "tuned, and written to a file of MCA parameters, which does not choose what encrypts.\n\n"
    "btl/crypt (TCP): measures a ping-pong and a stream of messages, 1 B to 4 MiB, with several values of "
    "btl_crypt_eager_limit, btl_crypt_rndv_eager_limit, crypt_threads (if ranks have the processors) and btl_crypt_ktls (if "
    "the kernels can), each beside the default and the default once more. A value is taken if it is better by more than 2%, "
    "and by more than the default differs from itself.\n\n"
    "pml/crypt (UCX, libfabric, crypt_transport=pml): measures plain messages, and encryption alone with 1, 2, 4 ... threads; "
    "fits the model of the papers to that; measures encrypted messages, none of them used in the fit, with every number of "
    "chunks k and of threads t; and prints measured times beside predicted ones. Then it searches near the prediction: chunk "
    "sizes and (for ob1) the limits of btl/tcp. It writes what is faster than the defaults, and the model, which 'mpicrypt "
    "model' can read (option profile). The fit needs scipy (Debian: python3-scipy).\n\n"
    "With --coll: measures every algorithm of coll/cryptag for MPI_Allgather, MPI_Bcast and MPI_Alltoall at several sizes, "
    "and writes which is fastest from which size on: a file of rules for coll_cryptag_rules_file. Algorithms are compared by "
    "the median, over the jobs, of the time relative to the automatic choice. An algorithm is kept for the next size unless "
    "another is more than 3% faster.\n\n"
    "The nodes should be idle otherwise.",
    options=(
        Option("coll", None, None, None, "Write rules for coll/cryptag instead of parameters for messages."),
        Option("out", str, "FILE", None, "The file to write. Default: ompi-crypt-tuned.conf; with --coll coll-cryptag.rules, "
               "and '-' is standard output."),
        Option("quick", None, None, None, "A first look: 3 laps, and as few rounds as can decide anything (5 with btl/crypt, "
               "1 with pml/crypt, 2 with --coll), unless --laps or --rounds say otherwise. With btl/crypt and --coll only "
               "four sizes."),
        Option("shape", tune_coll.shapes, "LIST", "4x2", "With --coll: NODESxRANKS, with RANKS on each node. Rules of a shape "
               "also apply to larger shapes that were not measured."),
        Option("order", choices("block", "cyclic"), "LIST", "block,cyclic", "With --coll: block (the ranks of a node are "
               "consecutive) or cyclic (ranks are placed round robin)."),
        Option("size", between(0, 1 << 30, sizes), "LIST", None, "With --coll: sizes in bytes. Default: 1,256,1K,2K and so "
               "on, to 1M."),
        Option("no-search", None, None, None, "With pml/crypt: only measure and fit. The file gets the model, but no chunk "
               "size or limits."),
        Option("rounds", between(0, 1000, size), "N", "0", "With --coll: jobs for each operation, shape and order; 0 means 5. "
               "Without: FAST rounds of each step, out of at most twice as many; 0 means 7 with btl/crypt, 3 with pml/crypt. "
               "With btl/crypt fewer than 5 only show times."),
        Option("laps", between(1, 1000, size), "N", None, "Measurements of each size in a job; their median is its value. "
               "Default: 5."),
        Option("lap-ms", between(0.001, 60000, float), "MS", "10", "Target duration of one of them, in milliseconds."),
        Option("bits", choice("128", "192", "256"), "BITS", "128", "Key size: 128, 256 or, with pml/crypt, 192."),
        Option("mpirun", str.split, "COMMAND", "mpirun", "The launcher and its arguments, separated by blanks: 'mpirun "
               "--hostfile hosts', 'srun --mpi=pmix'."),
        Option("mapping", str.split, "WORDS", None, "Launcher options that place ranks as --shape and --order say. Default: "
               "as for 'mpicrypt bench'."),
        Option("host", choice("ob1", "ucx", "cm"), "NAME", None, "The host PML: ob1, ucx or cm. Default: what an encrypted "
               "job takes; with --coll ob1."),
        Option("cpus-per-rank", between(0, 1024, size), "N", "0", "Pin each rank to N processors, if there are enough. 0 "
               "means 1 with --coll, otherwise all that each of the two ranks can have, T0. The file suits jobs with as many "
               "for each rank."),
        Option("no-pin", None, None, None, "Do not pin ranks."),
        Option("csv", str, "FILE", None, "Also write the measurements as CSV."),
        Option("plot", str, "FILE", None, "With pml/crypt: also plot measured and predicted times. FILE ends in .svg or .png. "
               "It needs matplotlib (Debian: python3-matplotlib)."),
        Option("program", str, "FILE", None, "Run this on the nodes instead of the installed mpicrypt-mpi."),
    ),
    examples="mpicrypt tune --mpirun 'mpirun --host a,b'\n"
             "mpirun --mca pml crypt --mca mca_base_param_files ompi-crypt-tuned.conf ./app\n"
             "mpicrypt tune --coll --mpirun 'mpirun --hostfile hosts' --shape 4x16,8x16 --out site.rules\n"
             "mpirun --mca pml crypt --mca coll_cryptag_rules_file site.rules ./app")


def _write(path: str, lines: list[str]) -> None:
    text = "".join(line + "\n" for line in lines)
    if path == "-":
        print(text, end="")
        return
    try:
        pathlib.Path(path).write_text(text, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise cannot_write(path, error) from error


def _coll(options: SimpleNamespace, plan: Plan) -> None:
    plan.host, plan.cpus_per_rank = plan.host or "ob1", plan.cpus_per_rank or 1
    out = options.out
    of_sizes = options.size or (tune_coll.QUICK_SIZES if options.quick else tune_coll.SIZES)
    lines, rows = tune_coll.tune(plan, tune_coll.variants(options.shape, options.order), of_sizes,
                                 options.rounds or (2 if options.quick else 5), sys.stderr if out == "-" else sys.stdout)
    _write(out, lines)
    table.to_csv(rows, options.csv)
    if out != "-":
        say(f"Written to {out}.  Jobs read it by\n    mpirun --mca pml crypt --mca coll_cryptag_rules_file {out} ./app")


def _head(site: Site, provider: str, processors: int, what: str) -> list[str]:
    hosts = ", ".join(place.host for place in site.places)
    return [f"# Written by mpicrypt tune on {time.strftime('%Y-%m-%d', time.gmtime())}, on {hosts} ({site.processor}),",
            f"# for {site.plan.host}, {site.plan.bits}-bit keys ({provider}),",
            f"# ranks with {processors} processor{'s' if processors != 1 else ''}, TCP congestion control {site.tcp}.", "#",
            "# mpirun --mca mca_base_param_files FILE reads it (instead of the files that Open MPI",
            "# reads by default), or copy it into one of those.  It is for jobs in which", f"# {what}."]


def _pml(options: SimpleNamespace, site: Site) -> list[str]:
    if not fit.available():             # said before the measurement, not only after it
        say(f"There will be no model: {fit.LACKING}.")
    tuning = Tuning(site, options.rounds or (1 if options.quick else 3))
    tuning.run(not options.no_search)
    say(tuning.report())
    table.to_csv(tuning.cells, options.csv)
    figure.draw("measured and predicted", tuning.panels(), options.plot)
    return _head(site, tuning.provider, tuning.processors, "pml/crypt encrypts: over TCP only those with crypt_transport=pml, "
                 "which this does not set") + tuning.file_lines()


def _btl(options: SimpleNamespace, site: Site) -> list[str]:
    require(options.plot is None and not options.no_search,
            "--plot and --no-search are about the model of pml/crypt, and btl/crypt encrypts these jobs")
    rounds = options.rounds or (tune_btl.ENOUGH if options.quick else 7)
    taken, rows = tune_btl.tune(site, rounds, options.quick)
    table.to_csv(rows, options.csv)
    lines = [setting.replace("=", " = ", 1) for setting in taken]
    return _head(site, site.provider, site.each, "btl/crypt encrypts") + (lines or ["# Every default was best."])


def _messages(options: SimpleNamespace, plan: Plan) -> None:
    """The first job says what all of them use."""
    site = Site.find(plan, Variant(2), encrypted=True)
    say(f"{site.protection}\n{site.describe()}")
    lines = (_btl if site.protection.startswith("btl/") else _pml)(options, site)
    out = options.out
    _write(out, lines)
    best = "" if lines[-1][0] != "#" else "Every default is best; the file has only a comment.  "
    say(f"\n{best}Written to {out}.  Jobs read it by\n    mpirun --mca pml crypt --mca mca_base_param_files {out} ./app")


def main(options: SimpleNamespace, _tool: Tool) -> None:
    options.out = options.out or ("coll-cryptag.rules" if options.coll else "ompi-crypt-tuned.conf")
    figure.check(options.plot)
    writable(options.plot, options.csv, options.out)
    plan = Plan(options.mpirun, options.mapping, program(options.program), options.host, int(options.bits),
                options.laps or (3 if options.quick else 5), options.lap_ms, not options.no_pin, options.cpus_per_rank)
    (_coll if options.coll else _messages)(options, plan)
