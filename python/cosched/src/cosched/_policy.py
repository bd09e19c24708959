"""Policies in Python: the decorator, and the answers to cosched's questions."""

from __future__ import annotations

import inspect
import random
import sys
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Callable, Union

from ._channel import Channel, ns
from ._decision import Assignments, Decision, changes
from ._snapshot import Snapshot

SCHEMA = "cosched.policy/1"


@dataclass(frozen=True)
class Number:
    """A parameter that is a number. It is whole if its default is."""

    default: float
    min: float | None = None
    max: float | None = None
    about: str = ""

    def describe(self) -> dict[str, Any]:
        """Its description on the wire."""
        fields = {"default": self.default, "min": self.min, "max": self.max, "about": self.about}
        return {key: value for key, value in fields.items() if value is not None}

    def initial(self) -> float:
        """Its default."""
        return self.default

    def read(self, value: Any) -> float:
        """Its value, from the wire."""
        if not isinstance(self.default, int):
            return float(value)
        if value != int(value):
            raise ValueError(f"{value} is not a whole number")
        return int(value)


@dataclass(frozen=True)
class Words:
    """A parameter that is one of several words. The first is the default."""

    words: tuple[str, ...]
    about: str = ""

    def describe(self) -> dict[str, Any]:
        """Its description on the wire."""
        return {"words": list(self.words), "about": self.about}

    def initial(self) -> str:
        """Its default."""
        return self.words[0]

    def read(self, value: Any) -> str:
        """Its value, from the wire."""
        return str(value)


Parameter = Union[Number, Words]


def _parameter(name: str, given: Any) -> Parameter:
    if isinstance(given, (Number, Words)):
        return given
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return Number(given)
    if isinstance(given, (list, tuple)) and given and all(isinstance(word, str) for word in given):
        return Words(tuple(given))
    raise TypeError(f"{name}: a parameter is a number, a list of words, a Number or Words, not {given!r}")


