"""Modules that programs trace and script with torch.jit, on simulated devices, as they are on the host."""

import io

import newer
import pytest
import torch
import torch.distributed as dist
from torch import nn

import torchemu

real = torchemu.distributed(world_size=2, torch="real")
pytestmark = newer.names_of_before


class Model(nn.Module):
    """It makes tensors where its input is, which a script has as a constant, and calls functions that runs replace."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.words, self.head, self.norm = nn.Embedding(16, 4), nn.Linear(4, 4), nn.BatchNorm1d(4)

    def forward(self, i):
        x = self.words(i) + self.words(torch.arange(i.shape[1], device=i.device))
        x = nn.functional.scaled_dot_product_attention(x, x, self.head(x) * torch.ones(4, device=x.device) * 2 + 0.5)
        return self.norm(x.transpose(1, 2)).relu().mean()


def begin():
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    return torch.randint(0, 16, (3, 5), generator=torch.Generator().manual_seed(0))


MADE = {
    "trace": lambda model, i: torch.jit.trace(model, (i,)),
    "trace_module": lambda model, i: torch.jit.trace_module(model, {"forward": i}),
    "script": lambda model, i: torch.jit.script(model),
}


@pytest.mark.shows("PyTorch: modules traced and scripted by torch.jit")
@pytest.mark.filterwarnings("ignore:.torch.jit.:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")  # sizes, of which Python decides
@pytest.mark.parametrize("way", MADE)
@real
def test_scripts_of_modules_are_the_modules(way):
    i, plain = begin(), Model()
    want = plain(i)
    want.backward()
    script = MADE[way](Model().cuda(), i.cuda())
    assert isinstance(script, torch.jit.ScriptModule) and "aten::linear" in str(script.inlined_graph)
    got = script(i.cuda())
    assert got.device == torch.device("cuda", dist.get_rank())
    got.backward()
    torch.testing.assert_close(got.cpu(), want)
    torch.testing.assert_close(script.head.weight.grad.cpu(), plain.head.weight.grad)
    file = io.BytesIO()
    torch.jit.save(script, file)
    for options in ({"map_location": "cuda"}, {}):
        file.seek(0)
        again = torch.jit.load(file, **options).cuda()
        assert next(again.parameters()).is_cuda
        torch.testing.assert_close(again(i.cuda()).cpu(), want)


@pytest.mark.filterwarnings("ignore:.torch.jit.:DeprecationWarning")
@real
def test_a_script_is_trained():
    i = begin()
    losses = []
    for model in (Model().cuda(), torch.jit.script(Model().cuda())):
        model = nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(4):
            optimizer.zero_grad()
            loss = model((i.cuda() + dist.get_rank()) % 16)
            loss.backward()
            optimizer.step()
        losses.append(loss)
    torch.testing.assert_close(*losses)


@pytest.mark.filterwarnings("ignore:.torch.jit.:DeprecationWarning")
@real
def test_functions_that_are_scripted_run_as_they_are():
    @torch.jit.script
    def scaled(x, y: int):
        return x * y + torch.arange(3, device=x.device)

    assert scaled(torch.ones(3, device="cuda"), 2).tolist() == [2, 3, 4]
    traced = torch.jit.trace(lambda x: x * 2.5, torch.ones(2, device="cuda"))
    assert (
        traced(torch.ones(3, device="cuda", dtype=torch.int32)).dtype == torch.float32 and "torch.mul(x" in traced.code
    )
