"""torch.backends.cpu: the host."""


def get_cpu_capability() -> str:
    """DEFAULT: nothing is promised."""
    return "DEFAULT"
