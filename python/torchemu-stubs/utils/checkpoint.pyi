"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.utils.checkpoint import CheckpointFunction as CheckpointFunction
from torchemu.frontends.numpy.utils.checkpoint import CheckpointPolicy as CheckpointPolicy
from torchemu.frontends.numpy.utils.checkpoint import SelectiveCheckpointContext as SelectiveCheckpointContext
from torchemu.frontends.numpy.utils.checkpoint import check_backward_validity as check_backward_validity
from torchemu.frontends.numpy.utils.checkpoint import checkpoint as checkpoint
from torchemu.frontends.numpy.utils.checkpoint import checkpoint_sequential as checkpoint_sequential
from torchemu.frontends.numpy.utils.checkpoint import create_selective_checkpoint_contexts as create_selective_checkpoint_contexts
from torchemu.frontends.numpy.utils.checkpoint import detach_variable as detach_variable
from torchemu.frontends.numpy.utils.checkpoint import get_device_states as get_device_states
from torchemu.frontends.numpy.utils.checkpoint import noop_context_fn as noop_context_fn
from torchemu.frontends.numpy.utils.checkpoint import set_checkpoint_debug_enabled as set_checkpoint_debug_enabled
from torchemu.frontends.numpy.utils.checkpoint import set_checkpoint_early_stop as set_checkpoint_early_stop
from torchemu.frontends.numpy.utils.checkpoint import set_device_states as set_device_states

