"""torchemu run: its flags, its exit status, and what it prints."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from conftest import YamlFile
from launch import launch, lines, written

from torchemu.launch import cli
from torchemu.runtime import fabric

SHOW = """
    import os
    print(*(os.environ[name] for name in {names!r}))
"""


def shown(folder: Path, *flags: str, names: str) -> list[str]:
    """The values of environment variables, a line for each rank."""
    return lines(launch(*flags, written(folder, SHOW.format(names=names.split()))))


# -- flags


@pytest.mark.parametrize(
    ("flags", "ranks"),
    [
        ([], 4),
        (["--nproc-per-node", "3"], 3),
        (["--nproc_per_node=3"], 3),
        (["--nproc-per-node", "auto"], 4),
        (["--nproc-per-node", "gpu", "--topology", "sips8"], 8),
        (["--topology", "nodes2x8"], 16),
        (["--topology", "nodes2x8", "--nnodes", "1"], 8),
        (["--topology", "nodes2x8", "--nproc-per-node", "8"], 8),
        (["--nnodes=2", "--nproc-per-node=3"], 6),
        (["--nnodes", "1:2"], 8),
        (["--nproc-per-node", "1"], 1),
    ],
)
def test_number_of_ranks(tmp_path: Path, flags: list[str], ranks: int) -> None:
    got = shown(tmp_path, *flags, names="RANK WORLD_SIZE")
    assert sorted(got, key=lambda line: int(line.split()[0])) == [f"{r} {ranks}" for r in range(ranks)]


def test_variables_of_each_rank(tmp_path: Path) -> None:
    names = "RANK LOCAL_RANK GROUP_RANK NODE_RANK ROLE_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_WORLD_SIZE"
    got = shown(tmp_path, "--nnodes", "2", "--nproc-per-node", "2", names=names)
    assert got == ["0 0 0 0 0 4 2 2", "1 1 0 0 1 4 2 2", "2 0 1 1 2 4 2 2", "3 1 1 1 3 4 2 2"]


def test_what_else_torchrun_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    names = "OMP_NUM_THREADS TORCHELASTIC_USE_AGENT_STORE TORCH_NCCL_ASYNC_ERROR_HANDLING"
    assert shown(tmp_path, "--nproc-per-node", "2", names=names) == ["1 True 1"] * 2
    assert "OMP_NUM_THREADS" not in os.environ
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert shown(tmp_path, "--nproc-per-node", "2", names="OMP_NUM_THREADS") == ["3", "3"]


def test_meeting_place(tmp_path: Path) -> None:
    names = "MASTER_ADDR MASTER_PORT TORCHELASTIC_RUN_ID ROLE_NAME"
    assert shown(tmp_path, "--nproc-per-node=1", names=names) == ["127.0.0.1 29500 none default"]
    flags = ["--master_addr", "a", "--master-port", "7", "--rdzv_id", "job", "--role", "trainer"]
    assert shown(tmp_path, "--nproc-per-node=1", *flags, names=names) == ["a 7 job trainer"]


def test_flags_of_torchrun_that_mean_nothing(tmp_path: Path) -> None:
    flags = ["--standalone", "--rdzv-backend=c10d", "--rdzv_endpoint", "host:29400", "--rdzv-conf", "a=1"]
    more = ["--start-method", "spawn", "--monitor_interval", "1"]
    assert len(shown(tmp_path, *flags, *more, names="RANK")) == 4


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--nproc-per-node", "0"], "'0' is not a positive number"),
        (["--nproc-per-node", "many"], "'many' is not a positive number"),
        (["--virtual-local-rank"], "--virtual-local-rank is not supported"),
        (["--local-ranks-filter", "a"], "'a' is not a list of numbers, such as 0,1"),
        (["--schedule", "fair"], "invalid choice: 'fair'"),
        (["--explore", "0"], "'0' is not a positive number"),
    ],
)
def test_wrong_flags(tmp_path: Path, flags: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leave:
        cli.main(["run", *flags, str(written(tmp_path, ""))])
    assert leave.value.code == 2
    usage, error = capsys.readouterr().err.splitlines()
    assert usage == "usage: torchemu run [OPTION…] SCRIPT [ARGUMENT…]" and text in error


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--schedule-seed", "0"], "--schedule-seed does nothing without --schedule random or pct, or --explore"),
        (
            ["--schedule", "fifo", "--schedule-seed", "1"],
            "--schedule-seed does nothing without --schedule random or pct",
        ),
        (["--schedule", "fifo", "--explore", "2"], "--explore runs different schedules, of which fifo has one"),
        (["--trace-level", "link"], "--trace-level does nothing without --trace"),
        (["--trace-range", "run"], "--trace-range does nothing without --trace"),
        (["--local-ranks-filter", "1,2"], "--local-ranks-filter: there is no local rank 2; a node has 0 to 1"),
        (["--local-ranks-filter", "-1"], "--local-ranks-filter: there is no local rank -1; a node has 0 to 1"),
    ],
)
def test_flags_that_would_do_nothing(tmp_path: Path, flags: list[str], text: str) -> None:
    outcome = launch("--nproc-per-node", "2", *flags, written(tmp_path, "print(1)"))
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith(f"torchemu: {text}")


def test_help_has_each_flag_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["run", "--help"])
    assert not re.search(r"--[\w-]*_", capsys.readouterr().out)


def test_arguments_are_the_programs(tmp_path: Path) -> None:
    program = written(tmp_path, "import sys; print(sys.argv[1:])")
    arguments = ["--nproc-per-node", "7", "-m", "--", "x y", "-h"]
    assert lines(launch("--nproc-per-node", "2", program, *arguments)) == [repr(arguments)] * 2


def test_name_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import sys; print(__name__, sys.argv[0], __file__, sys.path[0], __package__, __spec__ is None)"
    program = written(tmp_path / "folder", text)
    monkeypatch.chdir(tmp_path)
    outcome = launch("--nproc-per-node", "1", "folder/program.py")
    assert lines(outcome) == [f"__main__ folder/program.py {program} {tmp_path / 'folder'} None True"]


def test_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "x = 5", "some_package/part.py")
    text = "import sys; from .part import x; print(__name__, __package__, sys.argv, __spec__.name, sys.path[0], x)"
    program = written(tmp_path, text, "some_package/program.py")
    monkeypatch.chdir(tmp_path)
    outcome = launch("--nproc-per-node", "2", "-m", "some_package.program", "-a")
    argv = [str(program), "-a"]
    assert lines(outcome) == [f"__main__ some_package {argv} some_package.program {tmp_path} 5"] * 2


# -- fabric


def test_presets_grow(tmp_path: Path) -> None:
    text = "import torch; print(torch.spec['system']['nodes'], torch.spec['system']['sips']['count'])"
    program = written(tmp_path, text)
    assert lines(launch("--nproc-per-node", "1", program)) == ["{'count': 1} 4"]
    assert set(lines(launch("--nproc-per-node", "6", program))) == {"{'count': 1} 6"}
    assert set(lines(launch("--nnodes", "2", "--nproc-per-node", "2", program))) == {"{'count': 2} 4"}


@pytest.mark.parametrize(("sips", "w", "h"), [(12, 4, 3), (7, 7, 1), (64, 8, 8), (1, 1, 1)])
def test_resized_torus(sips: int, w: int, h: int) -> None:
    with fabric.fitting("sips16", 3, sips) as topology:
        spec = json.loads(Path(topology).read_text())
        assert fabric.shape(topology) == (3, sips)
    assert (spec["system"]["sips"]["w"], spec["system"]["sips"]["h"]) == (w, h)
    assert spec["name"] == f"sips16, resized to 3 nodes of {sips} SIP{'s' * (sips > 1)}"


def test_files_do_not_grow(tmp_path: Path, yaml_file: YamlFile) -> None:
    file = yaml_file("name: two\nsystem: {sips: {count: 2}}\n")
    program = written(tmp_path, "print(1)")
    assert lines(launch("--topology", file, program)) == ["1", "1"]
    outcome = launch("--topology", file, "--nproc-per-node", "3", program)
    why = "which does not fit 1 node of 3 ranks: each rank needs a SIP, in the node of its number"
    assert (outcome.status, outcome.err) == (1, f"torchemu: {file} has 1 node of 2 SIPs, {why}\n")


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--topology", "moon"], "moon"),
        (["--topology", "no/such.yaml"], "no/such.yaml"),
        (["--ccl", "no/such.yaml"], "no/such.yaml"),
        (["--trace", "no/such/folder/trace"], "no/such/folder"),
    ],
)
def test_wrong_files(tmp_path: Path, flags: list[str], text: str) -> None:
    outcome = launch(*flags, written(tmp_path, "print(1)"))
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith("torchemu: ") and text in outcome.err and "Traceback" not in outcome.err


def test_trace(tmp_path: Path) -> None:
    text = "import torch, torch.distributed as dist; dist.init_process_group(); dist.all_reduce(torch.ones(4))"
    assert lines(launch("--trace", tmp_path / "trace.json", written(tmp_path, text))) == []
    assert "all_reduce" in (tmp_path / "trace.json").read_text()


def test_many_ranks(tmp_path: Path) -> None:
    text = """
        import torch
        import torch.distributed as dist
        dist.init_process_group("nccl")
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        assert tensor.item() == dist.get_world_size()
        if dist.get_rank() == 255:
            print("all there")
    """
    assert lines(launch("--nnodes", "32", "--nproc-per-node", "8", written(tmp_path, text))) == ["all there"]


# -- output


def test_lines_stay_whole(tmp_path: Path) -> None:
    text = """
        import torch
        import torch.distributed as dist

        class Late:
            def __str__(self):
                return str(tensor.item())  # waits for the others in the middle of a print

        dist.init_process_group()
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        print("rank", dist.get_rank(), "has", end=" ")
        print(Late(), "and more")
    """
    assert lines(launch(written(tmp_path, text))) == [f"rank {r} has 4.0 and more" for r in range(4)]


def test_prefix(tmp_path: Path) -> None:
    text = """
        import sys
        print("one\\ntwo")
        print("to err", file=sys.stderr)
        print("a", end="", flush=True)
        print("b", end="")
    """
    outcome = launch("--prefix", "--nproc-per-node", "2", written(tmp_path, text))
    assert outcome.out == "".join(f"[rank{r}]: one\n[rank{r}]: two\n[rank{r}]: ab" for r in range(2))
    assert outcome.err == "[rank0]: to err\n[rank1]: to err\n"


def test_local_ranks_filter(tmp_path: Path) -> None:
    program = written(tmp_path, "import os; print(os.environ['RANK'])")
    flags = ["--nnodes", "2", "--nproc-per-node", "3"]
    assert lines(launch(*flags, "--local-ranks-filter", "0,2", program)) == ["0", "2", "3", "5"]


def test_output_as_a_file(tmp_path: Path) -> None:
    text = """
        import sys
        assert sys.stdout.write("x") == 1
        sys.stdout.writelines(["y", "z\\n"])
        assert not sys.stdout.isatty() and sys.stdout.writable()
        try:
            sys.stdout.write(b"")
        except TypeError as error:
            print(error)
    """
    want = ["write() argument must be str, not bytes", "xyz"]
    assert lines(launch("--nproc-per-node", "1", written(tmp_path, text))) == want


# -- orders of ranks

RACE = """
    import os, pathlib
    import torch
    import torch.distributed as dist
    rank = os.environ["RANK"]
    with open({file!r}, "a") as file:  # a race: who comes first?
        file.write(rank)
    dist.init_process_group()
    t = torch.ones(1)
    dist.all_reduce(t)
    t.item()
    print("checked")
    if rank == "2":
        first = pathlib.Path({file!r}).read_text()[0]
        pathlib.Path({file!r}).unlink()
        assert first != "3", "rank 3 came first"
