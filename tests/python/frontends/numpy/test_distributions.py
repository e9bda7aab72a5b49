"""torch.distributions: densities that integrate to 1, entropies and divergences by integrals, moments of draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gradients
import numpy as np
import pytest
from conftest import OpenWorld
from nn_cases import refused

import torchemu as torch
from torchemu import distributions as D  # noqa: N812 (its usual name)


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world()
    torch.set_default_device("cpu")
    torch.set_default_dtype(torch.float64)


CONTINUOUS: dict[str, tuple[Callable[[], Any], Callable[[], Any], float, float]] = {  # two, and where they are
    "normal": (lambda: D.Normal(0.5, 2.0), lambda: D.Normal(-1.0, 3.0), -30, 30),
    "laplace": (lambda: D.Laplace(0.5, 1.0), lambda: D.Laplace(-1.0, 2.0), -45, 45),
    "uniform": (lambda: D.Uniform(1.0, 3.0), lambda: D.Uniform(0.0, 4.0), 1, 3),
    "exponential": (lambda: D.Exponential(2.0), lambda: D.Exponential(0.5), 0, 25),
}


def integral(values: Any, low: float, high: float) -> float:
    """By the midpoints of as many intervals."""
    return float(np.sum(values)) * (high - low) / len(values)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name: str) -> None:
    make, other, low, high = CONTINUOUS[name]
    d, n = make(), 400_000
    at = low + (np.arange(n) + 0.5) * (high - low) / n
    x = torch.from_numpy(at)
    density = d.log_prob(x).exp().numpy()
    assert integral(density, low, high) == pytest.approx(1, abs=1e-6)
    assert integral(density * at, low, high) == pytest.approx(d.mean.item(), abs=1e-5)
    assert integral(density * (at - d.mean.item()) ** 2, low, high) == pytest.approx(d.variance.item(), abs=1e-4)
    assert d.stddev.item() == pytest.approx(math.sqrt(d.variance.item()))
    logs = np.where(density > 0, np.log(np.maximum(density, 1e-300)), 0)
    assert integral(-density * logs, low, high) == pytest.approx(d.entropy().item(), abs=1e-4)
    far = other().log_prob(x).numpy()
    assert integral(density * (logs - far), low, high) == pytest.approx(D.kl_divergence(d, other()).item(), abs=1e-4)
    shares = torch.tensor([0.1, 0.5, 0.77])
    np.testing.assert_allclose(d.cdf(d.icdf(shares)).numpy(), shares.numpy(), rtol=1e-9)
    middle = d.icdf(torch.tensor(0.77)).item()
    assert integral(density[at < middle], low, at[at < middle][-1]) == pytest.approx(0.77, abs=1e-4)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_draws(name: str) -> None:
    torch.manual_seed(5)
    d, n = CONTINUOUS[name][0](), 20_000
    drawn = d.sample((n,))
    assert drawn.shape == (n,) and not drawn.requires_grad and d.support.holds(drawn).all()
    assert abs(drawn.mean().item() - d.mean.item()) < 5 * d.stddev.item() / math.sqrt(n)  # five standard deviations
    ranks = d.cdf(drawn).sort()[0].numpy()  # Kolmogorov's test: the chance of more is below 1e-6
    assert np.abs(ranks - (np.arange(n) + 0.5) / n).max() < 2.7 / math.sqrt(n)
    parameters = {k: v.clone().requires_grad_() for k, v in vars(d).items() if k in d.arg_constraints}
    type(d)(**parameters).rsample((4,)).sum().backward()
    assert all(p.grad is not None and p.grad.item() != 0 for p in parameters.values())


def test_gradients() -> None:
    value = torch.tensor([0.3, 1.2])
    gradients.check(lambda m, s: D.Normal(m, s).log_prob(value), [0.1, 0.2], [1.0, 2.0])
    gradients.check(lambda m, s: D.Laplace(m, s).log_prob(value), [0.1, 0.2], [1.0, 2.0])
    gradients.check(lambda r: D.Exponential(r).log_prob(value), [0.1, 0.2])
    gradients.check(lambda x: D.Categorical(logits=x).log_prob(torch.tensor([2, 0])), [[0.1, 0.2, 0.5], [1.0, 2.0, 0]])
    gradients.check(lambda x: D.Categorical(logits=x).entropy(), [[0.1, 0.2, 0.5], [1.0, 2.0, 0]])
    gradients.check(lambda x: D.Bernoulli(logits=x).log_prob(torch.tensor([1.0, 0.0])), [0.3, -0.2])
    gradients.check(lambda m, s: D.kl_divergence(D.Normal(m, s), D.Normal(0.0, 1.0)), [0.1, 0.2], [1.0, 2.0])


def test_categories() -> None:
    probs = np.array([[0.2, 0.5, 0.3], [0.6, 0.0, 0.4]])
    d = D.Categorical(torch.from_numpy(probs * 3))
    assert (d.batch_shape, d.event_shape, d.param_shape) == ((2,), (), (2, 3))
    np.testing.assert_allclose(d.probs.numpy(), probs)
    np.testing.assert_allclose(d.log_prob(torch.tensor([1, 2])).numpy(), np.log([0.5, 0.4]))
    np.testing.assert_allclose(d.log_prob(torch.tensor([[1, 2], [0, 0]])).numpy(), np.log([[0.5, 0.4], [0.2, 0.6]]))
    want = [-sum(p * math.log(p) for p in row if p) for row in probs]
    np.testing.assert_allclose(d.entropy().numpy(), want, atol=1e-12)
    assert d.mode.tolist() == [1, 0] and d.enumerate_support().tolist() == [[0, 0], [1, 1], [2, 2]]
    torch.manual_seed(0)
    drawn = d.sample((6000,))
    assert drawn.shape == (6000, 2) and drawn.dtype is torch.int64
    for row in range(2):
        counts = np.bincount(drawn[:, row].numpy(), minlength=3)
        assert (abs(counts - 6000 * probs[row]) <= 5 * np.sqrt(6000 * probs[row] * (1 - probs[row]))).all()
    even = D.Categorical(logits=torch.zeros(2, 3))
    np.testing.assert_allclose(D.kl_divergence(d, even).numpy(), math.log(3) - np.array(want), atol=1e-12)
    assert D.kl_divergence(even, d).tolist()[1] == math.inf


def test_coins() -> None:
    d = D.Bernoulli(torch.tensor([0.3, 0.8, 0.5]))
    np.testing.assert_allclose(d.log_prob(torch.tensor([1.0, 0.0, 1.0])).exp().numpy(), [0.3, 0.2, 0.5])
    np.testing.assert_allclose(
        d.entropy().numpy(), [-p * math.log(p) - (1 - p) * math.log(1 - p) for p in (0.3, 0.8, 0.5)]
    )
    np.testing.assert_allclose(D.Bernoulli(logits=d.logits).probs.numpy(), d.probs.numpy())
    np.testing.assert_allclose(d.variance.numpy(), [0.21, 0.16, 0.25])
    assert d.mode.tolist()[:2] == [0, 1] and d.enumerate_support(expand=False).tolist() == [[0], [1]]
    torch.manual_seed(0)
    count = d.sample((4000,)).sum(0).numpy()
    assert (abs(count - 4000 * d.probs.numpy()) < 5 * np.sqrt(4000 * d.variance.numpy())).all()
    q = D.Bernoulli(torch.tensor([0.5, 0.5, 1.0]))
    kl = D.kl_divergence(d, q).tolist()
    assert kl[0] == pytest.approx(0.3 * math.log(0.6) + 0.7 * math.log(1.4)) and kl[2] == math.inf


def test_shapes() -> None:
    base = D.Normal(torch.zeros(2, 3), torch.ones(3))
    assert (base.batch_shape, base.sample((4,)).shape, base.expand((5, 2, 3)).rsample().shape) == (
        (2, 3),
        (4, 2, 3),
        (5, 2, 3),
    )
    d = D.Independent(base, 1)
    assert (d.batch_shape, d.event_shape, d.log_prob(torch.zeros(2, 3)).shape) == ((2,), (3,), (2,))
    assert d.entropy().tolist() == pytest.approx([3 * base.entropy()[0, 0].item()] * 2)
    assert D.kl_divergence(d, d).tolist() == [0, 0] and d.has_rsample and d.sample().shape == (2, 3)
    assert repr(d) == "Independent(Normal(loc: torch.Size([2, 3]), scale: torch.Size([2, 3])), 1)"
    assert d.expand((7, 2)).batch_shape == (7, 2) and repr(D.Normal(0, 1)) == "Normal(loc: 0.0, scale: 1.0)"


def test_refusals() -> None:
    n = D.Normal(torch.zeros(2), torch.ones(2))
    for call, text in (
        (lambda: D.Normal(0.0, -1.0), "Expected parameter scale (Tensor of shape ()) of distribution Normal(loc: 0.0,"),
        (lambda: D.Categorical(), "Either `probs` or `logits` must be specified, but not both."),
        (lambda: D.Categorical(torch.tensor([-1.0, 2.0])), "Expected parameter probs (Tensor of shape (2,)) of distr"),
        (lambda: D.Uniform(2.0, 1.0), "Expected parameter low (Tensor of shape ()) of distribution Uniform(low: 2.0"),
        (lambda: n.log_prob(torch.ones(3)), "Value is not broadcastable with batch_shape+event_shape: torch.Size([3])"),
        (lambda: n.log_prob(1.0), "The value argument to log_prob must be a Tensor"),
        (lambda: D.Bernoulli(0.5).log_prob(torch.tensor(0.5)), "Expected value argument (Tensor of shape ()) to be"),
        (
            lambda: D.Categorical(torch.ones(3)).log_prob(torch.tensor(3)),
            "Expected value argument (Tensor of shape ())",
        ),
        (lambda: D.Independent(n, 2), "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape)"),
    ):
        kind, said = refused(call)
        assert kind == "ValueError" and said.startswith(text), said
    assert math.isnan(D.Normal(0, 1, validate_args=False).log_prob(torch.tensor(math.nan)).item())
    text = "No KL(p || q) is implemented for p type Normal and q type Bernoulli"
    assert refused(lambda: D.kl_divergence(n, D.Bernoulli(0.5))) == ("NotImplementedError", text)
    assert refused(lambda: D.Categorical(torch.ones(2)).rsample())[0] == "NotImplementedError"
    assert refused(lambda: D.Poisson(1.0))[0] == "NotImplementedError"


def test_divergences_of_derived_classes() -> None:
    class Mine(D.Normal):
        pass

    wanted = D.kl_divergence(D.Normal(0.5, 1.0), D.Normal(0.0, 2.0)).item()
    assert D.kl_divergence(Mine(0.5, 1.0), D.Normal(0.0, 2.0)).item() == wanted
    assert D.kl_divergence(D.Normal(0.5, 1.0), Mine(0.0, 2.0)).item() == wanted
    with pytest.raises(NotImplementedError, match="p type Mine and q type Laplace"):
        D.kl_divergence(Mine(0.5, 1.0), D.Laplace(0.0, 2.0))
