"""`skdare demo`: one screen, a verdict for each set, and a report."""

import json

import pytest
from click.testing import CliRunner

from skdare.cli import main


@pytest.mark.slow
def test_the_demo_is_one_screen_and_names_its_report_and_the_next_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["demo", "--trials", "1", "--jobs", "1"])
    assert result.exit_code == 0
    lines = result.stdout.strip().splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines[:-2])) <= 100
    assert "Adapt DARE-CV" in lines[1]
    assert any("Stay with ERM" in line for line in lines)
    assert lines[-2].startswith("page: ")
    assert lines[-1].startswith("next: skdare bench ")
    assert (tmp_path / "skdare-demo" / "report.md").exists()
    # The trials are on file, so that this is over in a moment.
    again = CliRunner().invoke(main, ["demo", "--trials", "1", "--jobs", "1", "--json", "--quiet"])
    fields = json.loads(again.stdout)
    assert fields["advice"] == {"penguins": "adapt", "diabetes": "stay"}
    assert set(fields["paper_model"]) == {"erm", "dare", "adapted"}
