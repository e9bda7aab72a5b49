"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.dropout import AlphaDropout as AlphaDropout
from torchemu.frontends.numpy.nn.modules.dropout import Dropout as Dropout
from torchemu.frontends.numpy.nn.modules.dropout import Dropout1d as Dropout1d
from torchemu.frontends.numpy.nn.modules.dropout import Dropout2d as Dropout2d
from torchemu.frontends.numpy.nn.modules.dropout import Dropout3d as Dropout3d
from torchemu.frontends.numpy.nn.modules.dropout import FeatureAlphaDropout as FeatureAlphaDropout

