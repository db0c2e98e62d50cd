# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Every end of every operation, and of what is done with what it left.

A spec says what each block may read as: texts, "torn" and "forged"; and which sizes there may
be.  An operation ends after each of its steps, in the middle of each write, by a kill or by the
power, and the next one goes on with any of the storages that are then possible.
"""
from engine import Process, sealed_right
from layout import BLOCK, BLOCKS, D, GROUPS, HEADER_AREA, NO_ENTRY, begin, block_of, end, look, mark_of, size, text_of
from storage import Storage

ZEROS = (0,) * BLOCK


class Violation(Exception):
    pass


class Spec:
    def __init__(self, blocks, sizes):
        self.blocks = {block: frozenset(texts) for block, texts in blocks.items()}
        self.sizes, self.known = frozenset(sizes), None

    def key(self):
        if self.known is None:
            self.known = hash((frozenset(self.blocks.items()), self.sizes))
        return self.known

    def __or__(self, other):
        return Spec({block: texts | other.blocks[block] for block, texts in self.blocks.items()}, self.sizes | other.sizes)


class Operation:
    process, may_end = {}, ("done",)

    def reads(self):
        """The blocks without which it cannot go on."""
        return ()

    def during(self, spec, lax):
        return spec

    def after(self, spec):
        return spec

    def lose(self, blocks, touched, low, high):
        """What was not written durably may be forged when the power is back: of the ends between `low` and `high`, too."""
        for block in blocks:
            if block in touched or (begin(block) + BLOCK > low and begin(block) < high):
                blocks[block] |= {"forged", "torn"}


class Write(Operation):
    """text: {sector: token}"""

    def __init__(self, text, **process):
        self.text, self.process = text, process
        self.name = "write %s%s" % (text, process or "")

    def run(self, process):
        return process.write(self.text)

    def reads(self):
        return {block_of(sector) for sector in self.text}

    def after(self, spec):
        blocks = {}
        for block, texts in spec.blocks.items():
            at = begin(block)
            hit = {i: self.text[at + i] for i in range(BLOCK) if at + i in self.text}
            if not hit:
                blocks[block] = texts
                continue
            old = {text if isinstance(text, tuple) else ZEROS for text in texts}
            blocks[block] = {tuple(hit.get(i, text[i]) for i in range(BLOCK)) for text in old}
        return Spec(blocks, {max(n, max(self.text) + 1) for n in spec.sizes})

    def during(self, spec, lax):
        after = self.after(spec)
        both = spec | after
        blocks = dict(both.blocks)
        touched = [block for block in blocks if spec.blocks[block] != after.blocks[block]]
        for block in touched:
            if ZEROS in spec.blocks[block]:     # it may have been a hole
                blocks[block] |= {"torn"}
        if lax:
            self.lose(blocks, touched, min(spec.sizes), max(self.text) + 1)
        sizes = set(both.sizes)
        for n in spec.sizes:
            sizes |= set(range(n, max(self.text) + 2))
        return Spec(blocks, sizes)


class SetSize(Operation):
    def __init__(self, n, **process):
        self.n, self.process = n, process
        self.name = "set_size %d%s" % (n, process or "")

    def run(self, process):
        return process.set_size(self.n)

    def reads(self):
        return {block_of(self.n)} if self.n < GROUPS * D else ()

    def after(self, spec):
        """What a killed write had beyond the end that the file has does not come back."""
        def shorter(block, text, n):
            return tuple(token if begin(block) + i < n else 0 for i, token in enumerate(text)) if isinstance(text, tuple) else text

        def ends(block):
            return {self.n} | {n for n in spec.sizes if begin(block) < n < min(self.n, begin(block) + BLOCK)}

        return Spec({block: {shorter(block, text, n) for text in texts for n in ends(block) if begin(block) < self.n} or {ZEROS}
                     for block, texts in spec.blocks.items()}, {self.n})

    def during(self, spec, lax):
        both = spec | self.after(spec)
        blocks = dict(both.blocks)
        if lax:
            after = self.after(spec).blocks
            self.lose(blocks, [block for block in blocks if after[block] != spec.blocks[block]], min({self.n, *spec.sizes}), max({self.n, *spec.sizes}))
        return Spec(blocks, set(both.sizes) | {n for n in range(min(spec.sizes), self.n + 1)})


class Seal(Operation):
    name = "seal"

    def run(self, process):
        return process.seal_file()

    def reads(self):
        return BLOCKS


class Finish(Operation):
    """What a tool does: every block that is behind is finished."""
    name = "finish"

    def run(self, process):
        return process.finish_all()


class Outsider(Operation):
    """A program that knows nothing of the format cuts the file, and lengthens it again."""

    def __init__(self, cut, then=None):
        self.cut, self.then, self.name = cut, then, "an outsider cuts to %d, lengthens to %s" % (cut, then)

    def run(self, process):
        yield ("truncate", end(self.cut))
        if self.then:
            yield ("truncate", end(self.then))
        return "done"

    def after(self, spec):
        blocks = {}
        for block, texts in spec.blocks.items():
            whole = {text for text in texts if isinstance(text, tuple) and not any(text[max(0, self.cut - begin(block)):])}
            blocks[block] = texts if begin(block) + BLOCK <= self.cut else whole | {"forged", "torn"} | ({ZEROS} if begin(block) >= self.cut else set())
        return Spec(blocks, {self.then or self.cut})

    def during(self, spec, lax):
        both = spec | self.after(spec)
        return Spec(both.blocks, both.sizes | {self.cut})


# ---- running one ----

def run_alone(storage, generator):
    """The storage after each cell that is written, those of them at which the power may go, and what the operation returned.
    Until the next sync what the disk may have only becomes more: so the last moment before it, and the end, have it all."""
    states, full, value = [storage.copy()], [], None
    while True:
        try:
            step = generator.send(value)
        except StopIteration as stop:
            return states, full + [len(states) - 1], stop.value
        value = True
        if step[0] == "view":
            value = storage
        elif step[0] == "write":
            for cell, content in step[1]:
                storage.put(cell, content)
                states.append(storage.copy())
        elif step[0] in ("truncate", "attribute"):
            (storage.truncate if step[0] == "truncate" else storage.set_attribute)(step[1])
            states.append(storage.copy())
        elif step[0] == "sync":
            full.append(len(states) - 1)
            storage.settle()
            states.append(storage.copy())
        elif step[0] == "wait":
            return states, full, "waits for nobody"


def seen(storage, block):
    """What a reader with all keys gets, as far as the file goes."""
    how, version = look(storage, block)
    if how in ("torn", "forged"):
        return how
    n = max(0, min(BLOCK, size(storage.size) - begin(block)))
    return text_of(version)[:n] + ZEROS[n:]


def check(storage, spec, where):
    n = size(storage.size)
    if n not in spec.sizes:
        raise Violation("%s: size %d, not of %s" % (where, n, sorted(spec.sizes)))
    for block in BLOCKS:
        if begin(block) < n:
            got = seen(storage, block)
            allowed = spec.blocks[block]
            if begin(block) + BLOCK > n:
                allowed = {text[:n - begin(block)] + ZEROS[n - begin(block):] if isinstance(text, tuple) else text for text in allowed}
            if got not in allowed:
                raise Violation("%s: block %s reads %s, not of %s" % (where, block, got, sorted(map(str, allowed))))


def settled(storage, spec, durable):
    """A block that nobody has to finish stays what it is, as long as the power does; but not one that was not written durably
    before the power went."""
    blocks, sizes = dict(spec.blocks), {size(storage.size)}
    for block in BLOCKS:
        if mark_of(storage.get(("entry",) + block) or NO_ENTRY) or look(storage, block)[0] == "room":
            sizes = spec.sizes          # it may be one that makes the file longer
        elif begin(block) < size(storage.size) and (durable or "forged" not in spec.blocks[block]):
            blocks[block] = {seen(storage, block)}
    return Spec(blocks, sizes)


# ---- all ends ----

class Explorer:
    """`power`: ends are losses of power, too; else kills alone."""

    def __init__(self, broken=(), durable=True, power=True, rooms=1):
        self.broken, self.durable, self.power, self.rooms = broken, durable, power, rooms
        self.seen, self.states, self.runs = set(), 0, 0

    def start(self, *ops):
        """A file after these, on the disk."""
        storage = Storage({("header",): 1, ("state",): (1, None)}, HEADER_AREA)
        spec = Spec({block: {ZEROS} for block in BLOCKS}, {0})
        for i, op in enumerate(ops):
            _, _, rc = run_alone(storage, op.run(Process("base%d" % i, rooms=self.rooms)))
            assert rc == "done", rc
            spec = op.after(spec)
        storage.settle()
        check(storage, spec, "start")
        return storage, spec

    def explore(self, start, *plan):
        """plan: for each operation of a sequence, those it may be."""
        storage, spec = start
        self.go_on(storage, spec, spec, plan, "")

    def go_on(self, storage, now, power, plan, path):
        for op in plan[0]:
            self.runs += 1
            here = "%s; %s" % (path, op.name)
            process = Process("process%d" % -len(plan), durable=self.durable, rooms=self.rooms, broken=self.broken, **op.process)
            states, full, rc = run_alone(storage.copy(), op.run(process))
            if rc not in op.may_end and not (rc == "forged" and any("forged" in now.blocks[block] for block in op.reads())):
                raise Violation("%s: %s" % (here, rc))
            during = op.during(now, False)
            lost = power | op.during(power, not self.durable)
            for i, state in enumerate(states):
                last = i == len(states) - 1
                left = op.after(now) if last and rc == "done" else during
                if self.is_new(state.key(), left, lost, plan):
                    self.visit(state, left, lost, plan[1:], "%s, killed after %d" % (here, i))
                if self.power and i in full:
                    for key, made in state.after_power_cut():
                        if self.is_new(key, lost, lost, plan):
                            self.visit(Storage(*made), lost, lost, plan[1:], "%s, power cut after %d" % (here, i))

    def is_new(self, *key):
        """A storage, what it may be, what it may become when the power goes, and what follows."""
        key = key[0], key[1].key(), key[2].key(), key[3]
        if key in self.seen:
            return False
        self.seen.add(key)
        return True

    def visit(self, storage, now, power, plan, path):
        self.states += 1
        check(storage, now, path)
        now = settled(storage, now, self.durable)
        state = storage.get(("state",))
        if state and state[0] == 2 and not sealed_right(storage):
            raise Violation("%s: sealed, and does not fit" % path)
        if plan:
            self.go_on(storage, now, power, plan, path)
