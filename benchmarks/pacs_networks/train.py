"""Train the networks of PACS side by side on one GPU; write records, and features as they come.

    python train.py --data PACS --weights RESNET --trials 2 1:all --out run

A trial is four held-out styles of five draws each; ``1:all`` is trial 1 on all styles, and
``2:sketch`` one style. Splits, batches, augmentation, draws and the choice of a network are those
of `skdare.features`. OUT gets records/JOB/record.json, rows.npz (labels and domains), and in
features/ for each network that is kept: NAME-a.npz and NAME-b.npz, the test transform in 8 bits,
and augmented-NAME-0.npy to -4, five passes of the training transform in 16.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "4")

import numpy as np
import torch
import triton
from network import FastNetwork, Weights, augmented, plain
from torch import Tensor

import skdare
from skdare.features import Augmentation, Recipe, backbone
from skdare.features.backbones.backbone import provenance, state_hash
from skdare.features.examples.source import ExampleSource
from skdare.features.network import Network
from skdare.features.training.folder import TrainingFolder, TrainingRecord
from skdare.features.training.recipe import RULE, Job
from skdare.features.training.sampler import RowSplit, Sampler, StepDraws
from skdare.files import whole_file
from skdare.paper.study_file import StudyFile

# Steps that are drawn and sent at once, how many such blocks are drawn ahead, and how many wait on
# the GPU; rows that are read at once; passes of the training transform.
BLOCK, DRAWN, QUEUED = 30, 4, 3
CHUNK = 512
PASSES = 5
LEVELS = 255


def draws_of(sampler: Sampler, start: int, stop: int) -> StepDraws:
    """What other processes draw."""
    return sampler.draws(start, stop)


def views_of(seed: Sequence[int], n: int) -> np.ndarray:
    """Random numbers of the training transform."""
    return Augmentation().draw(np.random.default_rng(seed), n)


class Log:
    """Lines with the seconds since the start, printed and kept."""

    def __init__(self, path: Path) -> None:
        self.began = time.monotonic()
        self.file = path.open("a", buffering=1)

    def __call__(self, *words: Any) -> None:
        line = " ".join([f"{time.monotonic() - self.began:7.1f}", *map(str, words)])
        print(line, flush=True)
        self.file.write(line + "\n")


class Transfer:
    """Arrays on their way from the device."""

    def __init__(self, tensors: Sequence[Tensor], stream: torch.cuda.Stream | None) -> None:
        pinned = stream is not None
        self.host = [torch.empty(t.shape, dtype=t.dtype, pin_memory=pinned) for t in tensors]
        for place, value in zip(self.host, tensors, strict=True):
            place.copy_(value, non_blocking=pinned)
        self.event = None if stream is None else stream.record_event()

    @property
    def arrived(self) -> bool:
        return self.event is None or self.event.query()

    def arrays(self) -> list[np.ndarray]:
        if self.event is not None:
            self.event.synchronize()
        return [t.numpy() for t in self.host]


class Setting:
    """What all networks share: images on the device, the recipe, processes that draw, folders."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.out = options.out
        (self.out / "features").mkdir(parents=True, exist_ok=True)
        self.say = Log(self.out / "log.txt")
        self.device = torch.device(options.device)
        cuda = self.device.type == "cuda"
        self.dtype = torch.bfloat16 if cuda else torch.float32
        # Started before anything is on the GPU, and asked twice each to be there in time.
        self.pool = ProcessPoolExecutor(7 if cuda else 1, mp_context=get_context("spawn"))
        warm = [self.pool.submit(views_of, [i], 2) for i in range(14)]
        self.threads = ThreadPoolExecutor(3)
        study = StudyFile.read("pacs")
        self.source = ExampleSource(str(options.data), study.layout)
        self.backbone = backbone(f"hf:{options.weights}", size=options.size)
        self.examples = examples = self.source.examples(self.backbone)
        self.say("decoded", examples.inputs.shape, examples.fingerprint)
        self.recipe = Recipe(
            steps=options.steps, check_every=options.check_every, draws=study.settings["draws"]
        )
        made = provenance(self.backbone, examples)
        made["precision"] = "bfloat16" if cuda else "float32"
        settings = {"bottleneck": None, **made, "recipe": self.recipe.settings()}
        place = {"path": "pacs", "backbone": made["backbone"], "options": {}}
        TrainingFolder(self.out / "records").begin(settings, place)
        self.made = made | {
            "device": torch.cuda.get_device_name(0) if cuda else "cpu",
            "processes": 1,
            "torch": torch.__version__,
            "skdare": skdare.__version__,
            "passes": f"written out, Triton {triton.__version__}",
        }
        self.images = torch.from_numpy(np.ascontiguousarray(examples.inputs)).to(self.device)
        self.labels = torch.from_numpy(examples.labels.astype(np.int64)).to(self.device)
        self.backbone.module.to(self.device)
        np.savez(
            self.out / "rows.npz",
            y=np.array(examples.classes)[examples.labels],
            domains=examples.domains,
        )
        for started in warm:
            started.result()

    def stream(self) -> torch.cuda.Stream | None:
        return torch.cuda.Stream() if self.device.type == "cuda" else None

    def network(self, dropout: float = 0.0, seed: int = 0) -> Network:
        classes = len(self.examples.classes)
        return Network(self.backbone, classes, dropout, seed, fold=False).to(self.device)

    def send(self, place: Tensor, values: np.ndarray) -> None:
        source = torch.from_numpy(np.ascontiguousarray(values))
        cuda = self.device.type == "cuda"
        place.copy_(source.pin_memory() if cuda else source, non_blocking=cuda)

    def guesses(self, net: FastNetwork, rows: Tensor, room: Tensor) -> Tensor:
        """Classes of rows, with the test transform."""
        parts = [
            net.scores(net.features(plain(self.images, part, room[: len(part)]))).argmax(1)
            for part in rows.split(CHUNK)
        ]
        return torch.cat(parts) if parts else rows


