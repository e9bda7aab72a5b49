"""Ranks find each other by a URL: it gives each a store, its rank and the world size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from numbers import Integral
from typing import Any
from urllib.parse import SplitResult, urlsplit

from torchemu.c10d.stores import FileStore, Store, TCPStore
from torchemu.runtime.rank_local import RankLocal

__all__ = ["register_rendezvous_handler", "rendezvous"]

Meeting = Iterator[tuple[Store, int, int]]
"""The result of a handler: its first item is the store, the rank and the world size."""


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Meeting:
    """The iterator that the handler of the URL's scheme returns.

    Args:
        url: ``env://``, ``tcp://host:port``, ``file:///path``, or one of a registered scheme.
        rank, world_size: unless they are -1 they become part of the URL's query.
        kwargs: for the handler; those here know ``timeout``, which is that of the store.

    Raises:
        RuntimeError: an argument of the wrong type; an unknown scheme.
        ValueError: something is missing; it comes when the iterator is asked.
        AssertionError: rank or world size are given twice.
    """
    if not isinstance(url, str | bytes):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    for name, value in (("rank", rank), ("world_size", world_size)):
        if not isinstance(value, Integral):
            raise RuntimeError(f"`{name}` must be an integer. {value}")
    text = url.decode() if isinstance(url, bytes) else url
    scheme = urlsplit(text).scheme
    handlers = _handlers.get()
    text = _with_query(text, rank=rank, world_size=world_size)
    if scheme not in handlers:
        raise RuntimeError(f"No rendezvous handler for {scheme}://")
    return handlers[scheme](text, **kwargs)


def register_rendezvous_handler(scheme: str, handler: Callable[..., Meeting]) -> None:
    """Makes a scheme known, on this rank: ``handler(url, **options)`` yields store, rank and world size.

    Raises:
        RuntimeError: the scheme is known already.
    """
    handlers = _handlers.get()
    if scheme in handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    handlers[scheme] = handler


def _with_query(url: str, **values: int) -> str:
    """The URL with those values in its query that are given."""
    given = {name: value for name, value in values.items() if value != -1}
    if not given:
        return url
    parts = urlsplit(url)
    query = _query(parts)
    if not query.keys().isdisjoint(values):
        raise AssertionError(f"The url: {url} has node-specific arguments(rank, world_size) already.")
    query.update({name: str(value) for name, value in given.items()})
    return parts._replace(query="&".join(f"{name}={value}" for name, value in query.items())).geturl()


def _query(parts: SplitResult) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in parts.query.split("&") if pair)
    return {name: value for name, _, value in pairs}


def _missing(scheme: str, what: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {what}")


def _place(scheme: str, query: dict[str, str]) -> tuple[int, int]:
    """Rank and world size of a URL's query."""
    if "rank" not in query:
        raise _missing(scheme, "rank parameter missing")
    if "world_size" not in query:
        raise _missing(scheme, "world size parameter missing")
    return int(query["rank"]), int(query["world_size"])


def _tcp_store(host: str, port: int, rank: int, world_size: int, timeout: timedelta | None) -> TCPStore:
    if not 0 <= port < 1 << 16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    return TCPStore(host, port, world_size, is_master=rank == 0, timeout=timeout, multi_tenant=True)


def _by_tcp(url: str, timeout: timedelta | None = None, **_: Any) -> Meeting:
    parts = urlsplit(url)
    if not parts.port:
        raise _missing("tcp", "port number missing")
    rank, world_size = _place("tcp", _query(parts))
    yield _tcp_store(parts.hostname or "", parts.port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _by_file(url: str, **_: Any) -> Meeting:
    parts = urlsplit(url)
    if not parts.path:
        raise _missing("file", "path missing")
    rank, world_size = _place("file", _query(parts))
    yield FileStore(parts.path, world_size), rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _by_environment(url: str, timeout: timedelta | None = None, **_: Any) -> Meeting:
    query = _query(urlsplit(url))
    rank = int(query.get("rank") or _variable("RANK"))
    world_size = int(query.get("world_size") or _variable("WORLD_SIZE"))
    host, port = _variable("MASTER_ADDR"), int(_variable("MASTER_PORT"))
    yield _tcp_store(host, port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise _missing("env", f"environment variable {name} expected, but not set")
    return value


_handlers: RankLocal[dict[str, Callable[..., Meeting]]] = RankLocal(
    lambda: {"env": _by_environment, "file": _by_file, "tcp": _by_tcp}
)
