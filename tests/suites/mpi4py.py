#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""What mpi4py's test suite said, with two PMLs.

  mpi4py.py out LIST SERIES                         arguments that leave tests out
  mpi4py.py compare LIST SERIES yes|no PLAIN SEALED directories of RANK.log files;
                                                    may anything be refused?

A line of LIST is

    SERIES (out | refused) PATTERN    REASON

with 4.1, 5.0 or 6.0, more with commas, or "any"; PATTERN stands for names such as
test_rma.TestRMAWorld.testPutGet.  "out": not run at all; "refused": pml/crypt does
not let it run, so that it may fail, or be skipped, there.
"""
import collections
import fnmatch
import glob
import os
import re
import sys

BAD = ("ERROR", "FAIL", "unexpected success")
ENDS = BAD + ("expected failure", "skipped", "ok")
TEST = re.compile(r"^\w+ \((test_\S+?)\)", re.MULTILINE)
END = re.compile(r"\.\.\. (?:.*\n)*?.*?(" + "|".join(ENDS) + r")\b")


def read_list(path, series):
    entries = []
    with open(path) as file:
        for line in file:
            words = line.split(None, 3)
            if words and not words[0].startswith("#") and {series, "any"} & set(words[0].split(",")):
                entries.append((words[1], words[2], words[3].strip()))
    return entries


def results(directory):
    """test -> how it ended, the worst over the ranks; and the number of ranks."""
    found, logs = {}, glob.glob(os.path.join(directory, "[0-9]*.log"))
    for log in logs:
        with open(log, errors="replace") as file:
            text = file.read().split("=" * 70, 1)[0]
        places = list(TEST.finditer(text))
        for place, after in zip(places, places[1:] + [None]):
            end = END.search(text, place.end(), after.start() if after else len(text))
            how = end.group(1) if end else "unfinished"
            found.setdefault(place.group(1), []).append(how)
    order = ("unfinished",) + ENDS
    return {name: min(how, key=order.index) for name, how in found.items()}, len(logs)


def compare(entries, may_refuse, plain_directory, sealed_directory):
    entries = [entry for entry in entries if entry[0] == "out" or may_refuse == "yes"]
    plain, ranks = results(plain_directory)
    sealed, sealed_ranks = results(sealed_directory)
    wrong, refused = [], collections.Counter()
    for directory, found in ((plain_directory, plain), (sealed_directory, sealed)):
        count = collections.Counter(found.values())
        print(f"{os.path.basename(directory)}: {len(found)} tests: "
              + ", ".join(f"{count[how]} {how}" for how in sorted(count)))
    for name in sorted(set(plain) | set(sealed)):
        before, now = plain.get(name, "not run"), sealed.get(name, "not run")
        if before == now:
            if now in BAD + ("unfinished",):
                print(f"    {name}: {now} with both")
            continue
        entry = next((one for one in entries if one[0] == "refused" and fnmatch.fnmatchcase(name, one[1])), None)
        print(f"    {name}: {before} -> {now}{' (refused)' if entry else ''}")
        if entry:
            refused[entry] += 1
        elif before in ("ok", "expected failure"):
            wrong.append(f"{name} passes over plain Open MPI only")
    for entry in entries:
        kind, pattern, reason = entry
        print(f"left out: {pattern}: {reason}" if kind == "out" else
              f"refused: {pattern}: {reason}: {refused[entry]} tests")
    if "ok" not in plain.values():
        wrong.append("nothing passes over plain Open MPI: nothing was compared")
    if not plain or ranks != sealed_ranks:
        wrong.append(f"logs are missing: of {ranks} ranks over plain Open MPI, of {sealed_ranks} over pml/crypt")
    print("\n".join(wrong) if wrong else "everything else that passes over plain Open MPI passes over pml/crypt")
    return 1 if wrong else 0


def out(entries):
    print(" ".join(f"-x {pattern}" for kind, pattern, _ in entries if kind == "out"))
    return 0


def main(words):
    if len(words) == 3 and words[0] == "out":
        return out(read_list(words[1], words[2]))
    if len(words) == 6 and words[0] == "compare":
        return compare(read_list(words[1], words[2]), *words[3:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
