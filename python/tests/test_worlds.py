"""The worlds in examples/worlds: what their laws must obey whatever their numbers are."""

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import cosched

WORLDS = Path(__file__).parents[2] / "examples/worlds"
NAMES = ("socket", "numa")
CALM = {"socket": "molecule", "numa": "fold"}
STREAM = {"socket": "lattice", "numa": "triad"}


def load(name):
    # At the end of the path and under another name: one world has the name of a standard module.
    if str(WORLDS) not in sys.path:
        sys.path.append(str(WORLDS))
    spec = importlib.util.spec_from_file_location(f"{name}_world", WORLDS / f"{name}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODULES = {name: load(name) for name in NAMES}


def speed(name, placement):
    """Speeds for {CPU: program}, each in its first phase."""
    module = MODULES[name]
    return module.rates({cpu: (module.PROGRAMS[program][0], (cpu,)) for cpu, program in placement.items()})


def batch(name, jobs, seed=1, quantum_s=0.2):
    """Run jobs [(program, instructions, CPU or None for all)], and return the world, the ends and what was read at each end."""
    world = MODULES[name].World(seed)
    cpus = len(world.machine()["cpus"])
    world.add([cosched._world.NewTask(id, program, 1, {"program": program, "instructions": work})
               for id, (program, work, _) in enumerate(jobs)])
    everywhere = cosched.Place(tuple(range(cpus)), False, "run", True)
    world.apply([cosched._world.Change(id, everywhere if cpu is None else cosched.Place((cpu,), False, "run"))
                 for id, (_, _, cpu) in enumerate(jobs)])
    ends, now, quantum = {}, 0.0, 1
    while len(ends) < len(jobs):
        now, events = world.wait(quantum * quantum_s)
        ends.update({event.task: now for event in events})
        quantum += not events
    return world, ends


@pytest.mark.parametrize("name", NAMES)
def test_a_job_alone_takes_its_solo_time(name):
    physics = MODULES[name].World.physics
    for program in MODULES[name].PROGRAMS:
        for work in (3e9, 6e10):
            world, ends = batch(name, [(program, work, 3)], seed=5)
            assert ends[0] == pytest.approx(physics.solo_s(program, work, 5), abs=1e-6)
            assert world.read([0]).usage[0].instructions == pytest.approx(work, abs=200)


@pytest.mark.parametrize("name", NAMES)
def test_phases_last_as_in_the_table_give_or_take_a_few_per_cent(name):
    module = MODULES[name]
    physics = module.World.physics
    for program, phases in module.PROGRAMS.items():
        assert 2 <= sum(phase.seconds for phase in phases) <= 30
        for phase, (same, work) in zip(phases, physics.lengths(program, 3)):
            assert same is phase
            assert work / physics.alone(phase) / 1e9 == pytest.approx(phase.seconds, rel=0.031)
    assert len(module.PROGRAMS) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_computes_on_two_cores_do_not_disturb_each_other(name):
    assert min(speed(name, {0: CALM[name], 1: CALM[name]}).values()) > 0.97


@pytest.mark.parametrize("name", NAMES)
def test_streams_slow_each_other_more_than_computes_do(name):
    # Six computes lose the turbo clock alone.
    beside = [speed(name, {cpu: program[name] for cpu in range(6)})[0] for program in (CALM, STREAM)]
    assert beside[1] < beside[0] - 0.05


@pytest.mark.parametrize("name", NAMES)
def test_company_never_makes_a_job_faster_than_alone(name):
    rng, cpus = random.Random(2), len(MODULES[name].World().machine()["cpus"])
    for _ in range(100):
        chosen = rng.sample(range(cpus), rng.randint(1, cpus))
        speeds = speed(name, {cpu: rng.choice(list(MODULES[name].PROGRAMS)) for cpu in chosen})
        assert all(0 < one < 1.0001 for one in speeds.values())


@pytest.mark.parametrize("name", NAMES)
def test_memory_never_moves_more_than_its_channels_can(name):
    module = MODULES[name]
    physics, cpus = module.World.physics, len(module.World().machine()["cpus"])
    home = physics.touched((0,))
    for program in module.PROGRAMS:
        flows, _ = physics.flows({cpu: (module.PROGRAMS[program][0], home) for cpu in range(cpus)})
        moved_gb_per_s = 64 * sum(flow.reads + flow.writes for flow, _ in flows.values())
        assert moved_gb_per_s < {"socket": 2 * 21.4, "numa": 3 * 11.5}[name]


@pytest.mark.parametrize("name", NAMES)
def test_lines_in_the_cache_are_as_many_as_it_has(name):
    module = MODULES[name]
    if name == "socket":
        threads = [module.Thread(module.PROGRAMS[program][0], None) for program in ("events", "lattice", "molecule")]
        lines, _ = module.shares(threads, [1.0, 1.0, 2.0], 14.0)
        held = sum(lines)
    else:
        sets = [(3 * 16384, 1e-6), (20 * 16384, 1e-7)]
        out = module.random_replacement(0.01, sets)
        held = 0.01 / out + sum(lines * rate / (rate + out) for lines, rate in sets)
    assert held == pytest.approx(module.LLC_LINES, rel=1e-3)


def test_a_sibling_slows_and_not_as_a_sum():
    programs = ("molecule", "tensor", "events", "lattice", "network")
    for one in programs:
        for other in programs:
            assert speed("socket", {0: one, 6: other})[0] < speed("socket", {0: one, 1: other})[0]
    lost = {(a, b): 1 - speed("socket", {0: a, 6: b})[0] for a in programs for b in programs}
    # If each program gave and took the same from all, the sums over the diagonals of any square would be equal.
    alike = lost["molecule", "molecule"] + lost["events", "events"]
    assert abs(alike - lost["molecule", "events"] - lost["events", "molecule"]) > 0.1


def test_channels_matter_to_streams():
    module = MODULES["socket"]
    placement = {cpu: (module.PROGRAMS["lattice"][0], (cpu,)) for cpu in range(4)}
    assert module.rates(placement, channels=1)[0] < 0.8 * module.rates(placement, channels=2)[0]


def test_pages_far_away_slow_a_stream_and_stay_there():
    module = MODULES["numa"]
    stream = module.PROGRAMS["triad"][0]
    near, far = (module.rates({0: (stream, (0,), home)})[0] for home in ((1.0, 0.0), (0.0, 1.0)))
    assert near == pytest.approx(1)
    assert 0.5 < far < 0.85
    world, _ = batch("numa", [("triad", 1e8, 12)])
    assert world.traffic[0] == [0, 0] and world.traffic[1][0] > 0


@pytest.mark.parametrize("name", NAMES)
def test_jobs_that_share_all_cpus_divide_them_equally(name):
    cpus = len(MODULES[name].World().machine()["cpus"])
    world = MODULES[name].World()
    world.add([cosched._world.NewTask(id, "job", 1, {"program": CALM[name], "instructions": 1e15}) for id in range(cpus + 4)])
    everywhere = cosched.Place(tuple(range(cpus)), False, "run", True)
    world.apply([cosched._world.Change(id, everywhere) for id in range(cpus + 4)])
    world.wait(20.0)
    times = [usage.cpu_time_s for usage in world.read(list(range(cpus + 4))).usage.values()]
    assert sum(times) == pytest.approx(20 * cpus)
    assert max(times) - min(times) < 0.3


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_run_and_another_does_not(name):
    jobs = [(program, 2e10, None) for program in MODULES[name].PROGRAMS]
    runs = [batch(name, jobs, seed)[1] for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("name", NAMES)
def test_the_truth_agrees_with_what_happened(name, folder, monkeypatch):
    monkeypatch.setenv("COSCHED_WORLD_TRUTH", str(folder / "truth"))
    jobs = [(STREAM[name], 5e9, 0), (CALM[name], 2e10, 1), (STREAM[name], 9e9, 2)]
    _, ends = batch(name, jobs)
    lines = [json.loads(line) for line in (folder / "truth").read_text().splitlines()]
    assert sorted(line["task"] for line in lines) == [0, 1, 2]
    for line in lines:
        assert line["ended_s"] == ends[line["task"]] and line["jobs"] == 3
        # Progress adds up to the work.
        progress_s = sum((to - since) * relative for since, to, relative in line["speeds"])
        assert progress_s == pytest.approx(line["solo_s"], rel=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_a_world_conforms(name):
    if not Path(os.environ["COSCHED"]).exists():
        pytest.skip("skipped, because the binary is not built")
    world, jobs = WORLDS / f"{name}.py", WORLDS / f"{name}_jobs.toml"
    command = [os.environ["COSCHED"], "conform", "--on", f"cmd:{sys.executable} {world}", "--jobs", str(jobs)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
