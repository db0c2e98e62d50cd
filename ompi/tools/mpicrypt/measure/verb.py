# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""What the verbs share: exit codes, messages, and options, which one text describes for the parser, --help and the manual."""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import signal
import sys
import textwrap
import time
from types import SimpleNamespace
from typing import Any, Callable, Iterator, NamedTuple, TextIO

OK, FAILED, USAGE, MISSING = range(4)       # as mpicrypt.h has them
SIZE_MAX = 2**64 - 1


class Refusal(Exception):
    """Ends a verb: an exit code, a sentence for the user, and what a job printed before."""

    def __init__(self, code: int, text: str, before: str = "") -> None:
        super().__init__(text)
        self.code, self.before = code, before


def require(holds: bool, text: str) -> None:
    if not holds:
        raise Refusal(USAGE, text)


def harmless(text: str) -> str:
    """For a terminal: a '?' instead of every character that could be part of a command to it."""
    return "".join(c if c in "\n\t" or c.isprintable() else "?" for c in text)


def say(text: str) -> None:
    """Prints at once, even into a pipe."""
    print(harmless(text), flush=True)


def size(text: str) -> int:
    found = re.fullmatch("([0-9]+)([KMG]?)", text.upper())
    value = int(found[1]) << 10 * " KMG".index(found[2] or " ") if found else SIZE_MAX + 1
    if value > SIZE_MAX:
        raise ValueError(f"'{text}' is not a number (with K, M or G for powers of 1024)")
    return value


def size_text(value: int) -> str:
    """64 KiB is written 64K, 100 is 100."""
    for suffix in ("", "K", "M"):
        if value < 1024 or value % 1024:
            return f"{value}{suffix}"
        value //= 1024
    return f"{value}G"


def names(text: str) -> list[str]:
    if "" in text.split(","):
        raise ValueError(f"'{text}' has an empty entry")
    return text.split(",")


def sizes(text: str) -> list[int]:
    return [size(word) for word in names(text)]


