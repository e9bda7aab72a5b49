"""The fuzzer runs random distributed programs on processes of gloo and on torchemu, and compares what they get.

A valid program (programs.py) is a list of steps, each of which stands on its own, so that any of them can be left out.
It becomes a script (scripts.py) that processes of gloo (gloo.py), both front ends (emulated.py) and a person can run.
One rank of a program may be given a fault (faults.py), which the report of the run must name. What goes wrong is made
small (minimising.py) and written down as a script.
"""
