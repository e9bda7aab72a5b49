# torchemu run simpler_group.py -p a2a3sim -d 0-1
"""An exchange of two chips as two tasks, with a group of both chips between them: the first task waits for the second,
which is behind the group, which waits for the first."""

import argparse

from simpler.task_interface import (
    ArgDirection,
    ChipCallable,
    CommBufferSpec,
    ContinuousTensor,
    CoreCallable,
    DataType,
    TaskArgs,
    TensorArgType,
)
from simpler.worker import Worker
from simpler_setup.kernel_compiler import KernelCompiler

parser = argparse.ArgumentParser()
parser.add_argument("-p", dest="platform")
parser.add_argument("-d", dest="device")
cli = parser.parse_args()
compiler = KernelCompiler(platform=cli.platform)


def built(name):
    core = CoreCallable.build(signature=[ArgDirection.INOUT], binary=compiler.compile_incore(f"kernels/aiv/{name}.cpp"))
    return ChipCallable.build(signature=[ArgDirection.INOUT], func_name=name, binary=b"", children=[(0, core)])


worker = Worker(level=3, platform=cli.platform, runtime="tensormap_and_ringbuffer", device_ids=[0, 1])
exchange = worker.register(built("exchange_kernel"))
worker.init()


def orch_fn(orch, _args, cfg):
    flags = [CommBufferSpec(name=name, dtype="int32", count=1, nbytes=4) for name in ("single", "group")]
    with orch.allocate_domain(name="pair", workers=[0, 1], window_size=4096, buffers=flags) as domain:
        orch.submit_next_level(exchange, arguments(domain[0], "single"), cfg, worker=0)
        both = [arguments(domain[i], "group") for i in (0, 1)]
        orch.submit_next_level_group(exchange, both, cfg, workers=[0, 1])
        orch.submit_next_level(exchange, arguments(domain[1], "single"), cfg, worker=1)


def arguments(seen, flag):
    args = TaskArgs()
    data = seen.buffer_ptrs[flag]
    tensor = ContinuousTensor.make(data=data, shapes=(1,), dtype=DataType.INT32, child_memory=True)
    args.add_tensor(tensor, TensorArgType.NO_DEP)
    args.add_scalar(seen.device_ctx)
    return args


try:
    worker.run(orch_fn)
finally:
    worker.close()
