"""Names for type checkers; written by python/build_backend/stubs.py."""

from collections.abc import Callable
from typing import Any

from torchemu import language as tl
from torchemu.language.kernels._parts import longest as longest
from torchemu.language.kernels._parts import part as part
from torchemu.language.kernels._parts import reduce as reduce
from torchemu.language.kernels._parts import words as words

one_shot: Callable[..., Any]
two_shot: Callable[..., Any]
