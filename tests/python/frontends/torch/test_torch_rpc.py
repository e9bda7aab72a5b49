"""Remote procedure calls between ranks, against what PyTorch's processes have been seen to answer over TensorPipe."""

import functools
import os
import pickle
import time

import pytest
import torch
import torch.distributed.rpc as rpc
from torch.distributed.rpc import RRef

import torchemu
from torchemu.runtime.waiting import host_time


def workers(count, **options):
    """Runs a test on workers w0, w1, …, of which the first runs it, and the others are there to be called."""

    def around(test):
        @torchemu.distributed(world_size=count, torch="real")
        @functools.wraps(test)
        def run(*args, **kwargs):
            begin(count, **options)
            try:
                if rank() == 0:
                    test(*args, **kwargs)
            except BaseException:
                rpc.shutdown(graceful=False)
                raise
            rpc.shutdown()

        return run

    return around


def rank():
    return int(os.environ["RANK"])


def now():
    """The seconds that have passed on the rank's host, simulated."""
    return host_time() / 1e12


def begin(count, **options):
    told = rpc.TensorPipeRpcBackendOptions(**options) if options else None
    rpc.init_rpc(f"w{rank()}", rank=rank(), world_size=count, rpc_backend_options=told)


def fail(kind):
    raise kind("told")


class Own(RuntimeError):
    """An error of a program's."""


class Awkward(Exception):
    """An error that one argument does not make."""

    def __init__(self, one, other):
        super().__init__(one, other)


def fail_awkwardly():
    raise Awkward(1, 2)


def about(tensor):
    return (
        *(tensor.requires_grad, tensor.is_leaf, tensor.stride(), tensor.storage_offset()),
        *(tensor.untyped_storage().nbytes(), type(tensor).__name__),
    )


def same(value):
    return value


def add_one(tensor):
    return tensor.add_(1)


def where():
    return rpc.get_worker_info().name, os.environ["RANK"], torch.initial_seed() is not None


def sleep(seconds):
    time.sleep(seconds)
    return rpc.get_worker_info().id


def nested(names):
    first, *others = names
    return [*rpc.rpc_sync(first, nested, (others,)), rpc.get_worker_info().name] if others else [first]


def value_of(reference):
    return reference.to_here() + 1, reference.is_owner()


def local_value_of(reference):
    return reference.local_value()


def new_reference(value):
    return RRef(value)


@rpc.functions.async_execution
def added_there(to, x, y):
    return rpc.rpc_async(to, torch.add, (x, y)).then(lambda future: future.wait() * 10)


@rpc.functions.async_execution
def failing_there(to):
    return rpc.rpc_async(to, fail, (ValueError,))


@rpc.functions.async_execution
def no_future():
    return 1


class Counter:
    """An object that others call."""

    def __init__(self, start=0):
        self.count = start

    def add(self, n):
        self.count += n
        return self.count

    def fail(self):
        raise KeyError("k")

    @staticmethod
    @rpc.functions.async_execution
    def later(to):
        return rpc.rpc_async(to, torch.ones, ([2],))


@pytest.mark.shows("PyTorch: remote procedure calls")
@workers(2)
def test_functions_run_on_the_other_worker():
    assert rpc.rpc_sync("w1", where)[:2] == ("w1", "1")
    assert rpc.rpc_async("w1", sum, ([1, 2, 3],)).wait() == 6
    assert rpc.rpc_sync(1, pow, (2, 5)) == 32 and rpc.rpc_sync(rpc.get_worker_info("w0"), where)[0] == "w0"
    assert torch.equal(rpc.rpc_sync("w1", torch.add, (torch.ones(2), 3)), torch.full((2,), 4.0))
    assert rpc.rpc_sync("w1", same, kwargs={"value": {"a": 1}}) == {"a": 1}
    assert rpc.get_worker_info().name == "w0" and rpc.get_worker_info("w1").id == 1


@workers(3)
def test_calls_go_on_from_worker_to_worker():
    assert rpc.rpc_sync("w1", nested, (["w2", "w0", "w1", "w2"],)) == ["w2", "w0", "w2", "w1"]


@pytest.mark.parametrize("to", ["w0", "w1"])
@workers(2)
def test_tensors_are_copies(to):
    """Also to the worker itself."""
    zeros = torch.zeros(2)
    assert torch.equal(rpc.rpc_sync(to, add_one, (zeros,)), torch.ones(2)) and not zeros.any()
    value = torch.zeros(3)
    reference = rpc.remote(to, same, (value,))
    value += 5
    assert not reference.to_here().any()


