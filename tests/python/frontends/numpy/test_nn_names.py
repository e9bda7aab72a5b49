"""Every public function and class of torch.nn and torch.optim is there: it works, or says that it does not."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from torchemu.frontends.numpy.nn import _missing

NAMES = Path(__file__).parents[2] / "data" / "torch_nn_names_2_11.txt"
MISSING = {
    "torch.nn": _missing.MODULES,
    "torch.nn.functional": _missing.FUNCTIONS,
    "torch.nn.init": _missing.INITIAL_VALUES,
    "torch.nn.utils": _missing.OF_PARAMETERS,
    "torch.nn.parallel": _missing.PARALLEL,
    "torch.optim": _missing.OPTIMIZERS,
    "torch.optim.lr_scheduler": "",
}


def sections() -> dict[str, list[str]]:
    """The names by module, each list's first being how many follow."""
    found: dict[str, list[str]] = {}
    for line in NAMES.read_text().splitlines():
        title, colon, count = line.partition(": ")
        if colon and not line.startswith("#"):
            names = found[title] = [count]
        elif line and not line.startswith("#"):
            names.append(line)
    return found


def module(title: str) -> Any:
    return importlib.import_module(title.replace("torch", "torchemu", 1))


@pytest.mark.parametrize("title", MISSING)
def test_names(title: str) -> None:
    count, *names = sections()[title]
    missing = set(MISSING[title].split())
    assert len(set(names)) == int(count) and missing <= set(names)
    for name in names:
        found = getattr(module(title), name)
        assert callable(found)
        if name in missing:
            with pytest.raises(NotImplementedError, match=rf"^{title}[\w.]*\.{name} is not supported: \w"):
                found()
        else:
            assert "Not supported" not in (found.__doc__ or ""), name


def test_all_sections_are_looked_at() -> None:
    assert sorted(sections()) == sorted(MISSING)


@pytest.mark.parametrize("title", MISSING)
def test_other_names_are_attribute_errors(title: str) -> None:
    assert not hasattr(module(title), "no_such_name")
    with pytest.raises(AttributeError, match=f"module '{title}' has no attribute 'no_such_name'"):
        module(title).no_such_name  # noqa: B018


def test_they_can_be_imported() -> None:
    from torchemu.nn import Conv2d
    from torchemu.optim import RMSprop

    assert not isinstance(3, Conv2d) and isinstance(RMSprop, type)
