# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""What `mpicrypt bench` compares.  A column is MCA parameters and words for mpicrypt-mpi; `plain`, the base, is first."""
from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .jobs import Column, Plan
from .verb import described, require

MOST = 32
# The default for encrypted files: cycles of collective calls that fit into a cache.
SHORT_CYCLES = "io_ompio_bytes_per_agg=4194304"
# For programs that cannot encrypt by themselves: messages in one piece, by one OpenSSL thread, on every hop of a collective.
WHOLE = "crypt_transport=pml pml_crypt_t=0:1:4G aead=openssl coll=^cryptag"
# On 5.0, coll/han takes precedence over coll/tuned.
RING = "coll=^han coll_tuned_use_dynamic_rules=1 coll_tuned_allgather_algorithm=ring"
SEALED = "--seal=BITS"
FIRST = {"allgather": "ring,hop,auto"}


def _collectives() -> dict[str, str]:
    """The columns of each: what every call may be left to, then the rows of the core's list of algorithms."""
    lists = re.findall(r"^#define OPAL_CRYPT_(\w+)S\(RUN, NAMED\)((?:.*\\\n)+.*)",
                       Path(__file__).with_name("algorithms.h").read_text(encoding="utf-8"), re.MULTILINE)
    found = {name.lower(): [word for word in re.findall(r'"([a-z0-9-]+)"\)', rows) if word != "hop"] for name, rows in lists}
    return {name: ",".join([FIRST.get(name, "auto,hop"), *words]) for name, words in found.items()}


COLLECTIVES = _collectives()


class Scheme(NamedTuple):
    crypt: bool
    settings: str = ""
    words: str = ""


def _scheme(text: str) -> Scheme:
    pml, *rest = text.split()
    ours = [word for word in rest if word.startswith("--")]
    return Scheme(pml == "pml=crypt", " ".join(word for word in rest if word not in ours), " ".join(ours))


# They are the first paragraph of a column's description.
SCHEMES = {name: _scheme(text) for name, text in described("bench", "columns").items()}


@dataclass
class Columns:
    """The columns of a pattern, in the order in which they are added."""
    plan: Plan
    pattern: str
    bits: list[int]
    sizes: list[int]
    found: list[Column]

    def add(self, name: str, scheme: Scheme, algorithm: str = "", bits: list[int] | None = None) -> None:
        """One for each key size, if anything is sealed."""
        for size in bits or (self.bits if scheme.crypt or SEALED in scheme.words else [0]):
            label = name if size == 0 or len(self.bits) == 1 else f"{name}-{size}"
            settings = scheme.settings.split()
            column = self.plan.crypt(label, *settings, bits=size) if scheme.crypt else self.plan.plain(label, *settings)
            require(len(self.found) < MOST, f"more than {MOST} columns")
            require(all(one.label != label for one in self.found), f"column {label} is there twice")
            self.found.append(column._replace(bits=size, algorithm=algorithm,
                                              words=tuple(scheme.words.replace("BITS", str(size)).split())))

    def named(self, name: str) -> None:
        require(name in SCHEMES, f"--schemes: there is no '{name}'; there are: {', '.join(SCHEMES)}")
        scheme, nas = SCHEMES[name], self.pattern == "nas"
        if "--socket" in scheme.words:
            require(self.pattern in ("pingpong", "pairs"), f"--schemes: {name} is for pingpong and pairs only")
            require(0 not in self.sizes, f"--schemes: {name} has no messages of 0 bytes")
        if self.plan.host != "ob1":
            require(not name.startswith("btl"), f"--schemes: {name} is a transport for the host ob1")
            require("btl_tcp_" not in scheme.settings, f"--schemes: {name} changes btl/tcp, which only the host ob1 uses")
        require(not nas or "--bare" not in scheme.words, f"--schemes: {name} is for messages of this benchmark's own")
        self.add(name, Scheme(True, WHOLE) if nas and name == "naive" else scheme)

    def collective(self, names: list[str], known: str) -> None:
        """Algorithms of coll/cryptag share one job, which changes a parameter between laps; `ring` needs its own."""
        for name in names:
            require(name in known.split(",") or name == "plain",
                    f"--schemes: there is no '{name}' for {self.pattern}; there are: {known}")
        if "ring" in names:
            self.add("ring", Scheme(False, RING))
        for bits in self.bits:
            for name in names:
                if name not in ("plain", "ring"):
                    self.add(name, Scheme(True), name, [bits])

    def files(self, label: str) -> None:
        self.add("plain-cycles", Scheme(False, SHORT_CYCLES))
        self.add("messages", Scheme(True), bits=self.bits[:1])
        self.add("file", Scheme(True, words="--algorithm=aes-BITS-gcm"))
        self.found = [one._replace(words=(*one.words, f"--label={label}")) if one.words else one for one in self.found]

    def custom(self, text: str) -> None:
        """NAME PARAMETER=VALUE..., encrypted if pml=crypt is among them."""
        name, *settings = text.split() or [""]
        for setting in settings:
            require(setting.find("=") > 0, f"column '{text}': '{setting}' is not PARAMETER=VALUE")
        require(name != "" and not set(name) & set("=,"), f"column '{text}' does not begin with a name")
        pml = ([setting[4:] for setting in settings if setting.startswith("pml=")] or [self.plan.host])[-1]
        rest = " ".join(setting for setting in settings if not setting.startswith("pml="))
        self.add(name, Scheme(pml == "crypt", rest), bits=self.bits[:1] if pml == "crypt" else None)
        if pml != "crypt":
            self.found[-1].settings[0] = f"pml={pml}"


def describe(column: Column, before: Column | None, pattern: str) -> str:
    """A line about a column, shorter if it shares the job of the one before."""
    joined = before is not None and column.algorithm and before.algorithm and column.settings == before.settings
    parts = ["sealed by the benchmark;"] * any(word.startswith("--seal=") for word in column.words)
    parts += ["over a socket, MPI only to start;"] * ("--socket" in column.words)
    parts += ["copied once more;"] * ("--copied" in column.words)
    parts += ["the same job"] if joined else column.settings
    chosen = f", in it coll_cryptag_{pattern}_algorithm={column.algorithm}" if column.algorithm else ""
    return f"{column.label:<14} {' '.join(parts)}{chosen}"
