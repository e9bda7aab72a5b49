# torchemu run simpler_dispatches.py -p a2a3sim -d 0-1
"""Each chip waits for the other in one task and signals it in the next one, which its worker never comes to."""

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
wait, send = worker.register(built("wait_kernel")), worker.register(built("send_kernel"))
worker.init()


def orch_fn(orch, _args, cfg):
    flag = CommBufferSpec(name="flag", dtype="int32", count=1, nbytes=4)
    with orch.allocate_domain(name="pair", workers=[0, 1], window_size=4096, buffers=[flag]) as domain:
        for task in (wait, send):
            for i in (0, 1):
                args = TaskArgs()
                data = domain[i].buffer_ptrs["flag"]
                tensor = ContinuousTensor.make(data=data, shapes=(1,), dtype=DataType.INT32, child_memory=True)
                args.add_tensor(tensor, TensorArgType.NO_DEP)
                args.add_scalar(domain[i].device_ctx)
                orch.submit_next_level(task, args, cfg, worker=i)


try:
    worker.run(orch_fn)
finally:
    worker.close()
