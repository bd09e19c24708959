import json
import textwrap
from pathlib import Path

import cosched
import pytest
from cosched import Decision, Number, Place, Snapshot, policy
from foreign import READY, Loop, Pipe, snapshot, task

FIXED = {**READY, "freeze": False}


@policy(needs=["freeze"], k=2)
def least_progress(snapshot, k):
    """The k jobs with the least progress run; each quantum anew."""
    order = sorted(snapshot.tasks, key=lambda task: task.progress)
    return dict(zip(order[:k], snapshot.cpus))


@policy(needs=["freeze"])
def in_turn(snapshot):
    return snapshot.tasks


@policy()
def in_place(snapshot):
    return snapshot.tasks


def answer(of, *tasks, seed=1, params=(), **fields):
    return of.begin(seed, **dict(params)).answer(snapshot(tasks, **fields))


def places(decision):
    changes = [change["place"] for change in decision["changes"] if "place" in change]
    return {place["task"]: place["placement"]["exclusive"]["cpus"] for place in changes}


def stops(decision):
    return [change["stop"]["task"] for change in decision["changes"] if "stop" in change]


def test_a_description_comes_from_the_decorator():
    @policy(needs=["freeze"], wants={"ipc": "it guesses"}, k=Number(2, 1, 8, "jobs"), mode=["a", "b"], answer_within_s=0.1)
    class MyPolicy:
        """One line.

        More.
        """

        def __init__(self, k, mode):
            pass

        def decide(self, snapshot):
            return {}

    assert MyPolicy.describe() == {
        "name": "MyPolicy",
        "about": "One line.",
        "needs": ["freeze"],
        "wants": {"ipc": "it guesses"},
        "params": {
            "quantum_s": {"default": 0.2, "min": 0.001, "max": 3600.0, "about": "length of a quantum"},
            "k": {"default": 2, "min": 1, "max": 8, "about": "jobs"},
            "mode": {"words": ["a", "b"], "about": ""},
        },
        "answer_within_ns": 100_000_000,
    }
    assert least_progress.name == "least-progress"


def test_tasks_that_are_not_chosen_are_stopped_and_those_that_stay_do_not_change():
    tasks = [task(0, on="0", progress=3.0), task(1, on="1", progress=1.0), task(2, progress=2.0)]
    decision = answer(least_progress, *tasks, now=5)
    # The order is 1, 2; task 1 goes to CPU 0.
    assert places(decision) == {1: "0", 2: "1"} and stops(decision) == [0]
    assert decision["next_wake"] == 200_000_005
    one = answer(least_progress, *tasks, params={"k": 1.0}, now=5)
    assert places(one) == {1: "0"} and stops(one) == [0]
    assert answer(in_turn, *tasks[:2], now=5)["changes"] == []


def test_tasks_in_order_are_round_robin():
    loop = Loop(in_turn.begin().answer, [task(id) for id in range(5)])
    runs = [0] * 5
    loop.ask()
    for _ in range(50):
        for id in loop.where():
            runs[id] += 1
        loop.quantum()
    assert max(runs) - min(runs) <= 1


def test_between_quanta_only_free_cpus_are_given_out():
    loop = Loop(in_turn.begin().answer, [task(id) for id in range(4)])
    loop.ask()
    assert loop.where() == {0: "0", 1: "1"}
    loop.now = 50_000_000
    assert places(loop.end(0)) == {2: "0"}
    assert loop.wake == 200_000_000
    assert loop.where() == {1: "1", 2: "0"}
    assert loop.ask({"arrived": 3})["changes"] == []


def test_nobody_is_asked_when_there_is_nothing_to_give():
    asked = []

    @policy(needs=["freeze"])
    def counting(snapshot):
        asked.append(snapshot.now_s)
        return snapshot.tasks

    loop = Loop(counting.begin().answer, [task(id) for id in range(3)])
    loop.ask()
    loop.ask({"arrived": 2})
    assert len(asked) == 1


def test_with_anew_each_event_begins_a_quantum():
    @policy(needs=["freeze"], anew=True)
    def newest(snapshot):
        return sorted(snapshot.tasks, key=lambda task: -task.id)

    loop = Loop(newest.begin().answer, [task(id) for id in range(2)])
    loop.ask()
    loop.now = 50_000_000
    loop.tasks[2] = task(2)
    loop.ask({"arrived": 2})
    assert sorted(loop.where()) == [1, 2] and loop.wake == 250_000_000


def test_tasks_that_may_not_be_stopped_keep_their_cpus():
    tasks = [task(0, on="0", control=FIXED), task(1), task(2)]
    decision = answer(in_turn, *tasks)
    assert places(decision) == {1: "1"} and stops(decision) == []

    @policy(needs=["freeze"])
    def wrong(snapshot):
        return {snapshot.task(0): 1}

    with pytest.raises(cosched.BadDecision, match="task 0 job0> can't be changed now"):
        answer(wrong, *tasks)


