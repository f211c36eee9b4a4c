"""Heads on a GPU: the same answers as on the host, in bounded memory, whatever torch is set to."""

import pickle

import numpy as np
import pytest

import skdare
from skdare import (
    AnchorRegressor,
    DAREClassifier,
    DAREClassifierCV,
    DARERegressor,
    ERMClassifier,
    ERMRegressor,
    GroupDROClassifier,
    IRMClassifier,
    ReweightedClassifier,
)
from skdare.objective.losses import SOFTMAX, _fused_kernel
from skdare.whitening.roots.newton_schulz import newton_schulz_inverse_root

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")

N, D, K, E = 6000, 96, 7, 3


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    domains = np.arange(N) % E
    X = rng.normal(size=(N, D))
    y = (X[:, :K] * 1.5 + rng.gumbel(size=(N, K))).argmax(axis=1)
    X *= np.exp(rng.uniform(-0.5, 0.5, (E, D)))[domains]
    return X + 0.3 * rng.normal(size=(E, D))[domains], y, domains


HEADS = [
    DAREClassifier(),
    DAREClassifier(mean_penalty="exact", centered=True, shrinkage="ledoit-wolf"),
    DAREClassifier(shrinkage_target="pooled", shrinkage=0.5),
    DAREClassifier(shrinkage_target="diagonal", shrinkage=0.5),
    DAREClassifier(shrinkage_target="diagonal", shrinkage=1.0, adaptation="centered"),
    DAREClassifierCV(strategies=("erm", "raw")),
    DAREClassifierCV(strategies=("center+mixture",)),
    DAREClassifier(adaptation="mixture"),
    DAREClassifier(adaptation="translation", standardize=True),
    ERMClassifier(),
    ERMClassifier(solver="trust-ncg"),
    ReweightedClassifier(),
    GroupDROClassifier(max_iter=5),
    IRMClassifier(anneal=2, max_iter=50),
    DARERegressor(),
    DARERegressor(mean_penalty=1.0),
    DARERegressor(mean_penalty=1.0, solver="lbfgs"),
    ERMRegressor(),
    AnchorRegressor(),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("head", HEADS, ids=lambda head: repr(head).replace("\n", ""))
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-5), ("float32", 3e-3)])
@pytest.mark.parametrize("sorted_rows", [True, False])
def test_a_gpu_gives_the_head_of_the_host(data, head, dtype, tolerance, sorted_rows):
    X, y, domains = data
    if sorted_rows:
        order = np.argsort(domains, kind="stable")
        X, y, domains = X[order], y[order], domains[order]
    X = X.astype(dtype)
    host = type(head)(**head.get_params()).fit(X, y, domains=domains)
    gpu = type(head)(**head.get_params()).fit(torch.asarray(X).cuda(), y, domains=domains)
    scale = np.abs(host.coef_).max()
    np.testing.assert_allclose(gpu.coef_, host.coef_, atol=tolerance * scale)
    np.testing.assert_allclose(gpu.intercept_, host.intercept_, atol=tolerance * scale)
    new = torch.asarray(X[:50]).cuda()
    expected = torch.asarray(host.predict(X[:50]))
    found = gpu.predict(new)
    assert np.mean(np.isclose(torch.asarray(found).cpu(), expected, atol=1e-2)) >= 0.98


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


def test_early_iterations_are_coarse_and_the_end_is_not(data):
    X, y, domains = data
    X = torch.asarray(X.astype(np.float32)).cuda()
    head = DAREClassifier(adaptation=None, tol=1e-6).fit(X, y, domains=domains)
    assert 0 < head.solution_.n_coarse < head.solution_.n_evaluations
    assert head.solution_.converged
    assert head.solution_.gradient_norm <= 1e-6


