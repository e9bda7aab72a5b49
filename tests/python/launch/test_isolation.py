"""Ranks look to their programs like processes: what is one's own, and what is as it was after the run."""

from __future__ import annotations

import builtins
import logging
import os
import random
import subprocess
import sys
import textwrap
import threading
import time
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launch import Outcome, launch, lines, written

import torchemu

PREAMBLE = """\
import os, sys
import torch
import torch.distributed as dist
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
def others_run():
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == size
"""


def ranks(folder: Path, text: str, *flags: str, nproc: int = 3) -> Outcome:
    """Runs a program that begins with PREAMBLE, under an order of ranks that is not that of their numbers."""
    program = written(folder, PREAMBLE + textwrap.dedent(text))
    return launch("--schedule", "random", "--nproc-per-node", str(nproc), *flags, program)


def check(folder: Path, text: str, *flags: str, nproc: int = 3) -> None:
    """Runs a program that checks for itself."""
    outcome = ranks(folder, text, *flags, nproc=nproc)
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")


# -- modules


def test_globals_differ(tmp_path: Path) -> None:
    written(tmp_path, "seen = []\ndef see(x):\n    seen.append(x)\n    return seen\n", "library.py")
    text = """
        import library
        from library import see
        own = [rank]
        others_run()
        see(rank)
        others_run()
        assert own == [rank] and library.seen == [rank]
        assert sys.modules["library"] is library and sys.modules[__name__].own is own
    """
    check(tmp_path, text)


def test_packages_of_the_program(tmp_path: Path) -> None:
    written(tmp_path, "from . import inner\nfrom .inner import number", "outer/__init__.py")
    written(tmp_path, "import os\nnumber = int(os.environ['RANK'])", "outer/inner.py")
    written(tmp_path, "import outer.inner\nnumber = outer.inner.number + 10", "spaces/module.py")  # no __init__.py
    text = """
        import outer.inner, spaces.module
        others_run()
        from outer import inner
        import importlib
        assert outer.number == inner.number == outer.inner.number == rank
        assert importlib.import_module("spaces.module").number == rank + 10
        assert importlib.import_module(".inner", "outer") is outer.inner
        inner.number = -rank
        others_run()
        assert importlib.reload(inner).number == rank
    """
    check(tmp_path, text)


def test_other_ranks_run_in_the_middle_of_an_import(tmp_path: Path) -> None:
    text = "from __main__ import others_run, rank\nbefore = rank\nothers_run()\nafter = rank"
    written(tmp_path, text, "slow.py")
    text = """
        if rank == 1:
            others_run()
        import slow
        if rank != 1:
            others_run()
        assert (slow.before, slow.after) == (rank, rank) and sys.modules["slow"] is slow
    """
    check(tmp_path, text)


def test_modules_that_a_rank_puts_in_place_or_removes(tmp_path: Path) -> None:
    written(tmp_path, "import sys\nsys.modules[__name__] = (__name__, 'stands for the module')", "replaced.py")
    written(tmp_path, "", "plain.py")
    text = """
        import types
        import replaced, plain
        stub = sys.modules["missing"] = types.ModuleType("missing")
        stub.rank = rank
        others_run()
        import missing
        assert missing.rank == rank and replaced == ("replaced", "stands for the module")
        if rank == 0:
            sys.modules["plain"] = "changed"
        if rank == 1:
            del sys.modules["plain"]
        others_run()
        state = sys.modules.get("plain")
        assert state == ("changed" if rank == 0 else None if rank == 1 else plain), state
    """
    check(tmp_path, text)
    assert not {"missing", "plain", "replaced"} & sys.modules.keys()


def test_a_library_is_compiled_once_and_run_in_each_rank(tmp_path: Path) -> None:
    written(tmp_path, "def f(): pass", "library.py")
    text = """
        import inspect
        import library
        library.f.rank = rank
        others_run()
        assert library.f.rank == rank
        assert inspect.getsource(library.f) == "def f(): pass\\n"
        print(id(library.f.__code__))
    """
    assert len(set(lines(ranks(tmp_path, text)))) == 1


