"""Figures of an H200, whose nanoseconds kernels are counted in."""

PROCESSORS = 132
"""Processors, which take blocks beside each other."""

BANDWIDTH = 4250
"""Bytes that its memory moves in a nanosecond."""

MEETING = 680
"""Nanoseconds that a kernel takes beside a launch whose threads meet, to share a result."""