"""


def test_explore_finds_a_race_and_says_how_to_see_it_again(tmp_path: Path) -> None:
    program = written(tmp_path, RACE.format(file=str(tmp_path / "log")))
    found = launch("--explore", "50", "--schedule-seed", "3", program)
    assert (found.status, found.out) == (1, "")
    assert "AssertionError: rank 3 came first" in found.err
    flags = found.err.splitlines()[-1].removeprefix("fails with ").partition(" switch")[0].rpartition(", ")[0].split()
    assert flags[0] == "--replay" and len(flags) == 2
    again = launch(*flags, program)
    assert again.status == 1 and again.err == "\n".join(found.err.splitlines()[:-1]) + "\n"
    assert lines(launch(program)) == ["checked"] * 4


def test_explore_of_a_correct_program(tmp_path: Path) -> None:
    outcome = launch("--explore", "3", "--schedule", "pct", written(tmp_path, "print(1)"))
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err == "3 runs, --schedule pct with seeds from 0 on: no failure\n"


# -- time


def test_virtual_clock(tmp_path: Path) -> None:
    text = """
        import time
        from time import monotonic_ns
        import torch
        import torch.distributed as dist
        dist.init_process_group()
        rank, start = dist.get_rank(), time.perf_counter()
        assert time.time() == start and time.monotonic() == start and 0 <= start < 1
        time.sleep(360.0 * rank)
        assert time.time() - start == 360.0 * rank, (time.time(), start)
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        tensor.item()
        late = monotonic_ns() / 1e9 - start
        assert 3 * 360 < late < 3 * 360 + 1, late  # the last one's sleep and one all_reduce
        print(rank, "has slept")
    """
    program = written(tmp_path, text)
    assert lines(launch("--virtual-clock", program)) == [f"{r} has slept" for r in range(4)]


def test_virtual_clock_of_timeit(tmp_path: Path) -> None:
    import timeit

    before = (timeit.default_timer, timeit.timeit.__defaults__, timeit.Timer.__init__.__defaults__)
    text = """
        import time
        import timeit
        from timeit import default_timer
        begin = default_timer()
        time.sleep(5.0)
        assert abs(default_timer() - begin - 5.0) < 1e-9
        measured = timeit.repeat("time.sleep(2.0)", "import time", repeat=2, number=3)
        measured += [timeit.timeit(lambda: time.sleep(1.0), number=4), timeit.Timer(lambda: time.sleep(7.0)).timeit(1)]
        print([round(seconds, 6) for seconds in measured])
    """
    outcome = launch("--virtual-clock", "--nproc-per-node", "1", written(tmp_path, text))
    assert lines(outcome) == ["[6.0, 6.0, 4.0, 7.0]"]
    assert before == (timeit.default_timer, timeit.timeit.__defaults__, timeit.Timer.__init__.__defaults__)


def test_virtual_clock_lets_others_run_while_one_asks_again_and_again(tmp_path: Path) -> None:
    text = """
        import time
        import torch
        import torch.distributed as dist
        dist.init_process_group()
        tensor = torch.ones(1 << 20)
        time.sleep(1e-3 * dist.get_rank())
        work = dist.all_reduce(tensor, async_op=True)
        asked = 0
        while not work.is_completed():
            asked += 1
            time.sleep(1e-5)
        print(asked > 0)
    """
    assert lines(launch("--virtual-clock", written(tmp_path, text))) == ["True"] * 4


def test_virtual_clock_ends_with_the_run(tmp_path: Path) -> None:
    import time

    before = (time.time, time.perf_counter, time.monotonic, time.sleep, time.time_ns)
    text = "import time\ntry: time.sleep(-1)\nexcept ValueError as error: print(error)"
    outcome = launch("--virtual-clock", "--nproc-per-node", "1", written(tmp_path, text))
    assert lines(outcome) == ["sleep length must be non-negative"]
    assert before == (time.time, time.perf_counter, time.monotonic, time.sleep, time.time_ns)


def test_clock_is_real_without_the_flag(tmp_path: Path) -> None:
    program = written(tmp_path, "import time; print(time.time() > 1e9)")
    assert lines(launch("--nproc-per-node", "1", program)) == ["True"]
    assert "RANK" not in os.environ


COMMANDS = {
    "a script in PATH": ("does", f"#!{sys.executable}"),
    "a script of pip's": ("does", f"#!/bin/sh\n'''exec' {sys.executable} \"$0\" \"$@\"\n' '''"),
    "a path": ("./does", "#!/usr/bin/env python3"),
    "python": (f"{sys.executable} -u does.py", ""),
    "a module": ("python -m does", ""),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_python_runs_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Ranks run what torchrun would start, where that is a program of Python's."""
    command, first = COMMANDS[name]
    file = written(tmp_path, f"{first}\nimport os, sys\nprint(os.environ['RANK'], sys.argv[1:])\n", "does")
    file.chmod(0o755)
    (tmp_path / "does.py").write_text(file.read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    outcome = launch("--nproc-per-node", "2", "--no-python", *command.split(), "--lr", "1")
    assert lines(outcome) == ["0 ['--lr', '1']", "1 ['--lr', '1']"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--no-python", "ls"], "--no-python: ls is no program of Python's: ranks are such, in this process"),
        (["--no-python", "no_such_command"], "can't open file 'no_such_command': No such file or directory"),
        (["--no-python", "-m", "this"], "--module and --no-python exclude each other"),
    ],
)
def test_commands_that_no_python_refuses(words: list[str], says: str) -> None:
    assert says in launch(*words).err
