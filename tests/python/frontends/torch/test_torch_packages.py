"""Installed packages are loaded once; what their functions keep of a process is each rank's own."""

import contextlib
import functools
import importlib
import os
import random
import sys
import types
import warnings

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.distributed.elastic.timer
from torch.autograd import graph
from torch.distributed._shard import api as shards
from torch.distributed._shard.sharded_tensor import api as sharded
from torch.distributed.elastic.metrics import api as figures
from torch.distributed.elastic.timer import api as timers
from torch.distributed.fsdp import wrap
from torch.distributed.tensor import _redistribute as redistribute
from torch.nn.utils import parametrize
from torch.utils import checkpoint

import torchemu
from torchemu.frontends.torch import packages

SPEAKING = """
import os
import torch.distributed as dist
group, calls = None, 0
FILLED = {}

def register(name):
    FILLED[name] = len(FILLED)

def start():
    global group, calls
    calls += 1
    if group is None:
        group = dist.new_group([0, 1, 2])
    return group

def info():
    found = getattr(info, "found", None)
    if found is None:
        found = info.found = int(os.environ["RANK"])
    return found

def steps():
    steps.count += 10
    return steps.count

class State:
    shared = None
    def __init__(self, value):
        State.shared = value
        self.other = value
    @classmethod
    def count(cls):
        cls.counted = getattr(cls, "counted", 0) + 1
        return cls.counted

steps.count = 3
info()
register("first")
"""
BESIDE = """
import spoken_of
spoken_of.register("second")
remembered = None

def remember(value):
    global remembered
    remembered = value
"""
MAKING = """
import os
from os import environ
from spoken_of import calls
WORLD_SIZE: int = int(os.getenv("WORLD_SIZE", "1"))
RANK = int(os.getenv("RANK", "-1")) if WORLD_SIZE > 1 else -1
FIRST = LEADER = RANK in {-1, 0}
local = environ["LOCAL_RANK"] + "."
OTHER = os.getenv("OTHER", "RANK is no name of it")
MADE = [RANK]
LATER = RANK + 100
LATER = 3
"""
IMPORTING = "from spoken_made import RANK as mine, LEADER, OTHER\nLATER = not LEADER\n"


ON_DEVICES = """
import torch
_mask = None

def mask(rows):
    global _mask
    if _mask is None or len(_mask) < rows:
        _mask = torch.ones(rows, device="cuda")
    return _mask

class Rotary:
    table = None
    def rows(self):
        if Rotary.table is None:
            Rotary.table = torch.ones(2).cuda()
        return Rotary.table
"""
DRAWN = torch.rand(1, generator=torch.Generator().manual_seed(7), dtype=torch.float64).item()
SETTING = """
import os, random, sys, warnings
import numpy as np
import torch
os.environ["SPOKEN"] = "1"
os.environ["SPOKEN_RANK"] = "0"
os.environ.setdefault("SPOKEN_OF_BEFORE", "package")
sys.path.append("/spoken")
warnings.filterwarnings("ignore", message="spoken")
random.seed(5)
np.random.seed(6)
torch.manual_seed(7)
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.benchmark = True
np.set_printoptions(precision=3)
torch.set_printoptions(precision=2)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "spoken_of.py").write_text(SPEAKING)
    (folder / "spoken_beside.py").write_text(BESIDE)
    (folder / "spoken_made.py").write_text(MAKING)
    (folder / "spoken_made_of.py").write_text(IMPORTING)
    (folder / "spoken_setting.py").write_text(SETTING)
    (folder / "spoken_on_devices.py").write_text(ON_DEVICES)
    (folder / "spoken_loading.py").write_text("import spoken_setting\n")
    (folder / "spoken_package").mkdir()
    (folder / "spoken_package/__init__.py").write_text("from .inner import RANK\n")
    (folder / "spoken_package/inner.py").write_text("import os\nRANK = int(os.environ['RANK'])\n")
    (folder / "spoken_package/setting.py").write_text(
        "import torch.distributed\nfrom . import inner\ndef set_group(value): inner.group = value\n"
    )
    (folder / "spoken_package/last.py").write_text("from . import RANK\nfrom .inner import RANK as R\n")
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in [name for name in sys.modules if name.startswith("spoken_")]:
        del sys.modules[name]


def test_what_functions_keep_is_a_ranks_own(folder):
    @torchemu.distributed(world_size=3, torch="real")
    def program():
        import spoken_of

        dist.init_process_group("gloo")
        rank = dist.get_rank()
        for _ in range(rank + 1):
            dist.barrier(spoken_of.start())
        assert spoken_of.info() == rank  # the first rank has called it while the module was loaded
        spoken_of.State(rank)
        counts = [spoken_of.State.count() for _ in range(rank)]
        numbers = [spoken_of.steps() for _ in range(rank)]
        for _ in range(2 - rank):
            dist.barrier(spoken_of.start())
        assert spoken_of.State.shared == rank and spoken_of.calls == 3
        assert counts == [1, 2][:rank] and numbers == [13, 23][:rank]
        import spoken_beside

        assert (
            spoken_of.FILLED == spoken_beside.spoken_of.FILLED == {"first": 0, "second": 1}
        )  # an import fills it once

    program()
    assert sys.modules["spoken_of"].group is None and sys.modules["spoken_of"].calls == 0
    program()  # the module is loaded still


def test_what_a_packages_modules_set_in_each_other_is_a_ranks_own(folder):
    """YOLOX's launcher sets the group of a machine so, and wants it to be set by nobody before."""

    @torchemu.distributed(world_size=3, torch="real")
    def program():
        from spoken_package import inner, setting

        dist.init_process_group("gloo")
        assert not hasattr(inner, "group")
        setting.set_group(dist.get_rank())
        dist.barrier()
        assert inner.group == dist.get_rank()

    program()
    program()


