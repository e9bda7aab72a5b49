"""Names for type checkers; written by python/build_backend/stubs.py."""

import builtins
from collections.abc import Callable
from typing import Any

from torchemu import aliases as aliases
from torchemu import bridge as bridge
from torchemu import c10d as c10d
from torchemu import dtypes as dtypes
from torchemu import errors as errors
from torchemu import language as language
from torchemu import launch as launch
from torchemu import marks as marks
from torchemu import multiprocessing as multiprocessing
from torchemu import profile as profile
from torchemu import promotion as promotion
from torchemu import pytest_plugin as pytest_plugin
from torchemu import report as report
from torchemu import runtime as runtime
from torchemu import tp as tp
from torchemu import unsupported as unsupported
from torchemu import version as version
from torchemu.dtypes import dtype as dtype
from torchemu.errors import AcceleratorError as AcceleratorError
from torchemu.errors import OutOfMemoryError as OutOfMemoryError
from torchemu.frontends import pto as pto
from torchemu.frontends.numpy import ahbm as ahbm
from torchemu.frontends.numpy import autograd as autograd
from torchemu.frontends.numpy import cuda as cuda
from torchemu.frontends.numpy import distributed as distributed
from torchemu.frontends.numpy import futures as futures
from torchemu.frontends.numpy import nn as nn
from torchemu.frontends.numpy import optim as optim
from torchemu.frontends.numpy import profiler as profiler
from torchemu.frontends.numpy import random as random
from torchemu.frontends.numpy import serialization as serialization
from torchemu.frontends.numpy import testing as testing
from torchemu.frontends.numpy import utils as utils
from torchemu.frontends.numpy._device import device as device
from torchemu.frontends.numpy._grad_mode import enable_grad as enable_grad
from torchemu.frontends.numpy._grad_mode import inference_mode as inference_mode
from torchemu.frontends.numpy._grad_mode import is_grad_enabled as is_grad_enabled
from torchemu.frontends.numpy._grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from torchemu.frontends.numpy._grad_mode import no_grad as no_grad
from torchemu.frontends.numpy._grad_mode import set_grad_enabled as set_grad_enabled
from torchemu.frontends.numpy._interactive import open_world as open_world
from torchemu.frontends.numpy._interactive import run_ranks as run_ranks
from torchemu.frontends.numpy._limits import finfo as finfo
from torchemu.frontends.numpy._limits import iinfo as iinfo
from torchemu.frontends.numpy._placement import DPPolicy as DPPolicy
from torchemu.frontends.numpy._settings import get_default_device as get_default_device
from torchemu.frontends.numpy._settings import get_default_dtype as get_default_dtype
from torchemu.frontends.numpy._settings import set_default_device as set_default_device
from torchemu.frontends.numpy._settings import set_default_dtype as set_default_dtype
from torchemu.frontends.numpy._shape import Size as Size
from torchemu.frontends.numpy._streams import Event as Event
from torchemu.frontends.numpy._streams import Stream as Stream
from torchemu.frontends.numpy._tensor import channels_last as channels_last
from torchemu.frontends.numpy._tensor import channels_last_3d as channels_last_3d
from torchemu.frontends.numpy._tensor import contiguous_format as contiguous_format
from torchemu.frontends.numpy._tensor import preserve_format as preserve_format
from torchemu.frontends.numpy._tensor import return_types as return_types
from torchemu.frontends.numpy._tensor import strided as strided
from torchemu.frontends.numpy._tensor.comparing import allclose as allclose
from torchemu.frontends.numpy._tensor.comparing import equal as equal
from torchemu.frontends.numpy._tensor.comparing import isclose as isclose
from torchemu.frontends.numpy._tensor.copying import copy_ as copy_
from torchemu.frontends.numpy._tensor.copying import fill_ as fill_
from torchemu.frontends.numpy._tensor.copying import zero_ as zero_
from torchemu.frontends.numpy._tensor.core import Tensor as Tensor
from torchemu.frontends.numpy._tensor.creation import arange as arange
from torchemu.frontends.numpy._tensor.creation import empty as empty
from torchemu.frontends.numpy._tensor.creation import empty_like as empty_like
from torchemu.frontends.numpy._tensor.creation import empty_strided as empty_strided
from torchemu.frontends.numpy._tensor.creation import eye as eye
from torchemu.frontends.numpy._tensor.creation import full as full
from torchemu.frontends.numpy._tensor.creation import full_like as full_like
from torchemu.frontends.numpy._tensor.creation import linspace as linspace
from torchemu.frontends.numpy._tensor.creation import ones as ones
from torchemu.frontends.numpy._tensor.creation import ones_like as ones_like
from torchemu.frontends.numpy._tensor.creation import zeros as zeros
from torchemu.frontends.numpy._tensor.creation import zeros_like as zeros_like
from torchemu.frontends.numpy._tensor.elementwise import abs as abs
from torchemu.frontends.numpy._tensor.elementwise import add as add
from torchemu.frontends.numpy._tensor.elementwise import bitwise_and as bitwise_and
from torchemu.frontends.numpy._tensor.elementwise import bitwise_left_shift as bitwise_left_shift
from torchemu.frontends.numpy._tensor.elementwise import bitwise_not as bitwise_not
from torchemu.frontends.numpy._tensor.elementwise import bitwise_or as bitwise_or
from torchemu.frontends.numpy._tensor.elementwise import bitwise_right_shift as bitwise_right_shift
from torchemu.frontends.numpy._tensor.elementwise import bitwise_xor as bitwise_xor
from torchemu.frontends.numpy._tensor.elementwise import ceil as ceil
from torchemu.frontends.numpy._tensor.elementwise import cos as cos
from torchemu.frontends.numpy._tensor.elementwise import div as div
from torchemu.frontends.numpy._tensor.elementwise import eq as eq
from torchemu.frontends.numpy._tensor.elementwise import erf as erf
from torchemu.frontends.numpy._tensor.elementwise import exp as exp
from torchemu.frontends.numpy._tensor.elementwise import expm1 as expm1
from torchemu.frontends.numpy._tensor.elementwise import floor as floor
from torchemu.frontends.numpy._tensor.elementwise import floor_divide as floor_divide
from torchemu.frontends.numpy._tensor.elementwise import ge as ge
from torchemu.frontends.numpy._tensor.elementwise import gt as gt
from torchemu.frontends.numpy._tensor.elementwise import isfinite as isfinite
from torchemu.frontends.numpy._tensor.elementwise import isinf as isinf
from torchemu.frontends.numpy._tensor.elementwise import isnan as isnan
from torchemu.frontends.numpy._tensor.elementwise import le as le
from torchemu.frontends.numpy._tensor.elementwise import log as log
from torchemu.frontends.numpy._tensor.elementwise import log1p as log1p
from torchemu.frontends.numpy._tensor.elementwise import log2 as log2
from torchemu.frontends.numpy._tensor.elementwise import logical_and as logical_and
from torchemu.frontends.numpy._tensor.elementwise import logical_not as logical_not
from torchemu.frontends.numpy._tensor.elementwise import logical_or as logical_or
from torchemu.frontends.numpy._tensor.elementwise import logical_xor as logical_xor
from torchemu.frontends.numpy._tensor.elementwise import lt as lt
from torchemu.frontends.numpy._tensor.elementwise import maximum as maximum
from torchemu.frontends.numpy._tensor.elementwise import minimum as minimum
from torchemu.frontends.numpy._tensor.elementwise import mul as mul
from torchemu.frontends.numpy._tensor.elementwise import ne as ne
from torchemu.frontends.numpy._tensor.elementwise import neg as neg
from torchemu.frontends.numpy._tensor.elementwise import pow as pow
from torchemu.frontends.numpy._tensor.elementwise import reciprocal as reciprocal
from torchemu.frontends.numpy._tensor.elementwise import relu as relu
from torchemu.frontends.numpy._tensor.elementwise import remainder as remainder
from torchemu.frontends.numpy._tensor.elementwise import rsqrt as rsqrt
from torchemu.frontends.numpy._tensor.elementwise import rsub as rsub
from torchemu.frontends.numpy._tensor.elementwise import sigmoid as sigmoid
from torchemu.frontends.numpy._tensor.elementwise import sign as sign
from torchemu.frontends.numpy._tensor.elementwise import sin as sin
from torchemu.frontends.numpy._tensor.elementwise import sqrt as sqrt
from torchemu.frontends.numpy._tensor.elementwise import square as square
from torchemu.frontends.numpy._tensor.elementwise import sub as sub
from torchemu.frontends.numpy._tensor.elementwise import tanh as tanh
from torchemu.frontends.numpy._tensor.elementwise import trunc as trunc
from torchemu.frontends.numpy._tensor.extremes import amax as amax
from torchemu.frontends.numpy._tensor.extremes import amin as amin
from torchemu.frontends.numpy._tensor.extremes import argmax as argmax
from torchemu.frontends.numpy._tensor.extremes import argmin as argmin
from torchemu.frontends.numpy._tensor.extremes import max as max
from torchemu.frontends.numpy._tensor.extremes import min as min
from torchemu.frontends.numpy._tensor.formatting import set_printoptions as set_printoptions
from torchemu.frontends.numpy._tensor.from_data import as_tensor as as_tensor
from torchemu.frontends.numpy._tensor.from_data import asarray as asarray
from torchemu.frontends.numpy._tensor.from_data import from_numpy as from_numpy
from torchemu.frontends.numpy._tensor.from_data import frombuffer as frombuffer
from torchemu.frontends.numpy._tensor.from_data import tensor as tensor
from torchemu.frontends.numpy._tensor.gathering import flip as flip
from torchemu.frontends.numpy._tensor.gathering import gather as gather
from torchemu.frontends.numpy._tensor.gathering import index_add as index_add
from torchemu.frontends.numpy._tensor.gathering import index_add_ as index_add_
from torchemu.frontends.numpy._tensor.gathering import index_copy_ as index_copy_
from torchemu.frontends.numpy._tensor.gathering import index_select as index_select
from torchemu.frontends.numpy._tensor.gathering import scatter as scatter
from torchemu.frontends.numpy._tensor.gathering import scatter_ as scatter_
from torchemu.frontends.numpy._tensor.gathering import scatter_add as scatter_add
from torchemu.frontends.numpy._tensor.gathering import scatter_add_ as scatter_add_
from torchemu.frontends.numpy._tensor.gathering import tril as tril
from torchemu.frontends.numpy._tensor.gathering import triu as triu
from torchemu.frontends.numpy._tensor.generator import Generator as Generator
from torchemu.frontends.numpy._tensor.in_place import add_ as add_
from torchemu.frontends.numpy._tensor.in_place import clamp_ as clamp_
from torchemu.frontends.numpy._tensor.in_place import div_ as div_
from torchemu.frontends.numpy._tensor.in_place import share_memory_ as share_memory_
from torchemu.frontends.numpy._tensor.in_place import sub_ as sub_
from torchemu.frontends.numpy._tensor.indexing import masked_fill as masked_fill
from torchemu.frontends.numpy._tensor.indexing import masked_fill_ as masked_fill_
from torchemu.frontends.numpy._tensor.indexing import masked_select as masked_select
from torchemu.frontends.numpy._tensor.indexing import nonzero as nonzero
from torchemu.frontends.numpy._tensor.joining import cat as cat
from torchemu.frontends.numpy._tensor.joining import stack as stack
from torchemu.frontends.numpy._tensor.linalg import bmm as bmm
from torchemu.frontends.numpy._tensor.linalg import dot as dot
from torchemu.frontends.numpy._tensor.linalg import einsum as einsum
from torchemu.frontends.numpy._tensor.linalg import matmul as matmul
from torchemu.frontends.numpy._tensor.linalg import mm as mm
from torchemu.frontends.numpy._tensor.linalg import mv as mv
from torchemu.frontends.numpy._tensor.linalg import outer as outer
from torchemu.frontends.numpy._tensor.ordering import argsort as argsort
from torchemu.frontends.numpy._tensor.ordering import bincount as bincount
from torchemu.frontends.numpy._tensor.ordering import sort as sort
from torchemu.frontends.numpy._tensor.ordering import unique as unique
from torchemu.frontends.numpy._tensor.parametric import clamp as clamp
from torchemu.frontends.numpy._tensor.parametric import round as round
from torchemu.frontends.numpy._tensor.parametric import where as where
from torchemu.frontends.numpy._tensor.parts import chunk as chunk
from torchemu.frontends.numpy._tensor.parts import diagonal as diagonal
from torchemu.frontends.numpy._tensor.parts import narrow as narrow
from torchemu.frontends.numpy._tensor.parts import select as select
from torchemu.frontends.numpy._tensor.parts import split as split
from torchemu.frontends.numpy._tensor.parts import unbind as unbind
from torchemu.frontends.numpy._tensor.promotion import result_type as result_type
from torchemu.frontends.numpy._tensor.random_numbers import bernoulli_ as bernoulli_
from torchemu.frontends.numpy._tensor.random_numbers import normal_ as normal_
from torchemu.frontends.numpy._tensor.random_numbers import rand as rand
from torchemu.frontends.numpy._tensor.random_numbers import rand_like as rand_like
from torchemu.frontends.numpy._tensor.random_numbers import randint as randint
from torchemu.frontends.numpy._tensor.random_numbers import randn as randn
from torchemu.frontends.numpy._tensor.random_numbers import randn_like as randn_like
from torchemu.frontends.numpy._tensor.random_numbers import random_ as random_
from torchemu.frontends.numpy._tensor.random_numbers import randperm as randperm
from torchemu.frontends.numpy._tensor.random_numbers import uniform_ as uniform_
from torchemu.frontends.numpy._tensor.reductions import all as all
from torchemu.frontends.numpy._tensor.reductions import any as any
from torchemu.frontends.numpy._tensor.reductions import cumsum as cumsum
from torchemu.frontends.numpy._tensor.reductions import log_softmax as log_softmax
from torchemu.frontends.numpy._tensor.reductions import logsumexp as logsumexp
from torchemu.frontends.numpy._tensor.reductions import mean as mean
from torchemu.frontends.numpy._tensor.reductions import norm as norm
from torchemu.frontends.numpy._tensor.reductions import prod as prod
from torchemu.frontends.numpy._tensor.reductions import softmax as softmax
from torchemu.frontends.numpy._tensor.reductions import std as std
from torchemu.frontends.numpy._tensor.reductions import sum as sum
from torchemu.frontends.numpy._tensor.reductions import var as var
from torchemu.frontends.numpy._tensor.views import as_strided as as_strided
from torchemu.frontends.numpy._tensor.views import broadcast_shapes as broadcast_shapes
from torchemu.frontends.numpy._tensor.views import clone as clone
from torchemu.frontends.numpy._tensor.views import detach as detach
from torchemu.frontends.numpy._tensor.views import flatten as flatten
from torchemu.frontends.numpy._tensor.views import permute as permute
from torchemu.frontends.numpy._tensor.views import reshape as reshape
from torchemu.frontends.numpy._tensor.views import squeeze as squeeze
from torchemu.frontends.numpy._tensor.views import t as t
from torchemu.frontends.numpy._tensor.views import transpose as transpose
from torchemu.frontends.numpy._tensor.views import unsqueeze as unsqueeze
from torchemu.frontends.numpy.namespace import get_num_threads as get_num_threads
from torchemu.frontends.numpy.namespace import is_complex as is_complex
from torchemu.frontends.numpy.namespace import is_floating_point as is_floating_point
from torchemu.frontends.numpy.namespace import is_tensor as is_tensor
from torchemu.frontends.numpy.namespace import numel as numel
from torchemu.frontends.numpy.namespace import set_num_threads as set_num_threads
from torchemu.frontends.numpy.nn._functional.dropout import dropout as dropout
from torchemu.frontends.numpy.nn._functional.normalization import layer_norm as layer_norm
from torchemu.frontends.numpy.random import get_rng_state as get_rng_state
from torchemu.frontends.numpy.random import initial_seed as initial_seed
from torchemu.frontends.numpy.random import manual_seed as manual_seed
from torchemu.frontends.numpy.random import seed as seed
from torchemu.frontends.numpy.random import set_rng_state as set_rng_state
from torchemu.frontends.numpy.serialization import load as load
from torchemu.frontends.numpy.serialization import save as save
from torchemu.language import kernels as kernels
from torchemu.language._launch import kernel as kernel
from torchemu.promotion import can_cast as can_cast
from torchemu.promotion import promote_types as promote_types
from torchemu.runtime.world import World as World

