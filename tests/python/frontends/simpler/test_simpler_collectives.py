"""The drivers of benches/simpler: that they run, and that their results are right to the last bit."""

from __future__ import annotations

import argparse
import importlib
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, OpenWorld
from launch import launch
from simpler_cases import IN, INOUT, OUT, called, compiled, domain, run, tensor, window, working

import torchemu as torch
from torchemu.frontends import stand_ins
from torchemu.frontends.simpler.orchestrator import Orchestrator

pytestmark = pytest.mark.shows("libraries: simpler")

DRIVERS = ROOT / "benches" / "simpler"
MODES = ("onephase", "twophase", "ring", "bidirectional_ring")


@pytest.fixture
def drivers(open_world: OpenWorld, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a driver, as in a run."""
    open_world()
    before = set(sys.modules)
    monkeypatch.syspath_prepend(DRIVERS)
    with stand_ins.installed():
        yield importlib.import_module
        for name in set(sys.modules) - before:
            if str(DRIVERS) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def flags(n: int, **more: Any) -> argparse.Namespace:
    """A driver's, for so many chips."""
    usual = {"platform": "a2a3sim", "device": f"0-{n - 1}", "build": False, "pto_isa_commit": None}
    return argparse.Namespace(**{**usual, "kernels": str(DRIVERS), **more})


def inputs(n: int, elements: int) -> np.ndarray:
    """Random float32 numbers of very different sizes for n chips, whose sums depend on the order."""
    seed = 1000 * n + elements
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    scale = np.exp2(random.integers(-12, 12, (n, elements)))
    return (random.standard_normal((n, elements)) * scale).astype(np.float32)


def results(function: Any, cli: argparse.Namespace, given: np.ndarray) -> np.ndarray:
    """Returns what each chip gets."""
    return np.stack([t.numpy() for t in function(cli, [torch.from_numpy(row.copy()) for row in given])])


def summed(given: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """Rows added up in an order, each sum rounded to float32."""
    total = given[order[0]]
    for row in order[1:]:
        total = total + given[row]
    assert total.dtype == np.float32
    return total


def own_first(own: int, n: int) -> list[int]:
    return [own, *(r for r in range(n) if r != own)]


def ring(c: int, n: int, step: int = 1) -> list[int]:
    """in_c + (in_{c-1} + (… + (in_{c+2} + in_{c+1}))): from the innermost on."""
    return [(c + step * (1 + k)) % n for k in range(n)]


def all_reduced(mode: str, given: np.ndarray) -> np.ndarray:
    """Returns what all chips get by a mode, from its order of additions."""
    n, count = given.shape
    if mode == "onephase":
        return np.stack([summed(given, own_first(rank, n)) for rank in range(n)])
    out, chunk = np.empty(count, np.float32), count // n
    for c in range(n):
        whole = slice(c * chunk, (c + 1) * chunk)
        half = c * chunk + chunk // 2
        if mode == "twophase":
            out[whole] = summed(given[:, whole], own_first(c, n))
        else:
            out[whole] = summed(given[:, whole], ring(c, n))
        if mode == "bidirectional_ring":
            second = slice(half, (c + 1) * chunk)
            out[second] = summed(given[:, second], ring(c, n, step=-1))
    return np.stack([out] * n)


def same_bits(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))


@pytest.mark.parametrize("n", [2, 4, 8, 16])
@pytest.mark.parametrize("mode", MODES)
def test_all_reduce(mode: str, n: int, drivers: Any) -> None:
    given = inputs(n, 256)
    got = results(drivers("allreduce").allreduce, flags(n, mode=mode), given)
    same_bits(got, all_reduced(mode, given))
    ranks_differ = any((row != got[0]).any() for row in got)
    assert ranks_differ == (mode == "onephase" and n >= 4)


@pytest.mark.parametrize("n", [2, 4, 8])
@pytest.mark.parametrize("mode", ["onephase", "bidirectional_ring"])
def test_all_reduce_by_kernels_in_python(mode: str, n: int, drivers: Any) -> None:
    given = inputs(n, 256)
    cli = flags(n, mode=mode, kernels=str(DRIVERS / "python"))
    same_bits(results(drivers("allreduce").allreduce, cli, given), all_reduced(mode, given))


@pytest.mark.parametrize("n", [3, 5, 7])
def test_all_reduce_on_odd_numbers(n: int, drivers: Any) -> None:
    given = inputs(n, 256)
    same_bits(results(drivers("allreduce").allreduce, flags(n, mode="onephase"), given), all_reduced("onephase", given))


def test_ibing(drivers: Any) -> None:
    given = inputs(2, 256)
    same_bits(
        results(drivers("allreduce").allreduce, flags(2, mode="ibing"), given), np.stack([given[0] + given[1]] * 2)
    )


def test_ibing_beyond_two_chips(drivers: Any) -> None:
    """Said by the driver, and by the kernel if the driver does not."""
    with pytest.raises(ValueError, match="ibing is for 2 chips, not 4"):
        results(drivers("allreduce").allreduce, flags(4, mode="ibing"), inputs(4, 256))
    chips, given = drivers("chips"), [torch.zeros(256) for _ in range(4)]
    with pytest.raises(ValueError, match="allreduce_ibing: 4 ranks: it is for 2 only"):
        chips.collective("allreduce_ibing", flags(4), given, 256, chips.scratch("scratch", 512, rows=7))


@pytest.mark.parametrize("n", [3, 5, 6, 7])
def test_chunks_have_to_be_whole(n: int, drivers: Any) -> None:
    allreduce = drivers("allreduce").allreduce
    for mode in MODES[1:]:
        with pytest.raises(ValueError, match="256 is no multiple of"):
            results(allreduce, flags(n, mode=mode), inputs(n, 256))


@pytest.mark.parametrize("kernels", [DRIVERS, DRIVERS / "python"], ids=["go", "python"])
@pytest.mark.parametrize("n", [2, 3, 4, 8, 16])
def test_reduce_scatter(n: int, kernels: Path, drivers: Any) -> None:
    given = inputs(n, 64 * n)
    want = [summed(given[:, 64 * d : 64 * d + 64], own_first(d, n)) for d in range(n)]
    got = results(drivers("reduce_scatter").reduce_scatter, flags(n, kernels=str(kernels)), given)
    same_bits(got, np.stack(want))


@pytest.mark.parametrize("n", [2, 3, 16])
def test_those_that_only_move(n: int, drivers: Any) -> None:
    given = inputs(n, 64)
    for kernels in (DRIVERS, DRIVERS / "python"):
        got = results(drivers("allgather").allgather, flags(n, kernels=str(kernels)), given)
        same_bits(got, np.stack([given.reshape(-1)] * n))
    for root in (0, n - 1):
        same_bits(results(drivers("broadcast").broadcast, flags(n, root=root), given), np.stack([given[root]] * n))
    blocks = inputs(n, 64 * n)
    want = blocks.reshape(n, n, 64).swapaxes(0, 1).reshape(n, -1)
    same_bits(results(drivers("all_to_all").all_to_all, flags(n), blocks), want)


def test_hostile_numbers(drivers: Any) -> None:
    """NaN, infinities, zeros of both signs and denormal numbers are moved and added as they are."""
    given = np.array([[np.nan, np.inf, -0.0, 1e-45, 3e38, -np.inf] + [0.0] * 250] * 2, np.float32)
    given[1, :6] = [1, -np.inf, -0.0, 1e-45, 3e38, 5]
    with np.errstate(all="ignore"):
        want = given[0] + given[1]
    got = results(drivers("allreduce").allreduce, flags(2, mode="onephase"), given)
    np.testing.assert_array_equal(got, [want, want])
    np.testing.assert_array_equal(np.signbit(got), np.signbit([want, want]))


# -- as programs


def started(name: str, *arguments: str) -> list[str]:
    """Returns what a driver prints that succeeds."""
    outcome = launch(DRIVERS / name, "-p", "a2a3sim", *arguments)
    assert outcome.status == 0
    assert all(" was not compiled (there is no " in line for line in outcome.err.splitlines())
    return outcome.out.splitlines()


@pytest.mark.parametrize("devices", ["0-1", "0-3", "0-7", "0-15"])
@pytest.mark.parametrize("driver", ["allreduce", "allgather", "reduce_scatter"])
def test_drivers(driver: str, devices: str) -> None:
    chips = int(devices[2:]) + 1
    lines = started(f"{driver}.py", "-d", devices)
    assert len(lines) == chips + 2  # of one host: it is not run once a rank
    assert lines[-1].endswith("all chips matched")


@pytest.mark.parametrize("mode", MODES)
def test_modes(mode: str) -> None:
    lines = started("allreduce.py", "-d", "2-5", "-m", mode, "--build", "--pto-isa-commit", "abc123")
    assert lines[-1] == f"[{mode}] all chips matched"
    assert lines == started("allreduce.py", "-d", "2-5", "-m", mode)


@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        (["broadcast.py", "-d", "0-3", "--root", "2"], "[broadcast] all chips matched"),
        (["all_to_all.py", "-d", "0-3"], "[all_to_all] all chips matched"),
        (["allreduce.py", "-d", "0-1", "-m", "ibing"], "[ibing] all chips matched"),
        (["domain_rank_map.py", "-d", "0-2"], "all sums matched"),
        (["dual_domain_overlap.py", "-d", "0-2"], "both domains matched"),
        (["multi_chip_dispatch.py", "-d", "0-1"], "both chips matched"),
        (["ffn_tp.py", "-d", "0-3"], "all chips matched"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_other_drivers(arguments: list[str], last: str) -> None:
    assert started(*arguments)[-1] == last


@pytest.mark.parametrize(
    ("devices", "said"),
    [("0", "want 2 to 16"), ("0-16", "want 2 to 16"), ("x", "such as 0-3"), ("0-1-2", "such as 0-3")],
)
def test_too_few_or_too_many_chips(devices: str, said: str) -> None:
    outcome = launch(DRIVERS / "allreduce.py", "-d", devices)
    assert outcome.status == 1
    assert said in outcome.err


def test_wrong_results_are_noticed(tmp_path: Path) -> None:
    """Of a kernel that leaves out a peer."""
    folder = tmp_path / "kernels" / "aiv"
    shutil.copytree(DRIVERS / "python" / "kernels" / "aiv", folder)
    kernel = folder / "allreduce_onephase_kernel.py"
    right = "        if peer == ctx.rankId:\n            continue\n"
    assert right in kernel.read_text()
    kernel.write_text(kernel.read_text().replace(right, right.replace("rankId:", "rankId or peer == 2:")))
    outcome = launch(DRIVERS / "allreduce.py", "-d", "0-2", "--kernels", tmp_path)
    assert outcome.status == 1
    assert outcome.out.splitlines()[-1] == "[onephase] golden check FAILED"


def test_unknown_kernel(drivers: Any, tmp_path: Path) -> None:
    chips: ModuleType = drivers("chips")
    cli = flags(2, kernels=str(tmp_path))
    with pytest.raises(RuntimeError) as caught:
        chips.callable_of("mine", [], cli)
    text = str(caught.value)
    assert text.startswith(
        "no kernel is known as 'mine_kernel'. Known without further ado are all_to_all_kernel, allgather"
    )
    assert text.endswith(f"with the instructions of torchemu.pto, in {tmp_path}/kernels/aiv/mine_kernel.py")
    file = tmp_path / "kernels" / "aiv" / "mine_kernel.py"
    file.parent.mkdir(parents=True)
    file.write_text("entry = 3")
    with pytest.raises(RuntimeError, match=r"has no function kernel_entry\(args\)"):
        chips.callable_of("mine", [], cli)
    file.write_text("kernel_entry = print")
    chips.callable_of("mine", [], cli)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"out_elems": 255}, "wants FLOAT32, one block as input and one block as output; it was given"),
        ({"scalars": [0]}, "it was given 3 tensors and 3 scalars"),
    ],
)
def test_arguments_of_known_kernels(changed: dict[str, Any], said: str, drivers: Any) -> None:
    chips = drivers("chips")
    spec = chips.scratch("scratch", 256, rows=1)
    options = {"out_elems": 256, **changed}
    with pytest.raises(ValueError, match=said):
        chips.collective("allreduce", flags(2), [torch.zeros(256) for _ in range(2)], spec=spec, **options)


