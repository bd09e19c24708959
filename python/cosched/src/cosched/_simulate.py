"""Runs a batch in a simulation, and returns its record."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Union

from ._child import Error, binary, words
from ._policy import Policy
from ._world import World

SERVING = "COSCHED_SERVING"
"""Variable that is set while a file is imported to serve what is in it. A simulation would import it again, without end."""


class PolicyFailed(Error):
    """A policy failed in a simulation, so round-robin decided instead of it."""

    def __init__(self, text: str, record: dict[str, Any]) -> None:
        super().__init__(text, record)
        self.record = record
        """The record of the run, part of which round-robin decided."""

    def __str__(self) -> str:
        return str(self.args[0])


Mix = Union[str, "PathLike[str]", Iterable[Mapping[str, Any]]]


def simulate(
    mix: Mix,
    machine: str | PathLike[str] | type[World],
    policy: str | Policy,
    *,
    params: Mapping[str, Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Run a mix on a simulated machine under a policy, and return the run record.

        record = cosched.simulate("mix.toml", "xeon-e5645", least_progress, params={"k": 4}, seed=3)
        pandas.DataFrame(record["jobs"])[["name", "slowdown"]]

    `mix` is a file, or dictionaries with the keys of a `[[job]]`. `machine` is a name, a file, "cmd:COMMAND" or a
    subclass of `World`. `policy` is a name, "cmd:COMMAND" or what the decorator made. Both classes and functions must be
    in a file, since they run in processes of their own. Options are those of `cosched run`.

    A policy that fails or decides what can't be done raises `PolicyFailed`. Its attribute `record` has the run, part of which
    round-robin decided. Other warnings of the run are Python warnings.
    """
    if SERVING in os.environ:
        raise Error(
            f"{os.environ[SERVING]} is being imported, and must start no simulation then; "
            'put the call below `if __name__ == "__main__":`'
        )
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "run.json"
        command = [
            binary(),
            "run",
            _mix_file(mix, Path(folder)),
            f"--on={_command(machine) if inspect.isclass(machine) else os.fspath(machine)}",
            f"--policy={_command(policy) if isinstance(policy, Policy) else policy}",
            "--no-logs",
            f"--record={record}",
            *(f"--param={name}={value}" for name, value in (params or {}).items()),
            *words(options),
        ]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
        done = subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment
        )
        # A run with failed jobs has a record and exit code 1. One that broke off has none.
        if done.returncode not in (0, 1, 124) or not record.exists():
            said = "".join(done.stderr.splitlines(keepends=True)[-8:]).rstrip()
            raise Error(f"cosched ended with exit code {done.returncode}\n{said}")
        sys.stderr.write(done.stderr)
        found: dict[str, Any] = json.loads(record.read_text())
    for warning in found["warnings"]:
        if warning["code"] == "policy-fault":
            raise PolicyFailed(warning["text"], found)
    for warning in found["warnings"]:
        warnings.warn(warning["text"], stacklevel=2)
    return found


def _command(thing: Policy | type[World]) -> str:
    """Find the command that serves a policy or a world of this process."""
    target = thing.target if isinstance(thing, Policy) else thing
    name, module = target.__qualname__, target.__module__
    if module == "__main__":
        main = getattr(sys.modules["__main__"], "__file__", None)
        # Python that reads a program from standard input names its file <stdin>.
        if main is None or not os.path.isfile(main):
            raise Error(
                f"{name} must be in a file, since it runs in a process of its own, which can't read a notebook or standard "
                f"input; write it to a file such as mine.py, and add `from mine import {name}`"
            )
        module = os.path.abspath(main)
    if "<locals>" in name:
        raise Error(f"{name} is defined in a function; move it to the top of its file")
    return "cmd:" + shlex.join([sys.executable, "-m", "cosched.serve", f"{module}:{name}"])


def _mix_file(mix: Mix, folder: Path) -> str:
    if isinstance(mix, (str, os.PathLike)):
        return os.fspath(mix)
    path = folder / "mix.toml"
    path.write_text("\n".join(_job(job) for job in mix))
    return str(path)


def _job(job: Mapping[str, Any]) -> str:
    lines = (f"{_key(key)} = {_toml(value)}\n" for key, value in job.items() if value is not None)
    return "[[job]]\n" + "".join(lines)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)


def _toml(value: Any) -> str:
    """Write a value as TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    # JSON's escapes are those of TOML, which also wants one for DEL.
    return json.dumps(os.fspath(value), ensure_ascii=False).replace("\x7f", "\\u007f")