@workers(2)
def test_tensors_arrive_as_they_do_over_tensorpipe():
    """Seen on two processes: what tensors are on the other side and when they have come back."""
    x = torch.randn(4, 4, requires_grad=True)
    seen = [
        (x, (True, True, (4, 1), 0, 64, "Tensor")),
        (x * 2, (True, True, (4, 1), 0, 64, "Tensor")),
        (torch.randn(4, 4).t(), (False, True, (1, 4), 0, 64, "Tensor")),
        (torch.randn(100, 100)[:, ::2], (False, True, (50, 1), 0, 20000, "Tensor")),
        (torch.ones(1).expand(5), (False, True, (0,), 0, 4, "Tensor")),
        (torch.nn.Parameter(torch.ones(2)), (True, True, (1,), 0, 8, "Parameter")),
        (torch.randn(6, 4)[1:3, ::2], (False, True, (4, 2), 4, 96, "Tensor")),
    ]
    for tensor, told in seen:
        back = rpc.rpc_sync("w1", same, (tensor,))
        assert rpc.rpc_sync("w1", about, (tensor,)) == told == about(back)
        assert torch.equal(back, tensor)


@workers(2)
def test_empty_and_large_and_integer_tensors():
    for tensor in (torch.empty(0), torch.arange(300_001), torch.tensor(True), torch.rand(3, dtype=torch.complex64)):
        back = rpc.rpc_sync("w1", same, ({"x": [tensor, 1]},))["x"][0]
        assert torch.equal(back, tensor) and back.dtype == tensor.dtype


@pytest.mark.parametrize(
    ("kind", "raised"),
    [(ValueError, ValueError), (TypeError, TypeError), (KeyError, RuntimeError), (Own, RuntimeError)],
)
@workers(2)
def test_exceptions_come_back(kind, raised):
    """PyTorch keeps two types, and makes others RuntimeErrors; to_here() keeps them all."""
    with pytest.raises(raised, match=rf"^{kind.__name__}: .*On WorkerInfo\(id=1, name=w1\)") as found:
        rpc.rpc_sync("w1", fail, (kind,))
    assert type(found.value) is raised
    assert "in fail" in str(found.value) and str(found.value).endswith("_handle_exception\n")
    with pytest.raises(kind, match=r"^'?On WorkerInfo\(id=1, name=w1\)"):
        rpc.remote("w1", fail, (kind,)).to_here()
    future = rpc.rpc_async("w1", fail, (kind,))
    with pytest.raises(raised):
        torch.futures.wait_all([rpc.rpc_async("w1", same, (1,)), future])
    with pytest.raises(RuntimeError, match=f"running the callback: {raised.__name__}: {kind.__name__}: "):
        rpc.rpc_async("w1", fail, (kind,)).then(lambda f: f.wait()).wait()


@workers(2)
def test_what_cannot_be_called():
    with pytest.raises(RuntimeError, match="Failed to create original exception type"):
        rpc.rpc_sync("w1", fail_awkwardly)
    with pytest.raises(RuntimeError, match=r"^The size of tensor a \(2\) must match"):
        rpc.rpc_sync("w1", torch.add, (torch.ones(2), torch.ones(3)))
    with pytest.raises(RuntimeError, match="could not find destination name nobody"):
        rpc.rpc_sync("nobody", same, (1,))
    with pytest.raises(RuntimeError, match="could not find destination id 7"):
        rpc.rpc_sync(7, same, (1,))
    with pytest.raises(AttributeError, match=r"(pickle|get) local object"):
        rpc.rpc_sync("w1", lambda: 1)
    with pytest.raises(TypeError, match="function should be callable"):
        rpc.rpc_sync("w1", 3)
    with pytest.raises(RuntimeError, match=r"only supports CPU tensors by default.*found tensor on device: cuda:0"):
        rpc.rpc_sync("w1", same, (torch.ones(1, device="cuda:0"),))
    with pytest.raises(RuntimeError, match="Response device mapping is not available for destination w0"):
        rpc.rpc_sync("w1", torch.ones, ([1],), {"device": "cuda:0"})
    with pytest.raises(RuntimeError, match="RPC is already initialized"):
        begin(2)


