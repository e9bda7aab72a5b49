"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.padding import CircularPad1d as CircularPad1d
from torchemu.frontends.numpy.nn.modules.padding import CircularPad2d as CircularPad2d
from torchemu.frontends.numpy.nn.modules.padding import CircularPad3d as CircularPad3d
from torchemu.frontends.numpy.nn.modules.padding import ConstantPad1d as ConstantPad1d
from torchemu.frontends.numpy.nn.modules.padding import ConstantPad2d as ConstantPad2d
from torchemu.frontends.numpy.nn.modules.padding import ConstantPad3d as ConstantPad3d
from torchemu.frontends.numpy.nn.modules.padding import ReflectionPad1d as ReflectionPad1d
from torchemu.frontends.numpy.nn.modules.padding import ReflectionPad2d as ReflectionPad2d
from torchemu.frontends.numpy.nn.modules.padding import ReflectionPad3d as ReflectionPad3d
from torchemu.frontends.numpy.nn.modules.padding import ReplicationPad1d as ReplicationPad1d
from torchemu.frontends.numpy.nn.modules.padding import ReplicationPad2d as ReplicationPad2d
from torchemu.frontends.numpy.nn.modules.padding import ReplicationPad3d as ReplicationPad3d
from torchemu.frontends.numpy.nn.modules.padding import ZeroPad1d as ZeroPad1d
from torchemu.frontends.numpy.nn.modules.padding import ZeroPad2d as ZeroPad2d
from torchemu.frontends.numpy.nn.modules.padding import ZeroPad3d as ZeroPad3d

