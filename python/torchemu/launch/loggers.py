"""Loggers: ranks share the objects, and each has their state for itself.

Installed modules are loaded once, and hold loggers in their variables. So there is one logger of a name, with the
level, handlers, filters and so on of the rank that runs. What modules do to loggers while they are imported is done for
all ranks, since each process of the program would import them. What ranks do is their own: an object is exchanged when
another rank goes on, from the moment at which a rank first changes it. So are handlers that modules have made.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from torchemu.launch.observed_lists import ToldList
from torchemu.launch.patches import replace

if TYPE_CHECKING:
    from torchemu.launch.modules import Rules
    from torchemu.launch.process import Process

_LISTS = ("handlers", "filters")
_STANDARD = ("stdout", "stderr")
_MISSING = object()

Variables = dict[str, Any]


class _Uncached(dict[int, bool]):
    """The cache of a logger whose parents' levels are another rank's at any time: it keeps nothing."""

    def __setitem__(self, level: int, enabled: bool) -> None:
        pass


class Own:
    """The state that one process has of its own.

    Args:
        names: all handlers with a name, as Python lists them.
        handlers: all handlers.

    Attributes:
        variables: of objects that ranks have changed, by the objects' ids.
        of_modules: how many loggers of modules it knows.
    """

    def __init__(self, names: Any, handlers: list[Any]) -> None:
        self.names, self.handlers = names, handlers
        self.variables: dict[int, Variables] = {}
        self.of_modules = 0

    def child(self) -> Own:
        """Returns what a process begins with that knows of this one's handlers."""
        return Own(weakref.WeakValueDictionary(self.names), list(self.handlers))

    def fork(self) -> Own:
        """Returns what a process begins with that is forked from this one."""
        child = self.child()
        child.variables = {number: _copied(own) for number, own in self.variables.items()}
        child.of_modules = self.of_modules
        return child


class _Standard:
    """Stands for the running rank's sys.stdout or sys.stderr.

    Args:
        name: which.
        before: what it stands in for.
    """

    def __init__(self, name: str, before: Any) -> None:
        self.name, self.before = name, before


class _Stream:
    """The attribute `stream` of handlers: that of the running rank, where it is a standard one of the process."""

    def __get__(self, handler: Any, kind: Any = None) -> Any:
        if handler is None:
            return self
        try:
            stream = vars(handler)["stream"]
        except KeyError:
            raise AttributeError("stream") from None
        return getattr(sys, stream.name) if type(stream) is _Standard else stream

    def __set__(self, handler: Any, stream: Any) -> None:
        vars(handler)["stream"] = stream

    def __delete__(self, handler: Any) -> None:
        del vars(handler)["stream"]


