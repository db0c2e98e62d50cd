# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""`mpicrypt tune` where pml/crypt encrypts: measure, fit the model, say how well it predicts, search around it.

The search tries one parameter at a time, beside what the step before has chosen (column "default"), in the same rounds.  A
value is taken if it is faster than that default by more than WORTH; less is noise.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from statistics import geometric_mean, median

from . import fit, table
from .columns import SCHEMES
from .figure import Panel
from .formulas import Model, choose, powers, to_text
from .jobs import Column, Site
from .rounds import Series
from .table import Row
from .verb import FAILED, Refusal, count, say, words

FIRST = 1 << 16                         # bytes of a message's first part: the default of pml_crypt_chop_min
DEFAULT_SEGMENT, LARGEST = 106400, 1 << 30
WORTH = 0.02
KS = (1, 2, 4, 8, 16, 32)
LIMITS = ("eager_limit", "rndv_eager_limit", "max_send_size")
RAISED = SCHEMES["raised"].settings.split()     # what pml/crypt sets for its own messages
COMM_SIZES = [1, 256, 1024, 4096, *(16384 << shift for shift in range(10))]
ENC_SIZES = [2048 << shift for shift in range(12)]
CELL_SIZES = [131072 << shift for shift in range(6)]
SEARCH_SIZES = [65536, 262144, 1 << 20, 4 << 20]


