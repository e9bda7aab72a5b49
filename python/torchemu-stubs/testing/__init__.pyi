"""Names for type checkers; written by python/build_backend/stubs.py."""