def test_standard_library_and_torch_are_everybodys(tmp_path: Path) -> None:
    text = """
        import json, numpy, torchemu
        assert torch.Tensor is torchemu.Tensor and torch.distributed is dist and dist is torchemu.distributed
        assert torch.__spec__.name == "torchemu.frontends.numpy"
        assert dist.__spec__.name == "torchemu.frontends.numpy.distributed"
        from importlib import metadata
        assert metadata.version("torch") == metadata.version("Torch") == torch.__version__
        assert metadata.distribution("torch").metadata["Name"] == "torch"
        assert metadata.packages_distributions()["torch"][0] == "torch"
        assert metadata.version("numpy") == numpy.__version__
        print(id(json), id(numpy), id(torch), id(torch.multiprocessing))
    """
    assert len(set(lines(ranks(tmp_path, text)))) == 1


@pytest.mark.parametrize(
    ("name", "flags", "own"), [("plain", [], False), ("plain", ["--isolate", "plain"], True), ("megatron", [], True)]
)
def test_installed_packages(tmp_path: Path, name: str, flags: list[str], own: bool) -> None:
    written(tmp_path, "state = []", f"lib/site-packages/{name}/core.py")
    written(tmp_path, "", f"lib/site-packages/{name}/__init__.py")
    written(tmp_path, "", f"lib/site-packages/{name}/without_init/first.py")
    written(tmp_path, "", f"lib/site-packages/{name}/without_init/second.py")
    text = f"""
        sys.path.append({str(tmp_path / "lib" / "site-packages")!r})
        import {name}.core, {name}.without_init.first
        {name}.core.state.append(rank)
        others_run()
        from {name}.without_init import second
        print(len({name}.core.state))
    """
    try:
        assert lines(ranks(tmp_path, text, *flags)) == (["1", "1", "1"] if own else ["3", "3", "3"])
    finally:
        loaded = [module for module in sys.modules if module.partition(".")[0] == name]
        for module in loaded:
            del sys.modules[module]
    assert bool(loaded) != own


