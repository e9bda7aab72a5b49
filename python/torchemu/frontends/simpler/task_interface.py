"""simpler.task_interface: what tasks are called with, and what they are made of."""

from torchemu.frontends.simpler._arguments import (
    ArgDirection,
    CallConfig,
    ContinuousTensor,
    DataType,
    TaskArgs,
    Tensor,
    TensorArgType,
    get_element_size,
    scalar_to_uint64,
)
from torchemu.frontends.simpler._callables import ChipCallable, CoreCallable
from torchemu.frontends.simpler._domains import ChipDomainContext, CommBufferSpec, CommDomainHandle
from torchemu.frontends.simpler._tensors import make_tensor_arg, torch_dtype_to_datatype

ChipCallConfig = CallConfig
"""What other versions call it."""

__all__ = [
    "ArgDirection",
    "CallConfig",
    "ChipCallConfig",
    "ChipCallable",
    "ChipDomainContext",
    "CommBufferSpec",
    "CommDomainHandle",
    "ContinuousTensor",
    "CoreCallable",
    "DataType",
    "TaskArgs",
    "Tensor",
    "TensorArgType",
    "get_element_size",
    "make_tensor_arg",
    "scalar_to_uint64",
    "torch_dtype_to_datatype",
]
