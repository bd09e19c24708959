"""A `cosched run` as a child process, and what it reports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from typing import IO, Any, TypedDict, Union

Job = Union[str, Sequence[str], Mapping[str, Any]]

LONGEST_LINE = 8 << 20
"""Length of a job line that cosched refuses, in bytes."""

NOTHING_STARTED = (2, 3, 4)
"""Exit codes of cosched for a refused command line, machine or permission."""


class End(TypedDict, total=False):
    """How a job ended, and what it used. Unknown values are left out."""

    id: str
    job: int
    name: str
    exit: int
    signal: int
    exit_text: str
    timed_out: bool
    start_s: float
    end_s: float
    cpu_s: float
    max_rss_bytes: int


class Error(Exception):
    """cosched could not do what was asked."""


class Missing(Error):
    """There is no program cosched."""


class Died(Error, BrokenExecutor):
    """cosched ended before its jobs did."""


def binary() -> str:
    """Find cosched: the variable COSCHED, then beside Python, where the wheel puts it, then PATH."""
    named = os.environ.get("COSCHED")
    beside = shutil.which("cosched", path=sysconfig.get_path("scripts"))
    found = shutil.which(named) if named else beside or shutil.which("cosched")
    if found:
        return found
    if named:
        raise Missing(f"the variable COSCHED is {named}, which is no program; set it to the path of cosched")
    raise Missing(
        "there is no program cosched in PATH; install it with `cargo install --path crates/cli` in its source, "
        "or set the variable COSCHED to its path"
    )


def words(options: Mapping[str, Any]) -> list[str]:
    """Turn keywords into options of the command line."""
    found = []
    options = {"quiet": True, **options}
    extra = options.pop("extra", ())
    for key, value in options.items():
        option = "--" + key.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                found.append(option)
            elif one is not None and one is not False:
                found.append(f"{option}={one}")
    return [*found, *extra]


def job_line(job: Job, fields: Mapping[str, Any], number: int) -> tuple[str, bytes]:
    """Turn a job into its id and its line."""
    if isinstance(job, str):
        job = {"command": job}
    elif not isinstance(job, Mapping):
        job = {"argv": [os.fspath(word) for word in job]}
    entry = {"id": str(number), **job, **fields}
    entry["id"] = str(entry["id"])
    # Without a value that JSON or UTF-8 lacks, as cosched could not say which job it refuses.
    line = json.dumps(entry, default=os.fspath, allow_nan=False, ensure_ascii=False).encode() + b"\n"
    if len(line) > LONGEST_LINE:
        raise ValueError(f"job {entry['id']} is a line of {len(line)} bytes; cosched reads at most {LONGEST_LINE}")
    return entry["id"], line


class Child:
    """A `cosched run` that reads its jobs from standard input."""

    def __init__(self, options: Mapping[str, Any], stdin: int | IO[bytes]) -> None:
        told, self._tell = os.pipe()
        command = [binary(), "run", "-f", "-", f"--progress-to={self._tell}", *words(options)]
        try:
            self.process = subprocess.Popen(command, stdin=stdin, stderr=subprocess.PIPE, pass_fds=[self._tell])
        except BaseException:
            os.close(told)
            os.close(self._tell)
            raise
        self._told = open(told, "rb")
        self._last: deque[str] = deque(maxlen=8)
        self._refusal: list[str] = []
        self._begun_or_ended = threading.Event()
        self._errors = threading.Thread(target=self._forward, daemon=True)
        self._errors.start()
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        """Mark the end of the run. Jobs that outlive it hold the pipe open, so the pipe's own end comes too late."""
        self.process.wait()
        self._begun_or_ended.set()
        try:
            os.write(self._tell, b"\n")
        except BrokenPipeError:  # Nobody reads any more.
            pass
        os.close(self._tell)

    def _forward(self) -> None:
        """Show what cosched and the jobs write to standard error, and keep the last lines.

        Lines of a run that starts nothing are only kept, as the exception shows them.
        """
        assert self.process.stderr
        self._begun_or_ended.wait(timeout=10)
        refused = self.process.returncode in NOTHING_STARTED
        for line in self.process.stderr:
            text = line.decode(errors="replace")
            self._last.append(text)
            if refused:
                self._refusal.append(text)
            else:
                sys.stderr.write(text)

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the progress lines until cosched has ended."""
        with self._told:
            for line in iter(self._told.readline, b"\n"):
                self._begun_or_ended.set()
                yield json.loads(line)

    def wait(self) -> int:
        """Wait for the exit code, and show why nothing was started unless an exception did."""
        code = self.process.wait()
        if code in NOTHING_STARTED:
            self._errors.join(timeout=1)
            sys.stderr.writelines(self._refusal)
            self._refusal.clear()
        return code

    def died(self, jobs: int) -> Died:
        """Describe a run that ended before its jobs."""
        code = self.process.wait()
        self._errors.join(timeout=1)
        self._refusal.clear()
        how = f"signal {-code} ended cosched" if code < 0 else f"cosched ended with exit code {code}"
        what = f"{how}; {jobs} job(s) had not ended"
        if code < 0:
            what += "; those that had begun may still run: `cosched thaw` lists them"
        return Died("\n".join([what, *map(str.rstrip, self._last)]))
