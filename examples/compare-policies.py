#!/usr/bin/env python3
"""Runs a mix under several policies in turn and prints turnaround and unfairness of each: min / median / max.

    examples/compare-policies.py MIX.toml [--reps 3] [--policies linux,fifo,...] [--solo RECORD | --on MACHINE] [--cosched PATH]

Policies take turns within each repetition, in an order that changes from one repetition to the next, so that a slow
phase of the machine does not fall on one of them. Without --solo the solo times are measured first. With --on the mix
is simulated on that machine, where solo times are known anyway; repetitions have different seeds.
"""
import argparse, json, pathlib, random, statistics, subprocess, sys, tempfile

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("mix")
parser.add_argument("--reps", type=int, default=3)
parser.add_argument("--policies", default="linux,fifo,round-robin,bandwidth,fair,perf-fair")
parser.add_argument("--solo", help="record with solo times; measured when absent")
parser.add_argument("--on", metavar="MACHINE", help="simulate on this machine (cosched list machines)")
parser.add_argument("--cosched", default="target/release/cosched")
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()
if args.solo and args.on:
    parser.error("--solo and --on: a simulation knows the solo times itself; give one of them")

logs = pathlib.Path(tempfile.mkdtemp(prefix="cosched-compare-"))
order = random.Random(args.seed)


def run(policy, name, solo, extra=()):
    command = [args.cosched, "run", args.mix, "--policy", policy, "--quiet", "--format", "json",
               "--logs", str(logs / name), *extra]
    command += ["--on", args.on] if args.on else ["--solo", solo]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}; see {logs / name}")
    return json.loads(done.stdout)


solo = args.solo
if solo is None and args.on is None:
    run("fifo", "solo-first", "measure")
    solo = str(logs / "solo-first" / "solo.json")
    for job in json.load(open(solo))["jobs"]:
        print(f"solo {job['name']:<20} {job['finish_s'] - job['start_s']:.2f} s", flush=True)

figures = {}
for rep in range(args.reps):
    policies = args.policies.split(",")
    order.shuffle(policies)
    for policy in policies:
        record = run(policy, f"{policy}-{rep}", solo, ["--seed", str(args.seed + rep)] if args.on else [])
        metrics = record["metrics"]
        figures.setdefault(policy, []).append(metrics)
        shown = {key: round(metrics[key], 3) for key in ("turnaround_s", "unfairness", "antt") if metrics[key]}
        print(rep, policy, shown, flush=True)

print(f"\n{'policy':<14}{'turnaround [s] min / median / max':>38}{'unfairness min / median / max':>36}{'ANTT median':>14}")
for policy in args.policies.split(","):
    def column(key, form):
        values = [metrics[key] for metrics in figures[policy] if metrics[key] is not None]
        if not values:
            return "-"
        return " / ".join(form.format(v) for v in (min(values), statistics.median(values), max(values)))
    antt = [metrics["antt"] for metrics in figures[policy] if metrics["antt"] is not None]
    print(f"{policy:<14}{column('turnaround_s', '{:.1f}'):>38}{column('unfairness', '{:.2f}'):>36}"
          f"{statistics.median(antt) if antt else float('nan'):>14.2f}")
