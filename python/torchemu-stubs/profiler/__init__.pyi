"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.profiler._profile import ProfilerActivity as ProfilerActivity
from torchemu.frontends.numpy.profiler._profile import profile as profile
from torchemu.frontends.numpy.profiler._profile import tensorboard_trace_handler as tensorboard_trace_handler
from torchemu.frontends.numpy.profiler._schedule import ProfilerAction as ProfilerAction
from torchemu.frontends.numpy.profiler._schedule import schedule as schedule
from torchemu.profile.annotation import record_function as record_function

