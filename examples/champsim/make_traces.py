#!/usr/bin/env python3
"""Writes the synthetic programs, and an idle one, as traces for ChampSim: make_traces.py DIR

A record has 64 bytes: address of the instruction, is it a branch, was it taken, 2 registers written, 4 registers read,
2 addresses stored to, 4 addresses loaded from. Zero means none.
"""

import argparse
import bisect
import gzip
import itertools
import random
import struct
from pathlib import Path

RECORD = struct.Struct("<QBB2B4B2Q4Q")
LINE = 64
LLC = 512 * 1024
FLAGS, INSTRUCTION_POINTER = 25, 26  # ChampSim knows a branch by these registers

CODE = 0x400000
SMALL_DATA = 0x10000000
CHAIN_DATA = 0x20000000
RANDOM_DATA = 0x30000000
STREAM_DATA = (0x40000000, 0x50000000, 0x60000000)


def record(place, writes=(0, 0), reads=(0, 0, 0, 0), store=0, load=0, branch=0):
    """One instruction, the `place`-th of the program's code."""
    return RECORD.pack(CODE + 4 * place, branch, branch, *writes, *reads, store, 0, load, 0, 0, 0)


def arithmetic(place, into, left, right):
    return record(place, writes=(into, 0), reads=(left, right, 0, 0))


def loop_end(place):
    """A conditional branch, always taken."""
    return record(place, writes=(INSTRUCTION_POINTER, 0), reads=(INSTRUCTION_POINTER, FLAGS, 0, 0), branch=1)


def count(place, register):
    """Counts the loop, and sets the flags its branch reads."""
    return record(place, writes=(register, FLAGS), reads=(register, 0, 0, 0))


def stream_loops(first, loops, place=0):
    """a[i] = b[i] * s + c[i] with elements of 8 bytes: 6 instructions a loop."""
    fixed = arithmetic(place + 2, 3, 1, 2), count(place + 4, 5) + loop_end(place + 5)
    for i in range(first, first + loops):
        to, left, right = (base + 8 * i for base in STREAM_DATA)
        yield record(place, writes=(1, 0), reads=(5, 0, 0, 0), load=left)
        yield record(place + 1, writes=(2, 0), reads=(5, 0, 0, 0), load=right)
        yield fixed[0]
        yield record(place + 3, reads=(3, 5, 0, 0), store=to)
        yield fixed[1]


def compute_loops(loops, place=0):
    """Four chains of additions, one load and one store in 4 KB: 20 instructions a loop."""
    fixed = b"".join(arithmetic(place + 2 + k, 10 + k % 4, 10 + k % 4, 14) for k in range(16))
    fixed += count(place + 18, 5) + loop_end(place + 19)
    for i in range(loops):
        yield record(place, writes=(14, 0), reads=(5, 0, 0, 0), load=SMALL_DATA + 8 * (i % 256))
        yield record(place + 1, reads=(10, 5, 0, 0), store=SMALL_DATA + 2048 + 8 * (i % 256))
        yield fixed


def stream():
    """100,000 loops: 2.4 MB, 4.6 times the LLC."""
    return stream_loops(0, 100_000)


def compute():
    return compute_loops(30_000)