@pytest.mark.parametrize(("records", "own"), [("plain-1.0.dist-info", False), ("plain.egg-info", True)])
def test_packages_that_pip_has_put_elsewhere(tmp_path: Path, records: str, own: bool) -> None:
    """pip install --target leaves its records; a folder of sources has others."""
    written(tmp_path, "print('loaded')", "target/plain/__init__.py")
    written(tmp_path, "", f"target/{records}/METADATA")
    script = written(tmp_path, "import plain", "main.py")
    path = os.pathsep.join([str(tmp_path / "target"), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "numpy", "--nproc-per-node", "3", str(script)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["loaded"] * (3 if own else 1)


def test_classes_of_main(tmp_path: Path) -> None:
    text = """
        import dataclasses, inspect, pickle, typing

        @dataclasses.dataclass
        class Point:
            x: "int"

        others_run()
        again = pickle.loads(pickle.dumps(Point(rank)))
        assert type(again) is Point and again == Point(rank)
        assert inspect.getsource(Point).splitlines()[1] == "class Point:"
        assert typing.get_type_hints(Point) == {"x": int}
        assert inspect.getmodule(Point) is sys.modules["__main__"] is sys.modules[Point.__module__]
    """
    check(tmp_path, text)


def test_main_by_name(tmp_path: Path) -> None:
    check(tmp_path, "import __main__\nassert __main__.others_run is others_run and __main__.__file__ == __file__")


# -- environment, arguments, path


def test_environment(tmp_path: Path) -> None:
    written(tmp_path, "from os import environ\nhere = environ['RANK']", "library.py")
    text = """
        import subprocess
        from os import environ
        import library
        assert library.here == environ["RANK"] == os.getenv("RANK") == os.environb[b"RANK"].decode() == str(rank)
        os.environ["OWN"] = str(rank)
        del environ["PATH"]
        others_run()
        assert environ["OWN"] == str(rank) and "PATH" not in environ and environ is os.environ
        ask = [sys.executable, "-c", "import os; print(os.environ['OWN'], os.environ['RANK'])"]
        assert subprocess.run(ask, capture_output=True, text=True).stdout == f"{rank} {rank}\\n"
        explicit = subprocess.run(ask, capture_output=True, text=True, env={"OWN": "a", "RANK": "b"})
        assert explicit.stdout == "a b\\n"
    """
    before = dict(os.environ)
    check(tmp_path, text)
    assert dict(os.environ) == before
    command = [sys.executable, "-c", "import os; print('OWN' in os.environ, 'PATH' in os.environ)"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == f"False {'PATH' in before}\n"


@pytest.mark.parametrize("of", ["program", "package"])
def test_another_object_in_the_place_of_the_environment(tmp_path: Path, of: str) -> None:
    """Packages put a copy there, to take back what they have set; others keep what they have imported."""
    text = "import os\ndef put(given):\n    os.environ = given\n"
    folder = {"program": "", "package": "site-packages/"}[of]
    written(tmp_path, text, f"{folder}putting.py")
    text = f"""
        import copy, subprocess
        from os import environ
        sys.path.append({str(tmp_path / "site-packages")!r})
        import putting
        saved = copy.deepcopy(os.environ)
        os.environ["GONE"] = str(rank)
        putting.put(saved)
        os.environ["OWN"] = str(rank)
        others_run()
        assert os.environ is saved and os.environ["OWN"] == os.environ["RANK"] == os.getenv("RANK") == str(rank)
        assert "GONE" not in os.environ and environ["GONE"] == environ["RANK"] == str(rank) and "OWN" not in environ
        ask = [sys.executable, "-c", "import os; print(os.environ['OWN'], os.environ['RANK'])"]
        assert subprocess.run(ask, capture_output=True, text=True).stdout == f"{{rank}} {{rank}}\\n"
        putting.put({{"OWN": str(-rank)}})
        others_run()
        assert os.environ == {{"OWN": str(-rank)}} and os.getenv("RANK") is None
        putting.put(environ)
        others_run()
        assert os.environ["GONE"] == os.environ["RANK"] == str(rank)
    """
    before, shared = dict(os.environ), os.environ
    check(tmp_path, text)
    sys.modules.pop("putting", None)
    assert os.environ is shared and dict(shared) == before


def test_arguments_and_path(tmp_path: Path) -> None:
    text = """
        sys.argv.append(rank)
        sys.path.insert(0, f"folder of {rank}")
        others_run()
        assert sys.argv[1:] == [rank] and sys.path[0] == f"folder of {rank}"
        sys.path = sys.path[1:]
        others_run()
        assert sys.path[0] == os.path.dirname(__file__)
    """
    argv, path = list(sys.argv), list(sys.path)
    check(tmp_path, text)
    assert (sys.argv, sys.path) == (argv, path)


def test_working_directory(tmp_path: Path) -> None:
    text = """
        import contextlib
        start = os.getcwd()
        os.makedirs(f"folder{rank}/inner")
        os.chdir(f"folder{rank}")
        others_run()
        assert os.getcwd() == f"{start}/folder{rank}" and os.listdir() == ["inner"]
        with contextlib.chdir("inner"):
            others_run()
            assert os.getcwd() == f"{start}/folder{rank}/inner"
        others_run()
        os.chdir("..")
        assert os.getcwd() == start
        os.chdir(f"folder{rank}")
    """
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        check(tmp_path, text)
        assert os.getcwd() == str(tmp_path)
    finally:
        os.chdir(before)


def test_output_streams(tmp_path: Path) -> None:
    text = """
        import contextlib, io
        file = io.StringIO()
        with contextlib.redirect_stdout(file):
            print("to file", rank)
            others_run()
            print("to file", rank)
        others_run()
        assert file.getvalue() == f"to file {rank}\\n" * 2
        sys.excepthook = None
        sys.stderr.close()
        sys.stdout = None if rank else io.StringIO()
    """
    before = sys.excepthook
    check(tmp_path, text)
    assert sys.excepthook is before


def test_what_makes_records_and_loggers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after the run, when the process that ranks were in ends."""
    text = """
        import logging, warnings
        first, kind = logging.getLogRecordFactory(), logging.getLoggerClass()
        def record(*args, **kwargs):
            made = first(*args, **kwargs)
            setattr(made, "by", rank)
            return made
        class Mine(kind): pass
        others_run()
        assert logging.getLogRecordFactory() is first and logging.getLoggerClass() is kind
        logging.setLogRecordFactory(record), logging.setLoggerClass(Mine), logging.captureWarnings(True)
        others_run()
        logging.basicConfig(format="%(by)s %(name)s", stream=sys.stdout, force=True)
        assert type(logging.getLogger("mine")) is Mine
        warnings.simplefilter("always")
        warnings.warn("shown")
        others_run()
        print(record("name", 10, "file", 1, "text", (), None).by)
        def late(made):
            setattr(made, "by", "later")
            return made.by
        kept.append(late)
    """
    state = logging.getLogRecordFactory(), logging.getLoggerClass(), logging._warnings_showwarning  # type: ignore[attr-defined]
    kept: list[Any] = []
    monkeypatch.setattr(builtins, "kept", kept, raising=False)
    assert lines(ranks(tmp_path, text)) == sorted(line for r in range(3) for line in (f"{r} py.warnings", f"{r}"))
    assert state == (logging.getLogRecordFactory(), logging.getLoggerClass(), logging._warnings_showwarning)  # type: ignore[attr-defined]
    assert kept[0](types.SimpleNamespace()) == "later"


def test_loggers(tmp_path: Path) -> None:
    text = """
        import logging
        log = logging.getLogger("a.b")
        logging.basicConfig(format=f"{rank} %(name)s %(message)s", level=logging.INFO, stream=sys.stdout)
        others_run()
        log.info("one")
        logging.getLogger("a").setLevel(logging.ERROR if rank else logging.DEBUG)
        others_run()
        log.debug("two")
        logging.error("three")
        assert logging.getLogger("a.b") is log and log.parent.parent is logging.root is logging.getLogger()
    """
    root, handlers, loggers = logging.root, list(logging.root.handlers), logging.Logger.manager
    logging.root.handlers.clear()
    try:
        want = [line for r in range(3) for line in (f"{r} a.b one", f"{r} root three")]
        assert lines(ranks(tmp_path, text)) == sorted([*want, "0 a.b two"])
    finally:
        logging.root.handlers[:] = handlers
    assert (logging.root, logging.Logger.root, logging.Logger.manager) == (root, root, loggers)


def test_warnings(tmp_path: Path) -> None:
    text = """
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always" if rank else "ignore")
            others_run()
            warnings.warn(f"by {rank}")
            others_run()
        assert [str(w.message) for w in caught] == ([f"by {rank}"] if rank else [])
        warnings.simplefilter("error")
    """
    before = (warnings.filters, list(warnings.filters), warnings.showwarning)
    check(tmp_path, text)
    assert (warnings.filters, list(warnings.filters), warnings.showwarning) == before


# -- random numbers

NUMBERS = """
    import random
    import numpy as np
    from random import gauss
    numbers = []
    for i in range(4):
        {switch}
        numbers += [random.random(), gauss(0, 1), random.sample(range(100), 2), np.random.rand()]
        {switch}
        numbers += [np.random.standard_normal(), np.random.default_rng().random(), np.random.ranf()]
    print(rank, numbers)
"""


def numbers(folder: Path, switch: str, *flags: str) -> list[str]:
    """The random numbers of each rank."""
    return lines(ranks(folder, NUMBERS.format(switch=switch), *flags))


def test_random_numbers_depend_on_seed_and_rank_only(tmp_path: Path) -> None:
    alone = numbers(tmp_path, "pass", "--seed", "5")
    assert numbers(tmp_path, "others_run()", "--seed", "5") == alone
    assert numbers(tmp_path, "others_run()", "--seed", "5", "--schedule-seed", "9") == alone
    assert numbers(tmp_path, "pass", "--seed", "6") != alone
    assert len({line.partition(" ")[2] for line in alone}) == 3
    assert numbers(tmp_path, "pass") == numbers(tmp_path, "pass", "--seed", "0")


def test_seeding_is_the_ranks_own(tmp_path: Path) -> None:
    text = """
        import random
        import numpy as np
        random.seed(7), np.random.seed(7)
        others_run()
        state = np.random.get_state()
        print(random.getrandbits(64), np.random.randint(1 << 30), np.random.default_rng(7).integers(1 << 30))
        random.seed(rank), np.random.seed(rank)
        others_run()
        np.random.set_state(state)
        others_run()
        assert np.random.randint(1 << 30) == np.random.RandomState(7).randint(1 << 30)
    """
    state = random.getstate(), np.random.get_state()[1].tolist()
    want = f"{random.Random(7).getrandbits(64)} {np.random.RandomState(7).randint(1 << 30)} "
    want += str(np.random.default_rng(7).integers(1 << 30))
    assert lines(ranks(tmp_path, text)) == [want] * 3
    assert (random.getstate(), np.random.get_state()[1].tolist()) == state


def test_a_device_draws_numbers_of_its_own(tmp_path: Path) -> None:
    """The host's are those that it has where no device draws any; torch.manual_seed seeds both."""
    text = """
        def numbers(between=lambda: None):
            torch.manual_seed(5)
            first = torch.rand(3).tolist()
            between()
            return first + torch.randn(3).tolist() + torch.nn.Linear(2, 2).weight.tolist()

        t = torch.ones(40).cuda()
        on_devices = {
            "factory": lambda: torch.randn(3, device="cuda"),
            "like": lambda: torch.rand_like(t),
            "in place": lambda: t.clone().uniform_(),
            "permutation": lambda: torch.randperm(9, device="cuda"),
            "dropout": lambda: torch.nn.functional.dropout(t),
        }
        for name, draw in on_devices.items():
            assert numbers(draw) == numbers(), name
            torch.manual_seed(5)
            first = draw().tolist()
            torch.manual_seed(5)
            torch.rand(7)
            assert draw().tolist() == first != draw().tolist(), name
            state = torch.cuda.get_rng_state()
            again = draw().tolist()
            torch.cuda.set_rng_state(state)
            assert draw().tolist() == again, name
        assert numbers(lambda: torch.cuda.manual_seed(1)) == numbers(lambda: torch.cuda.manual_seed_all(1)) == numbers()
        torch.cuda.manual_seed(7)
        assert (torch.cuda.initial_seed(), torch.initial_seed()) == (7, 5)
        torch.manual_seed(3)
        assert torch.cuda.initial_seed() == 3 and torch.equal(torch.rand(4), torch.rand(4, device="cuda").cpu())
        torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    """
    check(tmp_path, text)


def test_functions_are_as_before(tmp_path: Path) -> None:
    import atexit

    owners = (random, np.random, threading.Thread, subprocess.Popen, os, atexit)
    before = [dict(vars(owner)) for owner in owners]
    path, hooks = list(sys.meta_path), list(sys.path_hooks)
    check(tmp_path, "import random; assert random.random.__name__ == 'random' and random.choice.__doc__")
    assert [dict(vars(owner)) for owner in owners] == before
    assert (sys.meta_path, sys.path_hooks) == (path, hooks)
    assert "torch" not in sys.modules


def test_event_loops(tmp_path: Path) -> None:
    """Ranks are in asyncio.run at the same time, each in its own, and so are their threads."""
    text = """
        import asyncio
        import threading
        async def one(n):
            others_run()
            await asyncio.sleep(0)
            others_run()
            return rank * 10 + n
        async def all_of_them():
            loop = asyncio.get_running_loop()
            found = [await one(0), *await asyncio.gather(one(1), one(2))]
            assert asyncio.get_running_loop() is loop
            return found
        wanted = [rank * 10, rank * 10 + 1, rank * 10 + 2]
        assert asyncio.run(all_of_them()) == wanted
        others_run()
        found = []
        thread = threading.Thread(target=lambda: found.append(asyncio.run(all_of_them())))
        thread.start()
        thread.join()
        assert found == [wanted]
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise AssertionError("the loop of another rank")
    """
    check(tmp_path, text)


@pytest.mark.parametrize("clock", [(), ("--virtual-clock",)])
def test_ranks_that_look_for_files(tmp_path: Path, clock: tuple[str, ...]) -> None:
    """One sleeps until another has done something that has nothing to do with the fabric."""
    text = """
        import time
        for writer in range(size):
            if rank == writer:
                open(f"file{writer}", "w").close()
            looks = 0
            while not os.path.exists(f"file{writer}"):
                time.sleep(0.001)
                looks += 1
                assert looks < 100, "the others do not run"
            others_run()
    """
    check(tmp_path, f"    os.chdir({str(tmp_path)!r})\n" + textwrap.dedent(text).replace("\n", "\n    "), *clock)


# -- threads


def test_a_package_that_is_not_loaded_in_the_end(tmp_path: Path) -> None:
    """A folder of the package, which has no file and has been imported by then, stays among the modules."""
    written(tmp_path, "import halfway.folder\nimport nowhere", "site-packages/halfway/__init__.py")
    written(tmp_path, "", "site-packages/halfway/folder/inside.py")
    text = f"""
        import sys, torch.distributed as dist
        sys.path.append({str(tmp_path / "site-packages")!r})
        dist.init_process_group("gloo")
        try:
            import halfway
        except ImportError as error:
            print(error.name, "halfway.folder" in sys.modules)
        dist.barrier()
    """
    found = launch("--nproc-per-node", "2", written(tmp_path, text))
    assert (found.status, lines(found)) == (0, ["nowhere True"] * 2), found.err
    sys.modules.pop("halfway.folder", None)


def test_packages_that_look_for_files_of_theirs_under_a_lock(tmp_path: Path) -> None:
    """Other ranks would wait for the lock itself. So matplotlib looks for fonts while mmengine makes a visualizer."""
    text = """
        import os, threading
        _lock = threading.Lock()
        def find(path):
            with _lock:
                for _ in range(1000):
                    os.path.exists(path)
    """
    written(tmp_path, text, "site-packages/finding.py")
    program = "import sys; sys.path.append('site-packages'); import finding; finding.find('font'); print('found')"
    script = written(tmp_path, program, "main.py")
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "numpy", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "found\nfound\n"), done.stderr


def test_a_packages_thread_writes_what_ranks_put_into_a_queue(tmp_path: Path) -> None:
    """Handlers of loguru's do so with enqueue=True, in programs that spawn their ranks."""
    text = """
        import multiprocessing, threading
        kept = []
        class Handler:
            def __init__(self, path):
                self.path, self.queue = path, multiprocessing.get_context().SimpleQueue()
                self.lock = threading.Lock()
                self.thread = threading.Thread(target=self.write, daemon=True)
                self.thread.start()
            def emit(self, line):
                with self.lock:
                    self.queue.put(line)
            def write(self):
                while (line := self.queue.get()) is not None:
                    with open(self.path, "a") as file:
                        file.write(line)
    """
    written(tmp_path, text, "site-packages/handling.py")
    program = """
        import sys; sys.path.append("site-packages")
        import torch.multiprocessing as mp
        def worker(rank):
            import handling
            for i in range(3):
                handling.kept[0].emit(f"{rank} {i}\\n")
        if __name__ == "__main__":
            import handling
            handling.kept.append(handling.Handler("log.txt"))
            mp.spawn(worker, nprocs=2)
            handling.kept[0].queue.put(None)
            handling.kept[0].thread.join()
    """
    script = written(tmp_path, program, "main.py")
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "numpy", "--nproc-per-node", "1", str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert sorted((tmp_path / "log.txt").read_text().splitlines()) == [f"{r} {i}" for r in range(2) for i in range(3)]


def test_a_packages_thread_takes_a_lock_of_ranks_and_waits_for_an_event(tmp_path: Path) -> None:
    """tqdm's monitor takes the lock of all bars; batchgenerators' threads ask whether they are to end."""
    text = """
        import multiprocessing, threading, time
        sleep, kept = time.sleep, []
        class Monitor:
            def __init__(self, kind):
                self.lock, self.event = getattr(multiprocessing, kind)(), multiprocessing.Event()
                self.took, self.inside, self.together = 0, 0, []
                self.thread = threading.Thread(target=self.watch, daemon=True)
                self.thread.start()
            def use(self):
                self.inside += 1
                sleep(0.0005)
                self.together.append(self.inside)
                self.inside -= 1
            def watch(self):
                assert not self.event.wait(0.001)
                while not self.event.is_set():
                    with self.lock:
                        if type(self.lock).__name__ == "RLock":
                            assert self.lock.acquire() and self.lock.acquire(False)
                            self.lock.release(), self.lock.release()
                        self.use()
                    self.took += 1
                self.waited = self.event.wait()
    """
    written(tmp_path, text, "site-packages/monitoring.py")
    program = """
        import sys; sys.path.append("site-packages")
        import time
        import torch.multiprocessing as mp
        def worker(rank):
            import monitoring
            monitor = monitoring.kept[-1]
            begun = time.monotonic()
            for i in range(20):
                with monitor.lock:
                    monitor.use()
            print(rank, round((time.monotonic() - begun) * 1e6, 3))
        if __name__ == "__main__":
            import monitoring
            for kind in ("Lock", "RLock", "Semaphore"):
                monitor = monitoring.Monitor(kind)
                monitoring.kept.append(monitor)
                mp.spawn(worker, nprocs=2)
                while monitor.took < 3: monitoring.sleep(0.001)
                monitor.event.set()
                monitor.thread.join()
                assert monitor.waited and max(monitor.together) == 1 and len(monitor.together) == 40 + monitor.took
    """
    script = written(tmp_path, program, "main.py")
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "numpy", "--virtual-clock", str(script)]
    runs = [subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60) for _ in range(2)]
    assert [(done.returncode, done.stderr) for done in runs] == [(0, "")] * 2
    assert runs[0].stdout == runs[1].stdout and len(runs[0].stdout.splitlines()) == 6


