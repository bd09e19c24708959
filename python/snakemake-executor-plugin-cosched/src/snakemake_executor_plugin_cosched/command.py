"""A command in a run of cosched, in place of the `subprocess.Popen` that Snakemake waits for."""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from pathlib import Path

from cosched import Error, Future
from snakemake_interface_common.exceptions import WorkflowError


class Command:
    """A command in a run of cosched."""

    def __init__(self, future: Future, run: int) -> None:
        self._future = future
        self._run = run

    @property
    def pid(self) -> int | bool:
        """Process of the command once it runs, for Snakemake's benchmarks; `False` if it has ended."""
        while not self._future.done():
            if self._future.running():
                return child(self._run, f"COSCHED_JOB={self._future.name}") or False
            time.sleep(0.01)
        return False

    def wait(self) -> int:
        """Wait for the end, and return the exit code."""
        try:
            return self._future.result().get("exit", 1)
        except CancelledError:
            return 143
        except Error as error:
            raise WorkflowError(str(error)) from None

    def kill(self) -> None:
        self._future.cancel()

    terminate = kill


def child(parent: int, variable: str) -> int | None:
    """Find the child of a process with this variable in its environment."""
    for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:  # It has ended.
            continue
        if variable.encode() in environment.split(b"\0"):
            return int(pid)
    return None
