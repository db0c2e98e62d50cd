#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Compares what the ranks counted (output of `metrics`) with the simulator,
rank by rank, and with the closed forms of docs/design/004-collectives.rst.

    check_metrics.py < OUTPUT

Prints a table for each map: the paper's Table II, the corrected value, what was
counted (maximum over the ranks, each metric by itself).
"""
import sys
from math import ceil, log2

from simulate import ALGORITHMS, doubling, ring, simulate

METRICS = ('r_c', 's_c', 'r_e', 's_e', 'r_d', 's_d')


def shape_of(nodes):
    """(N, l, 'block' | 'cyclic' | 'other'); l is None where nodes differ."""
    count = len(set(nodes))
    sizes = {nodes.count(n) for n in nodes}
    width = sizes.pop() if len(sizes) == 1 else None
    if width is None:
        return count, None, 'other'
    if nodes == [i // width for i in range(len(nodes))]:
        return count, width, 'block'
    return count, width, 'cyclic' if nodes == [i % count for i in range(len(nodes))] else 'other'


def lg(n):
    """ceil(lg n): the rounds of a doubling."""
    return ceil(log2(n))


def paper(N, l, m):
    """Table II as printed; for powers of two and block mapping."""
    p = N * l
    return {
        'naive':  (lg(p), (p - 1) * m, 1, m, p - 1, (p - 1) * m),
        'o-ring': (p - 1, (p - 1) * m, p - 1, (p - 1) * m, p - 1, (p - 1) * m),
        'o-rd':   (lg(p), (p - 1) * m, 1, l * m, p - l, (p - l) * m),
        'o-rd2':  (lg(N), (p - 1) * m, lg(N), (p - l) * m, lg(N), (p - l) * m),
        'c-ring': (N + l - 2, (p - 1) * m, 1, m, N - 1, (N - 1) * m),
        'c-rd':   (lg(p), (p - 1) * m, 1, m, N - 1, (N - 1) * m),
        'hs1':    (lg(N), (p - l) * m, 1, l * m, ceil(N / l), max(N, l) * m),
        'hs2':    (lg(N), (p - l) * m, 1, m, N - 1, (N - 1) * m),
    }


def corrected(N, l, m, mapping, leaders):
    """The maxima that must be counted exactly.  An algorithm is left out where
    its maximum has no closed form: the simulator alone decides there."""
    p = N * l
    rounds = ceil((N - 1) / l)
    steps = lg if leaders == 'rd' else lambda n: n - 1
    table = {
        'naive':  (steps(p), (p - 1) * m, 1, m, p - 1, (p - 1) * m),
        'c-ring': (N + l - 2, (p - 1) * m, 1, m, N - 1, (N - 1) * m),
        'c-rd':   (lg(N) + lg(l), (p - 1) * m, 1, m, N - 1, (N - 1) * m),
        'hs1':    (steps(N), (p - l) * m, 1, l * m, rounds, rounds * l * m),
        'hs2':    (steps(N), (p - l) * m, 1, m, N - 1, (N - 1) * m),
        'hs3':    (steps(N), (p - l) * m, 1, m, p - l, (p - l) * m),
    }
    forwarding = l == 1 or mapping == 'cyclic'
    if forwarding:
        table['o-ring'] = (p - 1, (p - 1) * m, 1, m, p - 1, (p - 1) * m)
    elif mapping == 'block':
        table['o-ring'] = (p - 1, (p - 1) * m, p - 1, (p - 1) * m, p - 1, (p - 1) * m)
    if p & (p - 1) == 0 and mapping == 'block':
        table['o-rd'] = (lg(p), (p - 1) * m, 1, l * m, N - 1, (p - l) * m)
        table['o-rd2'] = (lg(p), (p - 1) * m, lg(N), (p - l) * m, lg(N), (p - l) * m)
    elif p & (p - 1) == 0 and mapping == 'cyclic':
        table['o-rd'] = (lg(p), (p - 1) * m, 1, m, N - 1, (N - 1) * m)
        table['o-rd2'] = (lg(p), (p - 1) * m, lg(N), (N - 1) * m, lg(N), (N - 1) * m)
    return table


def sums_4x2_block():
    """(pieces sealed, opened) by all ranks together on 4 nodes x 2 ranks."""
    return {'o-rd': (8, 24), 'o-rd2': (16, 16), 'c-ring': (8, 24), 'c-rd': (8, 24), 'hs1': (4, 12),
            'hs2': (8, 24), 'hs3': (8, 48)}


def read_counted(stream):
    """[(nodes, m, 'rd' | 'ring', {algorithm: {rank: metrics}}) of each map]"""
    maps = []
    for line in stream:
        words = line.split()
        if len(words) == 6 and words[0] == 'map':
            maps.append(([int(x) for x in words[1].split(',')], int(words[3]), words[5], {}))
        elif len(words) == 8 and words[1].isdigit() and maps:
            maps[-1][3].setdefault(words[0], {})[int(words[1])] = tuple(map(int, words[2:]))
    return maps


def maxima(rows):
    return tuple(max(column) for column in zip(*rows))


def bounds_met(N, l, m, counted):
    """Table I: s_e >= m and s_d >= (N - 1) m, met with equality by C-* and HS2."""
    wrong = []
    for name in ('c-ring', 'c-rd', 'hs2'):
        top = maxima(counted[name].values())
        if (top[3], top[5]) != (m, (N - 1) * m):
            wrong.append(f'{name} misses the bounds of Table I: s_e {top[3]}, s_d {top[5]}')
    return wrong


def check(nodes, m, leaders, counted):
    """Prints the table of one map; returns what is wrong."""
    N, l, mapping = shape_of(nodes)
    wrong = []
    exact = corrected(N, l, m, mapping, leaders) if l else {}
    printed = paper(N, l, m) if l and mapping == 'block' and len(nodes) & (len(nodes) - 1) == 0 else {}
    print(f'\np = {len(nodes)}, N = {N}, ' + (f'l = {l}, {mapping}' if l else f'uneven {nodes}')
          + f', m = {m}, leaders {leaders}')
    print(f'{"":8}{"":4}' + ''.join(f'{x:>14}' for x in ('Table II', 'corrected', 'counted')))
    if counted.keys() != ALGORITHMS.keys():
        return [f'counted were {sorted(counted)}; the simulator knows {sorted(ALGORITHMS)}']
    for name in ALGORITHMS:
        rows = counted.get(name, {})
        expected = dict(enumerate(simulate(name, nodes, m, doubling if leaders == 'rd' else ring)))
        if rows.keys() != expected.keys():
            return [f'{name}: counted for the ranks {sorted(rows)}, not for {sorted(expected)}']
        for rank in sorted(expected):
            if rows[rank] != expected[rank]:
                wrong.append(f'{name}, rank {rank}: counted {rows[rank]}, simulator {expected[rank]}')
        top = maxima(rows.values())
        if name in exact and top != exact[name]:
            wrong.append(f'{name}: counted {top}, must be {exact[name]}')
        for i, metric in enumerate(METRICS):
            a, b = (t[name][i] if name in t else '' for t in (printed, exact))
            print(f'{name if i == 0 else "":8}{metric:4}{a:>14}{b:>14}{top[i]:>14}'
                  + ('   paper differs' if a != '' and b != '' and a != b else ''))
    if (N, l, mapping) == (4, 2, 'block'):
        for name, pair in sums_4x2_block().items():
            total = tuple(sum(row[i] for row in counted[name].values()) for i in (2, 4))
            if total != pair:
                wrong.append(f'{name}: {total} seals and opens in all, must be {pair}')
    return wrong + (bounds_met(N, l, m, counted) if l else [])


def main():
    maps, bad = read_counted(sys.stdin), 0
    for one in maps:
        wrong = check(*one)
        print('\n'.join(wrong) or 'every count is as it must be')
        bad += bool(wrong)
    print(f'\n{len(maps) - bad} maps right, {bad} wrong')
    return 1 if bad or not maps else 0


if __name__ == '__main__':
    sys.exit(main())
