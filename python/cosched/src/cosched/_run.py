"""A batch whose jobs are known at its start."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import Any, cast

from ._child import NOTHING_STARTED, Child, End, Job, job_line


def run(jobs: Iterable[Job], /, **options: Any) -> list[End]:
    """Run a batch, and return the ends of its jobs in their order."""
    lines = dict(job_line(job, {}, number) for number, job in enumerate(jobs, 1))
    with tempfile.TemporaryFile() as file:
        file.writelines(lines.values())
        file.seek(0)
        child = Child(options, file)
    try:
        ends = {event.get("id"): cast(End, event) for event in child.events() if event["event"] == "end"}
    except BaseException:  # An interrupt, for example.
        child.process.terminate()
        child.process.wait()
        raise
    missing = [id for id in lines if id not in ends]
    code = child.process.returncode
    if missing and (code < 0 or code in NOTHING_STARTED):
        raise child.died(len(missing))
    child.wait()
    for id in missing:
        ends[id] = {"id": id, "exit_text": f"not started: the run ended before, with exit code {code}"}
    return [ends[id] for id in lines]
