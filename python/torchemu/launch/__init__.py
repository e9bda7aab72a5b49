"""Programs as they are: each rank of a run looks to its program like a process of its own.

``torchemu run`` (:mod:`.command`) takes torchrun's flags and runs a script; ``torchemu.pytest_plugin`` runs a test in
the same way. Both open an :class:`~torchemu.launch.isolation.Isolation`, whose
:class:`~torchemu.launch.process.Process` is what a rank has for itself: modules, environment, arguments, output, random
state.

What ranks still share, because it is the process's: open files, the
state of the standard library's and of installed packages' modules. Threads of a rank's program are tasks of the rank:
see :mod:`.threads`.
"""
