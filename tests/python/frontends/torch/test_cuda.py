"""torch.cuda and torch.accelerator on simulated devices."""

import pytest
from launched import noted

from torchemu import runtime

torch = pytest.importorskip("torch", reason="no PyTorch is installed here")
from torchemu.frontends.torch import device  # noqa: E402


def test_devices(mode):
    assert torch.cuda.is_available() and torch.cuda.device_count() == len(mode.rank.node or range(mode.rank.world.sips))
    assert torch.cuda.current_device() == 0
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1 and torch.ones(1, device="cuda").device.index == 1
    torch.cuda.set_device("cuda:2")
    assert torch.ones(1).cuda().device.index == 2 and torch.accelerator.current_device_index() == 2
    torch.accelerator.set_device_index(0)
    assert torch.cuda.current_device() == 0
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.accelerator.device_count() == torch.cuda.device_count()
    assert torch.cuda.get_device_properties(0).total_memory == torch.cuda.mem_get_info()[1]
    with pytest.raises(torch.AcceleratorError, match="invalid device ordinal"):
        torch.cuda.set_device(99)


def test_events_tell_the_roofline(mode):
    """A kernel alone takes bytes / bandwidth, as the topology has it."""
    n = 1 << 22
    a = torch.ones(n, device="cuda")
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    a + a
    end.record()
    end.synchronize()
    spec = mode.rank.world.spec
    cubes = spec["sip"]["cube_mesh"]["w"] * spec["sip"]["cube_mesh"]["h"]
    want = 3 * 4 * n / (cubes * spec["cube"]["hbm"]["bandwidth"] * 1e9) * 1e3
    launch = spec["host"]["launch_overhead"] * 1e-6
    assert start.elapsed_time(end) == pytest.approx(launch + want, rel=1e-6)
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(torch.cuda.Event())


@pytest.mark.shows("PyTorch: torch.cuda: streams and events")
def test_streams(mode):
    side = torch.cuda.Stream()
    a = torch.ones(1 << 20, device="cuda")
    torch.cuda.synchronize()
    assert torch.cuda.current_stream() == torch.cuda.default_stream() != side
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        for _ in range(8):
            a + a
        done = side.record_event()
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert torch.cuda.default_stream().query() and not done.query()
    torch.cuda.current_stream().wait_stream(side)
    a + a
    torch.cuda.current_stream().synchronize()
    assert done.query() and side.query()
    with side, torch.cuda.stream(None):
        assert torch.accelerator.current_stream() == side
    assert isinstance(side, torch.Stream) and repr(side).startswith("<torch.cuda.Stream device=cuda:0")


@pytest.mark.shows("PyTorch: torch.cuda: devices and memory")
def test_memory(mode):
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    a = torch.empty(1000, device="cuda")
    view = a[10:]
    assert torch.cuda.memory_allocated() - before == 4096
    del a
    assert torch.cuda.memory_allocated() - before == 4096
    del view
    assert torch.cuda.memory_allocated() == before and torch.cuda.max_memory_allocated() == before + 4096
    kept = torch.empty(100, device="cuda")
    kept.untyped_storage().resize_(0)
    assert torch.cuda.memory_allocated() == before
    kept.untyped_storage().resize_(2048)
    assert torch.cuda.memory_allocated() == torch.accelerator.memory_allocated() == before + 2048
    assert torch.cuda.memory_stats()["allocated_bytes.all.current"] == before + 2048
    assert "allocated" in torch.cuda.memory_summary().lower()
    torch.ones(100)  # the host's does not count
    assert torch.cuda.memory_allocated() == before + 2048


@pytest.mark.parametrize("size", [1 << 50, 1 << 42])
def test_memory_ends(mode, size):
    with pytest.raises(torch.OutOfMemoryError, match=r"CUDA out of memory. Tried to allocate .* GPU 0 has a total"):
        torch.empty(size, device="cuda", dtype=torch.int8)
    torch.cuda.set_per_process_memory_fraction(1e-9)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        torch.ones(1000, device="cuda") + 1
    torch.cuda.set_per_process_memory_fraction(1.0)


