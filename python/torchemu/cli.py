"""The torchemu command."""

import torchemu


def main() -> int:
    """Prints the version."""
    print(torchemu.__version__)
    return 0
