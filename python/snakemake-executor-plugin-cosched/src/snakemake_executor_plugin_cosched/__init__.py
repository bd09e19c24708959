"""A Snakemake executor that runs the jobs of this machine in one run of cosched.

It is Snakemake's local executor, except that `snakemake.shell` starts each command of a job in the run. Jobs that must run
at the same time (pipes, services) are started as ever, because cosched may let one of them wait for the other.
"""

import os
import re
import shlex
import subprocess
import threading
import time
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Optional

import cosched
from snakemake.exceptions import SpawnedJobError
from snakemake.executors import local
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.settings import ExecutorSettingsBase

from .command import Command, benchmarked_by
from .rules import rules

common_settings = local.common_settings


@dataclass
class ExecutorSettings(ExecutorSettingsBase):
    options: Optional[str] = field(
        default=None, metadata={"help": "Options of `cosched run`, as in '--policy fair --jobs 4'."}
    )


class Executor(local.Executor):
    def __post_init__(self) -> None:
        super().__post_init__()
        self._here = threading.local()
        self._together: set[Any] = set()
        self._environment = dict(os.environ)
        self._rules = rules()
        self._rules.measured_by_run = True
        self._run = self._begin()
        self._replace()

    def _replace(self) -> None:
        """Let Snakemake start and measure its commands through this executor."""
        shell, benchmark = import_module("snakemake.shell"), import_module("snakemake.benchmark")
        shell.sp = SimpleNamespace(**{**vars(subprocess), "Popen": self._start})  # type: ignore[attr-defined]
        benchmark.benchmarked = benchmarked_by(benchmark.benchmarked)  # type: ignore[attr-defined]

    def _begin(self) -> cosched.Executor:
        options = shlex.split(self.workflow.executor_settings.options or "")
        if not any(option.startswith(("--logs", "--no-logs")) for option in options):
            options += ["--logs", time.strftime(f".snakemake/cosched/%Y%m%d-%H%M%S-{os.getpid()}")]
        try:
            return cosched.Executor(extra=options)
        except cosched.Missing as missing:
            raise WorkflowError(str(missing)) from None

    def run_group_job(self, job: Any) -> None:
        self._together.update(job)
        super().run_group_job(job)

    def cached_or_run(self, job: Any, run_func: Any, *args: Any) -> None:
        self._here.job = None if job in self._together else job
        super().cached_or_run(job, run_func, *args)

    def spawn_job(self, job: Any) -> None:
        command = self._start(self.format_job_exec(job), shell=True, env=os.environ)
        if command.wait():
            raise SpawnedJobError()

    def _start(self, line: str, *, stdout: Any = None, env: Any, executable: Optional[str] = None, **others: Any) -> Any:
        """Start a shell line for the job of this thread, as `subprocess.Popen` does."""
        job = getattr(self._here, "job", None)
        if job is None or stdout == subprocess.PIPE:
            return subprocess.Popen(line, stdout=stdout, env=env, executable=executable, **others)
        changed = {name: value for name, value in env.items() if self._environment.get(name) != value}
        removed = dict.fromkeys(self._environment.keys() - env.keys(), "")
        words = [executable or "/bin/sh", "-c", line]
        future = self._run.submit(words, cwd=os.getcwd(), env={**changed, **removed}, **self._known(job))
        future.add_done_callback(lambda future: self._note(job, future))
        return Command(future)

    def _known(self, job: Any) -> dict[str, Any]:
        """Fields of a job's line."""
        rule = job.rule.name
        known = {"name": re.sub("[^A-Za-z0-9_]", "_", rule)[:100], "expected_s": self._rules.seconds(rule)}
        if job.threads > 1:
            known["cpus"] = min(job.threads, len(os.sched_getaffinity(0)))
        stated = job.resources.get("mem_mb")
        known["mem"] = stated * 1_000_000 if isinstance(stated, int) else self._rules.memory(rule)
        return {key: value for key, value in known.items() if value is not None}

    def _note(self, job: Any, future: Any) -> None:
        if future.cancelled() or future.exception():
            return
        end = future.result()
        if end.get("exit") == 0:
            self._rules.add(job.rule.name, end["end_s"] - end["start_s"], end.get("max_rss_bytes"))

    def shutdown(self) -> None:
        super().shutdown()
        self._run.shutdown()

    def cancel(self) -> None:
        self._run.stop()
        super().cancel()
