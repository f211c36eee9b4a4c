"""Records and settings that are damaged or forged are read as far as they are right, or refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from held_out_problems import made
from skdare.bench import RecordFile, Settings, run_bench
from skdare.bench.record import ABOUT, RECORDS
from skdare.data import DomainData
from skdare.errors import InputError
from skdare.report import Summary

pytestmark = [pytest.mark.hostile, pytest.mark.filterwarnings("ignore::skdare.errors.DataNote")]

ODD = [
    None,
    True,
    -1,
    0.5,
    1e308,
    -1e308,
    10**400,
    "",
    "\x1b[31m",
    "\ud800",
    [],
    {},
    [[]],
    "é" * 999,
]


@pytest.fixture(scope="module")
def data():
    table = made("binary", E=4, n=20)
    return DomainData.of(table.X, table.y, domains=table.domains.astype(str), name="t")


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    run_bench(data, folder, Settings(heads=("by-hand", "dare-cv-adapted")))
    return {name: (folder / name).read_bytes() for name in (RECORDS, ABOUT)}


def bytes_changed(content, rng):
    """Some bytes flipped, a part left out, or another part put in."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(content)))
        match rng.integers(3):
            case 0:
                content[at] = int(rng.integers(256))
            case 1:
                del content[at : at + int(rng.integers(1, 40))]
            case 2:
                content[at:at] = bytes(rng.integers(0, 256, 5).tolist())
    return bytes(content)


def values_forged(content, rng):
    """Values of an object of JSON that no run writes."""
    values = json.loads(content)
    names = list(values)
    for _ in range(rng.integers(1, 4)):
        name = names[rng.integers(len(names))]
        if rng.random() < 0.2:
            values.pop(name, None)
        else:
            values[name] = ODD[rng.integers(len(ODD))]
    return json.dumps(values).encode()


def lines_forged(content, rng):
    lines = content.splitlines()
    at = int(rng.integers(len(lines)))
    match rng.integers(3):
        case 0:
            lines[at] = values_forged(lines[at], rng)
        case 1:
            lines.insert(at, lines[rng.integers(len(lines))])
        case 2:
            lines = [lines[i] for i in rng.permutation(len(lines))]
    return b"\n".join(lines) + b"\n"


@pytest.mark.parametrize("spoil", [bytes_changed, lines_forged])
def test_spoiled_records_are_summarised_or_refused(spoil, whole, tmp_path):
    refusals = []
    for seed in range(300):
        content = spoil(whole[RECORDS], np.random.default_rng(seed))
        (tmp_path / RECORDS).write_bytes(content)
        (tmp_path / ABOUT).write_bytes(whole[ABOUT])
        try:
            summary = Summary.of(RecordFile(tmp_path))
            assert "\x1b" not in str(summary)
        except InputError as error:
            refusals.append(str(error))
    assert 0 < len(refusals) < 300
    assert all("records" in text for text in refusals)


@pytest.mark.parametrize("spoil", [bytes_changed, values_forged])
def test_a_run_with_spoiled_settings_goes_on_or_is_refused(spoil, whole, data, tmp_path):
    refusals = []
    for seed in range(60):
        content = spoil(whole[ABOUT], np.random.default_rng(seed))
        (tmp_path / RECORDS).write_bytes(whole[RECORDS])
        (tmp_path / ABOUT).write_bytes(content)
        try:
            run_bench(data, tmp_path, Settings(heads=("by-hand", "dare-cv-adapted")))
        except InputError as error:
            refusals.append(str(error))
        assert (tmp_path / RECORDS).read_bytes() == whole[RECORDS]
    assert all(str(tmp_path) in text for text in refusals)
