"""Tests of the installed PyTorch as a front end: they are skipped where there is none."""

import pytest

pytest.importorskip("torch", reason="no PyTorch is installed here")


@pytest.fixture
def mode():
    """A World of its own, whose devices operations of the test are charged to."""
    from torchemu.frontends.torch import device
    from torchemu.runtime import world

    with world.opened(), device.running() as mode:
        yield mode
