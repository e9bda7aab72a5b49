"""Three chips in two domains that share one: even = [0, 2] and tail = [1, 2]. Who is no member finds no domain."""

import sys

import torch
from chips import IN, INOUT, OUT, callable_of, device_range, flags, in_domain, scratch, tensors, worker_of
from simpler.task_interface import CallConfig, TensorArgType

COUNT = 256
DOMAINS = {"even": [0, 2], "tail": [1, 2]}


def main() -> int:
    """Adds up the inputs of each domain's members."""
    cli = flags(__doc__).parse_args()
    devices = device_range(cli.device, fewest=3, most=3)
    inputs = [torch.arange(COUNT, dtype=torch.float32) + 100 * worker for worker in range(3)]
    outputs = {name: {w: torch.zeros(COUNT) for w in members} for name, members in DOMAINS.items()}
    worker = worker_of(cli, devices)
    cid = worker.register(callable_of("allreduce", [IN, OUT, INOUT], cli))

    def orch_fn(orch, _args, cfg):
        for name, members in DOMAINS.items():
            with orch.allocate_domain(
                name=name, workers=members, window_size=4096, buffers=[scratch("scratch", COUNT, rows=1)]
            ) as domain:
                show(domain)
                for w in members:
                    args = tensors((inputs[w], TensorArgType.INPUT), (outputs[name][w], TensorArgType.OUTPUT_EXISTING))
                    orch.submit_next_level(cid, in_domain(args, domain[w], COUNT), cfg, worker=w)

    try:
        worker.init()
        worker.run(orch_fn, args=None, config=CallConfig())
    finally:
        worker.close()
    good = all(
        torch.equal(out, sum(inputs[w] for w in DOMAINS[name]))
        for name, of_domain in outputs.items()
        for out in of_domain.values()
    )
    print("all sums matched" if good else "golden check FAILED")
    return 0 if good else 1


def show(domain) -> None:
    """Prints who is where in a domain."""
    for worker in range(3):
        try:
            seen = domain[worker]
            print(f"{domain.name}: worker {worker} is rank {seen.domain_rank} of {seen.domain_size}")
        except KeyError:
            print(f"{domain.name}: worker {worker} is no member")


if __name__ == "__main__":
    sys.exit(main())
