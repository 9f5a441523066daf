"""The demonstration: its numbers are those of the library, and they arrive in the table and in the files."""

import csv
import json
import os
import sys
from dataclasses import replace

import numpy as np
import pytest

from csdpp import CSDPP, OnlineBinaryRelevance, OnlineRandomProjection, demo
from csdpp.costs import resolve_cost
from csdpp.datasets import load_river_yeast
from csdpp.errors import InvalidParameter

ROWS, SEED = 150, 3
TERMINAL = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")  # make rich take anything for a terminal


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch):
    for variable in TERMINAL:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """One run: its entries, its folder, and what it printed on a terminal of 80 columns."""
    folder = tmp_path_factory.mktemp("demo") / "a [b]" / "new"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        for variable in TERMINAL:
            patch.delenv(variable, raising=False)
        printed = _Printed()
        patch.setattr(sys, "stdout", printed)
        entries = demo.run(ROWS, folder, seed=SEED, progress=False)
    return entries, folder, "".join(printed)


class _Printed(list):
    """A stream that keeps what is written to it."""

    def write(self, text):
        self.append(text)

    def flush(self):
        pass


def averages(model):
    """The average costs of a learner on the rows of the run, by another way than that of the demonstration."""
    stream = load_river_yeast()
    low, high = stream.X.min(axis=0), stream.X.max(axis=0)
    order = np.random.default_rng(SEED).permutation(len(stream.X))[:ROWS]
    X, Y = ((stream.X - low) / (high - low))[order], stream.Y[order]
    Y_hat = model.prequential(X, Y)
    return {cost: resolve_cost(cost).loss(Y, Y_hat).mean() for cost in demo.COSTS}


def test_lines_are_those_of_the_learners(ran):
    lines = [("O-BR", 14)]
    for M in (7, 4):
        lines += [("O-RAND", M), ("DPP", M), ("CS-DPP, as published", M), ("CS-DPP, our defaults", M)]
    assert [(entry.name, entry.M) for entry in ran[0]] == lines


@pytest.mark.parametrize(
    ("line", "make"),
    [
        (0, lambda cost: OnlineBinaryRelevance()),
        (1, lambda cost: OnlineRandomProjection(7, random_state=SEED)),
        (2, lambda cost: CSDPP.published(7, cost="hamming", random_state=SEED)),
        (3, lambda cost: CSDPP.published(7, cost=cost, random_state=SEED)),
        (4, lambda cost: CSDPP(7, cost=cost)),
        (8, lambda cost: CSDPP(4, cost=cost)),
    ],
)
def test_numbers_are_those_of_the_library(ran, line, make):
    for cost in demo.COSTS:
        assert ran[0][line].average(cost) == pytest.approx(averages(make(cost))[cost], abs=1e-12)


def test_table_shows_the_numbers_and_marks_the_best(ran):
    entries, _, printed = ran
    lines = [line.split() for line in printed.splitlines()]
    for entry in entries:
        (shown,) = [line[-4:] for line in lines if line[:-4] == [*entry.name.split(), str(entry.M)]]
        for text, cost in zip(shown, demo.COSTS, strict=True):
            assert text.removesuffix("*") == f"{entry.average(cost):.3f}"
            best = min(round(other.average(cost), 3) for other in entries)
            assert text.endswith("*") == (round(entry.average(cost), 3) == best)


def test_what_is_printed_says_what_it_is_and_fits_the_terminal(ran):
    _, folder, printed = ran
    assert "yeast: 150 rows, 103 features, 14 labels, order of seed 3" in printed
    for words in ("lower is better", "O-BR", "csdpp demo --seed 1", str(folder), *os.listdir(folder)):
        assert words in printed
    assert [line for line in printed.splitlines() if len(line) > 80 and str(folder) not in line] == []


def test_files_have_the_same_numbers(ran):
    entries, folder, _ = ran
    assert sorted(os.listdir(folder)) == ["costs.csv", "costs.png", "results.json"]
    assert (folder / "costs.png").read_bytes().startswith(b"\x89PNG")
    with (folder / "costs.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    state = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert (state["data"]["rows"], state["seed"]) == (ROWS, SEED)
    for entry, row, saved in zip(entries, table, state["learners"], strict=True):
        assert (entry.name, str(entry.M)) == (row["learner"], row["M"]) == (saved["name"], str(saved["M"]))
        for cost in demo.COSTS:
            assert entry.average(cost) == float(row[cost]) == saved["averages"][cost] == saved["curves"][cost][-1]
            assert f"cost='{cost}'" in saved["models"][cost] or "CS-DPP" not in entry.name or cost == "f1"
        assert saved["rows"][-1] == ROWS


def test_same_seed_same_numbers_and_another_seed_others(ran, tmp_path, capsys):
    again = demo.run(ROWS, tmp_path, seed=SEED, progress=False)
    assert [e.average("f1") for e in again] == [e.average("f1") for e in ran[0]]
    other = demo.run(ROWS, tmp_path, seed=SEED + 1, progress=False)  # over the files of the run before
    assert [e.average("f1") for e in other] != [e.average("f1") for e in ran[0]]


def test_bar_counts_every_run_and_leaves_stdout_alone(tmp_path, monkeypatch, capsys):
    names = []
    stream = load_river_yeast()
    few = replace(stream, X=stream.X[:5], Y=stream.Y[:5])
    entries = demo.compare(few, 0, names.append)
    assert len(names) == 1 + 2 * (1 + 1 + 4 + 4)
    assert set(names) == {entry.name for entry in entries}
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes anything for a terminal
    demo.run(5, tmp_path, progress=False)
    assert capsys.readouterr().err == ""
    demo.run(5, tmp_path)
    out, err = capsys.readouterr()
    assert f"/{len(names)}" in err
    assert f"/{len(names)}" not in out


def test_no_bar_without_a_terminal(tmp_path, capsys):
    demo.run(5, tmp_path)
    assert capsys.readouterr().err == ""


def test_one_row_is_enough(tmp_path, capsys):
    entries = demo.run(1, tmp_path, progress=False)
    assert {entry.average("rank") for entry in entries} == {0.5}  # everything is predicted before anything is learned
    assert "yeast: 1 rows" in capsys.readouterr().out


# ---- what cannot be done is said before the work begins


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 0}, "demo: rows must be a whole number from 1 to 2417, got 0"),
        ({"rows": 2418}, "rows must be a whole number from 1 to 2417, got 2418"),
        ({"seed": -1}, "seed must be a whole number from 0 to 4294967295, got -1"),
        ({"seed": 2**32}, "seed must be a whole number from 0 to 4294967295, got 4294967296"),
        ({"output": __file__}, "output must be a folder to write into, got .*test_demo.py .*; choose another"),
    ],
)
def test_bad_options(tmp_path, monkeypatch, options, message):
    monkeypatch.setattr(demo, "compare", lambda *args: pytest.fail("it began to work"))
    with pytest.raises(InvalidParameter, match=message):
        demo.run(**({"output": tmp_path} | options))


def test_folder_without_permission(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "compare", lambda *args: pytest.fail("it began to work"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InvalidParameter, match="no permission"):
        demo.run(output=tmp_path)


@pytest.mark.parametrize("package", ["matplotlib", "rich", "river"])
def test_missing_extra_is_one_sentence(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError) as caught:
        demo.run(output=tmp_path)
    assert str(caught.value) == f"demo: needs {package}, not installed here; pip install 'csdpp[demo]'"
