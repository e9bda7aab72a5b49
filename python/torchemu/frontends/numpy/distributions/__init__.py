"""torch.distributions: those that programs draw actions and noise from most."""

from torchemu.frontends.numpy.distributions.distribution import Distribution
from torchemu.frontends.numpy.distributions.families import (
    Bernoulli,
    Categorical,
    Exponential,
    Independent,
    Laplace,
    Normal,
    Uniform,
)
from torchemu.frontends.numpy.distributions.kl import kl_divergence
from torchemu.unsupported import unsupported_names

__all__ = [
    "Bernoulli",
    "Categorical",
    "Distribution",
    "Exponential",
    "Independent",
    "Laplace",
    "Normal",
    "Uniform",
    "kl_divergence",
]

_OTHERS = (
    "AbsTransform AffineTransform Beta Binomial CatTransform Cauchy Chi2 ComposeTransform ContinuousBernoulli "
    "CorrCholeskyTransform CumulativeDistributionTransform Dirichlet ExpTransform ExponentialFamily "
    "FisherSnedecor Gamma GeneralizedPareto Geometric Gumbel HalfCauchy HalfNormal IndependentTransform "
    "InverseGamma Kumaraswamy LKJCholesky LogNormal LogisticNormal LowRankMultivariateNormal "
    "LowerCholeskyTransform MixtureSameFamily Multinomial MultivariateNormal NegativeBinomial OneHotCategorical "
    "OneHotCategoricalStraightThrough Pareto Poisson PositiveDefiniteTransform PowerTransform RelaxedBernoulli "
    "RelaxedOneHotCategorical ReshapeTransform SigmoidTransform SoftmaxTransform SoftplusTransform "
    "StackTransform StickBreakingTransform StudentT TanhTransform Transform TransformedDistribution VonMises "
    "Weibull Wishart register_kl "
)

__getattr__ = unsupported_names("torch.distributions", _OTHERS, "only those that are used most are there")
