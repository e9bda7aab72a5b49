"""Stores have their base here, and the checks of what they are given."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

DEFAULT_TIMEOUT = timedelta(seconds=300)
"""PyTorch's; here only what ``timeout`` says where none was given."""


class Store:
    """Base of all stores. A class of a program's own need only define the methods it uses.

    Attributes:
        timeout: how long get, wait and their kin wait for a key.
    """

    _limit: timedelta | None = None  # of the waits, where the program set one

    @property
    def timeout(self) -> timedelta:
        """Returns how long get, wait and their kin wait for a key."""
        return self._limit if self._limit is not None else DEFAULT_TIMEOUT

    def set_timeout(self, timeout: timedelta) -> None:
        """Changes the timeout."""
        self._limit = duration_of("set_timeout", timeout)

    def set(self, key: str, value: str | bytes) -> None:
        """Gives a key a value."""
        raise self._lacks("set")

    def get(self, key: str) -> bytes:
        """The value of a key; waits until it has one.

        Raises:
            DistStoreError: the timeout has passed.
        """
        raise self._lacks("get")

    def add(self, key: str, amount: int) -> int:
        """Adds to the number that is a key's value, 0 where it has none, and returns the sum."""
        raise self._lacks("add")

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Replaces the expected value, or, where that is empty, none, by the desired one. Returns the value that the
        key then has; the expected one where it has none."""
        raise self._lacks("compare_set")

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Waits until so many have called this with the key, which is good for once.

        Raises:
            DistStoreError: the timeout, or else the store's, has passed.
            ValueError: world_size is not positive.
        """
        if world_size <= 0:
            raise ValueError(f"world_size must be positive, not {world_size}")
        if self.add(f"{key}/arrived", 1) == world_size:
            self.set(f"{key}/released", "1")
        waiting = [f"{key}/released"]
        self.wait(waiting) if timeout is None else self.wait(waiting, timeout)

    def check(self, keys: Sequence[str]) -> bool:
        """Returns whether all keys are there."""
        raise self._lacks("check")

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Waits until all keys are there.

        Raises:
            DistStoreError: the timeout, or else the store's, has passed.
        """
        raise self._lacks("wait")

    def delete_key(self, key: str) -> bool:
        """Forgets a key; false when there is none."""
        raise self._lacks("delete_key")

    def num_keys(self) -> int:
        """The number of keys; a TCPStore that waited for its workers has one of its own."""
        raise self._lacks("num_keys")

    def append(self, key: str, value: str | bytes) -> None:
        """Appends to the value of a key."""
        raise self._lacks("append")

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys; waits as get does."""
        raise self._lacks("multi_get")

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Gives several keys their values at once."""
        raise self._lacks("multi_set")

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Appends to a queue."""
        raise self._lacks("queue_push")

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Takes the first of a queue; waits until there is one.

        Raises:
            DistStoreError: the timeout has passed.
            QueueEmptyError: the queue is empty and block is false.
        """
        raise self._lacks("queue_pop")

    def queue_len(self, key: str) -> int:
        """Returns how many are in a queue."""
        raise self._lacks("queue_len")

    def list_keys(self) -> list[str]:
        """All keys, in the order of their names."""
        raise self._lacks("list_keys")

    def clone(self) -> Store:
        """Another client of the same store."""
        raise self._lacks("clone")

    def has_extended_api(self) -> bool:
        """Returns whether append, multi_get and multi_set work."""
        return False

    def _lacks(self, method: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not define {method}")


def wrong(method: str, what: str) -> TypeError:
    return TypeError(f"{method}(): incompatible function arguments: {what}")


def key_of(method: str, key: Any) -> str:
    if isinstance(key, bytes):
        return key.decode()
    if not isinstance(key, str):
        raise wrong(method, f"a key must be a str, not {type(key).__name__}")
    return key


def keys_of(method: str, keys: Any) -> list[str]:
    if isinstance(keys, str | bytes) or not isinstance(keys, Sequence):
        raise wrong(method, f"keys must be a list of str, not {type(keys).__name__}")
    return [key_of(method, key) for key in keys]


def data_of(method: str, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, bytes):
        raise wrong(method, f"a value must be a str or bytes, not {type(value).__name__}")
    return value


def duration_of(method: str, timeout: Any) -> timedelta:
    if not isinstance(timeout, timedelta):
        raise wrong(method, f"timeout must be a datetime.timedelta, not {type(timeout).__name__}")
    return timeout
