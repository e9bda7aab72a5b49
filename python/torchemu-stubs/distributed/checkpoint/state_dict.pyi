"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.checkpoint.state_dict import StateDictOptions as StateDictOptions
from torchemu.frontends.numpy.distributed.checkpoint.state_dict import get_model_state_dict as get_model_state_dict
from torchemu.frontends.numpy.distributed.checkpoint.state_dict import get_optimizer_state_dict as get_optimizer_state_dict
from torchemu.frontends.numpy.distributed.checkpoint.state_dict import get_state_dict as get_state_dict
from torchemu.frontends.numpy.distributed.checkpoint.state_dict import set_model_state_dict as set_model_state_dict
from torchemu.frontends.numpy.distributed.checkpoint.state_dict import set_optimizer_state_dict as set_optimizer_state_dict
from torchemu.frontends.numpy.distributed.checkpoint.state_dict import set_state_dict as set_state_dict

