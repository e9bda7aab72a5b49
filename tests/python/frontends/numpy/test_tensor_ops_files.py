"""torch.save and torch.load, pickle, copies, DLPack, printing."""

from __future__ import annotations

import copy
import io
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import NUMPY, OpenWorld, same
from tensor_oracle import tensor

import torchemu as torch

pytestmark = pytest.mark.shows("PyTorch: torch.save and torch.load")


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def again(obj: Any, **options: Any) -> Any:
    """The object after it was written and read."""
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return torch.load(file, **options)


def test_what_belongs_to_tensors() -> None:
    d = again(
        {"size": torch.ones(2, 3).shape, "dtype": torch.float16, "device": torch.device("cuda:1"), "list": [1, "x"]}
    )
    assert type(d["size"]) is torch.Size and d["size"] == (2, 3)
    assert d["dtype"] is torch.float16 and d["device"] == torch.device("cuda:1") and d["list"] == [1, "x"]


def test_views_share_memory_again() -> None:
    t = torch.arange(6.0).reshape(3, 2)
    d = again({"transposed": t.t(), "row": t[1], "empty": t[:0]})
    assert d["transposed"].stride() == (1, 2) and d["row"].storage_offset() == 2 and d["empty"].shape == (0, 2)
    d["row"].fill_(9)
    assert d["transposed"].tolist() == [[0, 9, 4], [1, 9, 5]]


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("n", [0, 1, 7, 40_000])
def test_every_dtype_comes_back(name: str, n: int) -> None:
    t = tensor(np.arange(n) % 5, name)
    back = again({"x": [t, t[n // 2 :]]})["x"]
    assert same(back[0], t) and same(back[1], t[n // 2 :])
    assert back[0].untyped_storage() == back[1].untyped_storage() and back[0].device == t.device
    for another in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t)):
        assert same(another, t) and another.dtype is t.dtype and another.untyped_storage() != t.untyped_storage()


def test_places() -> None:
    t = {"a": torch.ones(2, device=1), "b": torch.ones(2, device="cpu")}
    assert [again(t)[k].device for k in "ab"] == [torch.device("cuda:1"), torch.device("cpu")]
    assert [again(t, map_location="cpu")[k].is_cpu for k in "ab"] == [True, True]
    assert [again(t, map_location={"cuda:1": "cuda:2"})[k].get_device() for k in "ab"] == [2, -1]
    assert [
        again(t, map_location=lambda storage, place: "cuda:3" if place == "cpu" else None)[k].get_device() for k in "ab"
    ] == [1, 3]
    assert again(t, map_location=torch.device("ahbm:2"))["b"].device == 2


class Gadget:
    """Something that is not a tensor."""

    def __init__(self, t: torch.Tensor) -> None:
        self.t = t


def test_files_that_may_do_anything() -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"Weights only load failed. The file wants to call .*Gadget"):
        again(Gadget(torch.ones(1)))
    assert again(Gadget(torch.ones(1)), weights_only=False).t.item() == 1


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "missing.pt")
    (tmp_path / "text.pt").write_text("hello")
    with pytest.raises(RuntimeError, match=r"text.pt: this is no file of torch.save of torchemu.s NumPy front end"):
        torch.load(tmp_path / "text.pt")


# -- copies


def test_deep_copies_keep_what_is_shared() -> None:
    t = torch.arange(6, device=2, name="x")
    t.mark = [1]  # programs put attributes on tensors
    a, b = copy.deepcopy([t, t[2:]])
    b[0] = 9
    assert a.tolist() == [0, 1, 9, 3, 4, 5] and t.tolist() == list(range(6))
    assert (a.device, a.name, a.mark) == (2, "x", [1])
    back = pickle.loads(pickle.dumps(t))
    assert (back.device, back.name, back.mark) == (2, "x", [1])
    shallow = copy.copy(t)
    shallow[0] = 7
    assert t[0].item() == 7


def test_other_libraries_share_the_memory() -> None:
    buffer = bytearray(b"\x01\x00\x02\x00")
    view = torch.frombuffer(buffer, dtype=torch.int16)
    view[0] = 5
    assert buffer[0] == 5 and view.tolist() == [5, 2]
    assert torch.frombuffer(buffer, dtype=torch.int16, count=1, offset=2).tolist() == [2]
    with pytest.raises(ValueError, match=r"offset must be non-negative"):
        torch.frombuffer(buffer, dtype=torch.int16, offset=9)
    result = np.sqrt(torch.tensor([4.0]))
    assert isinstance(result, torch.Tensor) and result.tolist() == [2]


# -- assert_close


def test_what_is_close() -> None:
    near = torch.testing.assert_close
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    near(a, a + 1e-6)
    near([a, 1], [a.clone(), 1])
    near(a, a + 0.5, rtol=0, atol=0.6)
    near(torch.tensor([math.nan]), torch.tensor([math.nan]), equal_nan=True)
    near(a, a.double(), check_dtype=False)
    b = a.clone()
    b[1, 0] = 2
    with pytest.raises(AssertionError) as raised:
        near(a, b)
    assert str(raised.value) == CLOSE
    for other, text in (
        (a.double(), "The values for attribute 'dtype' do not match: torch.float32 != torch.float64."),
        (a.cpu(), "The values for attribute 'device' do not match: ahbm:0 != cpu."),
        (a[:1], r"The values for attribute 'shape' do not match: torch.Size"),
    ):
        with pytest.raises(AssertionError, match=text):
            near(a, other)
    with pytest.raises(AssertionError, match=r"^mine$"):
        near([a], [b], msg="mine")
    with pytest.raises(AssertionError, match="The length of the sequences mismatch: 2 != 1"):
        near([a, a], [a])
    with pytest.raises(ValueError, match="but got no atol"):
        near(a, a, rtol=0.1)


CLOSE = """Tensor-likes are not close!

Mismatched elements: 1 / 4 (25.0%)
Greatest absolute difference: 1.0 at index (1, 0) (up to 1e-05 allowed)
Greatest relative difference: 0.5 at index (1, 0) (up to 1.3e-06 allowed)"""


# -- printing: texts as PyTorch 2.15 has them, on the host

PRINTED: list[tuple[Any, str]] = [
    (lambda: torch.tensor([1.0, 2.0]), "tensor([1., 2.])"),
    (lambda: torch.tensor([1.5, -2.0]), "tensor([ 1.5000, -2.0000])"),
    (lambda: torch.tensor([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
    (lambda: torch.tensor([1e9]), "tensor([1.0000e+09])"),
    (lambda: torch.tensor([1e8]), "tensor([100000000.])"),
    (lambda: torch.tensor([math.inf, 1.0, math.nan]), "tensor([inf, 1., nan])"),
    (lambda: torch.tensor([0.0, -0.0]), "tensor([0., -0.])"),
    (lambda: torch.tensor(3.14159265), "tensor(3.1416)"),
    (lambda: torch.tensor([True, False]), "tensor([ True, False])"),
    (lambda: torch.tensor([[1, -2], [300, 4]]), "tensor([[  1,  -2],\n        [300,   4]])"),
    (lambda: torch.tensor([1, 2], dtype=torch.uint8), "tensor([1, 2], dtype=torch.uint8)"),
    (lambda: torch.tensor([1.1], dtype=torch.bfloat16), "tensor([1.1016], dtype=torch.bfloat16)"),
    (lambda: torch.tensor([]), "tensor([])"),
    (lambda: torch.zeros(2, 0), "tensor([], size=(2, 0))"),
    (lambda: torch.zeros(0, dtype=torch.int64), "tensor([], dtype=torch.int64)"),
    (lambda: torch.arange(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    (
        lambda: torch.arange(27, dtype=torch.int32),
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26], dtype=torch.int32)",
    ),
    (lambda: torch.ones(2, 1, 2), "tensor([[[1., 1.]],\n\n        [[1., 1.]]])"),
    (lambda: [torch.tensor(1)], "[tensor(1)]"),
    (lambda: torch.zeros(2).shape, "torch.Size([2])"),
]


@pytest.mark.parametrize(("make", "text"), PRINTED)
def test_printing(make: Any, text: str) -> None:
    with torch.device("cpu"):
        assert repr(make()) == text


SUMMARY = """\
tensor([[    0,     1,     2,  ...,   197,   198,   199],
        [  200,   201,   202,  ...,   397,   398,   399],
        [  400,   401,   402,  ...,   597,   598,   599],
        ...,
        [39400, 39401, 39402,  ..., 39597, 39598, 39599],
        [39600, 39601, 39602,  ..., 39797, 39798, 39799],
        [39800, 39801, 39802,  ..., 39997, 39998, 39999]])"""


def test_summaries_of_large_tensors() -> None:
    assert repr(torch.arange(40_000, device="cpu").reshape(200, 200)) == SUMMARY
    torch.set_printoptions(edgeitems=1, threshold=5, precision=2, sci_mode=False)
    assert repr(torch.arange(6.0, device="cpu") / 4) == "tensor([0.00,  ..., 1.25])"
    torch.set_printoptions(profile="full")
    assert "..." not in repr(torch.arange(2000))
    torch.set_printoptions(profile="default")


def test_printing_names_the_device() -> None:
    t = torch.tensor([1.0])
    assert repr(t) == "tensor([1.], device='ahbm:0')" and str(t) == repr(t)
    assert f"{torch.tensor(1.5):.2f}" == "1.50" and f"{t}" == repr(t)
    assert repr(torch.ones(1, dtype=torch.int8)) == "tensor([1], device='ahbm:0', dtype=torch.int8)"