def test_what_modules_make_of_the_environment_is_a_ranks_own(folder):
    @torchemu.distributed(world_size=3, torch="real")
    def program():
        import spoken_made
        import spoken_made_of
        import spoken_package.last

        dist.init_process_group("gloo")
        rank = dist.get_rank()
        for _ in range(3):
            dist.barrier()
            made = spoken_made.RANK, spoken_made.WORLD_SIZE, spoken_made.FIRST, spoken_made.LEADER, spoken_made.local
            assert made == (rank, 3, rank == 0, rank == 0, f"{rank}.")
            assert (spoken_made_of.mine, spoken_made_of.LEADER, spoken_made_of.LATER) == (rank, rank == 0, rank > 0)
            later = spoken_made.LATER
            package = spoken_package
            assert later == 3
            assert package.RANK == package.inner.RANK == package.last.RANK == package.last.R == rank
        made_of_it, other = spoken_made.MADE, spoken_made.OTHER
        assert made_of_it == [rank] and other == "RANK is no name of it"
        spoken_made.RANK += 10
        dist.barrier()
        changed = spoken_made.RANK
        assert changed == rank + 10

    program()
    program()  # the modules are loaded still


def test_what_loading_a_module_does_to_the_process_is_done_for_each_rank(folder):
    @torchemu.distributed(world_size=3, torch="real")
    def program():
        rank = int(os.environ["RANK"])
        if rank == 1:
            os.environ["SPOKEN_OF_BEFORE"] = "program"
            torch.manual_seed(30)
        import spoken_loading  # noqa: F401

        drawn = random.random(), np.random.rand(), torch.rand(1).item()
        assert drawn == (random.Random(5).random(), np.random.RandomState(6).rand(), DRAWN)
        found = [os.environ.get(name) for name in ("SPOKEN", "SPOKEN_RANK", "SPOKEN_OF_BEFORE")]
        assert found == ["1", "0" if rank == 0 else None, "program" if rank == 1 else "package"] or rank == 0
        assert sys.path[-1] == "/spoken" and any("spoken" in str(one[1]) for one in warnings.filters)
        assert torch.get_default_dtype() == torch.float64 and not torch.is_grad_enabled()
        assert torch.backends.cuda.matmul.allow_tf32 and torch.backends.cudnn.benchmark
        assert np.get_printoptions()["precision"] == 3 and str(torch.tensor(1 / 3)) == "tensor(0.33)"
        torch.manual_seed(rank)
        import spoken_loading as again  # noqa: F401
        import spoken_setting  # noqa: F401

        assert torch.initial_seed() == rank  # what is loaded does nothing again

    program()


