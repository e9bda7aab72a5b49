"""Runs without data: the times and traces of runs with it, and what such runs refuse."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sampling import sampled

pytestmark = pytest.mark.shows("PyTorch: runs without data")

pytest.importorskip("torch", reason="no PyTorch is installed here")

PROGRAMS = Path(__file__).with_name("timed.py")


def run(*args):
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def unnumbered(event):
    """An event without the numbers that say in which order events became known."""
    about = {name: value for name, value in event.get("args", {}).items() if name != "collective"}
    return {**{name: value for name, value in event.items() if name != "id"}, "args": about}


@pytest.mark.parametrize("program", sampled(["fsdp", "ddp", "experts", "tp", "tp_fsdp", "pipeline"], 6))
def test_times_and_traces_are_those_with_data(program, tmp_path):
    """Events that begin together are in a trace in the order in which ranks came to them, so that is not compared."""
    printed, traces = [], []
    for flags in ([], ["--no-data"]):
        trace = tmp_path / f"{len(traces)}.json"
        done = run(*flags, "--trace", trace, "--nproc-per-node", 4, PROGRAMS, program)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
        traces.append(sorted(map(unnumbered, json.loads(trace.read_text())["traceEvents"]), key=str))
    assert printed[0] == printed[1] and printed[0].count(" ps\n") == 3
    assert traces[0] == traces[1]


@pytest.mark.slow
def test_steps_of_fsdp_1_take_what_they_take_with_data():
    """With data the host waits longer before memory is freed, which traces of the other ranks show."""
    with_data, without = (run(*flags, "--nproc-per-node", 4, PROGRAMS, "fsdp_views") for flags in ([], ["--no-data"]))
    assert (with_data.returncode, without.returncode) == (0, 0), without.stderr
    assert without.stdout == with_data.stdout and with_data.stdout.count(" ps\n") == 3


@pytest.mark.slow
def test_what_is_stored_and_moved_is_where_it_is_with_data_in_the_same_time():
    printed = []
    for flags in ([], ["--no-data"]):
        done = run(*flags, "--nproc-per-node", 2, PROGRAMS.with_name("moved.py"))
        assert done.returncode == 0, done.stderr
        printed.append(sorted(done.stdout.splitlines()))
    assert printed[0] == printed[1]


@pytest.mark.slow
def test_backward_passes_to_what_has_moved_since_are_refused(tmp_path):
    script = tmp_path / "moves.py"
    script.write_text(
        "import torch\nx = torch.ones(2, device='cuda', requires_grad=True)\ny = x * 2\nx.data = torch.ones(2)\n"
        "(x * 3).sum().backward()\nprint(x.grad.device, flush=True)\ny.sum().backward()\n"
    )
    done = run("--no-data", "--nproc-per-node", 1, script)
    assert done.returncode == 1 and done.stdout == "cpu\n"
    assert "a backward pass came to a leaf whose data (tensor.data = ...) has moved" in done.stderr, done.stderr


def test_every_kind_of_operation_has_its_way_without_data():
    from torchemu.frontends.torch.device import operations, timing

    assert {"filling", "placing", "waits_first", "waits_last", *timing._TIMED} == set(operations.RUN)


@pytest.mark.slow
def test_indices_of_a_device_are_zeros_where_they_write_into_the_host(tmp_path):
    script = tmp_path / "indices.py"
    script.write_text(
        "import torch\nx = torch.zeros(2)\nx[torch.ones(1, device='cuda').long()] = 5\nprint(x, x.device)\n"
    )
    done = run("--no-data", "--nproc-per-node", 1, script)
    assert done.returncode == 0 and done.stdout == "tensor([5., 0.]) cpu\n", done.stderr


OPERATIONS = {
    "attention": "functional.scaled_dot_product_attention(rand(2, 8, 16, 32), rand(2, 2, 16, 32), rand(2, 2, 16, 32), "
    "is_causal=True, enable_gqa=True)",
    "attention with a mask": "functional.scaled_dot_product_attention(rand(2, 4, 16, 32), rand(2, 2, 16, 32), "
    "rand(2, 2, 16, 32), attn_mask=torch.ones(16, 16, dtype=torch.bool, device='cuda'), enable_gqa=True)",
    "values by a condition": "rand(4, 3).index_put((torch.ones(4, dtype=torch.bool, device='cuda'),), "
    "torch.ones(3, device='cuda'))",
    "values by indices of the host": "rand(4, 3).index_put((torch.tensor([1, 2]),), torch.tensor(1.0))",
    "a layer that looks at its mask": "torch.nn.Transformer(32, 4, 1, 1, 64, 0.0, device='cuda')(rand(6, 2, 32), "
    "rand(5, 2, 32), tgt_mask=torch.nn.Transformer.generate_square_subsequent_mask(5, device='cuda'))",
    "errors": "torch.linalg.inv(torch.eye(3, device='cuda') + rand(3, 3))",
    "repeats": "rand(4, 3).repeat_interleave(torch.tensor([1, 2, 0, 1], device='cuda'), dim=0, output_size=4)",
    "sequences": "rnn.pad_packed_sequence(rnn.pack_padded_sequence(rand(5, 3, 8), [5, 3, 2]), total_length=6)[0]",
}


@pytest.mark.parametrize("name", sampled(OPERATIONS, 8))
def test_operations_are_charged_alike(name, tmp_path):
    """With data and without: forwards, backwards, and the shapes of what they give."""
    script = tmp_path / "operation.py"
    script.write_text(
        "import torch\nfrom torch.nn import functional\nfrom torch.nn.utils import rnn\n"
        "def rand(*shape): return torch.rand(*shape, device='cuda', requires_grad=True)\n"
        "start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))\nstart.record()\n"
        f"out = {OPERATIONS[name]}\nout.sum().backward()\nend.record()\ntorch.cuda.synchronize()\n"
        "print(start.elapsed_time(end), out.shape, out.stride(), out.device)\n"
    )
    with_data, without = (run(*flags, "--nproc-per-node", 1, script) for flags in ([], ["--no-data"]))
    assert (with_data.returncode, without.returncode) == (0, 0), without.stderr
    assert without.stdout == with_data.stdout


@pytest.mark.slow
def test_statistics_of_several_ranks_take_what_they_take_with_data(tmp_path):
    """SyncBatchNorm looks for ranks without a batch: without data there are none."""
    script = tmp_path / "statistics.py"
    script.write_text(
        "import torch, torch.distributed as dist\ndist.init_process_group('nccl')\n"
        "layer = torch.nn.SyncBatchNorm(8).to(f'cuda:{dist.get_rank()}')\n"
        "x = torch.rand(4, 8, 5, device=layer.weight.device, requires_grad=True)\n"
        "start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))\nstart.record()\n"
        "layer(x).square().sum().backward()\nend.record()\ntorch.cuda.synchronize()\n"
        "print(dist.get_rank(), start.elapsed_time(end), x.grad.shape, flush=True)\n"
    )
    with_data, without = (run(*flags, "--nproc-per-node", 3, script) for flags in ([], ["--no-data"]))
    assert (with_data.returncode, without.returncode) == (0, 0), without.stderr
    assert sorted(without.stdout.splitlines()) == sorted(with_data.stdout.splitlines())


INFERENCE = {
    "flexible attention": ("no_grad", "flex_attention(rand(1, 4, 16, 8), rand(1, 2, 16, 8), rand(1, 2, 16, 8), "
    "score_mod=lambda score, b, h, q, k: torch.where(q >= k, score, -1e9), enable_gqa=True)"),
    "repeated heads": ("inference_mode", "rand(2, 3, 4).repeat_interleave(2, dim=1)"),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(INFERENCE, 2))
def test_operations_are_charged_alike_without_gradients(name, tmp_path):
    """There the mode sees what PyTorch otherwise takes apart first."""
    script, (mode, operation) = tmp_path / "operation.py", INFERENCE[name]
    script.write_text(
        "import torch\nfrom torch.nn.attention.flex_attention import flex_attention\n"
        "def rand(*shape): return torch.rand(*shape, device='cuda')\n"
        "start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))\n"
        f"with torch.{mode}():\n"
        f"    start.record()\n    out = {operation}\n    end.record()\ntorch.cuda.synchronize()\n"
        "print(start.elapsed_time(end), out.shape, out.stride(), out.device)\n"
    )
    with_data, without = (run(*flags, "--nproc-per-node", 1, script) for flags in ([], ["--no-data"]))
    assert (with_data.returncode, without.returncode) == (0, 0), without.stderr
    assert without.stdout == with_data.stdout


@pytest.mark.slow
def test_a_parameter_without_dimensions_is_trained_in_the_same_time(tmp_path):
    """DistributedDataParallel compares shapes in C++, which looks at elements."""
    script = tmp_path / "scale.py"
    script.write_text(
        "import torch, torch.distributed as dist\ndist.init_process_group('nccl')\n"
        "class Scale(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.by = torch.nn.Parameter(torch.tensor(0.5))\n"
        "    def forward(self, x): return self.by * x\n"
        "model = torch.nn.parallel.DistributedDataParallel(Scale().to(f'cuda:{dist.get_rank()}'))\n"
        "start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))\nstart.record()\n"
        "model(torch.ones(4, device=f'cuda:{dist.get_rank()}')).sum().backward()\n"
        "end.record()\ntorch.cuda.synchronize()\n"
        "print(dist.get_rank(), start.elapsed_time(end), model.module.by.grad.shape, flush=True)\n"
    )
    with_data, without = (run(*flags, "--nproc-per-node", 2, script) for flags in ([], ["--no-data"]))
    assert (with_data.returncode, without.returncode) == (0, 0), without.stderr
    assert sorted(without.stdout.splitlines()) == sorted(with_data.stdout.splitlines())


@pytest.mark.slow
def test_optimizers_count_their_steps_on_the_default_device(tmp_path):
    script = tmp_path / "steps.py"
    script.write_text(
        "import torch\ntorch.set_default_device('cuda')\nmodel = torch.nn.Linear(8, 8)\n"
        "for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam, torch.optim.RAdam, torch.optim.Adamax):\n"
        "    for foreach in (True, False):\n"
        "        steps = kind(model.parameters(), foreach=foreach)\n"
        "        for _ in range(2):\n"
        "            model(torch.ones(4, 8)).sum().backward()\n            steps.step()\n"
        "print(model.weight.device)\n"
    )
    done = run("--no-data", "--nproc-per-node", 1, script)
    assert (done.returncode, done.stdout) == (0, "cuda:0\n"), done.stderr


def test_losses_that_look_at_targets_are_refused(tmp_path):
    script = tmp_path / "loss.py"
    script.write_text(
        "import torch\nx = torch.ones(10, 2, 5, device='cuda').log_softmax(-1)\n"
        "torch.nn.functional.ctc_loss(x, torch.ones(2, 3, device='cuda').long(), (10, 10), (3, 2))\n"
    )
    done = run("--no-data", "--nproc-per-node", 1, script)
    text = (
        "RuntimeError: ctc_loss: PyTorch looks at elements of its operands, and a run without data has none (--no-data)"
    )
    assert done.returncode == 1 and f"{text}, at {script}:3" in done.stderr, done.stderr


@pytest.mark.slow
def test_addresses_tell_storages_apart(tmp_path):
    """With data and without: of views, of two tensors, of what has no bytes, and of a storage that loses its own."""
    script = tmp_path / "addresses.py"
    script.write_text(
        "import torch\nx, y = torch.ones(4, device='cuda'), torch.ones(4, device='cuda')\n"
        "storage = x.untyped_storage()\n"
        "print(x.data_ptr() != y.data_ptr(), x[3:].data_ptr() - x.data_ptr(), storage.data_ptr() == x.data_ptr())\n"
        "print(torch.empty(0, device='cuda').data_ptr(), torch.ones(2, device='meta').data_ptr())\n"
        "storage.resize_(0)\nprint(storage.data_ptr())\nstorage.resize_(1 << 20)\nprint(storage.data_ptr() > 0)\n"
        "print(storage.data_ptr() != y.data_ptr())\n"
    )
    for flags in ([], ["--no-data"]):
        done = run(*flags, "--nproc-per-node", 1, script)
        assert (done.returncode, done.stdout) == (0, "True 12 True\n0 0\n0\nTrue\nTrue\n"), done.stderr


DCP = "torch.distributed.checkpoint"

REFUSED = {
    "if x.sum() > 3: pass": "bool of a tensor on cuda:0: what the program does next depends on its element",
    "x.nonzero()": "nonzero: the size of its result depends on elements",
    "x[x > 0]": "index: the size of its result depends on elements",
    "torch.nn.functional.one_hot(x.long())": "one_hot without num_classes: the size of its result depends on elements",
    "dcp.save({'x': x}, checkpoint_id='nowhere')": f"{DCP}.save: what it would store are elements",
    "dcp.load({'x': x}, checkpoint_id='nowhere')": f"{DCP}.load: what it would load are elements",
}


@pytest.mark.parametrize("line", sampled(REFUSED, 6))
def test_what_needs_elements_is_refused_with_its_place(line, tmp_path):
    script = tmp_path / "needs.py"
    script.write_text(
        "import torch\nimport torch.distributed.checkpoint as dcp\n"
        f"x = torch.ones(4, device='cuda')\nprint(x.sum().item())\n{line}\n"
    )
    done = run("--no-data", "--nproc-per-node", 1, script)
    assert done.returncode == 1
    assert done.stdout == "0.0\n"  # what item() says where there are no elements
    text = f"RuntimeError: {REFUSED[line]}, and a run without data has none (--no-data), at {script}:5"
    assert text in done.stderr, done.stderr
