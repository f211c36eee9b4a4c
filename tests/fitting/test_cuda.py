"""Heads on a GPU: the answers of the host, in bounded memory, whatever torch is set to."""

import numpy as np
import pytest

import skdare
from skdare import (
    AnchorRegressor,
    DAREClassifier,
    DARERegressor,
    ERMClassifier,
    ERMRegressor,
    GroupDROClassifier,
    IRMClassifier,
    ReweightedClassifier,
)
from skdare.whitening.roots import root_of_matrix

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")

N, D, K, E = 6000, 96, 7, 3
HEADS = [
    DAREClassifier(),
    DAREClassifier(mean_penalty="exact", centered=True),
    DAREClassifier(shrinkage_target="diagonal", shrinkage=0.5),
    DAREClassifier(shrinkage_target="diagonal", shrinkage=1.0, adaptation="centered"),
    DAREClassifier(adaptation="mixture"),
    ERMClassifier(),
    ReweightedClassifier(),
    GroupDROClassifier(max_iter=5),
    IRMClassifier(max_iter=50),
    DARERegressor(),
    DARERegressor(mean_penalty=1.0),
    ERMRegressor(),
    AnchorRegressor(),
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    domains = np.arange(N) % E
    X = rng.normal(size=(N, D))
    y = (X[:, :K] * 1.5 + rng.gumbel(size=(N, K))).argmax(axis=1)
    X *= np.exp(rng.uniform(-0.5, 0.5, (E, D)))[domains]
    return X + 0.3 * rng.normal(size=(E, D))[domains], y, domains


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("head", HEADS, ids=lambda head: repr(head).replace("\n", ""))
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-5), ("float32", 3e-3)])
@pytest.mark.parametrize("sorted_rows", [True, False])
def test_a_gpu_gives_the_head_of_the_host(data, head, dtype, tolerance, sorted_rows):
    X, y, domains = data
    order = np.argsort(domains, kind="stable") if sorted_rows else np.arange(N)
    X, y, domains = X[order].astype(dtype), y[order], domains[order]
    host = type(head)(**head.get_params()).fit(X, y, domains=domains)
    gpu = type(head)(**head.get_params()).fit(torch.asarray(X).cuda(), y, domains=domains)
    scale = np.abs(host.coef_).max()
    np.testing.assert_allclose(gpu.coef_, host.coef_, atol=tolerance * scale)
    np.testing.assert_allclose(gpu.intercept_, host.intercept_, atol=tolerance * scale)
    found = gpu.predict(torch.asarray(X[:50]).cuda())
    same = np.isclose(torch.asarray(found).cpu(), host.predict(X[:50]), atol=1e-2)
    assert np.mean(same) >= 0.98


def test_tf32_is_off_whatever_torch_is_set_to(data):
    X, y, domains = data
    X = torch.asarray(X.astype(np.float32)).cuda()
    exact = DAREClassifier().fit(X, y, domains=domains)
    settings = torch.backends.cuda.matmul
    before = settings.fp32_precision
    settings.fp32_precision = "tf32"
    try:
        found = DAREClassifier().fit(X, y, domains=domains)
        scores = found.decision_function(X)
        assert settings.fp32_precision == "tf32"
    finally:
        settings.fp32_precision = before
    np.testing.assert_array_equal(found.coef_, exact.coef_)
    assert torch.equal(scores, exact.decision_function(X))


def test_products_with_three_digits_come_first_and_the_end_is_exact(data):
    X, y, domains = data
    X = torch.asarray(X.astype(np.float32)).cuda()
    head = DAREClassifier(adaptation=None, tol=1e-6).fit(X, y, domains=domains)
    assert head.solution_.converged
    assert head.solution_.gradient_norm <= 1e-6


@pytest.mark.parametrize("shrinkage", [0.9, 0.1, 1e-3])
def test_the_root_by_products_alone_is_the_inverse_root(shrinkage):
    generator = torch.Generator("cuda").manual_seed(0)
    Z = torch.randn((2000, 600), generator=generator, device="cuda", dtype=torch.float64)
    Z = Z * torch.logspace(0, -2, 600, device="cuda", dtype=torch.float64)
    S = Z.T @ Z / 2000
    ridge = shrinkage * float(S.trace()) / 600
    W = root_of_matrix(S, shrinkage, ridge, torch.float64).matrix
    one = torch.eye(600, device="cuda", dtype=torch.float64)
    A = (1 - shrinkage) * S + ridge * one
    torch.testing.assert_close(W @ A @ W, one, atol=1e-8, rtol=0)


def test_a_fit_holds_little_compared_with_the_rows():
    generator = torch.Generator("cuda").manual_seed(0)
    X = torch.randn((400_000, 512), generator=generator, device="cuda")
    y = (X[:, :50] * 3).argmax(dim=1)
    domains = np.arange(len(X)) // 100_000
    DAREClassifier(adaptation=None).fit(X[::100], y[::100], domains=domains[::100])
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    DAREClassifier(adaptation=None).fit(X, y, domains=domains)
    more = torch.cuda.max_memory_allocated() - before
    assert more < 0.6 * X.element_size() * X.numel()
    assert torch.cuda.memory_allocated() - before < 2**20


@pytest.mark.filterwarnings("ignore::skdare.errors.DataNote")
def test_a_head_of_a_gpu_adapts_and_is_loaded_on_the_host(data, tmp_path):
    X, y, domains = data
    seen = domains != 2
    rows = torch.asarray(X.astype(np.float32)).cuda()
    head = DAREClassifier().fit(rows[seen], y[seen], domains=domains[seen])
    adapted = head.adapt(rows[~seen])
    head.save(tmp_path / "head.safetensors")
    loaded = skdare.load(tmp_path / "head.safetensors")
    again = loaded.adapt(X[~seen].astype(np.float32))
    np.testing.assert_allclose(adapted.coef_, again.coef_, rtol=1e-3, atol=1e-5)
    assert isinstance(head.moments_[0].scatter, np.ndarray)
    assert torch.equal(loaded.predict_proba(rows), head.predict_proba(rows))
