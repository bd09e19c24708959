"""Write results/worlds.md: python3 examples/worlds/make_page.py --out DIR

Run all policies in both worlds and in cosched's own simulation, and the oracle in both worlds. DIR keeps finished runs, so
a stopped command goes on where it was. The oracle takes minutes a mix and knows no policy, so its results are kept in
oracle_results.json; it runs again where its program, the world or the mix has changed. It calls `cosched run`, which is simpler than `compare` here: each run needs a file of
its own for the truth, and is kept or made again by itself. Part of the mixes or seeds: the page goes to DIR/worlds.md.
"""

import argparse
import functools
import hashlib
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from draw_mixes import KINDS, MIXES, load
from page_text import ORACLE_SEED, page

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ORACLE_RESULTS = HERE / "oracle_results.json"
OWN = "xeon-e5645-2ch"  # of cosched's own simulation
POLICIES = ["linux", "fifo", "round-robin", "bandwidth", "fair", "perf-fair", "efs", "spread", "oracle", "even"]
TIMEOUT_S = {"run": 900, "oracle": 3600}


class Section(NamedTuple):
    """Mixes and seeds that the page shows together."""

    title: str
    world: str
    channels: int
    mixes: range
    seeds: range
    has_oracle: bool
    times_only: bool = False


SECTIONS = [
    Section("`socket.py`, two channels", "socket", 2, range(1, 7), range(1, 6), True),
    Section("`numa.py`, three channels", "numa", 3, range(1, 7), range(1, 6), True),
    Section(f"cosched's own simulation, `{OWN}`", OWN, 2, range(1, 7), range(1, 6), False),
    Section("Unseen mixes: `socket.py`, two channels", "socket", 2, range(31, 37), range(1, 2), True),
    Section("Unseen mixes: `numa.py`, three channels", "numa", 3, range(31, 37), range(1, 2), True),
    Section("Stress: `socket.py`, one channel", "socket", 1, range(1, 7), range(1, 2), False, True),
    Section("Stress: `numa.py`, one channel", "numa", 1, range(1, 7), range(1, 2), False, True),
]


class Run(NamedTuple):
    """What the page needs of a run. Without predictions or learnt progress: None and no errors."""

    turnaround_s: float
    unfairness: float
    cpi_error: float | None  # median over the intervals beside others
    cpi_error_as_last: float | None
    progress_errors: list[float]  # of each job at its end, relative to its time alone


class Paths(NamedTuple):
    """Where things are."""

    cosched: str
    out: Path


def mix_file(section, mix):
    if section.world == OWN:
        return ROOT / f"mixes/perf-fair/mix{mix:02}.toml"
    return HERE / f"mixes/{section.world}-{mix}.toml"


def mix_kind(section, mix):
    return "" if section.world == OWN else MIXES[(mix - 1) % len(MIXES)][0]


def full_rate(world, channels):
    """Lines that a memory domain moves in a microsecond at most, by the constants of its world."""
    module = load(world)
    if world == "numa":
        return channels * module.CHANNEL_LINES * 1000
    # A read of the mean stream with the writes that follow it, in nanoseconds of a channel.
    phases = [phase for program in KINDS[world]["stream"] for phase in module.PROGRAMS[program]]
    row_hits = statistics.mean(phase.rows for phase in phases)
    writes = statistics.mean(phase.dirty for phase in phases)
    line_ns = row_hits * module.BURST_NS + (1 - row_hits) * module.ROW_MISS_NS
    write_ns = line_ns + module.TURN_NS / module.WRITE_BATCH
    lines_per_ns = (1 + writes) / (line_ns + writes * write_ns)
    return channels * 1000 * lines_per_ns * (1 - module.REFRESH_NS / module.REFRESH_EACH_NS)


@functools.cache
def params(policy, world, channels):
    """Options of a policy. The machine file of cosched's own simulation has the full rate already."""
    if policy != "efs":
        return ()
    # Its other objectives need the powers of the machine, which no policy is told in these worlds.
    rate = () if world == OWN else ("--param", f"mu_trans_per_us={full_rate(world, channels):.1f}")
    return ("--param", "objective=throughput", *rate)


