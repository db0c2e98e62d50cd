# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""A file on a storage that keeps what it is told in a cache.

A cell is written whole or not at all.  Since the last sync any cell may be on the disk as it
was after any of its writes, or before all of them, whatever the others are; the size may be
any that the file had, or end with any cell that was written; and a truncation has taken the
cells behind it along, or not.  A kill leaves all of it in the cache.
"""
import itertools

from layout import position

FEW = 6         # so many cells in doubt, and every subset of them is tried


def subsets(options):
    """What cells in doubt may be together, in the order of their writes.  If there are many: what every prefix and every
    suffix of the writes leaves, and each cell alone, written or lost."""
    if len(options) <= FEW:
        yield from itertools.product(*options)
        return
    old, new = tuple(values[0] for values in options), tuple(values[-1] for values in options)
    for i, values in enumerate(options):
        yield new[:i] + old[i:]
        yield old[:i] + new[i:]
        for value in values:
            yield old[:i] + (value,) + old[i + 1:]
            yield new[:i] + (value,) + new[i + 1:]


class Storage:
    def __init__(self, cells=(), size=0, attribute=None):
        self.now, self.size, self.attribute = dict(cells), size, attribute
        self.settle()

    def settle(self):
        """A sync, or the power has come back."""
        self.base = dict(self.now)
        self.cells, self.sizes, self.cuts, self.attributes = {}, [(0, self.size)], [], [self.attribute]

    def copy(self):
        other = Storage.__new__(Storage)
        other.now, other.size, other.attribute, other.base = dict(self.now), self.size, self.attribute, self.base
        other.cells = {cell: list(values) for cell, values in self.cells.items()}
        other.sizes, other.cuts, other.attributes = list(self.sizes), list(self.cuts), list(self.attributes)
        return other

    def key(self):
        """Two with the same have the same future."""
        if not self.cells and not self.cuts and len(self.sizes) == 1 and len(self.attributes) == 1:
            return frozenset(self.now.items()), self.size, self.attribute
        return (frozenset(self.now.items()), self.size, self.attribute, frozenset(self.base.items()), tuple(self.sizes),
                frozenset((cell, tuple(values)) for cell, values in self.cells.items()), tuple(self.cuts), tuple(self.attributes))

    # ---- what processes do ----

    def get(self, cell):
        return self.now.get(cell) if position(cell) < self.size else None

    def put(self, cell, value):
        epoch = len(self.cuts)
        if value is None:
            self.now.pop(cell, None)
        else:
            self.now[cell] = value
        self.cells.setdefault(cell, []).append((epoch, value))
        if position(cell) >= self.size:
            self.size = position(cell) + 1
            self.sizes.append((epoch, self.size))

    def truncate(self, size):
        if size < self.size:
            self.cuts.append(size)
            for cell in [cell for cell in self.now if position(cell) >= size]:
                del self.now[cell]
        self.size = size
        self.sizes.append((len(self.cuts), size))

    def set_attribute(self, value):
        self.attribute = value
        self.attributes.append(value)

    # ---- the power goes ----

    def after_power_cut(self):
        """Every storage that may be there afterwards: its key, and what makes it."""
        seen = set()
        for epoch in range(len(self.cuts) + 1):
            cells = dict.fromkeys([*self.base, *self.cells]) if self.cuts else self.cells
            choices = [(position(cell), cell, self.options(cell, epoch)) for cell in cells]
            fixed = {} if self.cuts else {cell: value for cell, value in self.base.items() if cell not in cells}
            fixed.update((cell, options[0]) for _, cell, options in choices if len(options) == 1 and options[0] is not None)
            ends = {size for when, size in self.sizes if when == epoch}
            ends |= {position(cell) + 1 for cell, values in self.cells.items()
                     if min(ends) < position(cell) + 1 < max(ends) and any(when == epoch for when, _ in values)}
            for size in ends:
                certain = {cell: value for cell, value in fixed.items() if position(cell) < size}
                open_ = [(cell, options) for at, cell, options in choices if at < size and len(options) > 1]
                for values in subsets([options for _, options in open_]):
                    cells = dict(certain)
                    cells.update((cell, value) for (cell, _), value in zip(open_, values) if value is not None)
                    for attribute in self.attributes:
                        key = frozenset(cells.items()), size, attribute
                        if key not in seen:
                            seen.add(key)
                            yield key, (cells, size, attribute)

    def options(self, cell, epoch):
        """What a cell may be, if the disk has seen `epoch` of the truncations."""
        cuts = [i + 1 for i, size in enumerate(self.cuts) if position(cell) >= size]
        last = max((cut for cut in cuts if cut <= epoch), default=0)
        later = min((cut for cut in cuts if cut > epoch), default=len(self.cuts) + 1)
        values = [None if last else self.base.get(cell)]
        for when, value in self.cells.get(cell, ()):
            if last <= when < later and value not in values:
                values.append(value)
        return values
