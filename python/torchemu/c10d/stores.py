"""Stores: keys and values that ranks share. All live in the World, where hosts, ports and files are only names.

A wait that has no time limit of its own, and that nobody can end, is in the report of the deadlock. PyTorch's default
of five minutes is not a limit in this sense: pass ``timeout`` or call ``set_timeout`` for that.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta

from torchemu.c10d.store_base import Store, data_of, duration_of, key_of, keys_of, wrong
from torchemu.c10d.store_places import places
from torchemu.c10d.store_table import Table, ask, ask_for, deadline_after, left
from torchemu.errors import DistNetworkError, DistStoreError, QueueEmptyError
from torchemu.runtime import footprints
from torchemu.runtime.waiting import found, milliseconds

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

_LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


class _TableStore(Store):
    """A store over a Table of its own or shared with others."""

    def __init__(self, table: Table, timeout: timedelta | None = None) -> None:
        self._table = table
        self._limit = timeout

    def __repr__(self) -> str:
        return self._table.name

    def set(self, key: str, value: str | bytes) -> None:
        key, data = key_of("set", key), data_of("set", value)
        ask(self._table)
        self._table.set(key, data)

    def get(self, key: str) -> bytes:
        return self._found("get", [key])[0]

    def add(self, key: str, amount: int) -> int:
        if not isinstance(amount, int):
            raise wrong("add", f"amount must be an int, not {type(amount).__name__}")
        key = key_of("add", key)
        if amount:
            ask(self._table, key)
        else:
            ask_for(f"add() of 0 to {key!r} of {self._table.name}", self._table, key)
        self._table.trails[key].follow()
        before = self._table.values.get(key, b"0")
        try:
            total = int(before or b"0") + amount
        except ValueError:
            raise ValueError(f"add(): the value of key {key!r}, {before!r}, is not a number") from None
        self._table.set(key, str(total).encode())
        return total

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        key = key_of("compare_set", key)
        expected, desired = data_of("compare_set", expected_value), data_of("compare_set", desired_value)
        ask_for(f"compare_set() of {key!r} of {self._table.name}", self._table, key)
        self._table.trails[key].follow()
        present = self._table.values.get(key)
        if present == expected or (present is None and not expected):
            self._table.set(key, desired)
            found()
            return desired
        return expected if present is None else present

    def check(self, keys: Sequence[str]) -> bool:
        keys = keys_of("check", keys)
        ask_for(f"check() of {self._table.name} for {', '.join(map(repr, keys))}", self._table)
        for key in keys:
            self._table.trails[key].follow()
        is_there = self._table.has(keys)
        if is_there:
            found()
        return is_there

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        keys = keys_of("wait", keys)
        limit = self._limit if timeout is None else duration_of("wait", timeout)
        self._until("wait", keys, limit)

    def delete_key(self, key: str) -> bool:
        key = key_of("delete_key", key)
        ask()
        return self._table.values.pop(key, None) is not None

    def num_keys(self) -> int:
        ask_for(f"num_keys() of {self._table.name}")
        return len(self._table.values) + (self._table.clients > 0)

    def append(self, key: str, value: str | bytes) -> None:
        key, data = key_of("append", key), data_of("append", value)
        ask(self._table, key)
        self._table.trails[key].follow()
        self._table.set(key, self._table.values.get(key, b"") + data)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self._found("multi_get", keys)

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        keys, data = keys_of("multi_set", keys), [data_of("multi_set", v) for v in values]
        if len(keys) != len(data):
            raise DistStoreError(
                f"multiSet keys and values vectors must be of same size, not {len(keys)} and {len(data)}"
            )
        ask(self._table)
        for key, value in zip(keys, data, strict=True):
            self._table.set(key, value)

    def queue_push(self, key: str, value: str | bytes) -> None:
        key, data = key_of("queue_push", key), data_of("queue_push", value)
        ask(self._table)
        self._table.push(key, data)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        key = key_of("queue_pop", key)
        deadline = deadline_after(self._limit)
        if block:
            ask(self._table)
        else:
            ask_for(f"queue_pop() of {key!r} of {self._table.name}", self._table)
        value = self._table.pop(key)
        if value is not None:
            found()
        elif not block:
            raise QueueEmptyError("queue is empty")
        if value is None:
            value = self._table.wait_to_pop(key, deadline)
        if value is None:
            raise self._late("queue_pop", [key], self.timeout)
        return value

    def queue_len(self, key: str) -> int:
        key = key_of("queue_len", key)
        ask_for(f"queue_len() of {key!r} of {self._table.name}", self._table)
        return self._table.length(key)

    def list_keys(self) -> list[str]:
        ask_for(f"list_keys() of {self._table.name}")
        return sorted(self._table.values)

    def has_extended_api(self) -> bool:
        return True

    def _found(self, method: str, keys: Sequence[str]) -> list[bytes]:
        keys = keys_of(method, keys)
        self._until(method, keys, self._limit)
        return [self._table.values.get(key, b"") for key in keys]

    def _until(self, method: str, keys: list[str], limit: timedelta | None) -> None:
        deadline = deadline_after(limit)
        ask(self._table)
        if not self._table.wait_for(keys, deadline):
            raise self._late(method, keys, limit or self.timeout)

    def _late(self, method: str, keys: Sequence[str], limit: timedelta) -> DistStoreError:
        """The error when the limit has passed for a method."""
        return DistStoreError("Wait timeout")


class HashStore(_TableStore):
    """A store of one process. Ranks share it only where they got it from the program that spawned them."""

    def __init__(self) -> None:
        super().__init__(Table("HashStore()"))

    def clone(self) -> Store:
        """The same store."""
        return self


class FileStore(_TableStore):
    """A store that ranks find by the name of a file. The file itself is not touched. It has no queues.

    Args:
        file_name: the path; other spellings of the same path meet it too.
        world_size: not needed here.

    Attributes:
        path: the path as it was given.
    """

    def __init__(self, file_name: str | os.PathLike[str], world_size: int = -1) -> None:
        self.path = os.fspath(file_name)
        where = ("file", os.path.abspath(self.path))
        here = places()
        table = here.find(where)
        super().__init__(table or here.open(where, Table(f"FileStore({self.path})")))

    def clone(self) -> Store:
        """Another client of the same file."""
        return FileStore(self.path)

    def num_keys(self) -> int:
        """The number of keys, and one more, as in PyTorch, where the file also counts its users."""
        return super().num_keys() + 1

    def has_extended_api(self) -> bool:
        """False, though the methods work."""
        return False

    def queue_push(self, key: str, value: str | bytes) -> None:
        raise NotImplementedError("queue support is not implemented.")

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        raise NotImplementedError("queue support is not implemented.")

    def queue_len(self, key: str) -> int:
        raise NotImplementedError("queue support is not implemented.")

    def _late(self, method: str, keys: Sequence[str], limit: timedelta) -> DistStoreError:
        if method == "wait":
            return DistStoreError("Wait timeout")
        missing = next((key for key in keys if not self._table.has([key])), keys[0])
        return DistStoreError(f"Timeout waiting for key: {missing} after {milliseconds(limit)} ms")


class TCPStore(_TableStore):
    """A store that ranks find by host and port. One of them is the master and makes it.

    Args:
        host_name: the master's host.
        port: the master's port; for the master, 0 is any that is free.
        world_size: how many clients the master waits for, itself included.
        is_master: whether this rank makes the store. Others wait until it is there.
        timeout: how long to wait for the others, and later for keys.
        wait_for_workers: whether the master waits at all.
        multi_tenant: a master takes the store that another one has made under this name.
        master_listen_fd, use_libuv: mean nothing here.

    Raises:
        DistNetworkError: the port has a master already; there was none in time.
        DistStoreError: not all clients came in time.
        ValueError: world_size is 0.

    Attributes:
        host, port: as given, or as found for 0.
    """

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
        if not isinstance(port, int) or not 0 <= port < 1 << 16:
            raise TypeError(f"__init__(): incompatible constructor arguments: a port is from 0 to 65535, not {port!r}")
        if world_size == 0:
            raise ValueError("TCPStore world size cannot be 0")
        self.host = host_name
        self.port = port or (places().free_port() if is_master else 0)
        self.libuvBackend = use_libuv
        self._limit = None if timeout is None else duration_of("TCPStore", timeout)
        deadline = deadline_after(self._limit)
        super().__init__(self._serve(multi_tenant) if is_master else self._connect(deadline), self._limit)
        if wait_for_workers and world_size is not None and world_size >= 0:
            self._join(world_size, is_master, deadline)

    def _where(self) -> tuple[str, ...]:
        return "tcp", "localhost" if self.host in _LOOPBACK else self.host, str(self.port)

    def _serve(self, multi_tenant: bool) -> Table:
        here, where = places(), self._where()
        here.go(where, footprints.ALONE)
        table = here.find(where) if here.is_served(where) else None
        if table is not None and not multi_tenant:
            raise DistNetworkError(
                "The server socket has failed to listen on any local network address. "
                f"port: {self.port}, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"
            )
        table = table or self._open(here.find(where))
        here.serve(where, self)
        return table

    def _open(self, before: Table | None) -> Table:
        """A new table. Clients who came to the one before in excess came early: they are this one's."""
        table = Table(f"TCPStore({self.host}, {self.port})")
        for client in before.early if before is not None else ():
            client._table = table
            table.clients += 1
        return places().open(self._where(), table)

    def _connect(self, deadline: int | None) -> Table:
        here, where = places(), self._where()
        here.go(where, footprints.LOOKING)
        while (table := here.find(where)) is None or not here.is_served(where):
            what = f"the master of TCPStore({self.host}, {self.port}), which is not there,"
            if not here.arrivals(where).wait(what, left(deadline)).called:
                raise DistNetworkError(
                    f"The client socket has timed out after {milliseconds(self.timeout)}ms while trying to connect to "
                    f"({self.host}, {self.port})."
                )
        return table

    def _join(self, world_size: int, is_master: bool, deadline: int | None) -> None:
        """Counts this client; the master waits until all are there."""
        table = self._table
        table.clients += 1
        table.early = [*table.early, self] if table.clients % max(world_size, 1) else []
        table.joined.call_all()
        while is_master and table.clients < world_size:
            what = f"the clients of {table.name}, of which {table.clients} of {world_size} are there,"
            if not table.joined.wait(what, left(deadline)).called:
                raise DistStoreError(
                    f"Timed out after {self.timeout // timedelta(seconds=1)} seconds waiting for clients. "
                    f"{table.clients}/{world_size} clients joined."
                )

    def clone(self) -> Store:
        """Another client of the same store."""
        return TCPStore(self.host, self.port, timeout=self._limit)

    def _late(self, method: str, keys: Sequence[str], limit: timedelta) -> DistStoreError:
        shown = ", ".join("/" + key for key in keys)  # PyTorch's server has all of them under this prefix
        return DistStoreError(f"wait timeout after {milliseconds(limit)}ms, keys: {shown}")


