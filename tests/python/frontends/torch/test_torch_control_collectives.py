"""Collectives of torch.distributed over a store, on threads of one rank: their values and their limits."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch.distributed as dist

import torchemu
from torchemu.errors import DeadlockError

alone = torchemu.distributed(world_size=1, torch="real", virtual_clock=True)
there = pytest.mark.skipif(not hasattr(dist, "_StoreCollectives"), reason="this PyTorch has none any more")
LIMIT = timedelta(seconds=10)
SHORT = timedelta(milliseconds=1)


@there
@alone
def test_values():
    store = dist.HashStore()

    def of(rank):
        collectives = dist._StoreCollectives(store, rank, 3)
        collectives.barrier("barrier", LIMIT, True)
        if rank == 1:
            collectives.broadcast_send("sent", b"data", LIMIT)
            sent = b"data"
            scattered = collectives.scatter_send("scattered", ["a", "bb", ""], LIMIT)
        else:
            sent = collectives.broadcast_recv("sent", LIMIT)
            scattered = collectives.scatter_recv("scattered", LIMIT)
        return (
            sent,
            scattered,
            collectives.all_sum("sum", rank + 5, LIMIT),
            collectives.all_gather("all", str(rank), LIMIT),
        )

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(of, range(3)))
    assert found == [(b"data", part, 5 + 6 + 7, [b"0", b"1", b"2"]) for part in (b"a", b"bb", b"")]


CALLS = {
    "broadcast_recv": (lambda c: c.broadcast_recv("key", SHORT), "[Ww]ait timeout"),
    "scatter_recv": (lambda c: c.scatter_recv("key", SHORT), "[Ww]ait timeout"),
    "gather_recv": (lambda c: c.gather_recv("key", "x", SHORT), "gather failed -- missing ranks: 0, 2, 3"),
    "all_gather": (lambda c: c.all_gather("key", "x", SHORT), "all_gather failed -- missing ranks: 0, 2, 3"),
    "barrier": (lambda c: c.barrier("key", SHORT, True), "barrier failed -- missing ranks: 0, 2, 3"),
}


@there
@pytest.mark.parametrize(("call", "store"), list(itertools.product(CALLS, ("hash", "tcp", "prefix"))))
@alone
def test_what_others_do_not_bring_ends_when_the_limit_is_over(call, store):
    made = {
        "hash": dist.HashStore,
        "tcp": lambda: dist.TCPStore("localhost", 0, 1, is_master=True),
        "prefix": lambda: dist.PrefixStore("below", dist.HashStore()),
    }[store]()
    run, text = CALLS[call]
    with pytest.raises(Exception, match=text) as raised:
        run(dist._StoreCollectives(made, 1, 4))
    assert not isinstance(raised.value, DeadlockError)
    made.set("another", "value")
    assert made.get("another") == b"value"  # the limit was of the one call


@there
@alone
def test_a_get_of_the_program_has_no_limit_after_one():
    store = dist.HashStore()
    with pytest.raises(Exception, match="Wait timeout"):
        dist._StoreCollectives(store, 1, 2).broadcast_recv("key", SHORT)
    with pytest.raises(DeadlockError, match="'never'"):
        store.get("never")


@alone
def test_a_tcp_store_is_of_somebody():
    with pytest.raises(ValueError, match="TCPStore world size cannot be 0"):
        dist.TCPStore("localhost", 0, world_size=0, is_master=False)
    assert dist.TCPStore("localhost", 0, 1, is_master=True).port > 0
