#!/usr/bin/env python3
"""Measures in ChampSim how twelve programs slow each other down. README.md says how to build what this needs.

run_pairs.py configs config.json DIR       writes a configuration for each executable
run_pairs.py run --bin DIR --traces DIR --out DIR --jobs 2
                                           runs what DIR lacks, then writes the tables: alone.csv, slowdowns.csv, and
                                           slowdowns_second.csv
run_pairs.py tables --out DIR              writes the tables from the runs that DIR has
"""

import argparse
import csv
import itertools
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

FIRST = ["stream", "chase80", "chase8", "compute", "mix", "phases"]
SECOND = ["chase50", "random60", "readstream", "zipf", "blocked", "slowmix"]
PROGRAMS = FIRST + SECOND
BESIDE_SECOND = ["stream", "chase80", "mix"]  # These of the first six also run beside each of the second.
WAYS_OF_KB = {64: 2, 128: 4, 256: 8, 384: 12, 448: 14, 512: 16, 1024: 32}  # 512 sets each
SHARED_KB = 512
IDLE = "idle"
WARM_UP, MEASURED = 600_000, 1_000_000
DEMANDS = ["LOAD", "RFO", "TRANSLATION"]
PROGRESS = re.compile(r"^Simulation (finished|complete) CPU (\d+) instructions: (\d+) cycles: (\d+)", re.MULTILINE)

ALONE_COLUMNS = ["program", "llc_kb", "ipc", "l1_accesses_pki", "l1_misses_pki", "l2_accesses_pki", "l2_misses_pki",
                 "llc_accesses_pki", "llc_misses_pki", "llc_writebacks_pki", "dram_reads_pki", "dram_writes_pki"]
PAIR_COLUMNS = ["program", "corunner", "ipc_alone", "ipc_together", "slowdown", "core", "llc_misses_pki_together"]


@dataclass(frozen=True)
class Run:
    """One run with a program on each core."""
    kb: int
    programs: tuple

    def result(self, out):
        return out / f"{self.kb}-{'-'.join(self.programs)}.json"


def executable(kb):
    return f"champsim-{kb}"


def alone(program, kb=SHARED_KB, core=0):
    """A core of its own: the other one only adds registers."""
    return Run(kb, (program, IDLE) if core == 0 else (IDLE, program))


def pair(first, second):
    return Run(SHARED_KB, (first, second))


def pairs(programs=None):
    if programs is None:
        return pairs(FIRST) + pairs(SECOND)
    own = list(itertools.combinations_with_replacement(programs, 2))
    return own + [(one, other) for one in programs if one in SECOND for other in BESIDE_SECOND]


def all_runs():
    runs = [alone(program, core=core) for program in PROGRAMS for core in (0, 1)]
    runs += [pair(*programs) for programs in pairs()]
    return runs + [alone(program, kb) for kb in WAYS_OF_KB if kb != SHARED_KB for program in PROGRAMS]


def write_configs(base_file, folder):
    """The machine of `base_file` with other numbers of ways in the LLC."""
    base = json.loads(base_file.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    for kb, ways in WAYS_OF_KB.items():
        config = base | {"executable_name": executable(kb), "LLC": base["LLC"] | {"ways": ways}}
        (folder / f"{executable(kb)}.json").write_text(json.dumps(config, indent=1))


def simulate(run, args):
    """Runs ChampSim unless its result is there. A run that was cut leaves no result."""
    result = run.result(args.out)
    if result.exists():
        return
    unfinished = result.with_suffix(".part")
    command = [args.bin / executable(run.kb), "--hide-heartbeat", "-w", str(WARM_UP), "-i", str(MEASURED), "--json", unfinished]
    command += [args.traces / f"{program}.gz" for program in run.programs]
    with open(result.with_suffix(".log"), "w") as log:
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=True)
    unfinished.rename(result)
    print(result.name, flush=True)


def simulate_all(args):
    args.out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(args.jobs) as pool:
        waiting = [pool.submit(simulate, run, args) for run in all_runs()]
        for one in waiting:
            one.result()


def read(run, out):
    """What ChampSim measured after the warm-up, or None where there is no such run."""
    result = run.result(out)
    if not result.exists():
        return None
    return json.loads(result.read_text())[0] | {"progress": read_progress(result.with_suffix(".log"))}


def read_progress(log):
    """Instructions and cycles of each core: `finished` when it had its instructions, `complete` when both had theirs. They are
    read from the text, since the list of cores in the JSON has the last core first and does not name them."""
    found = PROGRESS.findall(log.read_text())
    return {(state, int(core)): (int(instructions), int(cycles)) for state, core, instructions, cycles in found}