class PrefixStore(Store):
    """A view of a store in which every key begins with a prefix and a slash.

    Attributes:
        prefix: the prefix.
        underlying_store: the store.
    """

    def __init__(self, prefix: str, store: Store) -> None:
        if not isinstance(store, Store):
            raise wrong("PrefixStore", f"store must be a Store, not {type(store).__name__}")
        self.prefix, self.underlying_store = key_of("PrefixStore", prefix), store

    def __repr__(self) -> str:
        return f"PrefixStore({self.prefix}, {self.underlying_store!r})"

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self.underlying_store
        return store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store

    @property
    def timeout(self) -> timedelta:
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self.underlying_store.set_timeout(timeout)

    def _full(self, method: str, key: str) -> str:
        return f"{self.prefix}/{key_of(method, key)}"

    def _all(self, method: str, keys: Sequence[str]) -> list[str]:
        return [self._full(method, key) for key in keys_of(method, keys)]

    def set(self, key: str, value: str | bytes) -> None:
        self.underlying_store.set(self._full("set", key), value)

    def get(self, key: str) -> bytes:
        return self.underlying_store.get(self._full("get", key))

    def add(self, key: str, amount: int) -> int:
        return self.underlying_store.add(self._full("add", key), amount)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        return self.underlying_store.compare_set(self._full("compare_set", key), expected_value, desired_value)

    def check(self, keys: Sequence[str]) -> bool:
        return self.underlying_store.check(self._all("check", keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        full = self._all("wait", keys)
        if timeout is None:
            self.underlying_store.wait(full)
        else:
            self.underlying_store.wait(full, timeout)

    def delete_key(self, key: str) -> bool:
        return self.underlying_store.delete_key(self._full("delete_key", key))

    def num_keys(self) -> int:
        """The number of keys of the whole store, as in PyTorch."""
        return self.underlying_store.num_keys()

    def append(self, key: str, value: str | bytes) -> None:
        self.underlying_store.append(self._full("append", key), value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self.underlying_store.multi_get(self._all("multi_get", keys))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        self.underlying_store.multi_set(self._all("multi_set", keys), values)

    def queue_push(self, key: str, value: str | bytes) -> None:
        self.underlying_store.queue_push(self._full("queue_push", key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self.underlying_store.queue_pop(self._full("queue_pop", key), block)

    def queue_len(self, key: str) -> int:
        return self.underlying_store.queue_len(self._full("queue_len", key))

    def list_keys(self) -> list[str]:
        """The keys under the prefix, without it."""
        start = f"{self.prefix}/"
        return [key[len(start) :] for key in self.underlying_store.list_keys() if key.startswith(start)]

    def clone(self) -> Store:
        """The same prefix of another client."""
        return PrefixStore(self.prefix, self.underlying_store.clone())

    def has_extended_api(self) -> bool:
        return self.underlying_store.has_extended_api()
