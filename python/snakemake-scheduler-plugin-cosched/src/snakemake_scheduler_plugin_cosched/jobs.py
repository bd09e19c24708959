"""What the scheduler asks of Snakemake's jobs."""

from __future__ import annotations

from typing import Any, Iterable, Mapping


def rule_of(job: Any) -> str:
    """The rule of a job; empty for a group, and where the job has no name, which the interface does not promise."""
    return "" if hasattr(job, "jobs") else str(getattr(job, "name", ""))


def parts(job: Any) -> Iterable[Any]:
    """The jobs of a group, or the job itself."""
    return getattr(job, "jobs", None) or [job]


def input_bytes(job: Any, sizes: Mapping[Any, int | None]) -> tuple[int, int]:
    """Bytes of a job's temporary inputs, and of all."""
    known = [(file, sizes.get(file) or 0) for file in job.input]
    return sum(size for file, size in known if file.is_flagged("temp")), sum(size for _, size in known)