@workers(2)
def test_references():
    there = rpc.remote("w1", Counter, (5,))
    assert there.owner() == rpc.get_worker_info("w1") and there.owner_name() == "w1" and not there.is_owner()
    assert there.rpc_sync().add(1) == 6
    assert there.rpc_async().add(1).wait() == 7
    assert there.remote().add(1).to_here() == 8
    assert there.to_here().count == 8 and there.confirmed_by_owner()
    assert torch.equal(there.rpc_sync().later("w0"), torch.ones(2))
    assert torch.equal(there.rpc_async().later("w0").wait(), torch.ones(2))
    assert torch.equal(there.remote().later("w0").to_here(), torch.ones(2))
    with pytest.raises(RuntimeError, match="KeyError"):
        there.rpc_sync().fail()
    with pytest.raises(KeyError, match="On WorkerInfo"):
        there.remote().fail().to_here()
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        there.rpc_sync().nothing()
    with pytest.raises(RuntimeError, match=r"can't call localValue\(\) on user WorkerInfo\(id=0, name=w0\)"):
        there.local_value()
    with pytest.raises(RuntimeError, match="rref can only be pickled when using RPC"):
        pickle.dumps(there)
    assert there._get_type() is Counter and there._get_type(blocking=False).wait() is Counter
    assert repr(there).startswith("UserRRef(RRefId = GloballyUniqueId(created_on=0, local_id=")


@workers(2)
def test_references_as_arguments_and_results():
    own, there = RRef(torch.tensor(5)), rpc.remote("w1", int, ("3",))
    assert own.is_owner() and own.to_here() is own.local_value() and own.confirmed_by_owner()
    assert repr(own).startswith("OwnerRRef(GloballyUniqueId(created_on=0")
    assert rpc.rpc_sync("w1", value_of, (own,)) == (6, False)
    assert rpc.rpc_sync("w1", value_of, (there,)) == (4, True)
    assert rpc.rpc_sync("w0", value_of, (there,)) == (4, False)
    assert rpc.rpc_sync("w1", local_value_of, (there,)) == 3
    assert rpc.rpc_sync("w1", new_reference, (7,)).to_here() == 7
    with pytest.raises(RuntimeError, match=r"can't call localValue\(\) on user WorkerInfo\(id=1, name=w1\)"):
        rpc.rpc_sync("w1", local_value_of, (own,))


@workers(3)
def test_asynchronous_execution():
    assert torch.equal(rpc.rpc_sync("w1", added_there, ("w2", torch.ones(2), 2)), torch.full((2,), 30.0))
    assert torch.equal(rpc.remote("w1", added_there, ("w2", torch.ones(2), 2)).to_here(), torch.full((2,), 30.0))
    with pytest.raises(ValueError, match=r"On WorkerInfo\(id=2, name=w2\)"):
        rpc.rpc_sync("w1", failing_there, ("w2",))
    with pytest.raises(RuntimeError, match=r"must return a torch\.futures\.Future object, but got builtins.int"):
        rpc.rpc_sync("w1", no_future)


@workers(2)
def test_limits_pass_in_simulated_time():
    with pytest.raises(RuntimeError, match=r"^RPCErr:1:RPC ran for more than set timeout \(200 ms\)"):
        rpc.rpc_sync("w1", sleep, (0.4,), timeout=0.2)
    begun = now()
    assert rpc.rpc_sync("w1", sleep, (0.1,), timeout=0.2) == 1
    assert 0.1 <= now() - begun < 0.2
    with pytest.raises(RuntimeError, match=r"timeout \(100 ms\)"):
        rpc.remote("w1", sleep, (0.3,)).to_here(timeout=0.1)
    late = rpc.remote("w1", sleep, (0.3,), timeout=0.1)
    time.sleep(0.2)
    with pytest.raises(RuntimeError, match=r"creation via rpc.remote.* timed out"):
        late.to_here()
    rpc._set_rpc_timeout(0.05)
    with pytest.raises(RuntimeError, match=r"timeout \(50 ms\)"):
        rpc.rpc_sync("w1", sleep, (0.1,))
    assert rpc.get_rpc_timeout() == 0.05


@workers(2)
def test_the_first_error_ends_a_wait_for_several():
    begun = now()
    slow = rpc.rpc_async("w1", sleep, (0.5,))
    with pytest.raises(ValueError, match="On WorkerInfo"):
        torch.futures.wait_all([slow, rpc.rpc_async("w1", fail, (ValueError,))])
    assert now() - begun < 0.1
    assert torch.futures.wait_all([slow, rpc.rpc_async("w1", same, (2,))]) == [1, 2]
    assert now() - begun >= 0.5


