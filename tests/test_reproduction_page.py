"""docs/reproduction.md is what its script makes of the recorded run, and the run is good enough to be shown."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SPEC = importlib.util.spec_from_file_location("reproduction", ROOT / "benchmarks" / "reproduction.py")


@pytest.fixture(scope="module")
def script():
    module = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(module)
    return module


def test_page_is_what_the_script_writes(script):
    kept = json.loads(script.RESULTS.read_text(encoding="utf-8"))
    page = script.PAGE.read_text(encoding="utf-8")
    written = page.split(script.BEGIN)[1].split(script.END)[0].strip()
    assert written == script.page(kept).strip(), "stale: python benchmarks/reproduction.py"


def test_recorded_run_reaches_what_it_should(script):
    """Four of five published figures agree, nine of ten agree or are better."""
    count = json.loads(script.RESULTS.read_text(encoding="utf-8"))["counts"]
    assert count["all"] > 600
    assert count["agree"] >= 0.8 * count["all"]
    assert count["agree"] + count["better"] >= 0.9 * count["all"]
