"""The same kernel on two chips, each with tensors of its own, and a Python function on the host that follows both."""

import sys

import torch
from chips import IN, OUT, callable_of, device_range, flags, tensors, worker_of
from simpler.task_interface import CallConfig, TensorArgType

ROWS, COLUMNS = 128, 128


def main() -> int:
    """Adds matrices of random numbers."""
    cli = flags(__doc__).parse_args()
    devices = device_range(cli.device, most=2)
    torch.manual_seed(42)
    a, b = ([torch.randn(ROWS, COLUMNS).share_memory_() for _ in devices] for _ in range(2))
    out = [torch.zeros(ROWS, COLUMNS).share_memory_() for _ in devices]
    worker = worker_of(cli, devices, sub_workers=1)

    def both_done(args) -> None:
        print(f"on the host: {args.tensor_count()} results are there")

    sub_cid = worker.register(both_done)
    chip_cid = worker.register(callable_of("vector_add", [IN, IN, OUT], cli))

    def orch_fn(orch, _args, cfg):
        for i in range(len(devices)):
            args = tensors(
                (a[i], TensorArgType.INPUT), (b[i], TensorArgType.INPUT), (out[i], TensorArgType.OUTPUT_EXISTING)
            )
            orch.submit_next_level(chip_cid, args, cfg, worker=i)
        orch.submit_sub(sub_cid, tensors(*((result, TensorArgType.INPUT) for result in out)))

    try:
        worker.init()
        worker.run(orch_fn, args=None, config=CallConfig())
    finally:
        worker.close()
    good = all(torch.equal(out[i], a[i] + b[i]) for i in range(len(devices)))
    print("both chips matched" if good else "golden check FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
