"""How long each job's way to the end of the workflow is."""

from __future__ import annotations

from graphlib import TopologicalSorter
from statistics import fmean
from typing import Any, Callable, Iterable, Mapping


def ranks(
    jobs: Iterable[Any], dependencies: Callable[[Any], Iterable[Any]], seconds: Callable[[str], float | None]
) -> dict[Any, float]:
    """The time of each job with its longest chain of successors.

    A rule without a measured time counts as the mean of the others.
    """
    needs = {job: list(dependencies(job)) for job in jobs}
    times = times_of({rule_of(job) for job in needs}, seconds)
    found: dict[Any, float] = {}
    after = dict.fromkeys(needs, 0.0)
    for job in reversed(list(TopologicalSorter(needs).static_order())):
        if job in needs:  # The others have ended.
            found[job] = times[rule_of(job)] + after[job]
            for need in needs[job]:
                after[need] = max(after.get(need, 0.0), found[job])
    return found


def rule_of(job: Any) -> str:
    """The rule of a job. The interface promises none, so a job can be without."""
    return str(getattr(job, "name", ""))


def times_of(rules: set[str], seconds: Callable[[str], float | None]) -> Mapping[str, float]:
    measured = {rule: time for rule in rules if (time := seconds(rule)) is not None}
    mean = fmean(measured.values()) if measured else 1.0
    return {rule: measured.get(rule, mean) for rule in rules}
