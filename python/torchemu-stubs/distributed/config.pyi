"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.unsupported import unsupported_attributes as unsupported_attributes

