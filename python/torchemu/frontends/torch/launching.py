"""torchrun as a program calls it: by torch.distributed.run.main, or elastic_launch. Its workers are ranks.

What is said of rendezvous, logs and monitoring means nothing here, where all workers are tasks of one process.
"""

from __future__ import annotations

import operator
import os
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from torchemu import multiprocessing, runtime
from torchemu.frontends.torch.session import Session
from torchemu.multiprocessing._errors import SpawnExitException
from torchemu.multiprocessing.spawn import start_programs
from torchemu.runtime import program
from torchemu.runtime.environ import Launch
from torchemu.runtime.rank_local import RankLocal

_API = "torch.distributed.launcher.api"
_FIRST_PORT = 29500
_launches = RankLocal(lambda: 0)
"""How often a program has launched workers: each time they meet at another port, as with torchrun."""


def install(run: Session) -> None:
    """Makes torchrun's agent start ranks, until the run ends."""
    run.on_load[_API] = lambda api: run.replace(api, "launch_agent", _launching(api))


def _launching(api: Any) -> Callable[..., dict[int, Any]]:
    def launch_agent(
        config: Any, entrypoint: Any, args: list[Any], health_check_server: object = None
    ) -> dict[int, Any]:
        """Runs workers to their end, and again from the beginning when one fails, as often as the config says.

        Args:
            config: how many, and where they meet.
            entrypoint: what each does: a function, or a command.
            args: its arguments.
            health_check_server: of newer versions: answers who asks whether the agent lives, of which there is none.

        Returns:
            What the function has returned, by rank; None for commands.

        Raises:
            ChildFailedError: workers have failed once too often.
            RuntimeError: the program is one of several ranks itself.
            ValueError: more than one node is wanted, or no entrypoint is given.
        """
        if config.min_nodes > 1:
            raise ValueError(
                f"min_nodes={config.min_nodes}: a program that launches workers is on one node; torchemu run --nnodes "
                f"{config.min_nodes} starts a program on several"
            )
        if entrypoint is None:
            raise ValueError("launch_agent wants an entrypoint: a function, or a command")
        name = api._get_entrypoint_name(entrypoint, args)
        nproc = config.nproc_per_node
        for attempt in range(config.max_restarts + 1):
            results = multiprocessing.SimpleQueue()
            launch, virtual = _launch(config), getattr(config, "virtual_local_rank", False)
            given = (launch, attempt, virtual, entrypoint, args, results)
            try:
                if callable(entrypoint):
                    multiprocessing.start_processes(_work, given, nproc, start_method=config.start_method)
                else:
                    start_programs(_work, given, nproc)
            except multiprocessing.SpawnException as error:
                if attempt == config.max_restarts:
                    raise api.ChildFailedError(name, _failures(error)) from error
            else:
                if not callable(entrypoint):
                    return dict.fromkeys(range(nproc))
                return dict(sorted((results.get() for _ in range(nproc)), key=operator.itemgetter(0)))
        raise ValueError(f"max_restarts must not be negative: {config.max_restarts}")

    return launch_agent


def _launch(config: Any) -> Launch:
    """Returns the number of workers, and the meeting place that is their environment's."""
    host, _, port = config.rdzv_endpoint.rpartition(":")
    count = _launches.get()
    _launches.set(count + 1)
    return Launch(
        config.nproc_per_node,
        run_id=config.run_id or "none",
        role=config.role,
        master_addr=host if config.rdzv_backend == "static" and host else "127.0.0.1",
        master_port=int(port) if config.rdzv_backend == "static" and port.isdigit() else _FIRST_PORT + count,
        max_restarts=config.max_restarts,
    )


def _work(
    rank: int, launch: Launch, attempt: int, virtual: bool, entrypoint: Any, args: Sequence[Any], results: Any
) -> None:
    """Does what a worker does."""
    os.environ.update(launch.variables(rank, attempt))
    os.environ.pop("NODE_RANK", None)
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "False"  # rank 0 serves
    if virtual:
        devices = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(launch.nproc)))).split(",")
        os.environ.update(LOCAL_RANK="0", CUDA_VISIBLE_DEVICES=devices[rank].strip())
    filled = [each.replace("${local_rank}", str(rank)) if isinstance(each, str) else each for each in args]
    if callable(entrypoint):
        results.put((rank, entrypoint(*filled)))
    else:
        _run_command([entrypoint, *map(str, filled)])


def _run_command(argv: list[str]) -> None:
    """Runs a script, or a module that is given as to Python.

    Raises:
        ValueError: it is another program than Python's.
    """
    found = program.found_in(argv)
    if found is None:
        raise ValueError(f"workers are Python programs, which run in this process, and {argv[0]!r} is none")
    make, arguments = found
    make(arguments).start(runtime.current().rank)


def _failures(error: multiprocessing.SpawnException) -> dict[int, Any]:
    """Returns the failures of the workers that failed by themselves, by rank."""
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure  # which makes a logger

    exits = {error.error_index: error.exit_code} if isinstance(error, SpawnExitException) else {}
    failures = {}
    for each in error.errors:
        failure = ProcessFailure(each.rank, each.pid, exits.get(each.rank, 1), "<N/A>")
        if failure.exitcode >= 0:
            text = traceback.format_exception_only(each.exception)[-1].strip()
            message: Any = {"message": text, "extraInfo": {"py_callstack": each.traceback}}
            failure.message = message
        seconds: Any = each.time_ps / 1e12
        failure.timestamp = seconds
        failures[each.rank] = failure
    return failures
