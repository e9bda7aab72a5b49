"""Files of LMDB that several ranks open: its library opens each once in a process, and refuses the next one."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from torchemu import multiprocessing, runtime
from torchemu.frontends.torch.session import Session


class _Open:
    """A file that is open.

    Args:
        kind: the library's class of environments.
        arguments: those by which the first rank opens it.

    Attributes:
        users: the ranks that have it open; None is outside of ranks.
        writing: what the rank has that writes: the library's own lock would stop the process.
    """

    def __init__(self, kind: Any, arguments: dict[str, Any]) -> None:
        self._kind = kind
        self.users: list[runtime.Context | None] = []
        self.writing = multiprocessing.Lock()
        self.open(arguments)

    def open(self, arguments: dict[str, Any]) -> None:
        """Opens it by some arguments, instead of those before."""
        self.environment = self._kind(**arguments)
        self.can_write = not arguments.get("readonly", False)


class _Writing:
    """A transaction of a rank that writes. It has the file's lock until it ends.

    Args:
        begin: begins the library's.
        lock: the file's.
    """

    def __init__(self, begin: Callable[[], Any], lock: multiprocessing.Lock) -> None:
        self._lock: multiprocessing.Lock | None = None
        lock.acquire()
        try:
            self.real = begin()
        except BaseException:
            lock.release()
            raise
        self._lock = lock

    def __getattr__(self, name: str) -> Any:
        if name == "real":
            raise AttributeError(name)
        return getattr(self.real, name)

    def commit(self) -> None:
        """Keeps what it has written."""
        self._end(self.real.commit)

    def abort(self) -> None:
        """Forgets what it has written."""
        self._end(self.real.abort)

    def __enter__(self) -> _Writing:
        return self

    def __exit__(self, *failure: Any) -> None:
        self._end(lambda: self.real.__exit__(*failure))

    def __del__(self) -> None:
        if self._lock is not None:
            self.abort()

    def _end(self, ending: Callable[[], Any]) -> None:
        try:
            ending()
        finally:
            lock, self._lock = self._lock, None
            if lock is not None:
                lock.release()


class _Environment:
    """One rank's use of a file. What is asked of it is asked of the library's environment, which is all ranks'.

    Attributes:
        kind: the library's class.
        error: that of the library.
        opened: the files that are open, by their paths.
    """

    kind: Any
    error: Any
    opened: dict[str, _Open]

    def __init__(self, path: Any, *args: Any, **kwargs: Any) -> None:
        self._used: _Open | None = None
        if args:
            kwargs["map_size"] = args[0]
        self._key = os.path.realpath(os.fsdecode(path))
        found, rank = self.opened.get(self._key), runtime.running()
        if found is None or rank in found.users:  # the library refuses what one process opens twice
            found = self.opened[self._key] = _Open(self.kind, {"path": path, **kwargs})
        elif not (found.can_write or kwargs.get("readonly", False)):
            found.environment.close()
            found.open({"path": path, **kwargs})
        found.users.append(rank)
        self._used, self._rank = found, rank

    def __getattr__(self, name: str) -> Any:
        used = None if name.startswith("_") else self._used
        if used is not None:
            return getattr(used.environment, name)
        if not hasattr(self.kind, name):
            raise AttributeError(f"'Environment' object has no attribute {name!r}")
        raise self.error("Attempt to operate on closed/deleted/dropped object.")

    def begin(self, db: Any = None, parent: Any = None, write: bool = False, buffers: bool = False) -> Any:
        """Begins a transaction. A rank that is to write waits for one that writes."""
        begin = functools.partial(self.__getattr__("begin"), db, _real(parent), write, buffers)
        used = self._used
        alone = not write or parent is not None or used is None or runtime.running() is None
        return begin() if alone or used is None else _Writing(begin, used.writing)

    def open_db(self, key: Any = None, txn: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Opens a database of the file."""
        return self.__getattr__("open_db")(key, _real(txn), *args, **kwargs)

    def close(self) -> None:
        """Ends this rank's use of it; the last one's end closes it."""
        used, self._used = self._used, None
        if used is None:
            return
        used.users.remove(self._rank)
        if not used.users:
            used.environment.close()
            if self.opened.get(self._key) is used:
                del self.opened[self._key]

    def __enter__(self) -> _Environment:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def _real(transaction: Any) -> Any:
    """Returns the library's transaction."""
    return transaction.real if isinstance(transaction, _Writing) else transaction


def _share(run: Session, lmdb: Any) -> None:
    """Puts a class in the place of the library's."""
    own = {"kind": lmdb.Environment, "error": lmdb.Error, "opened": {}, "__doc__": lmdb.Environment.__doc__}
    made = type("Environment", (_Environment,), own)
    for name in ("Environment", "open"):
        run.replace(lmdb, name, made)


def install(run: Session) -> None:
    """Lets ranks share what is open, until the run ends."""
    run.on_load["lmdb"] = functools.partial(_share, run)
