"""Parts that the drivers share: flags, kernels, and one collective over a domain of all chips, as in simpler's own
L3 examples."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence

import torch
from simpler.task_interface import (
    ArgDirection,
    CallConfig,
    ChipCallable,
    CommBufferSpec,
    ContinuousTensor,
    CoreCallable,
    DataType,
    TaskArgs,
    TensorArgType,
)
from simpler.worker import Worker
from simpler_setup.elf_parser import extract_text_section
from simpler_setup.kernel_compiler import KernelCompiler
from simpler_setup.pto_isa import ensure_pto_isa_root
from simpler_setup.torch_interop import make_tensor_arg

HERE = os.path.dirname(os.path.abspath(__file__))
RUNTIME = "tensormap_and_ringbuffer"
FLOAT_BYTES = 4
ROW_BYTES = 64  # of signals: a word for each of 16 ranks
IN, OUT, INOUT = ArgDirection.IN, ArgDirection.OUT, ArgDirection.INOUT


def flags(about: str | None) -> argparse.ArgumentParser:
    """The flags of all drivers."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("-p", "--platform", default="a2a3", help="a2a3, a2a3sim, a5 or a5sim; they are all simulated")
    parser.add_argument("-d", "--device", default="0-1", help="a range of chips, such as 0-3")
    parser.add_argument("--build", action="store_true", help="accepted, as elsewhere: there is nothing to build")
    parser.add_argument("--pto-isa-commit", default=None, help="accepted, as elsewhere: nothing is fetched")
    parser.add_argument("--kernels", default=HERE, help="the folder with kernels/aiv/…; without it those in Go")
    return parser


def device_range(text: str, fewest: int = 2, most: int = 16) -> list[int]:
    """The chips of a range "0-3".

    Raises:
        ValueError: it is none, or not of so many chips.
    """
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if found is None:
        raise ValueError(f"-d {text}: want a range of chips, such as 0-3")
    devices = list(range(int(found[1]), int(found[2] or found[1]) + 1))
    if not fewest <= len(devices) <= most:
        raise ValueError(f"-d {text}: {len(devices)} chips; want {fewest} to {most}")
    return devices


def callable_of(
    name: str, signature: Sequence[ArgDirection], cli: argparse.Namespace, core: str = "aiv"
) -> ChipCallable:
    """The kernel of a source kernels/<core>/<name>_kernel.cpp, with the orchestration that passes its arguments on."""
    compiler = KernelCompiler(platform=cli.platform)
    root = ensure_pto_isa_root(commit=cli.pto_isa_commit, clone_protocol="https")
    includes = [*compiler.get_orchestration_include_dirs(RUNTIME), str(compiler.project_root / "src" / "common")]
    binary = compiler.compile_incore(
        source_path=os.path.join(cli.kernels, f"kernels/{core}/{name}_kernel.cpp"),
        core_type=core,
        pto_isa_root=root,
        extra_include_dirs=includes,
    )
    if not cli.platform.endswith("sim"):
        binary = extract_text_section(binary)
    orchestration = compiler.compile_orchestration(
        runtime_name=RUNTIME, source_path=os.path.join(cli.kernels, f"kernels/orchestration/{name}_orch.cpp")
    )
    return ChipCallable.build(
        signature=list(signature),
        func_name=f"{name}_orchestration",
        config_name=f"{name}_orchestration_config",
        binary=orchestration,
        children=[(0, CoreCallable.build(signature=list(signature), binary=binary))],
    )


def worker_of(cli: argparse.Namespace, devices: list[int], sub_workers: int = 0) -> Worker:
    """A Worker over some chips."""
    return Worker(
        level=3,
        platform=cli.platform,
        runtime=RUNTIME,
        device_ids=devices,
        num_sub_workers=sub_workers,
        build=cli.build,
    )


def scratch(name: str, floats: int, rows: int) -> CommBufferSpec:
    """A buffer of so many floats, and rows of signals after them."""
    return CommBufferSpec(name=name, dtype="float32", count=floats, nbytes=floats * FLOAT_BYTES + rows * ROW_BYTES)


def in_domain(args: TaskArgs, domain, floats: int, *between: int) -> TaskArgs:
    """Adds what a kernel gets of a domain: its scratch buffer, how many members, and the context."""
    buffer = ContinuousTensor.make(
        data=domain.buffer_ptrs["scratch"], shapes=(floats,), dtype=DataType.FLOAT32, child_memory=True
    )
    args.add_tensor(buffer, TensorArgType.INOUT)
    for scalar in (domain.domain_size, *between, domain.device_ctx):
        args.add_scalar(scalar)
    return args


def tensors(*tagged: tuple[torch.Tensor, TensorArgType]) -> TaskArgs:
    """The arguments of a task so far."""
    args = TaskArgs()
    for tensor, tag in tagged:
        args.add_tensor(make_tensor_arg(tensor), tag)
    return args


def collective(
    kernel: str,
    cli: argparse.Namespace,
    inputs: Sequence[torch.Tensor],
    out_elems: int,
    spec: CommBufferSpec,
    scalars: Sequence[int] = (),
) -> list[torch.Tensor]:
    """Runs one collective over all chips; returns what each has got."""
    inputs = [tensor.share_memory_() for tensor in inputs]
    outputs = [torch.zeros(out_elems, dtype=torch.float32).share_memory_() for _ in inputs]
    devices = device_range(cli.device)
    worker = worker_of(cli, devices)
    chip_cid = worker.register(callable_of(kernel, [IN, OUT, INOUT], cli))

    def orch_fn(orch, _args, cfg):
        with orch.allocate_domain(
            name="default", workers=list(range(len(devices))), window_size=max(spec.nbytes, 4096), buffers=[spec]
        ) as handle:
            for i in range(len(devices)):
                args = tensors((inputs[i], TensorArgType.INPUT), (outputs[i], TensorArgType.OUTPUT_EXISTING))
                orch.submit_next_level(chip_cid, in_domain(args, handle[i], spec.count, *scalars), cfg, worker=i)

    try:
        worker.init()
        timing = worker.run(orch_fn, args=None, config=CallConfig())
        print(f"[{kernel}] {len(devices)} chips: {timing.host_wall_us:.3f} us")
    finally:
        worker.close()
    return outputs


def verdict(kernel: str, outputs: Sequence[torch.Tensor], golden: Callable[[int], Sequence[float]]) -> int:
    """Compares each chip's output with what it has to be, and prints by how much it is off; 0 when all are right."""
    status = 0
    for i, output in enumerate(outputs):
        expected = torch.tensor(golden(i), dtype=torch.float32)
        difference = float(torch.max(torch.abs(output - expected)))
        print(f"[{kernel}] chip {i}: max |out - expected| = {difference:.3e}")
        status |= difference > 1e-3
    print(f"[{kernel}] {'golden check FAILED' if status else 'all chips matched'}")
    return int(status)
