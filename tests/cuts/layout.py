# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""The cells of a small file, in the order of docs/design/012-one-file.rst.

Two groups, two regions that take turns, blocks of two sectors; a sector is the unit of all
sizes.  A version of a block is (who sealed it, its number, the block, its text): as S and
counter, no two are the same.

    group  | header | state | maps 4 | table | heads | rooms 2 x 2 | entries | data 8 |
    data   | region 0 block 0 | region 1 block 0 | region 0 block 1 | region 1 block 1 |
    slot   (version, generation, pending, room), or None
    entry  (slot, slot, sealed)          head   (block, version, version before)
    text   one token for each sector; 0 is a sector of zeros
"""
GROUPS, BLOCK, ROOMS = 2, 2, 2
T, D = 8 + 2 * ROOMS + 1, 4 * BLOCK
G = T + D
HEADER_AREA = 6
BLOCKS = [(g, r, k) for g in range(GROUPS) for r in range(2) for k in range(2)]
NO_ENTRY = (None, None, None)
VOID = (None, 0, True, 0)       # a mark that names no room
FIXED = {"header": 0, "state": 1, "tail": 1}


def position(cell, known={}):
    """The sector that a cell is in."""
    if cell not in known:
        known[cell] = count_position(cell)
    return known[cell]


def count_position(cell):
    kind = cell[0]
    if kind in FIXED:
        return FIXED[kind]
    if kind == "map":
        return 2 + 2 * cell[1] + cell[2]
    g = cell[1]
    if kind == "table":
        return g * G + 6
    if kind == "head":
        return g * G + 7
    if kind == "room":
        return g * G + 8 + 2 * (cell[2] - 1) + cell[3]
    if kind == "entry":
        return g * G + T - 1
    return g * G + T + begin(cell[1:4]) - g * D + cell[4]


def begin(block):
    g, r, k = block
    return g * D + (2 * k + r) * BLOCK


def block_of(sector):
    g, within = divmod(sector, D)
    return g, within // BLOCK % 2, within // BLOCK // 2


def end(n):
    return (n - 1) // D * G + T + (n - 1) % D + 1 if n else HEADER_AREA


def size(p):
    return p // G * D + max(0, p % G - T)


def newer(entry):
    """0, 1, or None."""
    used = [slot is not None and slot[0] is not None for slot in entry[:2]]
    if all(used):
        return int(entry[0][1] == entry[1][1])
    return used.index(True) if any(used) else None


def advance(entry):
    """Which slot is written next, and its generation."""
    which = newer(entry)
    if which is None:
        return 0, 1
    return 1 - which, entry[which][1] if which == 0 else 1 - entry[which][1]


def with_slot(entry, which, slot):
    slots = [entry[0], entry[1]]
    slots[which] = slot
    return slots[0], slots[1], entry[2]


def version_of(slot):
    return slot[0] if slot else None


def mark_of(entry):
    """The room that an overwrite which is under way goes by."""
    which = newer(entry)
    slot = entry[1 - which] if which is not None else None
    return slot[3] if slot and slot[2] else 0


def room_version(get, block, room, base):
    """(version, is all of its ciphertext there), if the room has a version of the block that follows `base`."""
    head = get(("head", block[0], room)) if room else None
    if not head or head[0] != block or head[2] != base or base is None:
        return None
    return head[1], room_whole(get, block[0], room, head[1])


def room_whole(get, g, room, version):
    return all(get(("room", g, room, i)) == (version, i) for i in range(len(version[3])))


def data_opens(get, block, version):
    return version[2] == block and all(get(("data",) + block + (i,)) == (version, i) for i in range(len(version[3])))


def was_cut(get, physical, block, *versions):
    n = min(len(version[3]) for version in versions)
    return begin(block) + n > size(physical) or get(("data",) + block + (n - 1,)) is None


def look(storage, block, broken=()):
    """(how, version) with the key: what a reader gets, under the block's lock."""
    get = storage.get
    if begin(block) >= size(storage.size):
        return "behind", None
    entry = get(("entry",) + block) or NO_ENTRY
    which = newer(entry)
    if which is None:
        return ("torn" if any(get(("data",) + block + (i,)) for i in range(BLOCK)) else "hole"), None
    now, other = entry[which], entry[1 - which]
    if data_opens(get, block, now[0]):
        return "current", now[0]
    for room, base in ((mark_of(entry), now[0]), (now[3], version_of(other))):
        found = room_version(get, block, room, base)
        if found and data_opens(get, block, found[0]):
            return "ahead", found[0]
        if found and found[1] and ("was-cut" in broken or not was_cut(get, storage.size, block, found[0], base)):
            return "room", found[0]
    if version_of(other) and data_opens(get, block, other[0]):
        return "older", other[0]
    return "forged", None


def text_of(version):
    return (version[3] + (0,) * BLOCK)[:BLOCK] if version else (0,) * BLOCK
