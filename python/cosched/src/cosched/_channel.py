"""The other end of cosched's pipe: a line of JSON for each question and each answer."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any


class Channel:
    """Questions from standard input, answers to standard output.

    From its making on, what the process prints goes to standard error, also from libraries in C. A print between two
    answers would otherwise be read as an answer. Standard input is empty for the same reason.
    """

    def __init__(self) -> None:
        self._questions = os.fdopen(os.dup(0), "rb")
        self._answers = os.fdopen(os.dup(1), "wb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        sys.stdout.flush()
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    def questions(self) -> Iterator[dict[str, Any]]:
        """Yield the questions until cosched closes the pipe."""
        for line in self._questions:
            yield json.loads(line)

    def answer(self, answer: Mapping[str, Any]) -> None:
        """Send an answer."""
        # A value that JSON lacks, such as NaN, is refused here, where the traceback shows its origin.
        self._answers.write(json.dumps(answer, allow_nan=False).encode() + b"\n")
        self._answers.flush()


def ns(seconds: float) -> int:
    """Convert seconds to whole nanoseconds."""
    return round(seconds * 1e9)
