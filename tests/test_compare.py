"""`csdpp run`: any learners on any data; its figures are those of the library."""

import csv
import json

import numpy as np
import pytest

from csdpp import CSDPP, OnlineBinaryRelevance, cli
from csdpp.costs import F1, resolve_cost
from csdpp.datasets import load_river_yeast, make_stream
from csdpp.errors import InvalidParameter
from csdpp.experiments import compare

DATA = make_stream(150, 6, 8, cardinality=2, random_state=0)


class Stubborn:
    """Predicts label 0 for every row."""

    def __init__(self, K=8):
        self.K = K

    def predict(self, X):
        return np.eye(self.K, dtype=int)[np.zeros(len(X), int)]

    def partial_fit(self, X, Y):
        return self


def losses(model, seed, cost):
    """By another way than that of the command."""
    order = np.random.default_rng(seed).permutation(150)
    X = (DATA.X - DATA.X.min(axis=0)) / (DATA.X.max(axis=0) - DATA.X.min(axis=0))
    Y_hat = model.prequential(X[order], DATA.Y[order])
    return resolve_cost(cost).loss(DATA.Y[order], Y_hat).mean()


def test_figures_are_those_of_the_library():
    names = ["cs-dpp:rate=2,weighting=ordered", "O-BR"]
    entries = compare.compare(DATA, names, costs=["f1", "hamming"], components=[3, 0.5], repeats=2, seed=5)
    assert [(entry.name, entry.M) for entry in entries] == [(names[0], 3), (names[0], 4), ("O-BR", None)]
    for entry in entries:
        for cost in ("f1", "hamming"):
            expected = []
            for seed in (5, 6):
                ours = CSDPP(entry.M or 1, cost=cost, rate=2, weighting="ordered", random_state=seed)
                expected.append(losses(ours if entry.M else OnlineBinaryRelevance(), seed, cost))
            mean, error = entry.average(cost)
            assert mean == pytest.approx(np.mean(expected))
            assert error == pytest.approx(np.std(expected, ddof=1) / 2**0.5)


def test_noise_rows_and_order():
    noisy = compare._stream(DATA, 3, 0.5, 100, permute=True)
    clean = compare._stream(DATA, 3, 0.0, 100, permute=True)
    assert noisy.X.shape == (100, 6)
    assert not (noisy.Y > clean.Y).any()
    assert 0.35 < noisy.Y.sum() / clean.Y.sum() < 0.65
    assert (DATA.X[:10] == compare._stream(DATA, 3, 0.0, 10, permute=False).X).all()


def test_a_learner_of_ones_own():
    entries = compare.compare(DATA, [f"{__name__}:Stubborn:K=8"], costs=[F1()])
    expected = F1().loss(DATA.Y, Stubborn().predict(DATA.X)).mean()
    assert entries[0].average("f1")[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learners": ["bogus"]}, r"run: learners must be cs-dpp, .* or module:attribute, got 'bogus'"),
        ({"learners": ["json:nothing"]}, r"or module:attribute, got json:nothing"),
        ({"learners": ["cs-dpp:rate"]}, r"run: options must be key=value, got 'rate'"),
        ({"learners": ["cs-dpp:speed=3"]}, r"run: options of cs-dpp:speed=3 must be its parameters"),
        ({"repeats": 0}, r"run: repeats must be"),
        ({"noise": 1.0}, r"run: noise must be"),
        ({"rows": 0}, r"run: rows must be"),
        ({"components": [99]}, r"run: n_components must be at most the 8 labels, got 99"),
    ],
)
def test_errors_say_what_to_do(options, message):
    with pytest.raises(InvalidParameter, match=message):
        compare.compare(DATA, **({"learners": ["cs-dpp"]} | options))


def test_the_command_prints_and_writes(tmp_path, capsys):
    command = ["run", "yeast", "--rows", "200", "--costs", "f1", "--repeats", "2", "--output", str(tmp_path)]
    assert cli.main([*command, "--learners", "cs-dpp", "o-br", "--no-progress"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("yeast: 200 rows, 103 features, 14 labels\n")
    with (tmp_path / "costs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["learner"], row["M"], row["repeat"]) for row in rows] == [
        ("cs-dpp", "4", "0"),
        ("cs-dpp", "4", "1"),
        ("o-br", "", "0"),
        ("o-br", "", "1"),
    ]
    mean = np.mean([float(row["loss"]) for row in rows[:2]])
    assert f"{mean:.4f} ±" in out
    recorded = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert recorded["learners"][0]["results"]["f1"][1]["averages"]["f1"] == float(rows[1]["loss"])
    assert recorded["data"]["rows"] == len(load_river_yeast().X)
    assert (tmp_path / "costs.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch.arff"], "load: expected a file, or one of"),
        (["yeast", "--labels", "a"], "run: options must be those of the format"),
        (["yeast", "--costs", "f2"], "cost must be one of"),
    ],
)
def test_errors_of_the_command_are_one_line(arguments, message, capsys, tmp_path):
    assert cli.main(["run", *arguments, "--output", str(tmp_path), "--no-progress"]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