def test_a_fallen_tensor_takes_no_memory(mode):
    torch.cuda.set_per_process_memory_fraction(1e-9)
    with pytest.raises(torch.OutOfMemoryError):
        torch.ones(1000, device="cuda")
    torch.cuda.set_per_process_memory_fraction(1.0)
    assert torch.cuda.memory_allocated() == 0


def test_a_graph_does_at_each_replay_what_was_captured(mode):
    x, total = torch.arange(4.0, device="cuda"), torch.zeros(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        y = (x * 2).view(2, 2).t().contiguous()
        total += x
        z = torch.ones(4, device="cuda")
        z.add_(total)
    assert not torch.cuda.is_current_stream_capturing()
    assert total.tolist() == [0, 0, 0, 0]  # a capture does nothing that lasts
    for turn in range(1, 4):
        x.fill_(turn)
        graph.replay()
        assert y.tolist() == [[2 * turn] * 2] * 2
        assert total.tolist() == [sum(range(turn + 1))] * 4
        assert z.tolist() == [1 + sum(range(turn + 1))] * 4


def test_a_replay_costs_the_host_one_launch(mode):
    n, times = 1 << 20, 10
    x, graph = torch.zeros(n, device="cuda"), torch.cuda.CUDAGraph()

    def add() -> None:
        for _ in range(times):
            x.add_(1)

    with torch.cuda.graph(graph):
        add()
    spec = mode.rank.world.spec
    cubes = spec["sip"]["cube_mesh"]["w"] * spec["sip"]["cube_mesh"]["h"]
    each = 2 * 4 * n / (cubes * spec["cube"]["hbm"]["bandwidth"] * 1e9) * 1e3
    launch = spec["host"]["launch_overhead"] * 1e-6
    assert 0 < each < launch  # so that it is the host that decides without a graph
    for does, want in ((graph.replay, launch + times * each), (add, times * launch + each)):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        does()
        end.record()
        end.synchronize()
        assert start.elapsed_time(end) == pytest.approx(want, rel=1e-6)
    assert x[0].item() == 2 * times


def test_a_graph_has_the_order_of_its_streams(mode):
    side, x = torch.cuda.Stream(), torch.zeros(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x += 1
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x * 3
        torch.cuda.current_stream().wait_stream(side)
        z = y + x
    graph.replay()
    graph.replay()
    assert z.tolist() == [8] * 1000


@pytest.mark.parametrize("keep", [False, True])
def test_graphs_tell_their_hooks(mode, keep):
    graph, seen = torch.cuda.CUDAGraph(keep_graph=keep), []
    moments = ("capture_start", "capture_end", "post_instantiate", "replay_start", "replay_end")
    handles = [
        getattr(graph, f"register_{moment}_hook")(lambda g, moment=moment: seen.append((moment, g is graph)))
        for moment in moments
    ]
    of_all = getattr(torch.cuda.graphs, "register_graph_replay_end_hook", None)  # PyTorch 2.15 has it
    if of_all is not None:
        handles += [of_all(lambda g: seen.append("all")), of_all(lambda g: 1 / 0)]
    ends = [*(["all"] if of_all is not None else []), ("replay_end", True)]
    with torch.cuda.graph(graph):
        x = torch.ones(2, device="cuda") + 1
    captured, ready = [("capture_start", True), ("capture_end", True)], [("post_instantiate", True)]
    assert seen == captured + ([] if keep else ready)
    seen.clear()
    graph.replay()
    assert seen == [*(ready if keep else []), ("replay_start", True), *ends] and x.tolist() == [2, 2]
    for handle in handles:
        handle.remove()
    seen.clear()
    graph.replay()
    assert not seen


@pytest.mark.skipif(not hasattr(torch.accelerator, "Graph"), reason="PyTorch has none")
def test_graphs_of_the_accelerator(mode):
    x, stream, graph = torch.ones(2, device="cuda"), torch.Stream(device="cuda"), torch.accelerator.Graph()
    with stream, graph:
        y = x * 2
    x.fill_(3)
    graph.replay()
    assert y.tolist() == [6, 6]
    with pytest.raises(RuntimeError, match="non-default stream"), graph:
        pass


@pytest.mark.parametrize("data", [True, False])
def test_a_replay_issues_the_kernels_that_were_captured(monkeypatch, data):
    """PyTorch takes normalization by the root of the mean of squares apart above autograd."""
    issued = noted(monkeypatch)
    with runtime.opened(), device.running(data=data):
        x, weight, graph = torch.ones(2, 4, device="cuda"), torch.ones(4, device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            torch.nn.functional.rms_norm(x, (4,), weight)
        issued.clear()
        graph.replay()
    assert [name for name, *_ in issued] == ["_fused_rms_norm"]


@pytest.mark.parametrize("data", [True, False])
def test_a_replay_of_a_network_is_charged_as_its_call(monkeypatch, data):
    """Its operations and their gradients are kernels of the whole, where a topology knows such."""
    issued = noted(monkeypatch)
    with runtime.opened(topology="h200_8"), device.running(data=data):
        network = torch.nn.LSTM(16, 16, 2, device="cuda")
        x, graph = torch.ones(5, 3, 16, device="cuda"), torch.cuda.CUDAGraph()

        def step():
            return torch.autograd.grad(network(x)[0].sum(), list(network.parameters()))

        step()
        issued.clear()
        expected = [each.clone() for each in step()] if data else step()
        once = [name for name, *_ in issued if name != "clone"]
        with torch.cuda.graph(graph):
            made = step()
        issued.clear()
        graph.replay()
        assert [name for name, *_ in issued] == once
        assert "_thnn_fused_lstm_cell" not in once and "addmm" not in once
        if data:
            assert all(torch.equal(one, other) for one, other in zip(made, expected, strict=True))


@pytest.mark.filterwarnings("ignore:Mismatch dtype")
def test_a_capture_takes_operations_that_cpp_takes_apart(mode):
    """C++ says that its tensors are the CPU's where it widens elements that lie on a device."""
    x, weight = torch.full((2, 4), 3.0, device="cuda").bfloat16(), torch.full((4,), 2.0, device="cuda")
    expected = torch.nn.functional.rms_norm(x, (4,), weight)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = torch.nn.functional.rms_norm(x, (4,), weight)
    graph.replay()
    assert out.device.type == "cuda"
    assert out.tolist() == expected.tolist() == [[2.0] * 4] * 2


def test_what_a_capture_refuses(mode):
    graph, x = torch.cuda.CUDAGraph(), torch.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    with pytest.raises(RuntimeError, match="non-default stream"):
        graph.capture_begin()
    copies = lambda: torch.tensor(3.0, device="cuda"), lambda: x.copy_(torch.zeros(3)), torch.zeros(3).cuda
    for wait in (lambda: x.sum().item(), x.cpu, torch.cuda.synchronize, lambda: x.tolist(), lambda: x[x > 0], *copies):
        graph = torch.cuda.CUDAGraph()
        with pytest.raises(RuntimeError, match="not permitted when stream is capturing"), torch.cuda.graph(graph):
            wait()
        assert not torch.cuda.is_current_stream_capturing()


def test_graphed_callables(mode):
    torch.manual_seed(3)
    layer = torch.nn.Linear(4, 3).cuda()
    x = torch.randn(2, 4, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(layer, (x,))
    for _ in range(2):
        given = torch.randn(2, 4, device="cuda")
        want = torch.nn.functional.linear(given, layer.weight, layer.bias)
        assert torch.equal(graphed(given.clone().requires_grad_()), want)


def test_ranges(mode):
    with torch.cuda.nvtx.range("step"):
        assert torch.cuda.nvtx.range_push("inner") == 1
        assert torch.cuda.nvtx.range_pop() == 1


def test_a_stream_may_be_set_by_its_numbers(mode):
    """torch._C has this, by which PyTorch's own tests set streams."""
    other, before = torch.cuda.Stream(), torch.cuda.current_stream()
    torch._C._cuda_setStream(stream_id=other.stream_id, device_index=1, device_type=other.device_type)
    assert torch.cuda.current_stream() == other and torch.cuda.current_device() == 1
    torch._C._cuda_setStream(stream_id=before.stream_id, device_index=0, device_type=before.device_type)
    assert torch.cuda.current_stream() == before and torch.cuda.current_device() == 0


def test_taking_it_back():
    from torchemu.frontends.torch import device

    device.uninstall()
    assert torch.ones(1).device == torch.device("cpu") and not hasattr(torch.Tensor, "_place")
    assert torch.Stream is torch._C.Stream or torch.Stream.__module__ == "torch"
    device.install()