def test_tensors_that_functions_keep_are_on_a_ranks_own_device(folder):
    @torchemu.distributed(world_size=2, torch="real")
    def program():
        import spoken_on_devices

        dist.init_process_group("nccl")
        torch.cuda.set_device(dist.get_rank())
        for _ in range(2):
            kept = spoken_on_devices.mask(3), spoken_on_devices.Rotary().rows()
            assert {t.device.index for t in kept} == {dist.get_rank()}
            dist.barrier()

    program()


def test_which_modules_speak_of_ranks():
    speaking = [
        "import torch.distributed as dist",
        "from torch import distributed",
        "from torch.distributed.fsdp import FSDP",
        "import torch\ndef rank():\n    return torch.distributed.get_rank()",
        "import os\ndef rank():\n    return os.environ.get('LOCAL_RANK')",
    ]
    silent = ["import torch", "import distributed", "RANK = 3", "def f(rank='rank'):\n    import numpy.distributed"]
    for source in (*speaking, *silent):
        assert packages._speaks_of_ranks(compile(source, "x", "exec")) == (source in speaking), source


def test_what_is_set_on_a_class_is_told_from_what_is_set_on_its_objects():
    source = """
class Base:
    made = 0
    given = None
    @classmethod
    def make(cls):
        cls.made = cls.made + 1
        cls.last = cls
class Derived(Base):
    other = 0
class Apart:
    made, given = 0, 1
    def use(self):
        self.made = Base
def apart(cls):
    cls.given = 3
class Last:
    def use(self):
        Base.given = self
"""
    module, code = types.ModuleType("x"), compile(source, "x", "exec")
    exec(code, vars(module))
    found = {kind.__name__: packages._set_on(kind, code) for kind in (module.Base, module.Derived, module.Apart)}
    assert found == {"Base": {"made", "last", "given"}, "Derived": {"made", "last"}, "Apart": set()}


def entered(context, read):
    """Returns the values in a context that ranks enter one after another, and after it."""
    with context:
        dist.barrier()
        inside = read()
        dist.barrier()
    return inside, read()


@torchemu.distributed(world_size=2, torch="real")
def test_contexts_of_pytorch_are_a_ranks_own():
    """Ranks enter them while others are in them, and none finds another's setting there, or after it."""
    dist.init_process_group("gloo")
    first = dist.get_rank() == 0
    group = dist.new_group([0, 1])
    found = entered(shards.load_with_process_group(group), shards._get_current_process_group)
    assert found == (group, dist.group.WORLD)
    for enter, module, name in (
        (checkpoint.set_checkpoint_early_stop, checkpoint, "_enable_checkpoint_early_stop"),
        (checkpoint.set_checkpoint_debug_enabled, checkpoint, "_checkpoint_debug_enabled"),
        (redistribute.use_min_cost_redistribution_plan, redistribute, "_FORCE_MIN_COST_REDISTRIBUTION_PLAN"),
    ):
        before = getattr(module, name)
        assert entered(enter(first), functools.partial(getattr, module, name)) == (first, before)


