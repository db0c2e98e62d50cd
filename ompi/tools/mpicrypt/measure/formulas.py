# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""The performance model: how long a message takes, plain and encrypted, and which (k, t) is fastest.  Units: bytes,
microseconds, and bytes per microsecond.  The formulas and their sources are in docs/model.rst."""
from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Sequence


@dataclass(frozen=True)
class CommPiece:
    """A message of at least `start` bytes takes alpha + beta m."""
    start: float
    alpha: float
    beta: float


@dataclass(frozen=True)
class EncPiece:
    """t threads seal m bytes in alpha + m / (first + next (t - 1)); opening is taken to last as long."""
    start: float
    alpha: float
    first: float
    next: float


@dataclass(frozen=True)
class Model:
    """Pieces in rising order, the first from 0 bytes on."""
    comm: tuple[CommPiece, ...] = ()
    enc: tuple[EncPiece, ...] = ()

    def comm_us(self, size: float, flows: float = 1) -> float:
        """One message, while `flows` of them share the link."""
        piece = _piece(self.comm, size)
        return piece.alpha + piece.beta * flows * size

    def enc_us(self, size: float, pairs: float, threads: float) -> float:
        """One message of each of `pairs` ranks of a node, each sealed by `threads` threads."""
        piece = _piece(self.enc, size)
        return piece.alpha + pairs * size / (piece.first + piece.next * (pairs * threads - 1))

    def chopped_us(self, size: float, k: float, threads: float) -> float:
        """One way of a ping-pong in k chunks; k = 1, t = 1 is the naive scheme."""
        chunk = size / k
        enc = self.enc_us(chunk, 1, threads)
        return 2 * enc + (k - 1) * max(enc, _piece(self.comm, chunk).beta * chunk) + self.comm_us(chunk)

    def parts_us(self, size: float, first: float, k: float, threads: float) -> float:
        """As pml/crypt cuts it: a first part, sealed by one thread, and the rest in k chunks of t segments, each of which
        pays its latency on the wire."""
        if size <= first:
            return self.chopped_us(size, 1, 1)
        chunk = (size - first) / k
        enc, comm = self.enc_us(chunk, 1, threads), threads * self.comm_us(chunk / threads)
        return self.enc_us(first, 1, 1) + max(enc, self.comm_us(first)) + (k - 1) * max(enc, comm) + comm + enc

    def window_us(self, size: float, messages: float, pairs: float, flows: float, threads: float, open_after: bool) -> float:
        """Messages that a rank sends without waiting, while it receives as many.  `open_after`: they are opened after the last
        one has arrived; otherwise each while the next one arrives."""
        enc, comm = self.enc_us(size, pairs, threads), self.comm_us(size, flows)
        return enc + (messages - 1) * max(enc, comm) + comm + (messages if open_after else 1) * enc

    def with_link(self, beta: float | None, factor: float) -> Model:
        """With another time per byte, and the link `factor` times slower."""
        return replace(self, comm=tuple(
            replace(piece, beta=(piece.beta if beta is None else beta) * factor) for piece in self.comm))


def _piece(pieces: tuple[Any, ...], size: float) -> Any:
    return next((piece for piece in reversed(pieces) if size >= piece.start), pieces[0])


def powers(size: float, least: int = 1) -> list[int]:
    """Powers of two: the numbers of chunks, none smaller than `least`, that a message can be cut into."""
    return [1 << n for n in range(31) if n == 0 or size / (1 << n) >= least]


def choose(model: Model, size: float, ks: Sequence[int], threads: Sequence[int]) -> tuple[int, int]:
    """The (k, t) with the shortest time; of equal ones the fewest threads, then the fewest chunks."""
    return min(((k, t) for t in threads for k in ks), key=lambda choice: model.chopped_us(size, *choice))


def _entries(text: str, form: str, counts: range, most: int) -> list[list[float]]:
    """Entries separated by commas, of numbers separated by colons; the first number must rise from entry to entry."""
    entries: list[list[float]] = []
    for entry in text.split(","):
        found = [re.fullmatch(r"\s*\+?((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)([KMGkmg]?)", word)
                 for word in entry.split(":")]
        numbers = [float(one[1]) * 1024.0 ** " KMG".index(one[2].upper() or " ") for one in found if one]
        if len(numbers) < len(found) or len(found) not in counts or math.inf in numbers:
            raise ValueError(f"'{text}': an entry is not {form}")
        if entries and numbers[0] <= entries[-1][0]:
            raise ValueError(f"'{text}': sizes must rise")
        entries.append(numbers)
    if len(entries) > most:
        raise ValueError(f"'{text}': there are more than {most} entries")
    return entries


def parse_comm(text: str) -> tuple[CommPiece, ...]:
    pieces = tuple(CommPiece(*entry) for entry in _entries(text, "FROM:ALPHA:BETA", range(3, 4), 4))
    if pieces[0].start != 0:
        raise ValueError(f"'{text}': the first size must be 0")
    return pieces


def parse_enc(text: str) -> tuple[EncPiece, ...]:
    pieces = tuple(EncPiece(*entry) for entry in _entries(text, "FROM:ALPHA:A:B", range(4, 5), 4))
    if pieces[0].start != 0 or any(piece.first == 0 for piece in pieces):
        raise ValueError(f"'{text}': the first size must be 0, the rate A positive")
    return pieces


def check_rule(text: str) -> None:
    """Is it a table of threads by size, as pml_crypt_t takes it?"""
    for entry in _entries(text, "FROM:T or FROM:T:CHUNK", range(2, 4), 32):
        if any(value != int(value) for value in entry) or not 1 <= entry[1] <= 65536:
            raise ValueError(f"'{text}': sizes must be whole, and T a whole number of threads, at least 1")


def to_text(pieces: tuple[Any, ...]) -> str:
    return ",".join(":".join(f"{value:.9g}" for value in vars(piece).values()) for piece in pieces)
