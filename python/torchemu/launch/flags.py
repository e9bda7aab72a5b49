"""The command line of torchemu run: torchrun's, and what only a simulation can offer."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.frontends import base
from torchemu.launch import log_files, schedule_switches
from torchemu.launch.parsing import positive
from torchemu.profile.recording import LEVELS

_ALL = ("auto", "cpu", "gpu")  # what torchrun takes for --nproc-per-node besides a number
_IGNORED = (
    "--duplicate-stderr-filters",
    "--duplicate-stdout-filters",
    "--event-log-handler",
    "--local-addr",
    "--logs-specs",
    "--monitor-interval",
    "--numa-binding",
    "--rdzv-backend",
    "--rdzv-conf",
    "--rdzv-endpoint",
    "--shutdown-timeout",
    "--signals-to-handle",
    "--start-method",
)
"""Flags of torchrun, with a value, that mean nothing where all nodes are in one process."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    _add_ranks(parser)
    _add_front_end(parser)
    _add_fabric(parser)
    _add_schedule(parser)
    add_strictness(parser)
    _add_hosts(parser)
    _add_output(parser)
    _add_ignored(parser)
    _flag(parser, "--module", "-m", action="store_true", help="SCRIPT is the name of a module, as for python -m")
    parser.add_argument("script", metavar="SCRIPT", help="what each rank runs")
    args = parser.add_argument("args", metavar="ARGS", nargs=argparse.REMAINDER, help="its arguments")
    args.required = False  # there may be none


def _flag(parser: Any, name: str, *short: str, **options: Any) -> None:
    """Adds a flag that can be spelled with - and with _, as torchrun's can. Help and errors know one spelling."""
    parser.add_argument(*short, name, **options)
    other = "--" + name[2:].replace("-", "_")
    if other != name:
        parser.add_argument(other, **{**options, "help": argparse.SUPPRESS})


