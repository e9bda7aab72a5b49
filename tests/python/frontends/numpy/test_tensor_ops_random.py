"""Random numbers: PyTorch's own after the same seed, each rank's own, and distributed as they should be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch

pytestmark = pytest.mark.shows("PyTorch: random numbers")


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def mersenne_twister(seed: int) -> Iterator[int]:
    """MT19937 as its authors describe it (Matsumoto and Nishimura, 1998), seeded by Knuth's generator."""
    state = [seed & 0xFFFFFFFF]
    for i in range(1, 624):
        state.append((1812433253 * (state[-1] ^ state[-1] >> 30) + i) & 0xFFFFFFFF)
    while True:
        for i in range(624):
            y = (state[i] & 0x80000000) | (state[(i + 1) % 624] & 0x7FFFFFFF)
            state[i] = state[(i + 397) % 624] ^ y >> 1 ^ (0x9908B0DF if y & 1 else 0)
        for y in state:
            y ^= y >> 11
            y ^= y << 7 & 0x9D2C5680
            y ^= y << 15 & 0xEFC60000
            yield y ^ y >> 18


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**32 + 5, -1])
def test_numbers_are_made_of_the_mersenne_twisters_words(seed: int) -> None:
    words = mersenne_twister(seed)
    torch.manual_seed(seed)
    assert torch.rand(700).tolist() == [(next(words) & 0xFFFFFF) / (1 << 24) for _ in range(700)]
    doubles = [((next(words) << 32 | next(words)) & (1 << 53) - 1) / (1 << 53) for _ in range(5)]
    assert torch.rand(5, dtype=torch.float64).tolist() == doubles
    assert torch.randint(3, 17, (9,)).tolist() == [3 + next(words) % 14 for _ in range(9)]
    many = [(next(words) << 32 | next(words)) % 2**40 for _ in range(3)]
    assert torch.randint(2**40, (3,)).tolist() == many
    order = list(range(6))
    for i in range(5):
        j = i + next(words) % (6 - i)
        order[i], order[j] = order[j], order[i]
    assert torch.randperm(6).tolist() == order
    assert torch.empty(4).uniform_(-1, 3).tolist() == pytest.approx(
        [(next(words) & 0xFFFFFF) / (1 << 22) - 1 for _ in range(4)]
    )


def test_after_a_seed_come_the_numbers_that_pytorch_gives() -> None:
    """Recorded from PyTorch 2.15: one call after another."""
    torch.manual_seed(0)
    assert torch.rand(4).tolist() == [0.49625658988952637, 0.7682217955589294, 0.08847743272781372, 0.13203048706054688]
    near = lambda *numbers: pytest.approx(numbers, rel=1e-5)  # noqa: E731 (the library's logarithms differ in the last digit)
    assert torch.randn(3).tolist() == near(-2.1787893772125244, 0.5684312582015991, -1.0845223665237427)
    assert torch.randn(20)[:3].tolist() == near(-0.08853142708539963, 0.5238832831382751, -0.6658713221549988)
    assert torch.randn(20)[-3:].tolist() == near(-0.7607071995735168, -1.5990819931030273, 0.018486667424440384)
    assert torch.rand(2, dtype=torch.float64).tolist() == [0.7486882683183439, 0.3417558526082366]
    assert torch.randn(2, dtype=torch.float64).tolist() == near(-1.3985953953708767, -1.0885836526934918)
    assert torch.randint(0, 100, (5,)).tolist() == [22, 58, 35, 16, 46]
    assert torch.randint(0, 2**40, (2,)).tolist() == [426763888181, 603744397945]
    assert torch.randperm(6).tolist() == [0, 2, 5, 1, 4, 3]
    assert torch.empty(3).normal_(1, 2).tolist() == near(0.46680739521980286, 4.468024730682373, 0.7328627109527588)
    assert torch.empty(3).uniform_(-1, 1).tolist() == [-0.40953028202056885, 0.5933775901794434, -0.6085391044616699]
    assert torch.rand(2, dtype=torch.float16).tolist() == [0.95361328125, 0.8427734375]
    assert torch.randn(17, dtype=torch.bfloat16)[-2:].tolist() == [1.1015625, -1.140625]
    assert torch.empty(2, dtype=torch.int64).random_().tolist() == [8322418558529200329, 368707476352677376]
    assert torch.empty(2).random_().tolist() == [1308441.0, 6687018.0]
    assert torch.rand(1).item() == 0.7742030024528503


@pytest.mark.parametrize("n", [16, 17, 40, 1000])
@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
def test_normal_numbers_come_in_blocks(n: int, kind: str) -> None:
    """Each block of 16 uniform numbers gives 8 radii and 8 angles; the last 16 of an uneven many are a block anew."""
    torch.manual_seed(n)
    uniform = torch.Generator().manual_seed(n)
    wide = torch.float64 if kind == "float64" else torch.float32
    full = n - n % 16
    draws = torch.rand(n if kind != "float16" else full, dtype=wide, generator=uniform).tolist()
    last = torch.rand(16, dtype=wide, generator=uniform).tolist() if n % 16 else []

    def block(u: list[float]) -> list[float]:
        pairs = [(math.sqrt(-2 * math.log(1 - r)), 2 * math.pi * a) for r, a in zip(u[:8], u[8:], strict=True)]
        return [r * math.cos(a) for r, a in pairs] + [r * math.sin(a) for r, a in pairs]

    want = [v for i in range(0, full, 16) for v in block(draws[i : i + 16])]
    want = want[: n - 16] + block(last) if last else want
    tolerance = {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3}[kind]
    assert torch.randn(n, dtype=getattr(torch, kind)).tolist() == pytest.approx(want, rel=tolerance, abs=tolerance)