def test_a_policy_without_freeze_moves_and_never_stops():
    tasks = [task(0, on="0", control=FIXED), task(1, on="1", control=FIXED)]

    @policy()
    def swap(snapshot):
        return {snapshot.task(0): 1, snapshot.task(1): 0}

    @policy()
    def nothing(snapshot):
        return {}

    assert places(answer(swap, *tasks)) == {0: "1", 1: "0"}
    assert answer(nothing, *tasks)["changes"] == []


def test_tasks_in_order_without_freeze_leave_running_ones_their_cpus():
    loop = Loop(in_place.begin().answer, [task(id) for id in range(4)])
    loop.ask()
    assert loop.where() == {0: "0", 1: "1"}
    assert loop.quantum()["changes"] == []
    loop.now += 50_000_000
    loop.end(0)
    assert loop.where() == {1: "1", 2: "0"}
    loop.quantum()
    assert loop.where() == {1: "1", 2: "0"}
    # The one that sleeps keeps its CPU, and one CPU is too few for a gang.
    tasks = [task(0, on="0", asleep=True), task(1, cpus=2), task(2)]
    assert places(answer(in_place, *tasks)) == {2: "1"}

    @policy()
    def first(snapshot):
        return {snapshot.task(1): 0}

    with pytest.raises(cosched.BadDecision, match="CPU 0 is for <task 1 job1> and for <task 0 job0> .which is not stopped"):
        answer(first, task(0, on="0"), task(1))


@pytest.mark.parametrize("kind", [cosched.Task, cosched.Snapshot, cosched.Machine, cosched._snapshot.Cpu])
def test_help_lists_all_fields(kind):
    machine = cosched.machine()
    raw = {"Cpu": machine["cpus"][0], "Machine": machine, "Task": task(0)}.get(kind.__name__, snapshot([]))
    seen = kind(raw, now_s=0.0) if kind is cosched.Task else kind(raw)
    assert not [name for name in vars(seen) if not name.startswith("_")]
    properties = {name: value for name, value in vars(kind).items() if isinstance(value, property)}
    assert properties and all(value.__doc__ for value in properties.values())


def test_a_task_that_sleeps_keeps_a_cpu_that_nobody_wants():
    sleeper = task(0, on="0", asleep=True)
    one = answer(in_turn, sleeper, task(1))
    assert places(one) == {1: "1"} and stops(one) == []
    both = answer(in_turn, sleeper, task(1), task(2))
    assert stops(both) == [0] and sorted(places(both)) == [1, 2]
    assert stops(answer(in_turn, sleeper)) == []


def test_gangs_and_masks_get_what_they_need():
    machine = cosched.machine(cores=2, threads=2)
    tasks = [task(0, cpus=3), task(1, cpus=2), task(2, allowed="3"), task(3)]
    assert places(answer(in_turn, *tasks, machine=machine)) == {0: "0-2", 2: "3"}
    # A busy core comes last.
    assert places(answer(in_turn, task(0, on="0"), task(1), machine=machine)) == {1: "1"}


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda snapshot: {task: 0 for task in snapshot.tasks}, "CPU 0 is for <task 0 job0> and for <task 1 job1>"),
        (lambda snapshot: {snapshot.task(0): 7}, "may not use CPU 7"),
        (lambda snapshot: {snapshot.task(0): "0-1"}, "needs 1 CPU"),
        (lambda snapshot: {snapshot.task(0): Place(0, whole_core=True), snapshot.task(1): 1}, "CPU 1 is for"),
    ],
)
def test_wrong_decisions_are_errors_with_the_task(wrong, words):
    wrong = policy(needs=["freeze"])(wrong)
    with pytest.raises(cosched.BadDecision, match=words):
        answer(wrong, task(0), task(1), machine=cosched.machine(cores=1, threads=2))


def test_a_place_and_a_quantum_of_its_own():
    @policy(needs=["freeze"])
    def alone(snapshot):
        first = snapshot.tasks[0]
        return Decision({first: Place("0", whole_core=True, purpose="measure-alone")}, quantum_s=0.015)

    decision = answer(alone, task(0), task(1), now=10)
    assert decision["next_wake"] == 15_000_010
    assert decision["changes"][0]["place"]["purpose"] == "measure-alone"


