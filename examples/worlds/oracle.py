"""What a scheduler could reach that knows all: python3 examples/worlds/oracle.py socket examples/worlds/mixes/socket-1.toml

Every 200 ms it searches who runs where for the greatest sum of weight times true speed, by the world's own law. The weight of a
job is exp(-lead / tau) of its true progress. It knows neither the future nor the best sum over time, so a better scheduler
may exist: a bound in practice, not in theory. Prints the turnaround of the batch and the unfairness as JSON.
"""

import argparse
import functools
import importlib.util
import json
import math
import random
import statistics
import sys
import tomllib
from pathlib import Path

import cosched

HERE = Path(__file__).resolve().parent
QUANTUM_S = 0.2
TAU = 0.01  # of the mean progress, at least a quantum
FARTHEST = 30.0  # leads beyond so many tau count as so many
MOST_TRIES = 150  # placements looked at in a quantum
LEAST_GAIN = 1e-4


@functools.cache
def load(world):
    """The module of a world. By its path, since one has the name of a standard module."""
    sys.path.append(str(HERE))
    spec = importlib.util.spec_from_file_location(f"{world}_world", HERE / f"{world}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def jobs_of(mix):
    """The jobs of a mix file, as a world is told of them."""
    new = []
    for entry in tomllib.loads(Path(mix).read_text())["job"]:
        for copy in range(entry.get("copies", 1)):
            new.append(cosched._world.NewTask(len(new), f"{entry['name']}.{copy}", 1, entry["given"]))
    return new


class Oracle:
    """Searches for the placement of the next quantum."""

    def __init__(self, world, seed):
        self.world, self.physics, self.rng = world, world.physics, random.Random(seed)
        self.alone = functools.cache(self.physics.alone)
        self.cpus = list(range(self.physics.cores * self.physics.threads))

    def weights(self, progress):
        """The weight of each live job."""
        tau = max(QUANTUM_S, TAU * statistics.mean(progress.values()))
        median = statistics.median(progress.values())
        return {job: math.exp(max(-FARTHEST, min(FARTHEST, (median - done) / tau))) for job, done in progress.items()}

    def worth(self, who, weights):
        """The weighted speed of {cpu: job}."""
        running, jobs = {}, self.world.jobs
        for cpu, id in who.items():
            running[cpu] = (jobs[id].phase, jobs[id].home or self.physics.touched((cpu,)))
        flows = self.physics.flows(running)[0] if running else {}
        return sum(weights[id] * flows[cpu][0].instructions / self.alone(jobs[id].phase) for cpu, id in who.items())

    def search(self, who, live, weights):
        """The best placement found from the present one by single changes, exchanges and moves."""
        who = {cpu: id for cpu, id in who.items() if id in live}
        free = [cpu for cpu in self.cpus if cpu not in who]
        waiting = sorted((id for id in live if id not in who.values()), key=lambda id: -weights[id])
        who.update(zip(free, waiting))
        best, tries, improved = self.worth(who, weights), 0, True
        while improved and tries < MOST_TRIES:
            improved = False
            for change in self.changes(who, live, weights):
                tried = change(dict(who))
                tries += 1
                found = self.worth(tried, weights)
                if found > best * (1 + LEAST_GAIN):
                    who, best, improved = tried, found, True
                    break
                if tries >= MOST_TRIES:
                    break
        return who

    def changes(self, who, live, weights):
        """Single changes of a placement in a random order: a job, or none, takes a CPU, or two CPUs exchange their jobs."""

        def put(cpu, id):
            return lambda tried: {**{at: one for at, one in tried.items() if at != cpu}, **({} if id is None else {cpu: id})}

        def swap(one, other):
            def swapped(tried):
                jobs = {one: tried.pop(other, None), other: tried.pop(one, None)}
                tried.update({cpu: id for cpu, id in jobs.items() if id is not None})
                return tried
            return swapped

        waiting = [id for id in live if id not in who.values()]
        found = [put(cpu, id) for cpu in self.cpus for id in [*waiting, None] if id is not None or cpu in who]
        if self.physics.threads > 1 or self.physics.domains > 1:
            found += [swap(a, b) for a in self.cpus for b in self.cpus if a < b and (a in who or b in who)]
        self.rng.shuffle(found)
        return found


def run(world, mix, seed):
    """Turnaround of the batch and the unfairness of its jobs."""
    physics, new = world.physics, jobs_of(mix)
    oracle = Oracle(world, seed)
    world.add(new)
    live, ends, who = {one.id for one in new}, {}, {}
    done = dict.fromkeys(live, 0.0)
    now, quantum = 0.0, 0
    while live:
        quantum += 1
        weights = oracle.weights({id: done[id] for id in live})
        after = oracle.search(who, live, weights)
        gone = [cosched._world.Change(id, None) for id in who.values() if id in live and id not in after.values()]
        moved = [cosched._world.Change(id, cosched.Place((cpu,), False, "run")) for cpu, id in after.items() if who.get(cpu) != id]
        world.apply(gone + moved)
        who, events = after, True
        while events and live:
            since = now
            now, events = world.wait(quantum * QUANTUM_S)
            for id in who.values():
                if id in live:
                    done[id] += world.jobs[id].speeds[-1][2] * (now - since)
            for event in events:
                ends[event.task] = now
                live.discard(event.task)
    solo = {one.id: physics.solo_s(one.given["program"], float(one.given["instructions"]), seed) for one in new}
    slowdowns = [ends[id] / solo[id] for id in ends]
    return {"turnaround_s": max(ends.values()), "unfairness": max(slowdowns) / min(slowdowns),
            "mean_turnaround_s": statistics.mean(ends.values())}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("world", choices=("socket", "numa"))
    parser.add_argument("mix")
    parser.add_argument("--channels", type=int)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    module = load(args.world)
    if args.channels:
        module.World.physics = (module.Socket if args.world == "socket" else module.Numa)(args.channels)
    print(json.dumps(run(module.World(args.seed), args.mix, args.seed)))
