"""A command in a run of cosched, in place of the `subprocess.Popen` that Snakemake waits for."""

from __future__ import annotations

from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any, Iterator

from cosched import Error, Future
from snakemake_interface_common.exceptions import WorkflowError


class Command:
    """A command in a run of cosched."""

    def __init__(self, future: Future) -> None:
        self._future = future

    @property
    def pid(self) -> Command:
        """What Snakemake gives to its benchmark. No process: one that cosched has reaped could not be measured."""
        return self

    def wait(self) -> int:
        """Wait for the end, and return the exit code."""
        try:
            return self._future.result().get("exit", 1)
        except CancelledError:
            return 143
        except Error as error:
            raise WorkflowError(str(error)) from None

    def kill(self) -> None:
        """End the command."""
        self._future.cancel()

    terminate = kill

    def fill(self, record: Any) -> None:
        """Write what cosched measured to a benchmark record of Snakemake."""
        if self._future.cancelled():
            return
        end = self._future.result()
        if "start_s" not in end:  # It could not be started, and the job fails.
            return
        record.running_time = end["end_s"] - end["start_s"]
        record.cpu_time = end.get("cpu_s", 0.0)
        record.cpu_usage = 100 * record.cpu_time
        if "max_rss_bytes" in end:
            record.max_rss = end["max_rss_bytes"] / (1 << 20)
        record.data_collected = True


def benchmarked_by(original: Any) -> Any:
    """Extend Snakemake's context of a benchmark to commands in a run."""

    @contextmanager
    def benchmarked(pid: Any = None, benchmark_record: Any = None, *others: Any) -> Iterator[Any]:
        if isinstance(pid, Command):
            yield benchmark_record
            pid.fill(benchmark_record)
        else:
            with original(pid, benchmark_record, *others) as record:
                yield record

    return benchmarked
