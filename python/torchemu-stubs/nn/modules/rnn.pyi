"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.rnn import GRU as GRU
from torchemu.frontends.numpy.nn.modules.rnn import GRUCell as GRUCell
from torchemu.frontends.numpy.nn.modules.rnn import LSTM as LSTM
from torchemu.frontends.numpy.nn.modules.rnn import LSTMCell as LSTMCell
from torchemu.frontends.numpy.nn.modules.rnn import RNN as RNN
from torchemu.frontends.numpy.nn.modules.rnn import RNNBase as RNNBase
from torchemu.frontends.numpy.nn.modules.rnn import RNNCell as RNNCell
from torchemu.frontends.numpy.nn.modules.rnn import RNNCellBase as RNNCellBase

