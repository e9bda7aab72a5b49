"""torch.distributed.launcher.api: starts workers as torchrun does, each with its environment, and waits for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchemu.frontends.numpy.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torchemu.multiprocessing import SimpleQueue, SpawnException, spawn
from torchemu.multiprocessing._errors import SpawnExitException
from torchemu.runtime.environ import Launch
from torchemu.runtime.program import Module, Script

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]

Entrypoint = Callable[..., Any] | str | None


@dataclass
class LaunchConfig:
    """How workers are started. What is about rendezvous, logs and monitoring means nothing here, where all workers are
    tasks of one process.

    Args:
        min_nodes, max_nodes: nodes; a program that launches workers is on one.
        nproc_per_node: workers.
        run_id, role: passed on in the environment.
        rdzv_endpoint: host:port, passed on as the master's, where it is of one.
        max_restarts: how often all workers are started again after one has failed.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False


class elastic_launch:  # noqa: N801 (PyTorch's name)
    """Starts workers.

        results = elastic_launch(config, function)(*arguments)

    Args:
        config: how many, and what they are told.
        entrypoint: a function, a script's path, or "python" with a script among the arguments.
    """

    def __init__(self, config: LaunchConfig, entrypoint: Entrypoint) -> None:
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        """What the workers return, by rank; see launch_agent."""
        return launch_agent(self._config, self._entrypoint, list(args))


def launch_agent(config: LaunchConfig, entrypoint: Entrypoint, args: list[Any]) -> dict[int, Any]:
    """Runs the workers to their end, and again from the beginning when one fails, as often as the config says.

    Returns:
        What the function has returned, by rank; None for scripts.

    Raises:
        ChildFailedError: workers failed once too often.
        ValueError: more than one node is wanted, or no entrypoint is given.
    """
    if config.min_nodes > 1:
        raise ValueError(
            f"min_nodes={config.min_nodes}: a program that launches workers is on one node; torchemu run --nnodes "
            f"{config.min_nodes} starts a program on several"
        )
    if entrypoint is None:
        raise ValueError("launch_agent wants an entrypoint: a function or the path of a script")
    for attempt in range(config.max_restarts + 1):
        results = SimpleQueue()
        try:
            spawn(_work, (config, attempt, entrypoint, args, results), config.nproc_per_node)
        except SpawnException as error:
            if attempt == config.max_restarts:
                raise ChildFailedError(_name(entrypoint, args), _failures(error)) from error
        else:
            return dict(sorted(results.get() for _ in range(config.nproc_per_node)))
    raise ValueError(f"max_restarts must not be negative: {config.max_restarts}")


def _work(rank: int, config: LaunchConfig, attempt: int, entrypoint: Any, args: list[Any], results: Any) -> None:
    """What a worker does."""
    os.environ.update(_variables(config, attempt, rank))
    os.environ.pop("NODE_RANK", None)
    if callable(entrypoint):
        results.put((rank, entrypoint(*args)))
        return
    results.put((rank, None))
    _run_program([entrypoint, *(_filled_in(each, rank, config) for each in args)])


def _variables(config: LaunchConfig, attempt: int, rank: int) -> dict[str, str]:
    host, _, port = config.rdzv_endpoint.rpartition(":")
    where: dict[str, Any] = {"master_addr": host, "master_port": int(port)} if port.isdigit() and int(port) else {}
    launch = Launch(config.nproc_per_node, run_id=config.run_id, role=config.role, **where)
    restarts = {"TORCHELASTIC_RESTART_COUNT": str(attempt), "TORCHELASTIC_MAX_RESTARTS": str(config.max_restarts)}
    return {**launch.variables(rank), **restarts}


def _filled_in(text: Any, rank: int, config: LaunchConfig) -> str:
    """An argument, with the worker's own numbers where it has their macros."""
    macros = {"local_rank": rank, "run_id": config.run_id}
    return str(text).replace("${local_rank}", str(macros["local_rank"])).replace("${run_id}", str(macros["run_id"]))


def _run_program(argv: Sequence[str]) -> None:
    """Runs a script, or a module that is given as to Python.

    Raises:
        ValueError: it is another program than Python's.
    """
    is_module, rest = False, list(argv)
    if _is_python(rest[0]):
        rest.pop(0)
        while rest and rest[0].startswith("-"):
            is_module |= rest.pop(0) == "-m"
    if not rest or not (is_module or rest[0].endswith(".py")):
        raise ValueError(f"workers are Python programs in this process, and {argv[0]!r} is none")
    (Module if is_module else Script)(rest).start(0)


def _is_python(program: str) -> bool:
    return program == sys.executable or os.path.basename(program).startswith("python")


def _name(entrypoint: Any, args: Sequence[Any]) -> str:
    """What messages call it."""
    if callable(entrypoint):
        return str(getattr(entrypoint, "__qualname__", entrypoint))
    if _is_python(entrypoint):
        return next((str(each) for each in args if not str(each).startswith("-")), "")
    return str(entrypoint)


def _failures(error: SpawnException) -> dict[int, ProcessFailure]:
    """What each worker that failed by itself has to say."""
    first = error.error_index
    exits = {first: error.exit_code} if isinstance(error, SpawnExitException) else {}
    return {
        failed.rank: ProcessFailure(
            failed.rank, failed.pid, exits.get(failed.rank, 1), "<N/A>", failed.traceback, failed.time_ps / 1e12
        )
        for failed in error.errors
    }
