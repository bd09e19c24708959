"""What both worlds share: jobs that run through their phases, a kernel that divides CPUs, counters, and the truth for judging.

A world's physics is a subclass of Physics. Timeline asks it for the flows of what runs and carries them forward until
something changes. Nothing here slows a job.
"""

import json
import os
import random
from typing import NamedTuple

import cosched

SLICE_NS = 48_000_000  # the kernel's time slice: CFS with two tasks on a CPU has 12 ms; longer here to simulate faster


class Flow(NamedTuple):
    """What a thread does in a nanosecond."""

    instructions: float
    l1: float
    llc: float
    reads: float
    writes: float


class Physics:
    """The laws of a world."""

    cores = threads = domains = 1
    name = "world"
    llc_bytes = None
    programs = {}
    """The phases of each program. A phase has `seconds`, its length alone."""

    def __init__(self):
        self._lengths = {}

    def machine(self):
        return cosched.machine(self.cores, self.threads, self.domains, self.domains, llc_bytes=self.llc_bytes, name=self.name)

    def domain(self, cpu):
        return cpu % self.cores * self.domains // self.cores

    def touched(self, cpus):
        """The part of its pages in each domain of a job that first runs on these CPUs."""
        return tuple(sum(self.domain(cpu) == domain for cpu in cpus) / len(cpus) for domain in range(self.domains))

    def flows(self, running):
        """Flow and clock in GHz by CPU, and power in W, for {cpu: (phase, home)}. `home` is as `touched` says."""
        raise NotImplementedError

    def alone(self, phase, cpus=1):
        """Instructions in a nanosecond of a job alone. Its threads have cores of their own as far as there are."""
        home = self.touched(range(cpus))
        return sum(flow.instructions for flow, _ in self.flows({cpu: (phase, home) for cpu in range(cpus)})[0].values())

    def lengths(self, program, seed):
        """Phases of a program, each with its instructions. The seed changes their lengths by up to 3 %."""
        if (program, seed) not in self._lengths:
            if program not in self.programs:
                raise ValueError(f"there is no program {program}; there are {', '.join(self.programs)}")
            rng = random.Random(f"{seed} {program}")
            scaled = [(phase, phase.seconds * 1e9 * (1 + 0.03 * rng.uniform(-1, 1))) for phase in self.programs[program]]
            self._lengths[program, seed] = [(phase, length * self.alone(phase)) for phase, length in scaled]
        return self._lengths[program, seed]

    def phase_at(self, program, instructions, seed):
        """The phase of a program after so many instructions, and how many are left in it."""
        lengths = self.lengths(program, seed)
        left = instructions % sum(length for _, length in lengths)
        for phase, length in lengths:
            if left < length:
                return phase, length - left
            left -= length
        return lengths[0]

    def solo_s(self, program, instructions, seed, cpus=1):
        """Time of a job alone."""
        lengths = self.lengths(program, seed)
        cycles, left = divmod(instructions, sum(length for _, length in lengths))
        spent = 0.0
        for phase, length in lengths:
            here = cycles * length + min(max(left, 0.0), length)
            left -= length
            spent += here / self.alone(phase, cpus)
        return spent / 1e9

    def rates(self, placement):
        """True speed of each job relative to alone, for {job: (phase, CPUs)} or {job: (phase, CPUs, home)} on distinct CPUs."""
        running = {}
        for phase, cpus, *home in placement.values():
            running.update({cpu: (phase, home[0] if home else self.touched(cpus)) for cpu in cpus})
        flows = self.flows(running)[0]
        return {job: sum(flows[cpu][0].instructions for cpu in cpus) / self.alone(phase, len(cpus))
                for job, (phase, cpus, *_) in placement.items()}


