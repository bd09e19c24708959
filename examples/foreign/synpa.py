# /// script
# dependencies = ["cosched", "networkx", "numpy"]
# ///
"""SYNPA: pairs of jobs for the two threads of a core, by predicted slowdown (Navarro et al., arXiv 2507.00855).

    cosched run mixes/perf-fair/mix05.toml --on xeon-e5645 --policy "cmd:python3 examples/foreign/synpa.py"

The paper splits the cycles of a job at the dispatch stage: cycles that dispatch, stalls of the frontend, stalls of the
backend. A regression predicts each part: smt = a + b * own + c * other + d * own * other. `own` is the part of the job alone,
`other` that of its partner alone, and `smt` that of the job beside its partner. Each quantum the inverse of this model gives the
parts alone from those in pairs. A perfect matching of minimum weight chooses pairs by their slowdowns.

**What replaces the stall counts.** cosched counts no stalls. So the cycles per instruction are split into three others:
`base` (the least that the core needs), `memory` (accesses to the last-level cache and reads from memory per instruction,
at nominal latencies), and the `rest`. The parts add up to the cycles measured.

**What differs besides.** The paper trains its model before, on other programs. Here each job runs alone on a core once, and
then `train` quanta have random pairs, from which the model learns.

**What it shows.** Simulated, six programs that compute and six that read, `xeon-e5645`, three seeds: the sum of speeds is
7.75 to 7.79, with random pairs 7.35 to 7.36. Unfairness is 1.67 instead of 1.38. The batch ends at the same time.
"""

from itertools import combinations

import networkx as nx
import numpy as np
from cosched import Number, Place, policy

BASE_CPI = 0.25  # Of a core that dispatches four instructions in a cycle.
HIT_CYCLES, READ_CYCLES = 20.0, 100.0  # Nominal cost of a last-level access and of a read, less what overlaps.


def parts(task):
    """Cycles per instruction in the last quantum, split; None without them."""
    if not task.ipc or not task.instructions_per_cpu_s:
        return None
    cpi = 1 / task.ipc
    cycles = (task.llc_accesses_per_s or 0) * HIT_CYCLES + (task.mm_reads_per_s or 0) * READ_CYCLES
    memory = min(cycles / task.instructions_per_cpu_s, max(cpi - BASE_CPI, 0.0))
    base = min(BASE_CPI, cpi)
    return np.array([base, memory, cpi - base - memory])


class Model:
    """The regression of each part."""

    def __init__(self):
        self.samples = []  # Parts alone, those of the partner alone, and those in the pair.
        self.coefficients = None

    def fit(self):
        """Fit the four coefficients of each part by least squares."""
        own, other, smt = (np.array(column) for column in zip(*self.samples))
        fits = []
        for part in range(3):
            x = np.column_stack([np.ones(len(own)), own[:, part], other[:, part], own[:, part] * other[:, part]])
            fits.append(np.linalg.lstsq(x, smt[:, part], rcond=None)[0])
        self.coefficients = np.array(fits).T

    def alone(self, smt, other_smt):
        """The parts of both jobs alone, from those of the pair."""
        a, b, c, d = self.coefficients
        one, two = smt, other_smt
        # Each round solves for one job, given the other. After 20 the error is below 0.002 cycles, even for c = 0.8 * b.
        for _ in range(20):
            one = np.maximum((smt - a - c * two) / np.maximum(b + d * two, 0.1), 1e-3)
            two = np.maximum((other_smt - a - c * one) / np.maximum(b + d * one, 0.1), 1e-3)
        return one, two

    def slowdown(self, own, other):
        """Time beside another job, divided by the time alone."""
        a, b, c, d = self.coefficients
        smt = np.maximum(a + b * own + c * other + d * own * other, 0.0)
        return max(smt.sum() / own.sum(), 1.0)


@policy(
    needs=["freeze", "affinity", "ipc"],
    wants={"llc-accesses": "memory stalls are those of reads alone", "mm-reads": "memory stalls are those of hits alone"},
    train=Number(10, 1, 1000, "quanta of random pairs from which the model learns"), answer_within_s=0.5,
)
class synpa:
    """Pairs for SMT cores by predicted slowdown (SYNPA)."""

    def __init__(self, train, rng):
        self.train, self.rng, self.model = train, rng, Model()
        self.alone, self.measured, self.pairs = {}, [], []

    def decide(self, snapshot):
        if not snapshot.is_quantum_end:
            return snapshot.tasks
        self.observe({task: parts(task) for task in snapshot.all_tasks})
        self.measured, self.pairs = [], []
        if any(task.cpus > 1 or task.allowed for task in snapshot.tasks):
            return snapshot.tasks  # The package places jobs that need several CPUs or may use only some.
        cores = [core for core in snapshot.machine.cores if set(core) <= set(snapshot.cpus)]
        self.measured = [task for task in snapshot.tasks if task not in self.alone][: len(cores)]
        if self.measured:
            return {task: Place(core[0], whole_core=True, purpose="measure-alone") for task, core in zip(self.measured, cores)}
        self.pairs = self.choose(list(snapshot.tasks[: 2 * len(cores)]), len(cores))
        return place(self.pairs, cores)

    def observe(self, seen):
        """Use what the last quantum showed."""
        self.alone.update({task: seen[task] for task in self.measured if seen.get(task) is not None})
        for pair in self.pairs:
            smt = [seen[task] for task in pair if seen.get(task) is not None]
            alone = [self.alone[task] for task in pair]
            if len(smt) < 2:
                continue
            if self.model.coefficients is None:
                self.model.samples += [(*alone, smt[0]), (*alone[::-1], smt[1])]
            else:
                self.alone.update(zip(pair, self.model.alone(*smt)))

    def choose(self, tasks, cores):
        """Pairs of these tasks, and tasks alone where cores are left."""
        if len(tasks) <= cores:
            return [(task,) for task in tasks]
        if self.train > 0 or not self.model.samples:
            self.train -= 1
            self.rng.shuffle(tasks)
            return [tuple(tasks[core::cores]) for core in range(cores)]
        if self.model.coefficients is None:
            self.model.fit()
        # A core with one job has an idle partner, beside which nothing is slowed down.
        tasks += [None] * (2 * cores - len(tasks))
        graph = nx.Graph()
        for i, j in combinations(range(len(tasks)), 2):
            alone = [self.alone[task] for task in (tasks[i], tasks[j]) if task]
            slowed = self.model.slowdown(*alone) + self.model.slowdown(*alone[::-1]) if len(alone) == 2 else len(alone)
            graph.add_edge(i, j, weight=slowed)
        pairs = sorted(map(sorted, nx.min_weight_matching(graph)))
        return [tuple(tasks[i] for i in pair if tasks[i]) for pair in pairs]


def place(pairs, cores):
    """Give each pair a core: that of its first job, where it is free."""
    free, places = list(cores), {}
    for pair in filter(None, pairs):
        core = min(free, key=lambda core: not set(core) & set(pair[0].last_cpus))
        free.remove(core)
        places.update(zip(pair, core))
    return places


if __name__ == "__main__":
    synpa.run()
