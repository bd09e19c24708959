"""From who runs where to the changes that cosched carries out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Union

from ._child import Error
from ._snapshot import Snapshot, Task, format_cpus, parse_cpus


class BadDecision(Error):
    """A decision that can't be carried out."""


@dataclass(frozen=True)
class Place:
    """CPUs for a task, with what goes beyond their numbers."""

    cpus: int | Iterable[int] | str
    """A number, several, or a CPU set as in "0-3,8"."""
    whole_core: bool = False
    """The other CPUs of these cores stay idle."""
    purpose: str = "run"
    """`measure-alone` estimates its solo IPC in this quantum; `low-contention` is for those beside such a
    task; `warm-up` is before such a quantum, and shows nothing."""
    shared: bool = False
    """The kernel shares out these CPUs among all tasks that are placed so."""


Where = Union[int, Iterable[int], str, Place]
Assignments = Union[Mapping[Task, Where], Iterable[Task]]


@dataclass(frozen=True)
class Decision:
    """Who runs where, for a quantum of its own length."""

    assignments: Assignments
    quantum_s: float
    """Length of the quantum that begins. Between quanta it has no effect."""


def place(where: Where) -> Place:
    """Bring all forms of CPUs into one: a sorted tuple of numbers."""
    found = where if isinstance(where, Place) else Place(where)
    cpus = found.cpus
    if isinstance(cpus, str):
        cpus = parse_cpus(cpus)
    elif isinstance(cpus, int):
        cpus = (int(cpus),)
    return Place(tuple(sorted(map(int, cpus))), found.whole_core, found.purpose, found.shared)


def placement(where: Place) -> dict[str, Any]:
    """Turn a place into a placement of the wire."""
    cpus = format_cpus(where.cpus)  # type: ignore[arg-type]
    if where.shared:
        return {"shared": {"mask": cpus}}
    return {"exclusive": {"cpus": cpus, "whole_core": where.whole_core}}


def changes(snapshot: Snapshot, assignments: Assignments, stops: bool) -> list[dict[str, Any]]:
    """Find the changes that lead from what runs to these assignments.

    A task that stays as it is has no change. If `stops`, a task that could have been chosen and was not is stopped, and
    one that sleeps gives way to those that were given its CPUs.
    """
    if not isinstance(assignments, Mapping):
        assignments = list(assignments)
    for task in assignments:
        if not isinstance(task, Task):
            raise TypeError(f"{task!r} stands where a task belongs; return tasks of snapshot.tasks; snapshot.task(ID) finds one")
    if not isinstance(assignments, Mapping):
        assignments = snapshot.assign(assignments)
    places = {task: place(where) for task, where in assignments.items()}
    owners = _owners(snapshot, places, stops)
    found: list[dict[str, Any]] = []
    for task in snapshot.all_tasks:
        if task in places:
            if not _is_there(task, places[task]):
                change = {"task": task.id, "placement": placement(places[task]), "purpose": places[task].purpose}
                found.append({"place": change})
        elif task.running and task not in owners:
            found.append({"stop": {"task": task.id}})
    return found


def _is_there(task: Task, where: Place) -> bool:
    now = task.running
    return now is not None and (where.cpus, where.whole_core, where.purpose, where.shared) == (
        now.cpus, now.whole_core, now.purpose, now.shared,
    )


def _owners(snapshot: Snapshot, places: Mapping[Task, Place], stops: bool) -> set[Task]:
    """Check the places, and find the running tasks that stay beside them."""
    used: dict[int, Task] = {}
    for task, where in places.items():
        _check(snapshot, task, where)
        _occupy(snapshot, used, task, where)
    keep = set()
    for task in snapshot.all_tasks:
        now = task.running
        if now is None or task in places:
            continue
        where = Place(now.cpus, now.whole_core, now.purpose, now.shared)
        gives_way = stops and task not in snapshot.staying
        if gives_way and not task.asleep:
            continue
        if gives_way and any(cpu in used for cpu in snapshot.blocked(now.cpus, now.whole_core)):
            continue
        _occupy(snapshot, used, task, where, " (which is not stopped)")
        keep.add(task)
    return keep


def _check(snapshot: Snapshot, task: Task, where: Place) -> None:
    """Check what concerns this task alone."""
    cpus: tuple[int, ...] = where.cpus  # type: ignore[assignment]
    if not snapshot.is_live(task):
        raise BadDecision(f"{task} has ended, or was never there")
    if task in snapshot.staying and not _is_there(task, where):
        raise BadDecision(f"{task} can't be changed now; choose from snapshot.tasks")
    if not task.may_place:
        raise BadDecision(f"{task} may not be placed; choose from snapshot.tasks")
    usable = set(map(int, snapshot.machine.cpus)).intersection(task.allowed or snapshot.machine.cpus)
    for cpu in cpus:
        if cpu not in usable:
            raise BadDecision(f"{task} may not use CPU {cpu}")
    if not cpus or (len(cpus) != task.cpus and not where.shared):
        raise BadDecision(f"{task} needs {task.cpus} CPU(s) and was given {len(cpus)}; snapshot.assign gives what it needs")


def _occupy(snapshot: Snapshot, used: dict[int, Task], task: Task, where: Place, about: str = "") -> None:
    """Enter the CPUs of a task, unless another has them."""
    if where.shared:
        return
    for cpu in snapshot.blocked(where.cpus, where.whole_core):  # type: ignore[arg-type]
        other = used.setdefault(cpu, task)
        if other != task:
            raise BadDecision(f"CPU {cpu} is for {other} and for {task}{about}")
