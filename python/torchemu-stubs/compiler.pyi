"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.compiler import allow_in_graph as allow_in_graph
from torchemu.frontends.numpy.compiler import compile as compile
from torchemu.frontends.numpy.compiler import cudagraph_mark_step_begin as cudagraph_mark_step_begin
from torchemu.frontends.numpy.compiler import disable as disable
from torchemu.frontends.numpy.compiler import is_compiling as is_compiling
from torchemu.frontends.numpy.compiler import is_compiling as is_dynamo_compiling
from torchemu.frontends.numpy.compiler import is_compiling as is_exporting
from torchemu.frontends.numpy.compiler import reset as reset
from torchemu.frontends.numpy.compiler import set_stance as set_stance

