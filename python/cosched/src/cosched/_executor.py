"""An executor of commands, as of `concurrent.futures`."""

from __future__ import annotations

import threading
from concurrent import futures
from typing import Any, cast

from ._child import End, Error, Job
from ._session import Session


class Future(futures.Future[End]):
    """A job. Its result is its end, also if it failed."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._id = ""
        self.name: str | None = None
        """Name of the job in the run, once it has begun."""

    def running(self) -> bool:
        """Whether the job has begun and not ended."""
        return self.name is not None and not self.done()

    def cancel(self) -> bool:
        """End the job, whether it has begun or not."""
        if self.cancelled():
            return True
        if not super().cancel():
            return False
        self.set_running_or_notify_cancel()
        try:
            self._session.cancel(self._id)
        except Error:  # cosched died, and the job is lost anyway.
            pass
        return True


class Executor(futures.Executor):
    """Runs commands in one living run of cosched.

        with cosched.Executor(policy="fair") as executor:
            future = executor.submit("gzip", "-k", "a b.txt", cpus=1)
            print(future.result()["exit_text"])
    """

    def __init__(self, **options: Any) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, Future] = {}
        self._session = Session(watch=self._told, **options)

    def submit(self, command: Job, /, *args: Any, **fields: Any) -> Future:  # type: ignore[override]
        """Add a job: a line for the shell, or a program with its arguments. `fields` are further keys of its line."""
        job = [cast(str, command), *map(str, args)] if args else command
        future = Future(self._session)
        with self._lock:
            future._id = self._session.add(job, **fields)
            self._jobs[future._id] = future
        return future

    @property
    def pid(self) -> int:
        """Process of the run, for `cosched top` and `cosched set`."""
        return self._session.pid

    def stop(self) -> None:
        """End all jobs and the run."""
        self._session.stop()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more jobs, and wait for all."""
        self._session.finish()
        if cancel_futures:
            for job in self._queued():
                job.cancel()
        if wait:
            self._session.close()

    def _queued(self) -> list[Future]:
        with self._lock:
            return [job for job in self._jobs.values() if job.name is None]

    def _told(self, event: dict[str, Any] | None) -> None:
        if event is None:
            self._fail_all()
        elif "id" not in event:
            return  # It is about no job of this executor.
        elif event["event"] == "start":
            self._job(event["id"]).name = event["name"]
        elif event["event"] == "end":
            self._end(event["id"], cast(End, event))

    def _job(self, id: str) -> Future:
        with self._lock:
            return self._jobs[id]

    def _end(self, id: str, end: End) -> None:
        job = self._job(id)
        with self._lock:
            del self._jobs[id]
        try:
            job.set_result(end)
        except futures.InvalidStateError:  # It was cancelled.
            pass

    def _fail_all(self) -> None:
        """Fail the jobs that had not ended when cosched did."""
        with self._lock:
            left, self._jobs = self._jobs, {}
        if not left:
            return
        died = self._session.died()
        for job in left.values():
            try:
                job.set_exception(died)
            except futures.InvalidStateError:  # It was cancelled.
                pass
