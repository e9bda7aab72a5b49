"""@torchemu.distributed: tests that ranks run. Each of these runs pytest on a test file of its own."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

import torchemu
import torchemu.launch.testing  # loaded here, for what an inner pytest loads goes with it

pytestmark = pytest.mark.shows("programs: tests in pytest")

pytest_plugins = ["pytester"]

PREAMBLE = """\
import enum, os, sys
import pytest
import torchemu
import torchemu.pytest_plugin
import torchemu as torch
import torchemu.distributed as dist
"""

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Runs pytest on a file of tests, in this process."""

    def run_tests(text: str, *flags: str, **counts: int) -> pytest.RunResult:
        pytester.makepyfile(PREAMBLE + textwrap.dedent(text))
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider", *flags)
        result.assert_outcomes(**counts)
        return result

    return run_tests


# -- ranks


def test_each_rank_runs_the_test(run: Run) -> None:
    text = """
        @pytest.fixture
        def seen():
            seen = []
            yield seen
            assert seen == [(r, 8, f"{r}") for r in range(8)]

        @torchemu.distributed(world_size=8, topology="sips8")
        def test_sum(seen):
            seen.append((dist.get_rank(), dist.get_world_size(), os.environ["RANK"]))
            tensor = torch.full((4,), dist.get_rank())
            dist.all_reduce(tensor)
            assert tensor.tolist() == [28] * 4
    """
    run(text, passed=1)


@pytest.mark.parametrize(
    ("setting", "ranks", "nodes"),
    [
        ("", 4, 1),
        ("world_size=1", 1, 1),
        ("world_size=6", 6, 1),
        ("topology='sips2'", 2, 1),
        ("topology='nodes2x8'", 16, 2),
        ("topology='nodes2x8', world_size=8", 8, 1),
        ("topology='nodes2x8', world_size=3", 3, 1),
        ("topology='nodes2x8', world_size=64", 64, 1),
    ],
)
def test_number_of_ranks(run: Run, setting: str, ranks: int, nodes: int) -> None:
    text = f"""
        @torchemu.distributed({setting})
        def test_it():
            assert (dist.get_world_size(), os.environ["WORLD_SIZE"]) == ({ranks}, "{ranks}")
            assert os.environ["GROUP_WORLD_SIZE"] == "{nodes}"
            assert os.environ["LOCAL_RANK"] == str(dist.get_rank() % {ranks // nodes})
    """
    run(text, passed=1)


def test_a_default_group_is_there_and_may_be_made(run: Run) -> None:
    text = """
        @torchemu.distributed
        def test_group():
            assert dist.is_initialized()
            dist.init_process_group("nccl")
            dist.all_reduce(torch.ones(1))
            dist.destroy_process_group()
            assert not dist.is_initialized()
    """
    run(text, passed=1)


def test_import_torch_within_ranks(run: Run) -> None:
    text = """
        @torchemu.distributed(world_size=2)
        def test_torch():
            import torch as inner, torch.distributed
            assert inner.Tensor is torchemu.Tensor and torch.distributed is dist

        def test_outside():
            assert "torch" not in sys.modules or sys.modules["torch"] is not torchemu
    """
    run(text, passed=2)


