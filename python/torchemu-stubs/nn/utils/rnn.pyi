"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.utils.rnn import PackedSequence as PackedSequence
from torchemu.frontends.numpy.nn.utils.rnn import invert_permutation as invert_permutation
from torchemu.frontends.numpy.nn.utils.rnn import pack_padded_sequence as pack_padded_sequence
from torchemu.frontends.numpy.nn.utils.rnn import pack_sequence as pack_sequence
from torchemu.frontends.numpy.nn.utils.rnn import pad_packed_sequence as pad_packed_sequence
from torchemu.frontends.numpy.nn.utils.rnn import pad_sequence as pad_sequence
from torchemu.frontends.numpy.nn.utils.rnn import unpack_sequence as unpack_sequence
from torchemu.frontends.numpy.nn.utils.rnn import unpad_sequence as unpad_sequence

