"""The other end of the pipe: what cosched does of `cosched.policy/1` and `cosched.world/1`, as far as tests need it."""

import copy
import json
import subprocess
import sys

import cosched

READY = {"count": True, "place": True, "freeze": True, "kill": True}
NOT_YET = {"absent": "not-yet-measured"}


def estimates(**values):
    names = ("mm_reads", "mm_reads_mean", "mm_writes", "llc", "l1", "ipc", "cpu_instructions", "cpu_mm_reads", "solo_ipc")
    found = {name: NOT_YET for name in names}
    found.update(progress={"value": 0.0}, progress_basis="provisional", solo_age=0, executed=0, ran=0)
    found.update({name: value if name in ("ran", "executed") else {"value": value} for name, value in values.items()})
    return found


def task(id, *, cpus=1, allowed=None, control=READY, on=None, whole_core=False, since=0, now=0, asleep=False, **values):
    placement = {"exclusive": {"cpus": on, "whole_core": whole_core}}
    running = on and {"placement": placement, "purpose": "run", "since": since, "lease_end": None}
    return {
        "id": id,
        "name": f"job{id}",
        "cpus": cpus,
        "allowed": allowed,
        "origin": "spawned",
        "control": control,
        "arrived": 0,
        "running": running,
        "asleep": asleep,
        "waiting_since": now if on else since,
        "overdue": False,
        "last_cpus": on or "",
        "estimates": estimates(**values),
    }


def snapshot(tasks, machine=None, now=0, triggers=("quantum-end",)):
    return {"machine": machine or cosched.machine(cores=2), "now": now, "triggers": list(triggers), "tasks": list(tasks)}


class Loop:
    """A loop that carries out decisions on tasks that never end, and refuses wrong ones."""

    def __init__(self, answer, tasks, machine=None):
        self.answer = answer
        self.machine = machine or cosched.machine(cores=2)
        self.tasks = {one["id"]: copy.deepcopy(one) for one in tasks}
        self.now = 0

    def ask(self, *triggers):
        tasks = [self.tasks[id] for id in sorted(self.tasks)]
        for one in tasks:
            if one["running"]:
                one["waiting_since"] = self.now
        decision = self.answer(copy.deepcopy(snapshot(tasks, self.machine, self.now, triggers or ("quantum-end",))))
        assert decision["next_wake"] is None or decision["next_wake"] > self.now
        for change in decision["changes"]:
            self._change(change)
        self._no_collision()
        self.wake = decision["next_wake"]
        return decision

    def quantum(self):
        """Go on to the end of the quantum, and ask."""
        for one in self.tasks.values():
            if one["running"]:
                one["estimates"]["ran"] += self.wake - self.now
        self.now = self.wake
        return self.ask()

    def end(self, id):
        del self.tasks[id]
        return self.ask({"ended": id})

    def where(self):
        placements = ((id, one["running"]) for id, one in self.tasks.items())
        return {id: running["placement"]["exclusive"]["cpus"] for id, running in placements if running}

    def _change(self, change):
        if "stop" in change:
            one = self.tasks[change["stop"]["task"]]
            assert one["running"] and one["control"]["freeze"]
            one["running"], one["waiting_since"] = None, self.now
            return
        place = change["place"]
        one = self.tasks[place["task"]]
        assert one["control"]["place"]
        since = one["running"]["since"] if one["running"] else self.now
        one["running"] = {"placement": place["placement"], "purpose": place["purpose"], "since": since, "lease_end": None}
        one["last_cpus"] = place["placement"]["exclusive"]["cpus"]

    def _no_collision(self):
        cpus = [cpu for where in self.where().values() for cpu in cosched._snapshot.parse_cpus(where)]
        assert len(cpus) == len(set(cpus))


class Pipe:
    """A foreign process."""

    def __init__(self, *command):
        self.process = subprocess.Popen(
            [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def tell(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()

    def ask(self, question):
        self.tell(question)
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def close(self):
        """Close the pipe, and return the exit code and standard error."""
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


def play(ask, jobs, policy, quantum=200_000_000, most=10_000):
    """Run jobs in a world under a function from live tasks and CPUs to who runs where. Returns the ends and the usage."""
    opened = ask({"schema": "cosched.world/1", "open": {"seed": 1}})
    assert set(opened) == {"machine", "missing"}, opened
    assert ask({"add": jobs}) == {"ok": True}
    live, running, ends, usage, now = [job["task"] for job in jobs], {}, {}, {}, 0
    for _ in range(most):
        if not live:
            return ends, usage
        wanted = policy(live, opened["machine"])
        changes = [{"stop": {"task": task}} for task in running if task not in wanted]
        for task, cpus in wanted.items():
            placement = {"exclusive": {"cpus": cpus, "whole_core": False}}
            if running.get(task) != cpus:
                changes.append({"place": {"task": task, "placement": placement, "purpose": "run", "lease_end": None}})
        assert ask({"apply": changes}) == {"ok": True}
        running = wanted
        until = now + quantum
        answer = ask({"wait": {"until": until}})
        assert now <= answer["now"] <= until, answer
        now = answer["now"]
        for task in ask({"read": live})["usage"]:
            before = usage.get(task["task"], {})
            assert all(task[key] >= before[key] for key in before)
            usage[task["task"]] = task
        for event in answer["events"]:
            ended = event["ended"]
            ends[ended["task"]] = (now, ended["exit"])
            live.remove(ended["task"])
            running.pop(ended["task"], None)
    raise AssertionError(f"tasks {live} do not end")
