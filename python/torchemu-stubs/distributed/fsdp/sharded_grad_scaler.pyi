"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler as ShardedGradScaler

