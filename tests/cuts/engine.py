# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""What processes do to a file, in the order of docs/design/012-one-file.rst.

Each operation is a generator of steps: ("write", [(cell, value)...]), ("truncate", size),
("sync",), ("attribute", value), ("lock", keys), ("try", keys), ("unlock", keys), ("wait",)
until somebody else has done something, and ("view",), which gives the storage.  It returns
"done" or what it was refused with.

`broken` names rules that a process does not keep: the model has to object to each.
"""
from layout import (BLOCK, BLOCKS, D, G, GROUPS, NO_ENTRY, VOID, advance, begin, block_of, end, look, mark_of, newer,
                    room_whole, size, text_of, version_of, was_cut, with_slot)


class Process:
    def __init__(self, name, keys=(0, 1), durable=True, rooms=1, broken=()):
        self.name, self.keys, self.durable, self.rooms, self.broken = name, keys, durable, rooms, broken
        self.sealed = 0                 # versions, by their number
        self.locked = set()             # blocks that this call has

    def keeps(self, rule):
        return rule not in self.broken

    def barrier(self, rule):
        if self.durable and self.keeps(rule):
            yield ("sync",)

    def seal(self, block, text):
        self.sealed += 1
        return self.name, self.sealed, block, tuple(text)

    def lock_blocks(self, blocks):
        yield ("lock", [("block",) + block for block in blocks])
        self.locked |= set(blocks)

    def unlock_blocks(self):
        if self.locked:
            yield ("unlock", [("block",) + block for block in self.locked])
        self.locked = set()

    # ---- one block that is behind ----

    def finish(self, block):
        """With the key, under the block's lock: the entry becomes right, and its room is not needed any more."""
        storage = yield ("view",)
        entry = storage.get(("entry",) + block) or NO_ENTRY
        how, version = look(storage, block, self.broken)
        which, room = newer(entry), mark_of(entry)
        if how in ("hole", "torn", "behind", "forged") or (how == "current" and not room):
            return
        if how == "room":
            yield from self.barrier("finish-room")
            yield ("write", [(("data",) + block + (i,), (version, i)) for i in range(len(version[3]))])
        if how in ("room", "ahead"):            # what a killed process has written is in the cache
            yield from self.barrier("finish-data")
        other = entry[1 - which]
        if how == "older":
            entry = with_slot(entry, which, (version, entry[which][1], False, 0))
        elif version != entry[which][0]:        # the mark led to it
            _, generation = advance(entry)
            other = version, generation, False, room
        if other and other[2]:
            other = (other[0], other[1], False, other[3]) if other[0] else None
        yield ("write", [(("entry",) + block, with_slot(entry, 1 - which, other))])

    def redo(self, block, room):
        """Without the key: what the room has goes where it belongs."""
        storage = yield ("view",)
        entry, head = storage.get(("entry",) + block), storage.get(("head", block[0], room))
        if self.keeps("redo-was-cut") and was_cut(storage.get, storage.size, block, head[1], head[2]):
            return
        version = head[1]
        yield from self.barrier("redo-room")
        yield ("write", [(("data",) + block + (i,), (version, i)) for i in range(len(version[3]))])
        yield from self.barrier("redo-data")
        which, generation = advance(entry)
        yield ("write", [(("entry",) + block, with_slot(entry, which, (version, generation, False, room)))])

    # ---- rooms ----

    def free_room(self, g, room):
        """With the room's lock: does nothing depend on what it holds, or not any more?"""
        storage = yield ("view",)
        head = storage.get(("head", g, room))
        if head is None or (self.keeps("check") and not room_whole(storage.get, g, room, head[1])):
            return True
        block = head[0]
        if self.keeps("room-behind-end") and begin(block) >= size(storage.size):
            return True
        if not self.keeps("room-finish"):
            return True
        if not self.needed(storage, block, room):
            return True
        if not self.keeps("room-wait"):
            return False
        if block not in self.locked and self.keeps("room-block-lock"):
            got = yield ("try", [("block",) + block])
            if not got:
                return False
        storage = yield ("view",)
        if self.needed(storage, block, room):
            yield from self.finish(block) if block[1] in self.keys else self.redo(block, room)
        if block not in self.locked and self.keeps("room-block-lock"):
            yield ("unlock", [("block",) + block])
        return True

    def needed(self, storage, block, room):
        entry, head = storage.get(("entry",) + block) or NO_ENTRY, storage.get(("head", block[0], room))
        if self.keeps("room-behind-end") and begin(block) >= size(storage.size):
            return False
        which = newer(entry)
        if not head or head[0] != block or which is None:
            return False
        return not self.keeps("needed") or (mark_of(entry) == room and head[2] == entry[which][0])

    def take_rooms(self, g, want):
        got = []
        while not got:
            for room in range(1, self.rooms + 1):
                if len(got) < want:
                    have = yield ("try", [("room", g, room)])
                    if have:
                        free = yield from self.free_room(g, room)
                        if free:
                            got.append(room)
                        else:
                            yield ("unlock", [("room", g, room)])
            if not got:
                yield ("wait",)
        return got

    # ---- writing ----

    def open(self):
        """For writing: a seal goes, after everything was held against it."""
        storage = yield ("view",)
        state = storage.get(("state",))
        if state and state[0] == 2:
            if not sealed_right(storage):
                return "seal"
            yield ("write", [(("state",), (1, state[1]))])
            if self.keeps("unseal-sync"):
                yield ("sync",)
        return "done"

    def write(self, text):
        """`text`: {sector: token}."""
        rc = yield from self.open()
        if rc != "done":
            return rc
        blocks = sorted({block_of(sector) for sector in text})
        if any(block[1] not in self.keys for block in blocks):
            return "no key"
        storage, void = (yield ("view",)), []
        while not set(void) <= self.locked or not self.locked:      # the end may have moved while this waited
            yield from self.unlock_blocks()
            void = self.void(storage, max(text) + 1)
            yield from self.lock_blocks(sorted(set(blocks + void)))
            storage = yield ("view",)
            void = self.void(storage, max(text) + 1)
        yield from self.clear_void(storage, void)
        for g in range(GROUPS):
            here = [block for block in blocks if block[0] == g]
            if here:
                rc = yield from self.write_group(g, here, text)
                if rc != "done":
                    break
        yield from self.unlock_blocks()
        return rc

    def void(self, storage, new_end):
        """Entries behind the end that the new one would bring back; those of the write's own blocks are among them."""
        n = size(storage.size)
        last = (storage.size - 1) // G
        return [block for block in BLOCKS if block[0] == last and n <= begin(block) < new_end and
                (storage.get(("entry",) + block) or NO_ENTRY)[:2] != (None, None)]

    def clear_void(self, storage, void):
        """They lose their versions, and get a mark that leads nowhere: whoever sees it knows that this may not be on the
        storage yet, as the process that did it may have been killed."""
        cleared = VOID if self.keeps("void-mark") else None
        if void and self.keeps("void-zero"):
            yield from self.barrier("void-before")      # what cut the file, perhaps
            yield ("write", [(("entry",) + block, (cleared, None, storage.get(("entry",) + block)[2])) for block in void])
            yield from self.barrier("void-sync")

    def write_group(self, g, blocks, text):
        for block in blocks:
            yield from self.finish(block)
        storage = yield ("view",)
        first, over = [], []
        for block in blocks:
            how, version = look(storage, block, self.broken)
            covered = [begin(block) + i in text for i in range(BLOCK)]
            if how == "forged" and not all(covered):
                return "forged"
            old = text_of(version)[:len(version[3])] if version else ()
            n = max([len(old)] + [i + 1 for i in range(BLOCK) if covered[i]])
            fresh = [text[begin(block) + i] if covered[i] else (old + (0,) * BLOCK)[i] for i in range(n)]
            entry = storage.get(("entry",) + block) or NO_ENTRY
            (over if newer(entry) is not None else first).append((block, entry, self.seal(block, fresh)))
        yield from self.write_first(first)
        if over:
            rooms = yield from self.take_rooms(g, len(over))
            yield from self.overwrite(g, rooms, over)
            yield ("unlock", [("room", g, room) for room in rooms])
        return "done"

    def write_first(self, first):
        data = [(("data",) + block + (i,), (version, i)) for block, _, version in first for i in range(len(version[3]))]
        entries = [(("entry",) + block, ((version, 1, False, 0), None, entry[2])) for block, entry, version in first]
        for i, cells in enumerate((data, entries) if self.keeps("data-first") else (entries, data)):
            if cells:
                yield ("write", cells)
                if i == 0:
                    yield from self.barrier("first-data")

    def overwrite(self, g, rooms, over):
        """In rounds of as many blocks as there are rooms."""
        rounds = [list(zip(over[i:i + len(rooms)], rooms)) for i in range(0, len(over), len(rooms))]
        done = []
        for i, round_ in enumerate(rounds):
            marks = []
            for (block, entry, version), room in round_:
                which, _ = advance(entry)
                slot = entry[which]
                marks.append((("entry",) + block, with_slot(entry, which, (version_of(slot), slot[1] if slot else 0, True, room))))
            if i == 0:
                yield from self.clear_stale(g, [pair for some in rounds for pair in some])
                yield from self.barrier("before-marks")
                if self.keeps("marks-first"):
                    yield ("write", marks)
            else:
                yield ("write", done + marks)
                yield from self.barrier("entries-rooms")
            yield ("write", [(("head", g, room), (block, version, entry[newer(entry)][0])) for (block, entry, version), room in round_])
            cipher = [(("room", g, room, k), (version, k)) for (_, _, version), room in round_ for k in range(len(version[3]))]
            data = [(("data",) + block + (k,), (version, k)) for (block, _, version), _ in round_ for k in range(len(version[3]))]
            for k, cells in enumerate((cipher, data) if self.keeps("room-first") else (data, cipher)):
                yield ("write", cells)
                yield from self.barrier("data-entries" if k else "rooms-data")
            if i == 0 and not self.keeps("marks-first"):
                yield ("write", marks)
            done = []
            for (block, entry, version), room in round_:
                which, generation = advance(entry)
                done.append((("entry",) + block, with_slot(entry, which, (version, generation, False, room))))
        yield ("write", done)

    def clear_stale(self, g, pairs):
        """A room may have a version that somebody gave up, and would follow what a mark now leads from."""
        storage = yield ("view",)
        stale = []
        for (block, entry, _), room in pairs:
            head = storage.get(("head", g, room))
            if head and head[0] == block and head[2] == entry[newer(entry)][0]:
                stale.append((("head", g, room), None))
        if stale and self.keeps("stale-head"):
            yield ("write", stale)

    # ---- sizes ----

    def set_size(self, n):
        rc = yield from self.open()
        if rc != "done":
            return rc
        storage = yield ("view",)
        low = min(n, size(storage.size))
        blocks = [block for block in BLOCKS if begin(block) + BLOCK > low]
        if self.keeps("cut-locks"):
            yield ("lock", [("block",) + block for block in blocks])
            self.locked |= set(blocks)
        storage = yield ("view",)
        now = size(storage.size)
        rc = yield from self.cut(n) if n < now else self.lengthen(n, now)
        if self.keeps("cut-locks"):
            yield ("unlock", [("block",) + block for block in blocks])
            self.locked = set()
        return rc

    def cut(self, n):
        if not self.keeps("cut-truncate-first"):
            storage = yield ("view",)
            gone = [block for block in BLOCKS if block[0] == (end(n) - 1) // G and begin(block) >= n]
            yield ("write", [(("entry",) + block, NO_ENTRY) for block in gone if storage.get(("entry",) + block)])
        block = block_of(n)
        keep = n - begin(block)
        if keep:
            if block[1] not in self.keys:
                return "no key"
            yield from self.finish(block)
            storage = yield ("view",)
            how, version = look(storage, block, self.broken)
            if how == "forged":
                return "forged"
            if version and len(version[3]) > keep and self.keeps("cut-reseal"):
                rooms = yield from self.take_rooms(block[0], 1)
                storage = yield ("view",)
                entry = storage.get(("entry",) + block)
                yield from self.overwrite(block[0], rooms, [(block, entry, self.seal(block, text_of(version)[:keep]))])
                yield ("unlock", [("room", block[0], room) for room in rooms])
        yield from self.barrier("cut-truncate")
        rooms = [("room", g, room) for g in range(GROUPS) for room in range(1, self.rooms + 1)] if self.keeps("cut-locks") else []
        yield ("lock", rooms)
        yield ("truncate", end(n))
        yield ("unlock", rooms)
        return "done"

    def lengthen(self, n, now):
        storage = yield ("view",)
        entry = storage.get(("entry",) + block_of(now)) or NO_ENTRY
        if now % BLOCK and mark_of(entry):
            if block_of(now)[1] not in self.keys:
                return "no key"
            rc = yield from self.cut(now)       # finished, it would reach beyond the old end
            if rc not in ("done", "forged"):    # of a forged one, nothing can come back
                return rc
        storage = yield ("view",)
        yield from self.clear_void(storage, self.void(storage, n))
        yield ("truncate", end(n))
        return "done"

    # ---- the seal ----

    def finish_all(self):
        storage = yield ("view",)
        for block in BLOCKS:
            if begin(block) < size(storage.size) and block[1] in self.keys:
                yield from self.lock_blocks([block])
                yield from self.finish(block)
                yield from self.unlock_blocks()
        return "done"

    def seal_file(self):
        storage = yield ("view",)
        yield from self.finish_all()
        for block in BLOCKS:
            if begin(block) < size(storage.size) and look(storage, block, self.broken)[0] not in ("current", "hole"):
                return "forged"
        for g in range(GROUPS):
            cells = []
            for block in BLOCKS:
                if block[0] == g and begin(block) < size(storage.size):
                    entry = storage.get(("entry",) + block) or NO_ENTRY
                    which = newer(entry)
                    cells.append((("entry",) + block, (entry[0], entry[1], None if which is None else entry[which][0])))
            if cells:
                yield ("write", cells)
                yield ("write", [(("table", g), tuple(value[2] for _, value in cells))])
        storage = yield ("view",)
        root = size(storage.size), tuple(storage.get(("table", g)) for g in range(GROUPS) if g * D < size(storage.size))
        yield ("write", [(("state",), (1, root))])
        if self.keeps("seal-sync"):
            yield ("sync",)
        yield ("write", [(("state",), (2, root))])
        yield ("sync",)
        return "done"


def sealed_right(storage):
    """Does everything fit the seal?"""
    n, tables = storage.get(("state",))[1]
    if n != size(storage.size) or tables != tuple(storage.get(("table", g)) for g in range(GROUPS) if g * D < n):
        return False
    for g, table in enumerate(tables):
        entries = [storage.get(("entry",) + block) or NO_ENTRY for block in BLOCKS if block[0] == g and begin(block) < n]
        if table != tuple(entry[2] for entry in entries):
            return False
        if any(entry[2] != (None if newer(entry) is None else entry[newer(entry)][0]) for entry in entries):
            return False
    return all(look(storage, block)[0] in ("current", "hole") for block in BLOCKS if begin(block) < n)
