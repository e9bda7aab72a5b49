"""The program of a run: a script, a module that is run with -m, or a shell's script."""

from __future__ import annotations

import builtins
import contextlib
import dis
import errno
import importlib.machinery
import os
import pkgutil
import re
import runpy
import shutil
import subprocess
import sys
import types
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_CHIPS = "simpler"  # the package of programs that are one host with all its chips
_LAUNCHERS = frozenset({
    "accelerate.commands.accelerate_cli", "accelerate.commands.launch", "deepspeed.launcher.launch",
    "deepspeed.launcher.runner", "torch.distributed.launch", "torch.distributed.launcher.api", "torch.distributed.run",
})  # fmt: skip
"""Modules that start the ranks of a program, which they are given."""

LAUNCHERS = _LAUNCHERS - {"torch.distributed.run"}
"""Launchers that keep their own arguments when a program starts them as processes."""

_RANK = re.compile(r"--(local|global)?[-_]?rank=")

_STARTS = frozenset({"Popen", "executable"})
"""Names that a program uses which starts Python programs."""

_SPAWNS = ("spawn", "start_processes", "Process")  # what makes ranks, of torch.multiprocessing


class Program:
    """Runs the main program in a rank, as Python does.

    Args:
        argv: what the program is called with; the first is its name.

    Attributes:
        recompile: compiles the main program's file for a run that needs other code; None: there is none.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self.argv = list(argv)
        self.recompile: Callable[[bytes, str], types.CodeType | None] | None = None

    def run(self, name: str = "__main__") -> None:
        """Runs it as a module of that name, in the running rank."""
        code, about = self._loaded()
        if (
            self.recompile is not None
            and code.co_filename == about.get("__file__")
            and os.path.isfile(code.co_filename)
        ):
            code = self.recompile(Path(code.co_filename).read_bytes(), code.co_filename) or code
        main = types.ModuleType(name)
        main.__dict__.update(about, __builtins__=builtins)
        sys.modules["__main__"] = sys.modules["__mp_main__"] = main  # as after an import of multiprocessing
        exec(code, main.__dict__)

    def is_one_host(self) -> bool:
        """Reports whether it is to be started once, as far as can be seen without running it: it spawns its ranks
        itself, or drives the SIPs as its chips."""
        return False

    def names(self) -> set[str]:
        """The modules that it imports, and ahbm where it asks for that, as far as can be seen without running it."""
        return set()

    def start(self, rank: int) -> None:
        """The whole of what one rank does."""
        sys.argv = list(self.argv)
        sys.path.insert(0, self.first_path())
        self.run()

    def again(self) -> None:
        """Loads it in a rank that it has spawned; the guard ``if __name__ == "__main__"`` keeps it from starting."""
        self.run("__mp_main__")

    def _loaded(self) -> tuple[types.CodeType, dict[str, Any]]:
        raise NotImplementedError

    def first_path(self) -> str:
        """Returns the folder, or the archive, in which the program's modules are looked for first."""
        raise NotImplementedError


