# /// script
# dependencies = ["cosched"]
# ///
"""A world that replays measured series: each program alone, and its slowdown beside each other program.

    cosched run examples/foreign/trace_mix.toml --on "cmd:python3 examples/foreign/trace_replay.py" --policy perf-fair

`trace_replay.json`, or the file that TRACES names, has for each program its phases in seconds of solo time, with
instructions per cycle, accesses to the last-level cache and lines read from memory per microsecond. `slowdown[a][b]` is
the time of `a` beside `b`, divided by its time alone. The series are made up; replace them with yours.

A job is the program of its name without `#2`. In the mix `given = { seconds = 20 }` sets its length in solo time; the
series begins again at its end.

Assumptions: all jobs that run are co-runners, since all cores share the last-level cache. Several add up, as 1 + the sum of
(slowdown - 1). A phase reads as much per instruction as alone. A job has one thread. If more run than there are cores, as
under `linux`, all get an equal share of the time.
"""

import json
import math
import os
from pathlib import Path

import cosched

TRACES = Path(os.environ.get("TRACES", Path(__file__).with_suffix(".json")))
CORES = 4
TOO_LATE_S = 1e9
"""Later than any run."""


class Job:
    """A program at its place in its series."""

    def __init__(self, new, traces):
        self.program = new.name.split("#")[0]
        if self.program not in traces["programs"]:
            raise ValueError(f"{TRACES}: there is no program {self.program}; there are {', '.join(traces['programs'])}")
        self.phases = traces["programs"][self.program]
        self.slowdown = traces["slowdown"][self.program]
        self.cycles_per_s = traces["ghz"] * 1e9
        self.left_s = new.given.get("seconds", sum(phase[0] for phase in self.phases))
        self.phase = 0
        self.phase_left_s = self.phases[0][0]
        self.usage = cosched.Usage(0.0, 0.0, 0.0, None, 0.0, 0.0)

    def slowed(self, others):
        """Its slowdown beside these jobs."""
        return 1 + sum(self.slowdown[other.program] - 1 for other in others)

    def next_change_s(self, slowdown):
        """Time to the end of its phase or of the job."""
        return min(self.left_s, self.phase_left_s) * slowdown

    def advance(self, cpu_s, slowdown):
        """Run for a time in which nothing changes."""
        _, ipc, llc_per_us, reads_per_us = self.phases[self.phase]
        alone_s = cpu_s / slowdown
        self.left_s -= alone_s
        self.phase_left_s -= alone_s
        self.usage.cpu_time_s += cpu_s
        self.usage.cycles += cpu_s * self.cycles_per_s
        self.usage.instructions += alone_s * self.cycles_per_s * ipc
        self.usage.llc_accesses += alone_s * llc_per_us * 1e6
        self.usage.mm_reads += alone_s * reads_per_us * 1e6
        # A step ends at a whole nanosecond, so what is below one is the rounding of it.
        if self.phase_left_s < 1e-9:
            self.phase = (self.phase + 1) % len(self.phases)
            self.phase_left_s += self.phases[self.phase][0]

    def has_ended(self):
        return self.left_s < 1e-9


class Replay(cosched.World):
    """Jobs on four cores of a common cache."""

    missing = {
        "l1-accesses": "no-such-event",
        "mm-writes": "no-such-event",
        "energy": "no-energy-meter",
        "traffic": "not-offered",
        "core-types": "one-core-type",
        "solo-bandwidth": "not-offered",
        "solo-trace": "no-solo-trace",
    }

    def __init__(self, seed=1):
        super().__init__(seed)
        self.traces = json.loads(TRACES.read_text())
        self.jobs = {}
        self.running = set()
        self.now_s = 0.0

    def machine(self):
        return cosched.machine(cores=CORES, name="replay")

    def add(self, tasks):
        self.jobs.update({new.id: Job(new, self.traces) for new in tasks})

    def apply(self, changes):
        for change in changes:
            (self.running.discard if change.place is None else self.running.add)(change.task)

    def wait(self, until_s):
        until_s = TOO_LATE_S if until_s is None else until_s
        while self.now_s < until_s and self.running:
            slowed = {
                id: self.jobs[id].slowed(self.jobs[other] for other in self.running if other != id)
                for id in sorted(self.running)
            }
            share = min(1.0, CORES / len(self.running))
            step_s = min(self.jobs[id].next_change_s(slowed[id]) for id in slowed) / share
            # Rounded up to the next nanosecond, so that an end is not before its time.
            next_s = min(until_s, math.ceil((self.now_s + step_s) * 1e9) / 1e9)
            for id in slowed:
                self.jobs[id].advance((next_s - self.now_s) * share, slowed[id])
            self.now_s = next_s
            ended = [id for id in slowed if self.jobs[id].has_ended()]
            self.running.difference_update(ended)
            if ended:
                return self.now_s, [cosched.Ended(id) for id in ended]
        if until_s < TOO_LATE_S:
            self.now_s = until_s
        return self.now_s, []

    def read(self, tasks):
        return {id: self.jobs[id].usage for id in tasks}


if __name__ == "__main__":
    Replay.run()
