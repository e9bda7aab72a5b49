"""Programs that a program starts one by one as its ranks, by subprocess: they are ranks of its World."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from torchemu import runtime
from torchemu.multiprocessing import _helper
from torchemu.multiprocessing._process import ProgramProcess
from torchemu.runtime import program
from torchemu.runtime.tasks import Unwound

_KNOWN = frozenset({
    "args", "bufsize", "close_fds", "cwd", "encoding", "env", "errors", "group", "pipesize", "process_group",
    "restore_signals", "start_new_session", "stderr", "stdin", "stdout", "text", "umask", "universal_newlines",
})  # fmt: skip
"""Arguments of Popen with which a program can be a rank."""


def can_be_rank(kwargs: Mapping[str, Any]) -> bool:
    """Reports whether what the running rank starts with some arguments of Popen can be a rank: it is the only one of
    the run, and writes nothing to the program."""
    stdin = kwargs.get("stdin")
    is_plain = all(name in _KNOWN or not value for name, value in kwargs.items())
    context = runtime.current()
    return is_plain and stdin in (None, subprocess.DEVNULL) and context.process is not None and not _helper.is_wanted()


class RankProgram(subprocess.Popen[Any]):
    """A rank that runs a program, as who has started it by Popen sees it."""

    _process: ProgramProcess

    @classmethod
    def begin(cls, made: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Makes a Popen that has not begun one, and starts the rank.

        Args:
            made: the Popen.
            args: the command.
            kwargs: the other arguments of Popen.
        """
        made.__class__ = cls
        made._begin(args, kwargs)

    def _begin(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        vars(self).update(dict.fromkeys(("stdin", "stdout", "stderr", "returncode", "_input")), args=args)
        self._child_created = self._communication_started = False
        self._fileobj2output: dict[Any, Any] = {}
        self.encoding, self.errors = kwargs.get("encoding"), kwargs.get("errors")
        self.text_mode = any(kwargs.get(name) for name in ("encoding", "errors", "text", "universal_newlines"))
        output = self._output("stdout", kwargs.get("stdout"))
        error = output if kwargs.get("stderr") == subprocess.STDOUT else self._output("stderr", kwargs.get("stderr"))
        env = kwargs.get("env")
        variables = {
            os.fsdecode(key): os.fsdecode(value) for key, value in (os.environ if env is None else env).items()
        }
        cwd = kwargs.get("cwd")
        about = _Start([os.fsdecode(each) for each in args], variables, cwd and os.fspath(cwd), output, error)
        self._process = ProgramProcess(target=_run, args=(about,))
        self._process.start()
        self.pid = self._process.number

    def _output(self, name: str, given: Any) -> int | None:
        """Returns the descriptor that the rank is to write to, which is its own; None is where the others write."""
        if given is None or given is getattr(sys, name):
            return None
        if given == subprocess.DEVNULL:
            return os.open(os.devnull, os.O_WRONLY)
        if given != subprocess.PIPE:
            return os.dup(given if isinstance(given, int) else given.fileno())
        reader, writer = os.pipe()
        stream: Any = open(reader, "rb")  # noqa: SIM115 # who has started the program closes it
        if self.text_mode:
            stream = io.TextIOWrapper(stream, self.encoding, self.errors)
        setattr(self, name, stream)
        return writer

    def poll(self) -> int | None:
        """Returns the exit code; None while it runs. Takes a moment, in which it may end."""
        if self.returncode is None:
            self._process.is_alive()
            self.returncode = self._process.exitcode
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits until it has ended. Returns the exit code.

        Raises:
            TimeoutExpired: simulated time has passed the timeout, in seconds.
        """
        if self.returncode is None:
            self._process.join(timeout)
            self.returncode = self._process.exitcode
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return int(self.returncode)

    def __del__(self, *_: Any, **__: Any) -> None:
        """Does nothing: the rank ends by itself."""


class _Start(NamedTuple):
    """The beginning of a rank that runs a program.

    Attributes:
        output, error: descriptors for what it prints; None is where the others print.
    """

    argv: list[str]
    environment: dict[str, str]
    folder: str | None
    output: int | None
    error: int | None


class _Descriptor(io.RawIOBase):
    """A descriptor to write to, by os.write, where others run while it takes nothing."""

    def __init__(self, number: int) -> None:
        self._number = number

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def write(self, data: Any, /) -> int:
        return os.write(self._number, data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            os.close(self._number)


def _run(about: _Start) -> None:
    """Runs a program in the rank that calls."""
    os.environ.clear()
    os.environ.update(about.environment)
    if about.folder is not None:
        os.chdir(about.folder)
    with _printing_to(about):
        found = program.found_in(about.argv)
        assert found is not None
        make, arguments = found
        make(arguments).start(runtime.current().rank)


@contextlib.contextmanager
def _printing_to(about: _Start) -> Iterator[None]:
    """Lets the rank print to its descriptors, also of what it fails."""
    before = sys.stdout, sys.stderr
    opened = {
        number: io.TextIOWrapper(io.BufferedWriter(_Descriptor(number)), "utf-8", line_buffering=True)
        for number in {about.output, about.error}
        if number is not None
    }
    if about.output is not None:
        sys.stdout = opened[about.output]
    if about.error is not None:
        sys.stderr = opened[about.error]
    try:
        yield
    except (SystemExit, Unwound):
        raise
    except BaseException:
        if about.error is None:
            raise
        traceback.print_exc()
        raise SystemExit(1) from None
    finally:
        for stream in opened.values():
            stream.close()
        sys.stdout, sys.stderr = before
