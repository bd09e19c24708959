#!/usr/bin/env python3
"""Measures in ChampSim how long a read takes while other cores use the memory. README.md says how to build what this needs.

measure_latency.py config config.json FILE      writes the configuration: four cores instead of two
measure_latency.py run --bin DIR --out DIR      writes traces, runs what DIR lacks, then writes DIR/latency.csv

A probe on the first core follows a chain of pointers through 1.5 MB, so each of its reads goes to memory. Loaders run on up to
three other cores, each with some additions between its accesses.
"""

import argparse
import json
import random
import subprocess
from pathlib import Path

from make_traces import CHAIN_DATA, LINE, RANDOM_DATA, STREAM_DATA, additions, arithmetic, count, idle, loop_end, record, write
from run_pairs import Run, read, write_table

EXECUTABLE = "champsim-4"
WARM_UP, MEASURED = 200_000, 16_000
INSTRUCTIONS_A_LINE = 8
COLUMNS = ["kind", "loaders", "additions", "reads_share", "bandwidth_gb_s", "latency_ns", "row_hit_share"]


def probe():
    """8 instructions a line. The additions do not wait for the chain."""
    lines = list(range(1536 * 1024 // LINE))
    random.Random(0).shuffle(lines)
    fixed = b"".join(arithmetic(1 + k, 10 + k % 4, 1, 10 + k % 4) for k in range(5)) + count(6, 5) + loop_end(7)
    for line in lines:
        yield record(0, writes=(1, 0), reads=(1, 0, 0, 0), load=CHAIN_DATA + LINE * line)
        yield fixed


def load(place, address):
    return record(place, writes=(1 + place % 2, 0), reads=(5, 0, 0, 0), load=address)


def in_order(lines, core):
    """All lines, from another one on for each core."""
    return ((i + core * lines // 3) % lines for i in range(lines))


def reads(more, core):
    """A load of each line of 2 MB."""
    fixed = additions(1, more) + count(1 + more, 5) + loop_end(2 + more)
    for i in in_order(32_768, core):
        yield load(0, STREAM_DATA[0] + LINE * i)
        yield fixed


def stores(more, core):
    """A store to each line of 2 MB: one line is read for each that is written."""
    fixed = additions(1, more) + count(1 + more, 5) + loop_end(2 + more)
    for i in in_order(32_768, core):
        yield record(0, reads=(10, 5, 0, 0), store=STREAM_DATA[0] + LINE * i)
        yield fixed


def arrays(loaded, lines, more, core):
    """A load of a line of each of `loaded` arrays, and a store to one more."""
    fixed = additions(loaded + 1, more) + count(loaded + 1 + more, 5) + loop_end(loaded + 2 + more)
    for i in in_order(lines, core):
        at = [STREAM_DATA[0] + (k << 24) + LINE * i for k in range(loaded + 1)]
        for k in range(loaded):
            yield load(k, at[k])
        yield record(loaded, reads=(10, 5, 0, 0), store=at[loaded])
        yield fixed


def triad(more, core):
    """Three lines are read for each that is written."""
    return arrays(2, 16_384, more, core)


def seven(more, core):
    """Seven lines are read for each that is written."""
    return arrays(6, 8_192, more, core)


def scattered(more, core):
    """Loads of random lines of 8 MB."""
    draw = random.Random(100 + core)
    fixed = additions(1, more) + count(1 + more, 5) + loop_end(2 + more)
    for _ in range(24_576):
        yield load(0, RANDOM_DATA + LINE * draw.randrange(131_072))
        yield fixed


KINDS = {"reads": reads, "scattered": scattered, "seven": seven, "triad": triad, "stores": stores}
# Loaders, and additions between the accesses of each.
POINTS = [(1, 128), (1, 32), (1, 8), (1, 0), (2, 32), (2, 0), (3, 64), (3, 32), (3, 16), (3, 8), (3, 0)]


def write_config(base_file, file):
    base = json.loads(base_file.read_text())
    file.write_text(json.dumps(base | {"executable_name": EXECUTABLE, "num_cores": 4}, indent=1))


def trace(folder, name, records):
    path = folder / f"{name}.gz"
    if not path.exists():
        write(records(), path)
    return path


def traces(folder, kind, loaders, more):
    """The traces of all four cores."""
    on = [trace(folder, "probe", probe)]
    for core in range(3):
        if core < loaders:
            on.append(trace(folder, f"{kind}-{more}-{core}", lambda core=core: KINDS[kind](more, core)))
        else:
            on.append(trace(folder, "idle", idle))
    return on


def measure(args, kind, loaders, more):
    result = args.out / f"{kind}-{loaders}-{more}.json"
    if not result.exists():
        unfinished = result.with_suffix(".part")
        command = [args.bin / EXECUTABLE, "--hide-heartbeat", "-w", str(WARM_UP), "-i", str(MEASURED), "--json", unfinished]
        with open(result.with_suffix(".log"), "w") as log:
            subprocess.run(command + traces(args.out, kind, loaders, more), stdout=log, stderr=subprocess.STDOUT, check=True)
        unfinished.rename(result)
        print(result.name, flush=True)
    return row(result, kind, loaders, more)


class Result(Run):
    """A run by the name of its result."""

    def result(self, _):
        return self.programs


def row(result, kind, loaders, more):
    measured = read(Result(0, result), None)
    dram = measured["sim"]["DRAM"][0]
    lines = {f"{queue} {what}": dram[f"{queue} ROW_BUFFER_{what}"] for queue in ("RQ", "WQ") for what in ("HIT", "MISS")}
    instructions, cycles = measured["progress"]["complete", 0]
    total = sum(lines.values())
    ns = cycles / 4
    return {
        "kind": kind, "loaders": loaders, "additions": more,
        "reads_share": f"{(lines['RQ HIT'] + lines['RQ MISS']) / total:.3f}",
        "bandwidth_gb_s": f"{total * LINE / ns:.2f}",
        "latency_ns": f"{ns / (instructions / INSTRUCTIONS_A_LINE):.1f}",
        "row_hit_share": f"{(lines['RQ HIT'] + lines['WQ HIT']) / total:.3f}",
    }


def run(args):
    args.out.mkdir(parents=True, exist_ok=True)
    rows = [measure(args, "reads", 0, 0)]
    rows += [measure(args, kind, *point) for kind in KINDS for point in POINTS]
    write_table(args.out / "latency.csv", COLUMNS, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    config = commands.add_parser("config")
    config.add_argument("base", type=Path)
    config.add_argument("file", type=Path)
    running = commands.add_parser("run")
    running.add_argument("--bin", type=Path, required=True, help="the folder of the executable")
    running.add_argument("--out", type=Path, required=True, help="where traces and results go")
    args = parser.parse_args()
    if args.command == "config":
        write_config(args.base, args.file)
    else:
        run(args)


if __name__ == "__main__":
    main()