@pytest.mark.parametrize("k", [3, 20, 345, 1000])
def test_the_fused_softmax_is_the_plain_one(k):
    generator = torch.Generator("cuda").manual_seed(0)
    F = 20 * torch.randn((1000, k), generator=generator, device="cuda")
    F[0, 1] = 500.0
    T = torch.randint(k, (1000,), generator=generator, device="cuda")
    weight = torch.rand(1000, generator=generator, device="cuda", dtype=torch.float64)
    losses, R = SOFTMAX.value_and_residual(F.double(), T)
    assert _fused_kernel() is not None, "the kernel was not compiled"
    value, weighted = SOFTMAX.weighted(F.clone(), T, weight)
    assert float(value) == pytest.approx(float((losses * weight).sum()), rel=1e-6)
    torch.testing.assert_close(weighted.double(), R * weight[:, None], atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("shrinkage", [0.9, 0.1, 1e-3])
def test_the_iterated_root_is_the_inverse_root(shrinkage):
    generator = torch.Generator("cuda").manual_seed(0)
    Z = torch.randn((2000, 600), generator=generator, device="cuda", dtype=torch.float64)
    S = Z.T @ Z / 2000 * torch.logspace(0, -3, 600, device="cuda", dtype=torch.float64)[:, None]
    S = (S + S.T) / 2
    S = S @ S.T
    ridge = shrinkage * float(S.trace()) / 600
    W = newton_schulz_inverse_root(S, shrinkage, ridge)
    A = (1 - shrinkage) * S + ridge * torch.eye(600, device="cuda", dtype=torch.float64)
    eye = torch.eye(600, device="cuda", dtype=torch.float64)
    torch.testing.assert_close(W @ A @ W, eye, atol=1e-8, rtol=0)


def test_a_fit_holds_little_beside_the_rows():
    generator = torch.Generator("cuda").manual_seed(0)
    X = torch.randn((400_000, 512), generator=generator, device="cuda")
    y = (X[:, :50] * 3).argmax(dim=1)
    domains = np.arange(len(X)) // 100_000
    DAREClassifier(adaptation=None).fit(X[::100], y[::100], domains=domains[::100])
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    DAREClassifier(adaptation=None).fit(X, y, domains=domains)
    beside = torch.cuda.max_memory_allocated() - before
    assert beside < 0.6 * X.element_size() * X.numel()
    assert torch.cuda.memory_allocated() - before < 2**20


@pytest.mark.filterwarnings("ignore:predicted class shares")
def test_a_head_fitted_on_a_gpu_adapts_and_is_pickled_on_the_host(data):
    X, y, domains = data
    seen = domains != 2
    X32 = torch.asarray(X.astype(np.float32)).cuda()
    head = DAREClassifier().fit(X32[seen], y[seen], domains=domains[seen])
    adapted = head.adapt(X32[~seen])
    again = pickle.loads(pickle.dumps(head)).adapt(X[~seen].astype(np.float32))
    np.testing.assert_allclose(adapted.coef_, again.coef_, rtol=1e-3, atol=1e-5)
    assert isinstance(head.moments_[0].scatter, np.ndarray)


@pytest.mark.parametrize("adaptable", [True, False])
def test_a_head_fitted_on_a_gpu_is_saved_and_loaded_to_the_bit(data, tmp_path, adaptable):
    X, y, domains = data
    X32 = torch.asarray(X.astype(np.float32)).cuda()
    head = DAREClassifier().fit(X32, y, domains=domains)
    head.save(tmp_path / "head", adaptable=adaptable)
    again = skdare.load(tmp_path / "head")
    assert torch.equal(again.predict_proba(X32), head.predict_proba(X32))
    if adaptable:
        np.testing.assert_array_equal(again.adapt(X32[:500]).coef_, head.adapt(X32[:500]).coef_)


def test_a_network_on_a_gpu_takes_a_head_in_place(data):
    X, y, domains = data
    head = DAREClassifier().fit(X.astype(np.float32), y, domains=domains)
    network = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Linear(D, 3)).cuda()
    rows = torch.asarray(X.astype(np.float32)).cuda()
    with skdare.swap(network, head) as swapped, torch.no_grad():
        P = swapped(rows).softmax(dim=1)
    assert P.device.type == "cuda"
    np.testing.assert_allclose(P.cpu(), head.predict_proba(X), atol=1e-5)
    assert network[1].out_features == 3
