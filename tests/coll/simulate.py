#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""The nine encrypted all-gathers, played through message by message.

An independent model of what coll/cryptag must do: it knows the algorithms as
docs/design/004-collectives.rst tells them, and shares no code and no schedule with the
component.  Every rank has a store: block -> plaintext or not, and the sealed
pieces it holds.  Nothing but what a message carries moves from store to store,
so a schedule that forgets a block, or needs plaintext that is not there, stops
with an assertion.

    simulate(algorithm, nodes, m, leaders)  nodes[i] is the node of rank i;
        leaders: doubling or ring, under Naive, HS1, HS2 and HS3
        -> [(r_c, s_c, r_e, s_e, r_d, s_d) of rank 0, of rank 1 ...]

    wire(...)                       the same, but
        -> [bytes to other nodes of rank 0, of rank 1 ...]

    simulate.py NODES M             prints them: simulate.py 0,0,1,1 64
"""
import sys


OVERHEAD = 24                           # counter and tag of a sealed piece


class Rank:
    def __init__(self, number, node):
        self.number, self.node = number, node
        self.plain = {number}           # blocks known in plaintext
        self.pieces = []                # sealed pieces held, oldest first
        self.unopened = []
        self.steps = self.sent = self.seals = self.sealed = self.opens = self.opened = 0
        self.wire = 0                   # bytes to other nodes

    def metrics(self):
        return (self.steps, self.sent, self.seals, self.sealed, self.opens, self.opened)


class World:
    def __init__(self, nodes, m):
        self.m = m
        self.ranks = [Rank(i, node) for i, node in enumerate(nodes)]
        order = []
        for node in nodes:
            if node not in order:
                order.append(node)
        self.nodes = [[r for r in self.ranks if r.node == node] for node in order]
        self.p = len(nodes)

    # ---- what ranks do ----

    def seal(self, rank, blocks):
        blocks = frozenset(blocks)
        assert blocks <= rank.plain, "sealing what is not known"
        rank.seals += 1
        rank.sealed += len(blocks) * self.m
        return blocks

    def open(self, rank, piece):
        rank.opens += 1
        rank.opened += len(piece) * self.m
        rank.plain |= piece

    def open_all(self, rank):
        for piece in rank.unopened:
            self.open(rank, piece)
        rank.unopened = []

    def exchange(self, messages):
        """One step: [(from, to, plain blocks, sealed pieces)].  All are composed
        before any arrives; who sends or receives has one step more."""
        busy = set()
        for source, target, blocks, pieces in messages:
            assert set(blocks) <= source.plain, "sending what is not known"
            busy |= {source, target}
            source.sent += self.m * (len(blocks) + sum(len(p) for p in pieces))
            if source.node != target.node:
                assert not blocks, "plaintext leaves the node"
                source.wire += sum(self.m * len(p) + OVERHEAD for p in pieces)
        for source, target, blocks, pieces in messages:
            target.plain |= set(blocks)
            target.pieces += pieces
            target.unopened += pieces
        for rank in busy:
            rank.steps += 1

    def finish(self):
        for rank in self.ranks:
            self.open_all(rank)
            assert rank.plain == set(range(self.p)), f"rank {rank.number} lacks blocks"
        return [rank.metrics() for rank in self.ranks]


def doubling(n):
    """[[(to, items sent) of member 0, of member 1 ...] of round 0, ...]"""
    rounds, held = [], [[i] for i in range(n)]
    distance = 1
    while distance < n:
        if n & (n - 1) == 0:
            round_ = [(i ^ distance, list(held[i])) for i in range(n)]
        else:
            round_ = [((i - distance) % n, held[i][:n - distance]) for i in range(n)]
        for i, (to, items) in enumerate(round_):
            held[to] = held[to] + items if to != i else held[to]
        rounds.append(round_)
        distance *= 2
    assert all(sorted(h) == list(range(n)) for h in held)
    return rounds


def ring(n):
    return [[((i + 1) % n, [(i - step) % n]) for i in range(n)] for step in range(n - 1)]


ALGORITHMS = {}


def algorithm(run):
    """For each algorithm of crypt/base/algorithms.h: the word that the parameter takes is the name of the function."""
    ALGORITHMS[run.__name__.replace('_', '-')] = run
    return run


# ---- forwarding of ready-made items: used where items never change ----

def gather(world, schedule, lanes):
    """lanes: [(members, [pieces of item 0, of item 1 ...])], sharing steps."""
    for round_ in schedule:
        messages = []
        for members, items in lanes:
            for i, (to, sent) in enumerate(round_):
                pieces = [piece for item in sent for piece in items[item]]
                if pieces:
                    messages.append((members[i], members[to], [], pieces))
        world.exchange(messages)


@algorithm
def naive(world, kind=doubling):
    items = [[world.seal(r, {r.number})] for r in world.ranks]
    gather(world, kind(world.p), [(world.ranks, items)])


@algorithm
def o_ring(world):
    came = {}
    for round_ in ring(world.p):
        messages = []
        for source in world.ranks:
            to, (block,) = round_[source.number]
            target, sealed = world.ranks[to], came.get(source)
            if source.node == target.node:
                world.open_all(source)
                messages.append((source, target, [block], []))
            else:
                messages.append((source, target, [], [sealed or world.seal(source, {block})]))
        world.exchange(messages)
        came = {target: pieces[0] for _, target, _, pieces in messages if pieces}


@algorithm
def o_rd(world):
    for round_ in doubling(world.p):
        messages = []
        for source in world.ranks:
            to, wanted = round_[source.number]
            target, wanted = world.ranks[to], set(wanted)
            if source.node == target.node:
                world.open_all(source)
                messages.append((source, target, sorted(wanted), []))
                continue
            pieces, rest = [], set(wanted)
            for piece in source.pieces:
                if piece <= rest:
                    pieces.append(piece)
                    rest -= piece
            if rest:
                world.open_all(source)
                fresh = world.seal(source, rest)
                source.pieces.append(fresh)
                pieces.append(fresh)
            messages.append((source, target, [], pieces))
        world.exchange(messages)


@algorithm
def o_rd2(world):
    for round_ in doubling(world.p):
        messages = []
        for source in world.ranks:
            to, wanted = round_[source.number]
            target = world.ranks[to]
            if source.node == target.node:
                messages.append((source, target, wanted, []))
            else:
                messages.append((source, target, [], [world.seal(source, wanted)]))
        world.exchange(messages)
        for rank in world.ranks:
            world.open_all(rank)


def concurrent(world, kind):
    lanes = []
    for g in range(max(len(node) for node in world.nodes)):
        members = [node[g % len(node)] for node in world.nodes]
        items = [[world.seal(node[g], {node[g].number})] if g < len(node) else [] for node in world.nodes]
        lanes.append((members, items))
    gather(world, kind(len(world.nodes)), lanes)
    for rank in world.ranks:
        world.open_all(rank)
    # within each node, side by side: what a rank has by now is its item
    rounds = {id(node): kind(len(node)) for node in world.nodes}
    items = {id(node): [sorted(r.plain) for r in node] for node in world.nodes}
    for step in range(max(len(r) for r in rounds.values())):
        messages = []
        for node in world.nodes:
            if step < len(rounds[id(node)]):
                for i, (to, sent) in enumerate(rounds[id(node)][step]):
                    blocks = [b for item in sent for b in items[id(node)][item]]
                    messages.append((node[i], node[to], blocks, []))
        world.exchange(messages)


@algorithm
def c_ring(world):
    concurrent(world, ring)


@algorithm
def c_rd(world):
    concurrent(world, doubling)


# ---- shared memory: what is in the node's segment is in the store of all ----

def share(world):
    for node in world.nodes:
        known = set().union(*(r.plain for r in node))
        for rank in node:
            rank.plain = set(known)


def hierarchical(world, items, kind, everybody=False):
    leaders = [node[0] for node in world.nodes]
    gather(world, kind(len(leaders)), [(leaders, items)])
    for leader, node in zip(leaders, world.nodes):
        foreign = [p for n, pieces in zip(world.nodes, items) if n is not node for p in pieces]
        assert sorted(map(sorted, leader.unopened)) == sorted(map(sorted, foreign))
        leader.unopened = []
        for k, piece in enumerate(foreign):
            for rank in node if everybody else [node[len(node) - 1 - k % len(node)]]:
                world.open(rank, piece)
    if not everybody:
        share(world)


@algorithm
def hs1(world, kind=doubling):
    share(world)
    hierarchical(world, [[world.seal(node[0], {r.number for r in node})] for node in world.nodes], kind)


@algorithm
def hs2(world, kind=doubling):
    items = [[world.seal(r, {r.number}) for r in node] for node in world.nodes]
    share(world)
    hierarchical(world, items, kind)


@algorithm
def hs3(world, kind=doubling):
    items = [[world.seal(r, {r.number}) for r in node] for node in world.nodes]
    share(world)
    hierarchical(world, items, kind, everybody=True)


def play(algorithm, nodes, m, leaders):
    world, run = World(nodes, m), ALGORITHMS[algorithm]
    run(world, leaders) if run.__defaults__ else run(world)         # those with a kind of leaders
    return world


def simulate(algorithm, nodes, m, leaders=doubling):
    return play(algorithm, nodes, m, leaders).finish()


def wire(algorithm, nodes, m, leaders=doubling):
    return [rank.wire for rank in play(algorithm, nodes, m, leaders).ranks]


if __name__ == '__main__':
    NODES = [int(x) for x in sys.argv[1].split(',')]
    for name in ALGORITHMS:
        for number, metrics in enumerate(simulate(name, NODES, int(sys.argv[2]))):
            print(name, number, *metrics)
