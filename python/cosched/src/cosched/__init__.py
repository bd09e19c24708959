"""Runs commands under cosched, which decides which of them run together.

    import cosched

    ends = cosched.run(["gzip -k a.txt", ["gzip", "-k", "b c.txt"]], policy="fair")

A job is a line for the shell, a list of a program and its arguments, or a mapping with the keys of a job line
(`command` or `argv`, `id`, `name`, `cwd`, `env`, `cpus`, `mem`, `weight`, `expected_s`). Options are those of
`cosched run`: `no_logs=True` is `--no-logs`, a list repeats an option. `quiet` is on unless it is set to `False`. `extra`
is a list of words as they are on the command line.

For research, `policy` makes a policy of a function, `World` is the base of worlds of one's own, and `simulate` runs
both.
"""

from ._child import Died, End, Error, Job, Missing, binary
from ._decision import BadDecision, Decision, Place
from ._executor import Executor, Future
from ._policy import Number, Policy, Words, policy
from ._record import record
from ._run import run
from ._session import Session
from ._simulate import PolicyFailed, simulate
from ._snapshot import CoreType, Cpu, Machine, Running, Snapshot, Task
from ._world import Change, Ended, NewTask, Reading, Slept, Usage, Woke, World, machine

__all__ = [
    "BadDecision",
    "Change",
    "CoreType",
    "Cpu",
    "Decision",
    "Died",
    "End",
    "Ended",
    "Error",
    "Executor",
    "Future",
    "Job",
    "Machine",
    "Missing",
    "NewTask",
    "Number",
    "Place",
    "Policy",
    "PolicyFailed",
    "Reading",
    "Running",
    "Session",
    "Slept",
    "Snapshot",
    "Task",
    "Usage",
    "Woke",
    "Words",
    "World",
    "binary",
    "machine",
    "policy",
    "record",
    "run",
    "simulate",
]
