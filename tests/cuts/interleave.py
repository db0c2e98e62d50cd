# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Two processes at the same time, each in any order with the other, step by step; either may be
killed at any time, in the middle of a write, and the other goes on; and the power may go."""
from engine import Process
from explore import Explorer, SetSize, Violation, Write, check, run_alone
from storage import Storage

FULL = {sector: "o%d" % sector for sector in range(8)}


def text(*sectors, by="n"):
    return {sector: "%s%d" % (by, sector) for sector in sectors}


class View:
    """The storage, and a note of all that a process has seen there: with that it is where it is."""

    def __init__(self, storage, trace):
        self.storage, self.trace = storage, trace

    def get(self, cell):
        value = self.storage.get(cell)
        self.trace.append((cell, value))
        return value

    @property
    def size(self):
        self.trace.append(self.storage.size)
        return self.storage.size


class Race:
    """Both from the beginning, as far as `schedule` goes: ("step", process) or ("kill", process, cells that it still writes)."""

    def __init__(self, storage, generators, schedule):
        self.storage, self.alive = storage.copy(), dict(enumerate(generators))
        self.locks, self.value, self.waiting = {}, {i: None for i in self.alive}, {i: None for i in self.alive}
        self.waits, self.trace, self.result = set(), {i: [] for i in self.alive}, {}
        self.since = {i: True for i in self.alive}      # has the other done something since a lock was not to be had?
        for i in list(self.alive):
            self.advance(i)
        for action in schedule:
            self.act(action)

    def act(self, action):
        if action[0] == "step":
            self.step(action[1])
        else:
            self.kill(*action[1:])

    def advance(self, i):
        try:
            self.waiting[i] = self.alive[i].send(self.value[i])
        except StopIteration as stop:
            self.result[i] = stop.value
            self.end(i)

    def end(self, i):
        del self.alive[i]
        self.waits.discard(i)
        self.locks = {key: owner for key, owner in self.locks.items() if owner != i}
        self.waits.clear()
        self.since[1 - i] = True

    def can_step(self, i):
        kind = self.waiting[i][0]
        if kind == "lock":
            return all(self.locks.get(key, i) == i for key in self.waiting[i][1])
        return i not in self.waits

    def step(self, i):
        kind, *of = self.waiting[i]
        self.value[i] = True
        if kind == "view":
            self.value[i] = View(self.storage, self.trace[i])
        elif kind in ("lock", "try"):
            free = all(self.locks.get(key, i) == i for key in of[0])
            self.value[i] = free
            self.trace[i].append(free)
            self.since[i] = free
            if free:
                self.locks.update((key, i) for key in of[0])
        elif kind == "unlock":
            self.locks = {key: owner for key, owner in self.locks.items() if key not in of[0] or owner != i}
        else:
            self.do(self.waiting[i])
            self.trace[i].append(kind)
        if kind == "wait" and not self.since[i]:
            self.waits.add(i)
        elif kind != "view" and not (kind == "try" and not self.value[i]):
            self.waits.discard(1 - i)
            self.since[1 - i] = True
        self.advance(i)

    def do(self, step, cells=None):
        if step[0] == "write":
            for cell, content in step[1][:cells]:
                self.storage.put(cell, content)
        elif step[0] == "truncate":
            self.storage.truncate(step[1])
        elif step[0] == "sync":
            self.storage.settle()

    def kill(self, i, cells):
        if cells:
            self.do(self.waiting[i], cells)
        self.end(i)

    def key(self):
        return (self.storage.key(), tuple(sorted(self.alive)), tuple(sorted(self.locks.items())), tuple(sorted(self.waits)), tuple(self.since.values()),
                tuple(tuple(self.trace[i]) for i in sorted(self.alive)))


def race(storage, spec, operations, broken, durable=True, kills=True, rooms=1):
    """Every schedule; the number of storages, and of schedules."""
    a, b = operations
    during = a.during(b.during(spec, False), False) | b.during(a.during(spec, False), False)
    final = a.after(b.after(spec)) | b.after(a.after(spec))
    seen, checked, schedules = set(), set(), 0
    todo = [()]

    def look(state, allowed, where):
        key = state.key(), allowed is final
        if key not in checked:
            checked.add(key)
            check(state, allowed, where)
            if durable:
                for cut, made in state.after_power_cut():
                    if cut not in checked:
                        checked.add(cut)
                        check(Storage(*made), during | spec, where + ", power cut")

    while todo:
        schedule = todo.pop()
        generators = [op.run(Process("process%d" % i, durable=durable, rooms=rooms, broken=broken, **op.process)) for i, op in enumerate(operations)]
        now, children = Race(storage, generators, schedule), [()]
        while children and now.key() not in seen:
            seen.add(now.key())
            schedules += 1
            where = "%s | %s: %s" % (a.name, b.name, schedule)
            if any(rc not in operations[i].may_end for i, rc in now.result.items()):
                raise Violation("%s: %s" % (where, now.result))
            look(now.storage, final if len(now.result) == 2 else during, where)
            children = [("step", i) for i in now.alive if now.can_step(i)]
            if now.alive and not children:
                raise Violation("%s: nobody can go on" % where)
            if kills and len(now.alive) == 2:
                for i, (kind, *of) in now.waiting.items():
                    children += [("kill", i, n) for n in range(len(of[0]) if kind == "write" else 1)]
            todo += [schedule + (child,) for child in children[1:]]
            if children:
                schedule += (children[0],)
                now.act(children[0])
    return len(checked), schedules


def interleavings(broken, deep, only=()):
    """`only`: the numbers of pairs."""
    explorer = Explorer()
    full, spec = explorer.start(Write(FULL))
    more, more_spec = explorer.start(Write(FULL), Write(text(8, 9, 10, 11, by="o")))
    void, void_spec = explorer.start(Write(FULL), SetSize(2))
    # Somebody was killed, and left block (0, 0, 0) behind in the only room.
    left, _, _ = run_alone(full.copy(), Write(text(0, 1, by="k")).run(Process("killed", broken=())))
    behind = next(state for state in left if state.get(("data", 0, 0, 0, 0)) != full.get(("data", 0, 0, 0, 0)))
    behind_spec = Write(text(0, 1, by="k")).during(spec, False)
    early = next(state for state in left if state.get(("head", 0, 1)) and state.get(("room", 0, 1, 1)))
    states = schedules = 0
    pairs = (
            (full, spec, (Write(text(0, 1)), Write(text(2, 3, by="b")))),
            (behind, behind_spec, (Write(text(4)), Write(text(2, by="b"), keys=(1,)))),
            (early, behind_spec, (Write(text(0, 1, 4)), Write(text(2, by="b"), keys=(1,)))),
            (early, behind_spec, (Write(text(4)), Write(text(1, by="b")))),
            (behind, behind_spec, (SetSize(3), Write(text(0)))),
            (full, spec, (SetSize(3), Write(text(4, 5)))),
            (behind, behind_spec, (SetSize(1), Write(text(2), keys=(1,)))),
            (more, more_spec, (SetSize(3), Write(text(10, 11)))),
            (void, void_spec, (Write(text(6, 7)), Write(text(4, 5, by="b")))),
            (void, void_spec, (Write(text(2)), Write(text(9, by="b")))))
    for i in only or range(len(pairs)):
        storage, of, pair = pairs[i]
        count, ran = race(storage, of, pair, broken, kills=deep)
        states, schedules = states + count, schedules + ran
    return states, schedules
