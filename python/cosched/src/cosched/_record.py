"""The records of finished runs."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any


def record(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a run record or a log folder. `pandas.DataFrame(record(path)["jobs"])` is a table of the jobs."""
    path = Path(path)
    file = path / "run.json" if path.is_dir() else path
    found: dict[str, Any] = json.loads(file.read_text())
    return found
