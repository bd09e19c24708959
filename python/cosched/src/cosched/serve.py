"""Answers cosched for a policy or a world by its name: `python -m cosched.serve mine.py:least_progress`.

A file that ends with `least_progress.run()` needs this not. `cosched.simulate` uses it, so that it need not care.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ._simulate import SERVING

def load(where: str) -> Any:
    """Import FILE.py:NAME or MODULE:NAME."""
    module, _, name = where.rpartition(":")
    found: Any = _from_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _from_file(path: Path) -> ModuleType:
    # What lies beside the file can be imported, as if it were run.
    sys.path.insert(0, str(path.parent.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def main(words: list[str]) -> None:
    """Serve what is named."""
    if len(words) != 1 or ":" not in words[0]:
        sys.exit("usage: python -m cosched.serve FILE.py:NAME|MODULE:NAME")
    os.environ[SERVING] = words[0]
    load(words[0]).run()


if __name__ == "__main__":
    main(sys.argv[1:])
