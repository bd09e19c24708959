"""Worlds in Python: a simulator, a replay or another machine behind cosched's loop."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Union

from ._channel import Channel, ns
from ._decision import Place
from ._snapshot import NS, CoreType, format_cpus, parse_cpus

SIGNALS = {"term": 15, "kill": 9}


@dataclass(frozen=True)
class NewTask:
    """A job that comes into the world. It starts at its first place."""

    id: int
    name: str
    cpus: int
    """Hardware threads that it needs at once."""
    given: Mapping[str, Any]
    """The table `given` of the job in the mix."""


@dataclass(frozen=True)
class Change:
    """A task that starts, moves or stops."""

    task: int
    place: Place | None
    """Its CPUs, a tuple of numbers; None if it stops."""


@dataclass(frozen=True)
class Ended:
    """The end of a task."""

    task: int
    code: int = 0
    """Its exit code."""
    signal: int | None = None
    """The signal that ended it, instead."""


@dataclass(frozen=True)
class Slept:
    """A task that sleeps by itself."""

    task: int


@dataclass(frozen=True)
class Woke:
    """A task that slept and wants a CPU again."""

    task: int


Event = Union[Ended, Slept, Woke]


@dataclass
class Usage:
    """What a task has used since its start. A counter that is None is absent."""

    cpu_time_s: float | None = None
    instructions: float | None = None
    cycles: float | None = None
    l1_accesses: float | None = None
    llc_accesses: float | None = None
    mm_reads: float | None = None
    """Lines of 64 bytes."""
    mm_writes: float | None = None
    """Lines of 64 bytes."""


@dataclass
class Reading:
    """What tasks have used, and the machine."""

    usage: Mapping[int, Usage]
    traffic: Sequence[tuple[float, float]] | None = None
    """Lines read and written by each memory domain, since the start of the run."""
    energy_j: float | None = None
    """Energy of the machine, since the start of the run."""


def machine(
    cores: int = 4,
    threads: int = 1,
    llcs: int = 1,
    memory_domains: int = 1,
    *,
    core_types: Iterable[tuple[CoreType, int]] = (),
    llc_bytes: int | None = None,
    name: str = "world",
) -> dict[str, Any]:
    """Make a machine with cores numbered as Linux does on x86: thread t of core c is CPU c + t * cores.

    `core_types` has each type of core with its number of cores, fastest first; `cores` is then their sum. Cores are dealt
    out evenly to last-level caches and memory domains.
    """
    kinds = list(core_types) or [(CoreType("core"), cores)]
    types = [number for number, (_, count) in enumerate(kinds) for _ in range(count)]
    cores = len(types)
    for what, count in (("llcs", llcs), ("memory_domains", memory_domains)):
        if cores % count:
            raise ValueError(f"{what}: {cores} cores can't be dealt out to {count}")
    cpus = []
    for thread in range(threads):
        for core in range(cores):
            behind = {"llc": core * llcs // cores, "memory_domain": core * memory_domains // cores}
            cpus.append({"id": core + thread * cores, "core": core, **behind, "core_type": types[core]})

    def sets(key: str, count: int) -> list[str]:
        return [format_cpus(cpu["id"] for cpu in cpus if cpu[key] == number) for number in range(count)]

    return {
        "name": name,
        "cpus": cpus,
        "cores": sets("core", cores),
        "llcs": sets("llc", llcs),
        "memory_domains": sets("memory_domain", memory_domains),
        "core_types": [_core_type(kind) for kind, _ in kinds],
        "llc_bytes": {"absent": "not-told"} if llc_bytes is None else {"value": llc_bytes},
    }


def _core_type(kind: CoreType) -> dict[str, Any]:
    max_khz = None if kind.max_ghz is None else round(kind.max_ghz * 1e6)
    return {"name": kind.name, "capacity": kind.capacity, "max_khz": max_khz}


class World:
    """A world that runs tasks by itself, in its own time.

    A subclass has the methods `machine`, `add`, `apply`, `wait` and `read`, and ends its file with `run()`. Times are
    seconds from the start of the run. The same seed must give the same answers. An exception ends the run with its text.
    """

    missing: ClassVar[Mapping[str, str]] = {}
    """What this world can't do or count: codes of capabilities, each with the code of the reason, as in
    {"energy": "no-energy-meter"}. It has all others."""

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed

    def machine(self) -> dict[str, Any]:
        """The machine; `cosched.machine` makes one."""
        raise NotImplementedError

    def add(self, tasks: list[NewTask]) -> None:
        """Take in tasks. They start at their first place."""
        raise NotImplementedError

    def apply(self, changes: list[Change]) -> None:
        """Carry out changes, all at this moment. Tasks that are not named stay as they are."""
        raise NotImplementedError

    def wait(self, until_s: float | None) -> tuple[float, list[Event]]:
        """Go on to the next event, or to this time if it comes first.

        Returns the new time and the events. Without a time there must be an event.
        """
        raise NotImplementedError

    def read(self, tasks: list[int]) -> Mapping[int, Usage] | Reading:
        """Read what these tasks have used since their start. A task that has ended is read once more."""
        raise NotImplementedError

    def kill(self, task: int, how: str) -> None:
        """End a task by a signal: `term` or `kill`.

        As it stands, the task stops, and its end is the next event.
        """
        self.apply([Change(task, None)])
        self._server.killed.append(Ended(task, signal=SIGNALS[how]))

    @classmethod
    def run(cls) -> None:
        """Answer cosched until it closes the pipe."""
        channel = Channel()
        server = _Server(cls)
        for question in channel.questions():
            try:
                answer = server.answer(question)
            except Exception as error:  # The run ends with its text, so that the user sees the cause first.
                traceback.print_exc(file=sys.stderr)
                answer = {"error": f"{type(error).__name__}: {error}"}
            channel.answer(answer)

    _server: _Server


class _Server:
    """Questions of the wire to a world."""

    def __init__(self, kind: type[World]) -> None:
        self._kind = kind
        self._world: World | None = None
        self._now_ns = 0
        self.killed: list[Ended] = []

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a question."""
        if "open" in question:
            return self._open(question["open"]["seed"])
        world = self._world
        if world is None:
            raise RuntimeError("the first question must open the world")
        if "wait" in question:
            return self._wait(world, question["wait"]["until"])
        if "read" in question:
            return self._read(world, question["read"])
        if "add" in question:
            world.add([NewTask(new["task"], new["name"], new["cpus"], new["given"]) for new in question["add"]])
        elif "apply" in question:
            world.apply([_change(raw) for raw in question["apply"]])
        elif "kill" in question:
            world.kill(question["kill"]["task"], question["kill"]["how"])
        else:
            raise ValueError(f"cosched asks what this package does not know: {', '.join(question)}")
        return {"ok": True}

    def _open(self, seed: int) -> dict[str, Any]:
        self._world = world = self._kind(seed)
        world._server = self
        return {"machine": world.machine(), "missing": dict(world.missing)}

    def _wait(self, world: World, until_ns: int | None) -> dict[str, Any]:
        if self.killed:
            events, self.killed = self.killed, []
            return {"now": self._now_ns, "events": [_event(event) for event in events]}
        now_s, happened = world.wait(None if until_ns is None else until_ns * NS)
        now_ns = ns(now_s)
        # A time that came from nanoseconds goes back to them within one.
        if until_ns is not None and abs(now_ns - until_ns) <= 1:
            now_ns = until_ns
        if now_ns < self._now_ns:
            raise ValueError(f"wait: {now_s} s is before {self._now_ns * NS} s, and time does not go back")
        if until_ns is not None and now_ns > until_ns:
            raise ValueError(f"wait: {now_s} s is after {until_ns * NS} s, to which it was to go at most")
        if until_ns is None and not happened:
            raise ValueError("wait: there is no event, and no time to go to")
        self._now_ns = now_ns
        return {"now": now_ns, "events": [_event(event) for event in happened]}

    def _read(self, world: World, tasks: list[int]) -> dict[str, Any]:
        found = world.read(tasks)
        reading = found if isinstance(found, Reading) else Reading(found)
        answer: dict[str, Any] = {"usage": [_usage(task, reading.usage[task]) for task in tasks]}
        if reading.traffic is not None:
            answer["traffic"] = [{"reads": round(reads), "writes": round(writes)} for reads, writes in reading.traffic]
        if reading.energy_j is not None:
            answer["energy_j"] = reading.energy_j
        return answer


def _change(raw: Mapping[str, Any]) -> Change:
    if "stop" in raw:
        return Change(raw["stop"]["task"], None)
    place = raw["place"]
    own = place["placement"].get("exclusive")
    cpus = own["cpus"] if own else place["placement"]["shared"]["mask"]
    whole_core = bool(own and own.get("whole_core"))
    return Change(place["task"], Place(parse_cpus(cpus), whole_core, place.get("purpose", "run"), own is None))


def _event(event: Event) -> dict[str, Any]:
    if isinstance(event, Slept):
        return {"slept": event.task}
    if isinstance(event, Woke):
        return {"woke": event.task}
    signal = event.signal
    exit = {"code": event.code} if signal is None else {"signal": {"signal": signal, "oom": False}}
    return {"ended": {"task": event.task, "exit": exit}}


def _usage(task: int, usage: Usage) -> dict[str, Any]:
    found: dict[str, Any] = {"task": task}
    if usage.cpu_time_s is not None:
        found["cpu_time"] = ns(usage.cpu_time_s)
    for name in ("instructions", "cycles", "l1_accesses", "llc_accesses", "mm_reads", "mm_writes"):
        value = getattr(usage, name)
        if value is not None:
            found[name] = round(value)
    return found