__version__: Any
abs_: Callable[..., Tensor]
bf16: dtype
bfloat16: dtype
bitwise_and_: Callable[..., Tensor]
bitwise_left_shift_: Callable[..., Tensor]
bitwise_not_: Callable[..., Tensor]
bitwise_or_: Callable[..., Tensor]
bitwise_right_shift_: Callable[..., Tensor]
bitwise_xor_: Callable[..., Tensor]
bool: dtype
byte: dtype
c128: dtype
c64: dtype
cdouble: dtype
ceil_: Callable[..., Tensor]
cfloat: dtype
complex128: dtype
complex64: dtype
cos_: Callable[..., Tensor]
default_generator: Any
double: dtype
e: builtins.float
eq_: Callable[..., Tensor]
erf_: Callable[..., Tensor]
exp_: Callable[..., Tensor]
expm1_: Callable[..., Tensor]
f16: dtype
f32: dtype
f64: dtype
f8e4m3: dtype
f8e4m3fn: dtype
f8e5m2: dtype
float16: dtype
float32: dtype
float64: dtype
float8_e4m3: dtype
float8_e4m3fn: dtype
float8_e5m2: dtype
float: dtype
floor_: Callable[..., Tensor]
floor_divide_: Callable[..., Tensor]
fp16: dtype
fp32: dtype
fp64: dtype
fp8_e4m3: dtype
fp8_e5m2: dtype
fp8e4m3: dtype
fp8e5m2: dtype
ge_: Callable[..., Tensor]
gt_: Callable[..., Tensor]
half: dtype
i16: dtype
i32: dtype
i64: dtype
i8: dtype
inf: builtins.float
int16: dtype
int32: dtype
int64: dtype
int8: dtype
int: dtype
le_: Callable[..., Tensor]
log1p_: Callable[..., Tensor]
log2_: Callable[..., Tensor]
log_: Callable[..., Tensor]
logical_and_: Callable[..., Tensor]
logical_not_: Callable[..., Tensor]
logical_or_: Callable[..., Tensor]
logical_xor_: Callable[..., Tensor]
long: dtype
lt_: Callable[..., Tensor]
mul_: Callable[..., Tensor]
nan: builtins.float
ne_: Callable[..., Tensor]
neg_: Callable[..., Tensor]
newaxis: None
pi: builtins.float
pow_: Callable[..., Tensor]
reciprocal_: Callable[..., Tensor]
relu_: Callable[..., Tensor]
remainder_: Callable[..., Tensor]
rsqrt_: Callable[..., Tensor]
short: dtype
sigmoid_: Callable[..., Tensor]
sign_: Callable[..., Tensor]
sin_: Callable[..., Tensor]
spec: Any
sqrt_: Callable[..., Tensor]
square_: Callable[..., Tensor]
tanh_: Callable[..., Tensor]
trunc_: Callable[..., Tensor]
u16: dtype
u32: dtype
u64: dtype
u8: dtype
uint16: dtype
uint32: dtype
uint64: dtype
uint8: dtype
