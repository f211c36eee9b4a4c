"""The passes of benchmarks/pacs_networks, written out, are those of torch; and what trained there
had the draws that this package makes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from skdare.features import Augmentation, Recipe, backbone  # noqa: E402
from skdare.features.augmentation import random_views  # noqa: E402
from skdare.features.network import Network  # noqa: E402
from skdare.features.training.recipe import Job  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
SIDE = 32


@pytest.fixture
def resnet(request, tmp_path):
    """A folder with two bottlenecks of a ResNet, its norms away from one and zero."""
    if find_spec("torchvision") is not None:  # which transformers imports where it is there
        request.getfixturevalue("torchvision")
    transformers = pytest.importorskip("transformers")
    config = transformers.ResNetConfig(
        embedding_size=64,
        hidden_sizes=[256],
        depths=[2],
        downsample_in_first_stage=True,
        downsample_in_bottleneck=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.ResNetModel(config)
        for name, value in model.state_dict().items():
            if value.ndim == 1:
                value.copy_(0.5 + torch.rand_like(value) - int("mean" in name or "bias" in name))
    model.save_pretrained(tmp_path)
    size = {"height": SIDE, "width": SIDE}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"size": size, **IMAGENET}))
    return tmp_path


@pytest.mark.slow
def test_written_out_steps_are_those_of_autograd_and_adam(resnet):
    pytest.importorskip("triton", reason="the passes are written for Triton")
    # Triton has to be told before it is imported that it runs on a processor.
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    command = [sys.executable, __file__, str(resnet)]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    found = json.loads(child.stdout)
    assert found["views"] < 1e-4
    assert found["plain"] < 1e-5
    for step in found["steps"]:
        assert step["loss"] == pytest.approx(step["torch"], rel=1e-5)
    first = found["steps"][0]
    assert first["median"] < 1e-5
    assert first["worst"] < 1e-2  # Adam's first step has the size of a gradient's sign
    assert found["features"] < 1e-5


def test_networks_on_record_have_the_hyperparameters_that_are_drawn_now():
    records = (ROOT / "docs/results/pacs/networks.jsonl").read_text().splitlines()
    recipe = Recipe(draws=5)
    for record in map(json.loads, records):
        drawn = recipe.drawn(Job(record["held_out"], record["trial"], record["draw"]))
        assert vars(drawn) == pytest.approx(record["hyperparameters"], rel=1e-12)


def compared(folder: str) -> dict:
    """Two steps written out, and two of torch, from the same weights and draws."""
    sys.path.insert(0, str(ROOT / "benchmarks/pacs_networks"))
    import network as passes

    # NumPy 2.5 makes no number of an array of one, as Triton's own `range` does on a processor.
    passes.range = lambda *ends: range(
        *(end if isinstance(end, int) else end.handle.data.item() for end in ends)
    )
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    n, lr, decay = 4, 1e-3, 1e-3
    pretrained = backbone(f"hf:{folder}", size=SIDE)
    noise = torch.randint(0, 256, (9, SIDE, SIDE, 3), generator=generator).float()
    smooth = torch.nn.functional.avg_pool2d(noise.permute(0, 3, 1, 2), 5, 1, 2)
    images = smooth.permute(0, 2, 3, 1).round().to(torch.uint8).contiguous()
    rows, labels = torch.tensor([3, 1, 8, 1]), torch.tensor([0, 3, 6, 2])
    drawn = torch.from_numpy(Augmentation().draw(np.random.default_rng(0), n))
    drawn[1, 9] = drawn[2, 4] = 1.0
    views = torch.stack(random_views(images, rows, drawn, SIDE), -1)
    views = (views - torch.tensor(pretrained.mean)) / torch.tensor(pretrained.std)
    network = Network(pretrained, 7, dropout=0.5, seed=5, fold=False)
    fast = passes.FastNetwork(network, torch.device("cpu"), torch.float32)
    x = passes.augmented(images, rows, drawn, torch.zeros(n), fast.views(n, SIDE))
    unchanged = passes.plain(images, rows, fast.views(n, SIDE)).permute(0, 3, 1, 2)
    found: dict = {
        "views": (x - views).abs().max().item(),
        "plain": (unchanged - pretrained.views(images, rows)).abs().max().item(),
        "steps": [],
    }
    mask = torch.rand(n, pretrained.dim, generator=generator) >= 0.5
    adam = torch.optim.Adam(network.parameters(), lr=lr, weight_decay=decay)
    for _ in range(2):
        before = {name: p.detach().clone() for name, p in network.named_parameters()}
        adam.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(views.permute(0, 3, 1, 2), mask), labels)
        loss.backward()
        adam.step()
        with torch.no_grad():
            own = fast.train_step(x, labels, mask, lr, decay)
            state = fast.state_dict(fast.snapshot(), network.state_dict())
            off = [
                ((state[name] - p).norm() / (p - before[name]).norm()).item()
                for name, p in network.named_parameters()
            ]
        median = torch.tensor(off).median().item()
        step = {"torch": loss.item(), "loss": own.item(), "median": median, "worst": max(off)}
        found["steps"].append(step)
    network.load_state_dict(state)
    with torch.no_grad():
        features = network.features(views.permute(0, 3, 1, 2))
        found["features"] = ((fast.features(x) - features).norm() / features.norm()).item()
    return found


if __name__ == "__main__":
    sys.modules["torchvision"] = None  # type: ignore[assignment]  # it may not fit this torch
    print(json.dumps(compared(sys.argv[1])))