@workers(2, num_worker_threads=2)
def test_no_more_calls_run_at_once_than_there_are_threads():
    begun = now()
    torch.futures.wait_all([rpc.rpc_async("w1", sleep, (0.1,)) for _ in range(4)])
    assert 0.2 <= now() - begun < 0.25


@workers(2, num_worker_threads=8)
def test_calls_run_side_by_side():
    begun = now()
    torch.futures.wait_all([rpc.rpc_async("w1", sleep, (0.1,)) for _ in range(8)])
    assert 0.1 <= now() - begun < 0.15


@workers(2)
def test_messages_take_the_time_of_their_bytes():
    took = []
    for n in (1, 1 << 20, 1 << 22):
        tensor = torch.zeros(n)
        begun = now()
        rpc.rpc_sync("w1", torch.numel, (tensor,))
        took.append(now() - begun)
    assert took[0] < took[1] < took[2]
    assert 3.9 < (took[2] - took[0]) / (took[1] - took[0]) < 4.1


@torchemu.distributed(world_size=2, torch="real")
def test_workers_begin_anew_after_a_shutdown():
    for turn in range(2):
        begin(2)
        assert rpc.rpc_sync(f"w{1 - rank()}", same, (turn,)) == turn
        there = rpc.remote(f"w{1 - rank()}", int, ("5",))
        assert there.to_here() == 5
        rpc.shutdown()
        with pytest.raises(RuntimeError, match=r"Cannot call to_here\(\) on it after deletion"):
            there.to_here()
        with pytest.raises(RuntimeError, match=r"RPC has not been initialized. Call torch.distributed.rpc.init_rpc"):
            rpc.rpc_sync("w0", same, (1,))


@torchemu.distributed(world_size=3, torch="real")
def test_who_shuts_down_still_serves():
    begin(3)
    if rank() == 2:
        time.sleep(0.5)
        assert rpc.rpc_sync("w0", sleep, (0.1,)) == 0 and rpc.rpc_sync("w1", where)[0] == "w1"
        late = rpc.rpc_async("w1", sleep, (0.4,))
        rpc.shutdown()
        assert late.done() and late.wait() == 1
    else:
        rpc.shutdown()


@torchemu.distributed(world_size=2, torch="real")
def test_names_are_told_apart():
    with pytest.raises(RuntimeError, match=r"RPC worker name same is not unique\. Workers 0 and 1 share the same name"):
        rpc.init_rpc("same", rank=rank(), world_size=2)


def mapped(x, y):
    assert x.device == torch.device("cuda:1")
    return x + y, (x + y).to("cuda:0")


@torchemu.distributed(world_size=2, torch="real")
def test_device_maps():
    options = rpc.TensorPipeRpcBackendOptions(device_maps={"w1": {0: 1}} if rank() == 0 else None)
    if rank() == 0:
        options.set_device_map("w1", {1: 0})
    rpc.init_rpc(f"w{rank()}", rank=rank(), world_size=2, rpc_backend_options=options)
    if rank() == 0:
        x = torch.arange(3.0, device="cuda:0")
        one, other = rpc.rpc_sync("w1", mapped, (x, 1))
        assert one.device == torch.device("cuda:0") and other.device == torch.device("cuda:1")
        assert one.tolist() == other.tolist() == [1.0, 2.0, 3.0]
    rpc.shutdown()


@torchemu.distributed(world_size=2, torch="real")
def test_device_maps_that_are_wrong():
    options = rpc.TensorPipeRpcBackendOptions(device_maps={"nobody": {0: 1}} if rank() == 0 else None)
    with pytest.raises(ValueError, match="Node w0 has invalid target node names in its device maps"):
        rpc.init_rpc(f"w{rank()}", rank=rank(), world_size=2, rpc_backend_options=options)


@torchemu.distributed(world_size=3, torch="real")
def test_workers_join_and_leave():
    options = rpc.TensorPipeRpcBackendOptions(init_method="tcp://localhost:29777")
    time.sleep(0.1 * rank())
    rpc.init_rpc(f"w{rank()}", rank=rank(), rpc_backend_options=options)
    if rank() == 2:
        names = [info.name for info in rpc.api._get_current_rpc_agent().get_worker_infos()]
        assert names == ["w0", "w1", "w2"]
        assert [rpc.rpc_sync(name, where)[0] for name in names] == names
    time.sleep(0.5)
    rpc.shutdown()
