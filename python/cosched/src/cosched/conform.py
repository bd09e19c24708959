"""Plays scenarios against a policy or a world: `python -m cosched.conform policy CMD`, or `world CMD`.

The scenarios are those of `cosched conform`, which this starts.
"""

from __future__ import annotations

import os
import sys

from ._child import binary

OPTIONS = {"policy": "--policy", "world": "--on"}


def main(words: list[str]) -> None:
    """Become `cosched conform`."""
    if len(words) < 2 or words[0] not in OPTIONS:
        sys.exit("usage: python -m cosched.conform policy|world CMD [OPTION]...")
    kind, command, *more = words
    marked = command if command.startswith("cmd:") else f"cmd:{command}"
    found = binary()
    os.execv(found, [found, "conform", OPTIONS[kind], marked, *more])


if __name__ == "__main__":
    main(sys.argv[1:])
