"""simpler_setup.torch_interop: tensors of torch as arguments of tasks."""

from torchemu.frontends.simpler._tensors import make_tensor_arg, torch_dtype_to_datatype

__all__ = ["make_tensor_arg", "torch_dtype_to_datatype"]
