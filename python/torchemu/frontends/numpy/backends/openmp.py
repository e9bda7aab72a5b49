"""torch.backends.openmp: threads of loops, which are not used here."""


def is_available() -> bool:
    """False."""
    return False
