"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._streams import current_stream as current_stream
from torchemu.frontends.numpy._streams import set_stream as set_stream
from torchemu.frontends.numpy._streams import synchronize as synchronize
from torchemu.frontends.numpy.accelerator import current_accelerator as current_accelerator
from torchemu.frontends.numpy.accelerator import device_index as device_index
from torchemu.frontends.numpy.ahbm import current_device as current_device_index
from torchemu.frontends.numpy.ahbm import device_count as device_count
from torchemu.frontends.numpy.ahbm import is_available as is_available
from torchemu.frontends.numpy.ahbm import set_device as set_device_index

