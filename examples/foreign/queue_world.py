"""A world of four CPUs that share a memory bus. It needs nothing but Python:

    cosched run examples/foreign/queue_mix.toml --on "cmd:python3 examples/foreign/queue_world.py"

A job is given `work_s`, its time alone in seconds, `memory`, the share of the bus that each of its CPUs uses alone, and `exit`,
if it does not end with code 0. The law: where the running jobs ask for M buses, M > 1, the time that a job waits for memory is M
times as long. So its speed is 1 / (1 - memory + memory * max(1, M)) of that alone. Jobs on one CPU divide it equally.
"""
import json
import math
import sys

CPUS, HZ, BUS = 4, 2e9, 1e8  # CPUs; their cycles in a second; lines of 64 bytes that the bus moves in a second
MACHINE = {
    "name": "four CPUs on a bus", "llcs": [f"0-{CPUS - 1}"], "memory_domains": [f"0-{CPUS - 1}"], "llc_bytes": {"absent": "not-told"},
    "cpus": [{"id": cpu, "core": cpu, "llc": 0, "memory_domain": 0, "core_type": 0} for cpu in range(CPUS)],
    "cores": [str(cpu) for cpu in range(CPUS)], "core_types": [{"name": "core", "capacity": None, "max_khz": None}],
}


class Job:
    def __init__(self, cpus, work_s=1.0, memory=0.0, exit={"code": 0}):
        self.cpus, self.memory, self.exit = cpus, memory, exit
        self.work = self.left = work_s * 1e9  # nanoseconds alone
        self.on, self.used, self.ended = [], 0.0, False  # the CPUs where it is placed; CPU time in nanoseconds

    def lines(self):
        return int((self.work - self.left) * 1e-9 * self.cpus * self.memory * BUS)


class World:
    def open(self, _):  # nothing is random, so the seed changes nothing
        self.now, self.jobs, self.ends, self.energy_j = 0, [], [], 0.0
        return {"machine": MACHINE, "missing": {"mm-writes": "no-such-event"}}

    def add(self, jobs):
        self.jobs += [Job(job["cpus"], **job["given"]) for job in jobs]

    def apply(self, changes):
        for change in changes:
            place = change.get("place") or {**change["stop"], "placement": {"stopped": {"cpus": ""}}}
            [where] = place["placement"].values()  # the only value; its key is exclusive, shared or stopped
            self.jobs[place["task"]].on = cpu_list(where.get("cpus", where.get("mask")))

    def wait(self, question):
        until = math.inf if question["until"] is None else question["until"]
        while True:
            for task, job in enumerate(self.jobs):
                if job.on and job.left < 0.5:
                    self.end(task, job.exit)
            if self.ends or self.now == until:
                events, self.ends = [{"ended": end} for end in self.ends], []
                return {"now": self.now, "events": events}
            rates = self.rates()
            step = min([math.ceil(job.left / speed) for job, _, speed in rates] + [until - self.now])
            if step == math.inf:
                return {"error": "no job runs, and nothing will change that"}
            for job, cpus, speed in rates:
                job.left, job.used = max(0.0, job.left - speed * step), job.used + cpus * step
            self.energy_j += step * 1e-9 * (10 + 5 * sum(cpus for _, cpus, _ in rates))  # 10 W, and 5 W for each busy CPU
            self.now += step

    def rates(self):
        """The jobs that run, each with the CPUs that it has and its speed."""
        running = [job for job in self.jobs if job.on and not job.ended]
        load = [sum(cpu in job.on for job in running) for cpu in range(CPUS)]
        have = [min(job.cpus, sum(1 / load[cpu] for cpu in job.on)) for job in running]
        asked = max(1, sum(cpus * job.memory for job, cpus in zip(running, have)))
        slowed = [1 - job.memory + job.memory * asked for job in running]
        return [(job, cpus, cpus / job.cpus / slowed) for job, cpus, slowed in zip(running, have, slowed)]

    def end(self, task, exit):
        if not self.jobs[task].ended:
            self.jobs[task].ended = True
            self.ends.append({"task": task, "exit": exit})

    def read(self, tasks):
        traffic = [{"reads": sum(job.lines() for job in self.jobs)}]
        return {"usage": [self.usage(task) for task in tasks], "traffic": traffic, "energy_j": self.energy_j}

    def usage(self, task):
        job = self.jobs[task]
        done = int((job.work - job.left) * job.cpus * HZ / 1e9)  # one instruction a cycle, alone
        return {"task": task, "cpu_time": int(job.used), "instructions": done, "cycles": int(job.used * HZ / 1e9),
                "l1_accesses": done // 3, "llc_accesses": 2 * job.lines(), "mm_reads": job.lines()}

    def kill(self, question):
        self.end(question["task"], {"signal": {"signal": 15 if question["how"] == "term" else 9, "oom": False}})


def cpu_list(text):  # like 0-2,5
    ranges = [part.split("-") for part in text.split(",") if part]
    return [cpu for ends in ranges for cpu in range(int(ends[0]), int(ends[-1]) + 1)]


world = World()
for line in sys.stdin:
    questions = json.loads(line)
    [name] = questions.keys() - {"schema"}
    print(json.dumps(getattr(world, name)(questions[name]) or {"ok": True}), flush=True)
