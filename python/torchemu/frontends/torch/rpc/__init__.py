"""torch.distributed.rpc, torch.distributed.autograd and DistributedOptimizer among simulated ranks.

PyTorch's own Python stays. What it takes from C++, where there is one agent for a process, is here, with one for each
rank: an agent (`agents`) and what agents that have met share (`clusters`); calls and their answers (`calls`), which are
messages on the fabric (`messages`) and run on threads of the rank that they come to; references (`references`); and
gradients across ranks: contexts (`contexts`), what joins the graphs of two ranks (`joints`), and backward passes
(`passes`), which go from rank to rank as gradients arrive.
"""
