# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""The model's parameters, by least squares of relative errors, with scipy.  Communication is linear in (alpha, beta);
encryption, alpha + m / (A + B (t-1)), is not."""
from __future__ import annotations

import importlib.util
import math
from typing import NamedTuple

from .formulas import CommPiece, EncPiece, Model
from .verb import FAILED, MISSING, Refusal

ENC_PIECES = (0, 32 << 10, 1 << 20, math.inf)       # CryptMPI's
LACKING = "it needs scipy (Debian: python3-scipy)"


class Sample(NamedTuple):
    bytes: float
    threads: float
    us: float


def available() -> bool:
    return importlib.util.find_spec("scipy") is not None


def _line(samples: list[Sample], start: float) -> tuple[float, CommPiece]:
    """The sum of squared errors, and alpha and beta.  A negative alpha is replaced by the time of the smallest message
    (Modeling, footnote 3)."""
    from numpy import average, polyfit, square
    x, _, y = map(list, zip(*samples))
    beta, alpha = polyfit(x, y, 1, w=[1 / us for us in y])
    if alpha < 0:
        alpha = average([us for size, us in zip(x, y) if size == min(x)])
        beta = sum((us - alpha) * size / us**2 for size, us in zip(x, y)) / sum((size / us)**2 for size, us in zip(x, y))
    return sum(square([(alpha + beta * size) / us - 1 for size, us in zip(x, y)])), CommPiece(start, float(alpha), float(beta))


def comm(samples: list[Sample]) -> tuple[CommPiece, ...]:
    """Two pieces, split where the errors are smallest; one, if the measurements are too irregular for two.  No piece may say
    that longer messages take less time."""
    least, best = math.inf, None
    for split in dict.fromkeys(sample.bytes for sample in samples):
        parts = [[sample for sample in samples if (sample.bytes < split) == below] for below in (True, False)]
        if all(len({sample.bytes for sample in part}) > 1 for part in parts):
            (below, first), (above, second) = _line(parts[0], 0), _line(parts[1], split)
            if below + above < least:
                least, best = below + above, (first, second)
    for pieces in (best, (_line(samples, 0)[1],)):
        if pieces and all(piece.beta > 0 and piece.alpha >= 0 for piece in pieces):
            return pieces
    raise Refusal(FAILED, "what was measured is too irregular for a model: is the machine busy?")


def _enc_piece(samples: list[Sample], start: float) -> EncPiece:
    """Without samples of several threads, B is 0.  Threads that slow each other down add nothing."""
    from scipy.optimize import least_squares
    line = _line(samples, start)[1]                     # starting values, as if all were sealed by one thread
    rate = 1 / line.beta if line.beta > 0 else 1.0
    count = 3 if any(sample.threads > 1 for sample in samples) else 2

    def errors(scaled: list[float]) -> list[float]:
        alpha, first, following = [*scaled, 0][:3]
        return [(alpha + sample.bytes / max(1e-9, rate * (first + following * (sample.threads - 1)))) / sample.us - 1
                for sample in samples]

    found = least_squares(errors, [line.alpha, 1.0, 0.0][:count], bounds=([0, 1e-9, -math.inf][:count], math.inf),
                          x_scale="jac", xtol=1e-13, ftol=1e-13, gtol=1e-13)
    alpha, first, following = [*map(float, found.x), 0.0][:3]
    return EncPiece(start, alpha, first * rate, max(0.0, following * rate))


def enc(samples: list[Sample]) -> tuple[EncPiece, ...]:
    """CryptMPI's three pieces."""
    parts = [[sample for sample in samples if start <= sample.bytes < end] for start, end in zip(ENC_PIECES, ENC_PIECES[1:])]
    return tuple(map(_enc_piece, parts, ENC_PIECES))


def model(comm_samples: list[Sample], enc_samples: list[Sample]) -> Model:
    if not available():
        raise Refusal(MISSING, f"there is no fit: {LACKING}")
    return Model(comm(comm_samples), enc(enc_samples))
