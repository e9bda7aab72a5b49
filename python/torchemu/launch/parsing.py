"""Command lines whose errors name what was probably meant."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

LARGEST = (1 << 63) - 1
"""The largest number that crosses to the core."""

_MOST = 2  # suggestions


class Parser(argparse.ArgumentParser):
    """A parser of argparse's that has suggestions for misspelt flags, choices and commands. Those of its commands are
    of the same kind."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parses as argparse does, but flags that are not there are errors here, where those that are are known."""
        found, left = super().parse_known_args(args, namespace)
        if left:
            unknown = [word for word in left if word.startswith("-")]
            self.error(f"unrecognized arguments: {' '.join(left)}{_meant(unknown, self._option_string_actions)}")
        return found, left

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        """Finds the flags that a word is the beginning of; none where it could be several.

        argparse looks at all words before it knows which of them are the script's own, to whom this parser's flags mean
        nothing. A word that several flags begin with is thereby an error where it is this parser's, and no other's.
        """
        found = super()._get_option_tuples(option_string)
        return found if len(found) == 1 else []

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Checks as argparse does, and adds to its message what may have been meant."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            meant = _meant([str(value)], map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{error.message}{meant}") from None


class Later(Parser):
    """A command's parser that gets its arguments when it is first used.

    Args:
        fill: adds them; None where they are added at once.
        options: argparse's.
    """

    def __init__(self, fill: Callable[[Later], None] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._fill = fill

    def fill(self) -> None:
        """Adds the arguments, if they have not been added yet."""
        fill, self._fill = self._fill, None
        if fill is not None:
            fill(self)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parses with all arguments."""
        self.fill()
        return super().parse_known_args(args, namespace)

    def format_help(self) -> str:
        """Tells of all arguments."""
        self.fill()
        return super().format_help()


def positive(text: str) -> int:
    """Reads a whole number above 0.

    Raises:
        argparse.ArgumentTypeError: the text is no such number.
    """
    number = int(text) if text.isdecimal() else 0
    if not 0 < number <= LARGEST:
        largest = f" of at most {LARGEST}" if number else ""
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number{largest}")
    return number


def _meant(words: Iterable[str], known: Iterable[str]) -> str:
    """Returns the end of a message: what may have been meant; empty where nothing is near."""
    known = sorted({name for name in known if "_" not in name})
    near = [found for word in words for found in difflib.get_close_matches(word.partition("=")[0], known, _MOST)]
    return f"; did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""
