#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Compares the bytes that went to other nodes (output of forge/wire) with the
simulator: every byte is sealed once, 24 bytes for each sealed piece are added,
and nothing else.

    check_wire.py < OUTPUT
"""
import sys

from simulate import ALGORITHMS, OVERHEAD, wire


def read(stream):
    """[(nodes, m, {name: [bytes of rank 0, ...]}) of each map]"""
    maps = []
    for line in stream:
        words = line.split()
        if len(words) == 6 and words[0] == 'map':
            maps.append(([int(x) for x in words[1].split(',')], int(words[3]), {}))
        elif len(words) == 3 and maps:
            maps[-1][2].setdefault(words[0], {})[int(words[1])] = int(words[2])
    return [(nodes, m, {name: [rows[i] for i in range(len(nodes))] for name, rows in counted.items()})
            for nodes, m, counted in maps]


def expected(nodes, m):
    """{name: bytes of each rank, or of all together}"""
    sizes = [nodes.count(n) for n in sorted(set(nodes))]
    answer = {name: wire(name, nodes, m) for name in ALGORITHMS}
    answer['p2p'] = [(len(nodes) - nodes.count(node)) * (m + OVERHEAD) for node in nodes]
    answer['alltoall-rows'] = answer['p2p']
    answer['bcast-binomial'] = answer['bcast-chain'] = (len(sizes) - 1) * (m + OVERHEAD)
    answer['alltoall-node'] = sum(a * b * m + OVERHEAD for i, a in enumerate(sizes)
                                  for j, b in enumerate(sizes) if i != j)
    return answer


def main():
    wrong = []
    maps = read(sys.stdin)
    for nodes, m, counted in maps:
        print(f'nodes {",".join(map(str, nodes))}, {m} bytes:')
        known = expected(nodes, m)
        if counted.keys() != known.keys():
            wrong.append(f'counted were {sorted(counted)}; the simulator knows {sorted(known)}')
        for name, bytes_ in known.items():
            got = counted.get(name)
            if got is not None and not isinstance(bytes_, list):
                got = sum(got)
            if got != bytes_:
                wrong.append(f'{nodes}, {name}: {got} bytes to other nodes, must be {bytes_}')
            else:
                print(f'  {name:15} {sum(bytes_) if isinstance(bytes_, list) else bytes_}')
    if not maps:
        wrong.append('no map was counted')
    for line in wrong:
        print(f'check_wire.py: {line}', file=sys.stderr)
    return 1 if wrong else 0


sys.exit(main())
