"""The benchmark measures what it says: the yardstick predicts what the package predicts, and a small run has it all."""

import json
import sys

import numpy as np
import pytest
from scipy import sparse

from csdpp import CSDPP, OnlineBinaryRelevance, bench
from csdpp.bench import learners, naive, report, streams, worker
from csdpp.bench.runner import Plan, Team, run_cells
from csdpp.datasets import make_stream
from csdpp.errors import InvalidParameter

PEER = """
import numpy as np

class Majority:
    batch = 2
    settings = [{"learning_rate": 1.0}, {"learning_rate": 2.0}]
    made_with = classmethod(lambda cls: "majority 1.0")
    def __init__(self, X, Y, M): self.Y = Y
    def run(self, setting, seconds): return np.zeros(self.Y.shape, bool), 0.5

class Absent(Majority):
    @classmethod
    def made_with(cls): raise ImportError("No module named 'absent'")

LEARNERS = {"majority": Majority, "absent": Absent}
"""


@pytest.fixture(scope="module")
def rows():
    stream = make_stream(150, 9, 12, rank=4, cardinality=3.0, random_state=0)
    return stream.X, np.asarray(stream.Y).astype(bool)


@pytest.mark.parametrize("weighting", ["ordered", "mean"])
@pytest.mark.parametrize("cost", ["f1", "hamming"])
@pytest.mark.parametrize(("basis", "gradient"), [("pbc", False), ("pbt", False), ("pbt", True)])
def test_naive_predicts_what_the_package_predicts(rows, basis, gradient, cost, weighting):
    X, Y = rows
    options = {"basis": basis, "encoder": "feature" if basis == "pbc" else "label", "weighting": weighting}
    ours = CSDPP(4, cost=cost, regressor="gradient" if gradient else "ridge", **options)
    slow = naive.CSDPP(10, 12, 4, cost, basis, naive.Gradient() if gradient else naive.Ridge(10), weighting)
    theirs = naive.run(slow.step, np.hstack([X, np.ones((len(X), 1))]), Y)
    np.testing.assert_array_equal(ours.prequential(X, Y).astype(bool), theirs)
    np.testing.assert_allclose(ours.spectrum_, slow.sigma, atol=1e-9)


def test_naive_relevance_and_sparse_rows(rows):
    X, Y = rows
    one = np.hstack([X, np.ones((len(X), 1))])
    theirs = naive.run(naive.BinaryRelevance(10, 12, naive.Ridge(10)).step, one, Y)
    np.testing.assert_array_equal(OnlineBinaryRelevance().prequential(X, Y).astype(bool), theirs)
    make = [lambda: naive.CSDPP(10, 12, 4, "f1", "pbt", naive.Gradient()) for _ in range(2)]
    whole, parts = make[0](), make[1]()
    np.testing.assert_array_equal(naive.run(whole.step, one, Y), naive.run(parts.step, sparse.csr_array(one), Y))


@pytest.mark.parametrize("batch", [1, 7])
def test_steps_end_with_the_rows_or_the_seconds(batch):
    seen = []
    answers, _ = learners.in_steps(lambda i, j: seen.append((i, j)) or np.zeros((j - i, 3), bool), 20, batch, 9.0)
    assert answers.shape == (20, 3)
    assert seen[0] == (0, batch)
    assert seen[-1][1] == 20
    answers, _ = learners.in_steps(lambda i, j: np.zeros((j - i, 3), bool), 20, batch, 0.0)
    assert len(answers) == batch


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_data_reach_the_worker_as_they_are(rows, kind, tmp_path):
    X, Y = rows
    worker.save_data(tmp_path / "data.npz", kind(X), Y)
    there, labels = worker.load_data(tmp_path / "data.npz")
    assert sparse.issparse(there) == (kind is sparse.csr_array)
    np.testing.assert_array_equal(there.toarray() if sparse.issparse(there) else there, X)
    np.testing.assert_array_equal(labels, Y)


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """One learner of ours and two peers in processes of their own; a second run finds them done."""
    folder = tmp_path_factory.mktemp("bench")
    peers = folder / "peers.py"
    peers.write_text(PEER, encoding="utf-8")
    python = sys.executable
    teams = (
        Team("ours", python, learners.__name__, ("O-BR",)),
        Team("peer", python, str(peers), ("majority", "absent")),
    )
    plan = Plan(("S1",), teams, {"generated": 0.05, "real": 0.05}, {"S1": 200}, 0, None)
    done, kept = [], []
    run_cells(plan, done, lambda text: None, lambda: kept.append(len(done)))
    assert kept == [1, 2, 3]
    run_cells(plan, done, lambda text: None, lambda: kept.append(len(done)))
    assert kept == [1, 2, 3]
    return done