@functools.cache
def content(path):
    return hashlib.sha256(Path(path).read_bytes()).digest()


def digest(files, options=()):
    """A short hash of all that decides a result, so that a kept result is never taken for another."""
    whole = hashlib.sha256(" ".join(options).encode())
    for file in files:
        whole.update(content(file))
    return whole.hexdigest()[:12]


def world_files(section):
    return [] if section.world == OWN else [HERE / "timeline.py", HERE / f"{section.world}.py"]


def run_folder(paths, section, policy, mix, seed):
    made_of = [paths.cosched, mix_file(section, mix), *world_files(section)]
    key = digest(made_of, params(policy, section.world, section.channels))
    return paths.out / f"{section.world}-{section.channels}" / f"{mix}" / f"{policy}-{seed}-{key}"


def oracle_key(section, mix):
    key = digest([HERE / "oracle.py", mix_file(section, mix), *world_files(section)])
    return f"{section.world}-{section.channels}-{mix}-{ORACLE_SEED}-{key}"


def oracle_file(paths, section, mix):
    return paths.out / "oracle" / f"{oracle_key(section, mix)}.json"


@functools.cache
def kept_oracle_results():
    return json.loads(ORACLE_RESULTS.read_text()) if ORACLE_RESULTS.exists() else {}


def read_oracle(paths, section, mix):
    """The result for a mix, as kept or as just made; None before that."""
    file = oracle_file(paths, section, mix)
    return json.loads(file.read_text()) if file.exists() else kept_oracle_results().get(oracle_key(section, mix))


def keep_oracle_results(paths, sections):
    """Write all results that are there."""
    pairs = [(section, mix) for section in sections if section.has_oracle for mix in section.mixes]
    found = {oracle_key(*pair): read_oracle(paths, *pair) for pair in pairs}
    found = {key: result for key, result in found.items() if result}
    ORACLE_RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def make_run(paths, section, policy, mix, seed):
    """Run a policy, unless that run is kept."""
    folder = run_folder(paths, section, policy, mix, seed)
    if folder.exists():
        return
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    world = [sys.executable, str(HERE / f"{section.world}.py"), "--channels", str(section.channels)]
    machine = OWN if section.world == OWN else "cmd:" + shlex.join(world)
    command = [paths.cosched, "run", str(mix_file(section, mix)), "--on", machine, "--policy", policy, "--seed", str(seed),
               "--logs", str(part / "log"), "--quiet", *params(policy, section.world, section.channels)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COSCHED_")}
    environment.update(COSCHED_WORLD_TRUTH=str(part / "truth.jsonl"), COSCHED_HISTORY="off")
    subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=TIMEOUT_S["run"])
    (part / "log/series.jsonl").unlink(missing_ok=True)  # large, and not needed for the page
    part.rename(folder)


def make_oracle(paths, section, mix):
    """Let the oracle run a mix, unless its result is kept."""
    if read_oracle(paths, section, mix):
        return
    file = oracle_file(paths, section, mix)
    file.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(HERE / "oracle.py"), section.world, str(mix_file(section, mix)),
               "--channels", str(section.channels), "--seed", str(ORACLE_SEED)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S["oracle"])
    part = file.with_suffix(".part")
    part.write_text(done.stdout)
    part.rename(file)


def read_run(folder, has_truth):
    """Read a kept run. In a world with a truth, times and unfairness must agree with it."""
    record = json.loads((folder / "log/run.json").read_text())
    jobs = record["jobs"]
    learnt = [(job["progress_learnt"] * record["quantum_s"], job["solo_s"]) for job in jobs if job["progress_learnt"] is not None]
    predictions = record.get("predictions") or {}
    run = Run(record["metrics"]["turnaround_s"], record["metrics"]["unfairness"], predictions.get("median"),
              predictions.get("median_as_last"), [progress_s / solo_s - 1 for progress_s, solo_s in learnt])
    if has_truth:
        compare_with_truth(folder, run, len(jobs))
    return run