def _add_ranks(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("ranks")
    _flag(
        group,
        "--nproc-per-node",
        type=_processes,
        metavar="N",
        help="ranks of a node; with auto, gpu or cpu, and without it, one for each SIP, or 1 for a script that spawns",
    )
    _flag(group, "--nnodes", type=_nodes, metavar="M", help="nodes; without it 1, or all of the topology's without N")
    _flag(
        group,
        "--max-restarts",
        type=_count,
        default=0,
        metavar="N",
        help="start all ranks anew after one has failed, so many times at most; faults happen at first only",
    )
    _flag(
        group,
        "--seed",
        type=int,
        default=0,
        metavar="S",
        help="the seed of random numbers, of which each rank draws others (default: 0)",
    )
    _flag(
        group,
        "--isolate",
        action="append",
        metavar="PACKAGE",
        help="an installed package of which each rank is to have its own modules, as of the program's files",
    )
    for name, default in (("--master-addr", "127.0.0.1"), ("--rdzv-id", "none"), ("--role", "default")):
        _flag(group, name, default=default, metavar="TEXT", help="passed on in the environment")
    _flag(group, "--master-port", type=int, default=29500, metavar="PORT", help="passed on in the environment")


def _add_front_end(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("front end")
    add_torch(group, "without it what is installed, if it is, for programs that use nothing else of torchemu's")
    torches = base.torches()
    able = " or ".join(f"--torch {torch.name}" for torch in torches.values() if torch.can_omit_data)
    _flag(
        group,
        "--no-data",
        action="store_true",
        help=f"take the time of operations on devices without computing them; with {able}",
    )
    _flag(
        group,
        "--mirror",
        action="store_true",
        help="as --no-data, and run one rank of each class, which stands for those that do the same",
    )


def add_torch(group: Any, otherwise: str) -> None:
    """Adds the argument that says what programs import as torch."""
    torches = base.torches()
    listed = "; ".join(f"{torch.name}, {torch.help}" for torch in torches.values())
    _flag(group, "--torch", choices=tuple(torches), help=f"what programs import as torch: {listed}; {otherwise}")


def _add_fabric(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("fabric")
    presets = ", ".join(json.loads(go.Presets()))
    _flag(
        group,
        "--topology",
        default=runtime.DEFAULT_TOPOLOGY,
        metavar="NAME|FILE",
        help=f"a topology.yaml, or one of {presets}, which get more SIPs where there are more ranks",
    )
    _flag(group, "--ccl", default="", metavar="FILE", help="a ccl.yaml; without it the Tuner chooses algorithms")
    _flag(group, "--faults", default="", metavar="FILE", help="a YAML file of what goes wrong, and when")
    _flag(group, "--virtual-clock", action="store_true", help="let the module time tell simulated time")


def _add_schedule(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("order in which ranks run")
    _flag(
        group,
        "--schedule",
        choices=("fifo", "random", "pct"),
        help="who runs of those who can: the first one, any, or one by priorities that change at random",
    )
    _flag(group, "--schedule-seed", type=int, metavar="K", help="the seed of the schedule (default: 0)")
    _flag(
        group,
        "--schedule-depth",
        type=positive,
        metavar="D",
        help="of pct: how many ordering constraints a bug may need to be found (default: 3)",
    )
    _flag(
        group,
        "--explore",
        type=positive,
        metavar="N",
        help="run the ordinary schedule and N others, of seeds from K on, without output, until one fails; of device "
        "programs also what --reorder moves",
    )
    _flag(
        group,
        "--exhaustive",
        type=positive,
        metavar="N",
        help="run all orders in which ranks and threads can take turns, those of the fewest switches first, N at most",
    )
    _flag(
        group,
        "--set-orders",
        type=int,
        metavar="SEED",
        help="let each rank go through sets of strings in an order of its own, as processes do; --explore does so, too",
    )
    _flag(group, "--replay", metavar="SWITCHES", help="run the schedule that --explore or --exhaustive has found")


def add_strictness(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that say how strictly device programs are run."""
    group = parser.add_argument_group("device programs")
    _flag(group, "--check", action="store_true", help="find memory accesses that nothing orders: an error with both")
    _flag(group, "--reorder", type=int, metavar="SEED", help="let everything move that no rule orders, by a seed")


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("programs of ranks")
    _flag(
        group,
        "--allow-unwaited",
        action="store_true",
        help="say nothing of tensors that are used before the wait() of an operation on them; otherwise that is a "
        "warning, and with --check and --explore an error",
    )
    _flag(
        group,
        "--autotune",
        action="store_true",
        help="run kernels of several configurations in the fastest one, by simulated time; otherwise it is the first",
    )


def unwaited(options: argparse.Namespace) -> str:
    """Returns what becomes of uses of tensors before the wait() of an operation on them: "off", "error" or "warn"."""
    if options.allow_unwaited:
        return "off"
    strict = options.check or options.explore or options.exhaustive or options.replay is not None
    return "error" if strict else "warn"


def strictness(options: argparse.Namespace) -> runtime.Strictness:
    """Returns the strictness that the arguments ask for."""
    return runtime.Strictness(options.check, options.reorder)


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    _flag(group, "--verbose", action="store_true", help="say what programs import as torch, and why; what NCCL refuses")
    _flag(group, "--prefix", action="store_true", help="let each line that a rank prints name the rank")
    _flag(
        group,
        "--log-dir",
        metavar="FOLDER",
        help="write what ranks print to files there, attempt_0/RANK/stdout.log and stderr.log; without -r and -t both, "
        "and to the terminal as well",
    )
    for name, short, does in (
        ("--redirects", "-r", "to files instead of the terminal"),
        ("--tee", "-t", "to files and the terminal"),
    ):
        told = f"write {does}: 1 stdout, 2 stderr, 3 both; or by local ranks, 0:3,1:2"
        _flag(group, name, short, type=_streams, metavar="STREAMS", help=told)
    _flag(group, "--local-ranks-filter", type=_numbers, metavar="R,…", help="show only what these local ranks print")
    add_trace(group)


def add_trace(group: Any) -> None:
    """Adds the arguments that say what is traced, and where to."""
    _flag(
        group,
        "--trace",
        default="",
        metavar="PATH",
        help="write a trace: to a folder, as PyTorch's profiler would, for HTA and torchemu report; to a file whose "
        "name ends in .pftrace, the hardware's view for Perfetto; in .json, a small one for any viewer; to a file for "
        "each rank, NAME.0.et and so on, for NAME.et, graphs for ASTRA-sim",
    )
    _flag(
        group,
        "--trace-level",
        choices=LEVELS,
        default="",
        help="how much is in it: collectives; each of their steps, as usual in .json; each message, as in .pftrace",
    )
    _flag(
        group,
        "--trace-range",
        choices=("run", "profiler"),
        default="",
        help="of what time: the whole run, or only while the program profiles with torch.profiler",
    )


def check(options: argparse.Namespace) -> None:
    """Refuses flags that would do nothing.

    Raises:
        ValueError: the text names the flag, and the one that it needs.
    """
    varied = options.schedule in ("random", "pct")
    ways = [f"--{name}" for name in ("explore", "exhaustive", "replay") if getattr(options, name) is not None]
    if len(ways) > 1:
        raise ValueError(f"{ways[0]} and {ways[1]} are two ways to choose schedules: give one")
    if options.replay is not None:
        _check_replay(options.replay)
    if options.schedule and ways and ways[0] != "--explore":
        raise ValueError(f"--schedule does nothing with {ways[0]}")
    if options.schedule_depth is not None and options.schedule != "pct":
        raise ValueError("--schedule-depth does nothing without --schedule pct")
    if options.explore and options.schedule == "fifo":
        raise ValueError("--explore runs different schedules, of which fifo has one: use --schedule random or pct")
    if ways and options.max_restarts:
        raise ValueError(f"--max-restarts does nothing with {ways[0]}, which runs each schedule once")
    if options.schedule_seed is not None and not (varied or options.explore):
        raise ValueError("--schedule-seed does nothing without --schedule random or pct, or --explore")
    _check_mirror(options)
    check_trace(options)


def _check_mirror(options: argparse.Namespace) -> None:
    """Refuses what a rank that stands for others cannot have."""
    if not options.mirror:
        return
    for name in ("faults", "explore", "exhaustive", "replay", "check", "reorder"):
        if getattr(options, name):
            raise ValueError(f"--{name} tells ranks apart, of which --mirror has one for all: give one of both")
    options.no_data = True


def _check_replay(text: str) -> None:
    try:
        schedule_switches.read(text)
    except ValueError as error:
        raise ValueError(f"--replay {error}") from None


def check_trace(options: argparse.Namespace) -> None:
    """The same for the flags of a trace. Raises ValueError."""
    for name, given in (("level", options.trace_level), ("range", options.trace_range)):
        if given and not options.trace:
            raise ValueError(f"--trace-{name} does nothing without --trace")


def check_filter(local_ranks: Collection[int] | None, nproc: int) -> None:
    """Refuses to show the output of ranks that no node has.

    Args:
        local_ranks: those that are to be shown; None for all.
        nproc: ranks of a node.

    Raises:
        ValueError: the text names one of them.
    """
    absent = sorted(rank for rank in local_ranks or () if not 0 <= rank < nproc)
    if absent:
        raise ValueError(f"--local-ranks-filter: there is no local rank {absent[0]}; a node has 0 to {nproc - 1}")


def check_isolated(packages: Collection[str]) -> None:
    """Refuses parts of packages. Whether there is a package of such a name is known when it is imported: programs
    change where Python looks.

    Raises:
        ValueError: the text names one of them.
    """
    for package in packages:
        if "." in package:
            raise ValueError(f"--isolate {package}: packages are isolated whole: give {package.partition('.')[0]}")


def _add_ignored(parser: argparse.ArgumentParser) -> None:
    for name in _IGNORED:
        _flag(parser, name, help=argparse.SUPPRESS)
    for name in ("--standalone", "--run-path", "--use-env", "--no-python"):
        _flag(parser, name, action="store_true", help=argparse.SUPPRESS)
    device = "a rank's device is that of its number"
    _flag(parser, "--virtual-local-rank", action=_Refused, nargs=0, reason=device, help=argparse.SUPPRESS)
    all_nodes = "one command runs all nodes: give --nnodes, and leave this out"
    _flag(parser, "--node-rank", action=_Refused, nargs="?", but="0", reason=all_nodes, help=argparse.SUPPRESS)


class _Refused(argparse.Action):
    def __init__(self, *args: Any, reason: str, but: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reason, self._but = reason, but

    def __call__(self, parser: argparse.ArgumentParser, _: argparse.Namespace, value: Any, *__: Any) -> None:
        if self._but is None or value != self._but:
            parser.error(f"{self.option_strings[0]} is not supported: {self._reason}")


def _processes(text: str) -> int | None:
    return None if text in _ALL else positive(text)


def _nodes(text: str) -> int:
    """M, or MIN:MAX, of which all come."""
    return max(positive(part) for part in text.split(":", 1))


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of times")
    return int(text)


def _streams(text: str) -> log_files.Streams:
    try:
        return log_files.streams(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _numbers(text: str) -> frozenset[int]:
    try:
        return frozenset(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers, such as 0,1") from None
