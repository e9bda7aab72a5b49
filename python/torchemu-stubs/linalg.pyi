"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._tensor.decompositions import _LinAlgError as LinAlgError
from torchemu.frontends.numpy._tensor.factors import cholesky as cholesky
from torchemu.frontends.numpy._tensor.factors import cholesky_ex as cholesky_ex
from torchemu.frontends.numpy._tensor.factors import det as det
from torchemu.frontends.numpy._tensor.factors import eig as eig
from torchemu.frontends.numpy._tensor.factors import eigh as eigh
from torchemu.frontends.numpy._tensor.factors import eigvals as eigvals
from torchemu.frontends.numpy._tensor.factors import eigvalsh as eigvalsh
from torchemu.frontends.numpy._tensor.factors import inv as inv
from torchemu.frontends.numpy._tensor.factors import inv_ex as inv_ex
from torchemu.frontends.numpy._tensor.factors import lstsq as lstsq
from torchemu.frontends.numpy._tensor.factors import matrix_exp as matrix_exp
from torchemu.frontends.numpy._tensor.factors import matrix_power as matrix_power
from torchemu.frontends.numpy._tensor.factors import matrix_rank as matrix_rank
from torchemu.frontends.numpy._tensor.factors import pinv as pinv
from torchemu.frontends.numpy._tensor.factors import qr as qr
from torchemu.frontends.numpy._tensor.factors import slogdet as slogdet
from torchemu.frontends.numpy._tensor.factors import solve as solve
from torchemu.frontends.numpy._tensor.factors import solve_ex as solve_ex
from torchemu.frontends.numpy._tensor.factors import solve_triangular as solve_triangular
from torchemu.frontends.numpy._tensor.factors import svd as svd
from torchemu.frontends.numpy._tensor.factors import svdvals as svdvals
from torchemu.frontends.numpy._tensor.linalg import cross as cross
from torchemu.frontends.numpy._tensor.linalg import matmul as matmul
from torchemu.frontends.numpy.linalg import cond as cond
from torchemu.frontends.numpy.linalg import diagonal as diagonal
from torchemu.frontends.numpy.linalg import matrix_norm as matrix_norm
from torchemu.frontends.numpy.linalg import multi_dot as multi_dot
from torchemu.frontends.numpy.linalg import norm as norm
from torchemu.frontends.numpy.linalg import vander as vander
from torchemu.frontends.numpy.linalg import vecdot as vecdot
from torchemu.frontends.numpy.linalg import vector_norm as vector_norm

