"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.pipelining.schedules import Schedule1F1B as Schedule1F1B
from torchemu.frontends.numpy.distributed.pipelining.schedules import ScheduleGPipe as ScheduleGPipe
from torchemu.frontends.numpy.distributed.pipelining.schedules import ScheduleInterleaved1F1B as ScheduleInterleaved1F1B
from torchemu.frontends.numpy.distributed.pipelining.schedules import ScheduleLoopedBFS as ScheduleLoopedBFS
from torchemu.frontends.numpy.distributed.pipelining.stage import PipelineStage as PipelineStage

