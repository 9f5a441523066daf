"""docs/drift.md shows what benchmarks/drift.py recorded, and it is what the page says."""

import json

import numpy as np
import pytest

from test_readme import ROOT, script

pytest.importorskip("river")
drift = script("drift")


def recorded():
    return {row["learner"]: row for row in json.loads(drift.RESULTS.read_text())["rows"]}


def test_page_shows_what_is_recorded():
    text = drift.PAGE.read_text(encoding="utf-8")
    assert drift.into_page(text, list(recorded().values())) == text
    assert (ROOT / "docs" / "drift.png").is_file()


def test_what_the_page_says():
    rows = recorded()
    assert list(rows) == list(drift.LEARNERS)
    for name in ("CS-DPP, defaults", "O-BR, defaults"):
        assert np.isnan(rows[name]["recovery"]).all()
    fast, slow = rows["CS-DPP, forgetting 0.99"], rows["CS-DPP, forgetting 0.999"]
    assert np.mean(fast["recovery"]) < 1.5 * np.mean(fast["recovery of a fresh one"])
    assert 4.0 < np.mean(slow["recovery"]) / np.mean(fast["recovery"]) < 6.0
    watched, plain = rows["CS-DPP, ADWIN resets"], rows["CS-DPP, defaults"]
    assert np.mean(watched["stationary"]) == pytest.approx(np.mean(plain["stationary"]), abs=0.005)
    assert abs(np.mean(watched["at the end"]) - np.mean(watched["stationary"])) < 0.01
    for name, row in rows.items():
        if name.startswith("river"):
            assert np.nanmean(row["recovery"]) > np.mean(watched["recovery"]), name


def test_recovery():
    curve = np.concatenate([np.linspace(1.0, 0.2, 400), np.full(200, 0.2)])
    assert drift.recovery(curve, 0.2) == np.flatnonzero(curve <= 0.23)[0] + 1
    assert drift.recovery(np.full(500, 0.2), 0.2) == drift.WINDOW
    assert np.isnan(drift.recovery(np.ones(500), 0.2))
    np.testing.assert_allclose(drift.windowed(np.arange(300.0))[[0, 1, 299]], [0.0, 0.5, 199.5])