def compare_with_truth(folder, run, jobs):
    ends = [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]
    ends = [end for end in ends if end["jobs"] > 1]  # the others are runs of a job alone
    slowdowns = [end["ended_s"] / end["solo_s"] for end in ends]
    true = (max(end["ended_s"] for end in ends), max(slowdowns) / min(slowdowns))
    recorded = (run.turnaround_s, run.unfairness)
    if len(ends) != jobs or any(abs(mine / theirs - 1) > 1e-4 for mine, theirs in zip(recorded, true)):
        raise ValueError(f"{folder}: the record says {recorded} for {jobs} jobs, the truth {true} for {len(ends)}")


def read_section(paths, section):
    """Runs by policy, mix and seed, and the results of the oracle by mix."""
    runs = {}
    for policy in POLICIES:
        for mix in section.mixes:
            for seed in section.seeds:
                folder = run_folder(paths, section, policy, mix, seed)
                runs[policy, mix, seed] = read_run(folder, section.world != OWN)
    oracle_mixes = section.mixes if section.has_oracle else []
    return runs, {mix: read_oracle(paths, section, mix) for mix in oracle_mixes}


def tasks(paths, sections):
    """All runs as functions with their names. The slow oracle comes first, so that no CPU waits for it at the end."""
    found = []
    for section in sections:
        name = f"{section.world} --channels {section.channels}"
        for mix in section.mixes if section.has_oracle else []:
            found.insert(0, (f"{name}, mix {mix}, oracle.py", functools.partial(make_oracle, paths, section, mix)))
        for mix in section.mixes:
            for seed in section.seeds:
                for policy in POLICIES:
                    make = functools.partial(make_run, paths, section, policy, mix, seed)
                    found.append((f"{name}, mix {mix}, seed {seed}, {policy}", make))
    return found


def make_all(found, jobs):
    """Make all runs, and return how many failed."""

    def attempt(task):
        name, make = task
        try:
            make()
        except (OSError, subprocess.SubprocessError) as error:
            return f"{name}: {error}\n{getattr(error, 'stderr', None) or ''}"

    failed = 0
    with ThreadPoolExecutor(jobs) as pool:
        for done, failure in enumerate(pool.map(attempt, found), 1):
            failed += failure is not None
            print(failure or f"{done} of {len(found)}", file=sys.stderr, end="\n" if failure else "\r", flush=True)
    return failed


def chosen(sections, mixes, seeds):
    """Sections with these mixes and seeds only; None stands for all."""
    parts = [section._replace(mixes=[mix for mix in section.mixes if mixes is None or mix in mixes],
                              seeds=[seed for seed in section.seeds if seeds is None or seed in seeds]) for section in sections]
    return [part for part in parts if part.mixes and part.seeds]


def numbers(text):
    return [int(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder that keeps the runs")
    parser.add_argument("--cosched", default=os.environ.get("COSCHED", "cosched"), help="program [default: $COSCHED, else cosched]")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="simulations at once [default: the CPUs]")
    parser.add_argument("--mixes", type=numbers, help="only these, as in 1,2")
    parser.add_argument("--seeds", type=numbers, help="only these, as in 1")
    args = parser.parse_args()
    binary = shutil.which(args.cosched)
    if not binary:
        parser.error(f"cannot find {args.cosched}: give --cosched PATH")
    paths = Paths(str(Path(binary).resolve()), args.out.resolve())
    sections = chosen(SECTIONS, args.mixes, args.seeds)
    failed = make_all(tasks(paths, sections), args.jobs)
    if failed:
        sys.exit(f"{failed} runs failed, so there is no page; the same command makes only these again")
    is_whole = sections == chosen(SECTIONS, None, None)
    target = ROOT / "results/worlds.md" if is_whole else paths.out / "worlds.md"
    rates = {(world, channels): full_rate(world, channels) for world, channels in (("socket", 2), ("numa", 3), ("socket", 1), ("numa", 1))}
    read = [(section, *read_section(paths, section)) for section in sections]
    kinds = [{mix: mix_kind(section, mix) for mix in section.mixes} for section in sections]
    target.write_text(page(read, kinds, rates))
    if is_whole:
        keep_oracle_results(paths, sections)
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
