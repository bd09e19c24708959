"""A Snakemake scheduler that starts jobs by what was measured of their rules.

Of the ready jobs that fit, those with the longest way to the end of the workflow begin first. A job waits while the memory
that its rule needed before is not there.
"""

from __future__ import annotations

import time
from typing import Any, Iterable, Mapping, Sequence

from snakemake_executor_plugin_cosched.rules import rules
from snakemake_interface_scheduler_plugins.base import SchedulerBase

from .memory import room
from .ranks import ranks, rule_of


class Scheduler(SchedulerBase):
    def __post_init__(self) -> None:
        self._rules = rules()
        self._running: dict[Any, float] = {}
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
        order = sorted(selectable_jobs, key=lambda job: self._worth(job, input_sizes), reverse=True)
        chosen = self._fitting(order, available_resources)
        self._running.update(dict.fromkeys(chosen, time.monotonic()))
        return chosen

    def _note_ends(self, cores: int) -> None:
        """Forget jobs that run no more, and note their times unless the executor does."""
        for job in [job for job in self._running if self.dag.finished(job)]:
            began = self._running.pop(job)
            if not self._rules.measured_by_run and not hasattr(job, "jobs"):
                self._rules.add(rule_of(job), time.monotonic() - began)
        self._most_cores = max(self._most_cores, cores)
        if cores == self._most_cores:  # All cores are free: what is left has failed.
            self._running.clear()

    def _rank(self, jobs: Iterable[Any]) -> None:
        """Rank all jobs anew if there are new ones, or if times have changed."""
        version = self._rules.version
        if version != self._version or any(part not in self._ranks for job in jobs for part in parts(job)):
            self._ranks = ranks(self.dag.needrun_jobs(), self.dag.job_dependencies, self._rules.seconds)
            self._version = version

    def _worth(self, job: Any, sizes: Mapping[Any, int | None]) -> tuple[float, ...]:
        """Order of the starts. Among equal ranks it is that of Snakemake's own scheduler."""
        rank = max(self._ranks.get(part, 0.0) for part in parts(job))
        temporary = sum(sizes.get(file) or 0 for file in job.input if file.is_flagged("temp"))
        return (job.priority, rank, temporary, sum(sizes.get(file) or 0 for file in job.input))

    def _fitting(self, order: Sequence[Any], available: Mapping[str, Any]) -> list[Any]:
        free = dict(available)
        memory = room(sum(map(self._memory, self._running)))
        chosen: list[Any] = []
        for job in order:
            needs = {name: job.scheduler_resources.get(name, 0) for name in free}
            is_first = not chosen and not self._running
            if any(needs[name] > free[name] for name in free) or not (is_first or self._memory(job) <= memory):
                continue
            chosen.append(job)
            memory -= self._memory(job)
            free = {name: free[name] - needs[name] for name in free}
        return chosen

    def _memory(self, job: Any) -> int:
        """Memory that the job's rule needed, in bytes. An unknown need holds nothing back."""
        return sum(self._rules.memory(rule_of(part)) or 0 for part in parts(job))


def parts(job: Any) -> Iterable[Any]:
    """The jobs of a group, or the job itself."""
    return getattr(job, "jobs", None) or [job]
