"""Loggers of ranks: what they print is what processes print that run the same program."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from launch import launch, lines, written

PACKAGE = """
import logging, sys
log = logging.getLogger(__name__)
inner = logging.getLogger(__name__ + ".inner")
handler = logging.StreamHandler()
handler.setFormatter(logging.Formatter("package: %(name)s %(message)s"))
log.addHandler(handler)
log.setLevel(logging.INFO)
log.propagate = False

def says(text):
    log.debug("debug %s", text)
    log.info("info %s", text)
    inner.warning("warning %s", text)

def quiet():
    log.setLevel(logging.ERROR)

def without():
    log.removeHandler(handler)
"""

START = """
import logging, logging.config, logging.handlers, os, sys, time
rank = int(os.environ["RANK"])
def others_run():
    for _ in range(3): time.sleep(0.001)
def show(name):
    logger = logging.getLogger(name)
    print(rank, logger, logger.handlers, logger.propagate, logger.disabled, logger.parent, logger.filters)
"""

PROGRAMS = {
    "as configured at import": """
        import chatty
        others_run()
        chatty.says(rank)
        show("chatty"); show("chatty.inner")
        print([name for name in logging.root.manager.loggerDict if "chatty" in name])
        assert chatty.handler.stream is sys.stderr
    """,
    "one rank is quiet": """
        import chatty
        others_run()
        if rank: chatty.quiet()
        others_run()
        chatty.says(rank)
    """,
    "one rank without a handler": """
        import chatty
        others_run()
        if rank == 1: chatty.without()
        others_run()
        chatty.says(rank)
        show("chatty")
    """,
    "in place": """
        import chatty
        if rank == 1: chatty.log.handlers.clear()
        if rank == 2: chatty.log.handlers[:] = [logging.StreamHandler(sys.stdout)]
        if rank == 2: chatty.inner.filters.append(lambda record: False)
        others_run()
        chatty.says(rank)
        show("chatty")
    """,
    "attributes": """
        import chatty
        chatty.log.propagate, chatty.log.disabled = rank == 0, rank == 1
        chatty.log.own = rank
        logging.getLogger().addHandler(logging.StreamHandler(sys.stdout))
        others_run()
        chatty.says(rank)
        print(chatty.log.own)
        show("chatty"), show(None)
    """,
    "a handler of all": """
        import chatty
        chatty.handler.setFormatter(logging.Formatter(f"%(message)s for {rank}"))
        if rank == 2: chatty.handler.setStream(sys.stdout)
        if rank == 0: chatty.handler.setLevel(logging.ERROR)
        others_run()
        chatty.says(rank)
    """,
    "levels of the root": """
        logging.basicConfig(level=logging.INFO if rank == 0 else logging.ERROR, format=f"{rank} %(message)s")
        log = logging.getLogger("mine.own")
        for _ in range(3):
            others_run()
            log.info("info"); log.error("error"); logging.info("root")
    """,
    "disabled": """
        import chatty
        if rank: logging.disable(logging.INFO)
        others_run()
        chatty.says(rank)
        logging.warning("root")
    """,
    "a level before the import": """
        logging.getLogger("chatty.inner").setLevel(logging.CRITICAL if rank == 1 else logging.NOTSET)
        import chatty
        others_run()
        chatty.says(rank)
        show("chatty")
    """,
    "the program's parents": """
        if rank == 1: logging.getLogger("a").setLevel(logging.ERROR)
        others_run()
        log = logging.getLogger("a.b")
        logging.basicConfig(format=f"{rank} %(name)s %(message)s")
        others_run()
        log.warning("warning")
        show("a.b")
    """,
    "classes of the program": """
        class Mine(logging.getLoggerClass()):
            def says(self): self.error("mine of %d", rank)
        if rank != 1: logging.setLoggerClass(Mine)
        others_run()
        log = logging.getLogger("mine")
        others_run()
        print(type(log).__name__)
        if rank != 1: log.says()
    """,
    "methods of all loggers": """
        logging.addLevelName(15, "TRACE")
        logging.Logger.trace = lambda self, text: self.log(15, f"{rank}: {text}")
        others_run()
        logging.basicConfig(level=15)
        logging.getLogger("traced").trace("text")
    """,
    "configured by dictionary": """
        import chatty
        file = logging.FileHandler(f"log{rank}", mode="w")
        kept = logging.getLogger("kept")
        kept.addHandler(file)
        others_run()
        kept.error("before")
        logging.config.dictConfig({
            "version": 1, "disable_existing_loggers": rank == 1,
            "formatters": {"plain": {"format": f"{rank}: %(message)s"}},
            "handlers": {"out": {"class": "logging.StreamHandler", "formatter": "plain", "stream": "ext://sys.stdout"}},
            "root": {"handlers": ["out"], "level": "DEBUG"},
        })
        others_run()
        chatty.says(rank)
        kept.error("after"), logging.debug("root")
        others_run()
        print(open(f"log{rank}").read())
    """,
    "closed by others": """
        file = logging.FileHandler(f"closed{rank}", mode="w")
        logging.getLogger("kept").addHandler(file)
        others_run()
        if rank == 0: logging.config.dictConfig({"version": 1, "disable_existing_loggers": False})
        others_run()
        logging.getLogger("kept").error("after")
        print(rank, open(f"closed{rank}").read())
    """,
}


def _as_processes(command: list[str], folder: Path) -> list[str]:
    found = []
    for rank in range(3):
        environment = {**os.environ, "RANK": str(rank), "PYTHONPATH": str(folder / "site-packages")}
        done = subprocess.run(
            [sys.executable, *command], env=environment, cwd=folder, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        found += done.stdout.splitlines() + done.stderr.splitlines()
    return sorted(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_ranks_print_what_processes_print(tmp_path: Path, name: str) -> None:
    written(tmp_path, PACKAGE, "site-packages/chatty.py")
    written(tmp_path, START + textwrap.dedent(PROGRAMS[name]))
    done = subprocess.run(
        [sys.executable, "-m", "torchemu", "run", "--torch", "numpy", "--nproc-per-node", "3", "program.py"],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site-packages")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = sorted(done.stdout.splitlines() + done.stderr.splitlines())
    assert found == _as_processes(["program.py"], tmp_path)
    assert found


STARTS = """
import logging, multiprocessing, sys
def child():
    print(logging.root.level, [type(h).__name__ for h in logging.root.handlers])
