"""torch.distributed.launcher: workers as torchrun starts them, from a program."""

from torchemu.frontends.numpy.distributed.launcher.api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
