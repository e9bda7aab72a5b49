"""Names for type checkers; written by python/build_backend/stubs.py."""

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
from torchemu.frontends.numpy import accelerator as accelerator
from torchemu.frontends.numpy import ahbm as ahbm
from torchemu.frontends.numpy import amp as amp
from torchemu.frontends.numpy import autograd as autograd
from torchemu.frontends.numpy import backends as backends
from torchemu.frontends.numpy import compiler as compiler
from torchemu.frontends.numpy import cuda as cuda
from torchemu.frontends.numpy import distributed as distributed
from torchemu.frontends.numpy import distributions as distributions
from torchemu.frontends.numpy import fft as fft
from torchemu.frontends.numpy import func as func
from torchemu.frontends.numpy import futures as futures
from torchemu.frontends.numpy import jit as jit
from torchemu.frontends.numpy import linalg as linalg
from torchemu.frontends.numpy import nn as nn
from torchemu.frontends.numpy import ops as ops
from torchemu.frontends.numpy import optim as optim
from torchemu.frontends.numpy import profiler as profiler
from torchemu.frontends.numpy import random as random
from torchemu.frontends.numpy import serialization as serialization
from torchemu.frontends.numpy import special as special
from torchemu.frontends.numpy import testing as testing
from torchemu.frontends.numpy import utils as utils
from torchemu.frontends.numpy._autograd.tensor_methods import detach_ as detach_
from torchemu.frontends.numpy._device import device as device
from torchemu.frontends.numpy._grad_mode import enable_grad as enable_grad
from torchemu.frontends.numpy._grad_mode import inference_mode as inference_mode
from torchemu.frontends.numpy._grad_mode import is_grad_enabled as is_grad_enabled
from torchemu.frontends.numpy._grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from torchemu.frontends.numpy._grad_mode import no_grad as no_grad
from torchemu.frontends.numpy._grad_mode import set_grad_enabled as set_grad_enabled
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
from torchemu.frontends.numpy._tensor import atleast_1d as atleast_1d
from torchemu.frontends.numpy._tensor import atleast_2d as atleast_2d
from torchemu.frontends.numpy._tensor import atleast_3d as atleast_3d
from torchemu.frontends.numpy._tensor import channels_last as channels_last
from torchemu.frontends.numpy._tensor import channels_last_3d as channels_last_3d
from torchemu.frontends.numpy._tensor import contiguous_format as contiguous_format
from torchemu.frontends.numpy._tensor import preserve_format as preserve_format
from torchemu.frontends.numpy._tensor import return_types as return_types
from torchemu.frontends.numpy._tensor import strided as strided
from torchemu.frontends.numpy._tensor.arrangements import apply_ as apply_
from torchemu.frontends.numpy._tensor.arrangements import as_strided_scatter as as_strided_scatter
from torchemu.frontends.numpy._tensor.arrangements import bartlett_window as bartlett_window
from torchemu.frontends.numpy._tensor.arrangements import blackman_window as blackman_window
from torchemu.frontends.numpy._tensor.arrangements import combinations as combinations
from torchemu.frontends.numpy._tensor.arrangements import diagflat as diagflat
from torchemu.frontends.numpy._tensor.arrangements import diagonal_scatter as diagonal_scatter
from torchemu.frontends.numpy._tensor.arrangements import dsplit as dsplit
from torchemu.frontends.numpy._tensor.arrangements import hamming_window as hamming_window
from torchemu.frontends.numpy._tensor.arrangements import hann_window as hann_window
from torchemu.frontends.numpy._tensor.arrangements import kaiser_window as kaiser_window
from torchemu.frontends.numpy._tensor.arrangements import narrow_copy as narrow_copy
from torchemu.frontends.numpy._tensor.arrangements import put as put
from torchemu.frontends.numpy._tensor.arrangements import put_ as put_
from torchemu.frontends.numpy._tensor.arrangements import range as range
from torchemu.frontends.numpy._tensor.arrangements import resize_as_ as resize_as_
from torchemu.frontends.numpy._tensor.arrangements import rot90 as rot90
from torchemu.frontends.numpy._tensor.arrangements import select_scatter as select_scatter
from torchemu.frontends.numpy._tensor.arrangements import set_ as set_
from torchemu.frontends.numpy._tensor.arrangements import slice_scatter as slice_scatter
from torchemu.frontends.numpy._tensor.arrangements import unravel_index as unravel_index
from torchemu.frontends.numpy._tensor.arrangements import vander as vander
from torchemu.frontends.numpy._tensor.comparing import allclose as allclose
from torchemu.frontends.numpy._tensor.comparing import equal as equal
from torchemu.frontends.numpy._tensor.comparing import isclose as isclose
from torchemu.frontends.numpy._tensor.complex_numbers import adjoint as adjoint
from torchemu.frontends.numpy._tensor.complex_numbers import complex as complex
from torchemu.frontends.numpy._tensor.complex_numbers import conj as conj
from torchemu.frontends.numpy._tensor.complex_numbers import conj_physical as conj_physical
from torchemu.frontends.numpy._tensor.complex_numbers import conj_physical_ as conj_physical_
from torchemu.frontends.numpy._tensor.complex_numbers import imag as imag
from torchemu.frontends.numpy._tensor.complex_numbers import is_conj as is_conj
from torchemu.frontends.numpy._tensor.complex_numbers import is_conj as is_neg
from torchemu.frontends.numpy._tensor.complex_numbers import polar as polar
from torchemu.frontends.numpy._tensor.complex_numbers import real as real
from torchemu.frontends.numpy._tensor.complex_numbers import resolve_conj as resolve_conj
from torchemu.frontends.numpy._tensor.complex_numbers import resolve_conj as resolve_neg
from torchemu.frontends.numpy._tensor.complex_numbers import view_as_complex as view_as_complex
from torchemu.frontends.numpy._tensor.complex_numbers import view_as_real as view_as_real
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
from torchemu.frontends.numpy._tensor.creation import logspace as logspace
from torchemu.frontends.numpy._tensor.creation import ones as ones
from torchemu.frontends.numpy._tensor.creation import ones_like as ones_like
from torchemu.frontends.numpy._tensor.creation import scalar_tensor as scalar_tensor
from torchemu.frontends.numpy._tensor.creation import tril_indices as tril_indices
from torchemu.frontends.numpy._tensor.creation import triu_indices as triu_indices
from torchemu.frontends.numpy._tensor.creation import zeros as zeros
from torchemu.frontends.numpy._tensor.creation import zeros_like as zeros_like
from torchemu.frontends.numpy._tensor.elementwise import abs as abs
from torchemu.frontends.numpy._tensor.elementwise import abs as absolute
from torchemu.frontends.numpy._tensor.elementwise import acos as acos
from torchemu.frontends.numpy._tensor.elementwise import acos as arccos
from torchemu.frontends.numpy._tensor.elementwise import acosh as acosh
from torchemu.frontends.numpy._tensor.elementwise import acosh as arccosh
from torchemu.frontends.numpy._tensor.elementwise import add as add
from torchemu.frontends.numpy._tensor.elementwise import angle as angle
from torchemu.frontends.numpy._tensor.elementwise import asin as arcsin
from torchemu.frontends.numpy._tensor.elementwise import asin as asin
from torchemu.frontends.numpy._tensor.elementwise import asinh as arcsinh
from torchemu.frontends.numpy._tensor.elementwise import asinh as asinh
from torchemu.frontends.numpy._tensor.elementwise import atan as arctan
from torchemu.frontends.numpy._tensor.elementwise import atan as atan
from torchemu.frontends.numpy._tensor.elementwise import atan2 as arctan2
from torchemu.frontends.numpy._tensor.elementwise import atan2 as atan2
from torchemu.frontends.numpy._tensor.elementwise import atanh as arctanh
from torchemu.frontends.numpy._tensor.elementwise import atanh as atanh
from torchemu.frontends.numpy._tensor.elementwise import bitwise_and as bitwise_and
from torchemu.frontends.numpy._tensor.elementwise import bitwise_left_shift as bitwise_left_shift
from torchemu.frontends.numpy._tensor.elementwise import bitwise_not as bitwise_not
from torchemu.frontends.numpy._tensor.elementwise import bitwise_or as bitwise_or
from torchemu.frontends.numpy._tensor.elementwise import bitwise_right_shift as bitwise_right_shift
from torchemu.frontends.numpy._tensor.elementwise import bitwise_xor as bitwise_xor
from torchemu.frontends.numpy._tensor.elementwise import ceil as ceil
from torchemu.frontends.numpy._tensor.elementwise import copysign as copysign
from torchemu.frontends.numpy._tensor.elementwise import cos as cos
from torchemu.frontends.numpy._tensor.elementwise import cosh as cosh
from torchemu.frontends.numpy._tensor.elementwise import deg2rad as deg2rad
from torchemu.frontends.numpy._tensor.elementwise import digamma as digamma
from torchemu.frontends.numpy._tensor.elementwise import div as div
from torchemu.frontends.numpy._tensor.elementwise import div as divide
from torchemu.frontends.numpy._tensor.elementwise import div as true_divide
from torchemu.frontends.numpy._tensor.elementwise import eq as eq
from torchemu.frontends.numpy._tensor.elementwise import erf as erf
from torchemu.frontends.numpy._tensor.elementwise import erfc as erfc
from torchemu.frontends.numpy._tensor.elementwise import erfinv as erfinv
from torchemu.frontends.numpy._tensor.elementwise import exp as exp
from torchemu.frontends.numpy._tensor.elementwise import exp2 as exp2
from torchemu.frontends.numpy._tensor.elementwise import expm1 as expm1
from torchemu.frontends.numpy._tensor.elementwise import floor as floor
from torchemu.frontends.numpy._tensor.elementwise import floor_divide as floor_divide
from torchemu.frontends.numpy._tensor.elementwise import fmax as fmax
from torchemu.frontends.numpy._tensor.elementwise import fmin as fmin
from torchemu.frontends.numpy._tensor.elementwise import fmod as fmod
from torchemu.frontends.numpy._tensor.elementwise import frac as frac
from torchemu.frontends.numpy._tensor.elementwise import gcd as gcd
from torchemu.frontends.numpy._tensor.elementwise import ge as ge
from torchemu.frontends.numpy._tensor.elementwise import ge as greater_equal
from torchemu.frontends.numpy._tensor.elementwise import gt as greater
from torchemu.frontends.numpy._tensor.elementwise import gt as gt
from torchemu.frontends.numpy._tensor.elementwise import heaviside as heaviside
from torchemu.frontends.numpy._tensor.elementwise import hypot as hypot
from torchemu.frontends.numpy._tensor.elementwise import i0 as i0
from torchemu.frontends.numpy._tensor.elementwise import isfinite as isfinite
from torchemu.frontends.numpy._tensor.elementwise import isinf as isinf
from torchemu.frontends.numpy._tensor.elementwise import isnan as isnan
from torchemu.frontends.numpy._tensor.elementwise import isneginf as isneginf
from torchemu.frontends.numpy._tensor.elementwise import isposinf as isposinf
from torchemu.frontends.numpy._tensor.elementwise import isreal as isreal
from torchemu.frontends.numpy._tensor.elementwise import lcm as lcm
from torchemu.frontends.numpy._tensor.elementwise import ldexp as ldexp
from torchemu.frontends.numpy._tensor.elementwise import le as le
from torchemu.frontends.numpy._tensor.elementwise import le as less_equal
from torchemu.frontends.numpy._tensor.elementwise import lgamma as lgamma
from torchemu.frontends.numpy._tensor.elementwise import log as log
from torchemu.frontends.numpy._tensor.elementwise import log10 as log10
from torchemu.frontends.numpy._tensor.elementwise import log1p as log1p
from torchemu.frontends.numpy._tensor.elementwise import log2 as log2
from torchemu.frontends.numpy._tensor.elementwise import logaddexp as logaddexp
from torchemu.frontends.numpy._tensor.elementwise import logaddexp2 as logaddexp2
from torchemu.frontends.numpy._tensor.elementwise import logical_and as logical_and
from torchemu.frontends.numpy._tensor.elementwise import logical_not as logical_not
from torchemu.frontends.numpy._tensor.elementwise import logical_or as logical_or
from torchemu.frontends.numpy._tensor.elementwise import logical_xor as logical_xor
from torchemu.frontends.numpy._tensor.elementwise import lt as less
from torchemu.frontends.numpy._tensor.elementwise import lt as lt
from torchemu.frontends.numpy._tensor.elementwise import maximum as maximum
from torchemu.frontends.numpy._tensor.elementwise import minimum as minimum
from torchemu.frontends.numpy._tensor.elementwise import mul as mul
from torchemu.frontends.numpy._tensor.elementwise import mul as multiply
from torchemu.frontends.numpy._tensor.elementwise import ne as ne
from torchemu.frontends.numpy._tensor.elementwise import ne as not_equal
from torchemu.frontends.numpy._tensor.elementwise import neg as neg
from torchemu.frontends.numpy._tensor.elementwise import neg as negative
from torchemu.frontends.numpy._tensor.elementwise import nextafter as nextafter
from torchemu.frontends.numpy._tensor.elementwise import positive as positive
from torchemu.frontends.numpy._tensor.elementwise import pow as pow
from torchemu.frontends.numpy._tensor.elementwise import rad2deg as rad2deg
from torchemu.frontends.numpy._tensor.elementwise import reciprocal as reciprocal
from torchemu.frontends.numpy._tensor.elementwise import relu as relu
from torchemu.frontends.numpy._tensor.elementwise import remainder as remainder
from torchemu.frontends.numpy._tensor.elementwise import rsqrt as rsqrt
from torchemu.frontends.numpy._tensor.elementwise import rsub as rsub
from torchemu.frontends.numpy._tensor.elementwise import sgn as sgn
from torchemu.frontends.numpy._tensor.elementwise import sigmoid as sigmoid
from torchemu.frontends.numpy._tensor.elementwise import sign as sign
from torchemu.frontends.numpy._tensor.elementwise import signbit as signbit
from torchemu.frontends.numpy._tensor.elementwise import sin as sin
from torchemu.frontends.numpy._tensor.elementwise import sinc as sinc
from torchemu.frontends.numpy._tensor.elementwise import sinh as sinh
from torchemu.frontends.numpy._tensor.elementwise import sqrt as sqrt
from torchemu.frontends.numpy._tensor.elementwise import square as square
from torchemu.frontends.numpy._tensor.elementwise import sub as sub
from torchemu.frontends.numpy._tensor.elementwise import sub as subtract
from torchemu.frontends.numpy._tensor.elementwise import tan as tan
from torchemu.frontends.numpy._tensor.elementwise import tanh as tanh
from torchemu.frontends.numpy._tensor.elementwise import trunc as fix
from torchemu.frontends.numpy._tensor.elementwise import trunc as trunc
from torchemu.frontends.numpy._tensor.elementwise import xlogy as xlogy
from torchemu.frontends.numpy._tensor.extremes import amax as amax
from torchemu.frontends.numpy._tensor.extremes import amin as amin
from torchemu.frontends.numpy._tensor.extremes import aminmax as aminmax
from torchemu.frontends.numpy._tensor.extremes import argmax as argmax
from torchemu.frontends.numpy._tensor.extremes import argmin as argmin
from torchemu.frontends.numpy._tensor.extremes import cummax as cummax
from torchemu.frontends.numpy._tensor.extremes import cummin as cummin
from torchemu.frontends.numpy._tensor.extremes import max as max
from torchemu.frontends.numpy._tensor.extremes import min as min
from torchemu.frontends.numpy._tensor.factors import cholesky_inverse as cholesky_inverse
from torchemu.frontends.numpy._tensor.factors import cholesky_solve as cholesky_solve
from torchemu.frontends.numpy._tensor.factors import det as det
from torchemu.frontends.numpy._tensor.factors import inv as inverse
from torchemu.frontends.numpy._tensor.factors import logdet as logdet
from torchemu.frontends.numpy._tensor.factors import matrix_exp as matrix_exp
from torchemu.frontends.numpy._tensor.factors import matrix_power as matrix_power
from torchemu.frontends.numpy._tensor.factors import old_cholesky as cholesky
from torchemu.frontends.numpy._tensor.factors import old_qr as qr
from torchemu.frontends.numpy._tensor.factors import old_svd as svd
from torchemu.frontends.numpy._tensor.factors import pinverse as pinverse
from torchemu.frontends.numpy._tensor.factors import slogdet as slogdet
from torchemu.frontends.numpy._tensor.factors import triangular_solve as triangular_solve
from torchemu.frontends.numpy._tensor.formatting import set_printoptions as set_printoptions
from torchemu.frontends.numpy._tensor.from_data import as_tensor as as_tensor
from torchemu.frontends.numpy._tensor.from_data import asarray as asarray
from torchemu.frontends.numpy._tensor.from_data import from_dlpack as from_dlpack
from torchemu.frontends.numpy._tensor.from_data import from_numpy as from_numpy
from torchemu.frontends.numpy._tensor.from_data import frombuffer as frombuffer
from torchemu.frontends.numpy._tensor.from_data import tensor as tensor
from torchemu.frontends.numpy._tensor.gathering import diag as diag
from torchemu.frontends.numpy._tensor.gathering import diag_embed as diag_embed
from torchemu.frontends.numpy._tensor.gathering import flip as flip
from torchemu.frontends.numpy._tensor.gathering import fliplr as fliplr
from torchemu.frontends.numpy._tensor.gathering import flipud as flipud
from torchemu.frontends.numpy._tensor.gathering import gather as gather
from torchemu.frontends.numpy._tensor.gathering import index_add as index_add
from torchemu.frontends.numpy._tensor.gathering import index_add_ as index_add_
from torchemu.frontends.numpy._tensor.gathering import index_copy as index_copy
from torchemu.frontends.numpy._tensor.gathering import index_copy_ as index_copy_
from torchemu.frontends.numpy._tensor.gathering import index_fill as index_fill
from torchemu.frontends.numpy._tensor.gathering import index_fill_ as index_fill_
from torchemu.frontends.numpy._tensor.gathering import index_select as index_select
from torchemu.frontends.numpy._tensor.gathering import roll as roll
from torchemu.frontends.numpy._tensor.gathering import scatter as scatter
from torchemu.frontends.numpy._tensor.gathering import scatter_ as scatter_
from torchemu.frontends.numpy._tensor.gathering import scatter_add as scatter_add
from torchemu.frontends.numpy._tensor.gathering import scatter_add_ as scatter_add_
from torchemu.frontends.numpy._tensor.gathering import scatter_reduce as scatter_reduce
from torchemu.frontends.numpy._tensor.gathering import scatter_reduce_ as scatter_reduce_
from torchemu.frontends.numpy._tensor.gathering import take as take
from torchemu.frontends.numpy._tensor.gathering import take_along_dim as take_along_dim
from torchemu.frontends.numpy._tensor.gathering import tril as tril
from torchemu.frontends.numpy._tensor.gathering import triu as triu
from torchemu.frontends.numpy._tensor.generator import Generator as Generator
from torchemu.frontends.numpy._tensor.in_place import add_ as add_
from torchemu.frontends.numpy._tensor.in_place import addbmm_ as addbmm_
from torchemu.frontends.numpy._tensor.in_place import addcdiv_ as addcdiv_
from torchemu.frontends.numpy._tensor.in_place import addcmul_ as addcmul_
from torchemu.frontends.numpy._tensor.in_place import addmm_ as addmm_
from torchemu.frontends.numpy._tensor.in_place import addmv_ as addmv_
from torchemu.frontends.numpy._tensor.in_place import addr_ as addr_
from torchemu.frontends.numpy._tensor.in_place import as_strided_ as as_strided_
from torchemu.frontends.numpy._tensor.in_place import baddbmm_ as baddbmm_
from torchemu.frontends.numpy._tensor.in_place import clamp_ as clamp_
from torchemu.frontends.numpy._tensor.in_place import clamp_ as clip_
from torchemu.frontends.numpy._tensor.in_place import clamp_max_ as clamp_max_
from torchemu.frontends.numpy._tensor.in_place import clamp_min_ as clamp_min_
from torchemu.frontends.numpy._tensor.in_place import cumprod_ as cumprod_
from torchemu.frontends.numpy._tensor.in_place import cumsum_ as cumsum_
from torchemu.frontends.numpy._tensor.in_place import div_ as div_
from torchemu.frontends.numpy._tensor.in_place import div_ as divide_
from torchemu.frontends.numpy._tensor.in_place import div_ as true_divide_
from torchemu.frontends.numpy._tensor.in_place import fill_diagonal_ as fill_diagonal_
from torchemu.frontends.numpy._tensor.in_place import lerp_ as lerp_
from torchemu.frontends.numpy._tensor.in_place import logit_ as logit_
from torchemu.frontends.numpy._tensor.in_place import nan_to_num_ as nan_to_num_
from torchemu.frontends.numpy._tensor.in_place import resize_ as resize_
from torchemu.frontends.numpy._tensor.in_place import round_ as round_
from torchemu.frontends.numpy._tensor.in_place import share_memory_ as share_memory_
from torchemu.frontends.numpy._tensor.in_place import squeeze_ as squeeze_
from torchemu.frontends.numpy._tensor.in_place import sub_ as sub_
from torchemu.frontends.numpy._tensor.in_place import sub_ as subtract_
from torchemu.frontends.numpy._tensor.in_place import t_ as t_
from torchemu.frontends.numpy._tensor.in_place import transpose_ as swapaxes_
from torchemu.frontends.numpy._tensor.in_place import transpose_ as swapdims_
from torchemu.frontends.numpy._tensor.in_place import transpose_ as transpose_
from torchemu.frontends.numpy._tensor.in_place import tril_ as tril_
from torchemu.frontends.numpy._tensor.in_place import triu_ as triu_
from torchemu.frontends.numpy._tensor.in_place import unsqueeze_ as unsqueeze_
from torchemu.frontends.numpy._tensor.indexing import argwhere as argwhere
from torchemu.frontends.numpy._tensor.indexing import index_put as index_put
from torchemu.frontends.numpy._tensor.indexing import index_put_ as index_put_
from torchemu.frontends.numpy._tensor.indexing import masked_fill as masked_fill
from torchemu.frontends.numpy._tensor.indexing import masked_fill_ as masked_fill_
from torchemu.frontends.numpy._tensor.indexing import masked_scatter as masked_scatter
from torchemu.frontends.numpy._tensor.indexing import masked_scatter_ as masked_scatter_
from torchemu.frontends.numpy._tensor.indexing import masked_select as masked_select
from torchemu.frontends.numpy._tensor.indexing import nonzero as nonzero
from torchemu.frontends.numpy._tensor.joining import block_diag as block_diag
from torchemu.frontends.numpy._tensor.joining import cartesian_prod as cartesian_prod
from torchemu.frontends.numpy._tensor.joining import cat as cat
from torchemu.frontends.numpy._tensor.joining import cat as concat
from torchemu.frontends.numpy._tensor.joining import cat as concatenate
from torchemu.frontends.numpy._tensor.joining import column_stack as column_stack
from torchemu.frontends.numpy._tensor.joining import dstack as dstack
from torchemu.frontends.numpy._tensor.joining import hstack as hstack
from torchemu.frontends.numpy._tensor.joining import meshgrid as meshgrid
from torchemu.frontends.numpy._tensor.joining import repeat_interleave as repeat_interleave
from torchemu.frontends.numpy._tensor.joining import stack as stack
from torchemu.frontends.numpy._tensor.joining import tile as tile
from torchemu.frontends.numpy._tensor.joining import vstack as row_stack
from torchemu.frontends.numpy._tensor.joining import vstack as vstack
from torchemu.frontends.numpy._tensor.linalg import addbmm as addbmm
from torchemu.frontends.numpy._tensor.linalg import addmm as addmm
from torchemu.frontends.numpy._tensor.linalg import addmv as addmv
from torchemu.frontends.numpy._tensor.linalg import addr as addr
from torchemu.frontends.numpy._tensor.linalg import baddbmm as baddbmm
from torchemu.frontends.numpy._tensor.linalg import bmm as bmm
from torchemu.frontends.numpy._tensor.linalg import cross as cross
from torchemu.frontends.numpy._tensor.linalg import dot as dot
from torchemu.frontends.numpy._tensor.linalg import einsum as einsum
from torchemu.frontends.numpy._tensor.linalg import inner as inner
from torchemu.frontends.numpy._tensor.linalg import kron as kron
from torchemu.frontends.numpy._tensor.linalg import matmul as matmul
from torchemu.frontends.numpy._tensor.linalg import mm as mm
from torchemu.frontends.numpy._tensor.linalg import mv as mv
from torchemu.frontends.numpy._tensor.linalg import outer as ger
from torchemu.frontends.numpy._tensor.linalg import outer as outer
from torchemu.frontends.numpy._tensor.linalg import tensordot as tensordot
from torchemu.frontends.numpy._tensor.linalg import trace as trace
from torchemu.frontends.numpy._tensor.linalg import vdot as vdot
from torchemu.frontends.numpy._tensor.ordering import argsort as argsort
from torchemu.frontends.numpy._tensor.ordering import bincount as bincount
from torchemu.frontends.numpy._tensor.ordering import bucketize as bucketize
from torchemu.frontends.numpy._tensor.ordering import histc as histc
from torchemu.frontends.numpy._tensor.ordering import isin as isin
from torchemu.frontends.numpy._tensor.ordering import kthvalue as kthvalue
from torchemu.frontends.numpy._tensor.ordering import median as median
from torchemu.frontends.numpy._tensor.ordering import msort as msort
from torchemu.frontends.numpy._tensor.ordering import searchsorted as searchsorted
from torchemu.frontends.numpy._tensor.ordering import sort as sort
from torchemu.frontends.numpy._tensor.ordering import topk as topk
from torchemu.frontends.numpy._tensor.ordering import unique as unique
from torchemu.frontends.numpy._tensor.ordering import unique_consecutive as unique_consecutive
from torchemu.frontends.numpy._tensor.parametric import addcdiv as addcdiv
from torchemu.frontends.numpy._tensor.parametric import addcmul as addcmul
from torchemu.frontends.numpy._tensor.parametric import clamp as clamp
from torchemu.frontends.numpy._tensor.parametric import clamp as clip
from torchemu.frontends.numpy._tensor.parametric import clamp_max as clamp_max
from torchemu.frontends.numpy._tensor.parametric import clamp_min as clamp_min
from torchemu.frontends.numpy._tensor.parametric import lerp as lerp
from torchemu.frontends.numpy._tensor.parametric import logit as logit
from torchemu.frontends.numpy._tensor.parametric import nan_to_num as nan_to_num
from torchemu.frontends.numpy._tensor.parametric import round as round
from torchemu.frontends.numpy._tensor.parametric import where as where
from torchemu.frontends.numpy._tensor.parts import chunk as chunk
from torchemu.frontends.numpy._tensor.parts import diagonal as diagonal
from torchemu.frontends.numpy._tensor.parts import hsplit as hsplit
from torchemu.frontends.numpy._tensor.parts import narrow as narrow
from torchemu.frontends.numpy._tensor.parts import select as select
from torchemu.frontends.numpy._tensor.parts import split as split
from torchemu.frontends.numpy._tensor.parts import split as split_with_sizes
from torchemu.frontends.numpy._tensor.parts import tensor_split as tensor_split
from torchemu.frontends.numpy._tensor.parts import unbind as unbind
from torchemu.frontends.numpy._tensor.parts import vsplit as vsplit
from torchemu.frontends.numpy._tensor.promotion import result_type as result_type
from torchemu.frontends.numpy._tensor.random_numbers import bernoulli as bernoulli
from torchemu.frontends.numpy._tensor.random_numbers import bernoulli_ as bernoulli_
from torchemu.frontends.numpy._tensor.random_numbers import exponential_ as exponential_
from torchemu.frontends.numpy._tensor.random_numbers import log_normal_ as log_normal_
from torchemu.frontends.numpy._tensor.random_numbers import multinomial as multinomial
from torchemu.frontends.numpy._tensor.random_numbers import normal as normal
from torchemu.frontends.numpy._tensor.random_numbers import normal_ as normal_
from torchemu.frontends.numpy._tensor.random_numbers import rand as rand
from torchemu.frontends.numpy._tensor.random_numbers import rand_like as rand_like
from torchemu.frontends.numpy._tensor.random_numbers import randint as randint
from torchemu.frontends.numpy._tensor.random_numbers import randint_like as randint_like
from torchemu.frontends.numpy._tensor.random_numbers import randn as randn
from torchemu.frontends.numpy._tensor.random_numbers import randn_like as randn_like
from torchemu.frontends.numpy._tensor.random_numbers import random_ as random_
from torchemu.frontends.numpy._tensor.random_numbers import randperm as randperm
from torchemu.frontends.numpy._tensor.random_numbers import uniform_ as uniform_
from torchemu.frontends.numpy._tensor.reductions import all as all
from torchemu.frontends.numpy._tensor.reductions import any as any
from torchemu.frontends.numpy._tensor.reductions import count_nonzero as count_nonzero
from torchemu.frontends.numpy._tensor.reductions import cumprod as cumprod
from torchemu.frontends.numpy._tensor.reductions import cumsum as cumsum
from torchemu.frontends.numpy._tensor.reductions import diff as diff
from torchemu.frontends.numpy._tensor.reductions import dist as dist
from torchemu.frontends.numpy._tensor.reductions import log_softmax as log_softmax
from torchemu.frontends.numpy._tensor.reductions import logsumexp as logsumexp
from torchemu.frontends.numpy._tensor.reductions import mean as mean
from torchemu.frontends.numpy._tensor.reductions import nanmean as nanmean
from torchemu.frontends.numpy._tensor.reductions import nansum as nansum
from torchemu.frontends.numpy._tensor.reductions import norm as norm
from torchemu.frontends.numpy._tensor.reductions import prod as prod
from torchemu.frontends.numpy._tensor.reductions import softmax as softmax
from torchemu.frontends.numpy._tensor.reductions import std as std
from torchemu.frontends.numpy._tensor.reductions import std_mean as std_mean
from torchemu.frontends.numpy._tensor.reductions import sum as sum
from torchemu.frontends.numpy._tensor.reductions import var as var
from torchemu.frontends.numpy._tensor.reductions import var_mean as var_mean
from torchemu.frontends.numpy._tensor.statistics import cdist as cdist
from torchemu.frontends.numpy._tensor.statistics import corrcoef as corrcoef
from torchemu.frontends.numpy._tensor.statistics import cov as cov
from torchemu.frontends.numpy._tensor.statistics import cumulative_trapezoid as cumulative_trapezoid
from torchemu.frontends.numpy._tensor.statistics import logcumsumexp as logcumsumexp
from torchemu.frontends.numpy._tensor.statistics import mode as mode
from torchemu.frontends.numpy._tensor.statistics import nanmedian as nanmedian
from torchemu.frontends.numpy._tensor.statistics import nanquantile as nanquantile
from torchemu.frontends.numpy._tensor.statistics import pdist as pdist
from torchemu.frontends.numpy._tensor.statistics import quantile as quantile
from torchemu.frontends.numpy._tensor.statistics import renorm as renorm
from torchemu.frontends.numpy._tensor.statistics import trapezoid as trapezoid
from torchemu.frontends.numpy._tensor.statistics import trapezoid as trapz
from torchemu.frontends.numpy._tensor.views import as_strided as as_strided
from torchemu.frontends.numpy._tensor.views import broadcast_shapes as broadcast_shapes
from torchemu.frontends.numpy._tensor.views import broadcast_tensors as broadcast_tensors
from torchemu.frontends.numpy._tensor.views import broadcast_to as broadcast_to
from torchemu.frontends.numpy._tensor.views import clone as clone
from torchemu.frontends.numpy._tensor.views import detach as detach
from torchemu.frontends.numpy._tensor.views import flatten as flatten
from torchemu.frontends.numpy._tensor.views import movedim as moveaxis
from torchemu.frontends.numpy._tensor.views import movedim as movedim
from torchemu.frontends.numpy._tensor.views import permute as permute
from torchemu.frontends.numpy._tensor.views import ravel as ravel
from torchemu.frontends.numpy._tensor.views import reshape as reshape
from torchemu.frontends.numpy._tensor.views import squeeze as squeeze
from torchemu.frontends.numpy._tensor.views import t as t
from torchemu.frontends.numpy._tensor.views import transpose as swapaxes
from torchemu.frontends.numpy._tensor.views import transpose as swapdims
from torchemu.frontends.numpy._tensor.views import transpose as transpose
from torchemu.frontends.numpy._tensor.views import unflatten as unflatten
from torchemu.frontends.numpy._tensor.views import unsqueeze as unsqueeze
from torchemu.frontends.numpy.amp.autocast_mode import autocast as autocast
from torchemu.frontends.numpy.amp.switches import autocast_decrement_nesting as autocast_decrement_nesting
from torchemu.frontends.numpy.amp.switches import autocast_increment_nesting as autocast_increment_nesting
from torchemu.frontends.numpy.amp.switches import clear_autocast_cache as clear_autocast_cache
from torchemu.frontends.numpy.amp.switches import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from torchemu.frontends.numpy.amp.switches import get_autocast_dtype as get_autocast_dtype
from torchemu.frontends.numpy.amp.switches import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from torchemu.frontends.numpy.amp.switches import is_autocast_cache_enabled as is_autocast_cache_enabled
from torchemu.frontends.numpy.amp.switches import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from torchemu.frontends.numpy.amp.switches import is_autocast_enabled as is_autocast_enabled
from torchemu.frontends.numpy.amp.switches import set_autocast_cache_enabled as set_autocast_cache_enabled
from torchemu.frontends.numpy.amp.switches import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from torchemu.frontends.numpy.amp.switches import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from torchemu.frontends.numpy.amp.switches import set_autocast_dtype as set_autocast_dtype
from torchemu.frontends.numpy.amp.switches import set_autocast_enabled as set_autocast_enabled
from torchemu.frontends.numpy.amp.switches import set_autocast_gpu_dtype as set_autocast_gpu_dtype
from torchemu.frontends.numpy.autograd.anomaly_mode import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from torchemu.frontends.numpy.autograd.anomaly_mode import is_anomaly_enabled as is_anomaly_enabled
from torchemu.frontends.numpy.compiler import compile as compile
from torchemu.frontends.numpy.linalg import chain_matmul as chain_matmul
from torchemu.frontends.numpy.namespace import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from torchemu.frontends.numpy.namespace import get_float32_matmul_precision as get_float32_matmul_precision
from torchemu.frontends.numpy.namespace import get_num_interop_threads as get_num_interop_threads
from torchemu.frontends.numpy.namespace import get_num_threads as get_num_threads
from torchemu.frontends.numpy.namespace import is_complex as is_complex
from torchemu.frontends.numpy.namespace import is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled
from torchemu.frontends.numpy.namespace import is_floating_point as is_floating_point
from torchemu.frontends.numpy.namespace import is_nonzero as is_nonzero
from torchemu.frontends.numpy.namespace import is_storage as is_storage
from torchemu.frontends.numpy.namespace import is_tensor as is_tensor
from torchemu.frontends.numpy.namespace import numel as numel
from torchemu.frontends.numpy.namespace import set_default_tensor_type as set_default_tensor_type
from torchemu.frontends.numpy.namespace import set_float32_matmul_precision as set_float32_matmul_precision
from torchemu.frontends.numpy.namespace import set_flush_denormal as set_flush_denormal
from torchemu.frontends.numpy.namespace import set_num_interop_threads as set_num_interop_threads
from torchemu.frontends.numpy.namespace import set_num_threads as set_num_threads
from torchemu.frontends.numpy.namespace import use_deterministic_algorithms as use_deterministic_algorithms
from torchemu.frontends.numpy.nn._functional.activation import relu_ as relu_
from torchemu.frontends.numpy.nn._functional.batch_normalization import group_norm as group_norm
from torchemu.frontends.numpy.nn._functional.convolution import conv1d as conv1d
from torchemu.frontends.numpy.nn._functional.convolution import conv2d as conv2d
from torchemu.frontends.numpy.nn._functional.convolution import conv3d as conv3d
from torchemu.frontends.numpy.nn._functional.convolution import conv_transpose1d as conv_transpose1d
from torchemu.frontends.numpy.nn._functional.convolution import conv_transpose2d as conv_transpose2d
from torchemu.frontends.numpy.nn._functional.convolution import conv_transpose3d as conv_transpose3d
from torchemu.frontends.numpy.nn._functional.distances import cosine_similarity as cosine_similarity
from torchemu.frontends.numpy.nn._functional.distances import pairwise_distance as pairwise_distance
from torchemu.frontends.numpy.nn._functional.dropout import alpha_dropout as alpha_dropout
from torchemu.frontends.numpy.nn._functional.dropout import dropout as dropout
from torchemu.frontends.numpy.nn._functional.dropout import feature_alpha_dropout as feature_alpha_dropout
from torchemu.frontends.numpy.nn._functional.dropout import rrelu as rrelu
from torchemu.frontends.numpy.nn._functional.dropout import rrelu_ as rrelu_
from torchemu.frontends.numpy.nn._functional.linear import bilinear as bilinear
from torchemu.frontends.numpy.nn._functional.normalization import layer_norm as layer_norm
from torchemu.frontends.numpy.nn._functional.normalization import rms_norm as rms_norm
from torchemu.frontends.numpy.nn._functional.pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from torchemu.frontends.numpy.nn._functional.pooling import avg_pool1d as avg_pool1d
from torchemu.frontends.numpy.nn._functional.pooling import max_pool1d as max_pool1d
from torchemu.frontends.numpy.nn._functional.pooling import max_pool2d as max_pool2d
from torchemu.frontends.numpy.nn._functional.pooling import max_pool3d as max_pool3d
from torchemu.frontends.numpy.nn._functional.rectifiers import celu as celu
from torchemu.frontends.numpy.nn._functional.rectifiers import celu_ as celu_
from torchemu.frontends.numpy.nn._functional.rectifiers import hardshrink as hardshrink
from torchemu.frontends.numpy.nn._functional.rectifiers import prelu as prelu
from torchemu.frontends.numpy.nn._functional.rectifiers import selu as selu
from torchemu.frontends.numpy.nn._functional.rectifiers import selu_ as selu_
from torchemu.frontends.numpy.nn._functional.rectifiers import threshold as threshold
from torchemu.frontends.numpy.nn._functional.rectifiers import threshold_ as threshold_
from torchemu.frontends.numpy.nn._functional.resizing import channel_shuffle as channel_shuffle
from torchemu.frontends.numpy.nn._functional.resizing import pixel_shuffle as pixel_shuffle
from torchemu.frontends.numpy.nn._functional.resizing import pixel_unshuffle as pixel_unshuffle
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
from torchemu.runtime.world import opened as open_world

