"""Collectives as device programs: worked examples for authors of kernels, to be named in a ccl.yaml.

Each gives bit for bit what the built-in algorithm of the same name gives. They push: a rank puts its data into a slot
of the receiver and signals. Slots and words are workspaces, which stay from call to call; words count calls, so that
they need no clearing, and each call begins with a ``sync``: no slot is written while a slow rank may still read it.

What a call takes beside the messages of the built-in algorithm: that sync, the way of a signal; the end of the kernel,
which waits for the acknowledgement of what it has sent; and transfers within the memory of a PE, where built-in
algorithms reduce at no cost but the vector unit's: in each step of a ring at most two loads and a store of the step's
data, in a shot a load of what every rank has sent and a store.
"""
