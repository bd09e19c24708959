"""The memory of this machine."""

from pathlib import Path

MOST = 0.95
"""Part of all memory that jobs may need together."""


def room(needed: int) -> int:
    """Memory for further jobs while the running ones need this much, in bytes."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    found = {key: int(rest.split()[0]) * 1024 for key, _, rest in (line.partition(":") for line in lines)}
    return min(found["MemAvailable"], int(found["MemTotal"] * MOST) - needed)
