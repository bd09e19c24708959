"""The worlds in examples/worlds: what their laws must obey whatever their numbers are, and the page about them."""

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
# After `load`, which puts the folder on the path.
draw_mixes, make_page, oracle, page_text = map(importlib.import_module, ("draw_mixes", "make_page", "oracle", "page_text"))


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


def round_robin_s(world, jobs, quantum_s=0.2):
    """Time of a batch where the jobs that waited longest run, each on the next CPU."""
    world.add(jobs)
    queue, now, quantum = [job.id for job in jobs], 0.0, 0
    while queue:
        quantum += 1
        cpus = len(world.machine()["cpus"])
        running, queue = queue[:cpus], queue[cpus:]
        changes = [cosched._world.Change(id, cosched.Place((cpu,), False, "run")) for cpu, id in enumerate(running)]
        world.apply(changes)
        ended = True
        while ended and running:
            now, events = world.wait(quantum * quantum_s)
            ended = {event.task for event in events}
            running = [id for id in running if id not in ended]
        world.apply([cosched._world.Change(id, None) for id in running])
        queue += running
    return now


def test_the_oracle_is_at_least_as_fast_as_round_robin(folder):
    programs = ["lattice", "gates", "waves", "fields"] * 2 + ["molecule", "chess", "render", "encode", "events", "speech"]
    job = '[[job]]\nname = "{0}-{1}"\ngiven = {{ program = "{0}", instructions = 4e9 }}\n'
    entries = [job.format(program, number) for number, program in enumerate(programs)]
    (folder / "mix.toml").write_text('schema = "cosched.mix/1"\n' + "".join(entries))
    jobs = oracle.jobs_of(folder / "mix.toml")
    assert len(jobs) == 14
    found = oracle.run(MODULES["socket"].World(1), folder / "mix.toml", 1)
    # The work is the same, so the sum of speeds is greater where the time is less.
    assert found["turnaround_s"] <= round_robin_s(MODULES["socket"].World(1), jobs)
    assert found["unfairness"] >= 1


def made_up_runs(times, seeds=(1, 2)):
    """Runs of two mixes for {policy: (time, unfairness)}. The second mix takes twice as long. The other published take 200 s."""
    figures = {**dict.fromkeys(page_text.PUBLISHED, (200.0, 2.0)), **times}
    return {(policy, mix, seed): make_page.Run(time * mix, unfair, 0.05, 0.06, [0.01, -0.03])
            for policy, (time, unfair) in figures.items() for mix in (1, 2) for seed in seeds}


MADE_UP = {"round-robin": (100.0, 1.5), "perf-fair": (99.0, 1.1), "even": (95.0, 1.05)}
ORACLE = {1: {"turnaround_s": 90.0, "unfairness": 1.02}, 2: {"turnaround_s": 180.0, "unfairness": 1.04}}


def test_the_page_has_a_row_for_each_policy_and_the_oracle():
    rows = page_text.policy_table(made_up_runs(MADE_UP), ORACLE).splitlines()
    assert "| `even` | -5.0 % (-5.0 to -5.0) | 1.05, 1.05 | 50 % | 5.0 % | 6.0 % | 2.0 %, 3.0 % |" in rows
    assert "| `oracle.py`, seed 1 | -10.0 % (-10.0 to -10.0) | 1.03, 1.04 | 100 % | - | - | - |" in rows
    assert len(rows) == 2 + len(page_text.PUBLISHED) + 2


def test_the_page_names_the_best_published_policy_of_each_mix():
    rows = page_text.mix_table(made_up_runs(MADE_UP), ORACLE, {1: "balanced"}).splitlines()
    assert rows[2] == "| 1, balanced | `perf-fair`, 99.0 s | `perf-fair`, 1.10 | 95.0 s, 1.05 | 90.0 s, 1.02 |"
    assert rows[3] == "| 2 | `perf-fair`, 198.0 s | `perf-fair`, 1.10 | 190.0 s, 1.05 | 180.0 s, 1.04 |"


@pytest.mark.parametrize(
    ("even", "missed"),
    [
        ((95.0, 1.05), []),
        ((95.0, 1.09), ["Unfairness is at most"]),
        ((95.0, 1.2), ["Unfairness is at most", "Unfairness is never above"]),
        ((97.0, 1.05), ["It reaches at least"]),
        ((101.0, 1.05), ["Time is at most", "It reaches at least"]),
    ],
)
def test_the_page_says_which_promises_are_missed(even, missed):
    bounds = page_text.bounds(made_up_runs({**MADE_UP, "even": even}), ORACLE)
    sentences = [bound.sentence() for bound in bounds]
    found = [sentence for sentence in sentences if "**missed**" in sentence]
    assert len(found) == len(missed) and all(sentence.startswith(start) for sentence, start in zip(found, missed))


def test_the_page_counts_a_prediction_that_is_absent_or_bad_as_missed():
    runs = made_up_runs(MADE_UP)
    for error, last in ((0.07, 0.06), (None, None)):
        runs["even", 1, 1] = runs["even", 1, 2] = make_page.Run(95.0, 1.05, error, last, [])
        sentences = [bound.sentence() for bound in page_text.bounds(runs, {})]
        assert sum("**missed** in 1 of 2 mixes" in sentence for sentence in sentences) == 1
        assert sum("**missed** in 2 of 4 runs" in sentence for sentence in sentences) == 1


def test_the_page_warns_where_a_policy_beats_the_oracle():
    assert "no bound" not in page_text.beaten_oracle(made_up_runs(MADE_UP), ORACLE)
    assert "`even` (120 %)" in page_text.beaten_oracle(made_up_runs({**MADE_UP, "even": (88.0, 1.05)}), ORACLE)


def test_a_full_memory_moves_about_what_streams_move():
    for name, channels in (("socket", 2), ("numa", 3)):
        module = MODULES[name]
        physics, phase = module.World.physics, module.PROGRAMS[STREAM[name]][0]
        cpus = range(physics.cores * physics.threads)
        flows, _ = physics.flows({cpu: (phase, physics.touched((cpu,))) for cpu in cpus})
        moved = 1000 * sum(flow.reads + flow.writes for flow, _ in flows.values()) / physics.domains
        assert 0.8 < moved / make_page.full_rate(name, channels) < 1.05


def test_mixes_are_drawn_as_they_are_stored(folder, monkeypatch):
    monkeypatch.setattr(draw_mixes, "HERE", folder)
    (folder / "mixes").mkdir()
    for world in NAMES:
        for number, about, weights in draw_mixes.numbered():
            draw_mixes.draw(world, MODULES[world].World.physics, number, about, weights)
            mix = f"mixes/{world}-{number}.toml"
            assert (folder / mix).read_bytes() == (WORLDS / mix).read_bytes()
