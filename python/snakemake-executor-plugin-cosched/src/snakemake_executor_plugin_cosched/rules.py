"""What was measured of each rule of a workflow."""

from __future__ import annotations

import atexit
import json
import os
import threading
from functools import cache
from pathlib import Path
from statistics import median

KEPT = 9
"""Latest times of a rule. Their median is the rule's time."""


class Rules:
    """Times and memory of rules, kept in a file of the workflow."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._times: dict[str, list[float]] = {}
        self._memory: dict[str, int] = {}
        self.version = 0
        """Raised when a rule's time becomes known or changes by a fourth."""
        self.measured_by_run = False
        """The executor reports the times, so nobody else needs to."""
        self._load()

    def add(self, rule: str, seconds: float, memory: int | None = None) -> None:
        """Note a successful job."""
        if not rule:
            return
        with self._lock:
            before = self.seconds(rule)
            times = self.times(rule)
            self._times[rule] = [*times[1 - KEPT :], round(seconds, 3)]
            if memory:
                self._memory[rule] = max(memory, self._memory.get(rule, 0))
            if before is None or abs(median(self._times[rule]) - before) > before / 4:
                self.version += 1

    def times(self, rule: str) -> list[float]:
        """Times of the rule's latest jobs."""
        return self._times.get(rule, [])

    def seconds(self, rule: str) -> float | None:
        """Median time of the rule's latest jobs."""
        times = self.times(rule)
        return median(times) if times else None

    def memory(self, rule: str) -> int | None:
        """Greatest memory of a job of the rule, in bytes."""
        return self._memory.get(rule)

    def save(self) -> None:
        """Write the file for the workflow's next run."""
        text = json.dumps({"seconds": self._times, "memory_bytes": self._memory})
        new = self._file.with_suffix(f".{os.getpid()}")
        try:
            new.write_text(text)
            new.replace(self._file)
        except OSError:  # The next run measures again.
            pass

    def _load(self) -> None:
        try:
            known = json.loads(self._file.read_text())
            self._times, self._memory = known["seconds"], known["memory_bytes"]
        except (OSError, ValueError, KeyError, TypeError):  # No run before, or one that wrote something else.
            pass


@cache
def rules() -> Rules:
    """The rules of the workflow in this folder."""
    found = Rules(Path(".snakemake/cosched-rules.json").absolute())
    atexit.register(found.save)
    return found