@torchemu.distributed(world_size=2, torch="real")
def test_contexts_of_pytorch_do_not_meet():
    """Contexts of PyTorch that may not be nested are entered by each rank, with values of its own."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    kind = (torch.nn.Dropout, torch.nn.Sequential)[rank]
    chosen = functools.partial(getattr, wrap._ConfigAutoWrap, "wrapper_cls")
    assert entered(wrap.enable_wrap(wrapper_cls=kind), chosen) == (kind, None)
    with graph.allow_mutation_on_saved_tensors():
        given = torch.ones(2, requires_grad=True)
        copied = given.clone()
        squared = copied**2
        dist.barrier()
        copied.zero_()
        dist.barrier()
        squared.sum().backward()
    assert given.grad.tolist() == [2.0, 2.0]


class Doubling(torch.nn.Module):
    """Makes a parameter twice of what it is."""

    def forward(self, weight):
        """Returns twice the weight."""
        return 2 * weight


@torchemu.distributed(world_size=2, torch="real")
def test_parametrizations_are_kept_for_a_ranks_own_context():
    """A rank that leaves parametrize.cached, and changes a weight, finds the new one when it enters again."""
    dist.init_process_group("gloo")
    stays = dist.get_rank() == 1
    model = torch.nn.Linear(1, 1, bias=False)
    parametrize.register_parametrization(model, "weight", Doubling())
    seen = []
    with parametrize.cached() if stays else contextlib.nullcontext():
        for turn in range(3):
            with torch.no_grad():
                model.parametrizations.weight.original.fill_(turn)
            with contextlib.nullcontext() if stays else parametrize.cached():
                dist.barrier()
                seen.append(model.weight.item())
            dist.barrier()
    assert seen == ([0.0, 0.0, 0.0] if stays else [0.0, 2.0, 4.0])


@torchemu.distributed(world_size=2, torch="real")
def test_what_a_rank_has_set_of_elastic_is_its_own():
    """Each rank tells its own client of its timers, and its own handler of its figures."""
    dist.init_process_group("gloo")
    client, handler = torch.distributed.elastic.timer.LocalTimerClient(None), figures.ConsoleMetricHandler()
    timers.configure(client)
    figures.configure(handler, "one")
    dist.barrier()
    assert timers._timer_client is client
    assert figures.getStream("one").handler is handler


@torchemu.distributed(world_size=2, torch="real")
def test_sharded_tensors_are_known_to_their_rank():
    """A rank finds its own by their numbers, and no other rank's."""
    dist.init_process_group("gloo")
    known, rank = sharded._sharded_tensor_map, dist.get_rank()
    known[rank] = None
    dist.barrier()
    assert list(sharded._sharded_tensor_map) == [rank] and sharded._sharded_tensor_map is known
    del known[rank]


KEEPING = """
from collections import OrderedDict

class ManagerMeta(type):
    def __init__(cls, *args):
        cls._instance_dict = OrderedDict()
        super().__init__(*args)

class Manager(metaclass=ManagerMeta):
    def __init__(self, name):
        self.name, self.values = name, []

    @classmethod
    def get_instance(cls, name):
        if name not in cls._instance_dict:
            cls._instance_dict[name] = cls(name)
        return cls._instance_dict[name]
"""


def test_instances_that_mmengine_keeps_are_a_ranks_own(tmp_path, monkeypatch):
    """A class of it, and one of another package's, as mmengine's loggers and visualizers are."""
    package = tmp_path / "site-packages/mmengine/utils"
    package.mkdir(parents=True)
    for file in (package.parent / "__init__.py", package / "__init__.py"):
        file.write_text("")
    (package / "manager.py").write_text(KEEPING)
    (tmp_path / "site-packages/of_mmengine.py").write_text(
        "from mmengine.utils.manager import Manager\nclass Logger(Manager): pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))

    @torchemu.distributed(world_size=3, torch="real")
    def program():
        from mmengine.utils.manager import Manager
        from of_mmengine import Logger

        dist.init_process_group("gloo")
        for kind in (Manager, Logger):
            kind.get_instance("run").values.append(dist.get_rank())
        for kind in (Manager, Logger):
            dist.barrier()
            assert kind.get_instance("run").values == [dist.get_rank()]
            assert list(kind._instance_dict) == ["run"]

    try:
        program()
        program()
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] in ("mmengine", "of_mmengine")]:
            del sys.modules[name]


ONE_EACH = """
class Single(type):
    _instances = {}

    def __call__(cls, *args, **kwargs):
        if cls not in cls._instances:
            cls._instances[cls] = super().__call__(*args, **kwargs)
        return cls._instances[cls]

class Logger(metaclass=Single):
    def __init__(self):
        self.lines = []

class Settings:
    _instance = None

    def __new__(cls):
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance.values = []
        return cls._instance

class Early:
    instance, instances = None, [1]

    @classmethod
    def get(cls):
        if Early.instance is None:
            Early.instance = cls()
            Early.instance.values = []
        return Early.instance

class Timer(metaclass=Single):
    pass
"""


def test_classes_with_one_instance_have_one_for_each_rank(folder):
    """Also those of packages that speak of nothing; what was made while a module was loaded is everybody's, as are the
    module's variables that hold it."""
    (folder / "spoken_single.py").write_text(ONE_EACH)
    (folder / "spoken_early.py").write_text(
        "from spoken_single import Early, Timer\nearly = Early.get()\ntimer = Timer()\n"
    )

    @torchemu.distributed(world_size=3, torch="real")
    def program():
        import spoken_single as one

        dist.init_process_group("gloo")
        rank = dist.get_rank()
        if rank == 1:
            import spoken_early
        one.Logger().lines.append(rank)
        one.Settings().values.append(rank)
        dist.barrier()
        import spoken_early

        assert one.Logger().lines == [rank]
        assert one.Settings().values == [rank]
        assert one.Logger() is one.Logger()
        assert one.Early.get() is spoken_early.early
        assert one.Timer() is spoken_early.timer
        dist.barrier()

    program()


