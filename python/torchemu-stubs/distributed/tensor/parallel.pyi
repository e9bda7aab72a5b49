"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.unsupported import unsupported_names as unsupported_names

