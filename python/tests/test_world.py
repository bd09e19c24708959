import textwrap
from pathlib import Path

import cosched
import pytest
from foreign import Pipe, play

REPLAY = str(Path(__file__).parents[2] / "examples/foreign/trace_replay.py")

WORLD = """
    import cosched

    class Even(cosched.World):
        missing = {"energy": "no-energy-meter"}

        def __init__(self, seed=1):
            super().__init__(seed)
            self.left, self.running, self.now = {}, set(), 0.0

        def machine(self):
            print("this is no answer")
            return cosched.machine(cores=2, threads=2)

        def add(self, tasks):
            self.left.update({task.id: task.given["seconds"] for task in tasks})

        def apply(self, changes):
            for change in changes:
                if change.place:
                    self.running.add(change.task)
                else:
                    self.running.discard(change.task)

        def wait(self, until):
            step = min(self.left[task] for task in self.running) if self.running else until - self.now
            step = min(step, until - self.now)
            self.now += step
            for task in self.running:
                self.left[task] -= step
            ended = [task for task in sorted(self.running) if self.left[task] < 1e-9]
            self.running.difference_update(ended)
            return self.now, [cosched.Ended(task) for task in ended]

        def read(self, tasks):
            usage = {task: cosched.Usage(cpu_time_s=1.5, instructions=2e9) for task in tasks}
            return cosched.Reading(usage, traffic=[(1.0, 2.0)])

    if __name__ == "__main__":
        Even.run()
"""


@pytest.fixture
def even(folder):
    (folder / "even.py").write_text(textwrap.dedent(WORLD))
    return Pipe("even.py")


def job(task, name="loop", **given):
    return {"task": task, "name": name, "cpus": 1, "given": given}


def test_a_machine_is_numbered_as_on_linux():
    machine = cosched.machine(cores=4, threads=2, llcs=2, llc_bytes=1 << 20)
    assert machine["cores"] == ["0,4", "1,5", "2,6", "3,7"] and machine["llcs"] == ["0-1,4-5", "2-3,6-7"]
    assert machine["memory_domains"] == ["0-7"] and machine["llc_bytes"] == {"value": 1 << 20}
    types = [(cosched.CoreType("big", 1024, 3.2), 1), (cosched.CoreType("small", 256), 3)]
    unlike = cosched.machine(core_types=types)
    assert [cpu["core_type"] for cpu in unlike["cpus"]] == [0, 1, 1, 1]
    assert unlike["core_types"][0] == {"name": "big", "capacity": 1024, "max_khz": 3_200_000}
    with pytest.raises(ValueError, match="llcs: 3 cores"):
        cosched.machine(cores=3, llcs=2)
    read = cosched.Machine(machine)
    assert read.siblings(1) == (1, 5) and read.cpu(5).llc == 0


def test_questions_reach_the_methods(even):
    ends, usage = play(even.ask, [job(0, seconds=0.3), job(1, seconds=0.1)], lambda live, _: {id: str(id) for id in live})
    assert ends == {0: (300_000_000, {"code": 0}), 1: (100_000_000, {"code": 0})}
    # A task that has ended is not read by this test.
    assert usage[0] == {"task": 0, "cpu_time": 1_500_000_000, "instructions": 2_000_000_000}
    assert even.ask({"read": []})["traffic"] == [{"reads": 1, "writes": 2}]
    code, said = even.close()
    assert code == 0 and "this is no answer" in said


def test_a_killed_task_ends_at_the_next_wait(even):
    even.ask({"schema": "cosched.world/1", "open": {"seed": 1}})
    even.ask({"add": [job(0, seconds=5)]})
    place = {"task": 0, "placement": {"exclusive": {"cpus": "0", "whole_core": False}}, "purpose": "run", "lease_end": None}
    even.ask({"apply": [{"place": place}]})
    even.ask({"wait": {"until": 70_000_000}})
    assert even.ask({"kill": {"task": 0, "how": "term"}}) == {"ok": True}
    ended = {"task": 0, "exit": {"signal": {"signal": 15, "oom": False}}}
    assert even.ask({"wait": {"until": 200_000_000}}) == {"now": 70_000_000, "events": [{"ended": ended}]}
    assert even.ask({"wait": {"until": 200_000_000}}) == {"now": 200_000_000, "events": []}
    even.close()


def test_an_exception_is_an_answer(even):
    even.ask({"schema": "cosched.world/1", "open": {"seed": 1}})
    assert even.ask({"add": [job(0)]}) == {"error": "KeyError: 'seconds'"}
    assert "KeyError" in even.close()[1]


def alone(live, _):
    return {live[0]: "0"}


def together(live, _):
    return {id: str(id) for id in live}


def test_the_replay_takes_the_time_of_its_table():
    pipe = Pipe(REPLAY)
    ends, usage = play(pipe.ask, [job(0, "loop")], alone)
    assert ends[0][0] == 5_000_000_000
    assert pipe.close()[0] == 0
    pipe = Pipe(REPLAY)
    ends, _ = play(pipe.ask, [job(0, "walker#1", seconds=4), job(1, "walker#2", seconds=4)], together)
    assert [end[0] for end in ends.values()] == [7_600_000_000] * 2
    pipe.close()
    pipe = Pipe(REPLAY)
    both, _ = play(pipe.ask, [job(0, "walker", seconds=1), job(1, "stream", seconds=1)], together)
    # The stream runs at 1 / 1.40 beside the walker, and then alone; or the other way round.
    assert both[1][0] == 1_400_000_000
    assert both[0][0] == pytest.approx(1_400_000_000 + (1 - 1.4 / 2.2) * 1e9, abs=2)
    pipe.close()


def test_the_replay_counts_as_alone():
    pipe = Pipe(REPLAY)
    opened = pipe.ask({"schema": "cosched.world/1", "open": {"seed": 1}})
    assert opened["missing"]["mm-writes"] == "no-such-event" and len(opened["machine"]["cpus"]) == 4
    pipe.ask({"add": [job(0, "mixed")]})
    place = {"task": 0, "placement": {"exclusive": {"cpus": "0", "whole_core": False}}, "purpose": "run", "lease_end": None}
    pipe.ask({"apply": [{"place": place}]})
    assert pipe.ask({"wait": {"until": 1_500_000_000}}) == {"now": 1_500_000_000, "events": []}
    used, = pipe.ask({"read": [0]})["usage"]
    assert used["cycles"] == 4_500_000_000 and used["cpu_time"] == 1_500_000_000
    assert used["instructions"] == pytest.approx(3e9 * (1.0 * 1.6 + 0.5 * 0.6))
    assert used["mm_reads"] == pytest.approx(0.8e6 + 0.5 * 11e6)
    pipe.close()


def test_the_replay_says_which_programs_there_are():
    pipe = Pipe(REPLAY)
    pipe.ask({"schema": "cosched.world/1", "open": {"seed": 1}})
    assert "no program gcc; there are loop, walker" in pipe.ask({"add": [job(0, "gcc")]})["error"]
    pipe.close()
