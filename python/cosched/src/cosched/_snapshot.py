"""What a policy sees: the machine, the tasks and what was measured of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

NS = 1e-9
"""Seconds in a nanosecond."""

PER_MS = 1000.0
"""Rates are per millisecond on the wire, and per second here."""


def parse_cpus(cpus: str) -> tuple[int, ...]:
    """Read a CPU set, as in 0-3,8."""
    found: list[int] = []
    for part in filter(None, cpus.split(",")):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return tuple(found)


def format_cpus(cpus: Iterable[int]) -> str:
    """Write a CPU set, as in 0-3,8."""
    ranges: list[list[int]] = []
    for cpu in sorted(set(map(int, cpus))):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


class Cpu(int):
    """A hardware thread: its number, with its place in the machine."""

    _raw: Mapping[str, int]

    def __new__(cls, raw: Mapping[str, int]) -> Cpu:
        cpu = super().__new__(cls, raw["id"])
        cpu._raw = raw
        return cpu

    @property
    def core(self) -> int:
        """Index in `Machine.cores`."""
        return self._raw["core"]

    @property
    def llc(self) -> int:
        """Index in `Machine.llcs`."""
        return self._raw["llc"]

    @property
    def memory_domain(self) -> int:
        """Index in `Machine.memory_domains`."""
        return self._raw["memory_domain"]

    @property
    def core_type(self) -> int:
        """Index in `Machine.core_types`; 0 is the fastest type."""
        return self._raw["core_type"]


@dataclass(frozen=True)
class CoreType:
    """A type of core."""

    name: str
    capacity: int | None = None
    """The kernel's capacity, 1024 for the fastest type."""
    max_ghz: float | None = None


class Machine:
    """The machine, with the CPUs that can be used now."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self._raw = raw
        self._cpus = tuple(Cpu(cpu) for cpu in raw["cpus"])
        self._by_id = {int(cpu): cpu for cpu in self._cpus}
        self._cores = self._sets(raw["cores"])
        self._llcs = self._sets(raw["llcs"])
        self._memory_domains = self._sets(raw["memory_domains"])
        self._core_types = tuple(
            CoreType(kind["name"], kind["capacity"], kind["max_khz"] and kind["max_khz"] / 1e6)
            for kind in raw["core_types"]
        )

    @property
    def raw(self) -> Mapping[str, Any]:
        """The machine as on the wire."""
        return self._raw

    @property
    def name(self) -> str:
        """Its name, such as `xeon-e5645`."""
        return str(self._raw["name"])

    @property
    def cpus(self) -> tuple[Cpu, ...]:
        """Hardware threads, by number."""
        return self._cpus

    @property
    def cores(self) -> tuple[tuple[Cpu, ...], ...]:
        """The CPUs of each core."""
        return self._cores

    @property
    def llcs(self) -> tuple[tuple[Cpu, ...], ...]:
        """The CPUs behind each last-level cache."""
        return self._llcs

    @property
    def memory_domains(self) -> tuple[tuple[Cpu, ...], ...]:
        """The CPUs of each memory domain: those that share memory channels, such as a socket."""
        return self._memory_domains

    @property
    def core_types(self) -> tuple[CoreType, ...]:
        """Types of cores, each with `name`, `capacity` (1024 for the fastest) and `max_ghz`. Fastest first."""
        return self._core_types

    @property
    def llc_bytes(self) -> int | None:
        """Size of one last-level cache in bytes."""
        size: int | None = self._raw["llc_bytes"].get("value")
        return size

    def cpu(self, id: int) -> Cpu:
        """The CPU with this number."""
        return self._by_id[id]

    def siblings(self, cpu: int) -> tuple[Cpu, ...]:
        """The CPUs of the same core, with this one."""
        return self._cores[self.cpu(cpu).core]

    def _sets(self, sets: Iterable[str]) -> tuple[tuple[Cpu, ...], ...]:
        return tuple(tuple(self._by_id[id] for id in parse_cpus(one) if id in self._by_id) for one in sets)


@dataclass(frozen=True)
class Running:
    """Where a task runs now."""

    cpus: tuple[int, ...]
    shared: bool
    """The kernel shares these CPUs out. Otherwise the task has them alone."""
    whole_core: bool
    """The other CPUs of these cores stay idle."""
    purpose: str
    since_s: float
    """Start of the present run without a break, from the start of cosched's run."""


