"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.utils import consume_prefix_in_state_dict_if_present as consume_prefix_in_state_dict_if_present