class Script(Program):
    """A file.

    Raises:
        OSError: it cannot be read.
        SyntaxError: it is not Python.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        super().__init__(argv)
        self._file = os.path.abspath(argv[0])
        loader = importlib.machinery.SourceFileLoader("__main__", self._file)
        self._code = compile(loader.get_data(self._file), self._file, "exec", dont_inherit=True)
        self._about = {"__file__": self._file, "__loader__": loader, "__cached__": None, "__package__": None}

    def is_one_host(self) -> bool:
        """Acts as Program.is_one_host: it sees what the file says, and the files beside it that it imports."""
        seen = self._seen()
        codes = [code for code in seen.values() if code is not None]
        names = set().union(*map(_names, codes))
        spawns = not names.isdisjoint(_SPAWNS) and "multiprocessing" in names
        launches = "elastic_launch" in names or not _LAUNCHERS.isdisjoint(set().union(*map(_modules, codes)))
        starts = names >= _STARTS and "init_process_group" not in names and any(map(_tells_ranks, codes))
        return _CHIPS in seen or spawns or launches or starts

    def drives_chips(self) -> bool:
        """Reports whether it imports simpler, itself or in a file beside it."""
        return _CHIPS in self._seen()

    def names(self) -> set[str]:
        """Acts as Program.names: of the file, and of the files beside it that it imports."""
        codes = [code for code in self._seen().values() if code is not None]
        return set().union(*map(_modules, codes), *({"ahbm"} & _names(code) for code in codes))

    def _seen(self) -> dict[str, types.CodeType | None]:
        """The code of the file and of those beside it, by their names; None for the other modules that they import."""
        known: dict[str, types.CodeType | None] = {"__main__": self._code}
        waiting = [self._code]
        while waiting:
            code = waiting.pop()
            for package in {name.partition(".")[0] for name in _modules(code)} - known.keys():
                known[package] = self._beside(package)
                waiting += filter(None, [known[package]])
        return known

    def _beside(self, name: str) -> types.CodeType | None:
        """The code of a module in the file's folder; None if there is none, or none that Python can read."""
        file = os.path.join(self.first_path(), f"{name}.py")
        try:
            return compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)
        except (OSError, SyntaxError, ValueError):
            return None

    def _loaded(self) -> tuple[types.CodeType, dict[str, Any]]:
        return self._code, dict(self._about)

    def first_path(self) -> str:
        """Acts as Program.first_path."""
        return os.path.dirname(os.path.realpath(self._file))


class Folder(Script):
    """A folder, or an archive of such, whose __main__.py is the program, as for Python.

    Raises:
        OSError, SyntaxError: see Script.
        ImportError: it has no __main__.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        Program.__init__(self, argv)
        self._folder = os.path.abspath(argv[0])
        importer: Any = pkgutil.get_importer(self._folder)
        spec = importer.find_spec("__main__") if importer is not None else None
        if spec is None or spec.loader is None:
            raise ImportError(f"can't find '__main__' module in {argv[0]!r}")
        self._file = spec.origin
        self._code = spec.loader.get_code("__main__")
        about = {"__file__": self._file, "__loader__": spec.loader, "__cached__": spec.cached}
        self._about = {**about, "__package__": "", "__spec__": spec}

    def first_path(self) -> str:
        """Acts as Program.first_path."""
        return self._folder


class Shell(Program):
    """A script of a shell, which starts the programs that have ranks.

    Raises:
        OSError: it cannot be read.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        super().__init__(argv)
        self._shell = _first_words(argv[0]) or ["sh"]

    def is_one_host(self) -> bool:
        """True."""
        return True

    def start(self, rank: int) -> None:
        """Runs it to its end, whose status is the rank's."""
        status = subprocess.run([*self._shell, *self.argv]).returncode
        if status:
            sys.exit(status)


_SHELL = re.compile(rb"#!\s*(\S*/env\s+)?(?P<words>\S*\b(a|ba|da|k|z)?sh\b[^\r\n]*)")
"""The first line of a shell's script."""

_TO_PYTHON = b"'''exec'"
"""The beginning of the second line of a script that is a shell's until there, and then Python's."""


def _first_words(file: str) -> list[str]:
    """Returns the words of a script's first line that name its shell; none where it names another program, or none.
    Where the path of Python is long, pip writes scripts of Python that begin as a shell's."""
    with open(file, "rb") as opened:
        found = _SHELL.match(opened.readline(256))
        is_pythons = opened.readline(256).startswith(_TO_PYTHON)
    return [] if found is None or is_pythons else os.fsdecode(found["words"]).split()


def program(argv: Sequence[str]) -> Program:
    """Returns the program of a command line, whose first word is the name of a file or of a folder.

    Raises:
        OSError, SyntaxError, ImportError: see Script and Folder.
    """
    if os.path.isdir(argv[0]) or zipfile.is_zipfile(argv[0]):
        return Folder(argv)
    return Shell(argv) if argv[0].endswith(".sh") or _first_words(argv[0]) else Script(argv)