def chase(size, rounds):
    """A chain through all lines of `size` bytes, always in the same random order: 32 instructions a line."""
    lines = list(range(size // LINE))
    random.Random(size).shuffle(lines)
    fixed = b"".join(arithmetic(1 + k, 10 + k % 4, 1, 10 + k % 4) for k in range(29)) + count(30, 5) + loop_end(31)
    for line in lines * rounds:
        yield record(0, writes=(1, 0), reads=(1, 0, 0, 0), load=CHAIN_DATA + LINE * line)
        yield fixed


def chase80():
    return chase(LLC * 8 // 10, rounds=3)


def chase8():
    return chase(LLC // 8, rounds=18)


def mix():
    """Two random loads in half of the LLC, the second of a pair depends on the last pair. One load and one store of streams with
    steps of 32 bytes. 18 additions: 24 instructions a loop."""
    draw = random.Random(5)
    lines = LLC // 2 // LINE
    fixed = b"".join(arithmetic(4 + k, 10 + k % 4, 10 + k % 4, 1 + k % 3) for k in range(18)) + count(22, 5) + loop_end(23)
    for i in range(25_000):
        yield record(0, writes=(1, 0), reads=(5, 0, 0, 0), load=RANDOM_DATA + LINE * draw.randrange(lines))
        yield record(1, writes=(2, 0), reads=(2, 0, 0, 0), load=RANDOM_DATA + LINE * draw.randrange(lines))
        yield record(2, writes=(3, 0), reads=(5, 0, 0, 0), load=STREAM_DATA[0] + 32 * i)
        yield record(3, reads=(10, 5, 0, 0), store=STREAM_DATA[1] + 32 * i)
        yield fixed


def phases():
    """50,000 instructions of stream (less two), then 50,000 of compute, 6 times over."""
    for period in range(6):
        yield from stream_loops(8_333 * period, 8_333)
        yield from compute_loops(2_500, place=64)


def additions(place, count_of_them):
    return b"".join(arithmetic(place + k, 10 + k % 4, 10 + k % 4, 14) for k in range(count_of_them))


def load(place, address):
    """A load that waits for nothing but the loop's counter."""
    return record(place, writes=(1, 0), reads=(5, 0, 0, 0), load=address)


def loads(addresses, more):
    """Independent loads, each with one addition of its value and `more` others."""
    fixed = arithmetic(1, 3, 3, 1) + additions(2, more) + count(2 + more, 5) + loop_end(3 + more)
    for address in addresses:
        yield load(0, address)
        yield fixed


def chase50():
    return chase(LLC // 2, rounds=5)


def random60():
    """Random loads in 60 % of the LLC: 12 instructions a load."""
    draw = random.Random(60)
    lines = LLC * 6 // 10 // LINE
    return loads((RANDOM_DATA + LINE * draw.randrange(lines) for _ in range(50_000)), more=8)


def readstream():
    """One load a line of 3 MB, in order, and no store: 13 instructions a line."""
    return loads((STREAM_DATA[0] + LINE * i for i in range(3 * 1024 * 1024 // LINE)), more=9)


def zipf():
    """Random loads in 1.5 MB, the line of rank r with a weight of 1 / r: 12 instructions a load."""
    draw = random.Random(1)
    lines = list(range(3 * LLC // LINE))
    draw.shuffle(lines)
    sums = list(itertools.accumulate(1 / (1 + rank) for rank in range(len(lines))))
    ranks = (min(bisect.bisect_left(sums, draw.random() * sums[-1]), len(lines) - 1) for _ in range(50_000))
    return loads((RANDOM_DATA + LINE * lines[rank] for rank in ranks), more=8)


def blocked():
    """Reads a block of 96 KB four times in order, and writes it the last time. Then the next of 8 blocks: 12 instructions a line."""
    lines = 96 * 1024 // LINE
    head, last, end = arithmetic(1, 3, 3, 1) + additions(2, 7), additions(9, 1), count(10, 5) + loop_end(11)
    for block, turn, i in itertools.product(range(8), range(4), range(lines)):
        address = STREAM_DATA[1] + LINE * (block * lines + i)
        yield load(0, address)
        yield head
        yield record(9, reads=(3, 5, 0, 0), store=address) if turn == 3 else last
        yield end


def slowmix():
    """A random load in 1 MB for each 32 instructions. 18,750 loads touch about 700 KB."""
    draw = random.Random(7)
    return loads((RANDOM_DATA + LINE * draw.randrange(2 * LLC // LINE) for _ in range(18_750)), more=28)


def idle():
    """One chain of additions, nothing else: for the core beside a program alone."""
    loop = b"".join(arithmetic(k, 10, 10, 10) for k in range(14)) + count(14, 5) + loop_end(15)
    return [loop] * 37_500


PROGRAMS = {"stream": stream, "chase80": chase80, "chase8": chase8, "compute": compute, "mix": mix, "phases": phases,
            "chase50": chase50, "random60": random60, "readstream": readstream, "zipf": zipf, "blocked": blocked,
            "slowmix": slowmix, "idle": idle}


def write(records, path):
    with gzip.GzipFile(path, "wb", compresslevel=4, mtime=0) as out:
        out.write(b"".join(records))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where NAME.gz goes for each of: " + ", ".join(PROGRAMS))
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, program in PROGRAMS.items():
        write(program(), folder / f"{name}.gz")
        print(folder / f"{name}.gz")


if __name__ == "__main__":
    main()
