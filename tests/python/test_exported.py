"""Memory that is found by a place in it, against a search through all of it."""

from __future__ import annotations

import random

from torchemu.runtime.exported_memory import Exported


class Storage:
    """So many bytes from a place on."""

    def __init__(self, start: int, nbytes: int) -> None:
        self.start, self.nbytes = start, nbytes


def test_memory_is_found_as_by_a_search() -> None:
    for seed in range(50):
        rng = random.Random(seed)
        exported, alive, start = Exported(lambda storage: storage.nbytes), [], 1000
        for _ in range(200):
            start += rng.choice((0, 1, 50))
            storage = Storage(start, rng.choice((1, 10, 40)))
            start += storage.nbytes
            exported.add(storage.start, storage)
            alive.append(storage)
            if rng.random() < 0.3:
                alive.pop(rng.randrange(len(alive)))
            del storage
            for address in rng.sample(range(990, start + 10), 5):
                wanted = [s for s in alive if s.start <= address < s.start + s.nbytes]
                found = exported.holding(address)
                assert (found is None) == (not wanted)
                assert found is None or found == (wanted[0].start, wanted[0])
                del wanted, found


def test_memory_within_other_memory() -> None:
    exported = Exported(lambda storage: storage.nbytes)
    whole, part = Storage(1000, 100), Storage(1040, 10)
    exported.add(1000, whole)
    exported.add(1040, part)
    assert [exported.holding(at) for at in (999, 1039, 1045, 1050, 1100)] == [
        None, (1000, whole), (1040, part), (1000, whole), None,
    ]  # fmt: skip


def test_places_of_memory_that_is_gone_are_forgotten() -> None:
    exported, kept = Exported(lambda storage: storage.nbytes), Storage(10, 5)
    exported.add(10, kept)
    for i in range(10_000):
        exported.add(100 + i * 10, Storage(100 + i * 10, 10))
    assert len(exported._starts) < 100 and exported.holding(12) == (10, kept)
