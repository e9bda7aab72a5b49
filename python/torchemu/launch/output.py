"""Output of ranks: whole lines of one rank at a time."""

from __future__ import annotations

from typing import Any

from torchemu.launch import progress


class Lines:
    """A rank's standard output or error: holds what it writes until a line is complete.

    A rank may have to wait in the middle of a print, for the value of a tensor, and others print meanwhile.

    Args:
        target: the stream behind.
        prefix: put before every line.
    """

    def __init__(self, target: Any, prefix: str = "") -> None:
        self._target, self._prefix = target, prefix
        self._held: list[str] = []
        self._is_closed = False
        self._in_line = False  # whether the beginning of the held line has been written already

    def __getattr__(self, name: str) -> Any:
        """All else is the stream's behind; what has been written so far comes before what is done with that."""
        if name in ("buffer", "detach", "fileno"):
            self._write_held()
        return getattr(self._target, name)

    def write(self, text: str) -> int:
        """Writes, or holds what is not a whole line."""
        if self._is_closed:
            raise ValueError("I/O operation on closed file.")
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if text:
            self._held.append(text)
        if "\n" in text:
            whole, newline, rest = "".join(self._held).rpartition("\n")
            self._held = [whole + newline]
            self._write_held()
            self._held = [rest] if rest else []
            self._target.flush()
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Writes one after the other."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Writes the beginning of a line too."""
        if self._is_closed:
            raise ValueError("I/O operation on closed file.")
        self._write_held()
        self._target.flush()

    def close(self) -> None:
        """Writes what is held; nothing can be written after that. The stream behind is others', too, and stays open."""
        if not self._is_closed:
            self.flush()
        self._is_closed = True

    def turn_to(self, target: Any) -> None:
        """Writes what is held, and all that comes to another stream."""
        self._write_held()
        self._target = target

    @property
    def closed(self) -> bool:
        """Says whether it is."""
        return self._is_closed

    def _write_held(self) -> None:
        text = "".join(self._held)
        self._held = []
        if not text:
            return
        if self._prefix:
            lines = text.splitlines(keepends=True)
            text = "".join(("" if i == 0 and self._in_line else self._prefix) + line for i, line in enumerate(lines))
        self._in_line = not text.endswith("\n")
        progress.make_room()
        self._target.write(text)
