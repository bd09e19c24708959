"""The records of finished runs."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any


def record(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a run record, or that of a log folder; of a folder of log folders, that of the run that ended last.

    `pandas.DataFrame(record(path)["jobs"])` is a table of the jobs.
    """
    path = Path(path)
    found: dict[str, Any] = json.loads((_last_in(path) if path.is_dir() else path).read_text())
    return found


def _last_in(folder: Path) -> Path:
    own = folder / "run.json"
    if own.exists():
        return own
    records = folder.glob("*/run.json")
    last = max(records, key=lambda file: file.stat().st_mtime_ns, default=None)
    if last is None:
        raise FileNotFoundError(f"{folder}: no run has ended in this folder: there is no run.json in it or a folder of it")
    return last
