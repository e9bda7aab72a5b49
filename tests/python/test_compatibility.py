"""The table of what runs is what tests say that they show, and each of its cells leads to such a test."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from conftest import ROOT

WITH_PYTORCH = re.compile("/(frontends/torch|libraries)/")


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compatibility", ROOT / "docs" / "compatibility.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_table_is_current(maker: ModuleType) -> None:
    assert maker.PAGE.read_text() == maker.page(), "run `make reference`"


def test_cells_lead_to_tests_that_say_so(maker: ModuleType) -> None:
    rows = re.findall(r"^\| (\w.*?) \| (.*?) \| (.*?) \|$", maker.table(), re.MULTILINE)
    assert len(rows) > 30
    for name, *cells in rows:
        links = [re.findall(r"\[✓\]\(\.\./(.*?)\)", cell) for cell in cells]
        assert any(links), name
        for link in (link for cell in links for link in cell):
            assert re.search(rf'pytest\.mark\.shows\("[\w ]+: {re.escape(name)}"\)', (ROOT / link).read_text()), link
        assert all(WITH_PYTORCH.search(link) for link in links[1])
        assert not any(WITH_PYTORCH.search(link) for link in links[0])


@pytest.mark.parametrize(
    "text",
    [
        'import pytest\n@pytest.mark.shows("PyTorch: x")\ndef helper(): pass\n',
        'import pytest\nmark = pytest.mark.shows("PyTorch: x")\n',
        'import pytest\npytestmark = pytest.mark.shows("nothing: x")\n',
    ],
)
def test_marks_are_on_tests(maker: ModuleType, text: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(text)
    with pytest.raises(ValueError, match="no test shows"):
        list(maker.shown(tmp_path / "test_it.py"))
