"""``torchemu sweep``: times of collectives over topologies, algorithms, sizes, ranks and what-if figures."""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import copy
import importlib
import itertools
import json
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchemu.bridge.binding import go
from torchemu.c10d.ops import TABLE
from torchemu.errors import CommandError
from torchemu.launch import bandwidth, sweep_output, topologies
from torchemu.launch.parsing import positive

_NEAR = ("", "system.sips.", "system.", "system.network.")
"""Where a key of --set is looked for."""


class SweepError(CommandError):
    """A sweep that cannot be done, and why."""


@dataclass(frozen=True)
class Point:
    """One measurement.

    Attributes:
        spec: the topology file's text, with the what-if figures.
        about: the columns that tell it from others.
    """

    spec: str
    about: dict[str, Any]

    @property
    def key(self) -> str:
        """Returns what is the same in another run of the same measurement."""
        return json.dumps([self.spec, self.about], sort_keys=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.description = (
        "Times collectives, as torchemu bandwidth does, for all combinations of what is given, and says which "
        "algorithm wins where. A sweep that was interrupted goes on where it was."
    )
    add = parser.add_argument
    add("collectives", nargs="+", choices=list(TABLE.kinds), metavar="COLLECTIVE", help=", ".join(TABLE.kinds))
    add(
        "--topology",
        nargs="+",
        default=["default"],
        metavar="NAME|FILE",
        help="topology.yaml files, or presets, which grow with the ranks (default: default)",
    )
    add(
        "--algorithm",
        nargs="+",
        default=["all"],
        metavar="NAME",
        help="some that torchemu algorithms lists, auto, or all (default: all)",
    )
    add(
        "-g",
        "--ranks",
        nargs="+",
        type=positive,
        default=[0],
        metavar="N",
        help="the number of ranks (default: the SIPs of each topology)",
    )
    bandwidth.add_sizes(parser, factor=4)
    add(
        "--set", action="append", default=[], dest="changes", metavar="KEY=VALUE,…",
        help="what if: figures of the topology, such as link.bandwidth=200,400,800 or network.nic.latency=500",
    )  # fmt: skip
    add("-o", "--output", metavar="FILE", default="sweep.csv", help="a .csv or .parquet file (default: sweep.csv)")
    add("--plot", metavar="FILE", help="draw time over size, and over the what-if figures, into a .png, .svg or .pdf")
    add(
        "--jobs",
        type=positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="how many processes measure (default: as many as there are CPUs)",
    )
    add(
        "--executor",
        default="processes",
        metavar="URL",
        help="processes, or dask://ADDRESS of a cluster's scheduler; dask:// starts one here (default: processes)",
    )
    parser.set_defaults(action=sweep)


def sweep(options: argparse.Namespace) -> int:
    """Measures what is not in the output yet, writes it, and prints who wins; returns the exit status.

    Raises:
        SweepError: an option, a topology or a file is wrong, or an executor is not there.
    """
    try:
        sweep_output.check(options.output, options.plot)
        points = list(_points(options))
        done = sweep_output.Journal(options.output)
        left = [p for p in points if p.key not in done.rows]
        with done, _executor(options) as executor:
            _measure(executor, left, done, len(points), 2 * options.jobs)
        rows = [done.rows[p.key] for p in points]
        sweep_output.write(options.output, rows)
        done.remove()
        if options.plot:
            sweep_output.plot(options.plot, rows)
    except (OSError, ValueError, RuntimeError, ImportError, bandwidth.BandwidthError) as error:
        raise SweepError(str(error)) from None
    print(f"{options.output}: {len(rows)} rows, of which {len(left)} are new\n")
    print("\n".join(sweep_output.winners(rows)))
    return 0


def _points(options: argparse.Namespace) -> Iterator[Point]:
    """All combinations, in the order of the output."""
    if options.factor < 2:
        raise ValueError(f"a factor of {options.factor}: it must be at least 2")
    sizes = list(_sizes(options.begin, options.end, options.factor))
    if not sizes:
        raise ValueError(f"sizes from {options.begin} to {options.end} bytes: there are none")
    changes = [_change(text) for text in options.changes]
    for topology, ranks in itertools.product(options.topology, options.ranks):
        tree = json.loads(go.TopologySpec(topology, ranks))
        count = ranks or tree["system"]["sips"]["count"]
        known = topologies.algorithms(topology, ranks)
        for values in itertools.product(*(values for _, values in changes)):
            settings = {key: value for (key, _), value in zip(changes, values, strict=True)}
            spec = json.dumps(changed(tree, settings))
            for collective in options.collectives:
                names = known[collective] if options.algorithm == ["all"] else options.algorithm
                for algorithm, size in itertools.product(names, sizes):
                    about = {"collective": collective, "topology": topology, "ranks": count, "dtype": options.dtype}
                    yield Point(spec, {**about, **settings, "requested": algorithm, "requested_size": size})


def _sizes(begin: int, end: int, factor: int) -> Iterator[int]:
    while begin <= end:
        yield begin
        begin *= factor


def _change(text: str) -> tuple[str, list[Any]]:
    """A key and its values.

    Raises:
        ValueError: the text is no such thing.
    """
    key, equals, values = text.partition("=")
    if not key or not equals or not values:
        raise ValueError(f"--set {text}: want a key of topology files and values, such as link.bandwidth=200,400")
    return key, [_value(v) for v in values.split(",")]


def _value(text: str) -> Any:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def changed(tree: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The tree of a topology with other figures.

    Raises:
        ValueError: it has no such key.
    """
    tree = copy.deepcopy(tree)
    for key, value in settings.items():
        for near in _NEAR:
            *path, last = (near + key).split(".")
            at: Any = tree
            for name in path:
                at = at.get(name) if isinstance(at, dict) else None
            if isinstance(at, dict) and last in at and not isinstance(at[last], dict):
                at[last] = value
                break
        else:
            raise ValueError(f"--set {key}: topology {tree['name']!r} has no such key")
    return tree


def measure(spec: str, about: dict[str, Any]) -> dict[str, Any]:
    """Measures one point, in whichever process.

    Raises:
        BandwidthError: the spec is wrong, or there is too much to simulate.
    """
    size = about["requested_size"]
    with tempfile.TemporaryDirectory(prefix="torchemu-") as folder:
        file = Path(folder, "topology.yaml")
        file.write_text(spec, encoding="utf-8")
        options = argparse.Namespace(
            collective=about["collective"], topology=str(file), ranks=about["ranks"], algorithm=about["requested"],
            dtype=about["dtype"], root=0, iters=0, begin=size, end=size, step=0, factor=2,
        )  # fmt: skip
        try:
            ((_, row),) = bandwidth.rows(options)
        except bandwidth.BandwidthError as error:  # what the user wrote is --set, and not this file
            raise bandwidth.BandwidthError(
                str(error).replace(f"{file}:1", "--set").replace(str(file), "--set")
            ) from None
    return {**{k: v for k, v in about.items() if k != "requested_size"}, **{k: row[k] for k in sweep_output.MEASURED}}


@contextlib.contextmanager
def _executor(options: argparse.Namespace) -> Iterator[Executor]:
    """Returns what runs measurements.

    Raises:
        ValueError: there is no such executor.
        ImportError: it is not installed.
    """
    scheme, _, address = options.executor.partition("://")
    if options.executor == "processes":
        # Go's runtime does not survive a fork.
        context = multiprocessing.get_context("spawn")
        pool = concurrent.futures.ProcessPoolExecutor(options.jobs, context, _wait_for_the_parent)
        try:
            yield pool
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()  # what they measure may take minutes
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    elif scheme == "dask":
        try:
            start = importlib.import_module("distributed").Client
        except (ImportError, AttributeError):
            raise ImportError("--executor dask:// needs Dask: pip install distributed") from None
        with start(f"tcp://{address}" if address else None) as client, client.get_executor() as executor:
            yield executor
    else:
        raise ValueError(f"--executor {options.executor}: want processes, or dask:// and the address of a scheduler")


def _wait_for_the_parent() -> None:
    """Leaves Ctrl-C to the process that shows what is going on, and ends with it, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _measure(executor: Executor, points: Sequence[Point], done: sweep_output.Journal, total: int, ahead: int) -> None:
    """Measures points, a few ahead, and notes each result as soon as it is there."""
    waiting: dict[Future[dict[str, Any]], Point] = {}
    rest = iter(points)
    with sweep_output.Progress(total, total - len(points)) as progress:
        while True:
            for point in itertools.islice(rest, ahead - len(waiting)):
                waiting[executor.submit(measure, point.spec, point.about)] = point
            if not waiting:
                return
            ended = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED).done
            for future in ended:
                point = waiting.pop(future)
                done.note(point.key, future.result())
                progress.step(point.about)