@dataclass
class Tuning:
    site: Site
    rounds: int
    processors: int = 1                 # T0, and max(1, T0 - 1)
    most_threads: int = 1
    provider: str = ""
    model: Model = field(default_factory=Model)
    cells: list[Row] = field(default_factory=list)
    chosen: dict[str, int] = field(default_factory=lambda: {"chunk": 0, "limit": 0})    # 0: the default
    before: float = 0.0                 # time over plain, geometric mean of sizes
    after: float = 0.0

    def run(self, search: bool) -> None:
        say("Measuring encryption alone, and plain messages ...")
        enc, comm = self._measure_enc(), self._measure_comm()
        try:
            self.model = fit.model(comm, enc)
        except Refusal:                     # print the measurements all the same
            say(table.text("samples", [{"what": what, **sample._asdict()} for what, samples in
                                             (("plain", comm), ("encryption", enc)) for sample in samples]))
            raise
        say("Measuring encrypted messages ...")
        for threads in dict.fromkeys(int(sample.threads) for sample in enc):
            self._measure_cells(threads)
        if search:
            say("Searching near the model's choice ...\n")
            self._step("chunk", self._chunk_sizes())
            if self.site.plan.host == "ob1":
                self._step("limit", [65536, 131072, 524288])

    def _series(self, columns: list[Column], sizes: list[int]) -> Series:
        series = Series(self.site, "pingpong", [self.site.plan.plain(), *columns], sizes)
        return series.measure(self.rounds, 2 * self.rounds)

    def _crypt(self, label: str, settings: list[str]) -> Column:
        return self.site.plan.crypt(label, "crypt_transport=pml", *settings)

    def _measure_enc(self) -> list[fit.Sample]:
        result = self.site.seal(ENC_SIZES)
        for threads, most in result.said("processors", 2):
            self.processors, self.most_threads = int(threads), int(most)
        self.provider = " ".join(name for [name] in result.said("provider", 1))
        laps: dict[tuple[int, int], list[float]] = {}
        for size, threads, _, seconds in result.said("sealed", 4):
            laps.setdefault((int(size), int(threads)), []).append(1e6 * float(seconds))
        if result.code != 0 or len(laps) < len(ENC_SIZES):
            raise Refusal(FAILED, f"{result.err}sealing could not be measured: status {result.code}")
        return [fit.Sample(size, threads, median(us)) for (size, threads), us in laps.items()]

    def _measure_comm(self) -> list[fit.Sample]:
        ob1 = self.site.plan.host == "ob1"
        series = self._series([self.site.plan.plain("raised", *RAISED)] if ob1 else [], COMM_SIZES)
        return [fit.Sample(size, 1, series.us(int(ob1), number).median) for number, size in enumerate(COMM_SIZES)]

    def _measure_cells(self, threads: int) -> None:
        """Every size in every number of chunks."""
        columns = []
        for k in KS:
            cut = ",".join(f"{size}:{threads}:{size // k}" for size in CELL_SIZES)
            columns.append(self._crypt(f"k{k}-t{threads}", [f"pml_crypt_chop_min={FIRST}", f"pml_crypt_t={cut}"]))
        series = self._series(columns, CELL_SIZES)
        for number, size in enumerate(CELL_SIZES):
            for column, k in enumerate(KS, 1):
                measured = series.us(column, number).median
                predicted = self.model.parts_us(size, FIRST, k, threads)
                self.cells.append({"k": k, "t": threads, "bytes": size, "measured_us": measured, "predicted_us": predicted,
                                   "error_percent": 100 * (predicted - measured) / measured,
                                   "papers_us": self.model.chopped_us(size, k, threads)})

    def errors(self, name: str) -> list[float]:
        """In percent."""
        return [100 * abs(cell[name] - cell["measured_us"]) / cell["measured_us"] for cell in self.cells]

    def settings(self, **tried: int) -> list[str]:
        """What was chosen, but for the threads; with something else instead."""
        chunk, limit = {**self.chosen, **tried}.values()
        return ([f"pml_crypt_chunk_size={chunk}"] if chunk else []) + [f"btl_tcp_{name}={limit}" for name in LIMITS if limit]

    def _step(self, name: str, candidates: list[int]) -> None:
        """The best of the candidates, 0 being the default."""
        threads = [f"pml_crypt_t={self.most_threads}"] if self.most_threads > 1 else []
        columns = [self._crypt(f"{name}-{value or 'default'}", threads + self.settings(**{name: value}))
                   for value in (0, *candidates)]
        series = self._series(columns, SEARCH_SIZES)
        sizes = range(len(SEARCH_SIZES))
        fallback, *scores = [geometric_mean([series.us(column, size).median / series.us(0, size).median for size in sizes])
                             for column in range(1, len(series.columns))]
        better = min(scores) < fallback * (1 - WORTH)
        self.chosen[name] = candidates[scores.index(min(scores))] if better else 0
        self.before, self.after = self.before or fallback, min(scores) if better else fallback

    def _chunk_sizes(self) -> list[int]:
        """Half of, as much as, and twice what the model says for 1 MiB and 4 MiB, and one eager fragment of btl/tcp, as
        pml/crypt raises it."""
        found = []
        for size in (1 << 20, 4 << 20):
            half = size // choose(self.model, size, powers(size, 16384), [self.most_threads])[0] // 2
            found += [value for value in (half, half * 2, half * 4) if 16384 <= value <= 4 << 20]
        return list(dict.fromkeys([*found, 262144 - 128]))[:8]

    def report(self) -> str:
        predicted, model = self.errors("predicted_us"), self.model
        pieces = [f"communication from {piece.start:8.0f} B: alpha {piece.alpha:7.2f} us, {1 / piece.beta:8.1f} MB/s"
                  for piece in model.comm]
        pieces += [f"encryption    from {piece.start:8.0f} B: alpha {piece.alpha:7.2f} us, A {piece.first:8.1f} MB/s, "
                   f"B {piece.next:8.1f} MB/s" for piece in model.enc]
        text = words("fitted", bits=self.site.plan.bits, provider=self.provider, processors=count(self.processors, "processor"),
                     threads=count(self.most_threads, "thread"), pieces="\n".join(pieces),
                     cells=table.text("cells", self.cells), median=median(predicted), largest=max(predicted),
                     count=len(predicted), papers=median(self.errors("papers_us")))
        return (text + (words("searched", **self.chosen, before=self.before, after=self.after) if self.before else "")).rstrip()

    def panels(self) -> list[Panel]:
        """One for each number of threads; a curve for each k, measured and predicted."""
        found: dict[int, Panel] = {}
        for cell in self.cells:
            panel = found.setdefault(cell["t"], Panel(count(cell["t"], "thread"), "message size (bytes)", "time (us)", True,
                                                      False))
            panel.add(f"k = {cell['k']}", cell["bytes"], cell["measured_us"])
            panel.add(f"k = {cell['k']}, predicted", cell["bytes"], cell["predicted_us"])
        return list(found.values())

    def _threads_table(self) -> str:
        """Threads by size, as the model chooses them; a chunk is a segment for each."""
        segment, entries, last = self.chosen["chunk"] or DEFAULT_SEGMENT, [], 0
        for size in (FIRST << shift for shift in range((LARGEST // FIRST).bit_length())):
            times = [self.model.parts_us(size, FIRST, max(1, size // (segment * threads)), threads)
                     for threads in range(1, self.most_threads + 1)]
            best = 1 + times.index(min(times))
            if best != last:
                entries.append(f"{size}:{best}:{segment * best}")
            last = best
        return ",".join(entries)

    def file_lines(self) -> list[str]:
        lines = [setting.replace("=", " = ") for setting in self.settings()]
        if self.most_threads > 1:
            lines.append(f"pml_crypt_t = {self._threads_table()}")
        model = words("model", papers=median(self.errors("papers_us")), median=median(self.errors("predicted_us")),
                      comm=to_text(self.model.comm), enc=to_text(self.model.enc))
        return lines + model.splitlines()