class Task:
    """A job that has arrived and not ended, with the estimates of its last quantum.

    A value that is absent is None, and `absence` says why. Two views of the same task in different snapshots are equal,
    so a task can be the key of a dictionary that lasts.
    """

    ON_THE_WIRE: ClassVar[Mapping[str, str]] = {
        "mm_reads_per_s": "mm_reads",
        "mm_reads_mean_per_s": "mm_reads_mean",
        "mm_writes_per_s": "mm_writes",
        "domain_lines_per_s": "domain_lines",
        "llc_accesses_per_s": "llc",
        "l1_accesses_per_s": "l1",
        "instructions_per_cpu_s": "cpu_instructions",
        "mm_reads_per_cpu_s": "cpu_mm_reads",
    }
    """Names of estimates on the wire, where they differ."""

    def __init__(self, raw: Mapping[str, Any], now_s: float) -> None:
        self._raw = raw
        # Kept apart, since equality and dictionaries ask for it all the time.
        self._id: int = raw["id"]
        self._estimates: Mapping[str, Any] = raw["estimates"]
        self._now_s = now_s

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and other._id == self._id

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        return f"<task {self.id} {self.name}>"

    @property
    def raw(self) -> Mapping[str, Any]:
        """The task as on the wire."""
        return self._raw

    @property
    def id(self) -> int:
        """Its number, unique in the run."""
        return self._id

    @property
    def name(self) -> str:
        """The name of its job."""
        return str(self._raw["name"])

    @property
    def cpus(self) -> int:
        """Hardware threads that it needs at once."""
        return int(self._raw["cpus"])

    @property
    def allowed(self) -> tuple[int, ...] | None:
        """CPUs that it may use; None for all."""
        allowed = self._raw["allowed"]
        return None if allowed is None else parse_cpus(allowed)

    @property
    def weight(self) -> float:
        """Its share of the time, relative to other tasks."""
        return float(self._raw.get("weight", 1.0))

    @property
    def running(self) -> Running | None:
        """Where it runs: `cpus`, `shared`, `whole_core`, `purpose` and `since_s`; None while it waits."""
        raw = self._raw["running"]
        if raw is None:
            return None
        placement = raw["placement"]
        own = placement.get("exclusive")
        cpus = own["cpus"] if own else placement["shared"]["mask"]
        whole_core = bool(own and own.get("whole_core"))
        return Running(parse_cpus(cpus), own is None, whole_core, raw["purpose"], raw["since"] * NS)

    @property
    def last_cpus(self) -> tuple[int, ...]:
        """CPUs of its last run; empty if it never ran."""
        return parse_cpus(self._raw["last_cpus"])

    @property
    def may_place(self) -> bool:
        """Whether cosched may start and move it."""
        return bool(self._raw["control"]["place"])

    @property
    def may_stop(self) -> bool:
        """Whether cosched may freeze it."""
        return bool(self._raw["control"]["freeze"])

    @property
    def asleep(self) -> bool:
        """Whether it sleeps by itself, and needs no CPU now."""
        return bool(self._raw["asleep"])

    @property
    def overdue(self) -> bool:
        """Whether it has waited for longer than `--max-pause`. A good policy takes it first."""
        return bool(self._raw["overdue"])

    @property
    def arrived_s(self) -> float:
        """Its arrival, in seconds from the start of the run."""
        return float(self._raw["arrived"] * NS)

    @property
    def waited_s(self) -> float:
        """Seconds that it has waited since it last ran, or since its arrival; 0 while it runs."""
        return self._now_s - float(self._raw["waiting_since"] * NS)

    @property
    def ran_s(self) -> float:
        """Seconds that it has run."""
        return float(self._estimates["ran"] * NS)

    @property
    def executed(self) -> int:
        """Number of intervals that it has run, however short."""
        return int(self._estimates["executed"])

    @property
    def expected_s(self) -> float | None:
        """Run time in seconds, known from earlier runs or given with the job. None in simulations."""
        expected = self._raw.get("expected")
        return expected and float(expected["time"] * NS)

    @property
    def memory_bytes(self) -> int | None:
        """Memory that it needs, in bytes; None if not known."""
        return self._raw.get("memory")

    @property
    def progress(self) -> float | None:
        """Solo execution that is done, in quanta of the parameter `quantum_s`, by default 0.2 s.

        `progress_basis` says how it was found.
        """
        return self._reading("progress")

    @property
    def progress_basis(self) -> str:
        """`ipc` (against solo IPC), `trace` (against the trace of a solo run), `cpu-time`, or `provisional`.

        While it is provisional no solo IPC is known, and the time on CPUs counts.
        """
        return str(self._estimates["progress_basis"])

    @property
    def ipc(self) -> float | None:
        """Instructions per cycle, last quantum."""
        return self._reading("ipc")

    @property
    def solo_ipc(self) -> float | None:
        """Instructions per cycle alone: estimated when it last ran with the purpose `measure-alone`."""
        return self._reading("solo_ipc")

    @property
    def mm_reads_per_s(self) -> float | None:
        """Lines of 64 bytes read from memory per second, last quantum."""
        return self._reading("mm_reads", PER_MS)

    @property
    def mm_reads_mean_per_s(self) -> float | None:
        """Lines of 64 bytes read from memory per second, mean of the time that it has run."""
        return self._reading("mm_reads_mean", PER_MS)

    @property
    def mm_writes_per_s(self) -> float | None:
        """Lines of 64 bytes written to memory per second, last quantum."""
        return self._reading("mm_writes", PER_MS)

    @property
    def domain_lines_per_s(self) -> float | None:
        """Lines of 64 bytes that its memory domain moved per second for all tasks, last quantum."""
        return self._reading("domain_lines", PER_MS)

    @property
    def llc_accesses_per_s(self) -> float | None:
        """Accesses to the last-level cache per second, last quantum."""
        return self._reading("llc", PER_MS)

    @property
    def l1_accesses_per_s(self) -> float | None:
        """Accesses to the first-level cache per second, last quantum."""
        return self._reading("l1", PER_MS)

    @property
    def instructions_per_cpu_s(self) -> float | None:
        """Instructions per second of CPU time, last quantum."""
        return self._reading("cpu_instructions", PER_MS)

    @property
    def mm_reads_per_cpu_s(self) -> float | None:
        """Lines of 64 bytes read from memory per second of CPU time, last quantum."""
        return self._reading("cpu_mm_reads", PER_MS)

    def absence(self, name: str) -> str | None:
        """Why a value is absent: a code such as `no-counters`. None if it is there."""
        reading = self._estimates.get(self.ON_THE_WIRE.get(name, name), {"absent": "not-requested"})
        code: str | None = reading.get("absent")
        return code

    def _reading(self, name: str, factor: float = 1.0) -> float | None:
        value = self._estimates.get(name, {}).get("value")
        return None if value is None else value * factor


