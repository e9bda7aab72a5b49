"""torchemu run: a script on the simulated fabric, by torchrun's command line."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from torchemu import runtime
from torchemu.errors import CommandError
from torchemu.frontends import base, stand_ins
from torchemu.launch import (
    blas,
    compiling,
    exploration,
    failures,
    flags,
    host_processes,
    mirroring,
    progress,
    schedule_switches,
    shell_commands,
    stalls,
    torchrun_programs,
    tuner_notes,
)
from torchemu.launch.exploration import Choices
from torchemu.launch.isolation import Isolation
from torchemu.launch.log_files import LogFiles, streams
from torchemu.profile.run import traced
from torchemu.runtime import fabric, files
from torchemu.runtime import program as programs
from torchemu.runtime.environ import Launch
from torchemu.runtime.fibers import NoThreadsError
from torchemu.runtime.program import Module, Program
from torchemu.runtime.tasks import Failure, Tasks

_UNREADABLE = 2  # Python's exit status for a script that it cannot open


class RunError(CommandError):
    """A run cannot start; the text says why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.usage = "torchemu run [OPTION…] SCRIPT [ARGUMENT…]"
    flags.add_arguments(parser)
    parser.set_defaults(action=run)


def run(options: argparse.Namespace) -> int:
    """Runs the program of a command line; returns the exit status.

    Raises:
        RunError: the topology or the ccl.yaml is wrong or does not fit the ranks, the trace cannot be written, or a
            flag would do nothing.
    """
    try:
        os.getcwd()
    except FileNotFoundError:
        raise RunError("the working directory is gone: change to another one") from None
    try:
        program = _program(options)
    except ImportError as error:
        print(f"torchemu: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"torchemu: can't open file {options.script!r}: {error.strerror}", file=sys.stderr)
        return _UNREADABLE
    except SyntaxError as error:
        error.filename = error.filename or options.script  # of null bytes Python says only that there are some
        print(failures.shown(error), end="", file=sys.stderr)
        return 1
    with _told():
        flags.check(options)
        _choose_torch(options, program)
        flags.check_isolated(options.isolate or ())
        launch = _launch(options, program)
        flags.check_filter(options.local_ranks_filter, launch.nproc)
    with contextlib.ExitStack() as stack:
        with _told():
            topology = stack.enter_context(fabric.fitting(options.topology, launch.nnodes, launch.nproc))
        return _Run(options, program, launch, topology).status()


def _program(options: argparse.Namespace) -> Program:
    """Returns the program that the command names."""
    words = [options.script, *options.args]
    if not options.no_python:
        return (Module if options.module else programs.program)(words)
    if options.module:
        raise RunError("--module and --no-python exclude each other")
    try:
        return programs.of_command(words)
    except ValueError as error:
        raise RunError(f"--no-python: {error}") from error


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Turns errors about a file that the user gave into a RunError."""
    try:
        yield
    except (OSError, ValueError, ImportError) as error:
        raise RunError(str(error)) from error


@contextlib.contextmanager
def _watched(world: runtime.World, tasks: Tasks) -> Iterator[None]:
    """Tells who looks on how far the run is, and where it stands still."""
    with progress.of_run(world, tasks), stalls.noticed(tasks):
        yield


def _choose_torch(options: argparse.Namespace, program: Program) -> None:
    """Chooses what the program imports as torch, unless the command says so; with --verbose it says what, and why."""
    why = "the command says so"
    if options.torch is None:
        torch, why = base.fitting(program.names(), options.no_data)
        options.torch = torch.name
    if options.verbose:
        print(f"torchemu: --torch {options.torch}, {base.torch_named(options.torch).help}: {why}", file=sys.stderr)


def _launch(options: argparse.Namespace, program: Program) -> Launch:
    """Returns how many ranks there are; without numbers, one for each SIP of the topology, or one for a program that is
    one host."""
    if isinstance(program, programs.Shell) and (options.nproc_per_node or 1) * (options.nnodes or 1) > 1:
        raise ValueError(f"{options.script} is a shell's script, which is run once: give --nproc-per-node 1, or none")
    nodes, sips = fabric.shape(options.topology)
    if not options.nproc_per_node and program.is_one_host():
        nodes = sips = 1
    return Launch(
        nproc=options.nproc_per_node or sips,
        nnodes=options.nnodes or (1 if options.nproc_per_node else nodes),
        run_id=options.rdzv_id,
        role=options.role,
        master_addr=options.master_addr,
        master_port=options.master_port,
        max_restarts=options.max_restarts,
    )


def _log_files(options: argparse.Namespace, nproc: int) -> LogFiles | None:
    """Returns the files of what ranks print; None where none are asked for."""
    if options.log_dir is None and options.redirects is None and options.tee is None:
        return None
    tee = options.tee or streams("0" if options.redirects else "3")
    folder = Path(options.log_dir) if options.log_dir is not None else None
    return LogFiles(folder, options.redirects or streams("0"), tee, nproc)


class _Run:
    def __init__(self, options: argparse.Namespace, program: Program, launch: Launch, topology: str) -> None:
        self._options, self._program, self._launch, self._topology = options, program, launch, topology
        self._restarts = 0
        self._is_plain = os.environ.pop(shell_commands.PLAIN, "") == "1" or isinstance(program, programs.Shell)
        try:
            self._logs = _log_files(options, launch.nproc)
        except OSError as error:
            raise RunError(f"--log-dir {options.log_dir}: the folder cannot be made: {error.strerror}") from error

    def status(self) -> int:
        """Runs the program, under one schedule or under many; returns the exit status."""
        blas.limit()
        options = self._options
        seed = options.schedule_seed or 0
        if options.explore:
            schedules = (options.schedule,) if options.schedule else ("random", "pct")
            return exploration.explore(self, schedules, range(seed, seed + options.explore))
        if options.exhaustive:
            return exploration.exhaust(self, options.exhaustive, full=bool(options.faults))
        if options.replay is not None:
            choices = Choices.replayed(schedule_switches.read(options.replay))
        else:
            choices = exploration.chosen(options.schedule or "fifo", self.depth, seed=seed)
        choices.sets = options.set_orders
        return self._repeated(choices)

    @property
    def _ranks(self) -> int:
        """Returns the number of ranks; 0 where the program makes them itself."""
        return 0 if self._program.is_one_host() else self._launch.world_size

    def _repeated(self, choices: Choices) -> int:
        """Runs the program until it ends well, or has been restarted as often as it may be."""
        while True:
            failed = self._mirrored(choices) if self._options.mirror else self.failures(choices)
            status = self.reported(failed)
            self._close_logs(failed)
            if not failed or self._restarts == self._launch.max_restarts:
                return status
            self._restarts += 1
            print(f"torchemu: restart {self._restarts} of {self._launch.max_restarts}", file=sys.stderr)

    def _close_logs(self, failed: list[Failure]) -> None:
        if self._logs is not None:
            for failure in failed:
                self._logs.note(failure.rank, failures.shown(failure.exception))
            self._logs.close()

    def _mirrored(self, choices: Choices) -> list[Failure]:
        """Acts as failures, of the ranks that stand for others."""
        launch = self._launch

        def run(mirror: mirroring.Mirror | None, shown: bool) -> list[Failure]:
            return self.failures(choices, silent=not shown, mirror=mirror)

        return mirroring.failures(run, launch.world_size, launch.nproc)

    @property
    def depth(self) -> int:
        """The number of ordering constraints that pct looks for."""
        return self._options.schedule_depth or 0

    def reported(self, failed: list[Failure]) -> int:
        """Prints why the run failed, if it did; returns the exit status, which is torchrun's."""
        if not failed:
            return 0
        sys.stdout.flush()
        with stand_ins.names_given():
            torch = base.torch_named(self._options.torch)
            told = "" if torch.is_default else f"--torch {torch.name}, {torch.help}"
            print(failures.report(failed, self._options.script, self._launch.nproc, told), file=sys.stderr)
        return 1

    def failures(self, choices: Choices, silent: bool = False, mirror: mirroring.Mirror | None = None) -> list[Failure]:
        """Runs the program once; returns the ranks that failed, the cause first."""
        with contextlib.ExitStack() as stack:
            with _told():
                options = self._options
                strictness = flags.strictness(options)
                if choices.reorder is not None and strictness.reorder is None:
                    strictness = runtime.Strictness(strictness.check, choices.reorder)
                world = stack.enter_context(runtime.opened(self._topology, options.ccl, strictness))
                stack.enter_context(files.watched(world))
                if self._options.faults and not self._restarts:
                    world.add_faults(self._options.faults, self._ranks)
                if mirror is not None:
                    mirror.begin(world)
            world.schedule, world.seed, world.numbers = choices.schedule, choices.seed, choices.numbers
            world.explores = choices.schedule == "exhaustive"
            world.unwaited, world.autotunes = flags.unwaited(options), options.autotune
            if fabric.is_preset(self._options.topology):
                world.room_for = functools.partial(fabric.enlarge, world, self._options.topology)
            with _told():
                torch = base.torch_named(options.torch)
                stack.enter_context(stand_ins.opened(torch, world, options.seed, not options.no_data))
            isolation = stack.enter_context(self._isolation(silent, choices.sets))
            if self._launch.world_size == 1:
                host_processes.install(stack)
            host_processes.install_beside(stack, torch.name)
            torchrun_programs.install(stack, self._of_programs(torch.name))
            if not silent:
                stack.enter_context(self._traced(world))
            tasks = self._tasks(world, isolation, mirror)
            with contextlib.nullcontext() if silent else _watched(world, tasks):
                try:
                    tasks.run()
                except NoThreadsError as error:
                    raise RunError(str(error)) from None
            choices.note(world)
            failed = _ended(world, tasks, mirror, silent)
            if not silent and (self._options.verbose or self._options.check):
                _warn(world)
        if tasks.interrupt is not None:
            raise tasks.interrupt
        return failed

    def _of_programs(self, torch: str) -> list[str]:
        """Returns the options with which torchemu runs in the place of a torchrun that a rank starts."""
        options = self._options
        files = {"--topology": options.topology, "--ccl": options.ccl}
        given = {name: os.path.abspath(file) if os.path.exists(file) else file for name, file in files.items() if file}
        flags = {"--no-data": options.no_data, "--virtual-clock": options.virtual_clock}
        pairs = [*given.items(), *(("--isolate", package) for package in options.isolate or ())]
        named = [part for pair in pairs for part in pair]
        return ["--torch", torch, *named, *(name for name, is_set in flags.items() if is_set)]

    def _isolation(self, silent: bool, orders: int | None) -> Isolation:
        recompile = functools.partial(compiling.compiled, own_orders=orders is not None)
        self._program.recompile = functools.cache(recompile)  # ranks share code, by which places are known
        some = self._options.local_ranks_filter
        return Isolation(
            seed=self._options.seed,
            isolate=(*base.isolated(self._options.torch), *(self._options.isolate or ())),
            prefix=self._options.prefix,
            shown=lambda rank: not silent and (some is None or rank % self._launch.nproc in some),
            virtual_clock=self._options.virtual_clock,
            main_again=self._program.again,
            set_orders=orders,
            **({} if silent or self._logs is None else {"stream": self._logs.stream}),
        )

    @contextlib.contextmanager
    def _traced(self, world: runtime.World) -> Iterator[None]:
        options = self._options
        with contextlib.ExitStack() as stack:
            with _told():
                trace = traced(world, options.trace, options.trace_level, options.trace_range == "profiler")
                stack.enter_context(trace)
            yield
            with _told():
                stack.close()

    def _variables(self, rank: int) -> dict[str, str]:
        """Returns what torchrun tells a worker; nothing where Python would run the program."""
        return {} if self._is_plain else self._launch.variables(rank, self._restarts)

    def _tasks(self, world: runtime.World, isolation: Isolation, mirror: mirroring.Mirror | None) -> Tasks:
        acts = mirror.acts if mirror is not None else lambda rank: True
        processes = [
            isolation.process(rank, self._variables(rank)) if acts(rank) else None
            for rank in range(self._launch.world_size)
        ]
        tasks = Tasks(world.main, self._program.start, (), len(processes), processes, acts=acts)
        self._launch.place(tasks.contexts)
        return tasks


def _warn(world: runtime.World) -> None:
    """Says what would be an error on a cluster."""
    for warning in world.warnings.values():
        print(f"torchemu: warning: {warning}", file=sys.stderr)


def _ended(world: runtime.World, tasks: Tasks, mirror: mirroring.Mirror | None, silent: bool) -> list[Failure]:
    """Notes how a run has ended; returns the ranks that failed, the cause first."""
    if mirror is not None:
        mirror.end(world, bool(tasks.failures))
    failed = failures.ordered(tasks.failures)
    if not silent:
        tuner_notes.tell(world)
    if failed:
        world.failure = failures.in_a_line(failed[0])
    return failed
