"""Hosts wait for simulated devices where they waited for CUDA's when that was recorded; see record_waits.py."""

import json
import pathlib

import pytest

torch = pytest.importorskip("torch", reason="no PyTorch is installed here")

import record_waits  # noqa: E402

RECORDED = json.loads(pathlib.Path(__file__).with_name("recorded_waits.json").read_text())["waits"]

OTHERWISE = {
    "torch.equal(x, x)",  # one and the same tensor, which CUDA does not look at
    "torch.where(mask, x, number)",  # as with a number of Python's, for which nobody waits
}


@pytest.fixture(scope="module")
def found():
    from torchemu.frontends.torch import device
    from torchemu.runtime import world

    with world.opened(), device.running():
        return record_waits.waits(512, 4)


@pytest.mark.parametrize("call", [call for call in RECORDED if call not in OTHERWISE])
def test_the_host_waits_where_it_did(found, call):
    assert found[call] is RECORDED[call]
