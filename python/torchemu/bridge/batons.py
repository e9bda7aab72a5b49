"""Batons: by them threads of the system take turns. One call hands over and waits, without Python's lock meanwhile."""

from __future__ import annotations

import ctypes

from torchemu.bridge.binding import LIBRARY

_library = ctypes.CDLL(LIBRARY)
_make, _free, _pass = _library.torchemu_baton_make, _library.torchemu_baton_free, _library.torchemu_baton_pass
_make.restype = ctypes.c_void_p
_free.argtypes, _free.restype = (ctypes.c_void_p,), None
_pass.argtypes, _pass.restype = (ctypes.c_void_p, ctypes.c_void_p), None
_pass_at_end, _look = _library.torchemu_baton_pass_at_end, _library.torchemu_baton_look
_pass_at_end.argtypes, _pass_at_end.restype = (ctypes.c_void_p,), None
_look.argtypes = ctypes.c_void_p, ctypes.c_int


class Baton:
    """A lock that one thread waits for.

    Raises:
        MemoryError: there is no memory for it.
    """

    __slots__ = ("_address",)

    def __init__(self) -> None:
        self._address = _make()
        if not self._address:
            raise MemoryError("no memory for a thread's turn")

    def __del__(self) -> None:
        if getattr(self, "_address", None):
            _free(self._address)

    def hand_over(self) -> None:
        """Lets the thread go on that waits for it, or will."""
        _pass(self._address, None)

    def hand_over_at_end(self) -> None:
        """Lets it go on once the running thread has ended, with the objects that C and C++ keep for that."""
        _pass_at_end(self._address)

    def look(self, seen: int) -> int:
        """Returns how often the running thread has found it handed over. Where that is as often as was seen, the thread
        blocks first: for a tenth of a second at most, as a signal may come just before, or until one comes."""
        times: int = _look(self._address, seen)
        return times

    def wait(self) -> None:
        """Blocks the running thread until somebody hands over. No signal ends that: it is not for the main thread."""
        _pass(None, self._address)

    def wait_after(self, following: Baton) -> None:
        """Hands over another one, and waits for this one."""
        _pass(following._address, self._address)