class Training:
    """One network in training. `advance` does one thing and never waits for the GPU."""

    def __init__(self, job: Job, setting: Setting) -> None:
        self.job, self.setting = job, setting
        recipe, device, examples = setting.recipe, setting.device, setting.examples
        self.began = time.monotonic()
        self.hp = recipe.drawn(job)
        self.split = RowSplit.of(examples, job, recipe.aside)
        dim = setting.backbone.dim
        self.sampler = Sampler(
            list(self.split.train.values()), self.hp.batch, job.seed("steps"),
            recipe.augmentation, self.hp.dropout, dim)  # fmt: skip
        self.drawn: deque[tuple[int, Future[StepDraws]]] = deque()
        self.asked = self.queued = 0
        self.blocks: deque[Transfer] = deque()
        self.checking: deque[tuple[int, Transfer, Weights]] = deque()
        self.checks: list[dict[str, Any]] = []
        self.losses: list[Tensor] = []
        self.value, self.best_step = -1.0, 0
        self.best: Weights = ()
        self.state = "training"
        self.draw_ahead()
        self.stream = setting.stream()
        with torch.cuda.stream(self.stream):
            seed = int(np.random.default_rng(job.seed("last layer")).integers(2**31))
            network = setting.network(self.hp.dropout, seed)
            self.like = network.state_dict()
            self.net = FastNetwork(network, device, setting.dtype)
            n = self.sampler.total
            self.rows = torch.zeros(BLOCK, n, dtype=torch.int64, device=device)
            self.views = torch.zeros(BLOCK, n, 10, device=device)
            self.views[..., 2:8] = 1.0
            self.masks = None
            if self.hp.dropout > 0:
                self.masks = torch.ones(BLOCK, n, dim, dtype=torch.bool, device=device)
            self.at = torch.zeros(1, dtype=torch.int64, device=device)
            self.step_losses = torch.zeros(BLOCK, device=device)
            self.means = torch.zeros(n, device=device)
            self.x = self.net.views(n, setting.backbone.size)
            self.room = self.net.views(CHUNK, setting.backbone.size)
            valid = np.concatenate(list(self.split.valid.values()))
            self.valid, self.new = (torch.from_numpy(r).to(device) for r in (valid, self.split.new))
            self.graph = None if self.stream is None else self.captured()
        self.like = {name: value.cpu() for name, value in self.like.items()}
        took = time.monotonic() - self.began
        setting.say("start", job.name, "rows", n, asdict(self.hp), f"{took:.1f} s")

    def captured(self) -> torch.cuda.CUDAGraph:
        """The step as a graph; others go on while it is captured, and what it changed is undone."""
        self.take_step()
        self.at.zero_()
        self.stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin(capture_error_mode="thread_local")
        self.take_step()
        graph.capture_end()
        self.net.load(self.like)
        return graph

    def take_step(self) -> None:
        rows, views, mask = (
            None if place is None else place.index_select(0, self.at).squeeze(0)
            for place in (self.rows, self.views, self.masks)
        )
        augmented(self.setting.images, rows, views, self.means, self.x)
        labels = self.setting.labels[rows]
        loss = self.net.train_step(self.x, labels, mask, self.hp.lr, self.hp.weight_decay)
        self.step_losses.index_copy_(0, self.at, loss.reshape(1))
        self.at += 1

    def draw_ahead(self) -> None:
        recipe = self.setting.recipe
        while self.asked < recipe.steps and len(self.drawn) < DRAWN:
            check = (self.asked // recipe.check_every + 1) * recipe.check_every
            stop = min(self.asked + BLOCK, check, recipe.steps)
            future = self.setting.pool.submit(draws_of, self.sampler, self.asked, stop)
            self.drawn.append((stop - self.asked, future))
            self.asked = stop

    def advance(self) -> int | None:
        """Images that were put into the queue; None if there was nothing to do."""
        while self.blocks and self.blocks[0].arrived:
            self.blocks.popleft()
        while self.checking and self.checking[0][1].arrived:
            self.settle(*self.checking.popleft())
        if self.state == "training":
            if len(self.blocks) >= QUEUED or not self.drawn or not self.drawn[0][1].done():
                return None
            count, future = self.drawn.popleft()
            self.draw_ahead()
            with torch.cuda.stream(self.stream):
                self.train(count, future.result())
            return count * self.sampler.total
        if self.state == "last" and not self.checking and self.last.arrived:
            with torch.cuda.stream(self.stream):
                self.net.restore(self.best)
                self.kept = self.accuracy_ahead()
            self.state = "kept"
            return 0
        if self.state == "kept" and self.kept.arrived:
            self.state, self.graph = "done", None
            return 0
        return None

    def train(self, count: int, draws: StepDraws) -> None:
        """Queue a block of steps, and a check where one is due."""
        setting = self.setting
        values = draws.rows, draws.views, draws.dropout_masks
        for place, value in zip((self.rows, self.views, self.masks), values, strict=True):
            if place is not None:
                setting.send(place[:count], value)
        self.at.zero_()
        for _ in range(count):
            if self.graph is None:
                self.take_step()
            else:
                self.graph.replay()
        self.losses.append(self.step_losses[:count].clone())
        self.blocks.append(Transfer([self.at], self.stream))
        self.queued += count
        ends = self.queued == setting.recipe.steps
        if ends or self.queued % setting.recipe.check_every == 0:
            guesses = setting.guesses(self.net, self.valid, self.room)
            loss = torch.cat(self.losses).mean().reshape(1)
            self.losses = []
            sent = Transfer([guesses, loss], self.stream)
            self.checking.append((self.queued, sent, self.net.snapshot()))
        if ends:
            self.last = self.accuracy_ahead()
            self.state = "last"

    def accuracy_ahead(self) -> Transfer:
        """Guesses for the held-out domain, on their way."""
        return Transfer([self.setting.guesses(self.net, self.new, self.room)], self.stream)

    def settle(self, step: int, sent: Transfer, weights: Weights) -> None:
        """Note a check; its weights are kept if it is the best so far."""
        guesses, loss = sent.arrays()
        labels = self.split.labels
        sizes = np.cumsum([len(rows) for rows in self.split.valid.values()])
        parts = zip(self.split.valid.items(), np.split(guesses, sizes[:-1]), strict=True)
        accuracy = {name: float(np.mean(own == labels[rows])) for (name, rows), own in parts}
        self.checks.append({"step": step, "loss": float(loss[0]), "accuracy": accuracy})
        value = float(np.mean(list(accuracy.values())))
        if value > self.value:
            self.value, self.best, self.best_step = value, weights, step

    def accuracy(self, sent: Transfer) -> dict[str, float]:
        rows = self.split.new
        right = sent.arrays()[0] == self.split.labels[rows]
        aside = self.split.aside[rows]
        parts = {"reserved": right[aside], "rest": right[~aside], "all": right}
        return {name: float(np.mean(part)) for name, part in parts.items() if len(rows)}

    def write_record(self) -> None:
        job = self.job
        record = TrainingRecord(
            job.held_out, job.trial, job.draw, asdict(self.hp), RULE, self.best_step, self.value,
            self.accuracy(self.kept), self.accuracy(self.last), self.checks,
            state_hash(self.net.state_dict(self.best, self.like)), self.setting.made)  # fmt: skip
        folder = self.setting.out / "records" / job.name
        folder.mkdir(parents=True, exist_ok=True)
        with whole_file(folder / "record.json") as file:
            file.write(json.dumps(asdict(record), indent=1).encode())
        took = f"{time.monotonic() - self.began:.0f} s"
        self.setting.say("done", job.name, record.step, record.value, dict(record.accuracy), took)


class FeatureReader:
    """Reads features by one network after another, beside the trainings."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.stream = setting.stream()
        with torch.cuda.stream(self.stream):
            self.net = FastNetwork(setting.network(), setting.device, setting.dtype)
            self.room = self.net.views(CHUNK, setting.backbone.size)
            self.means = torch.zeros(CHUNK, device=setting.device)

    def read(self, name: str, weights: Weights | None = None, job: Job | None = None) -> None:
        """All rows with the test transform; those that a job trained on also with its own."""
        domains = self.setting.examples.domains
        with torch.cuda.stream(self.stream):
            if weights is not None:
                self.net.restore(weights)
            sent = [Transfer([self._features(np.arange(len(domains)))], self.stream)]
            rows = np.flatnonzero(domains != job.held_out) if job is not None else []
            for number in range(PASSES if job is not None else 0):
                drawn = views_of([*job.seed("features"), number], len(rows))
                features = self._features(rows, torch.from_numpy(drawn).to(self.setting.device))
                sent.append(Transfer([features.half()], self.stream))
        self.setting.threads.submit(self._write, name, sent).add_done_callback(failed_loudly)

    def _features(self, rows: np.ndarray, drawn: Tensor | None = None) -> Tensor:
        parts = []
        on_device = torch.from_numpy(rows).to(self.setting.device)
        for start, part in zip(range(0, len(rows), CHUNK), on_device.split(CHUNK), strict=True):
            room = self.room[: len(part)]
            if drawn is None:
                plain(self.setting.images, part, room)
            else:
                views = drawn[start : start + CHUNK]
                augmented(self.setting.images, part, views, self.means[: len(part)], room)
            parts.append(self.net.features(room))
        return torch.cat(parts)

    def _write(self, name: str, sent: Sequence[Transfer]) -> None:
        """Write the parts in 8 bits last, as heads begin when they are there."""
        folder = self.setting.out / "features"
        for number, transfer in enumerate(sent[1:]):
            np.save(folder / f"augmented-{name}-{number}.npy", transfer.arrays()[0])
        (X,) = sent[0].arrays()
        scale = (X.max(axis=0) / LEVELS).astype(np.float32)
        scale[scale == 0] = 1.0
        codes = np.rint(X / scale).astype(np.uint8)
        for part, rows in zip("ab", np.array_split(codes, [len(codes) // 2]), strict=True):
            with whole_file(folder / f"{name}-{part}.npz") as file:
                np.savez_compressed(file, codes=rows, scale=scale)
        self.setting.say("features", name)


def failed_loudly(future: Future[Any]) -> None:
    """What goes wrong beside the trainings is printed; they go on."""
    if future.exception() is not None:
        print("FAILED", repr(future.exception()), flush=True)


def planned(items: Sequence[str], setting: Setting) -> list[Job]:
    """Networks by trial and held-out style, those with large batches first."""
    jobs = []
    for item in items:
        trial, _, what = item.partition(":")
        for held_out in [what] if what else setting.source.counts():
            domain = None if held_out == "all" else held_out
            group = [Job(domain, int(trial), draw) for draw in range(setting.recipe.draws)]
            jobs += sorted(group, key=lambda job: -setting.recipe.drawn(job).batch)
    return jobs


def train(jobs: Sequence[Job], setting: Setting, at_once: int) -> None:
    """Train all; features of a style's best draw are read when its last draw is done."""
    say = setting.say
    reader = FeatureReader(setting)
    reader.read("pretrained")
    waiting, active = deque(jobs), list[Training]()
    cells: dict[tuple[str | None, int], list[Training]] = {}
    began = spoken = time.monotonic()
    images = before = 0
    while waiting or active:
        if waiting and len(active) < at_once:
            # The GPU has enough to do while the next network is made.
            images += sum(run.advance() or 0 for run in active for _ in range(QUEUED))
            active.append(Training(waiting.popleft(), setting))
        done = [run.advance() for run in active]
        images += sum(filter(None, done))
        for run in [run for run in active if run.state == "done"]:
            active.remove(run)
            setting.threads.submit(run.write_record).add_done_callback(failed_loudly)
            key = run.job.held_out, run.job.trial
            cell = cells.setdefault(key, [])
            cell.append(run)
            if len(cell) == sum((job.held_out, job.trial) == key for job in jobs):
                del cells[key]
                kept = max(cell, key=lambda run: (run.value, -run.job.draw))
                say("chosen", kept.job.name, kept.value)
                if key[0] is not None:
                    reader.read(f"{key[1]}-{key[0]}", kept.best, kept.job)
        now = time.monotonic()
        if now - spoken > 20:
            rate = (images - before) / (now - spoken)
            steps = [f"{run.job.name}@{run.queued}" for run in active]
            say(f"{rate:.0f} images/s, {images / 1e6:.2f} M,", *steps)
            spoken, before = now, images
        if all(amount is None for amount in done):
            time.sleep(0.0005)
    setting.threads.shutdown(wait=True)
    say("finished", f"{images / (time.monotonic() - began):.0f} images/s")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="PACS, as skdare reproduce")
    parser.add_argument("--weights", type=Path, required=True, help="folder of a ResNet-50")
    parser.add_argument("--trials", nargs="+", default=["2"])
    parser.add_argument("--out", type=Path, default=Path("pacs.run"))
    parser.add_argument("--at-once", type=int, default=6)
    parser.add_argument("--device", default="cuda")
    for name, usual in (("steps", 5001), ("check-every", 300), ("size", 224)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args(arguments)
    torch.set_grad_enabled(False)
    setting = Setting(options)
    jobs = planned(options.trials, setting)
    try:
        train(jobs, setting, options.at_once)
    except BaseException as error:
        setting.say("STOPPED", repr(error))
        raise
    finally:
        setting.pool.shutdown(wait=False, cancel_futures=True)


if __name__ == "__main__":
    main()
