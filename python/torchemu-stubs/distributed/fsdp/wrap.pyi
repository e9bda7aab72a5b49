"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.fsdp.wrap import CustomPolicy as CustomPolicy
from torchemu.frontends.numpy.distributed.fsdp.wrap import ModuleWrapPolicy as ModuleWrapPolicy
from torchemu.frontends.numpy.distributed.fsdp.wrap import always_wrap_policy as always_wrap_policy
from torchemu.frontends.numpy.distributed.fsdp.wrap import enable_wrap as enable_wrap
from torchemu.frontends.numpy.distributed.fsdp.wrap import lambda_auto_wrap_policy as lambda_auto_wrap_policy
from torchemu.frontends.numpy.distributed.fsdp.wrap import size_based_auto_wrap_policy as size_based_auto_wrap_policy
from torchemu.frontends.numpy.distributed.fsdp.wrap import transformer_auto_wrap_policy as transformer_auto_wrap_policy
from torchemu.frontends.numpy.distributed.fsdp.wrap import wrap as wrap

