"""LSTM, GRU and RNN: charged whole, with and without data, and computed all the same."""

import contextlib
import itertools

import pytest
from launched import noted

torch = pytest.importorskip("torch", reason="no PyTorch is installed here")
from torch import nn  # noqa: E402 (where there is one)

STEP, BACK = 1000, 3000  # ps

FIGURES = """
  recurrent:
    call: {forward: 5, backward: 7}
    16: {stepping: {forward: {step: 1}, backward: {step: 3}}, layer: 0.5, direction: 0.25}
    32: {stepping: {forward: {step: 1}, backward: {step: 3}}, layer: 0.5, direction: 0.25}
"""

TOPOLOGY = "system: {nodes: {count: 1}, sips: {count: 1}}\nkernels:\n  launch: 1\n"


@contextlib.contextmanager
def device_of(tmp_path, data, figures=FIGURES):
    from torchemu.frontends.torch import device
    from torchemu.runtime import world

    path = tmp_path / "one.yaml"
    path.write_text(TOPOLOGY + figures, encoding="utf-8")
    with world.opened(topology=str(path)), device.running(data=data):
        yield


def steps(kernels):
    """Returns the names of kernels that use no unit, and how long they take, in ps."""
    return [(name, ps) for name, _, ps, unit in kernels if unit == "idle"]


@pytest.mark.parametrize("data", [True, False])
def test_a_call_and_its_gradients_are_charged_whole(monkeypatch, tmp_path, data):
    issued = noted(monkeypatch)
    forward, backward = ("_cudnn_rnn", 5000 + 6 * STEP), ("_cudnn_rnn_backward", 7000 + 6 * BACK)
    for kind, dtype in itertools.product((nn.LSTM, nn.GRU, nn.RNN), (torch.float32, torch.bfloat16)):
        with device_of(tmp_path, data):
            layer = kind(8, 16, device="cuda", dtype=dtype)
            x = torch.ones(6, 2, 8, device="cuda", dtype=dtype, requires_grad=True)
            issued.clear()
            out = layer(x)[0]
            assert {name for name, *_ in issued} <= {"_cudnn_rnn", "zeros"}, kind  # zeros: of the first state
            assert steps(issued) == [forward], kind
            products = [ops for name, _, ops, unit in issued if unit != "idle" and name == "_cudnn_rnn"]
            assert len(products) == 1, kind
            issued.clear()
            out.sum().backward(retain_graph=True)
            own = {"sum", "ones_like", "_cudnn_rnn_backward"}
            assert {name for name, *_ in issued} <= own, (kind, issued)
            assert steps(issued) == [backward], kind
            issued.clear()
            out.sum().backward()  # again, and all gradients are added to those that are there
            assert steps(issued) == [backward], kind
            assert sum(name in ("add", "add_") for name, *_ in issued) == 5, (kind, issued)


def test_two_calls_in_one_pass_are_charged_twice(monkeypatch, tmp_path):
    issued = noted(monkeypatch)
    with device_of(tmp_path, True):
        first, second = nn.LSTM(8, 16, device="cuda"), nn.LSTM(16, 16, device="cuda")
        x = torch.ones(6, 2, 8, device="cuda")
        issued.clear()
        hidden = first(x)[0]
        (second(hidden.exp())[0] + first(x)[0]).sum().backward()
        assert [name for name, _ in steps(issued)] == ["_cudnn_rnn"] * 3 + ["_cudnn_rnn_backward"] * 3
        names = [name for name, *_ in issued]
        assert names.count("exp") == 1 and names.count("mul") == 1  # exp's gradient, between those of two layers


def test_options_say_what_is_charged(monkeypatch, tmp_path):
    issued = noted(monkeypatch)

    def charged(layer, given):
        issued.clear()
        layer(given)
        (only,) = steps(issued)
        return only[1]

    with device_of(tmp_path, True):
        x = torch.ones(6, 2, 8, device="cuda")
        assert charged(nn.LSTM(8, 16, batch_first=True, device="cuda"), x) == 5000 + 2 * STEP
        assert charged(nn.LSTM(8, 16, 3, device="cuda"), x) == 5000 + 6 * 2 * STEP
        assert charged(nn.GRU(8, 16, 2, bidirectional=True, device="cuda"), x) == 5000 + 6 * 2 * STEP * 5 // 4
        assert charged(nn.LSTM(8, 16, proj_size=4, device="cuda"), x) == 5000 + 6 * STEP * 3 // 2
        assert charged(nn.LSTM(8, 16, bias=False, device="cuda"), x[:, 0]) == 5000 + 6 * STEP  # without a batch
        packed = nn.utils.rnn.pack_padded_sequence(x, [6, 3])
        assert charged(nn.RNN(8, 16, device="cuda"), packed) == 5000 + 6 * STEP
        issued.clear()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            nn.LSTM(8, 16, device="cuda")(x)
        assert [unit for name, _, _, unit in issued if name == "_cudnn_rnn"] == ["bfloat16", "idle"]


def test_what_is_not_charged_whole_is_charged_as_it_is_made(monkeypatch, tmp_path):
    issued = noted(monkeypatch)
    for figures, dtype in (("", torch.float32), (FIGURES, torch.float64)):
        with device_of(tmp_path, True, figures):
            nn.LSTM(8, 16, device="cuda", dtype=dtype)(torch.ones(6, 2, 8, device="cuda", dtype=dtype))
            assert not steps(issued) and len(issued) > 6
            issued.clear()


def test_results_and_gradients_are_the_hosts(tmp_path):
    with device_of(tmp_path, True):
        torch.manual_seed(1)
        layer, x = nn.LSTM(8, 16, 2, bidirectional=True), torch.randn(6, 2, 8)
        moved = nn.LSTM(8, 16, 2, bidirectional=True, device="cuda")
        moved.load_state_dict(layer.state_dict())
        for each, given in ((layer, x), (moved, x.cuda())):
            each(given)[0].square().sum().backward()
        for got, expected in zip(moved.parameters(), layer.parameters(), strict=True):
            torch.testing.assert_close(got.grad.cpu(), expected.grad)
