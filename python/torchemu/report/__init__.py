"""``torchemu report DIR``: what took how long in a run, as tables on the terminal and as one HTML page.

DIR is what ``--trace DIR`` has written: a trace for each rank, and the run's fabric. Other folders with traces in
PyTorch's shape do as well; their reports have no drawing of the fabric.
"""
