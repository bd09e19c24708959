"""The examples in `examples/foreign`: their mathematics, and how they decide."""

import importlib.util
import itertools
import random
import sys
from pathlib import Path

import cosched
import pytest
from foreign import Loop, task

EXAMPLES = Path(__file__).parents[2] / "examples/foreign"


def load(name, *needs):
    for module in needs:
        pytest.importorskip(module, reason=f"the example {name} needs {module}")
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def synpa():
    return load("synpa", "networkx", "numpy")


@pytest.fixture(scope="module")
def petrucci():
    return load("petrucci", "scipy")


SMT = cosched.machine(cores=2, threads=2)
LAW = (0.02, 1.1, 0.25, 0.4)
"""A law of contention: own parts grow by a constant, by the other's, and by both."""


def in_a_pair(own, other):
    a, b, c, d = LAW
    return a + b * own + c * other + d * own * other


def test_the_model_recovers_a_law_and_inverts_it(synpa):
    np = synpa.np
    rng = np.random.default_rng(1)
    alone = rng.uniform(0.1, 2.0, (12, 3))
    model = synpa.Model()
    model.samples = [(one, two, in_a_pair(one, two)) for one in alone for two in alone]
    model.fit()
    assert np.allclose(model.coefficients, np.array(LAW)[:, None])
    one, two = alone[0], alone[1]
    assert model.slowdown(one, two) == pytest.approx(in_a_pair(one, two).sum() / one.sum())
    found = model.alone(in_a_pair(one, two), in_a_pair(two, one))
    assert np.allclose(found, (one, two), atol=1e-3)


def test_parts_add_up_to_the_cycles(synpa):
    values = {"ipc": 0.5, "cpu_instructions": 1_500_000, "llc": 9000, "mm_reads": 3000}
    base, memory, rest = synpa.parts(views([task(0, **values)]).task(0))
    # Per millisecond 9000 accesses at 20 cycles and 3000 reads at 100 cycles, for 1.5 million instructions.
    assert base == 0.25 and memory == pytest.approx(0.32) and base + memory + rest == pytest.approx(2.0)


def pairs(loop):
    where = {id: int(cpu) % 2 for id, cpu in loop.where().items()}
    return {frozenset(id for id in where if where[id] == core) for core in where.values()}


def test_jobs_that_disturb_each_other_most_are_kept_apart(synpa):
    """Two jobs with much memory and two with little: the sum of slowdowns is least if unlike ones share a core."""
    np = synpa.np
    alone = {0: np.array([0.25, 2.0, 0.1]), 1: np.array([0.25, 2.0, 0.2]), 2: np.array([0.25, 0.1, 0.5])}
    alone[3] = np.array([0.25, 0.1, 0.4])
    loop = Loop(synpa.synpa.begin(train=12).answer, [task(id) for id in alone], SMT)
    loop.ask()
    seen = []
    for _ in range(40):
        where = {id: int(cpu) % 2 for id, cpu in loop.where().items()}
        for id in where:
            other = [one for one in where if one != id and where[one] == where[id]]
            cpi = in_a_pair(alone[id], alone[other[0]]) if other else alone[id]
            # Reads that cost as many cycles as the part for memory has.
            values = {"ipc": 1 / cpi.sum(), "cpu_instructions": 1_000_000, "mm_reads": cpi[1] * 1e6 / synpa.READ_CYCLES}
            loop.tasks[id]["estimates"].update({key: {"value": value} for key, value in values.items()})
        loop.quantum()
        seen.append(pairs(loop))
    best = min(
        ({frozenset({0, other}), frozenset({1, 2, 3} - {other})} for other in (1, 2, 3)),
        key=lambda way: sum(
            in_a_pair(alone[a], alone[b]).sum() / alone[a].sum() for pair in way for a, b in itertools.permutations(pair)
        ),
    )
    assert len({frozenset(way) for way in seen[:15]}) > 2
    assert seen[-20:] == [best] * 20 and frozenset({0, 1}) not in best


def test_arrivals_between_quanta_do_not_wait(synpa):
    loop = Loop(synpa.synpa.begin().answer, [task(0)], SMT)
    loop.ask()
    loop.now = 1000
    loop.tasks[1] = task(1)
    loop.ask({"arrived": 1})
    # CPU 2 is the other thread of the core that is kept for the measurement.
    assert loop.where() == {0: "0", 1: "1"}


BIG_SMALL = cosched.machine(core_types=[(cosched.CoreType("big", 1024, 3.2), 1), (cosched.CoreType("small", 256, 0.8), 3)])


def views(tasks, machine=BIG_SMALL):
    return cosched.Snapshot({"machine": machine, "now": 0, "triggers": ["quantum-end"], "tasks": tasks})


@pytest.mark.parametrize("seed", range(8))
def test_the_assignment_is_the_best_within_the_bus(petrucci, seed):
    rng = random.Random(seed)
    tasks = [task(id, cpu_instructions=rng.uniform(0.2e6, 8e6), cpu_mm_reads=rng.uniform(0, 2e5)) for id in range(5)]
    seen = views(tasks)
    policy = petrucci.petrucci.begin(exponent=2.0, bus_share=0.9)._decide.__self__
    for one in seen.all_tasks:
        for kind in (0, 1):
            policy.seen[one, kind] = one.instructions_per_cpu_s / (1 + 2 * kind), one.mm_reads_per_cpu_s / (1 + 2 * kind)
    cores = [list(seen.cpus[:1]), list(seen.cpus[1:])]
    chosen = policy.solve(seen.machine, list(seen.tasks), cores)

    def worth(ways):
        total = reads = 0.0
        for one, kind in zip(seen.tasks, ways):
            if kind is not None:
                speed, more = policy.seen[one, kind]
                capacity, idle, busy = policy.powers[kind]
                total += (speed / 1e9) ** 2 / (idle + (busy - idle) * min(speed / capacity, 1))
                reads += more
        limit = max(policy.limit_per_s, max(more for _, more in policy.seen.values()))
        fits = reads <= limit * (1 + 1e-6) and ways.count(0) <= 1 and ways.count(1) <= 3
        return total if fits else -1.0

    best = max(worth(ways) for ways in itertools.product((0, 1, None), repeat=5))
    assert worth(tuple(chosen)) == pytest.approx(best)


def test_speed_on_the_other_type_is_predicted(petrucci):
    policy = petrucci.petrucci.begin(read_ns=20.0)._decide.__self__
    on_big = task(0, on="0", cpu_instructions=3_000_000, cpu_mm_reads=0)
    on_small = task(1, on="1", cpu_instructions=500_000, cpu_mm_reads=25_000)
    seen = views([on_big, on_small])
    for one in seen.all_tasks:
        policy.observe(seen.machine, one)
    # Without reads the speed follows the clock.
    assert policy.speed(seen.machine, seen.task(0), 1)[0] == pytest.approx(3e9 / 4)
    # Half of its time on the small core was memory, which a big core does not shorten.
    assert policy.speed(seen.machine, seen.task(1), 0)[0] == pytest.approx(0.5e9 / (0.5 / 4 + 0.5))


def test_all_jobs_run_in_turn_on_big_and_small_cores(petrucci):
    jobs = [task(id, cpu_instructions=1_000_000 * (id + 1), cpu_mm_reads=0) for id in range(6)]
    loop = Loop(petrucci.petrucci.begin().answer, jobs, BIG_SMALL)
    loop.ask()
    seen = set(loop.where())
    for _ in range(30):
        loop.quantum()
        assert len(loop.where()) == 4
        seen.update(loop.where())
    assert seen == set(range(6))
