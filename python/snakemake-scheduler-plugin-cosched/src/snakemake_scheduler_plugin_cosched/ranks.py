"""How long each job's way to the end of the workflow is."""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import Any, Callable, Iterable

from .jobs import rule_of


def ranks(
    jobs: Iterable[Any], dependencies: Callable[[Any], Iterable[Any]], seconds: Callable[[str], float]
) -> dict[Any, float]:
    """The time of each job together with its longest chain of successors."""
    needs = {job: list(dependencies(job)) for job in jobs}
    after = dict.fromkeys(needs, 0.0)
    found: dict[Any, float] = {}
    for job in reversed(list(TopologicalSorter(needs).static_order())):
        if job in needs:  # The others have ended.
            found[job] = seconds(rule_of(job)) + after[job]
            for need in needs[job]:
                after[need] = max(after.get(need, 0.0), found[job])
    return found
