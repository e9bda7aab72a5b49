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
from torchemu.frontends.simpler._bootstrap import (
    ChipBootstrapConfig,
    ChipBufferSpec,
    ChipCommBootstrapConfig,
    ChipContext,
    HostBufferStaging,
)
from torchemu.frontends.simpler._callables import ChipCallable, CoreCallable
from torchemu.frontends.simpler._domains import ChipDomainContext, CommBufferSpec, CommDomainHandle
from torchemu.frontends.simpler._tensors import make_tensor_arg, torch_dtype_to_datatype

ChipCallConfig = CallConfig
"""Its name in other versions."""

ChipStorageTaskArgs = TaskArgs
"""The type of the arguments of a Worker of level 2."""

ChipTensor = ContinuousTensor
"""Its name in other versions."""

__all__ = [
    "ArgDirection",
    "CallConfig",
    "ChipBootstrapConfig",
    "ChipBufferSpec",
    "ChipCallConfig",
    "ChipCallable",
    "ChipCommBootstrapConfig",
    "ChipContext",
    "ChipDomainContext",
    "ChipStorageTaskArgs",
    "ChipTensor",
    "CommBufferSpec",
    "CommDomainHandle",
    "ContinuousTensor",
    "CoreCallable",
    "DataType",
    "HostBufferStaging",
    "TaskArgs",
    "Tensor",
    "TensorArgType",
    "get_element_size",
    "make_tensor_arg",
    "scalar_to_uint64",
    "torch_dtype_to_datatype",
]
