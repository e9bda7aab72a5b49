"""Gradients: how calls of operations are recorded, what their derivatives are, and how they are followed backwards.

An operation, an ``Op`` of ``_tensor.dispatch``, goes together with its ``Derivative``. One that is added
outside of ``_tensor`` names it where it is made::

    SQUARED_ERROR = Op(
        "squared_error",
        lambda x, y: (x - y) ** 2,
        derivative=Derivative(
            Partial(lambda call, grad: grad * 2 * (call[0] - call[1]), 0, 1),
            Partial(lambda call, grad: grad * 2 * (call[1] - call[0]), 0, 1),
        ),
    )

    def squared_error(input, target):
        return _op(SQUARED_ERROR, (input, target))

There is a ``Partial`` for each operand: a formula for its gradient, made of ordinary operations on tensors, and which
operands it looks at (RESULT is what the call returned). Only those are kept from the call to the backward pass.
Formulas need not care about broadcasting or dtypes: what they return is summed to the operand's shape and converted.
The derivatives of the operations of ``_tensor`` are in tables, in ``_autograd.derivatives``.
"""

import torchemu.frontends.numpy._tensor  # noqa: F401 (it needs modules of this package while it is loaded, and so comes first)
