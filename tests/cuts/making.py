# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Creating a file, making an empty one anew, and changing its map, ended anywhere.

A job with a label finds a file that it can use, or one that it may make; nobody is left with
something that looks like a plain file, and no map that was on the storage is lost."""
from explore import Violation, run_alone
from layout import HEADER_AREA, position
from storage import Storage

HALVES = (0, 1)


def place(which, map_):
    return [(("map", which, half), (map_, half)) for half in HALVES]


def whole(storage, which):
    values = [storage.get(("map", which, half)) for half in HALVES]
    return values[0][0] if None not in values and values[0][0] == values[1][0] else None


def chosen(storage, uuid):
    """Of whole maps with the header's UUID that of the highest generation; at equal ones place 1 has the newer wrapped keys."""
    maps = [map_ for map_ in (whole(storage, 1), whole(storage, 0)) if map_ and map_[0] == uuid]
    return max(maps, key=lambda map_: map_[1]) if maps else None


def decide(storage, broken=()):
    """What a job with a label gets that opens it for writing: "make", (UUID, generation, wrapping), or why it is refused."""
    header, state = storage.get(("header",)), storage.get(("state",))
    if header is None:
        zeros = not any(position(cell) < storage.size for cell in storage.now)
        attribute = "zeros-attribute" in broken and storage.attribute is not None
        if storage.size == 0 or (storage.size == 1 and zeros and not attribute):
            return "make"
        return "plain data" if storage.attribute is None else "overwritten"
    if not state or state[0] == 0:
        return "make" if storage.size <= HEADER_AREA else "forged"
    map_ = chosen(storage, header)
    if map_ is None:
        return "no map"
    if storage.attribute and storage.attribute[0] == header and storage.attribute[1] > map_[1]:
        return "rolled back"
    return map_


class Maker:
    def __init__(self, broken):
        self.broken = broken

    def sync(self, rule):
        if rule not in self.broken:
            yield ("sync",)

    def make(self, uuid):
        """Under the maker's lock, alone: of nothing, of what a killed maker left, or of an empty file that gets another map."""
        storage, map_ = (yield ("view",)), (uuid, 1, "new")
        if storage.get(("state",)):
            yield ("write", [(("state",), (0, None))])
            yield from self.sync("make-state-0")
        if storage.size > 2:
            yield ("truncate", 2)
        tail = [(("tail",), uuid)] if "make-sector" in self.broken else []
        yield ("write", tail + [(("header",), uuid)])
        yield from self.sync("make-header")
        yield ("write", place(0, map_) + place(1, map_))
        yield ("attribute", map_[:2])
        yield from self.sync("make-maps")
        yield ("write", [(("state",), (1, None))])
        yield ("sync",)
        return "done"

    def nothing(self):
        yield ("view",)

    def make_at_once(self, uuid):
        """Not like this: the header is in one write with the map."""
        map_ = uuid, 1, "new"
        yield ("write", place(0, map_) + [(("header",), uuid)])
        yield ("write", place(1, map_))
        yield ("sync",)
        yield ("attribute", map_[:2])
        yield ("write", [(("state",), (1, None))])
        yield ("sync",)
        return "done"

    def change(self, generations=1, wrapping="new"):
        """A region is added, or (no generation more) the data keys are wrapped anew."""
        yield from self.sync("map-before")      # what a killed process wrote may be in the cache alone
        storage = yield ("view",)
        now = decide(storage, self.broken)
        for which in (0, 1):
            if whole(storage, which) != now and "map-repair" not in self.broken:
                yield ("write", place(which, now))
                yield ("sync",)
        map_ = now[0], now[1] + generations, wrapping
        if "map-attribute" in self.broken:
            yield ("attribute", map_[:2])
        first = 0 if "map-order" in self.broken else 1
        yield ("write", place(first, map_))
        yield from self.sync("map-sync")
        yield ("write", place(1 - first, map_))
        yield from self.sync("map-last")
        yield ("attribute", map_[:2])
        yield ("sync",)
        return "done"


def ends(storage, generator):
    """Every storage that is left of an operation, by a kill or by the power; the last one is complete."""
    states, full, _ = run_alone(storage.copy(), generator)
    for i, state in enumerate(states):
        yield i == len(states) - 1, state
        if i in full:
            for _, cut in state.after_power_cut():
                yield False, Storage(*cut)


def need(condition, *what):
    if not condition:
        raise Violation("making: %s" % (what,))


def follow(storage, plan, may, counts, seen, broken, path=()):
    """plan: operations, what each may leave, and what it leaves when it is complete."""
    for begin, during, after in plan[:1]:
        counts[1] += 1
        for i, (complete, state) in enumerate(ends(storage, begin(decide(storage, broken)))):
            here = path + ((begin.__name__, i),)
            got = decide(state, broken)
            need(got in (after if complete else during | may), here, got, complete)
            key = state.key(), len(plan)
            if key not in seen:
                seen.add(key)
                counts[0] += 1
                follow(state, plan[1:], after if complete else may | during, counts, seen, broken, here)


def making(broken, deep):
    counts, maker = [0, 0], Maker(broken)

    def create(found):
        return maker.make("U1") if "make-at-once" not in broken else maker.make_at_once("U1")

    def create_again(found):
        return maker.make("U2") if found == "make" else maker.nothing()

    def anew(found):
        return maker.make("U3")

    def add(found):
        return maker.change()

    def rekey(found):
        return maker.change(0, "newer")

    made = {("U%d" % i, 1, "new") for i in (1, 2, 3)}
    makes = [(create, {"make"} | made, made), (create_again, {"make"} | made, made), (anew, {"make"} | made, made)]
    for attribute in (None, ("U0", 1)):        # of a file that somebody has emptied
        follow(Storage((), 0, attribute), makes, {"make"}, counts, set(), broken)
    start = Storage()
    _, _, rc = run_alone(start, Maker(()).make("U1"))
    need(rc == "done" and decide(start) == ("U1", 1, "new"), decide(start))
    maps = {("U1", generation, wrapping) for generation in (1, 2, 3, 4) for wrapping in ("new", "newer")}
    for first in (add, rekey):
        for second in (add, rekey):
            follow(start, [(first, maps, maps), (second, maps, maps), (add, maps, maps)][:3 if deep else 2], set(), counts, set(), broken)
    # What was wrapped before is nowhere when a rekey is complete.
    states, _, _ = run_alone(start.copy(), maker.change(0, "newer"))
    need([whole(states[-1], which)[2] for which in (0, 1)] == ["newer", "newer"], "wrapped keys")
    return counts[0], counts[1]
