"""docs/benchmarks.md shows what its scripts recorded, and what was recorded grows as stated."""

import json

import pytest

from conftest import ROOT
from csdpp.bench import report, streams
from test_readme import script


@pytest.fixture(scope="module")
def page():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield script("page")


@pytest.fixture(scope="module")
def results(page):
    return {name: page.read(name) for name in ("bench", "targets", "growth")}


def test_page_is_the_recorded_one(page, results):
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.into_page(text, results) == text


@pytest.mark.parametrize(("part", "by"), [("labels", "K"), ("sizes", "M")])
def test_time_a_row_is_at_most_linear(page, results, part, by):
    for basis in page.growth.BASES:
        points = [point for point in results["growth"][part] if point["basis"] == basis]
        assert page.growth.exponent(points, by) <= 1.1


def test_memory_is_linear_in_the_labels(page, results):
    for point in results["growth"]["labels"]:
        kept = point["K"] * (page.growth.D if point["basis"] == "PBC" else 4 * page.growth.M)
        assert point["state"] <= 8 * (1.5 * kept + page.growth.D**2 + page.growth.D * page.growth.M + 100)


def test_cs_dpp_is_lowest_on_the_real_sets(results):
    cells = results["bench"]["cells"]
    for name in {cell["stream"] for cell in cells} & set(streams.REAL):
        for cost in ("f1", "accuracy"):
            found = report.verdict(cells, name, cost)
            assert found is None or found.lowest, (name, cost, found)


def test_floors_say_what_was_asked_and_measured(page, results):
    for case in results["targets"]["cases"]:
        assert "error" in case or case["least"] <= case["measured"] <= case["greatest"]
    text = "\n".join(page.floors(results))
    missed = sum(page.targets.reached(case) is False for case in results["targets"]["cases"])
    assert text.count("**missed**") == missed
    assert json.dumps(results["targets"]["made_with"]["machine"]).strip('"') in text
