"""Registries of installed packages have each rank's own entries, and everybody's."""

import sys

import pytest
import torch.distributed as dist
from launch import launch, lines, written

import torchemu

REGISTRY = """
class Registry:
    def __init__(self):
        self._module_dict, self.count = {}, 0

    def register(self, name, value):
        if name in self._module_dict:
            raise KeyError(f"{name} is already registered")
        self._module_dict[name] = value

    def known(self):
        return dict(self._module_dict)

class _StrategyRegistry(dict):
    def register(self, name, value):
        if name in self:
            raise ValueError(f"{name} is already present")
        self[name] = value

    known = dict.copy

TASK_REGISTRY = {}

def register_task(name, value):
    if name in TASK_REGISTRY:
        raise ValueError(f"{name} is already registered")
    TASK_REGISTRY[name] = value

BUILT_IN = {"first": 0}

def register_model(name):
    def enter(model):
        if name in BUILT_IN:
            raise ValueError(f"{name} is already registered")
        BUILT_IN[name] = model
        return model
    return enter

class FlagValues:
    def __init__(self):
        self.__dict__["__flags"] = {}

    def __setitem__(self, name, value):
        self.__dict__["__flags"].setdefault(name, value)

    def __getattr__(self, name):
        return self.__dict__["__flags"][name]

FLAGS = FlagValues()
MODELS, STRATEGIES, EMPTY = Registry(), _StrategyRegistry(), Registry()
BOTH = MODELS, STRATEGIES
for each in BOTH:
    each.register("first", 0)
"""

MORE = """
from registering import BOTH
for each in BOTH:
    each.register("more", 1)
"""

NAMES = ("registering", "registering_more", "registering_each")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "registering.py").write_text(REGISTRY)
    (folder / "registering_more.py").write_text(MORE)
    (folder / "registering_each.py").write_text(MORE.replace("more", "each"))
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in NAMES:
        sys.modules.pop(name, None)


def test_what_a_rank_enters_is_its_own(folder):
    @torchemu.distributed(world_size=3, torch="real")
    def program():
        from registering import BOTH, BUILT_IN, EMPTY, FLAGS, TASK_REGISTRY, register_model, register_task

        dist.init_process_group("gloo")
        rank = dist.get_rank()
        for each in (*BOTH, EMPTY):
            each.register("mine", rank)
        register_task("mine", rank)
        register_model("mine")(rank)
        FLAGS["rank"] = rank
        if rank == 2:
            BOTH[0].register("of one", 2)
        dist.barrier()
        if rank == 1:
            import registering_more

        dist.barrier()
        import registering_more  # noqa: F401

        expected = {"first": 0, "more": 1, "mine": rank}
        assert BOTH[0].known() == ({**expected, "of one": 2} if rank == 2 else expected)
        assert BOTH[1].known() == expected
        assert {"first": 0, "mine": rank} == BUILT_IN and FLAGS.rank == rank
        assert EMPTY.known() == TASK_REGISTRY == {"mine": rank}
        dist.barrier()
        BOTH[1].register("last", rank)
        assert BOTH[1].known() == {**expected, "last": rank}

    for _ in range(2):
        program()
        registering = sys.modules["registering"]
        assert [each.known() for each in registering.BOTH] == [{"first": 0, "more": 1}] * 2
        assert registering.EMPTY.known() == registering.TASK_REGISTRY == {}


def test_what_modules_enter_that_each_rank_loads_is_its_own(folder, tmp_path):
    text = """
    import torch.distributed as dist
    dist.init_process_group("gloo")
    import registering_more
    for rank in (1, 0, 2):
        if rank == dist.get_rank():
            import registering_each
        dist.barrier()
    from registering import BOTH
    print(dist.get_rank(), *(sorted(each.known()) for each in BOTH))
    """
    run = launch("--nproc-per-node", "3", "--isolate", "registering_each", written(tmp_path, text))
    assert lines(run) == [f"{rank} {['each', 'first', 'more']} {['each', 'first', 'more']}" for rank in range(3)]


MAPPINGS = """
class Lazy:
    '''What transformers' mappings of configurations and of functions are like.'''
    shared = {"sdpa": 0}

    def __init__(self, known):
        self._known, self._more = known, {}

    def __getitem__(self, name):
        return self._more[name] if name in self._more else self.shared[name]

    def register(self, name, value):
        if name in self._known or name in self._more:
            raise ValueError(f"{name} is already used")
        self._more[name] = value

    @classmethod
    def known(cls):
        return cls.shared

class General(Lazy):
    shared = {"eager": 1}

    @classmethod
    def register(cls, name, value):
        cls.shared.update({name: value})

CONFIGURATIONS, FUNCTIONS = Lazy({"bert": 2}), General({})
FUNCTIONS.register("flash", 3)
"""

MAPS = """
import sys
sys.path.append({folder!r})
import torch.distributed as dist
import mappings
dist.init_process_group("gloo")
rank = dist.get_rank()
mappings.CONFIGURATIONS.register("mine", 10 + rank)
mappings.FUNCTIONS.register("ring", lambda: rank)
dist.barrier()
print(rank, mappings.CONFIGURATIONS["mine"], mappings.FUNCTIONS["ring"](), mappings.FUNCTIONS["flash"])
"""


def test_what_registers_and_is_used_as_a_dict_has_each_ranks_entries(tmp_path):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "mappings.py").write_text(MAPPINGS)
    outcome = launch("--torch", "real", "--nproc-per-node", "3", written(tmp_path, MAPS.format(folder=str(folder))))
    assert sorted(lines(outcome)) == [f"{rank} {10 + rank} {rank} 3" for rank in range(3)]


TAGS = """
import torch.distributed as dist
import yaml
dist.init_process_group("gloo")
rank = dist.get_rank()

class Named:
    def __init__(self, value):
        self.value = value

yaml.add_constructor("!named", lambda loader, node: Named(loader.construct_scalar(node)), Loader=yaml.SafeLoader)
yaml.add_representer(Named, lambda dumper, one: dumper.represent_scalar("!named", f"{one.value}{rank}"))
dist.barrier()
read = yaml.safe_load("it: !named a")["it"]
print(rank, type(read) is Named, yaml.dump(Named("b")).strip())
"""


def test_tags_of_yaml_are_each_ranks_own(tmp_path):
    pytest.importorskip("yaml")
    outcome = launch("--torch", "real", "--nproc-per-node", "2", written(tmp_path, TAGS))
    assert sorted(lines(outcome)) == [f"{rank} True !named 'b{rank}'" for rank in range(2)]


LOGS = """
import io
import torch.distributed as dist
from loguru import logger
dist.init_process_group("gloo")
rank = dist.get_rank()
logger.remove()
said = io.StringIO()
logger.add(said, format="{message}", level="DEBUG" if rank == 0 else "ERROR")
dist.barrier()
logger.info(f"loss {rank}")
dist.barrier()
print(rank, said.getvalue().split())
"""


def test_handlers_of_loguru_are_each_ranks_own(tmp_path):
    pytest.importorskip("loguru")
    outcome = launch("--torch", "real", "--nproc-per-node", "2", written(tmp_path, LOGS))
    assert sorted(lines(outcome)) == ["0 ['loss', '0']", "1 []"]
