"""PyTorch's stores, over those of the World: who waits for a key gives others their turn."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from torchemu import errors, runtime
from torchemu.c10d import stores as emulated
from torchemu.runtime.rank_local import RankLocal

_OURS = errors.DistError
"""The base of what our stores raise; while a run goes on errors.DistError is PyTorch's."""

_KINDS: tuple[tuple[type[Exception], type[Exception]], ...] = (
    (errors.QueueEmptyError, getattr(dist, "QueueEmptyError", dist.DistStoreError)),
    (errors.DistStoreError, dist.DistStoreError),
    (errors.DistNetworkError, dist.DistNetworkError),
)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Raises PyTorch's exceptions for ours."""
    try:
        yield
    except _OURS as error:
        kind = next((theirs for ours, theirs in _KINDS if isinstance(error, ours)), dist.DistError)
        raise kind(str(error)) from None


_base_timeout = dist.Store.timeout.__get__
"""Returns a store's timeout as C++ knows it, which sets it for a call of its own and does not ask who has overridden
that: so control collectives do."""

_BASE_TIMEOUT = timedelta(seconds=300)
"""The timeout that C++ gives every store first."""

_kept: RankLocal[list[Any]] = RankLocal(list)  # C++ keeps no Python object alive that it was given a store of


def kept() -> int:
    """Returns how many stores the running rank keeps."""
    return len(_kept.get())


def prefixes_since(before: int) -> list[PrefixStore]:
    """Takes out those with prefixes that the running rank has made since it kept so many stores: a group's, which keeps
    them from now on."""
    since = _kept.get()[before:]
    _kept.get()[before:] = [store for store in since if not isinstance(store, PrefixStore)]
    return [store for store in since if isinstance(store, PrefixStore)]


def release(store: Any) -> None:
    """Keeps a store no longer, nor those below it, now that the groups that C++ was given them for are gone. What
    torchrun's agent serves stays."""
    released = []
    while isinstance(store, PrefixStore):
        released.append(store)
        store = store.underlying_store
    if not (isinstance(store, TCPStore) and _is_agents(store.host, store.port)):
        released.append(store)
    _kept.get()[:] = [one for one in _kept.get() if not any(one is gone for gone in released)]


