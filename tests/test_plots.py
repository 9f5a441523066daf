"""The picture of running costs: what is on it, that it is written, and what is refused."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from csdpp import CSDPP, OnlineBinaryRelevance
from csdpp.calibration import reliability
from csdpp.errors import InvalidParameter
from csdpp.evaluate import prequential
from csdpp.plots import plot_costs, plot_reliability


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    Y = (X @ rng.standard_normal((4, 6)) > 0.5).astype(int)
    return {
        "O-BR $1": prequential(OnlineBinaryRelevance(), X, Y, bound=True),
        "CS-DPP": prequential(CSDPP(3), X, Y, bound=True, checkpoints=50),
    }


def test_lines_are_the_curves(results):
    figure = plot_costs(results)
    assert [panel.get_title(loc="left") for panel in figure.axes] == [
        "Hamming loss",
        "F1 loss",
        "accuracy loss",
        "rank loss",
    ]
    for panel, cost in zip(figure.axes, ("hamming", "f1", "accuracy", "rank"), strict=True):
        for line, result in zip(panel.get_lines(), results.values(), strict=True):
            t = result.checkpoints[result.checkpoints >= 3]  # from the first hundredth on
            assert line.get_xdata().tolist() == t.tolist()
            assert line.get_ydata().tolist() == result.curves[cost][-len(t) :].tolist()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [r"O-BR \$1", "CS-DPP"]


def test_first_rows_do_not_stretch_the_axis(results):
    figure = plot_costs(results, "f1")
    low, high = figure.axes[0].get_ylim()
    late = np.concatenate([r.curves["f1"][r.checkpoints >= 15] for r in results.values()])
    assert low < late.min() < late.max() < high
    assert high - low < 1.2 * np.ptp(late)
    assert high < max(r.curves["f1"].max() for r in results.values())


def test_panels(results):
    for costs, shape in [(["f1"], (1, 1)), (["f1", "rank"], (1, 2)), (["f1", "rank", "prediction_error"], (2, 2))]:
        figure = plot_costs(results, costs)
        assert len(figure.axes) == len(costs)
        assert figure.axes[0].get_gridspec().get_geometry() == shape
        assert figure.get_size_inches().tolist() == [6.0, 4.0]
    assert figure.axes[2].get_title(loc="left") == "prediction error"


def test_many_lines_stay_apart_and_inside(results):
    many = {f"a learner with a name, number {i}": r for i, r in enumerate([*results.values()] * 8)}
    figure = plot_costs(many, ["f1", "hamming"])
    styles = {(line.get_color(), str(line._dash_pattern)) for line in figure.axes[0].get_lines()}
    assert len(styles) == 16
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width


def test_neighbours_differ_in_lightness_or_dashes(results):
    """In grey, as from a printer, lines are told apart by their dashes."""
    figure = plot_costs({str(i): results["CS-DPP"] for i in range(4)}, "f1")
    lines = figure.axes[0].get_lines()
    assert len({str(line._dash_pattern) for line in lines}) == 4
    assert len({to_rgb(line.get_color()) for line in lines}) == 4


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_saved_by_suffix(results, name, start, tmp_path):
    plot_costs(results, path=tmp_path / name)
    plot_costs(results, path=str(tmp_path / name))
    assert (tmp_path / name).read_bytes().startswith(start)


def test_no_rows(results):
    empty = prequential(OnlineBinaryRelevance(), np.zeros((0, 2)), np.zeros((0, 3)))
    plot_costs({"nothing": empty}).draw_without_rendering()


def test_leaves_pyplot_alone():
    code = """
import sys, numpy as np
from csdpp import OnlineBinaryRelevance, evaluate, plots
assert "matplotlib" not in sys.modules
result = evaluate.prequential(OnlineBinaryRelevance(), np.eye(3), np.eye(3))
plots.plot_costs({"a": result}).draw_without_rendering()
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"plot_costs needs matplotlib; pip install 'csdpp\[plots\]'"):
        plot_costs(results)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"results": {}}, "results must hold at least one result, got none"),
        ({"costs": "f2"}, "costs must be curves that all results have .*hamming.*, got 'f2'"),
        ({"costs": []}, r"got \[\]; evaluate all with the same costs"),
        ({"path": "costs.bmp"}, "path must end in .png, .svg or .pdf, got 'costs.bmp'"),
    ],
)
def test_refusals(results, arguments, message):
    with pytest.raises(InvalidParameter, match=message):
        plot_costs(**({"results": results} | arguments))


# ---------------------------------------------------------------------------------------------- reliability


def test_reliability_is_drawn_as_measured(tmp_path):
    found = reliability([[1, 0], [1, 1]], [[0.9, 0.1], [0.95, 0.4]], bins=4)
    figure = plot_reliability({"a $1": found, "b": found}, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000
    assert [panel.get_title(loc="left") for panel in figure.axes] == [r"a \$1, ECE 0.212", "b, ECE 0.212"]
    line = figure.axes[0].get_lines()[1]
    np.testing.assert_array_equal(line.get_xdata(), found.chance)
    np.testing.assert_array_equal(line.get_ydata(), found.frequency)


@pytest.mark.parametrize(
    ("given", "message"),
    [(({},), "at least one result"), (({"a": reliability([[1]], [[1.0]])}, "a.txt"), r"must end in \.png, \.svg")],
)
def test_what_cannot_be_drawn_is_said(given, message):
    with pytest.raises(InvalidParameter, match=message):
        plot_reliability(*given)
