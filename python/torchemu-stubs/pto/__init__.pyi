"""Names for type checkers; written by python/build_backend/stubs.py."""

from typing import Any
from torchemu.dtypes import dtype

from torchemu.frontends.pto._instructions import AtomicType as AtomicType
from torchemu.frontends.pto._instructions import NotifyOp as NotifyOp
from torchemu.frontends.pto._instructions import Pipe as Pipe
from torchemu.frontends.pto._instructions import TADD as TADD
from torchemu.frontends.pto._instructions import TASSIGN as TASSIGN
from torchemu.frontends.pto._instructions import TGET as TGET
from torchemu.frontends.pto._instructions import TLOAD as TLOAD
from torchemu.frontends.pto._instructions import TMATMUL as TMATMUL
from torchemu.frontends.pto._instructions import TMUL as TMUL
from torchemu.frontends.pto._instructions import TNOTIFY as TNOTIFY
from torchemu.frontends.pto._instructions import TPUT as TPUT
from torchemu.frontends.pto._instructions import TSTORE as TSTORE
from torchemu.frontends.pto._instructions import TTEST as TTEST
from torchemu.frontends.pto._instructions import TWAIT as TWAIT
from torchemu.frontends.pto._instructions import WaitCmp as WaitCmp
from torchemu.frontends.pto._instructions import dsb as dsb
from torchemu.frontends.pto._instructions import pipe_barrier as pipe_barrier
from torchemu.frontends.pto._instructions import set_flag as set_flag
from torchemu.frontends.pto._instructions import wait_flag as wait_flag
from torchemu.frontends.pto._memory import CommContext as CommContext
from torchemu.frontends.pto._memory import CommRemotePtr as CommRemotePtr
from torchemu.frontends.pto._memory import GlobalTensor as GlobalTensor
from torchemu.frontends.pto._memory import Ptr as Ptr
from torchemu.frontends.pto._memory import Signal as Signal
from torchemu.frontends.pto._memory import TensorArg as TensorArg
from torchemu.frontends.pto._memory import Tile as Tile
from torchemu.frontends.pto._orchestration import rt_submit_aiv_task as rt_submit_aic_task
from torchemu.frontends.pto._orchestration import rt_submit_aiv_task as rt_submit_aiv_task

EVENT_ID0: int
EVENT_ID1: int
EVENT_ID2: int
EVENT_ID3: int
PIPE_ALL: Any
PIPE_M: Any
PIPE_MTE2: Any
PIPE_MTE3: Any
PIPE_S: Any
PIPE_V: Any
bfloat16: dtype
float16: dtype
float32: dtype
int32: dtype