def test_values_are_in_seconds_or_absent_with_a_reason():
    one, = Snapshot(snapshot([task(0, mm_reads=5, ran=2_000_000_000, since=1_000_000_000)], now=1_500_000_000)).tasks
    assert one.mm_reads_per_s == 5000 and one.ran_s == 2.0 and one.waited_s == pytest.approx(0.5)
    assert one.ipc is None and one.absence("ipc") == "not-yet-measured"
    assert one.absence("mm_reads_per_s") is None and one.absence("llc_accesses_per_s") == "not-yet-measured"
    assert one.raw["name"] == "job0" and {one: 1}[Snapshot(snapshot([task(0)])).task(0)] == 1


def test_a_class_has_state_and_a_generator_by_the_seed():
    @policy(needs=["freeze"], k=1)
    class Lottery:
        def __init__(self, k, rng):
            self.k, self.rng = k, rng

        def decide(self, snapshot):
            return dict(zip(self.rng.sample(snapshot.tasks, self.k), snapshot.cpus))

    def run(seed):
        loop = Loop(Lottery.begin(seed).answer, [task(id) for id in range(4)])
        loop.ask()
        return [tuple(loop.where()) for _ in range(20) if loop.quantum()]

    assert run(1) == run(1) != run(2)


def test_parameters_and_arguments_must_agree():
    with pytest.raises(TypeError, match="does not accept k"):
        policy(k=1)(lambda snapshot: {})
    with pytest.raises(TypeError, match="is called with j"):
        policy()(lambda snapshot, j: {})
    with pytest.raises(TypeError, match="k: a parameter is"):
        policy(k=None)(lambda snapshot, k: {})
    with pytest.raises(ValueError, match="not a whole number"):
        least_progress.begin(k=1.5)


@pytest.mark.parametrize(
    "said, words",
    [
        (None, "returned None; it should return who runs"),
        (0, "returned 0; it should return who runs"),
        (Decision(None, 0.1), "returned None"),
        ([0], "0 stands where a task belongs; return tasks of snapshot.tasks"),
        ({0: 1}, "0 stands where a task belongs"),
    ],
)
def test_what_is_no_decision_is_explained(said, words):
    with pytest.raises(TypeError, match=words):
        answer(policy()(lambda snapshot: said), task(0))


SCRIPT = """
    import os, sys
    from cosched import policy

    @policy(needs=["freeze"])
    def talks(snapshot):
        print("from Python", snapshot.now_s)
        os.system("echo from a child; cat")
        return [task for task in snapshot.tasks if 1 / (task.id - 9)]

    if __name__ == "__main__":
        talks.run()
"""


def start(folder):
    (folder / "talks.py").write_text(textwrap.dedent(SCRIPT))
    return Pipe("talks.py")


def test_what_a_policy_prints_is_no_answer(folder):
    pipe = start(folder)
    assert pipe.ask({"schema": "cosched.policy/1", "describe": {}})["name"] == "talks"
    pipe.tell({"schema": "cosched.policy/1", "begin": {"seed": 7, "params": {"quantum_s": 0.5, "answer_within_s": 0.05}}})
    said = pipe.ask({"seq": 0, "snapshot": snapshot([task(0)])})
    assert said["seq"] == 0 and said["decision"]["next_wake"] == 500_000_000
    pipe.tell({"seq": 0, "refused": "task 9 is unknown"})
    code, said = pipe.close()
    assert code == 0 and "from Python 0.0" in said and "from a child" in said and "refused decision 0" in said


def test_an_exception_ends_the_process_with_its_traceback(folder):
    pipe = start(folder)
    pipe.tell({"schema": "cosched.policy/1", "begin": {"seed": 7, "params": {}}})
    assert pipe.ask({"seq": 0, "snapshot": snapshot([task(9)])}) is None
    code, said = pipe.close()
    assert code == 1 and "talks.py" in said
    assert said.splitlines()[-1] == "policy talks failed: ZeroDivisionError: division by zero"


def test_lines_follow_the_schema():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema checks the lines")
    schemas = Path(__file__).parents[2] / "docs/schema"
    event, line = (json.loads((schemas / name).read_text()) for name in ("event.json", "policy-line.json"))
    # Both files in one, so that they find each other without a registry.
    whole = {"$id": "event.json", "$defs": {**event["$defs"], **line["$defs"]}}

    def check(value, kind):
        found = json.loads(json.dumps({**whole, "$ref": f"#/$defs/{kind}"}).replace("event.json#", "#"))
        jsonschema.validate(value, found)

    decision = answer(least_progress, task(0, on="0", progress=1.0), task(1), task(2))
    assert places(decision) and stops(decision)
    check({"seq": 0, "decision": decision}, "answer")
    check(least_progress.describe(), "description")
    check(cosched.machine(cores=4, threads=2, llcs=2), "machine")
    check(cosched.machine(llc_bytes=5, core_types=[(cosched.CoreType("big", 1024, 3.2), 1)]), "machine")