def test_numbers_are_drawn_in_the_order_of_memory() -> None:
    torch.manual_seed(0)
    straight = torch.rand(2, 3)
    torch.manual_seed(0)
    assert torch.equal(torch.empty(2, 3).t().uniform_().t(), straight)
    torch.manual_seed(0)
    assert torch.empty(12)[::2].uniform_().tolist() == straight.reshape(-1).tolist()


# -- generators


def test_states() -> None:
    g = torch.Generator().manual_seed(3)
    torch.randn(1, generator=g)  # leaves the second of two numbers
    state = g.get_state()
    assert state.dtype is torch.uint8 and state.is_cpu
    first = [torch.randn(3, generator=g).tolist(), torch.rand(2, generator=g).tolist()]
    assert [torch.randn(3, generator=g.set_state(state)).tolist(), torch.rand(2, generator=g).tolist()] == first
    twin = g.clone_state()
    assert torch.rand(5, generator=twin).tolist() == torch.rand(5, generator=g).tolist()
    assert g.initial_seed() == 3 and g.seed() == g.initial_seed() != 3
    saved = torch.get_rng_state()
    inner = torch.rand(3).tolist()
    torch.set_rng_state(saved)
    assert torch.rand(3).tolist() == inner
    torch.cuda.manual_seed_all(5)
    assert torch.initial_seed() == torch.default_generator.initial_seed() == 5
    for call, kind, text in [
        (lambda: g.set_state(state[:-1]), RuntimeError, r"RNG state is wrong size"),
        (lambda: g.set_state(state.int()), TypeError, r"expected a torch.ByteTensor"),
        (lambda: torch.manual_seed(2**64), ValueError, r"has more than 64 bits"),
        (lambda: torch.rand(2, generator=5), TypeError, r"generator must be a torch.Generator, not int"),
    ]:
        with pytest.raises(kind, match=text):
            call()


def test_each_rank_has_numbers_of_its_own() -> None:
    def unseeded(rank: int) -> list[float]:
        return torch.rand(3).tolist()

    def seeded(rank: int) -> list[list[float]]:
        torch.manual_seed(7)
        numbers = [torch.rand(2).tolist()]
        torch.distributed.barrier()  # others draw meanwhile
        return [*numbers, torch.rand(2 + rank).tolist()[:2]]

    torch.distributed.init_process_group()
    first, again = on_ranks(4, unseeded), on_ranks(4, unseeded)
    assert first == again and len({tuple(f) for f in first}) == 4
    assert all(answer == on_ranks(4, seeded)[0] for answer in on_ranks(4, seeded))


# -- distributions


def moments(t: torch.Tensor) -> tuple[float, float]:
    values = t.double().reshape(-1)
    return values.mean().item(), values.std().item()


@pytest.mark.parametrize(
    ("draw", "mean", "std"),
    [
        (lambda: torch.rand(40_000), 0.5, 12**-0.5),
        (lambda: torch.empty(200, 200).uniform_(-2, 4), 1, 6 * 12**-0.5),
        (lambda: torch.randn(40_000), 0, 1),
        (lambda: torch.randint(0, 10, (40_000,)), 4.5, (99 / 12) ** 0.5),
        (lambda: torch.empty(40_000).bernoulli_(0.3), 0.3, 0.21**0.5),
        (lambda: torch.rand_like(torch.zeros(40_000)), 0.5, 12**-0.5),
        (lambda: torch.randn_like(torch.zeros(40_000, dtype=torch.bfloat16)), 0, 1),
    ],
)
def test_distributions(draw: Any, mean: float, std: float) -> None:
    torch.manual_seed(1)
    got = moments(draw())
    assert got[0] == pytest.approx(mean, abs=5 * std / 200) and got[1] == pytest.approx(std, rel=0.03)


def test_what_is_drawn_without_replacement_is_distinct() -> None:
    assert sorted(torch.randperm(500).tolist()) == list(range(500)) and torch.randperm(0).shape == (0,)
    assert np.asarray(torch.rand(3, 0)).shape == (3, 0)


def test_draws_that_cannot_be() -> None:
    x = torch.empty(2)
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: torch.rand(2, dtype=torch.int32), NotImplementedError, r"not implemented for 'Int'"),
        (lambda: x.uniform_(2, 1), RuntimeError, r"found from=2 > to=1"),
        (lambda: x.normal_(0, -1), RuntimeError, r"expects std >= 0.0, but found std -1"),
        (lambda: torch.randint(5, 5, (2,)), RuntimeError, r"'from' to be less than 'to', but got from=5 >= to=5"),
        (lambda: torch.randint(5), TypeError, r"randint\(\) takes \[low,\] high and a size"),
        (lambda: x.bernoulli_(1.5), RuntimeError, r"expects p to be in \[0, 1\], but got p=1.5"),
        (lambda: torch.randperm(-1), RuntimeError, r"n must be non-negative, not -1"),
    ]
    for call, kind, text in cases:
        with pytest.raises(kind, match=text):
            call()
