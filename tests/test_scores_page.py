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


def test_auto_is_near_the_best_lambda_on_every_set():
    rows = recorded("regularization")
    assert len(rows) == len(scores.SETS)
    for row in rows:
        best = min(np.mean(row[f"lambda {value}"]) for value in scores.LAMBDAS)
        assert np.mean(row["auto"]) < best + 1.0, row["stream, M"]  # in percent


def test_chances_are_calibrated_and_say_more_than_frequencies():
    for row in recorded("chances"):
        for told in ("hamming", "f1"):
            assert np.mean(row[f"ECE, told {told}"]) < 0.5 * np.mean(row["ECE, tanh of the score"]), row["stream"]
            assert np.mean(row[f"Brier, told {told}"]) < np.mean(row["Brier, tanh of the score"]), row["stream"]
            assert np.mean(row[f"Brier, told {told}"]) < 1.01 * np.mean(row["Brier, frequency so far"]), row["stream"]


def test_thresholds_pay_as_the_page_says():
    better = {
        learner: [np.mean(row[learner]) - np.mean(row[f"{learner}, with thresholds"]) for row in recorded("thresholds")]
        for learner in ("O-BR", "CS-DPP told it")
    }
    assert [sum(gain > 0 for gain in gains) for gains in better.values()] == [23, 17]
    assert max(better["O-BR"]) > 15.0
    assert max(better["CS-DPP told it"]) > 5.0
    assert min(better["CS-DPP told it"]) > -0.5


def test_the_tuner_is_near_its_best_candidate():
    for row in recorded("tuner"):
        assert np.mean(row["tuner"]) < np.mean(row["best in hindsight"]) + 0.6, row["stream"]
