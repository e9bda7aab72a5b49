"""torch.backends.mps: GPUs of Apple's, which are not used here."""


def is_available() -> bool:
    """False."""
    return False


is_built = is_available
