"""Compiled functions of programs run as they are, whether or not they have kernels of Triton."""

import subprocess
import sys

import pytest
import torch
from sampling import sampled

import torchemu

real = torchemu.distributed(world_size=2, torch="real")

PROGRAM = """
import sys
import torch, torch.distributed as dist
{first}
dist.init_process_group("nccl")
rank = dist.get_rank()
layer = torch.nn.Linear(8, 8).to(f"cuda:{{rank}}")
x = torch.arange(8.0, device=f"cuda:{{rank}}")
assert torch.equal(torch.compile(layer)(x), layer(x))
import torch._inductor.utils, torch._dynamo.utils
from torch._inductor.runtime import triton_compat
assert not triton_compat.HAS_TRITON
from torch.utils._triton import has_triton, has_triton_package
from torch.utils import _triton
assert has_triton() and has_triton_package() and not _triton.has_triton_tma_device()
import triton.language as tl
assert callable(tl.program_id) and sys.modules["triton"] is not None
print(f"rank {{rank}} ends well")
"""


@pytest.mark.parametrize("first", sampled(["import triton", "import triton.language as tl", ""], 3))
def test_compilers_see_no_triton_and_programs_do(tmp_path, first):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(first=first))
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "2", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == ["rank 0 ends well", "rank 1 ends well"]


@pytest.mark.shows("PyTorch: torch.compile, which runs what it is given as it is")
@real
def test_what_is_compiled_runs_as_it_is():
    seen = []

    @torch.compile(fullgraph=True, mode="max-autotune")
    def f(x):
        seen.append(x)  # a compiler would refuse this, with fullgraph
        return x * 2 + 1

    x = torch.ones(3, device="cuda")
    assert f(x).tolist() == [3.0] * 3
    assert seen[0] is x


@real
def test_compiled_modules_are_wrapped():
    """They have what a compiler gives them: names in their state, the module inside, attributes, training and hooks."""
    layer = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)).cuda()
    layer.note = 5
    for compiled in (torch.compile(layer), torch.compile(dynamic=False)(layer)):
        assert compiled._orig_mod is layer and isinstance(compiled, torch.nn.Module)
        assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
        compiled.eval()
        assert not layer.training
        x = torch.ones(2, 4, device="cuda")
        assert torch.equal(compiled(x), layer(x)) and compiled.note == 5
        compiled.train()
    torch.distributed.init_process_group("nccl")
    model = torch.nn.parallel.DistributedDataParallel(torch.compile(layer))
    model(x).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    layer.compile()  # in place: it stays what it is
    assert torch.compile(layer)._orig_mod is layer and torch.compile(lambda: 3)() == 3


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PyTorch's own, of its own trees
@pytest.mark.parametrize("place", ["cpu", "cuda"])
@real
def test_exported_programs_are_decomposed(place):
    torch.cuda.set_device(torch.distributed.get_node_local_rank())
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.GELU()).to(place)
    x = torch.arange(8.0, device=place).reshape(2, 4)
    exported = torch.export.export(model, (x,)).run_decompositions()
    called = {str(node.target) for node in exported.graph.nodes if node.op == "call_function"}
    assert "aten.addmm.default" in called and "aten.linear.default" not in called
    assert torch.equal(exported.module()(x), model(x))


DEFERRED = """
import sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
layer = torch.nn.Linear(2, 2)
model = torch.nn.parallel.DistributedDataParallel(layer)
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
optimizer.zero_grad()
dist.new_group([0])
import torch._dynamo
assert not [name for name in sys.modules if name.startswith("torch._dynamo.")], "it is loaded"
before = torch._dynamo
{use}
import torch._dynamo
assert torch._dynamo is sys.modules["torch._dynamo"] and torch._dynamo is not before
import torch._dynamo.config, torch._dynamo.utils, torch._dynamo.testing
for name, module in list(sys.modules.items()):
    if name.startswith("torch._dynamo."):
        assert module.__spec__.name == name and hasattr(module.__spec__.loader, "get_source"), name
assert torch._dynamo.convert_frame.config is torch._dynamo.config is sys.modules["torch._dynamo.config"]
assert before.utils.counters is torch._dynamo.utils.counters is torch._dynamo.convert_frame.counters
assert callable(torch._dynamo.testing.same)
optimizer.step()
print("ends well")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "use",
    [
        "torch._dynamo.utils.counters.clear()",
        "import torch._dynamo.testing",
        "before.note = 3; assert sys.modules['torch._dynamo'].note == 3",
        "torch.compile(layer)(torch.ones(1, 2))",
        "import torch._inductor.utils",
    ],
)
def test_the_compiler_is_loaded_once_something_needs_it(tmp_path, use):
    file = tmp_path / "program.py"
    file.write_text(DEFERRED.format(use=use))
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "1", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "ends well\n")


@pytest.mark.slow
def test_no_compiler_of_triton_is_loaded_for_formulas():
    """It takes a tenth of the time in which a run begins."""
    loads = "import sys, torchemu.frontends.torch.installing; from torch.utils import flop_counter"
    says = (
        "print([name for name in sys.modules if name.partition('.')[0] == 'triton'], len(flop_counter.flop_registry))"
    )
    done = subprocess.run([sys.executable, "-c", f"{loads}; {says}"], capture_output=True, text=True, timeout=120)
    names, _, formulas = done.stdout.rpartition(" ")
    assert (done.returncode, names) == (0, "[]"), done.stderr
    assert int(formulas) > 10
