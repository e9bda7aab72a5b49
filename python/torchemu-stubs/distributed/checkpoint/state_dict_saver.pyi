"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.checkpoint.state_dict_saver import async_save as async_save
from torchemu.frontends.numpy.distributed.checkpoint.state_dict_saver import save as save

