"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.optim.adam import Adam as Adam
from torchemu.frontends.numpy.optim.adam import AdamW as AdamW

