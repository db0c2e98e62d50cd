# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""check.py TOOL-DIRECTORY FIXTURES bench|model|tune: the same figures as those on record."""
import contextlib
import importlib.util
import io
import itertools
import json
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys

tool, fixtures = (pathlib.Path(text).resolve() for text in sys.argv[1:3])
sys.path[:0] = [str(tool), str(fixtures)]
import papers  # noqa: E402
from measure import bench as bench_verb  # noqa: E402
from measure import figure, fit, formulas, model, page, report, verb  # noqa: E402


def require(holds: bool, what: str) -> None:
    if not holds:
        sys.exit(f"failed: {what}")


def recorded(name: str) -> list[tuple[str, str]]:
    """Words of a command, and what the C printed."""
    parts = (fixtures / f"{name}.expected").read_text().split("#### ")[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


def same(name: str, words: str, got: str, expected: str) -> bool:
    if "--json" not in words:
        return got == expected
    document = json.loads(got)
    return (document.pop("format"), document.pop("verb")) == (1, name) and document == json.loads(expected)


def check_model() -> None:
    cases = recorded("model")
    require([words for words, _ in cases] == (fixtures / "model.cases").read_text().splitlines(), "cases and records")
    for words, expected in cases:
        command = [sys.executable, "-I", "-B", str(tool / "mpicrypt-model"), "mpicrypt", str(tool / "profiles"),
                   *words.split()]
        got = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        require(same("model", words, got, expected), f"model {words}:\n{got}")
    print(f"model: {len(cases)} commands, {sum(text.count(chr(10)) for _, text in cases)} lines as on record")


def check_texts() -> None:
    """The text of a model says what the model says; what cannot be is refused."""
    comm = formulas.parse_comm("0:5.54:7.29e-5,17K:5.75:7.86e-05")
    require(formulas.to_text(comm) == "0:5.54:7.29e-05,17408:5.75:7.86e-05", "the text of communication")
    enc = formulas.parse_enc("0:.4:5265:843,32K:1.643:6072:4106")
    require(formulas.parse_enc(formulas.to_text(enc)) == enc, "the text of encryption")
    for text in ("", "0:1", "0:1:2:3", "1:1:1", "0:1:1,0:1:1", "0:1:-1", "0:nan:1", "0:1:1,", "0:1_0:1",
                 "0:1:1,1:1:1,2:1:1,3:1:1,4:1:1"):
        try:
            formulas.parse_comm(text)
        except ValueError:
            continue
        require(False, f"'{text}' is taken for a model")
    for text in ("64K:", "1:0", "1:1.5", "2:1,2:1", "1:1:1:1", "1:65537", ",".join(f"{n}:1" for n in range(33))):
        try:
            formulas.check_rule(text)
        except ValueError:
            continue
        require(False, f"'{text}' is taken for a table")
    formulas.check_rule("64K:2,128K:4:1M,512K:8")


def check_ratio_axis() -> None:
    """One outlier does not flatten the rest; without one, nothing is cut off."""
    for values, limit in (([0.9, 1.0, 1.1, 1.2, 40.0], 2.4), ([0.9, 1.0, 1.1, 1.2], 1.26), ([0.5, 0.6], 0.63)):
        panel = figure.Panel("", "", "", sized=True, ratio=True, curves={"a curve": dict(enumerate(values))})
        require(math.isclose(panel.limit(), limit), f"the axis of {values} ends at {panel.limit()}")


def check_without_matplotlib() -> None:
    """The numbers come all the same, and then what is missing, with its package."""
    sys.modules["matplotlib"] = None        # type: ignore[assignment]
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            model.main(model.VERB.parse(["--plot", "none.svg"]), verb.Tool("mpicrypt", str(tool / "profiles"), []))
    except verb.Refusal as refusal:
        require(refusal.code == verb.MISSING and "python3-matplotlib" in str(refusal), f"what is missing: {refusal}")
    else:
        require(False, "a plot without matplotlib")
    finally:
        del sys.modules["matplotlib"]
    require(out.getvalue().count("pingpong") == 4, f"the numbers without a plot: {out.getvalue()}")


def check_fit() -> None:
    """The parameters from which samples were made are found again."""
    truth = formulas.Model(formulas.parse_comm("0:5.54:7.29e-5,64K:17.5:5.1e-5"),
                           formulas.parse_enc("0:.4:5265:843,32K:1.643:6072:4106,1M:5.07:5893:5769"))
    sizes = [64 << shift for shift in range(19)]
    comm = [fit.Sample(size, 1, truth.comm_us(size)) for size in sizes]
    enc = [fit.Sample(size, threads, truth.enc_us(size, 1, threads)) for size, threads in itertools.product(sizes, (1, 2, 4, 8))]
    found = fit.model(comm, enc)
    for mine, expected in zip(found.comm + found.enc, truth.comm + truth.enc):
        for name, value in vars(expected).items():
            require(math.isclose(getattr(mine, name), value, rel_tol=1e-5), f"the fit: {mine}, not {expected}")
    alone = fit.enc([sample for sample in enc if sample.threads == 1])
    require(all(piece.next == 0 for piece in alone), f"one thread: {alone}")


def tune(words: list[str], seals: str) -> str:
    """What it prints and writes, as the record has it."""
    pathlib.Path("jobs").unlink(missing_ok=True)
    command = [sys.executable, "-I", "-B", str(tool / "mpicrypt-tune"), "mpicrypt", "profiles", "--program", "./mpicrypt-mpi",
               "--mpirun", str(fixtures / "launcher"), *words, "--out", "file", "--csv", "csv"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMPI_MCA_")}
    environment["SEALS"] = seals
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    for name in ("file", "csv"):
        out += f"---- {name}\n" + re.sub(" on 20..-..-..", " on DATE", pathlib.Path(name).read_text(), count=1)
    return out + f"---- jobs {pathlib.Path('jobs').read_text()}\n"


def executable(name: str) -> None:
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def bench(words: str) -> tuple[str, str]:
    """What it prints; and writes, and how many jobs it started."""
    for name in ("jobs", "csv", "raw"):
        pathlib.Path(name).unlink(missing_ok=True)
    command = [sys.executable, "-I", "-B", str(tool / "mpicrypt-bench"), "mpicrypt", "profiles", *shlex.split(words),
               "--program", "./mpicrypt-mpi", "--mpirun", str(fixtures / "launcher")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMPI_MCA_") and name != "SEALS"}
    result = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    said = "".join(line for line in result.stderr.splitlines(keepends=True) if " of the most that this step takes" not in line)
    rest = f"---- err\n{said}" if said else ""
    for path in (pathlib.Path("csv"), pathlib.Path("raw")):
        rest += f"---- {path}\n{path.read_text()}" if path.exists() else ""
    return result.stdout, f"{rest}---- jobs {pathlib.Path('jobs').read_text()}, status {result.returncode}\n"


def check_bench() -> None:
    for name in ("mpicrypt-mpi", "npb/bin/cg.S.4", "npb/bin/lu.S.x", "npb/bin/bt.S.8"):
        executable(name)
    cases = recorded("bench")
    require([words for words, _ in cases] == (fixtures / "bench.cases").read_text().splitlines(), "cases and records")
    for words, expected in cases:
        # The C showed the paper's table unasked.
        got, rest = bench(words + (" --published" if words.startswith("nas") else ""))
        start = expected.index("---- ")
        require(same("bench", words, got, expected[:start]) and rest == expected[start:], f"bench {words}:\n{got}{rest}")
        print(f"bench {words}: {expected.count(chr(10))} lines as on record")


def check_page() -> None:
    """Without matplotlib the page has its tables, and what is missing is named with its package."""
    found = report.Report({}, "a table & more", [])
    options = bench_verb.VERB.parse(["pingpong", "--html", "page", "--published"])
    sys.modules["matplotlib"] = None        # type: ignore[assignment]
    try:
        page.run(options, "pingpong", 1, verb.Tool("/bin/true", "profiles", []), lambda *_: found)
    except verb.Refusal as refusal:
        require(refusal.code == verb.MISSING and "python3-matplotlib" in str(refusal), f"what is missing: {refusal}")
    else:
        require(False, "pictures without matplotlib")
    finally:
        del sys.modules["matplotlib"]
    text = pathlib.Path("page").read_text()
    require("a table &amp; more" in text and "paper: CryptMPI" in text, "the tables without a picture")


def check_plot() -> None:
    """Every size is labeled; quartiles are drawn; an outlier stands at the edge, with its value."""
    panel = figure.Panel("", "", "", sized=True, ratio=True)
    for size, ratio in ((1, 1.0), (3000, 1.1), (65536, 1.2), (1 << 20, 40.0)):
        panel.add("a <curve>", size, ratio, ratio / 1.5, ratio * 1.5)
    plain, spread = io.StringIO(), io.StringIO()
    figure.draw("", [panel], spread)
    panel.spreads.clear()
    figure.draw("", [panel], plain)
    for word in ("1", "3000", "64K", "1M", "40", "a &lt;curve&gt;"):
        require(f">{word}</text>" in plain.getvalue(), f"no {word} in a plot")
    drawn, without = (out.getvalue().count("<path") for out in (spread, plain))
    require(drawn == without + 4, f"quartiles: {drawn} paths, {without} without them")


def near(mine: str, expected: str) -> bool:
    """The same words; a fit, and what it predicts, may differ in the sixth digit."""
    words, others = (re.findall(r"[-+]?[0-9.]+(?:e[-+]?[0-9]+)?|[^-+0-9.]+", text) for text in (mine, expected))
    return len(words) == len(others) and all(
        a == b or (a[0] in "-+.0123456789" and math.isclose(float(a), float(b), rel_tol=1e-5))
        for a, b in zip(words, others))


def check_tune() -> None:
    executable("mpicrypt-mpi")
    for words, expected in recorded("tune"):
        seals, *options = words.split()
        got = [line for line in tune(options, seals).splitlines() if not line.endswith("jobs ...")]
        lines = expected.splitlines()
        require(len(got) == len(lines), f"tune {words}: {len(got)} lines, not {len(lines)}")
        for mine, line in zip(got, lines):
            require(near(mine, line) if seals == "pml" else mine == line, f"tune {words}:\n{mine}\n{line}")
        print(f"tune {words}: {len(lines)} lines as on record")


if sys.argv[3] == "model":
    papers.check()
    check_texts()
    check_without_matplotlib()
    check_ratio_axis()
    check_model()
elif sys.argv[3] == "bench":
    check_page()
    if importlib.util.find_spec("matplotlib"):
        check_plot()
    else:
        print("plots not looked at: matplotlib is missing")
    check_bench()
elif fit.available():
    check_fit()
    check_tune()
else:
    print(f"not looked at: {fit.LACKING}")
    sys.exit(77)
