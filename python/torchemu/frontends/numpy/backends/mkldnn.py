"""torch.backends.mkldnn: Intel's library of networks, which is not used here."""


def is_available() -> bool:
    """False."""
    return False
