"""A linear layer whose inner dimension is split over chips: each multiplies its shards on its matrix unit, and an
all-reduce adds up the products. It follows the multiplication because it reads what that writes."""

import sys

import torch
from chips import IN, INOUT, OUT, callable_of, device_range, flags, in_domain, scratch, tensors, worker_of
from simpler.task_interface import CallConfig, TensorArgType

M, K, N = 16, 64, 16  # K on each chip


def main() -> int:
    """Compares with the whole product."""
    cli = flags(__doc__).parse_args()
    devices = device_range(cli.device)
    torch.manual_seed(0)
    x = [torch.randn(M, K).share_memory_() for _ in devices]
    w = [torch.randn(K, N).share_memory_() for _ in devices]
    partial, y = ([torch.zeros(M, N).share_memory_() for _ in devices] for _ in range(2))
    worker = worker_of(cli, devices)
    linear_cid = worker.register(callable_of("local_linear", [IN, IN, OUT], cli, core="aic"))
    sum_cid = worker.register(callable_of("allreduce", [IN, OUT, INOUT], cli))

    def orch_fn(orch, _args, cfg):
        with orch.allocate_domain(
            name="tp",
            workers=list(range(len(devices))),
            window_size=4096,
            buffers=[scratch("scratch", M * N, rows=1)],
        ) as domain:
            for i in domain.workers:
                args = tensors(
                    (x[i], TensorArgType.INPUT),
                    (w[i], TensorArgType.INPUT),
                    (partial[i], TensorArgType.OUTPUT_EXISTING),
                )
                orch.submit_next_level(linear_cid, args, cfg, worker=i)
                args = tensors((partial[i], TensorArgType.INPUT), (y[i], TensorArgType.OUTPUT_EXISTING))
                orch.submit_next_level(sum_cid, in_domain(args, domain[i], M * N), cfg, worker=i)

    try:
        worker.init()
        worker.run(orch_fn, args=None, config=CallConfig())
    finally:
        worker.close()
    whole = torch.cat(x, dim=1) @ torch.cat(w, dim=0)
    good = all(torch.allclose(result, whole, rtol=1e-4, atol=1e-4) for result in y)
    print("all chips matched" if good else "golden check FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
