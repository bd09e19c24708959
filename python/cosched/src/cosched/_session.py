"""A run that takes jobs as they come."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Callable, cast

from ._child import Child, End, Error, Job, job_line


class Session:
    """A run that takes jobs as they come.

        with cosched.Session(policy="fair") as session:
            session.add("gzip -k a.txt")
            for end in session.ends():
                print(end["name"], end["exit_text"])

    With `watch`, a function, there are no `ends`: another thread calls it with each progress line, and with `None` after
    the last.
    """

    def __init__(self, *, watch: Callable[[dict[str, Any] | None], None] | None = None, **options: Any) -> None:
        self._watch = watch or self._keep
        self._child = Child(options, subprocess.PIPE)
        self._writing = threading.Lock()
        self._ids: set[str] = set()
        self._pending: set[str] = set()
        self._ends: queue.SimpleQueue[End | None] = queue.SimpleQueue()
        self._expected = 0
        self._is_finished = False
        self._failure: BaseException | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Process of the run, for `cosched top` and `cosched set`."""
        return self._child.process.pid

    def add(self, job: Job, /, **fields: Any) -> str:
        """Add a job, and return its id. `fields` are further keys of its line, as in `cpus=2`."""
        with self._writing:
            if self._is_finished:
                raise Error("the session is closed; open another for more jobs")
            id, line = job_line(job, fields, len(self._ids) + 1)
            if id in self._ids:
                raise ValueError(f"another job has the id {id} already")
            self._ids.add(id)
            self._pending.add(id)
            self._write(line)
            self._expected += 1
        return id

    def cancel(self, id: str) -> None:
        """End a job. Its end comes as any other."""
        with self._writing:
            self._write(json.dumps({"cancel": str(id)}).encode() + b"\n")

    def ends(self) -> Iterator[End]:
        """Yield the ends of the jobs as they come, until all that were added have ended."""
        while self._expected:
            end = self._ends.get()
            if end is None:
                self._ends.put(None)
                raise self.died()
            if "id" in end:  # Else it is the end of no job that was added.
                self._expected -= 1
            yield end

    def close(self) -> int:
        """Add no more jobs, wait for all, and return the exit code of the run."""
        self.finish()
        self._reader.join()
        return self._child.wait()

    def finish(self) -> None:
        """Add no more jobs. The run ends after its last one."""
        with self._writing:
            self._is_finished = True
            self._hang_up()

    def stop(self) -> None:
        """End all jobs and the run."""
        self._child.process.terminate()

    def died(self) -> Error:
        """Describe the end of a run whose jobs had not ended."""
        died = self._child.died(len(self._pending))
        died.__cause__ = self._failure
        return died

    def _write(self, line: bytes) -> None:
        stdin = self._child.process.stdin
        assert stdin
        if stdin.closed:
            return  # All jobs have ended; there is nothing to cancel.
        try:
            stdin.write(line)
            stdin.flush()
        except BrokenPipeError:
            raise self.died() from None

    def _hang_up(self) -> None:
        """Close the run's input once it has nothing more to say. Until the last end, jobs can be cancelled."""
        stdin = self._child.process.stdin
        assert stdin
        if self._is_finished and not self._pending:
            try:
                stdin.close()
            except BrokenPipeError:
                pass

    def _read(self) -> None:
        try:
            self._pass_on()
        except BaseException as failure:  # Nobody would read on, so the run can't go on.
            self._failure = failure
            self.stop()
        self._watch(None)

    def _pass_on(self) -> None:
        for event in self._child.events():
            if event["event"] == "end":
                with self._writing:
                    self._pending.discard(event.get("id", ""))
                    self._hang_up()
            self._watch(event)

    def _keep(self, event: dict[str, Any] | None) -> None:
        if event is None:
            self._ends.put(None)
        elif event["event"] == "end":
            self._ends.put(cast(End, event))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind:
            self.stop()
        self.close()
