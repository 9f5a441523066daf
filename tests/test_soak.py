"""A short version of benchmarks/soak.py: growth, gaps, forgetting and drift together, and a state that stays whole."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks" / "soak.py"


@pytest.fixture(scope="module")
def soak():
    spec = importlib.util.spec_from_file_location("soak", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["soak"] = module
    spec.loader.exec_module(module)
    return module


def assert_whole(worst):
    assert worst["finite"]
    assert worst["orthonormal"] < 1e-12
    assert worst["simplex"] < 1e-12
    assert worst["weights"] < 10.0
    if worst["least"] is not None:
        assert worst["least"] > 0.0
        assert worst["largest"] < 2 * np.finfo(float).eps ** -0.5  # the regularisation is given back in time
    assert worst["hamming"] < 0.25


@pytest.mark.parametrize("name", ["defaults", "PBT", "gradient"])
def test_short_soak(soak, name):
    assert_whole(soak.summary(soak.soak(soak.LEARNERS[name], 60_000)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["defaults", "PBT", "gradient"])
def test_soak(soak, name):
    worst = soak.summary(soak.soak(soak.LEARNERS[name], 1_000_000))
    assert_whole(worst)
    assert worst["memory at the end"] < worst["memory at a tenth"] + 4.0  # MB