@pytest.mark.parametrize(
    ("nbytes", "other", "nranks", "said"),
    [
        (1088, False, 2, None),
        (1084, False, 2, "needs 1088 bytes of scratch in the window of device_ctx, where 1084 bytes begin at"),
        (1088, True, 2, "scratch begins at"),
        (1088, False, 3, "nranks is 3, and the domain has 2 members"),
    ],
)
def test_windows_of_known_kernels(
    nbytes: int, other: bool, nranks: int, said: str | None, open_world: OpenWorld
) -> None:
    open_world()
    x, y = tensor(np.ones(256)), [tensor(np.zeros(256)) for _ in range(2)]

    def build(orch: Orchestrator) -> None:
        first, second = (domain(orch, [0, 1], nbytes, name) for name in "ab")
        for i in range(2):
            scratch = window((second if other else first)[i])
            args = called((x, IN), (y[i], OUT), (scratch, INOUT), nranks, first[i].device_ctx)
            orch.submit_next_level(cid, args, worker=i)

    with working() as worker:
        cid = worker.register(compiled("allreduce_kernel.cpp"))
        if said is None:
            run(worker, build)
            return
        with pytest.raises(ValueError, match=said):
            run(worker, build)


# -- what torchemu run makes of it


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("import simpler", 1),
        ("def later():\n    from simpler.worker import Worker\n", 1),
        ("import beside", 1),
        ("simpler = 3", 4),
        ("import simplest", 4),
        ("import broken, missing", 4),
        ("import os.path", 4),
    ],
)
def test_program_that_drives_chips_is_one_host(text: str, hosts: int, tmp_path: Path) -> None:
    """It is, whether it imports simpler itself or through a file beside it."""
    for name, content in {
        "beside": "import further, beside",
        "further": "import simpler",
        "simplest": "",
        "broken": "import (",
    }.items():
        (tmp_path / f"{name}.py").write_text(content)
    program = tmp_path / "program.py"
    program.write_text(f"print('here')\ndef never():\n{textwrap.indent(text, '    ')}\n")
    outcome = launch(program)
    assert (outcome.status, outcome.out) == (0, "here\n" * hosts), outcome.err


