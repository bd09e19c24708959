"""Whether jobs of one rule slow each other down, as jobs that move much memory do."""

from __future__ import annotations

import time
from collections import Counter
from statistics import median
from typing import Any, Callable, Iterable

from snakemake_executor_plugin_cosched.rules import Rules

from .jobs import rule_of

APART = " apart from its kind"
TOGETHER = " beside its kind"

TRIED = 2
"""Number of jobs that run in either way before the two are compared."""

SLOWER = 1.2
"""A rule crowds if its jobs take longer beside their kind by this factor. Smaller differences come from their inputs."""


class Crowding:
    """The jobs that run, and what those of one rule do to each other."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._running: dict[Any, tuple[float, bool]] = {}

    def running(self) -> list[Any]:
        """All jobs that run."""
        return list(self._running)

    def begin(self, jobs: Iterable[Any]) -> None:
        """Note that these jobs begin."""
        count = Counter(map(rule_of, [*self._running, *jobs]))
        for job in jobs:
            self._running[job] = (time.monotonic(), count[rule_of(job)] > 1)

    def end(self, is_over: Callable[[Any], bool]) -> list[tuple[str, float]]:
        """Forget the jobs that are over, and return their rules and times."""
        count = Counter(map(rule_of, self._running))
        over = [job for job in self._running if is_over(job)]
        return [self._end(job, count[rule_of(job)] > 1) for job in over]

    def clear(self) -> None:
        """Forget all jobs: none runs."""
        self._running.clear()

    def crowds(self, rule: str) -> bool:
        """Whether jobs of this rule are better kept apart. A new rule is tried apart first, then together."""
        apart, together = self._rules.times(rule + APART), self._rules.times(rule + TOGETHER)
        if len(apart) < TRIED or len(together) < TRIED:
            return len(apart) < TRIED
        return median(together) > SLOWER * median(apart)

    def _end(self, job: Any, is_together: bool) -> tuple[str, float]:
        began, was_together = self._running.pop(job)
        rule, seconds = rule_of(job), time.monotonic() - began
        if is_together == was_together:  # Else it ran in both ways.
            self._rules.add(rule + (TOGETHER if is_together else APART), seconds)
        return rule, seconds