class Snapshot:
    """What a policy sees when it is asked.

    At the end of a quantum all CPUs are given out anew. Between quanta, when a task has come or ended, running tasks
    stay where they are, and only free CPUs are given out. `tasks` and `cpus` are always what can be chosen now, so a
    policy need not care which it is.
    """

    def __init__(self, raw: Mapping[str, Any], *, stops: bool = True, anew: bool = False) -> None:
        """`stops`: the policy stops tasks. `anew`: all CPUs are given out whenever the policy is asked."""
        self._raw = raw
        self._stops = stops
        self._machine = Machine(raw["machine"])
        self._all_tasks = tuple(Task(task, self.now_s) for task in raw["tasks"])
        self._by_id = {task.id: task for task in self._all_tasks}
        is_idle = all(task.running is None for task in self._all_tasks)
        self._is_quantum_end = anew or is_idle or "quantum-end" in self.triggers
        self._staying = frozenset(task for task in self._all_tasks if self._stays(task))
        self._tasks = self._to_choose_from()
        self._cpus = self._to_give_out()

    @property
    def raw(self) -> Mapping[str, Any]:
        """The snapshot as on the wire."""
        return self._raw

    @property
    def machine(self) -> Machine:
        """The machine."""
        return self._machine

    @property
    def now_s(self) -> float:
        """Time in seconds from the start of the run."""
        return float(self._raw["now"] * NS)

    @property
    def triggers(self) -> Sequence[str | Mapping[str, int]]:
        """Why the policy is asked, as on the wire: "quantum-end", {"arrived": 3}, {"ended": 3} and the like."""
        triggers: Sequence[str | Mapping[str, int]] = self._raw["triggers"]
        return triggers

    @property
    def queued(self) -> int:
        """Number of tasks that have arrived and are not live yet."""
        return int(self._raw.get("queued", 0))

    @property
    def all_tasks(self) -> tuple[Task, ...]:
        """All live tasks, by number."""
        return self._all_tasks

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Tasks to choose from: overdue ones, then by waiting time, longest first. Those that run come last."""
        return self._tasks

    @property
    def cpus(self) -> tuple[Cpu, ...]:
        """CPUs to give out. Those on which a task sleeps come last: it keeps its CPU if no other gets it."""
        return self._cpus

    @property
    def is_quantum_end(self) -> bool:
        """Whether a new quantum begins, and all CPUs are given out anew."""
        return self._is_quantum_end

    @property
    def staying(self) -> frozenset[Task]:
        """Running tasks that this decision can't change."""
        return self._staying

    def task(self, id: int) -> Task:
        """The live task with this number."""
        return self._by_id[id]

    def is_live(self, task: Task) -> bool:
        """Whether the task has arrived and not ended."""
        return task.id in self._by_id

    def running_on(self, cpus: Iterable[int]) -> list[Task]:
        """The tasks that run on any of these CPUs now."""
        wanted = set(map(int, cpus))
        return [task for task in self.all_tasks if task.running and wanted.intersection(task.running.cpus)]

    def assign(self, order: Iterable[Task]) -> dict[Task, list[int]]:
        """Give out CPUs in this order of tasks: each gets as many as it needs, of those that it may use.

        A task that fits no more is left out, and later ones are tried. Tasks stay on their last CPUs where these are free;
        others go where the fewest CPUs of a core are busy. If the policy does not stop tasks, running ones are left out and
        keep their CPUs.
        """
        room = _Room(self)
        keeping = self._keeping()
        for task in keeping:
            room.free.difference_update(self._occupied(task))
        unbound: list[Task] = []
        wanted = 0
        for task in order:
            if task in keeping or task.cpus > len(room.free) - wanted:
                continue
            if task.allowed is None:
                unbound.append(task)
                wanted += task.cpus
            else:
                room.take(task, task.allowed)
        for task in unbound:
            if len(task.last_cpus) == task.cpus and room.free.issuperset(task.last_cpus):
                room.take(task, task.last_cpus)
        for task in unbound:
            if task not in room.taken:
                room.take(task, self.cpus)
        return room.taken

    def _stays(self, task: Task) -> bool:
        if task.running is None:
            return False
        return not self.is_quantum_end or not task.may_place or (self._stops and not task.may_stop)

    def _keeping(self) -> frozenset[Task]:
        """Running tasks whose CPUs no order of tasks gives away."""
        return self.staying if self._stops else frozenset(task for task in self.all_tasks if task.running)

    def _occupied(self, task: Task) -> set[int]:
        """The CPUs that a task has now and leaves to no other."""
        now = task.running
        return set() if now is None or now.shared else set(self.blocked(now.cpus, now.whole_core))

    def _to_choose_from(self) -> tuple[Task, ...]:
        waiting: list[Task] = []
        running: list[Task] = []
        for task in self.all_tasks:
            if task in self.staying or task.asleep or not task.may_place:
                continue
            (waiting if task.running is None else running).append(task)
        waiting.sort(key=lambda task: (not task.overdue, -task.waited_s, task.ran_s, task.raw.get("turn", 0), task.id))
        running.sort(key=lambda task: (-task.raw["running"]["since"], task.ran_s, task.id))
        return (*waiting, *running)

    def _to_give_out(self) -> tuple[Cpu, ...]:
        taken: set[int] = set()
        slept_on: set[int] = set()
        for task in self.all_tasks:
            if task in self.staying:
                taken |= self._occupied(task)
            elif task.asleep:
                slept_on |= self._occupied(task)
        free = [cpu for cpu in self.machine.cpus if cpu not in taken]
        return tuple(sorted(free, key=lambda cpu: (cpu in slept_on, cpu)))

    def blocked(self, cpus: Iterable[int], whole_core: bool) -> Iterator[int]:
        """The CPUs that a task on these CPUs leaves to no other."""
        for cpu in cpus:
            yield cpu
            if whole_core:
                yield from self.machine.siblings(cpu)


class _Room:
    """Free CPUs, and the tasks that have taken others."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.machine = snapshot.machine
        self.rank: dict[int, int] = {cpu: rank for rank, cpu in enumerate(snapshot.cpus)}
        self.free: set[int] = set(snapshot.cpus)
        self.taken: dict[Task, list[int]] = {}

    def take(self, task: Task, of: Iterable[int]) -> None:
        """Take as many of these CPUs as the task needs, if they are free."""
        usable = self.free.intersection(of)
        if len(usable) < task.cpus:
            return
        cpus = []
        for _ in range(task.cpus):
            cpus.append(min(usable, key=lambda cpu: (cpu not in task.last_cpus, self._busy(cpu), self.rank[cpu])))
            usable.remove(cpus[-1])
            self.free.remove(cpus[-1])
        self.taken[task] = cpus

    def _busy(self, cpu: int) -> int:
        return sum(sibling not in self.free for sibling in self.machine.siblings(cpu))
