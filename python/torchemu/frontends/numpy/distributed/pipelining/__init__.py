"""torch.distributed.pipelining: a model in stages, one or several a rank, and the order of their passes."""

from torchemu.frontends.numpy.distributed.pipelining.schedules import (
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
)
from torchemu.frontends.numpy.distributed.pipelining.stage import PipelineStage
from torchemu.unsupported import unsupported_names

__all__ = ["PipelineStage", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B", "ScheduleLoopedBFS"]

__getattr__ = unsupported_names(
    "torch.distributed.pipelining",
    "Pipe ScheduleDualPipeV ScheduleInterleavedZeroBubble ScheduleZBVZeroBubble SplitPoint build_stage pipe_split "
    "pipeline",
    "make each stage's module, a PipelineStage of it, and use Schedule1F1B or ScheduleInterleaved1F1B",
)
