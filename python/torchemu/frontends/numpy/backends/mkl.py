"""torch.backends.mkl: Intel's library of products, which is not used here."""


def is_available() -> bool:
    """False."""
    return False
