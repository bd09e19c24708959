"""`cosched.simulate` with the real program, where it takes commands for policies and worlds."""

import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import cosched
import pytest
from cosched._simulate import _command, _mix_file
from foreign import Pipe

EXAMPLES = Path(__file__).parents[2] / "examples/foreign"
REPLAY = f"cmd:{sys.executable} {EXAMPLES / 'trace_replay.py'}"

POLICY = """
    import cosched
    from cosched import policy

    @policy(needs=["freeze"], k=2)
    def least_progress(snapshot, k):
        "The k jobs with the least progress run."
        order = sorted(snapshot.tasks, key=lambda task: task.progress)
        return dict(zip(order[:k], snapshot.cpus))

    @policy(needs=["freeze"])
    def breaks(snapshot):
        return {} if snapshot.now_s < 1 else 1 / 0

    if __name__ == "__main__":
        least_progress.run()
"""

JOBS = [{"program": "mcf", "copies": 3, "work_instructions": 2e8}, {"name": "g", "program": "gamess", "work_instructions": 4e9}]


def refusal(*words):
    """Why cosched refuses these words; None if it does not."""
    mix = Path("probe.toml")
    mix.write_text('[[job]]\nprogram = "mcf"\nwork_instructions = 1e6\n')
    done = subprocess.run([cosched.binary(), *words, str(mix)], capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else None


@pytest.fixture
def takes_policies(mine):
    if "there is no policy" in (refusal("run", "--no-logs", "--on=i5-2500", f"--policy=cmd:{sys.executable} mine.py") or ""):
        pytest.skip("this cosched takes no command for a policy")


@pytest.fixture
def takes_worlds():
    # Anything but a machine file of this name.
    said = refusal("run", "--no-logs", "--on=cmd:false") or ""
    if "no machine" in said or "cmd:false: can't be read" in said:
        pytest.skip("this cosched takes no command for a world")


@pytest.fixture
def mine(folder, monkeypatch):
    (folder / "mine.py").write_text(textwrap.dedent(POLICY))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    import mine

    return mine


def test_a_named_policy_gives_a_record():
    record = cosched.simulate(JOBS, "i5-2500", "round-robin", params={"quantum_s": 0.1}, seed=3)
    assert [job["name"] for job in record["jobs"]] == ["mcf#1", "mcf#2", "mcf#3", "g"]
    assert record["seed"] == 3 and record["quantum_s"] == 0.1 and record["metrics"]["unfairness"] >= 1


def test_what_cosched_refuses_is_an_error(capfd):
    with pytest.raises(cosched.Error, match="exit code 2\ncosched: (.*)nope"):
        cosched.simulate(JOBS, "i5-2500", "nope")
    assert "nope" not in capfd.readouterr().err


def test_values_are_written_as_toml(folder):
    if sys.version_info < (3, 11):
        pytest.skip("tomllib is in Python 3.11")
    import tomllib

    job = {"name": "a \"b\"\n\x7f\u00e9", "cpus": 2, "given": {"work": 5e9, "x y": [1, True, "z"]}, "env": {}, "cwd": None}
    with open(_mix_file([job, {"program": Path("p")}], folder), "rb") as file:
        first, second = tomllib.load(file)["job"]
    assert first == {key: value for key, value in job.items() if value is not None} and second == {"program": "p"}


def test_a_decorated_function_runs_in_a_process_of_its_own(mine, takes_policies):
    record = cosched.simulate(JOBS, "i5-2500", mine.least_progress, params={"k": 1})
    assert record["policy"] == "least-progress" and record["overhead"]["policy_faults"] == 0
    spans = sorted((job["start_s"], job["end_s"]) for job in record["jobs"])
    assert record["metrics"]["turnaround_s"] >= sum(job["cpu_s"] for job in record["jobs"]) * 0.999, spans
    same = cosched.simulate(JOBS, "i5-2500", f"cmd:{sys.executable} mine.py", params={"k": 1})
    assert same["jobs"] == record["jobs"]


def test_a_policy_that_breaks_raises_with_the_record(mine, takes_policies, capfd):
    jobs = [{"program": "gamess", "copies": 5, "work_instructions": 2e10}]
    with pytest.raises(cosched.PolicyFailed, match="(?i)round-robin") as failed:
        cosched.simulate(jobs, "i5-2500", mine.breaks)
    record = failed.value.record
    assert record["overhead"]["policy_faults"] > 0 and record["totals"]["succeeded"] == 5
    assert "policy breaks failed: ZeroDivisionError: division by zero" in capfd.readouterr().err
    # As when it comes back from a pool of processes.
    copied = pickle.loads(pickle.dumps(failed.value))
    assert str(copied) == str(failed.value) and copied.record == record


def test_other_warnings_are_warnings(mine, takes_policies):
    with pytest.warns(UserWarning, match="timed out"):
        record = cosched.simulate(JOBS, "i5-2500", mine.least_progress, timeout="100ms")
    assert record["overhead"]["policy_faults"] == 0


def test_a_policy_decides_on_this_machine(mine, takes_policies):
    jobs = [f"sleep 0.{number}" for number in (3, 4, 5)]
    param = ["k=1", "quantum_s=0.05", "answer_within_s=20"]
    ends = cosched.run(jobs, policy=f"cmd:{sys.executable} mine.py", param=param, logs="logs")
    assert [end["exit"] for end in ends] == [0, 0, 0]
    record = cosched.record("logs")
    assert record["policy"] == "least-progress" and record["overhead"]["policy_faults"] == 0
    assert record["overhead"]["decisions"] > 10


def test_a_file_that_simulates_when_imported_is_refused(folder):
    text = 'import cosched\ncosched.simulate("mix.toml", "i5-2500", "fifo")\n'
    (folder / "loops.py").write_text(text)
    done = subprocess.run([sys.executable, "-m", "cosched.serve", "loops.py:x"], capture_output=True, text=True)
    assert done.returncode and 'below `if __name__ == "__main__":`' in done.stderr


def test_a_function_without_a_file_is_refused():
    @cosched.policy()
    def inner(snapshot):
        return {}

    with pytest.raises(cosched.Error, match="move it to the top of its file"):
        cosched.simulate(JOBS, "i5-2500", inner)


@pytest.mark.parametrize("words, text", [(["-"], POLICY), (["-c", POLICY], "")])
def test_a_function_from_standard_input_is_refused(words, text):
    call = 'cosched.simulate([{"program": "mcf"}], "i5-2500", least_progress)'
    program = textwrap.dedent(POLICY).replace("least_progress.run()", call)
    words = [program if word == POLICY else word for word in words]
    done = subprocess.run([sys.executable, *words], input=program if text else "", capture_output=True, text=True)
    assert "least_progress must be in a file" in done.stderr.splitlines()[-1]


def test_a_world_is_served_by_its_name(mine, folder, monkeypatch):
    text = "import cosched\n\nclass Mine(cosched.World):\n    def machine(self):\n        return cosched.machine(cores=3)\n"
    (folder / "worlds.py").write_text(text)
    monkeypatch.delitem(sys.modules, "worlds", raising=False)
    from worlds import Mine

    command = _command(Mine)
    assert command == f"cmd:{sys.executable} -m cosched.serve worlds:Mine"
    pipe = Pipe("-m", "cosched.serve", "worlds.py:Mine")
    opened = pipe.ask({"schema": "cosched.world/1", "open": {"seed": 1}})
    assert len(opened["machine"]["cpus"]) == 3 and opened["missing"] == {}
    assert pipe.close()[0] == 0


def test_the_examples_run(takes_policies):
    for name, machine, modules in (("synpa", "xeon-e5645", ["networkx", "numpy"]), ("petrucci", "big1-small3", ["scipy"])):
        for module in modules:
            pytest.importorskip(module, reason=f"the example {name} needs {module}")
        jobs = [{"program": one, "work_instructions": 4e9} for one in ("mcf", "gamess", "lbm", "namd", "milc", "povray", "gcc")]
        record = cosched.simulate(jobs, machine, f"cmd:{sys.executable} {EXAMPLES / name}.py")
        assert record["policy"] == name and record["overhead"]["policy_faults"] == 0 and not record["warnings"]
        assert record["totals"]["succeeded"] == 7


def test_the_replay_runs_under_a_policy(takes_worlds):
    jobs = [{"name": name, "given": {"seconds": 2}} for name in ("loop", "walker", "stream", "mixed")]
    record = cosched.simulate(jobs, REPLAY, "fifo")
    walker, = (job for job in record["jobs"] if job["name"] == "walker")
    # Beside the three others until they have ended.
    assert 2 * 2.0 < walker["end_s"] < 2 * 3.0 and record["totals"]["succeeded"] == 4


def test_the_mix_of_the_replay_runs_and_its_cpus_are_shared_under_linux(takes_worlds):
    mix = EXAMPLES / "trace_mix.toml"
    fair, linux = (cosched.simulate(mix, REPLAY, policy, solo="measure") for policy in ("round-robin", "linux"))
    for record in (fair, linux):
        assert record["totals"]["succeeded"] == 8
        assert sum(job["cpu_s"] for job in record["jobs"]) <= 4 * record["metrics"]["turnaround_s"] * (1 + 1e-9)
        assert all(job["solo_s"] == pytest.approx(20) for job in record["jobs"])
    assert linux["metrics"]["turnaround_s"] > fair["metrics"]["turnaround_s"]


@pytest.mark.parametrize(
    "name, modules, passed", [("synpa", ["networkx", "numpy"], 14), ("petrucci", ["scipy"], 2), ("in_place", [], 14)]
)
def test_policies_conform(name, modules, passed, folder, takes_policies):
    for module in modules:
        pytest.importorskip(module, reason=f"the example {name} needs {module}")
    text = "from cosched import policy\n\n@policy()\ndef in_place(snapshot):\n    return snapshot.tasks\n\nin_place.run()\n"
    (folder / "in_place.py").write_text(text)
    file = folder / "in_place.py" if name == "in_place" else EXAMPLES / f"{name}.py"
    command = [sys.executable, "-m", "cosched.conform", "policy", f"{sys.executable} {file}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if "unrecognized subcommand" in done.stderr:
        pytest.skip("this cosched has no verb conform")
    # A policy for big and small cores is skipped on other machines.
    assert done.returncode == 0 and f"{passed} passed, 0 failed" in done.stderr, done.stdout + done.stderr[-2000:]


def test_conform_starts_the_verb(folder, monkeypatch):
    fake = folder / "fake"
    fake.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    fake.chmod(0o755)
    conform = [sys.executable, "-m", "cosched.conform"]
    environment = {**os.environ, "COSCHED": str(fake)}
    for words, option in ((["policy", "python3 a.py", "-q"], "--policy"), (["world", "cmd:python3 a.py", "-q"], "--on")):
        done = subprocess.run([*conform, *words], capture_output=True, text=True, env=environment)
        assert done.stdout == f"conform|{option}|cmd:python3 a.py|-q|"
    assert subprocess.run([*conform, "policy"], capture_output=True, text=True).returncode == 1
