"""benches/tp_mlp.py and benches/tp_transformer.py, at small sizes."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT

from torchemu.frontends import stand_ins
from torchemu.launch import cli

BENCHES = ROOT / "benches"


@pytest.fixture
def benches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes them importable."""
    monkeypatch.syspath_prepend(str(BENCHES))
    yield
    for name in [n for n in sys.modules if n.partition(".")[0] in ("parallel_models", "tp_mlp", "tp_transformer")]:
        del sys.modules[name]


@pytest.fixture
def mlp(benches: None) -> ModuleType:
    import tp_mlp  # type: ignore[import-not-found]

    return tp_mlp


@pytest.fixture
def transformer(benches: None) -> ModuleType:
    import tp_transformer  # type: ignore[import-not-found]

    return tp_transformer


@pytest.fixture
def gpt(benches: None) -> ModuleType:
    """The model, which can be imported inside a run only."""
    with stand_ins.installed():
        from parallel_models import gpt  # type: ignore[import-not-found]

    return gpt


def cells(text: str) -> list[list[str]]:
    """The rows below the two lines of a header."""
    return [line.split() for line in text.splitlines()[2:]]


# -- the MLP


def test_mlp(mlp: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """One rank has nothing to communicate; more have, and compute less, each its share."""
    assert mlp.main(["--tp", "1", "2", "4", "--hidden", "256", "--tokens", "128"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[0] == "256 → 1024 → 256, 128 tokens, bfloat16; 1024 TFLOPS a SIP"
    table = [(int(tp), name, *map(float, rest)) for tp, name, *rest in cells(out)]
    assert [row[:2] for row in table] == [(n, name) for n in (1, 2, 4) for name in ("forward", "backward", "both")]
    for i in range(0, 9, 3):
        forward, backward, both = table[i : i + 3]
        degree = forward[0]
        for passes, row in ((1, forward), (2, backward), (3, both)):
            time, compute, exposed, mfu = row[2:]
            flops = passes * 2 * 2 * 128 * 256 * 1024
            assert mfu == pytest.approx(100 * flops / (time * 1e-6 * degree * 1024e12), abs=0.006)
            assert compute + exposed <= time
            assert (exposed == 0) == (degree == 1)
        for column in (2, 3, 4):
            assert both[column] == pytest.approx(forward[column] + backward[column], abs=0.002)
    assert table[2][3] > table[5][3] > table[8][3]


def test_mlp_in_parts_of_a_sequence(mlp: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--tp", "2", "--hidden", "128", "--tokens", "64", "--dtype", "float32", "--sequence-parallel"]
    assert mlp.main(options) == 0
    out = capsys.readouterr().out
    assert "float32, sequence parallel; 128 TFLOPS a SIP" in out
    assert len(cells(out)) == 3


def test_mlp_by_the_bench_command(mlp: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    small = mlp.Options(hidden=128, tokens=64)
    monkeypatch.setattr(mlp.Options, "__init__", lambda self: self.__dict__.update(vars(small)))
    monkeypatch.setattr("torchemu.launch.bench.load", lambda _: mlp.run)
    assert cli.main(["bench", str(BENCHES / "tp_mlp.py"), "--topology", "sips2"]) == 0
    out = capsys.readouterr().out
    assert "128 → 512 → 128" in out and "all_reduce" in out
    assert out.splitlines().count("(without tp 4, 8: the topology has 2 SIPs)") == 1
    assert [row.split()[0] for row in out.splitlines() if " both " in row] == ["1", "2"]


def test_intervals(benches: None) -> None:
    from parallel_models.timeline import Pass, covered  # type: ignore[import-not-found]

    assert covered([]) == 0
    assert covered([(5, 7), (1, 4), (3, 6), (3, 3), (9, 10)]) == 7
    both = Pass(20, kernels=[(0, 4), (6, 8)], messages=[(2, 7), (9, 12)])
    assert (both.compute, both.exposed) == (6, 2 + 3)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--tp 3 --hidden 64", "256 hidden elements cannot be divided among 3 ranks"),
        ("--tp 4 --tokens 6 --sequence-parallel", "6 tokens cannot be divided among 4 ranks"),
        ("--tp 0", "'0' is not a positive number"),
        ("--dtype int8", "invalid choice"),
        ("--topology nowhere", "nowhere"),
    ],
)
def test_mlp_options(mlp: ModuleType, capsys: pytest.CaptureFixture[str], options: str, text: str) -> None:
    with pytest.raises(SystemExit):
        mlp.main([*options.split()])
    assert text in capsys.readouterr().err.replace("4 × 64", "256")


# -- the transformer

SMALL = "--hidden 16 --heads 4 --vocabulary 16 --sequence 8 --batch 2"


@pytest.mark.parametrize(
    "dtype", ["float32", *(pytest.param(d, marks=pytest.mark.slow) for d in ("float64", "bfloat16"))]
)
def test_transformer(transformer: ModuleType, capsys: pytest.CaptureFixture[str], dtype: str) -> None:
    assert transformer.main(f"{SMALL} --tp 1 2 4 --steps 16 --dtype {dtype}".split()) == 0
    out, err = capsys.readouterr()
    assert err == ""
    *rows, last = cells(out)
    assert [row[:2] for row in rows] == [["1", "off"], ["2", "off"], ["2", "on"], ["4", "off"], ["4", "on"]]
    assert all(row[-1] == "OK" for row in rows)
    assert all(float(row[3]) < float(row[2]) for row in rows), "it learns nothing"
    assert last[:9] == ["The", "loss", "curves", "agree", "to", "the", "rounding", "of", f"{dtype}:"]


def test_transformer_notices_what_is_not_added_up(
    transformer: ModuleType, gpt: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the sums of what sequence-parallel ranks have each for themselves, parameters drift apart."""
    monkeypatch.setattr(gpt, "finalize_model_grads", lambda _: None)
    assert transformer.main(f"{SMALL} --tp 1 2 --steps 3".split()) == 1
    *rows, last = cells(capsys.readouterr().out)
    assert [row[6:] for row in rows] == [["OK"], ["OK"], ["FAILED"]]
    assert "do NOT agree" in " ".join(last)


def test_transformer_by_the_bench_command(
    transformer: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = transformer.Options(steps=2, hidden=16, heads=4, vocabulary=16, sequence=8, batch=2)
    monkeypatch.setattr(transformer.Options, "__init__", lambda self: self.__dict__.update(vars(small)))
    monkeypatch.setattr("torchemu.launch.bench.load", lambda _: transformer.run)
    assert cli.main(["bench", str(BENCHES / "tp_transformer.py"), "--topology", "sips2"]) == 0
    assert "The loss curves agree" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--hidden 30 --heads 4", "30 hidden elements cannot be divided among 4 heads"),
        ("--tp 3", "--heads 8 cannot be divided among 3 ranks"),
        ("--tp 2 --vocabulary 15", "--vocabulary 15 cannot be divided among 2 ranks"),
        ("--tp 2 --sequence 9", "--sequence 9 cannot be divided among 2 ranks"),
    ],
)
def test_transformer_options(
    transformer: ModuleType, capsys: pytest.CaptureFixture[str], options: str, text: str
) -> None:
    with pytest.raises(SystemExit):
        transformer.main(options.split())
    assert text in capsys.readouterr().err


def test_texts_follow_a_rule(gpt: ModuleType, open_world: Any) -> None:
    """The next token is the token and a step, which the first token tells; the same on every rank."""
    open_world("default")
    task = gpt.Task(vocabulary=10, sequence=6, batch=5)
    (tokens, labels), (again, _) = (next(iter(gpt.Texts(task))) for _ in range(2))
    assert (tokens == again).all()
    for row, following in zip(tokens.tolist(), labels.tolist(), strict=True):
        whole = [*row, following[-1]]
        assert row[1:] == following[:-1]
        assert [(b - a) % 10 for a, b in itertools.pairwise(whole)] == [(2 * (row[0] % 4) + 1) % 10] * 6
