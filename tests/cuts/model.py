#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""What kills and losses of power leave of an encrypted file that is one file:

    model.py [--deep] [--only SCENARIO] [RULE...]

Of each sequence of operations below every end of each is tried, and the next operation goes on
with what is there.  A block reads as it did before or as it was written, or, where the spec
says so, as a hole, torn or forged; whoever may write can go on; a seal fits or is gone.  Then
the same with a rule of the order left out, one by one, in a scenario that needs it: the model
has to object.  --deep: longer sequences, more rooms, and processes that are not durable, whose
blocks may be forged after a loss of power, but are never another block's.
"""
import argparse
import sys
import time

from explore import Explorer, Finish, Outsider, Seal, SetSize, Violation, Write
from interleave import interleavings
from making import making


def text(*sectors, by="n"):
    return {sector: "%s%d" % (by, sector) for sector in sectors}


OLD = Write(text(0, 1, 2, 3, by="o"))                    # one block of each region
FULL = Write(text(*range(8), by="o"))                    # a whole group
ALL = Write(text(*range(8), by="z"))


def near(explorer, deep):
    """Overwrites and extensions, and what follows them."""
    start = explorer.start(OLD)
    first = (Write(text(0, 1)), Write(text(1)), Write(text(0, 1, 2, 3)), Write(text(4)), Write(text(3, 4, 5)), Write(text(7)), Write(text(9)),
             SetSize(0), SetSize(1), SetSize(3), SetSize(6), SetSize(11))
    then = (Write(text(1, by="b")), Write(text(2, by="b"), keys=(1,)), Write(text(0, 3, by="b")), Write(text(6, by="b")), SetSize(1), SetSize(5))
    explorer.explore(start, first, then if deep else then[:2])
    if deep:
        explorer.explore(start, first[:4] + first[7:9], then[:2] + then[4:5], (ALL, SetSize(2)))


def odd_ends(explorer, deep):
    """The file ends within a block."""
    start = explorer.start(Write(text(0, 1, 2, by="o")))
    first = (Write(text(3)), Write(text(2, 3)), Write(text(3, 4)), Write(text(6)), SetSize(5), SetSize(1))
    explorer.explore(start, first, (Write(text(3, 4, by="b")), SetSize(2), SetSize(7), Write(text(0, by="b"), keys=(0,))))
    # Lengthened by one without the key of the block that it ends in.
    longer, set_size = Write(text(4, by="b"), keys=(0,)), SetSize(7, keys=(0,))
    set_size.may_end = ("done", "no key")
    explorer.explore(start, first[:2], (longer, set_size), (Finish(), Write(text(5, by="c"), keys=(0,)), SetSize(3), SetSize(8)))


def strangers(explorer, deep):
    """A survivor without the key of what was being overwritten, in a group whose only room that has."""
    start = explorer.start(FULL)
    explorer.explore(start, (Write(text(0, 1)), Write(text(1, 4))), (Write(text(2, by="b"), keys=(1,)), Write(text(2, 3, 7, by="b"), keys=(1,))),
                     (Write(text(0, by="c"), keys=(0,)), Write(text(6, by="c"), keys=(1,))) if deep else (Write(text(6, by="c"), keys=(1,)),))
    # One that was given up, and the room used for the same block again.
    explorer.explore(start, (Write(text(0, 1)),), (Finish(),), (Write(text(0, by="b")),), (Write(text(2, by="c"), keys=(1,)),))
    # A room that has an old version of a block which was written since without one.
    again = explorer.start(FULL, Write(text(0, 1, by="p")), SetSize(0), FULL)
    explorer.explore(again, (Write(text(2, 3), keys=(1,)),))
    # A block behind the end, and one that ends there.
    explorer.explore(start, (Write(text(4, 5)),), (SetSize(3),), (Write(text(2, by="b"), keys=(1,)),))
    explorer.explore(explorer.start(Write(text(0, 1, 2, 3, 4, by="o"))), (Write(text(4, 5)),), (SetSize(4),), (Write(text(2, by="b"), keys=(1,)),))


def rooms_again(explorer, deep):
    """One room for the blocks of a call, one after the other."""
    start = explorer.start(FULL)
    explorer.explore(start, (Write(text(0, 1, 2, 3)), Write(text(0, 2, 4))), (Write(text(0, 5, by="b")), Write(text(2, by="b"), keys=(1,))))
    explorer.explore(start, (Write(text(0, 1)),), (Finish(), Write(text(4, by="a"))), (Write(text(4, by="b")),))


def outsiders(explorer, deep):
    start = explorer.start(FULL)
    cuts = (Outsider(1, 8), Outsider(1), Outsider(3, 4), Outsider(5, 8), Outsider(0, 2))
    go_on, other = Write(text(*range(8), by="b")), Write(text(2, 3, by="b"), keys=(1,))
    other.may_end = ("done", "forged")
    explorer.explore(start, (Write(text(0, 1)),), cuts, (go_on, other, SetSize(2)) if deep else (other,))
    explorer.explore(start, (Write(text(2, 3)), Write(text(4, 5))), cuts if deep else cuts[3:4], (go_on,))
    longer = Write(text(6))
    explorer.explore(start, (Outsider(1), Outsider(2), Outsider(4)), (longer, SetSize(8), Write(text(9))))


def seals(explorer, deep):
    start = explorer.start(Write(text(0, 1, 2, 3, 9, by="o")))
    explorer.explore(start, (Seal(),), (Write(text(1)), SetSize(3)), (Seal(),))
    explorer.explore(start, (Write(text(0, 1)),), (Seal(),), (Write(text(2, by="b")),))
    explorer.explore(start, (Seal(),), (Write(text(4)), SetSize(11)))


def voids(explorer, deep):
    """The file was cut, and is lengthened; once more after whoever did it was killed."""
    start = explorer.start(FULL, SetSize(2))
    longer = (SetSize(4), SetSize(8), Write(text(4)), Write(text(2, 6)))
    explorer.explore(start, longer, longer, (Write(text(4, 5, by="b")), SetSize(3)) if deep else ())


SCENARIOS = {scenario.__name__: scenario for scenario in (near, odd_ends, strangers, rooms_again, outsiders, voids, seals)}
OTHERS = {"interleavings": interleavings, "making": making}
# How processes are: durable, losses of power, rooms of a group.
MODES = ((True, True, 1), (True, True, 2), (False, False, 1), (False, True, 1), (False, False, 2))

# What is left out, the scenario that needs it (a number: that pair of interleavings), and what it is.
RULES = {
    "first-data": ("near", "a first write waits for its data before its entries"),
    "data-first": ("near", "data of a first write, then its entries"),
    "before-marks": ("near", "what rooms had before is on the storage before they are used again"),
    "marks-first": ("voids", "marks, then data"),
    "entries-rooms": ("near", "entries of a round are there before its rooms are used again"),
    "rooms-data": ("near", "rooms are, before data is overwritten"),
    "room-first": ("near", "the room, then the data"),
    "data-entries": ("near", "data is, before its entry"),
    "check": ("near", "a room that is not whole is free"),
    "needed": ("near", "a room is finished only if the block's entry needs it"),
    "room-finish": ("near", "a room that is needed is finished before it is used"),
    "room-wait": ("near", "whoever needs a room finishes it without the key, too"),
    "room-block-lock": (2, "under the lock of its block"),
    "stale-head": ("strangers", "a version that was given up is wiped out before a mark leads to its room again"),
    "finish-data": ("strangers", "a finisher waits for the data before the entry"),
    "redo-room": ("strangers", "one without the key for the room before it overwrites the data"),
    "redo-data": ("strangers", "and for the data"),
    "was-cut": ("outsiders", "the room of a block that was cut by others does not count"),
    "redo-was-cut": ("outsiders", "nor without the key"),
    "void-zero": ("voids", "entries behind the end lose their versions before the file is lengthened"),
    "void-before": ("odd_ends", "once what cut it is on the storage"),
    "void-sync": ("voids", "and this is, too, before the file is longer"),
    "void-mark": ("voids", "and leaves a sign that it was done"),
    "cut-locks": (5, "a truncation has the locks of all that it cuts"),
    "cut-reseal": ("odd_ends", "the block that is cut is sealed anew"),
    "cut-truncate-first": ("voids", "the file is cut before entries are cleared"),
    "unseal-sync": ("seals", "the seal is gone before anything is written"),
    "seal-sync": ("seals", "all of it is there before the state says so"),
    "zeros-attribute": ("making", "512 zeros with an attribute are an unfinished file"),
    "make-state-0": ("making", "an empty file that is made anew is unfinished first"),
    "make-header": ("making", "the header is alone in the file at first"),
    "make-sector": ("making", "and in one sector"),
    "make-at-once": ("making", "and not in one write with the map"),
    "make-maps": ("making", "the maps are there before the state says so"),
    "map-before": ("making", "a change waits for what others wrote"),
    "map-repair": ("making", "both places hold the same before one is written"),
    "map-sync": ("making", "one place, then the other"),
    "map-attribute": ("making", "the attribute is newer than neither"),
}


def run(name, broken=(), deep=False, mode=MODES[0]):
    """How many states and operations there were; or Violation."""
    if name in SCENARIOS:
        explorer = Explorer(broken, *mode)
        SCENARIOS[name](explorer, deep)
        return explorer.states, explorer.runs
    return interleavings(broken, deep, [name]) if isinstance(name, int) else OTHERS[name](broken, deep)


def kept(names, deep):
    for name in names:
        for mode in MODES if deep and name in SCENARIOS else MODES[:1]:
            begun = time.process_time()
            states, runs = run(name, deep=deep, mode=mode)
            print("%-13s durable %d, power %d, rooms %d: %7d states, %7d operations, %5.1f s" % (
                (name,) + mode + (states, runs, time.process_time() - begun)), flush=True)


def found(rule):
    name, what = RULES[rule]
    try:
        run(name, (rule,))
    except Violation as violation:
        print("%-18s %-13s found: %s" % (rule, name, str(violation)[:100]), flush=True)
        return True
    print("%-18s %-13s NOT FOUND: %s" % (rule, name, what), flush=True)
    return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--only", metavar="SCENARIO", choices=[*SCENARIOS, *OTHERS])
    parser.add_argument("rules", nargs="*", metavar="RULE")
    options = parser.parse_args()
    if not options.rules:
        kept([options.only] if options.only else [*SCENARIOS, *OTHERS], options.deep)
    rules = options.rules or ([] if options.only else [*RULES])
    needed = sum([found(rule) for rule in rules])
    print("%d of %d rules are needed" % (needed, len(rules)))
    return needed != len(rules)


if __name__ == "__main__":
    sys.exit(main())
