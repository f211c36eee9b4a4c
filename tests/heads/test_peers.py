"""Beside other libraries, where they are installed: the same numbers where problems coincide."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from skdare import AnchorRegressor, DAREClassifier, DARERegressor, ERMClassifier, IRMClassifier
from skdare.datasets import make_latent_domains

# In a process of its own: importing skada turns on metadata routing for all of scikit-learn.
IN_SKADA = """
import numpy as np
import skada
from skada.datasets import DomainAwareDataset
from sklearn.linear_model import LogisticRegression
from skdare import DAREClassifier
from skdare.datasets import from_skada, load_digit_domains, to_skada

data = load_digit_domains(3)
rows = to_skada(data, targets=["tilted"])
before = rows.y.copy()
pipeline = skada.CORAL(LogisticRegression(max_iter=1000))
pipeline.fit(rows.X, rows.y, sample_domain=rows.sample_domain)
new = rows.sample_domain < 0
said = pipeline.predict(rows.X[new], sample_domain=rows.sample_domain[new])
assert (rows.classes[said] == data.y[new]).mean() > 0.8
assert np.array_equal(rows.y, before)

packed = DomainAwareDataset()
for name in ("plain", "bold", "tilted"):
    chosen = data.domains == name
    packed.add_domain(data.X[chosen], data.y[chosen], domain_name=name)
bunch = packed.pack(["plain", "bold"], ["tilted"], mask_target_labels=True, return_type="Bunch")
back = from_skada(bunch.X, bunch.y, bunch.sample_domain, domain_names=bunch.domain_names)
sources = back.sources
head = DAREClassifier().fit(sources.X, sources.y, domains=sources.domains)
assert head.domains_ == ["bold", "plain"]
said = head.adapt(back.targets["tilted"]).predict(back.targets["tilted"])
assert (said == data.y[new]).mean() > 0.8
"""


@pytest.mark.skipif(find_spec("skada") is None, reason="skada is not installed")
def test_rows_go_to_skada_and_come_from_it():
    # Warnings there are skada's own, and none of ours to turn into errors.
    run = subprocess.run([sys.executable, "-c", IN_SKADA], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("gamma", [1.0, 5.0, 100.0])
@pytest.mark.parametrize("l2", [0.0, 0.03])
def test_anchor_regression_on_domains_of_equal_size_is_that_of_ivmodels(gamma, l2):
    peer = pytest.importorskip("ivmodels.models", reason="ivmodels is not installed")
    data = make_latent_domains(5, 200, task="regression", random_state=0)
    ours = AnchorRegressor(gamma=gamma, l2=l2).fit(data.X, data.y, domains=data.domains)
    anchors = (data.domains[:, None] == np.arange(1, 5)).astype(float)
    # Our unit of the ridge is the features' mean variance; their loss is divided by gamma.
    ridge = {"alpha": l2 * data.X.var(axis=0).mean() / gamma}
    theirs = peer.AnchorRegression(gamma=gamma, **ridge).fit(data.X, data.y, Z=anchors)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6 * np.abs(theirs.coef_).max())
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-6 * np.abs(data.y).max())


@pytest.mark.parametrize("head", [ERMClassifier(), DAREClassifier(), IRMClassifier()])
def test_skops_which_mlflow_saves_with_gives_the_same_head_back(head):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    data = make_latent_domains(3, 60, shift=0.3, random_state=0)
    held = skops.dumps(head.fit(data.X, data.y, domains=data.domains))
    types = skops.get_untrusted_types(data=held)
    assert all(name.startswith("skdare.") for name in types)
    back = skops.loads(held, trusted=types)
    np.testing.assert_array_equal(back.predict_proba(data.X), head.predict_proba(data.X))
    assert back.solution_.status is head.solution_.status


def test_skops_gives_a_head_back_that_still_adapts():
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    data = make_latent_domains(3, 60, task="regression", random_state=0)
    head = DARERegressor().fit(data.X, data.y, domains=data.domains)
    held = skops.dumps(head)
    back = skops.loads(held, trusted=skops.get_untrusted_types(data=held))
    new = data.X[:40] + 1.0
    np.testing.assert_array_equal(back.adapt(new).predict(new), head.adapt(new).predict(new))
