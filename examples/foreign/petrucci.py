# /// script
# dependencies = ["cosched", "scipy"]
# ///
"""Jobs to big and small cores by integer programming, within a limit of memory bandwidth (Petrucci et al., ACM TECS 2015).

    cosched run mixes/lucky/2ci-2mi.toml --on big1-small3 --policy "cmd:python3 examples/foreign/petrucci.py"

Each quantum solves, with x[j, t] = 1 if job j has a core of type t:

    maximise    sum of x[j, t] * worth[j, t]
    subject to  sum over t of x[j, t] <= 1              a job has at most one core
                sum over j of x[j, t] <= cores of t
                sum of x[j, t] * reads[j, t] <= limit   the bus is not overloaded

`worth` is speed^exponent / power: with exponent 1 instructions per joule, with 2 the inverse of energy times delay. It
grows with the time that a job has waited, so that none waits for ever.

**Measured and predicted.** Speed and reads on a type of core are those of the job's last quantum on one. For a type that
it has not run on, the time in the core grows with the clock period, and the time for memory, taken from reads and
`read_ns`, stays the same.

**What differs.** This is the form of the paper's model, not its every equation. Threads there can demand a speed, which jobs
of a batch do not. Here powers are linear in the speed, as in `lucky`. The defaults of powers and bandwidth are the table `params`
of `machines/big1-small3.toml`, fitted to the simulated machine.

**What it shows.** In the simulated mixes of `lucky` it mostly chooses as `bias` does: the same jobs keep the big core. That is
best where one job gains most (155 kJ s in 1CI-3MI, `lucky` 467), and bad where several gain (939 in 2CI-2MI, `lucky` 487).
"""

import numpy as np
from cosched import Number, policy
from scipy.optimize import Bounds, LinearConstraint, milp


@policy(
    needs=["core-types", "freeze", "affinity", "cpu-time", "ipc"],
    wants={"mm-reads": "memory bandwidth has no limit, and all time counts as time in the core"},
    quantum_s=0.2,
    exponent=Number(2.0, 0.0, 3.0, "power of the speed in the worth of a job"),
    mu_trans_per_us=Number(307.1, 0.0, 1e6, "lines per microsecond that memory delivers"),
    bus_share=Number(0.8, 0.0, 1.0, "part of them that jobs may use"),
    read_ns=Number(20.0, 0.0, 1000.0, "time that a read from memory costs a job, in nanoseconds"),
    big_capacity_mips=Number(7686.0, 1.0, 1e6, "speed of a big core at its busy power"),
    big_idle_w=Number(3.0, 0.0, 1e3, "power of an idle big core"),
    big_busy_w=Number(18.91, 0.0, 1e3, "power of a busy big core"),
    small_capacity_mips=Number(2557.0, 1.0, 1e6, "speed of a small core at its busy power"),
    small_idle_w=Number(0.7, 0.0, 1e3, "power of an idle small core"),
    small_busy_w=Number(2.63, 0.0, 1e3, "power of a busy small core"),
    answer_within_s=0.5,
)
class petrucci:
    """Jobs to big and small cores by integer programming, within memory bandwidth (Petrucci et al.)."""

    def __init__(self, quantum_s, exponent, mu_trans_per_us, bus_share, read_ns, **powers):
        self.quantum_s, self.exponent, self.read_s = quantum_s, exponent, read_ns * 1e-9
        self.limit_per_s = mu_trans_per_us * 1e6 * bus_share
        self.powers = [
            (powers[f"{kind}_capacity_mips"] * 1e6, powers[f"{kind}_idle_w"], powers[f"{kind}_busy_w"])
            for kind in ("big", "small")
        ]
        self.seen = {}
        """Instructions and reads per second of CPU time, by task and type of core."""

    def decide(self, snapshot):
        for task in snapshot.all_tasks:
            self.observe(snapshot.machine, task)
        if any(task.cpus > 1 or task.allowed for task in snapshot.tasks):
            return snapshot.tasks  # The package places jobs that need several CPUs or may use only some.
        # The core types are listed fastest first; all but the first count as small.
        cores = [[cpu for cpu in snapshot.cpus if min(cpu.core_type, 1) == kind] for kind in (0, 1)]
        if not snapshot.tasks:
            return {}
        chosen = self.solve(snapshot.machine, snapshot.tasks, cores)
        return put(snapshot.tasks, chosen, cores)

    def observe(self, machine, task):
        """Remember what the last quantum showed."""
        if task.last_cpus and task.instructions_per_cpu_s:
            kind = min(machine.cpu(task.last_cpus[0]).core_type, 1)
            self.seen[task, kind] = task.instructions_per_cpu_s, task.mm_reads_per_cpu_s or 0.0

    def speed(self, machine, task, kind):
        """Instructions and reads per second on a type of core: measured, predicted, or assumed before the first run."""
        if (task, kind) in self.seen:
            return self.seen[task, kind]
        other = 1 - kind
        if (task, other) not in self.seen:
            return self.powers[kind][0] / 2, 0.0
        instructions, reads = self.seen[task, other]
        in_memory_s = min(reads * self.read_s, 0.95)
        ghz = [machine.core_types[one].max_ghz or self.powers[one][0] for one in (0, 1)]
        time_s = (1 - in_memory_s) * ghz[other] / ghz[kind] + in_memory_s
        return instructions / time_s, reads / time_s

    def solve(self, machine, tasks, cores):
        """The type of core of each task; None if it waits."""
        speeds = np.array([[self.speed(machine, task, kind) for kind in (0, 1)] for task in tasks])
        capacity, idle, busy = (np.array(column) for column in zip(*self.powers))
        load = np.minimum(speeds[:, :, 0] / capacity, 1.0)
        worth = (speeds[:, :, 0] / 1e9) ** self.exponent / (idle + (busy - idle) * load)
        # A job that has waited for a quantum is worth twice as much.
        worth *= np.array([[1 + task.waited_s / self.quantum_s] for task in tasks])
        n = len(tasks)
        # The variables in a row: x[0, big], x[0, small], x[1, big] and so on.
        one_core = np.kron(np.eye(n), np.ones((1, 2)))  # n rows, 2n columns: row j sums up job j.
        of_a_type = np.kron(np.ones((1, n)), np.eye(2))  # 2 rows, 2n columns: row t sums up type t.
        reads = speeds[:, :, 1].reshape(1, -1)  # 1 row, 2n columns.
        # One job may always run, or a job that reads more than the limit alone would never.
        limit = max(self.limit_per_s, reads.max())
        within = [
            LinearConstraint(one_core, ub=1),
            LinearConstraint(of_a_type, ub=[len(of_type) for of_type in cores]),
            LinearConstraint(reads / limit, ub=1),
        ]
        found = milp(-worth.reshape(-1), constraints=within, bounds=Bounds(0, 1), integrality=np.ones(2 * n))
        x = found.x.reshape(n, 2).round() if found.x is not None else np.zeros((n, 2))
        return [int(row.argmax()) if row.any() else None for row in x]


def put(tasks, chosen, cores):
    """Give the tasks their cores. A task stays on its own if that is of its type."""
    free, places = [list(of_type) for of_type in cores], {}
    # Jobs that can stay come first, so that no other takes their core.
    order = sorted(zip(tasks, chosen), key=lambda pair: pair[1] is None or not set(pair[0].last_cpus) & set(free[pair[1]]))
    for task, kind in order:
        if kind is not None:
            cpu = next((cpu for cpu in free[kind] if cpu in task.last_cpus), free[kind][0])
            free[kind].remove(cpu)
            places[task] = cpu
    return places


if __name__ == "__main__":
    petrucci.run()