class Loggers:
    """The loggers of one run.

    Args:
        exchanges: what is called when another rank goes on, with the processes.
        rules: which modules are the program's.
        outside: the process outside of all ranks.
    """

    def __init__(self, exchanges: list[Callable[[Process, Process], None]], rules: Rules, outside: Process) -> None:
        self._rules = rules
        self._manager = logging.Logger.manager
        self._get_logger = logging.Manager.getLogger
        self._shared: dict[int, Any] = {}  # loggers, handlers and the manager, by id
        self._changed: dict[int, Any] = {}  # those that ranks have changed
        self._first: dict[int, Variables] = {}  # what ranks begin with of these
        self._by_name: dict[str, logging.Logger] = {}
        self._of_modules: list[logging.Logger] = []  # made by modules since the run began
        self._outside = self._running = Own(logging._handlers, logging._handlerList)  # type: ignore[attr-defined]
        self._own: weakref.WeakKeyDictionary[Process, Own] = weakref.WeakKeyDictionary({outside: self._outside})
        self._files: list[Any] = []  # that handlers of all ranks write to
        self._adopts = False
        exchanges.append(self.exchange)

    def install(self, stack: contextlib.ExitStack) -> None:
        """Gives each rank its own state, until the stack is closed."""
        for logger in (logging.root, *_loggers(self._manager)):
            self._share(logger)
        for reference in list(logging._handlerList):  # type: ignore[attr-defined]
            self._share(reference())
        self._share(self._manager)
        stack.callback(self._unshare)
        replace(stack, logging.Manager, "getLogger", lambda manager, name: self._found(manager, name))
        replace(stack, logging, "_addHandlerRef", self._noting(logging._addHandlerRef))  # type: ignore[attr-defined]
        stack.callback(delattr, logging.StreamHandler, "stream")
        setattr(logging.StreamHandler, "stream", _Stream())  # noqa: B010
        for kind in (logging.Filterer, logging.Manager):
            stack.callback(delattr, kind, "__setattr__")
            kind.__setattr__ = lambda one, name, value: self._set(one, name, value)  # type: ignore[method-assign]

    def forked(self, parent: Process) -> Own:
        """Returns what a process begins with that a rank forks now."""
        return self._of(parent).fork()

    def begin(self, process: Process, own: Own) -> None:
        """Lets a process that has not run begin with what forked has returned."""
        self._own[process] = own

    def _of(self, process: Process) -> Own:
        own = self._own.get(process)
        if own is None:
            own = self._own[process] = self._outside.child()
        return own

    def exchange(self, _: Process, after: Process) -> None:
        """Puts a process's state in the place of another one's."""
        self._restore(self._of(after))

    def _restore(self, own: Own) -> None:
        self._running = own
        for number, one in self._changed.items():
            object.__setattr__(one, "__dict__", self._variables(own, number))  # no change of the program's
        logging._handlers, logging._handlerList = own.names, own.handlers  # type: ignore[attr-defined]
        if own.of_modules < len(self._of_modules):
            self._learn(own)

    def _variables(self, own: Own, number: int) -> Variables:
        if number not in own.variables:
            own.variables[number] = _copied(self._first[number])
        return own.variables[number]

    def _learn(self, own: Own) -> None:
        """Puts loggers that modules have made in another rank's turn in the running one's tree."""
        new, own.of_modules = self._of_modules[own.of_modules :], len(self._of_modules)
        for logger in new:
            if not isinstance(self._manager.loggerDict.get(logger.name), logging.Logger):
                self._adopt(logger)

    def _adopt(self, logger: logging.Logger) -> None:
        """Puts a logger in the running rank's tree: what makes new ones is given this one."""
        self._note(self._manager)
        before, self._adopts = self._manager.loggerClass, True
        vars(self._manager)["loggerClass"] = lambda name: logger
        try:
            self._get_logger(self._manager, logger.name)
        finally:
            vars(self._manager)["loggerClass"], self._adopts = before, False

    def _found(self, manager: logging.Manager, name: str) -> logging.Logger:
        """Returns the logger of a name, as Manager.getLogger does."""
        known = manager.loggerDict.get(name) if manager is self._manager and isinstance(name, str) else _MISSING
        if known is _MISSING or isinstance(known, logging.Logger):
            return self._get_logger(manager, name)
        kind = manager.loggerClass or logging.getLoggerClass()
        other = self._by_name.get(name)
        if type(other) is kind:
            assert other is not None
            self._adopt(other)
            return other
        if not self._is_of_all():
            self._note(manager)
        logger = self._get_logger(manager, name)
        if not self._is_programs(kind):
            self._share(logger)
            if self._is_of_all():
                self._of_modules.append(logger)
        return logger

    def _is_programs(self, kind: type) -> bool:
        """Reports whether a class is the program's, so that each rank has one of its own."""
        module = sys.modules.get(kind.__module__)
        return self._rules.is_own_file(kind.__module__, getattr(module, "__file__", None) or "")

    def _noting(self, add: Callable[[Any], None]) -> Callable[[Any], None]:
        """Returns what is called with each new handler."""

        def added(handler: Any) -> None:
            add(handler)
            if self._is_of_all():
                self._share(handler)

        return added

    def _share(self, one: Any) -> None:
        """Lets ranks have the state of an object for themselves, once they change it."""
        if one is None:
            return
        self._shared[id(one)] = one
        own = vars(one)
        for name in own.keys() & _LISTS:
            own[name] = self._told(one, name, own[name])
        if isinstance(one, logging.Logger):
            self._by_name.setdefault(one.name, one)
            own["_cache"] = _Uncached()
        if "stream" in own:
            own["stream"] = self._of_ranks(one, own["stream"])

    def _told(self, one: Any, name: str, values: Any) -> ToldList:
        """Returns a list of an object as one that tells."""

        def before(changing: ToldList) -> list[ToldList]:
            if vars(one).get(name) is not changing or self._runs_outside():
                return []
            if self._is_of_all():
                return [own[name] for own in self._others(one) if name in own]
            self._note(one)
            return []

        return ToldList(values, before)

    def _of_ranks(self, handler: Any, stream: Any) -> Any:
        """Returns what a handler of all ranks has as its stream. One that a rank closes stays open for the others."""
        for name in _STANDARD if stream is not None else ():
            if stream in (getattr(sys, name), getattr(sys, f"__{name}__")) or _name(stream) == f"<{name}>":
                return _Standard(name, stream)
        if isinstance(handler, logging.FileHandler) and hasattr(stream, "__dict__"):
            self._keep_open(stream)
        return stream

    def _keep_open(self, stream: Any) -> None:
        """Lets ranks only flush a file that they close."""
        close = stream.close
        vars(stream)["close"] = lambda: close() if self._runs_outside() else stream.flush()
        self._files.append(stream)

    def _set(self, one: Any, name: str, value: Any) -> None:
        """Sets an attribute of a logger, a handler or the manager."""
        number = id(one)
        if number not in self._shared or isinstance(getattr(type(one), name, None), property):
            object.__setattr__(one, name, value)
            return
        if vars(one).get(name, _MISSING) is value:
            return
        if name in _LISTS and isinstance(value, list):
            value = self._told(one, name, value)
        if self._is_of_all():
            value = self._of_ranks(one, value) if name == "stream" else value
            for own in self._others(one):
                own[name] = _copied_value(value)
        else:
            self._note(one)
        object.__setattr__(one, name, value)

    def _others(self, one: Any) -> Iterator[Variables]:
        """Lists the variables of an object that are not in place."""
        number, own = id(one), vars(one)
        if number in self._changed:
            yield self._first[number]
            for process in self._own.values():
                if process.variables.get(number, own) is not own:
                    yield process.variables[number]

    def _note(self, one: Any) -> None:
        """Lets an object be exchanged, since the running rank is about to change it."""
        number = id(one)
        if number not in self._changed and not self._runs_outside():
            self._first[number] = _copied(vars(one))
            self._running.variables[number] = vars(one)
            self._changed[number] = one

    def _runs_outside(self) -> bool:
        return self._running is self._outside

    def _is_of_all(self) -> bool:
        """Reports whether what is done now is done for all ranks: a module that they share is being imported, or none
        of them runs."""
        if self._adopts:
            return False
        if self._runs_outside():
            return True
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            if self._rules.is_own_file(frame.f_globals.get("__name__") or "", frame.f_code.co_filename):
                return False
            if frame.f_code.co_name == "<module>" and not frame.f_code.co_filename.startswith("<"):
                return True
            frame = frame.f_back
        return False

    def _unshare(self) -> None:
        """Leaves plain objects, with the state that is there outside of ranks. Ranks' handlers are flushed and closed
        where the process's are: at its end."""
        self._restore(self._outside)
        known = {*map(id, self._outside.handlers)}  # references to what is gone have no hash
        for own in self._own.values():
            new = [handler for handler in own.handlers if id(handler) not in known and handler() is not None]
            self._outside.handlers.extend(new)
            known.update(map(id, new))
        for stream in self._files:
            vars(stream).pop("close", None)
        for one in self._shared.values():
            own = vars(one)
            for name in own.keys() & _LISTS:
                own[name] = list(own[name])
            if isinstance(one, logging.Logger):
                own["_cache"] = {}
            if isinstance(own.get("stream"), _Standard):
                own["stream"] = own["stream"].before


def _loggers(manager: logging.Manager) -> list[logging.Logger]:
    return [logger for logger in manager.loggerDict.values() if isinstance(logger, logging.Logger)]


def _name(stream: Any) -> Any:
    return getattr(stream, "name", None)


def _copied(variables: Variables) -> Variables:
    return {name: _copied_value(value) for name, value in variables.items()}


def _copied_value(value: Any) -> Any:
    if isinstance(value, ToldList):
        return ToldList(value, value.before)
    return dict(value) if type(value) is dict else value