def ipc(measured, core):
    """Instructions per cycle until both cores had theirs. The one that has them first goes on. At its start a run is not yet as it
    stays: the warm-up takes no time, and so fills the LLC in other shares."""
    instructions, cycles = measured["progress"]["complete", core]
    return instructions / cycles


def accesses(cache, kinds, core=0):
    return sum(cache[kind]["hit"][core] + cache[kind]["miss"][core] for kind in kinds)


def misses(cache, kinds, core=0):
    """ChampSim counts an access to a line under way as a miss too. It fetches nothing, so this leaves it out."""
    return sum(cache[kind]["miss"][core] - cache[kind]["mshr_merge"][core] for kind in kinds)


def alone_counts(measured):
    """Counts of the program on core 0, by column of alone.csv, for 1,000 instructions."""
    stats = measured["sim"]
    first, second, last, dram = stats["cpu0_L1D"], stats["cpu0_L2C"], stats["LLC"], stats["DRAM"][0]
    counts = {
        "l1_accesses_pki": accesses(first, DEMANDS + ["WRITE"]),
        "l1_misses_pki": misses(first, DEMANDS + ["WRITE"]),
        "l2_accesses_pki": accesses(second, DEMANDS),
        "l2_misses_pki": misses(second, DEMANDS),
        "llc_accesses_pki": accesses(last, DEMANDS),
        "llc_misses_pki": misses(last, DEMANDS),
        "llc_writebacks_pki": accesses(last, ["WRITE"]),
        "dram_reads_pki": dram["RQ ROW_BUFFER_HIT"] + dram["RQ ROW_BUFFER_MISS"],
        "dram_writes_pki": dram["WQ ROW_BUFFER_HIT"] + dram["WQ ROW_BUFFER_MISS"],
    }
    return {name: 1000 * count / measured["progress"]["complete", 0][0] for name, count in counts.items()}


def alone_row(program, kb, out):
    measured = read(alone(program, kb), out)
    if not measured:
        return None
    row = {name: f"{count:.3f}" for name, count in alone_counts(measured).items()}
    return row | {"program": program, "llc_kb": kb, "ipc": f"{ipc(measured, 0):.4f}"}


def misses_together(measured, core):
    """LLC misses for 1,000 instructions of this core, until both cores had theirs."""
    return 1000 * misses(measured["sim"]["LLC"], DEMANDS, core) / measured["progress"]["complete", core][0]


def slowdown_row(programs, core, out):
    """How much the program on `core` is slowed by the one on the other core."""
    beside, by_itself = read(pair(*programs), out), read(alone(programs[core], core=core), out)
    if not beside or not by_itself:
        return None
    ipc_alone, ipc_together = ipc(by_itself, core), ipc(beside, core)
    return {
        "program": programs[core], "corunner": programs[1 - core], "core": core,
        "ipc_alone": f"{ipc_alone:.4f}", "ipc_together": f"{ipc_together:.4f}", "slowdown": f"{ipc_alone / ipc_together:.3f}",
        "llc_misses_pki_together": f"{misses_together(beside, core):.3f}",
    }


def write_table(path, columns, rows):
    with open(path, "w", newline="") as file:
        table = csv.DictWriter(file, columns, lineterminator="\n")
        table.writeheader()
        table.writerows(row for row in rows if row)


def write_tables(out):
    write_table(out / "alone.csv", ALONE_COLUMNS, [alone_row(program, kb, out) for program in PROGRAMS for kb in WAYS_OF_KB])
    for file, programs in (("slowdowns.csv", FIRST), ("slowdowns_second.csv", SECOND)):
        rows = [slowdown_row(both, core, out) for both in pairs(programs) for core in (0, 1)]
        write_table(out / file, PAIR_COLUMNS, sorted(filter(None, rows), key=place_in_table))


def place_in_table(row):
    return PROGRAMS.index(row["program"]), PROGRAMS.index(row["corunner"]), row["core"]


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    configs = commands.add_parser("configs")
    configs.add_argument("base", type=Path)
    configs.add_argument("folder", type=Path)
    run = commands.add_parser("run")
    run.add_argument("--bin", type=Path, required=True, help="the executables of ChampSim")
    run.add_argument("--traces", type=Path, required=True)
    run.add_argument("--out", type=Path, required=True, help="where results go")
    run.add_argument("--jobs", type=int, default=2, help="runs at once")
    tables = commands.add_parser("tables")
    tables.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def main():
    args = read_arguments()
    if args.command == "configs":
        return write_configs(args.base, args.folder)
    if args.command == "run":
        simulate_all(args)
    write_tables(args.out)


if __name__ == "__main__":
    sys.exit(main())