ONE_STATE = """
import torch.distributed as dist

class Manager:
    _shared_state = {}

    def __new__(cls):
        made = super().__new__(cls)
        made.__dict__ = cls._shared_state
        if not hasattr(made, "rank"):
            made.rank = None
        return made

    @staticmethod
    def initialize():
        manager = Manager()
        assert manager.rank is None
        manager.rank = dist.get_rank()

class Settings:
    common = {}
    others = {}

    def __init__(self):
        self.__dict__ = Settings.common
        self.others[len(self.others)] = self
"""


def test_what_instances_have_in_common_is_a_ranks_own(folder):
    """PhysicsNeMo makes its manager again and again, and all of them are one. What is only filled is shared."""
    (folder / "spoken_common.py").write_text(ONE_STATE)

    @torchemu.distributed(world_size=3, torch="real")
    def program():
        from spoken_common import Manager, Settings

        dist.init_process_group("gloo")
        rank = dist.get_rank()
        Manager.initialize()
        Settings().rank = rank
        dist.barrier()
        assert Manager().rank == Manager._shared_state["rank"] == Settings().rank == rank
        dist.barrier()
        assert len(Settings.others) == 6

    program()
    assert sys.modules["spoken_common"].Manager._shared_state == {}
    sys.modules["spoken_common"].Settings.others.clear()
    program()


RUN_OF_ALL = """
import wandb

_service = None

def init():
    global _service
    _service = object()
    wandb.run = []
    wandb.log = wandb.run.append
"""


@pytest.mark.parametrize("name", ["wandb", "mlflow", "swanlab"])
def test_the_run_that_a_tracker_logs_to_is_a_ranks_own(tmp_path, monkeypatch, name):
    """Each process has one, and the service that it talks to; here stand-ins of their names have them."""
    package = tmp_path / "site-packages" / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"from {name}.setup import init\nrun = log = None\n")
    (package / "setup.py").write_text(RUN_OF_ALL.replace("wandb", name))
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))

    @torchemu.distributed(world_size=3, torch="real")
    def program():
        wandb, setup = importlib.import_module(name), importlib.import_module(f"{name}.setup")
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        assert wandb.run is None and setup._service is None
        dist.barrier()
        if rank != 1:
            wandb.init()
            wandb.log(rank)
        dist.barrier()
        assert wandb.run == (None if rank == 1 else [rank])
        services = [None] * 3
        dist.all_gather_object(services, id(setup._service))
        assert len(set(services)) == 3

    try:
        program()
        program()
    finally:
        for module in (name, f"{name}.setup"):
            sys.modules.pop(module, None)


TOLD = """
import torch.distributed
KINDS, kind, size = {int}, None, None

def add(one):
    global KINDS
    KINDS = KINDS | {one}

def set_kind(one, number=None):
    global kind, size
    kind, size = one, number
"""


def test_classes_that_modules_tell_others_of_as_they_are_loaded_are_all_ranks(folder):
    """tensordict's are. What a rank has set stays its own, and so does what may depend on the rank."""
    (folder / "spoken_kinds.py").write_text(TOLD)
    (folder / "spoken_told.py").write_text(
        "import os, spoken_kinds\nclass Told: pass\n"
        "spoken_kinds.add(Told)\nspoken_kinds.set_kind(Told, os.environ['RANK'])\n"
    )

    @torchemu.distributed(world_size=3, torch="real")
    def program():
        import spoken_kinds

        dist.init_process_group("gloo")
        rank = dist.get_rank()
        if rank == 2:
            spoken_kinds.set_kind(str)
        dist.barrier()
        if rank == 0:
            import spoken_told
        dist.barrier()
        assert spoken_kinds.size == ("0" if rank == 0 else None)
        import spoken_told

        told = spoken_told.Told
        assert {int, told} == spoken_kinds.KINDS
        assert spoken_kinds.kind is (str if rank == 2 else told)

    program()
