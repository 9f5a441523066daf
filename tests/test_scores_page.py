"""docs/scores.md and docs/tuning.md show what benchmarks/scores.py recorded, and it is what they say."""

import json

import numpy as np
import pytest

from test_readme import ROOT, script

scores = script("scores")


def recorded(part):
    return json.loads(scores.RESULTS.read_text())[part]["rows"]


@pytest.mark.parametrize(("part", "page"), scores.PARTS.items(), ids=[part.__name__ for part in scores.PARTS])
def test_page_shows_what_is_recorded(part, page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert scores.into_page(text, part.__name__, recorded(part.__name__)) == text


@pytest.mark.parametrize(("measure", "cost", "least"), [("micro-F1", "micro_f1", 5), ("macro-F1", "macro_f1", 6)])
def test_a_cost_with_a_memory_is_best_at_its_measure(measure, cost, least):
    rows = {tuple(row["stream, M"].split(", ")): row for row in recorded("measures")}
    best = 0
    for name, sizes in scores.SETS.items():
        row = rows[name, str(sizes[-1])]
        others = [np.mean(row[f"{measure}, told {other}"]) for other in ("hamming", "f1")]
        best += np.mean(row[f"{measure}, told {cost}"]) > max(others)
    assert best >= least
