"""Runs commands under cosched, which decides which of them run together.

    import cosched

    ends = cosched.run(["gzip -k a.txt", ["gzip", "-k", "b c.txt"]], policy="fair")

A job is a line for the shell, a list of a program and its arguments, or a mapping with the keys of a job line
(`command` or `argv`, `id`, `name`, `cwd`, `env`, `cpus`, `mem`, `weight`, `expected_s`). Options are those of
`cosched run`: `no_logs=True` is `--no-logs`, a list repeats an option. `quiet` is on unless it is set to `False`. `extra`
is a list of words as they are on the command line.
"""

from ._child import Died, End, Error, Job, Missing, binary
from ._executor import Executor, Future
from ._record import record
from ._run import run
from ._session import Session

__all__ = ["Died", "End", "Error", "Executor", "Future", "Job", "Missing", "Session", "binary", "record", "run"]
