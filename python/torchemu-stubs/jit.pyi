"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.jit import Final as Final
from torchemu.frontends.numpy.jit import _itself as export
from torchemu.frontends.numpy.jit import _itself as interface
from torchemu.frontends.numpy.jit import _itself as script_if_tracing
from torchemu.frontends.numpy.jit import _itself as script_method
from torchemu.frontends.numpy.jit import _itself as unused
from torchemu.frontends.numpy.jit import freeze as freeze
from torchemu.frontends.numpy.jit import fuser as fuser
from torchemu.frontends.numpy.jit import ignore as ignore
from torchemu.frontends.numpy.jit import is_scripting as is_scripting
from torchemu.frontends.numpy.jit import is_tracing as is_tracing
from torchemu.frontends.numpy.jit import load as load
from torchemu.frontends.numpy.jit import optimize_for_inference as optimize_for_inference
from torchemu.frontends.numpy.jit import optimized_execution as optimized_execution
from torchemu.frontends.numpy.jit import save as save
from torchemu.frontends.numpy.jit import script as script
from torchemu.frontends.numpy.jit import set_fusion_strategy as set_fusion_strategy
from torchemu.frontends.numpy.jit import trace as trace
from torchemu.frontends.numpy.jit import trace_module as trace_module
from torchemu.frontends.numpy.nn.modules.module import Module as ScriptModule