def test_number_of_hosts_can_be_given(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import simpler\nprint('here')\n")
    assert launch("--nproc-per-node", "3", program).out == "here\n" * 3


def test_outside_of_a_run_there_is_no_simpler() -> None:
    for name in ("simpler", "simpler_setup"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)


def test_host_clock_passes_with_the_chips(tmp_path: Path) -> None:
    """The time of the program's own clock is that of the run."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, time\n"
        f"sys.path.insert(0, {str(DRIVERS)!r})\n"
        "import simpler, allreduce, chips\n"
        "cli = allreduce.parser().parse_args(['-d', '0-3'])\n"
        "import torch\n"
        "worker = chips.worker_of(cli, [0, 1])\n"
        "cid = worker.register(chips.callable_of('vector_add', [chips.IN], cli))\n"
        "worker.init()\n"
        "a = torch.zeros(64)\n"
        "tags = chips.TensorArgType\n"
        "args = chips.tensors((a, tags.INPUT), (a, tags.INPUT), (a, tags.INOUT))\n"
        "begun = time.perf_counter_ns()\n"
        "timing = worker.run(lambda orch, _, cfg: orch.submit_next_level(cid, args, cfg, worker=0))\n"
        "print(time.perf_counter_ns() - begun, timing.host_wall_us)\n"
    )
    outcome = launch("--virtual-clock", program)
    assert outcome.status == 0, outcome.err
    passed, told = map(float, outcome.out.split())
    assert told > 0
    assert passed == pytest.approx(1000 * told, abs=2)


def test_pytest_of_an_example(tmp_path: Path) -> None:
    """A pytest file of an example gets its chips from the fixtures that simpler's own has."""
    (tmp_path / "example").mkdir()
    (tmp_path / "example" / "__init__.py").touch()
    text = """
        import pytest
        from simpler.worker import Worker

        @pytest.mark.platforms(["a2a3", "a2a3sim", "a5sim"])
        @pytest.mark.runtime("tensormap_and_ringbuffer")
        @pytest.mark.parametrize("n", [1, pytest.param(4, marks=pytest.mark.device_count(4))])
        def test_example(st_platform, st_device_ids, n):
            assert (st_platform, st_device_ids) == ("a2a3sim", list(range(n)))
            Worker(platform=st_platform, device_ids=st_device_ids)
    """
    (tmp_path / "example" / "test_example.py").write_text(textwrap.dedent(text))
    (tmp_path / "pytest.ini").write_text("[pytest]\ntorchemu_as_torch = true\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers", "example"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "2 passed" in done.stdout) == (0, True), done.stdout
