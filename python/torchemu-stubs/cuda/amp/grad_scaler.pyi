"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.cuda.amp.grad_scaler import GradScaler as GradScaler

