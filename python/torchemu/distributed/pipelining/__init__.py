"""torch.distributed.pipelining: not supported. Its names can be imported, and say so when used."""

from torchemu._unsupported import unsupported_names

__getattr__ = unsupported_names(
    "torch.distributed.pipelining",
    "Pipe PipelineStage Schedule1F1B ScheduleGPipe ScheduleInterleaved1F1B ScheduleInterleavedZeroBubble "
    "ScheduleLoopedBFS ScheduleZBVZeroBubble SplitPoint build_stage pipe_split pipeline",
    "send activations to the next stage and gradients back, with send and recv",
)
