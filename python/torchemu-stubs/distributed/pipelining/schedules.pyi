"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.pipelining.schedules import PipelineScheduleMulti as PipelineScheduleMulti
from torchemu.frontends.numpy.distributed.pipelining.schedules import PipelineScheduleSingle as PipelineScheduleSingle
from torchemu.frontends.numpy.distributed.pipelining.schedules import Schedule1F1B as Schedule1F1B
from torchemu.frontends.numpy.distributed.pipelining.schedules import ScheduleGPipe as ScheduleGPipe
from torchemu.frontends.numpy.distributed.pipelining.schedules import ScheduleInterleaved1F1B as ScheduleInterleaved1F1B
from torchemu.frontends.numpy.distributed.pipelining.schedules import ScheduleLoopedBFS as ScheduleLoopedBFS
from torchemu.frontends.numpy.distributed.pipelining.schedules import get_schedule_class as get_schedule_class