class Session:
    """A policy within a run: its parameters, its state, and the end of its quantum."""

    def __init__(self, policy: Policy, seed: int, params: Mapping[str, Any]) -> None:
        values: dict[str, Any] = {}
        for name, spec in policy.params.items():
            values[name] = spec.read(params[name]) if name in params else spec.initial()
        self._policy = policy
        self._quantum_ns = ns(values["quantum_s"])
        self._end_ns = 0
        available = {**values, "seed": seed, "rng": random.Random(seed)}
        given = {name: available[name] for name in policy.accepted}
        target: Any = policy.target
        self._decide: Callable[[Snapshot], Any]
        if inspect.isclass(policy.target):
            self._decide = target(**given).decide
        else:
            self._decide = lambda snapshot: target(snapshot, **given)

    def answer(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a snapshot of the wire with a decision of the wire."""
        policy = self._policy
        snapshot = Snapshot(raw, stops=policy.stops, anew=policy.anew)
        begins = snapshot.is_quantum_end or self._end_ns <= raw["now"]
        length_ns = self._quantum_ns
        assignments: Assignments = {}
        if snapshot.is_quantum_end or (snapshot.tasks and snapshot.cpus):
            said: Any = self._decide(snapshot)
            if isinstance(said, Decision):
                said, length_ns = said.assignments, ns(said.quantum_s)
            if not isinstance(said, Iterable):
                raise TypeError(f"{policy.name} returned {said!r}; it should return who runs, such as {{task: cpu}} or [task]")
            assignments = said
        if begins:
            self._end_ns = raw["now"] + length_ns
        return {"changes": changes(snapshot, assignments, policy.stops), "next_wake": self._end_ns}


class Policy:
    """A policy that cosched can ask. `policy` makes one."""

    def __init__(
        self,
        target: Callable[..., Any],
        *,
        name: str,
        about: str | None,
        needs: Iterable[str],
        wants: Mapping[str, str],
        params: Mapping[str, Any],
        anew: bool,
        answer_within_s: float | None,
    ) -> None:
        self.target = target
        self.name = name
        self.about = about
        self.needs = list(needs)
        self.wants = dict(wants)
        self.params = {key: _parameter(key, value) for key, value in params.items()}
        self.anew = anew
        self.answer_within_s = answer_within_s
        self.stops = "freeze" in self.needs or "freeze" in self.wants
        """Whether it stops tasks. Otherwise a running task that it leaves out stays where it is."""
        self.accepted = self._accepted()
        """Names of what the function, or the class when it is made, is given."""
        self.__doc__ = target.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, as in a test."""
        return self.target(*args, **kwargs)

    def describe(self) -> dict[str, Any]:
        """The description that cosched asks for."""
        found: dict[str, Any] = {"name": self.name}
        if self.about:
            found["about"] = self.about
        found["needs"] = self.needs
        found["wants"] = self.wants
        found["params"] = {name: spec.describe() for name, spec in self.params.items()}
        if self.answer_within_s is not None:
            found["answer_within_ns"] = ns(self.answer_within_s)
        return found

    def begin(self, seed: int = 1, **params: Any) -> Session:
        """Begin a run of the policy without cosched, as in a test."""
        return Session(self, seed, params)

    def run(self) -> None:
        """Answer cosched until it closes the pipe.

        An exception of the policy ends the process. Round-robin then decides, and cosched warns.
        """
        try:
            self._serve(Channel())
        except Exception as error:
            traceback.print_exc()
            # The traceback of an error with a long text ends with part of it.
            sys.exit(f"policy {self.name} failed: {type(error).__name__}: {' '.join(str(error).split())}")

    def _serve(self, channel: Channel) -> None:
        session = self.begin()
        for question in channel.questions():
            if "describe" in question:
                channel.answer(self.describe())
            elif "begin" in question:
                session = self.begin(question["begin"]["seed"], **question["begin"]["params"])
            elif "snapshot" in question:
                channel.answer({"seq": question["seq"], "decision": session.answer(question["snapshot"])})
            elif "refused" in question:
                print(f"cosched refused decision {question['seq']}: {question['refused']}", file=sys.stderr)

    def _accepted(self) -> list[str]:
        known = {*self.params, "seed", "rng"}
        arguments = list(inspect.signature(self.target).parameters.values())
        if not inspect.isclass(self.target):
            arguments = arguments[1:]
        elif not callable(getattr(self.target, "decide", None)):
            raise TypeError(f"{self.name}: the class has no method decide(self, snapshot)")
        names = [one.name for one in arguments if one.kind is not one.VAR_KEYWORD]
        if len(names) < len(arguments):
            names = list(known)
        unknown = [one for one in names if one not in known]
        unused = [one for one in self.params if one not in names and one != "quantum_s"]
        if unknown or unused:
            what = f"is called with {unknown[0]}, which has no default" if unknown else f"does not accept {unused[0]}"
            raise TypeError(f"{self.name} {what}; parameters stand in @policy(...) and as arguments")
        return names


def policy(
    *,
    name: str | None = None,
    about: str | None = None,
    needs: Iterable[str] = (),
    wants: Mapping[str, str] | None = None,
    quantum_s: float | Number = 0.2,
    anew: bool = False,
    answer_within_s: float | None = None,
    **params: Any,
) -> Callable[[Callable[..., Any]], Policy]:
    """Make a policy of a function from a snapshot to who runs where.

        @policy(needs=["freeze"], k=2)
        def least_progress(snapshot, k):
            "The k jobs with the least progress run; each quantum anew."
            order = sorted(snapshot.tasks, key=lambda task: task.progress)
            return dict(zip(order[:k], snapshot.cpus))

    The function returns a dictionary from tasks to CPUs: a number, several, a CPU set as in "0-3", or a `Place`. Or it
    returns tasks in their order, and `Snapshot.assign` gives them CPUs. A `Decision` also sets the length of this
    quantum. The other tasks are stopped if `freeze` is in `needs` or `wants`; otherwise they stay where they run.

    The function is asked at the end of each quantum. It is also asked when a task comes or CPUs get free, but then for
    the waiting tasks and the free CPUs alone: running tasks stay to the end of their quantum, as under cosched's own
    policies. With `anew` each such moment begins a new quantum.

    `needs` and `wants` have codes of capabilities, `wants` with what is lost without each. Further keywords are
    parameters that `--param` sets: a number, a list of words, or `Number` and `Words` with their limits. The function
    gets those that it names as arguments, also `quantum_s`, `seed` and `rng`, a `random.Random` by the seed of the run.
    A class with a method `decide(self, snapshot)` gets them when it is made, once a run.
    """

    def decorate(target: Callable[..., Any]) -> Policy:
        doc = inspect.getdoc(target)
        return Policy(
            target,
            name=name or target.__name__.replace("_", "-"),
            about=about or (doc.splitlines()[0] if doc else None),
            needs=needs,
            wants=wants or {},
            params={"quantum_s": _quantum(quantum_s), **params},
            anew=anew,
            answer_within_s=answer_within_s,
        )

    return decorate


def _quantum(given: float | Number) -> Number:
    return given if isinstance(given, Number) else Number(float(given), 0.001, 3600.0, "length of a quantum")