class Job:
    """A job on its way through its phases."""

    def __init__(self, new, physics, seed):
        self.id, self.name, self.cpus, self.seed = new.id, new.name, new.cpus, seed
        self.program, self.done = new.given["program"], 0.0
        self.phase, self.phase_left = physics.phase_at(self.program, 0.0, seed)
        if "seconds" in new.given:  # for `cosched conform`: the time alone of a program with a single phase
            self.total = new.given["seconds"] * 1e9 * physics.alone(self.phase, self.cpus)
        else:
            self.total = float(new.given["instructions"])
        self.place, self.on, self.last, self.home = None, [], None, None
        self.fair_ns = None  # CPU time by which the kernel divides CPUs
        self.usage = cosched.Usage(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        self.speeds, self.alone_ns = [], 0.0  # for the truth; time alone of its progress in this wait

    def advance(self, step, flows, physics):
        """Run for a step in which nothing changes."""
        usage, made = self.usage, 0.0
        for cpu in self.on:
            flow, ghz = flows[cpu]
            made += flow.instructions * step
            usage.cpu_time_s += step / 1e9
            usage.cycles += ghz * step
            usage.l1_accesses += flow.l1 * step
            usage.llc_accesses += flow.llc * step
            usage.mm_reads += flow.reads * step
        usage.instructions += made
        self.alone_ns += made / physics.alone(self.phase, self.cpus)
        self.done += made
        self.phase_left -= made
        if self.phase_left < 0.5:
            self.phase, self.phase_left = physics.phase_at(self.program, self.done + 0.5, self.seed)


class Timeline(cosched.World):
    """Jobs in the time of a physics. A subclass sets `physics`."""

    physics = None
    missing = {"mm-writes": "no-such-event", "core-types": "one-core-type"}

    def __init__(self, seed=1):
        super().__init__(seed)
        self.now, self.rng = 0, random.Random(seed)  # nanoseconds
        self.jobs, self.placed = {}, {}
        self.crowded, self.slice_end, self.stale = False, 0, True
        self.energy_nj, self.traffic = 0.0, [[0.0, 0.0] for _ in range(self.physics.domains)]

    def machine(self):
        return self.physics.machine()

    def add(self, tasks):
        self.jobs.update({new.id: Job(new, self.physics, self.seed) for new in tasks})

    def apply(self, changes):
        for change in changes:
            job = self.jobs[change.task]
            job.place, job.on = change.place, []
            if change.place is None:
                self.placed.pop(job.id, None)
            else:
                self.placed[job.id] = job
        self.stale = True

    def dispatch(self):
        """Give CPUs to jobs: exclusive ones have theirs, the others share what is left, those first that had least."""
        physics, jobs = self.physics, [self.placed[id] for id in sorted(self.placed)]
        free, self.crowded = set(range(physics.cores * physics.threads)), False
        least = min((job.fair_ns for job in jobs if job.fair_ns is not None), default=0)
        turn = {}
        for job in jobs:
            job.on = []
            job.fair_ns = least if job.fair_ns is None else job.fair_ns
            # Real queues of a CPU are not in step with each other, so the order has chance in it.
            turn[job.id] = (job.place.shared, job.fair_ns + self.rng.random() * SLICE_NS)
        for job in sorted(jobs, key=lambda job: turn[job.id]):
            for _ in range(job.cpus):
                choices = free.intersection(job.place.cpus)
                if not choices:
                    self.crowded |= job.place.shared
                    break
                cpu = min(choices, key=lambda cpu: self.worth(cpu, job, free))
                free.remove(cpu)
                job.on.append(cpu)
            if job.on:
                job.last = job.on[0]
                job.home = job.home or physics.touched(job.on)
        self.stale, self.slice_end = False, self.now + SLICE_NS

    def worth(self, cpu, job, free):
        """The kernel takes an idle core first, then the domain where the job was, else the emptiest, then its own CPU."""
        physics = self.physics
        siblings = range(cpu % physics.cores, physics.cores * physics.threads, physics.cores)
        domain = physics.domain(cpu)
        moves = job.last is not None and physics.domain(job.last) != domain
        room = sum(physics.domain(other) == domain for other in free)
        return (not free.issuperset(siblings), moves, -room, cpu != job.last, cpu)

    def wait(self, until_s):
        until, since, ended = None if until_s is None else round(until_s * 1e9), self.now, []
        while not ended and (until is None or self.now < until):
            if self.stale or (self.crowded and self.now >= self.slice_end):
                self.dispatch()
            running = [job for job in self.placed.values() if job.on]
            if not running and until is None:
                raise ValueError("no job runs, and there is no time to go to")
            flows, watts = self.physics.flows({cpu: (job.phase, job.home) for job in running for cpu in job.on})
            limits = [] if until is None else [until - self.now]
            limits += [self.slice_end - self.now] if self.crowded else []
            for job in running:
                rate = sum(flows[cpu][0].instructions for cpu in job.on)
                limits.append(min(job.phase_left, job.total - job.done) / rate)
            step = max(1, -int(-min(limits) // 1))
            self.energy_nj += watts * step
            for job in running:
                job.fair_ns += step
                for cpu in job.on:
                    for moved, part in zip(self.traffic, job.home):
                        moved[0] += flows[cpu][0].reads * step * part
                        moved[1] += flows[cpu][0].writes * step * part
                job.advance(step, flows, self.physics)
            self.now += step
            ended = [job.id for job in running if job.total - job.done < 0.5]
        for job in self.placed.values():
            if self.now > since:
                job.speeds.append([since / 1e9, self.now / 1e9, round(job.alone_ns / (self.now - since), 6)])
                job.alone_ns = 0.0
        for id in ended:
            self.stale = True
            self.tell_truth(self.placed.pop(id))
        return self.now / 1e9, [cosched.Ended(id) for id in ended]

    def read(self, tasks):
        return cosched.Reading({id: self.jobs[id].usage for id in tasks}, self.traffic, self.energy_nj / 1e9)

    def tell_truth(self, job):
        """Append what a policy can't see. A solo run has `jobs` 1. `speeds`: from, to, and progress relative to alone."""
        path = os.environ.get("COSCHED_WORLD_TRUTH")
        if path:
            solo_s = self.physics.solo_s(job.program, job.total, self.seed, job.cpus)
            line = {"task": job.id, "name": job.name, "program": job.program, "seed": self.seed, "jobs": len(self.jobs),
                    "instructions": job.total, "solo_s": solo_s, "ended_s": self.now / 1e9, "speeds": job.speeds}
            with open(path, "a") as file:
                file.write(json.dumps(line) + "\n")
