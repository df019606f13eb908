"""One row of the corpus: an input, what it is given to, and how it must be refused."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sameworld.core import SameworldError


@dataclass(frozen=True, kw_only=True)
class Bad:
    """A bad input.

    Attributes:
        name: What is wrong, in words.
        attempt: Tries to use it, given an empty folder.
        error: Class of the error it must raise.
        words: Distinctive phrase of the message (regular expression).
    """

    name: str
    attempt: Callable[[Path], object]
    error: type[SameworldError]
    words: str