class AhbmStore(dist.Store):
    """A store of the World.

    Args:
        client: the rank's client of it.
    """

    def __init__(self, client: emulated.Store) -> None:
        super().__init__()
        self._client = client
        _kept.get().append(self)

    @property
    def timeout(self) -> timedelta:
        """The longest time that a wait lasts."""
        return self._client.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Changes the timeout."""
        self._client.set_timeout(timeout)

    setTimeout = set_timeout  # noqa: N815 (what C++ calls it)

    def set(self, key: str, value: Any) -> None:
        """Gives a key a value."""
        with _told():
            self._client.set(key, _data(value))

    def get(self, key: str) -> bytes:
        """The value of a key, once it has one."""
        with _told():
            limit = _base_timeout(self)
            if limit != _BASE_TIMEOUT:
                self._client.wait([key], limit)
            return self._client.get(key)

    def add(self, key: str, amount: int) -> int:
        """Adds to the number that is a key's value."""
        with _told():
            return self._client.add(key, amount)

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Replaces the expected value."""
        with _told():
            return self._client.compare_set(key, _data(expected_value), _data(desired_value))

    compareSet = compare_set  # noqa: N815

    def check(self, keys: Sequence[str]) -> bool:
        """Says whether all keys are there."""
        with _told():
            return self._client.check(list(keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Waits until all keys are there."""
        with _told():
            self._client.wait(list(keys), timeout) if timeout is not None else self._client.wait(list(keys))

    def delete_key(self, key: str) -> bool:
        """Forgets a key."""
        with _told():
            return self._client.delete_key(key)

    deleteKey = delete_key  # noqa: N815

    def num_keys(self) -> int:
        """The number of keys."""
        with _told():
            return self._client.num_keys()

    getNumKeys = num_keys  # noqa: N815

    def append(self, key: str, value: Any) -> None:
        """Appends to the value of a key."""
        with _told():
            self._client.append(key, _data(value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys."""
        with _told():
            return self._client.multi_get(list(keys))

    multiGet = multi_get  # noqa: N815

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        """Gives several keys values."""
        with _told():
            self._client.multi_set(list(keys), [_data(value) for value in values])

    multiSet = multi_set  # noqa: N815

    def queue_push(self, key: str, value: Any) -> None:
        """Appends to a queue."""
        with _told():
            self._client.queue_push(key, _data(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Takes the first of a queue."""
        with _told():
            return self._client.queue_pop(key, block)

    def queue_len(self, key: str) -> int:
        """Counts the values in a queue."""
        with _told():
            return self._client.queue_len(key)

    queuePush, queuePop, queueLen = queue_push, queue_pop, queue_len  # noqa: N815

    def list_keys(self) -> list[str]:
        """All keys."""
        with _told():
            return self._client.list_keys()

    listKeys = list_keys  # noqa: N815

    def has_extended_api(self) -> bool:
        """Says whether append, multi_get and multi_set work."""
        return self._client.has_extended_api()

    hasExtendedApi = has_extended_api  # noqa: N815

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Waits until so many have called this."""
        with _told():
            self._client.barrier(key, world_size, timeout)

    def clone(self) -> dist.Store:
        """Another client of the same store."""
        made = dist.Store.__new__(type(self))
        AhbmStore.__init__(made, self._client.clone())
        return made

    def __repr__(self) -> str:
        return repr(self._client)


def _data(value: Any) -> str | bytes:
    """Returns the bytes of a value that a program, or C++, gives."""
    return value if isinstance(value, str | bytes) else bytes(value)


class HashStore(AhbmStore):
    """A torch.distributed.HashStore that ranks share."""

    def __init__(self) -> None:
        super().__init__(emulated.HashStore())


class FileStore(AhbmStore):
    """A torch.distributed.FileStore that ranks share."""

    def __init__(self, file_name: Any, world_size: int = -1) -> None:
        runtime.current().meets = world_size
        super().__init__(emulated.FileStore(file_name, world_size))

    @property
    def path(self) -> str:
        """The file's name."""
        return str(getattr(self._client, "path", ""))


class TCPStore(AhbmStore):
    """A torch.distributed.TCPStore that ranks share."""

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta | None = None,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        agents = not is_master and _is_agents(host_name, port)
        runtime.current().meets = world_size or 0
        with _told():
            client = emulated.TCPStore(
                host_name,
                port,
                None if agents else world_size,
                is_master or agents,
                timeout if timeout is None or timeout.total_seconds() not in _DEFAULTS else None,
                wait_for_workers and not agents,
                multi_tenant or agents,
                master_listen_fd,
                use_libuv,
            )
        super().__init__(client)

    @property
    def host(self) -> str:
        """The master's host."""
        return str(getattr(self._client, "host", ""))

    @property
    def port(self) -> int:
        """The master's port."""
        return int(getattr(self._client, "port", 0))

    @property
    def libuvBackend(self) -> bool:  # noqa: N802 (PyTorch's name)
        """Says whether the program has asked for libuv."""
        return bool(getattr(self._client, "libuvBackend", True))


_prefixed = dist.PrefixStore


class PrefixStore(AhbmStore):
    """A torch.distributed.PrefixStore, which has no queues where its store is none of C++.

    Args:
        prefix: with which, and a slash, every key begins.
        store: the store.
    """

    def __new__(cls, prefix: str, store: dist.Store) -> Any:
        """Returns PyTorch's own over a store that is none of the World's, such as a class of the program."""
        return super().__new__(cls) if isinstance(store, AhbmStore) else _prefixed(prefix, store)

    def __init__(self, prefix: str, store: AhbmStore) -> None:
        super().__init__(emulated.PrefixStore(prefix, store._client))
        self.prefix, self.underlying_store = prefix, store

    @property
    def _underlying_non_prefix_store(self) -> dist.Store:
        store = self.underlying_store
        return store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store

    def clone(self) -> dist.Store:
        """The same prefix of another client."""
        made: dist.Store = PrefixStore(self.prefix, self.underlying_store.clone())
        return made


_DEFAULTS = (300.0, 600.0, 1800.0)
"""Timeouts, in seconds, that are PyTorch's own: a wait that nobody can end is in the report of the deadlock instead."""


def _is_agents(host: str, port: int) -> bool:
    """Says whether it is the store that torchrun's agent keeps for its workers."""
    address = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" and (host, str(port)) == address


def at_rendezvous(make: Callable[..., dist.Store]) -> Callable[..., dist.Store]:
    """Makes the function that opens the store of a rendezvous: at an address that is not torchrun's, rank 0 serves,
    also where torchrun is above, as when a script spawns its processes itself."""

    @functools.wraps(make)
    def create(hostname: str, port: int, rank: int, world_size: int, timeout: timedelta, *args: Any) -> dist.Store:
        if _is_agents(hostname, port) or os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
            return make(hostname, port, rank, world_size, timeout, *args)
        return TCPStore(hostname, port, world_size, rank == 0, timeout, multi_tenant=True)

    return create