def test_settings(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", topology="name: mine\nsystem: {sips: {count: 3}}\n")
    pytester.makefile(".yaml", ccl="defaults: {algorithm: ring}\n")
    text = """
        import random, time

        @torchemu.distributed(topology="topology.yaml", ccl="ccl.yaml", virtual_clock=True)
        def test_files():
            assert dist.get_world_size() == 3 and time.time() < 1
            time.sleep(1000)
            assert 1000 <= time.time() < 1001

        @pytest.fixture
        def numbers():
            numbers = []
            yield numbers
            assert len(set(numbers)) == 4
            print("numbers", numbers[:1])

        @torchemu.distributed(seed=3)
        def test_seed(numbers):
            numbers.append(random.random())

        @torchemu.distributed(topology="topology.yaml", world_size=4)
        def test_too_large():
            pass
    """
    result = run(text, "-s", passed=2, failed=1)
    result.stdout.fnmatch_lines(["*MisfitError: topology.yaml has 1 node of 3 SIPs, which does not fit*4 ranks*"])
    want = random.Random("3/0").random()
    result.stdout.fnmatch_lines([f"*numbers [[]{want}]*"])


# -- pytest


def test_fixtures_and_parameters(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import pytest\n@pytest.fixture(params=[1, 2])\ndef number(request): return request.param")
    text = """
        class Mode(enum.Enum):
            SLOW = 1
            FAST = 2

        class Resource:
            def __init__(self, lock):
                self.lock = lock  # cannot be pickled

        @pytest.fixture
        def resource():
            return Resource((x for x in ""))

        @pytest.mark.parametrize("mode", Mode)
        @torchemu.distributed(world_size=2)
        def test_it(number, mode, tmp_path, monkeypatch, resource, request):
            assert number in (1, 2) and mode in (Mode.SLOW, Mode.FAST) and type(mode) is Mode
            monkeypatch.setenv("SET", str(dist.get_rank()))
            (tmp_path / str(dist.get_rank())).touch()
            dist.all_reduce(torch.ones(1))
            assert os.environ["SET"] == str(dist.get_rank()) and type(resource).__name__ == "Resource"
            assert request.node.name.startswith("test_it[")

        def test_after():
            assert "SET" not in os.environ and "RANK" not in os.environ
    """
    run(text, passed=5)


def test_methods(run: Run) -> None:
    text = """
        import unittest

        class TestPlain:
            def setup_method(self):
                self.number = 5

            @torchemu.distributed(world_size=3)
            def test_it(self):
                assert type(self) is TestPlain and self.number == 5
                self.number = dist.get_rank()
                dist.all_reduce(torch.ones(1))
                assert self.number == dist.get_rank()

        class TestOfUnittest(unittest.TestCase):
            @torchemu.distributed(world_size=3)
            def test_it(self):
                self.assertEqual(dist.get_world_size(), 3)
    """
    run(text, passed=2)


def test_globals_are_each_ranks(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(library="state = []")
    text = """
        import library
        own = []

        @torchemu.distributed(world_size=3)
        def test_it():
            own.append(1)
            library.state.append(1)
            dist.all_reduce(torch.ones(1))
            assert own == library.state == [1]

        def test_after():
            assert own == library.state == []
    """
    run(text, passed=2)


@pytest.mark.parametrize("mode", ["prepend", "append", "importlib"])
def test_import_modes(pytester: pytest.Pytester, mode: str) -> None:
    text = "from . import parts\nown = []\n@torchemu.distributed\ndef test_it():\n    own.append(1)\n"
    text += "    assert own == [1] and parts.number == 5\n    assert len(own) == 2"
    folder = pytester.mkpydir("package")
    (folder / "parts.py").write_text("number = 5")
    (folder / "test_it.py").write_text(PREAMBLE + text)
    result = pytester.runpytest_inprocess(f"--import-mode={mode}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E       assert 1 == 2", "E        +  where 1 = len([[]1[]])"])


def test_functions_within_functions_run_as_they_are(run: Run) -> None:
    text = """
        def test_it():
            seen = []

            @torchemu.distributed(world_size=3)
            def each(word, end=""):
                seen.append(word + end)

            each("a", end="!")
            assert seen == ["a!"] * 3
    """
    run(text, passed=1)


def test_other_decorators(run: Run) -> None:
    text = """
        import functools

        def named(function):
            @functools.wraps(function)
            def call(*args, **kwargs):
                return function(*args, name="by " + function.__name__, **kwargs)
            return call

        @torchemu.distributed(world_size=2)
        @named
        def test_within(tmp_path, name=None):
            assert name == "by test_within"

        @named
        @torchemu.distributed(world_size=2)
        def test_around(tmp_path, name=None):
            assert name == "by test_around"

        @pytest.mark.xfail(raises=ZeroDivisionError, strict=True)
        @torchemu.distributed(world_size=2)
        def test_fails():
            1 / 0

        @torchemu.distributed(world_size=2)
        @pytest.mark.skip
        def test_skipped():
            raise AssertionError
    """
    run(text, passed=2, xfailed=1, skipped=1)


def test_skip_and_output_and_logs(run: Run) -> None:
    text = """
        import logging

        @torchemu.distributed
        def test_skip():
            if dist.get_rank() == 2:
                pytest.skip("rank 2 wants to")
            dist.all_reduce(torch.ones(1))

        @torchemu.distributed(world_size=2)
        def test_skip_and_failure():
            if dist.get_rank() == 0:
                pytest.skip("rank 0 wants to")
            assert not "rank 1"

        @torchemu.distributed(world_size=2)
        def test_output(capsys, caplog):
            print("rank", dist.get_rank())
            logging.getLogger("x").error("of %d", dist.get_rank())
            dist.all_reduce(torch.ones(1))
            if dist.get_rank() == 1:
                assert capsys.readouterr().out == "rank 0\\nrank 1\\n"
                assert [r.getMessage() for r in caplog.records] == ["of 0", "of 1"]

        @torchemu.distributed(world_size=2)
        def test_raises_and_warns():
            import warnings
            with pytest.raises(ValueError, match="no"), pytest.warns(UserWarning):
                warnings.warn("w")
                dist.all_reduce(torch.ones(1))
                raise ValueError("no")
    """
    result = run(text, "-rs", passed=2, skipped=1, failed=1)
    result.stdout.fnmatch_lines(["*rank 2 wants to*"])


# -- failures


def test_failure_shows_the_assertion_of_a_rank(run: Run) -> None:
    text = """
        @torchemu.distributed(world_size=4)
        def test_it():
            rank = dist.get_rank()
            numbers = [rank, 5]
            assert numbers == [0, 5] or rank == 2
            dist.all_reduce(torch.ones(1))
    """
    result = run(text, "-l", failed=1)
    result.stdout.fnmatch_lines(
        [
            "    @torchemu.distributed(world_size=4)",
            "    def test_it():",
            ">       assert numbers == [[]0, 5[]] or rank == 2",
            "E       assert ([[]1, 5[]] == [[]0, 5[]]",
            "E         At index 0 diff: 1 != 0",
            "E       This is rank 1, the first to fail, at *.??? us of simulated time.",
            "E       After it failed",
            "E         rank 3: AssertionError: assert ([[]3, 5[]] == [[]0, 5[]]",
            "numbers * = [[]1, 5[]]",
            "rank * = 1",
            "test_failure_shows_the_assertion_of_a_rank.py:*: AssertionError",
        ]
    )
    assert "testing.py" not in result.stdout.str() and "_tasks.py" not in result.stdout.str()


def test_failure_within_torchemu_is_shown_where_it_was_called(run: Run) -> None:
    text = """
        def helper():
            dist.all_reduce([1])

        @torchemu.distributed(world_size=1)
        def test_it():
            helper()
    """
    result = run(text, failed=1)
    result.stdout.fnmatch_lines([">       dist.all_reduce([[]1[]])", "E       TypeError: Invalid function argument*"])
    assert "_collectives.py" not in result.stdout.str()


def test_deadlock_fails_the_test(run: Run) -> None:
    text = """
        @torchemu.distributed(world_size=2)
        def test_it():
            if dist.get_rank() == 1:
                tensor = torch.ones(1)
                dist.all_reduce(tensor)
                tensor.item()
    """
    result = run(text, failed=1)
    result.stdout.fnmatch_lines(["E*DeadlockError: deadlock*", "E*likely cause: rank 0 ended*"])


def test_exit_of_a_rank_fails_the_test(run: Run) -> None:
    text = """
        @torchemu.distributed(world_size=2)
        def test_exits_with_0():
            sys.exit(0)

        @torchemu.distributed(world_size=2)
        def test_exits_with_3():
            sys.exit(3)
    """
    run(text, passed=1, failed=1).stdout.fnmatch_lines(["E*SystemExit: 3"])


def test_after_a_failure_all_is_as_before(run: Run) -> None:
    text = """
        import random
        before = random.random

        @torchemu.distributed
        def test_it():
            os.environ["LEFT"] = "1"
            sys.path.clear()
            assert 0

        def test_after():
            assert "LEFT" not in os.environ and sys.path and random.random is before
    """
    run(text, passed=1, failed=1)


# -- the decorator


@pytest.mark.parametrize("value", [5, int, "name"])
def test_only_functions(value: object) -> None:
    with pytest.raises(TypeError, match="for test functions"):
        torchemu.distributed(value)


def test_no_coroutines_and_generators() -> None:
    async def coroutine() -> None:
        pass

    def generator() -> object:
        yield

    for function in (coroutine, generator):
        with pytest.raises(TypeError, match="is not a plain one"):
            torchemu.distributed(world_size=2)(function)


def test_settings_are_checked_at_once() -> None:
    with pytest.raises(ValueError, match="world_size must be at least 1, not 0"):
        torchemu.distributed(world_size=0)
    for number in ("2", 2.0):
        with pytest.raises(TypeError, match=f"world_size must be an integer, not {number!r}"):
            torchemu.distributed(world_size=number)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="worldsize"):
        torchemu.distributed(worldsize=2)


def test_name_and_signature_are_the_functions() -> None:
    @torchemu.distributed
    def test_it(tmp_path: object) -> None:
        """Says what it tests."""

    assert (test_it.__name__, test_it.__doc__) == ("test_it", "Says what it tests.")


# -- the plugin


def test_plugin_is_light() -> None:
    code = "import sys, torchemu.pytest_plugin as p; print(sorted({'numpy', 'greenlet', 'json'} & sys.modules.keys()),"
    code += " sorted(m for m in sys.modules if m.startswith('torchemu')))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "[] ['torchemu', 'torchemu.aliases', 'torchemu.marks', 'torchemu.pytest_plugin']\n"


@pytest.mark.parametrize("setting", ["true", "false"])
def test_torchemu_as_torch(pytester: pytest.Pytester, setting: str) -> None:
    pytester.makeini(f"[pytest]\ntorchemu_as_torch = {setting}\n")
    pytester.makepyfile(library="import torch.distributed as dist\nfrom torch import ones")
    text = """
        torch = pytest.importorskip("torch")
        import library

        @torchemu.distributed(world_size=3)
        def test_it():
            tensor = library.ones(2)
            library.dist.all_reduce(tensor)
            assert tensor.tolist() == [3, 3] and torch.Tensor is torchemu.Tensor
    """
    pytester.makepyfile(PREAMBLE.replace("import torchemu as torch\n", "") + textwrap.dedent(text))
    pytester.runpytest_inprocess().assert_outcomes(**({"passed": 1} if setting == "true" else {"skipped": 1}))