if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    logging.basicConfig(level=logging.DEBUG)
    process = multiprocessing.Process(target=child)
    process.start()
    process.join()
    print("parent", logging.root.level)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_started_processes_begin_as_processes_do(tmp_path: Path, method: str) -> None:
    file = written(tmp_path, STARTS)
    command = [sys.executable, str(file), method]
    wanted = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    command[1:1] = ["-m", "torchemu", "run", "--torch", "numpy", "--nproc-per-node", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, sorted(wanted.splitlines())), done.stderr


def test_all_is_as_before_after_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, handler = logging.getLogger("test_loggers.kept"), logging.FileHandler(tmp_path / "log", mode="w")
    log.addHandler(handler)
    stream = handler.stream
    text = """
    import logging
    import torch.distributed as dist
    dist.init_process_group("gloo")
    log = logging.getLogger("test_loggers.kept")
    log.setLevel(10), log.addFilter(print), logging.getLogger("test_loggers.new")
    log.handlers[0].setLevel(logging.ERROR)
    log.removeHandler(log.handlers[0].close() or log.handlers[0])
    log.propagate = False
    dist.barrier()
    """
    before = logging._handlers, logging._handlerList  # type: ignore[attr-defined]
    assert lines(launch("--nproc-per-node", "2", written(tmp_path, text))) == []
    assert (log.level, log.handlers, log.filters, log.propagate) == (0, [handler], [], True)
    assert type(log.handlers) is list and (handler.level, handler.stream) == (0, stream)
    assert "test_loggers.new" not in logging.root.manager.loggerDict
    assert (logging._handlers, logging._handlerList) == before  # type: ignore[attr-defined]
    assert "stream" not in vars(logging.StreamHandler) and "__setattr__" not in vars(logging.Filterer)
    log.error("written")
    handler.close()
    assert stream.closed and (tmp_path / "log").read_text() == "written\n"


def test_ranks_take_turns_while_a_package_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That loggers are exchanged then is nothing that the package does to them."""
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "chatty.py").write_text(PACKAGE)
    (site / "waits.py").write_text("import time\nfor _ in range(5): time.sleep(0.001)\n")
    monkeypatch.syspath_prepend(str(site))
    text = """
    import logging, os, sys, time
    import chatty
    rank = int(os.environ["RANK"])
    if rank:
        chatty.log.setLevel(logging.ERROR + rank)
    for _ in range(2):
        time.sleep(0.001)
    import waits
    for _ in range(2):
        time.sleep(0.001)
    print(rank, chatty.log.level, "__dict__" in vars(chatty.log))
    """
    found = launch("--nproc-per-node", "3", written(tmp_path, text))
    assert lines(found) == ["0 20 False", "1 41 False", "2 42 False"]


def test_a_handler_that_is_gone_is_none_of_the_process(tmp_path: Path) -> None:
    """Another rank's turn may be the one in which Python finds that nobody has it any more."""
    text = """
    import gc, logging
    import torch.distributed as dist
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    class Holder: pass
    if rank == 0:
        holder = Holder()
        holder.itself, holder.handler = holder, logging.StreamHandler()
        del holder
    dist.barrier()
    if rank == 1:
        gc.collect()
    kept = logging.StreamHandler()
    dist.barrier()
    print(rank, "ends")
    """
    assert lines(launch("--nproc-per-node", "2", written(tmp_path, text))) == ["0 ends", "1 ends"]


def test_a_package_that_is_run_has_handlers_of_each_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its module is the main program, and no module that ranks share; what they close is closed."""
    package = tmp_path / "site-packages" / "logging_tool"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        "import logging, os\n"
        "rank = os.environ['RANK']\n"
        "handler = logging.FileHandler(f'{rank}.log')\n"
        "stream = handler.stream\n"
        "logging.getLogger('tool').addHandler(handler)\n"
        "logging.getLogger('tool').warning('of %s', rank)\n"
        "handler.close()\n"
        "print(rank, stream.closed, len(logging.getLogger('tool').handlers))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(package.parent))
    found = launch("--nproc-per-node", "2", "-m", "logging_tool")
    assert lines(found) == ["0 True 1", "1 True 1"]
    assert [Path(f"{rank}.log").read_text() for rank in (0, 1)] == ["of 0\n", "of 1\n"]
