"""Simulated devices do what CUDA did when it was recorded; see record_cuda.py."""

import json
import pathlib
import warnings

import pytest

torch = pytest.importorskip("torch", reason="no PyTorch is installed here")

import record_cuda  # noqa: E402

RECORDED = json.loads(pathlib.Path(__file__).with_name("recorded_cuda.json").read_text())

OWN = {
    'sorted(torch.cuda.memory_stats())',
    'torch.empty(1<<50,device="cuda")',
    "repr(torch.cuda.get_device_properties(0))",
}  # fmt: skip
"""Texts that are the simulated device's own."""

OTHER_WORDS = {"F.rms_norm(a,(2,))", "F.instance_norm(c)", "F.dropout(a,.5)", "torch.bernoulli(a)"}
"""Operations that refuse integers as well, but by other kernels."""

COMPUTED = {
    "torch.addcmul(a,a,a)", "a//a", "a%a", "a.round()", "a.floor()", "a.remainder(a)", "a.fmod(a)", "a.kthvalue(1)",
    "a.histc(2)", "torch.trace(a)",
}  # fmt: skip
"""Operations of which CUDA has all kernels but that of bool."""

IN_ADVANCE = {"softmax.int", "log_softmax.int", "norm.Scalar"}
"""Operations that have results in float32 by other means: operands are converted
first, where CUDA does so as it goes."""


@pytest.fixture(scope="module")
def errors():
    from torchemu.frontends.torch import device
    from torchemu.runtime import world

    with world.opened(), device.running(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TypedStorage is deprecated
        return record_cuda.errors()


@pytest.mark.parametrize("text", [text for text in RECORDED["errors"] if text not in OWN])
def test_values_and_errors(errors, text):
    assert errors[text] == RECORDED["errors"][text]


@pytest.fixture(scope="module")
def casts():
    from torchemu.frontends.torch import device
    from torchemu.runtime import world

    with world.opened(), device.running(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some operations are deprecated
        return record_cuda.casts()


@pytest.mark.parametrize("name", RECORDED["casts"])
def test_casts_of_autocast(casts, name):
    if name not in casts:
        pytest.skip("the installed PyTorch has no such operation")
    if name in IN_ADVANCE:
        assert casts[name]["f16"].split()[1] == "float32"
        assert casts[name]["f64"].split()[1] == "float64"
        return
    assert casts[name] == RECORDED["casts"][name]


@pytest.fixture(scope="module")
def of_integers():
    from torchemu.frontends.torch import device
    from torchemu.runtime import world

    with world.opened(), device.running(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # losses warn of shapes, and of means
        return record_cuda.of_integers()


@pytest.fixture(scope="module")
def of_integers_on_host():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return record_cuda.of_integers("cpu")


@pytest.mark.parametrize("text", RECORDED["of integers"])
def test_what_operations_make_of_integers(of_integers, of_integers_on_host, text):
    """CUDA and the host, where they refused alike, do what the host of the installed PyTorch does."""
    ours, recorded = of_integers[text], dict(RECORDED["of integers"][text])
    for dtype in RECORDED["of integers, as on the host"].get(text, ()):
        recorded[dtype] = of_integers_on_host[text][dtype]
    if text in OTHER_WORDS:
        assert all("Error: " in answer for answer in (*ours.values(), *recorded.values()))
        return
    if text in COMPUTED:
        ours.pop("bool"), recorded.pop("bool")
    assert ours == recorded
