"""Stands in for ``simpler``, the runtime of one host program over several chips, as of its L3 collective examples.

What is here is their API with ``orch.allocate_domain``, and so much of the next one (``Tensor``, ``arg_index``) that
their drivers run. Chips are the SIPs of a machine of device programs; the host, which forks there, is one process.
docs/simpler.md says what differs.
"""