def between(least: float, most: float, parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """A value, or a list of them, within these limits."""
    def checked(text: str) -> Any:
        value = parse(text)
        for one in value if isinstance(value, list) else [value]:
            if not least <= one <= most:
                raise ValueError(f"{one} is not between {least} and {most}")
        return value
    return checked


def choice(*known: str) -> Callable[[str], str]:
    def checked(text: str) -> str:
        if text not in known:
            raise ValueError(f"there is no '{text}'; there are: {', '.join(known)}")
        return text
    return checked


def choices(*known: str) -> Callable[[str], list[str]]:
    return lambda text: [choice(*known)(word) for word in names(text)]


OPTION = r"^--([a-z-]+) ?(.*)\n(?:    .*\n)+?(?:    Default: (\S+)\.\n)?$"


def data(name: str) -> Any:
    """NAME.json, beside the program."""
    return json.loads(pathlib.Path(__file__).with_name(f"{name}.json").read_text(encoding="utf-8"))


def sections(name: str) -> dict[str, str]:
    """The parts of NAME.rst."""
    text = pathlib.Path(__file__).with_name(f"{name}.rst").read_text(encoding="utf-8").replace("``", "")
    return dict(re.findall(r"^\.\. (\w+)\n\n(.*?\n)(?=\n+\.\. |\Z)", text, re.MULTILINE | re.DOTALL))


def described(name: str, section: str) -> dict[str, str]:
    """The first paragraph of each entry of a section."""
    return {entry: " ".join(text.split())
            for entry, text in re.findall(r"^([a-z-]+)\n((?:    .+\n)+)", sections(name)[section], re.MULTILINE)}


def words(part: str, **values: Any) -> str:
    """A part of texts.rst, with these values and the date."""
    return sections("texts")[part].format(date=time.strftime("%Y-%m-%d", time.gmtime()), **values)


def count(number: int, word: str) -> str:
    return f"{number} {word}{'s' if number != 1 else ''}"


class Option(NamedTuple):
    name: str
    argument: str                               # empty: a flag
    parse: Callable[[str], Any]
    fallback: str                               # as the user would type it; empty: none

    def value(self, text: str) -> Any:
        try:
            if not text:
                raise ValueError("it is empty")
            return self.parse(text)
        except ValueError as error:
            raise Refusal(USAGE, f"--{self.name}: {error}") from error


class Verb:
    """NAME.rst describes it, section by section; the manual includes some of them.  An option whose description ends with a
    line "Default: VALUE." has this value if it is not given."""

    def __init__(self, name: str, parsers: dict[str, Callable[[str], Any]], operands: bool = False) -> None:
        """`parsers` of the arguments that are not any text.  `operands`: words that are not options are allowed."""
        self.name, self.operands, self.sections = name, operands, sections(name)
        self.options = [Option(name, argument, parsers.get(name, str), fallback) for name, argument, fallback
                        in re.findall(OPTION, self.sections["options"], re.MULTILINE)]

    def parse(self, arguments: list[str]) -> SimpleNamespace:
        """Every option by its name, '-' as '_'.  One without a value is None, or False if it is a flag."""
        table = {f"--{option.name}": option for option in self.options}
        values = {name: option.value(option.fallback) if option.fallback else None if option.argument else False
                  for name, option in table.items()}
        words, operands = iter(arguments), []
        for text in words:
            name, equals, value = text.partition("=")
            if self.operands and (text == "--" or not text.startswith("-")):
                operands += words if text == "--" else [text]
                continue
            require(name in table, f"{'unknown option' if text[:1] == '-' else 'unexpected word'} '{text}'; "
                    f"see 'mpicrypt {self.name} --help'")
            option = table[name]
            if not option.argument:
                require(not equals, f"{name} takes no value")
                values[name] = True
                continue
            given = value if equals else next(words, None)
            require(given is not None, f"{name} needs a value: {name} {option.argument}")
            values[name] = option.value(given)
        return SimpleNamespace(operands=operands, **{name[2:].replace("-", "_"): value for name, value in values.items()})

    def help(self) -> str:
        parts = dict(self.sections)
        summary, synopsis = parts.pop("about").splitlines()
        parts["options"] += "\n--help\n    Print this page.\n"
        parts = {"name": f"mpicrypt {self.name} - {summary}", "synopsis": f"mpicrypt {self.name} {synopsis}", **parts,
                 "exit status": sections("texts")["exits"]}
        return "\n\n".join(f"{title.upper()}\n{textwrap.indent(text.rstrip(), ' ' * 7)}" for title, text in parts.items())


def cannot_write(path: str, error: OSError) -> Refusal:
    return Refusal(FAILED, f"cannot write {path}: {error.strerror}")


def writable(*paths: str | None) -> None:
    """Checks before a long measurement that they can be written.  Leaves no file behind that was not there."""
    for path in paths:
        if path not in (None, "-"):
            there = os.path.lexists(path)
            try:
                with open(path, "ab"):
                    pass
                if not there:
                    os.unlink(path)
            except OSError as error:
                raise cannot_write(path, error) from error


@contextlib.contextmanager
def writing(path: str) -> Iterator[TextIO]:
    """To this file, or "-", which is standard output."""
    if path == "-":
        yield sys.stdout
        return
    try:
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as out:
            yield out
    except OSError as error:
        raise cannot_write(path, error) from error


class Tool(NamedTuple):
    """How mpicrypt started this program."""
    path: str
    profiles: str
    words: list[str]


def complain(verb: str, refusal: Refusal) -> None:
    print(f"{harmless(refusal.before)}mpicrypt {verb}: {harmless(str(refusal))}", file=sys.stderr, flush=True)


def run(verb: Verb, main: Callable[[SimpleNamespace, Tool], int | None]) -> int:
    """Returns the exit code.  The command is MPICRYPT PROFILES ARGUMENT...  Output that cannot be written is a failure."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.reconfigure(errors="surrogateescape")        # names of files and columns may be any bytes
    path, profiles, *arguments = sys.argv[1:]
    code = OK
    try:
        try:
            if {"--help", "-h"} & set(arguments):
                print(verb.help())
            else:
                code = main(verb.parse(arguments), Tool(path, profiles, arguments)) or OK
        except Refusal as refusal:
            code = refusal.code
            complain(verb.name, refusal)
        sys.stdout.flush()
    except OSError as error:
        code = FAILED
        print(f"mpicrypt {verb.name}: cannot write to standard output: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())      # drop what is still buffered
    return code
