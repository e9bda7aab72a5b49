"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.device_mesh import DeviceMesh as DeviceMesh
from torchemu.frontends.numpy.distributed.device_mesh import init_device_mesh as init_device_mesh