BFloat16Tensor: Any
BoolTensor: Any
ByteTensor: Any
CharTensor: Any
DoubleTensor: Any
FloatTensor: Any
HalfTensor: Any
IntTensor: Any
LongTensor: Any
ShortTensor: Any
UInt16Tensor: Any
UInt32Tensor: Any
UInt64Tensor: Any
__version__: Any
abs_: Callable[..., Tensor]
absolute_: Callable[..., Tensor]
acos_: Callable[..., Tensor]
acosh_: Callable[..., Tensor]
arccos_: Callable[..., Tensor]
arccosh_: Callable[..., Tensor]
arcsin_: Callable[..., Tensor]
arcsinh_: Callable[..., Tensor]
arctan2_: Callable[..., Tensor]
arctan_: Callable[..., Tensor]
arctanh_: Callable[..., Tensor]
asin_: Callable[..., Tensor]
asinh_: Callable[..., Tensor]
atan2_: Callable[..., Tensor]
atan_: Callable[..., Tensor]
atanh_: Callable[..., Tensor]
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
copysign_: Callable[..., Tensor]
cos_: Callable[..., Tensor]
cosh_: Callable[..., Tensor]
default_generator: Any
deg2rad_: Callable[..., Tensor]
digamma_: Callable[..., Tensor]
double: dtype
e: float
eq_: Callable[..., Tensor]
erf_: Callable[..., Tensor]
erfc_: Callable[..., Tensor]
erfinv_: Callable[..., Tensor]
exp2_: Callable[..., Tensor]
exp_: Callable[..., Tensor]
expm1_: Callable[..., Tensor]
f16: dtype
f32: dtype
f64: dtype
f8e4m3: dtype
f8e4m3fn: dtype
f8e5m2: dtype
fix_: Callable[..., Tensor]
float16: dtype
float32: dtype
float64: dtype
float8_e4m3: dtype
float8_e4m3fn: dtype
float8_e5m2: dtype
float: dtype
floor_: Callable[..., Tensor]
floor_divide_: Callable[..., Tensor]
fmod_: Callable[..., Tensor]
fp16: dtype
fp32: dtype
fp64: dtype
fp8_e4m3: dtype
fp8_e5m2: dtype
fp8e4m3: dtype
fp8e5m2: dtype
frac_: Callable[..., Tensor]
gcd_: Callable[..., Tensor]
ge_: Callable[..., Tensor]
get_device: Callable[..., Any]
greater_: Callable[..., Tensor]
greater_equal_: Callable[..., Tensor]
gt_: Callable[..., Tensor]
half: dtype
heaviside_: Callable[..., Tensor]
hypot_: Callable[..., Tensor]
i0_: Callable[..., Tensor]
i16: dtype
i32: dtype
i64: dtype
i8: dtype
inf: float
int16: dtype
int32: dtype
int64: dtype
int8: dtype
int: dtype
is_same_size: Callable[..., Any]
is_signed: Callable[..., Any]
lcm_: Callable[..., Tensor]
ldexp_: Callable[..., Tensor]
le_: Callable[..., Tensor]
less_: Callable[..., Tensor]
less_equal_: Callable[..., Tensor]
lgamma_: Callable[..., Tensor]
log10_: Callable[..., Tensor]
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
multiply_: Callable[..., Tensor]
nan: float
ne_: Callable[..., Tensor]
neg_: Callable[..., Tensor]
negative_: Callable[..., Tensor]
newaxis: None
nextafter_: Callable[..., Tensor]
not_equal_: Callable[..., Tensor]
pi: float
pow_: Callable[..., Tensor]
rad2deg_: Callable[..., Tensor]
reciprocal_: Callable[..., Tensor]
remainder_: Callable[..., Tensor]
rsqrt_: Callable[..., Tensor]
sgn_: Callable[..., Tensor]
short: dtype
sigmoid_: Callable[..., Tensor]
sign_: Callable[..., Tensor]
sin_: Callable[..., Tensor]
sinc_: Callable[..., Tensor]
sinh_: Callable[..., Tensor]
spec: Any
sqrt_: Callable[..., Tensor]
square_: Callable[..., Tensor]
tan_: Callable[..., Tensor]
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
xlogy_: Callable[..., Tensor]
