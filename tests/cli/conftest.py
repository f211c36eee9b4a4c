"""A folder as a user has it: a table, rows of a new domain, labels of some, and a saved head."""

from __future__ import annotations

import shutil

import pytest

from commands import ROLES, hospitals, text


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hospitals")
    table, new = hospitals()
    table.to_csv(folder / "table.csv", index=False)
    new.drop(columns=["died", "site"]).to_csv(folder / "new.csv", index=False)
    new.to_csv(folder / "labelled.csv", index=False)
    some = new.sample(40, random_state=0)
    some[["patient", "died"]].to_csv(folder / "labels.csv", index=False)
    numbers = table.assign(score=2.0 * table["a"] + table["c"]).drop(columns="died")
    numbers.to_csv(folder / "numbers.csv", index=False)
    text("fit", "table.csv", *ROLES, folder=folder)
    text("adapt", "table.safetensors", "new.csv", folder=folder)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """A copy of these files."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path
