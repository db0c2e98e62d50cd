# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# plot.py TITLE SENDER RECEIVER CAPTURE: of the messages that trace.c wrote down, the quickest.  A line for each stage, a digit for each step of time: how many tenths of the message have passed, * when all have.
import struct
import sys

COLUMNS = 84


def messages(path):
    found = []
    for line in open(path):
        what, us, number = line.split()
        if what == "begin":
            found.append([])
        found[-1].append((what, float(us), int(number)))
    return found


def packets(path):
    data = open(path, "rb").read()
    assert data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"), "not a capture of this machine's byte order"
    part = 1e3 if data[:4] == b"\x4d\x3c\xb2\xa1" else 1
    at, found = 24, []
    while at + 16 <= len(data):
        seconds, fraction, kept, length = struct.unpack("<IIII", data[at:at + 16])
        if length >= 1000:                          # not the end of the capture
            found.append(("wire", seconds * 1e6 + fraction / part, length))
        at += 16 + kept
    return found


title, sender, receiver, capture = sys.argv[1:]
pairs = list(zip(messages(sender), messages(receiver)))
seen = packets(capture)


def span(pair):
    first = min(us for what, us, _ in pair[0] if what in ("seal", "send"))
    return first, max(us for what, us, _ in pair[1] if what == "end")


spans = [span(pair) for pair in pairs]
begin, end = min(spans, key=lambda one: one[1] - one[0])
chosen = spans.index((begin, end))
events = [event for half in pairs[chosen] for event in half]
events += [event for event in seen if begin - 50 <= event[1] <= end]
step = 10
while (end - begin) / step > COLUMNS - 1:
    step += 5 if step < 50 else 10
print(f"{title}: {end - begin:.0f} us (the quickest of {len(pairs)}), a column is {step} us")
print(f"{'':26}" + "".join(f"{column * step:<10}" for column in range(0, COLUMNS, 10)))
for name, what in (("sealed", "seal"), ("handed to the kernel", "send"), ("on the wire", "wire"), ("read", "recv"),
                   ("opened", "open")):
    stage = sorted((us, number) for kind, us, number in events if kind == what)
    whole = sum(number for _, number in stage)
    text = ""
    for column in range(int((end - begin) / step) + 1):
        done = sum(number for us, number in stage if us <= begin + (column + 1) * step)
        text += "." if done == 0 else "*" if done == whole else str(10 * done // whole)
    print(f"{name + ', ' + str(len(stage)):26}" + text)
