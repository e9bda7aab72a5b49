"""Two domains that overlap, left = [0, 1] and right = [1, 2]: sums in both, then y = sum·scale + bias on groups of
chips, each of which follows only the sums that it reads."""

import sys

import torch
from chips import IN, INOUT, OUT, callable_of, device_range, flags, in_domain, scratch, tensors, worker_of
from simpler.task_interface import CallConfig, TensorArgType

COUNT = 256
DOMAINS = {"left": [0, 1], "right": [1, 2]}


def values(fill) -> dict:
    """A tensor for each member of each domain."""
    return {(name, w): torch.full((COUNT,), fill(w)) for name, members in DOMAINS.items() for w in members}


def main() -> int:
    """Runs both stages in one graph."""
    cli = flags(__doc__).parse_args()
    x = [torch.arange(COUNT, dtype=torch.float32) + 100 * w for w in range(3)]
    sums, results = values(lambda w: 0.0), values(lambda w: 0.0)
    scale, bias = values(lambda w: 0.5 + w / 4), values(lambda w: 10.0 + w)
    worker = worker_of(cli, device_range(cli.device, fewest=3, most=3))
    sum_cid = worker.register(callable_of("domain_allreduce_sum", [IN, OUT, INOUT], cli))
    affine_cid = worker.register(callable_of("affine", [IN, IN, IN, OUT], cli))

    def add_up(orch, name, cfg):
        with orch.allocate_domain(
            name=name, workers=DOMAINS[name], window_size=4096, buffers=[scratch("scratch", COUNT, rows=1)]
        ) as domain:
            args_list = [
                in_domain(
                    tensors((x[w], TensorArgType.INPUT), (sums[name, w], TensorArgType.OUTPUT_EXISTING)),
                    domain[w],
                    COUNT,
                )
                for w in domain.workers
            ]
            orch.submit_next_level_group(sum_cid, args_list, cfg, workers=domain.workers)

    def orch_fn(orch, _args, cfg):
        for name, members in DOMAINS.items():
            add_up(orch, name, cfg)
            args_list = [
                tensors(
                    (sums[name, w], TensorArgType.INPUT),
                    (scale[name, w], TensorArgType.INPUT),
                    (bias[name, w], TensorArgType.INPUT),
                    (results[name, w], TensorArgType.OUTPUT_EXISTING),
                )
                for w in members
            ]
            orch.submit_next_level_group(affine_cid, args_list, cfg, workers=members)

    try:
        worker.init()
        worker.run(orch_fn, args=None, config=CallConfig())
    finally:
        worker.close()
    good = True
    for name, w in results:
        expected = sum(x[member] for member in DOMAINS[name]) * scale[name, w] + bias[name, w]
        good &= torch.equal(results[name, w], expected)
    print("both domains matched" if good else "golden check FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
