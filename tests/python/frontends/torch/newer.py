"""Newer PyTorch warns of names that programs, and these tests, may still use."""

import pytest

names_of_before = pytest.mark.filterwarnings(
    r"ignore:.*is deprecated.*torch\.(compile|export|distributed\.\w+):FutureWarning"
)
"""Functions have other names since, and torch.jit other things in its place."""