def test_a_package_that_imports_an_isolated_one_is_isolated_too(tmp_path: Path) -> None:
    """Else it would have the modules of the rank that has loaded it, whichever rank calls it."""
    files = {
        "inner": "class Kind: pass",
        "outer/__init__": "from outer import part, more",
        "outer/part": "value = 1",
        "outer/more": "import sys, inner\ndef make(): return inner.Kind()",
        "above": "import os\nfrom outer import more",
        "optional": "if True:\n    import inner\ndef kind(): return inner.Kind",
        "beside": "def kind():\n    import inner\n    return inner.Kind",
    }
    for name, text in files.items():
        written(tmp_path, text, f"site-packages/{name}.py")
    program = """
        import os, sys; sys.path.append("site-packages")
        import time
        import above, beside, optional, inner, outer
        time.sleep(0.01)
        rank = os.environ["RANK"]
        outer.part.value = above.rank = beside.rank = rank
        time.sleep(0.01)
        assert type(above.more.make()) is beside.kind() is inner.Kind and outer.part is sys.modules["outer.part"]
        assert (outer.part.value, above.rank) == (rank, rank)
        print(optional.kind() is inner.Kind)
    """
    script = written(tmp_path, program, "main.py")
    command = [
        sys.executable,
        "-m",
        "torchemu",
        "run",
        "--torch",
        "numpy",
        "--nproc-per-node",
        "3",
        "--isolate",
        "inner",
    ]
    done = subprocess.run([*command, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["False", "False", "True"]


@pytest.mark.parametrize("front_end", ["numpy", "real"])
def test_a_package_that_waits_for_other_ranks_as_it_is_loaded_is_isolated(tmp_path: Path, front_end: str) -> None:
    """They load it, too, as processes do, and find no half of it; packages that have been loaded stay shared."""
    if front_end == "real":
        pytest.importorskip("torch")
    files = {
        "started/__init__": """
            import os, settled
            import torch.distributed as dist
            from started import part
            rank = int(os.environ["RANK"])
            dist.init_process_group("gloo")
            dist.barrier()
            ranks = [None] * dist.get_world_size()
            dist.all_gather_object(ranks, rank)
        """,
        "started/part": "value = []",
        "above": "from started import part, ranks",
        "settled": "loads = []",
        "settled_part/__init__": "value = []",
        "settled_part/waits": """
            import torch.distributed as dist
            dist.barrier()
            done = True
        """,
    }
    for name, text in files.items():
        written(tmp_path, text, f"site-packages/{name}.py")
    program = """
        import sys; sys.path.append("site-packages")
        import settled_part
        import above, settled, started
        import torch.distributed as dist
        started.part.value.append(started.rank)
        settled.loads.append(started.rank)
        if started.rank == 0:
            import settled_part.waits
            assert settled_part.waits.done
        else:
            dist.barrier()
        assert settled_part is sys.modules["settled_part"]
        assert above.ranks == [0, 1, 2] and above.part is started.part
        assert started.part.value == [started.rank] == [dist.get_rank()]
        assert sorted(settled.loads)[:1] == [0] and len(settled.loads) == 3
        print("ends well")
    """
    script = written(tmp_path, program, "main.py")
    command = [sys.executable, "-m", "torchemu", "run", "--torch", front_end, "--nproc-per-node", "3", str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == ["ends well"] * 3 + [""]


def test_threads_of_the_system_are_refused(tmp_path: Path) -> None:
    """A rank's own are in test_threads.py."""
    text = """
        import importlib
        import threading
        real = importlib.import_module("threading")
        assert real is not threading
        try:
            real.Thread(target=print, name="loader").start()
        except RuntimeError as error:
            assert str(error).startswith("cannot start thread 'loader': it would be one of the system, and the ranks")
        else:
            raise AssertionError
        assert "loader" not in [thread.name for thread in real.enumerate()]
    """
    check(tmp_path, text)
    ran: list[int] = []
    thread = threading.Thread(target=ran.append, args=(1,))
    thread.start()
    thread.join()
    assert ran == [1]


def test_threads_from_outside_are_outside() -> None:
    asked, answered, seen = threading.Event(), threading.Event(), []

    def answer() -> None:
        asked.wait(60)
        seen.append(time.time())
        answered.set()

    @torchemu.distributed(world_size=1, virtual_clock=True)
    def rank() -> None:
        asked.set()
        assert answered.wait(60) and time.time() < 1

    thread = threading.Thread(target=answer)
    thread.start()
    rank()
    thread.join()
    assert seen[0] > 1e9


# -- ends


def test_atexit(tmp_path: Path) -> None:
    text = """
        import atexit
        from atexit import register
        atexit.register(print, rank, "registered first")

        @register
        def fails():
            print(rank, "registered second", globals()["rank"])
            others_run()
            raise ValueError(rank)

        atexit.unregister(print) if rank == 2 else None
        print(rank, "ends")
    """
    outcome = ranks(tmp_path, text)
    assert outcome.status == 0
    for r in range(3):
        out = [line for line in outcome.out.splitlines() if line.startswith(str(r))]
        first = [] if r == 2 else [f"{r} registered first"]
        assert out == [f"{r} ends", f"{r} registered second {r}", *first]
        assert f"ValueError: {r}" in outcome.err
    assert outcome.err.count("Exception ignored in atexit callback") == 3


def test_atexit_in_an_isolated_package(tmp_path: Path) -> None:
    """Its functions are called where the rank ends, which can still meet the others."""
    package = """
    import atexit
    import torch.distributed as dist
    def ends():
        dist.barrier()
        print("exit of", dist.get_rank())
    atexit.register(ends)
    """
    written(tmp_path, package, "site-packages/ending.py")
    text = f"import sys\nsys.path.append({str(tmp_path / 'site-packages')!r})\nimport ending\n"
    file = written(tmp_path, f"{PREAMBLE}{text}")
    outcome = launch("--nproc-per-node", "2", "--isolate", "ending", file)
    assert lines(outcome) == ["exit of 0", "exit of 1"]


@pytest.mark.parametrize(
    ("leave", "runs"),
    [("sys.exit(3)", True), ("raise ValueError", True), ("os._exit(3)", False), ("sys.exit(0)", True)],
)
def test_atexit_at_each_kind_of_end(tmp_path: Path, leave: str, runs: bool) -> None:
    text = f"import atexit\natexit.register(print, 'exit of', rank)\nif rank == 0: {leave}\n"
    outcome = ranks(tmp_path, text, nproc=1)
    assert outcome.out == ("exit of 0\n" if runs else "")


@pytest.mark.parametrize(
    ("end", "printed"), [("raise LookupError('gone')", "LookupError gone True"), ("sys.exit(3)", "")]
)
def test_hooks_of_exceptions(tmp_path: Path, end: str, printed: str) -> None:
    """Each rank's own, called before what is due at its end; not when it leaves by itself."""
    text = """
        import atexit
        atexit.register(print, rank, "ends")
        if rank:
            sys.excepthook = lambda kind, error, trace: print(rank, kind.__name__, error, trace.tb_lineno > 0)
        others_run()
        if rank == 1:
            END
    """
    outcome = ranks(tmp_path, text.replace("END", end))
    assert outcome.status == 1 and ("LookupError: gone" in outcome.err) == bool(printed)
    own = [line for line in outcome.out.splitlines() if line.startswith("1 ")]
    assert own == [*([f"1 {printed}"] if printed else []), "1 ends"]


def test_ranks_that_are_unwound_run_finally_but_not_atexit(tmp_path: Path) -> None:
    text = """
        import atexit
        atexit.register(print, "exit of", rank)
        try:
            if rank == 1:
                raise ValueError
            others_run()
        finally:
            print("finally", rank)
    """
    outcome = ranks(tmp_path, text)
    assert outcome.status == 1
    assert sorted(outcome.out.splitlines()) == ["exit of 1", "finally 0", "finally 1", "finally 2"]