def test_a_cell_has_speed_memory_and_all_losses(cells):
    ours = cells[0]
    assert (ours["stream"], ours["learner"], ours["K"], ours["error"]) == ("S1", "O-BR", 14, None)
    assert len(ours["runs"]) == len(learners.STRENGTHS)
    for run in ours["runs"]:
        assert set(run["losses"]) == set(learners.COSTS)
        assert run["rows"] > 0
        assert run["seconds"] > 0
    stream = streams.load("S1", None, 0, 200)
    answers = OnlineBinaryRelevance(regularization=1.0).prequential(stream.X, stream.Y)
    assert ours["runs"][0]["losses"]["hamming"] == pytest.approx(np.mean(answers != stream.Y), abs=1e-5)


def test_a_peer_that_is_not_there_is_reported(cells):
    assert "No module named 'absent'" in cells[2]["error"]
    text = report.as_markdown({"cells": cells, "limits": {"dgemm_gflops": 50.0}, "made_with": {"python": "3"}})
    assert "absent, S1: ImportError: No module named 'absent'" in text
    assert "| majority, 2 rows at a time |" in text


def loss_cell(learner, kind, loss, share=None):
    runs = [{"setting": {} if share is None else {"n_components": share}, "rows": 10, "seconds": 1.0}]
    runs[0] |= {"losses": {"f1": loss, "accuracy": loss}, "curve": {"f1": [loss], "accuracy": [loss]}}
    return {"stream": "yeast", "learner": learner, "kind": kind, "n": 10, "K": 14, "runs": runs, "error": None}


@pytest.mark.parametrize(("ours", "lowest"), [(0.3, True), (0.5, False)])
def test_verdict(ours, lowest):
    cells = [loss_cell("CS-DPP", "ours", ours, 7), loss_cell("VW", "peer", 0.4), loss_cell("O-BR", "ours", 0.45)]
    found = report.verdict(cells, "yeast", "f1")
    assert (found.lowest, found.other, found.halved) == (lowest, "VW", ours)


def test_streams_are_of_the_stated_sizes():
    stream = streams.load("S2", None, 0, rows=50)
    assert stream.X.shape == (50, 120)
    assert stream.Y.shape == (50, 101)
    with pytest.raises(InvalidParameter, match="sets must be among"):
        streams.load("S9", None, 0)


def test_a_quick_run_writes_its_files(tmp_path, monkeypatch, capsys):
    """The whole of `csdpp bench`, with cells that take no time."""

    def cell(stream, team, learner, plan):
        runs = [{"setting": {"cost": "f1"}, "rows": 10, "seconds": 1.0, "peak": 1, "before": 0}]
        runs[0] |= {"losses": dict.fromkeys(learners.COSTS, 0.5), "curve": {cost: [0.5] for cost in learners.COSTS}}
        sizes = {"n": 10, "d": 3, "K": 4, "batch": 1, "error": None}
        return {"stream": stream.name, "learner": learner, "kind": team.kind, "runs": runs} | sizes

    monkeypatch.setattr(bench.runner, "measure", cell)
    monkeypatch.setattr(bench.runner, "measure_limits", lambda: {"dgemm_gflops": 50.0})
    results = bench.run(tmp_path, sets=["S1"], quick=True, progress=False)
    assert {cell["learner"] for cell in results["cells"]} == set(learners.LEARNERS)
    assert json.loads((tmp_path / "bench.json").read_text()) == results
    assert "## S1: 10 rows" in (tmp_path / "bench.md").read_text()
    assert (tmp_path / "speed-loss-generated.png").stat().st_size > 1000
    assert not (tmp_path / "bench.partial.json").exists()
    assert "Written into" in capsys.readouterr().out
