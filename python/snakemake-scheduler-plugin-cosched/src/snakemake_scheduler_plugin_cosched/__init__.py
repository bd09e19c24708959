"""A Snakemake scheduler that starts jobs by what was measured of their rules.

Of the ready jobs that fit, those with the longest way to the end of the workflow begin first. Where jobs of one rule slow
each other down, jobs of other rules run beside them instead. A job waits while the memory that its rule needed before is
not there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import inf
from statistics import fmean
from typing import Any, Mapping, Sequence

from snakemake_executor_plugin_cosched.rules import rules
from snakemake_interface_scheduler_plugins.base import SchedulerBase

from .crowding import Crowding
from .jobs import input_bytes, parts, rule_of
from .memory import room
from .ranks import ranks

URGENT = 0.7
"""A job is urgent if its way to the end takes this part of the time that is left, or more."""

SHORTEST = 0.001
"""Least time of a job, in seconds: no rule has no work."""


class Scheduler(SchedulerBase):
    def __post_init__(self) -> None:
        self._rules = rules()
        self._crowding = Crowding(self._rules)
        self._ranks: dict[Any, float] = {}
        self._version = -1
        self._most_cores = 0

    def select_jobs(
        self,
        selectable_jobs: Sequence[Any],
        remaining_jobs: Sequence[Any],
        available_resources: Mapping[str, Any],
        input_sizes: Mapping[Any, int | None],
    ) -> Sequence[Any]:
        self._note_ends(available_resources.get("_cores", 0))
        self._rank(selectable_jobs)
        urgent = URGENT * self._time_left(remaining_jobs)
        worth = {job: self._worth(job, urgent, input_sizes) for job in selectable_jobs}
        chosen = self._choose(worth, dict(available_resources))
        self._crowding.begin(chosen)
        return chosen

    def _note_ends(self, cores: int) -> None:
        for rule, seconds in self._crowding.end(self.dag.finished):
            if not self._rules.measured_by_run:
                self._rules.add(rule, seconds)
        self._most_cores = max(self._most_cores, cores)
        if cores == self._most_cores:  # All cores are free: what is left has failed.
            self._crowding.clear()

    def _rank(self, jobs: Sequence[Any]) -> None:
        """Rank all jobs anew if there are new ones, or if times have changed."""
        version = self._rules.version
        if version != self._version or any(part not in self._ranks for job in jobs for part in parts(job)):
            needed = list(self.dag.needrun_jobs())
            seconds = self._seconds({rule_of(job) for job in needed})
            self._ranks = ranks(needed, self.dag.job_dependencies, seconds.__getitem__)
            self._version = version

    def _seconds(self, names: set[str]) -> dict[str, float]:
        """Times of these rules. One without a measured time counts as the mean of the others."""
        times = {name: self._rules.seconds(name) for name in names}
        known = [time for time in times.values() if time is not None]
        mean = fmean(known) if known else 1.0
        return {name: mean if time is None else time for name, time in times.items()}

    def _time_left(self, jobs: Sequence[Any]) -> float:
        """Time of these jobs if all cores work all the time."""
        count = Counter(map(rule_of, jobs))
        seconds = self._seconds(set(count))
        return sum(count[rule] * seconds[rule] for rule in count) / max(self._most_cores, 1)

    def _worth(self, job: Any, urgent: float, sizes: Mapping[Any, int | None]) -> tuple[float, ...]:
        """Order of a rule's jobs. Among equal ranks it is that of Snakemake's own scheduler."""
        rank = max(self._ranks.get(part, 0.0) for part in parts(job))
        return (job.priority, rank >= urgent, rank, *input_bytes(job, sizes))

    def _choose(self, worth: Mapping[Any, tuple[float, ...]], free: dict[str, Any]) -> list[Any]:
        """Take the best job of the best rule, again and again, if it fits."""
        running = self._crowding.running()
        memory = room(sum(map(self._memory, running)))
        count = Counter(map(rule_of, running))
        queues = defaultdict(list)
        for job in sorted(worth, key=worth.__getitem__):
            queues[rule_of(job)].append(job)
        work = self._work(queues, count)
        chosen: list[Any] = []
        while queues:
            rule = max(queues, key=lambda rule: order(worth[queues[rule][-1]], count[rule] / work[rule]))
            job = queues[rule].pop()
            if not queues[rule]:
                del queues[rule]
            is_first = not (chosen or running)
            if fits(job, free) and (is_first or self._memory(job) <= memory):
                chosen.append(job)
                count[rule] += 1
                memory -= self._memory(job)
                free = {name: left - job.scheduler_resources.get(name, 0) for name, left in free.items()}
        return chosen

    def _work(self, queues: Mapping[str, list[Any]], running: Mapping[str, int]) -> dict[str, float]:
        """Time of each rule's jobs that run or are ready. Without crowding it means nothing."""
        if not any(map(self._crowding.crowds, queues)):
            return dict.fromkeys(queues, inf)
        seconds = self._seconds(set(queues))
        return {rule: (len(jobs) + running[rule]) * max(seconds[rule], SHORTEST) for rule, jobs in queues.items()}

    def _memory(self, job: Any) -> int:
        """Memory that the job's rule needed, in bytes. An unknown need holds nothing back."""
        return sum(self._rules.memory(rule_of(part)) or 0 for part in parts(job))


def order(worth: tuple[float, ...], share: float) -> tuple[float, ...]:
    """Order of the rules: of those that are not urgent, the one whose share of the cores is the least for its work."""
    priority, is_urgent, *rest = worth
    return (priority, is_urgent, 0 if is_urgent else -share, *rest)


def fits(job: Any, free: Mapping[str, Any]) -> bool:
    return all(job.scheduler_resources.get(name, 0) <= left for name, left in free.items())