def of_command(command: Sequence[str]) -> Program:
    """Returns the program that a command runs: Python's with its arguments, or a script of Python's that is in PATH.

    Raises:
        ValueError: it is another command.
        OSError, SyntaxError, ImportError: see Script and Folder.
    """
    name, *rest = command
    found = found_in(command)
    if found is not None:
        make, words = found
        return make(words)
    path = shutil.which(name)
    if path is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    with open(path, "rb") as opened:
        first, second = opened.readline(256), opened.readline(256)
    if not ((first.startswith(b"#!") and b"python" in first) or second.startswith(_TO_PYTHON)):
        raise ValueError(f"{name} is no program of Python's: ranks are such, in this process")
    return program([path, *rest])


_FLAGS = re.compile(r"-[bBdEiIOqsSuvP]+")
"""Flags of Python's without a value."""


def found_in(command: Sequence[str]) -> tuple[Callable[[list[str]], Program], list[str]] | None:
    """Returns what makes the program that a command runs, ``python -u -m package`` say, or ``train.py``, and its
    arguments with its name. None where that is none of Python's, or is none in a file."""
    name, *rest = command
    if name != sys.executable and not os.path.basename(name).startswith("python"):
        return (program, [name, *rest]) if _is_file(name) else None
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        if flag == "-m":
            return (Module, rest) if rest else None
        if flag in ("-W", "-X"):
            del rest[:1]
        elif _FLAGS.fullmatch(flag) is None:
            return None
    return (program, rest) if rest and _is_file(rest[0]) else None


def _is_file(name: str) -> bool:
    return name.endswith(".py") or os.path.isdir(name)


class Module(Program):
    """A module that is found like any other; a package's is its __main__."""

    def is_one_host(self) -> bool:
        """Acts as Program.is_one_host: launchers are, and pytest with files that are."""
        return self.argv[0] in _LAUNCHERS or any(script.drives_chips() for script in self._tests())

    def names(self) -> set[str]:
        """Acts as Program.names: of the files that pytest is called with."""
        return set().union(*(script.names() for script in self._tests()))

    def _tests(self) -> list[Script]:
        """The Python files that pytest is called with, and those in the folders that it is called with."""
        if self.argv[0] != "pytest":
            return []
        paths = [Path(argument.partition("::")[0]) for argument in self.argv[1:] if not argument.startswith("-")]
        files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))]
        scripts = []
        for file in files:
            with contextlib.suppress(OSError, SyntaxError, ValueError):
                scripts.append(Script([str(file)]))
        return scripts

    def _loaded(self) -> tuple[types.CodeType, dict[str, Any]]:
        _, spec, code = runpy._get_module_details(self.argv[0])  # type: ignore[attr-defined] # what pdb calls, too
        sys.argv[0] = spec.origin
        about = {"__file__": spec.origin, "__loader__": spec.loader, "__cached__": spec.cached}
        return code, {**about, "__package__": spec.parent, "__spec__": spec}

    def first_path(self) -> str:
        """Acts as Program.first_path."""
        return os.getcwd()


def _names(code: types.CodeType) -> set[str]:
    """The names that code, and the functions in it, use."""
    found = {part for name in code.co_names for part in name.split(".")}
    return found.union(*(_names(inner) for inner in code.co_consts if isinstance(inner, types.CodeType)))


def _tells_ranks(code: types.CodeType) -> bool:
    """Reports whether code makes an argument such as ``--rank=0`` of text, or sets a variable RANK."""
    before: Any = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "STORE_SUBSCR" and before == "RANK":
            return True
        before = instruction.argval
        if isinstance(before, str) and instruction.opname == "LOAD_CONST" and _RANK.match(before):
            return True
    return any(_tells_ranks(inner) for inner in code.co_consts if isinstance(inner, types.CodeType))


def _modules(code: types.CodeType) -> set[str]:
    """The modules that code, and the functions in it, import, and what it imports from them, which may be modules."""
    found, module = set(), ""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            module = instruction.argval
            found.add(module)
        elif instruction.opname == "IMPORT_FROM":
            found.add(f"{module}.{instruction.argval}")
    return found.union(*(_modules(inner) for inner in code.co_consts if isinstance(inner, types.CodeType)))
