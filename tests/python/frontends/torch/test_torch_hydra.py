"""Programs with hydra's configurations: each rank initializes it, and registers what it needs."""

import subprocess
import sys
import textwrap

import pytest

FILES = {
    "hydra/__init__.py": "from hydra.core import singleton",
    "hydra/core/singleton.py": """
        _instances = {}

        def initialize(value):
            if "hydra" in _instances:
                raise ValueError("GlobalHydra is already initialized")
            _instances["hydra"] = value
            return _instances
        """,
    "tool.py": """
        from hydra.core import singleton

        def has_begun():
            return "hydra" in singleton._instances
        """,
    "omegaconf/__init__.py": "from omegaconf.omegaconf import BaseContainer, register",
    "omegaconf/base.py": "class BaseContainer:\n    _resolvers = {}\n",
    "omegaconf/omegaconf.py": """
        from omegaconf.base import BaseContainer

        def register(name, resolver):
            assert name not in BaseContainer._resolvers, f"resolver {name} is already registered"
            BaseContainer._resolvers[name] = resolver

        register("of all", None)
        """,
    "program.py": """
        import os, sys
        sys.path.insert(0, os.path.join(os.path.dirname(__file__), "site-packages"))
        import hydra, omegaconf, tool
        import torch.distributed as dist
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        assert not tool.has_begun()
        kept = hydra.singleton.initialize(rank)
        omegaconf.register("rank", rank)
        dist.barrier()
        assert kept == {"hydra": rank} and tool.has_begun()
        assert omegaconf.BaseContainer._resolvers == {"of all": None, "rank": rank}
        print("ends well")
        """,
}


@pytest.mark.parametrize("kind", ["BaseContainer", "Config"], ids=["omegaconf 2", "omegaconf 1"])
def test_each_rank_initializes_hydra(tmp_path, kind):
    for name, text in FILES.items():
        file = tmp_path / (name if name == "program.py" else f"site-packages/{name}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text).replace("BaseContainer", kind))
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "3"]
    done = subprocess.run([*command, str(tmp_path / "program.py")], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "ends well\n" * 3), done.stderr
