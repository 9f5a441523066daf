"""Experiments: what the TOML files say, what a run computes, results that survive a kill, verdicts, the page."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from csdpp import CSDPP, OnlineBinaryRelevance, cli, experiments
from csdpp.costs import resolve_cost
from csdpp.datasets import load, load_river_yeast, make_stream
from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.experiments import claims, runner, spec, tables, work
from csdpp.experiments.literal import predict_literally
from csdpp.experiments.store import Store

ALL = spec.experiments()


def a_run(**options):
    return spec.Run(**({"measure": "prequential", "data": "yeast", "learner": "obr"} | options))


def an_outcome(run, **losses):
    made = {"version": "0", "python": "3", "numpy": "2", "at": "now"}
    return work.Outcome(run.key, losses or {"f1": 0.5}, {"t": [1.0, 2.0], "f1": [0.7, 0.5]}, {"N": 2}, 0.1, made)


# ---- experiments as data


def test_every_published_figure_has_its_cell():
    """Of the large sets only the times can be compared: their streams are generated."""
    asked = []
    for experiment in ALL:
        for cell in experiment.cells(experiment.sets, repeats=1, seed=0):
            if cell.line.reading in (None, "ordered") and (found := tables.look_up(experiment, cell)) is not None:
                asked.append(found)
    wanted = [p for key, p in tables.published().items() if key[0] != "large-data"]
    assert sorted(asked) == sorted(wanted)


def test_learners_and_options_of_all_lines_exist():
    for experiment in ALL:
        for cell in experiment.cells(experiment.sets, repeats=1, seed=0):
            run = cell.runs[0]
            if run.learner not in ("literal", "naive", "br", "one-vs-rest", "chain") and "dense" not in run.options:
                model = work.make(run)
                if hasattr(model, "_check_options"):
                    model._check_options()


def test_repeats_seeds_and_orders():
    (orders,) = spec.experiments(["orders"])
    cell = next(orders.cells(["yeast"], repeats=15, seed=2))
    assert [run.order for run in cell.runs] == list(range(50))
    assert {run.stream_seed for run in cell.runs} == {2000}
    (cost,) = spec.experiments(["cost"])
    cell = next(cost.cells(["yeast"], repeats=3, seed=2))
    assert [run.stream_seed for run in cell.runs] == [2000, 2001, 2002]


def test_a_run_that_serves_several_cells_is_computed_once():
    (noise,) = spec.experiments(["noise"])
    cells = list(noise.cells(["yeast"], repeats=2, seed=0))
    assert len(cells) == 3 * 4 * 4
    assert len(spec.unique_runs(cells)) == 3 * 4 * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('title = "T"\ncolour = "red"\n[[lines]]\nname = "L"\nlearner = "obr"', "got colour"),
        ('title = "T"\n[[lines]]\nname = "L"\nlearner = "obr"\nshades = 2', "line L: unknown shades"),
    ],
)
def test_unknown_words_are_refused(text, message):
    with pytest.raises(InvalidParameter, match=message):
        spec.parse("toy", text)


def test_unknown_names_are_refused():
    with pytest.raises(InvalidParameter, match=r"experiments must be some of noise, large, .*, got noises"):
        spec.experiments(["noises"])
    with pytest.raises(InvalidParameter, match=r"sets must be some of cal500, .*, got moon"):
        experiments.sets_at_hand(ALL, ["moon"])


# ---- what a run computes


def yeast(seed):
    data = load_river_yeast()
    low, high = data.X.min(axis=0), data.X.max(axis=0)
    order = np.random.default_rng(seed).permutation(len(data.X))
    return ((data.X - low) / (high - low))[order], data.Y[order]


@pytest.mark.parametrize(
    ("options", "model"),
    [
        ({}, OnlineBinaryRelevance()),
        ({"learner": "published", "share": 0.1, "cost": "f1"}, CSDPP.published(0.1, random_state=7)),
        ({"learner": "defaults", "share": 0.5, "cost": "accuracy"}, CSDPP(0.5, cost="accuracy")),
    ],
)
def test_a_run_is_the_learner_on_the_permuted_set(options, model):
    outcome = work.execute(a_run(repeat=7, **options))
    assert outcome.error is None
    X, Y = yeast(7)
    Y_hat = model.prequential(X, Y)
    for cost in work.MEASURED:
        assert outcome.losses[cost] == pytest.approx(resolve_cost(cost).loss(Y, Y_hat).mean(), abs=1e-12)
        assert outcome.curves[cost][-1] == pytest.approx(outcome.losses[cost], abs=1e-6)
    assert outcome.curves["t"][-1] == 2417


def test_noise_hides_positives_only():
    clean, noisy = work.prepared("yeast", 3), work.prepared("yeast", 3, noise=0.3)
    assert (noisy.X == clean.X).all()
    assert not ((noisy.Y == 1) & (clean.Y == 0)).any()
    assert (noisy.Y.sum() / clean.Y.sum()) == pytest.approx(0.7, abs=0.02)


def test_label_orders_keep_the_rows():
    plain, turned = work.prepared("yeast", 0), work.prepared("yeast", 0, order=4)
    assert (plain.X == turned.X).all()
    back = [turned.label_names.index(name) for name in plain.label_names]
    assert (turned.Y[:, back] == plain.Y).all()
    assert turned.label_names != plain.label_names


def test_sub_sampling_comes_after_the_permutation():
    few, many = work.prepared("yeast", 5, rows=100), work.prepared("yeast", 5)
    assert (many.X[:100] == few.X).all()


def test_the_letter_is_the_package_where_nothing_is_dropped():
    """M = K: all directions are held, and the sampled P is the whole of Q."""
    X, Y = yeast(0)
    X, Y = X[:300], Y[:300]
    expected = CSDPP.published(14, cost="f1", random_state=0).prequential(X, Y)
    assert (predict_literally(X, Y, 14, "f1", 0) == expected).all()


def test_a_failing_run_says_so():
    outcome = work.execute(a_run(learner="published", share=99, cost="f1"))
    assert outcome.error is not None
    assert outcome.error.startswith("InvalidParameter: ")


@pytest.mark.parametrize("learner", ["one-vs-rest", "chain", "plst", "cplst", "defaults"])
def test_batch_methods_learn_two_thirds(learner):
    share = None if learner in ("one-vs-rest", "chain") else 0.5
    losses = work.execute(a_run(measure="split", learner=learner, share=share, cost="f1")).losses
    assert 0.3 < losses["f1"] < 0.5
    assert losses["seconds"] > 0


# ---- results that survive


def test_a_result_is_kept_once(tmp_path):
    run = a_run()
    with Store(tmp_path / "r.sqlite") as store:
        store.add(run, an_outcome(run, f1=0.4))
        store.add(run, an_outcome(run, f1=0.9))
    with Store(tmp_path / "r.sqlite") as store:
        assert store.keys() == {run.key}
        assert store.results()[run.key].losses == {"f1": 0.4}
        assert store.curves([run.key], "f1") == [([1.0, 2.0], [0.7, 0.5])]


def test_another_file_is_refused(tmp_path):
    (tmp_path / "r.sqlite").write_text("not a database, but long enough to be read as one" * 50)
    with pytest.raises(InvalidInput, match=r"r\.sqlite must be a file of results or absent, got another file"):
        Store(tmp_path / "r.sqlite")


def test_what_fails_is_reported_and_tried_again(tmp_path):
    runs = [a_run(repeat=i) for i in range(3)]

    def flaky(run):
        return an_outcome(run)._replace(error="boom" if run.repeat == 1 else None)

    with Store(tmp_path / "r.sqlite") as store:
        failed = runner.run_all(runs, store, spread=runner.mapped(1), function=flaky)
        assert [f.key for f in failed] == [runs[1].key]
        assert store.keys() == {runs[0].key, runs[2].key}
        called = []
        runner.run_all(runs, store, spread=runner.mapped(1), function=lambda run: called.append(run) or an_outcome(run))
        assert called == [runs[1]]


def test_another_spread_takes_the_place_of_processes(tmp_path):
    """In whatever order results come."""
    runs = [a_run(repeat=i) for i in range(5)]
    with Store(tmp_path / "r.sqlite") as store:
        runner.run_all(runs, store, spread=lambda f, todo: [f(r) for r in reversed(todo)], function=an_outcome)
        assert store.keys() == {run.key for run in runs}


_COMMAND = "import sys; from csdpp.cli import main; sys.exit(main(sys.argv[1:]))"


def test_killed_at_any_point_it_goes_on(tmp_path):
    """kill -9 of the whole command amid its runs, twice; then nothing is lost, doubled or computed again."""
    command = ["reproduce", "--only", "cost", "noise", "--sets", "yeast", "--repeats", "2", "--jobs", "1"]
    command = [sys.executable, "-c", _COMMAND, *command, "--output", str(tmp_path)]
    path = tmp_path / "results.sqlite"

    def rows():
        if not path.exists():
            return {}
        try:
            with sqlite3.connect(path, timeout=10) as connection:
                return dict(connection.execute("SELECT key, made_at || seconds FROM runs"))
        except sqlite3.OperationalError:  # the tables are not there yet
            return {}

    before = {}
    for _ in range(2):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            deadline = time.monotonic() + 120
            while len(rows()) < len(before) + 10 and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        after = rows()
        assert before.items() <= after.items()
        before = after
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    chosen = spec.experiments(["cost", "noise"])
    runs = spec.unique_runs([c for e in chosen for c in e.cells(["yeast"], 2, 0)])
    after = rows()
    assert before.items() <= after.items()
    assert set(after) == {run.key for run in runs}
    assert f"{len(before):,} of {len(runs):,} runs" in done.stderr
    with sqlite3.connect(path) as connection:
        counted = connection.execute("SELECT count(*), count(DISTINCT key || cost) FROM losses").fetchone()
    assert counted == (len(runs) * len(work.MEASURED),) * 2


# ---- verdicts


def a_figure(mean, published, printed=0.001, error=0.0, table="cs_comp_m10", **options):
    cell = spec.Cell("cost", spec.Line("L", "obr", published="L"), "yeast", 0.1, 0.0, "f1", ())
    there = None if published is None else tables.Published(table, published, printed)
    return tables.Figure(replace(cell, **options), mean, error, error, 3, there)


@pytest.mark.parametrize(
    ("mean", "published", "errors", "verdict"),
    [
        (0.50, 0.51, (0, 0), "agree"),
        (0.50, 0.53, (0, 0), "better"),
        (0.53, 0.50, (0, 0), "worse"),
        (0.53, 0.50, (0.0, 0.011), "agree"),
        (0.53, 0.50, (0.011, 0.0), "agree"),
        (0.53, None, (0, 0), ""),
    ],
)
def test_verdicts(mean, published, errors, verdict):
    assert a_figure(mean, published, printed=errors[1], error=errors[0]).verdict == verdict


def test_label_orders_print_deviations():
    assert tables.Published("cost_order_full", 0.5, 0.05).error == pytest.approx(0.05 / 50**0.5)


def test_orderings_count_pairs_that_differ():
    lines = [spec.Line(name, "obr", published=name) for name in "abc"]
    figures = [
        a_figure(mean, published, line=line)
        for mean, published, line in zip([0.1, 0.3, 0.2], [0.1, 0.2, 0.3], lines, strict=True)
    ]
    assert tables.orderings(figures) == {"cs_comp_m10": tables.Orderings(2, 3)}
    near = [a_figure(0.1, 0.1, line=lines[0]), a_figure(0.2, 0.1005, line=lines[1])]
    assert tables.orderings(near) == {}


def test_a_claim_is_true_in_nine_of_ten():
    def claim(better):
        lines = {name: spec.Line(name, "obr", published=name) for name in ("CS-DPP", "DPP")}
        found = []
        for i in range(10):
            place = {"cost": "f1", "share": (i + 1) / 10}
            found.append(a_figure(0.1 if i < better else 0.3, None, line=lines["CS-DPP"], **place))
            found.append(a_figure(0.2, None, line=lines["DPP"], **place))
        return next(c for c in claims.claims(found, "ordered") if "better than DPP" in c.sentence)

    assert (claim(9).verdict, claim(9).holds, claim(9).cases) == (True, 9, 10)
    assert claim(8).verdict is False
    assert claim(8).sentence.startswith("CS-DPP is better than DPP")
    assert claim(8).exceptions == (
        "yeast 90 % F1 loss (0.300 against 0.200)",
        "yeast 100 % F1 loss (0.300 against 0.200)",
    )


# ---- the page


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduction")
    only = ["noise", "basis", "cost", "defaults"]
    report = experiments.reproduce(folder, only=only, sets=["yeast"], repeats=2, jobs=1, progress=False)
    return report, folder


def test_yeast_is_reproduced(reported):
    report, _ = reported
    count = report.counts
    assert count["all"] >= 100
    assert count["agree"] >= 0.8 * count["all"]
    assert count["agree"] + count["better"] >= 0.9 * count["all"]
    assert report.pairs.hold >= 0.9 * report.pairs.all


def test_the_page_needs_nothing_else(reported):
    page = (reported[1] / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    assert not re.search(r'(src|href)="(?!#)', page.replace("xlink:href", "")), "something is fetched"
    assert "@import" not in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert "prefers-color-scheme: dark" in page


def test_the_page_and_the_summary_have_the_figures(reported):
    report, folder = reported
    figure = next(f for s in report.sections for t in s.tables for row in t.rows for f in row.figures if f.published)
    text = f"{figure.mean:.4f} ± {figure.error:.4f} ({figure.published.mean:.4f}"
    assert text in (folder / "report.md").read_text(encoding="utf-8")
    recorded = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert recorded["counts"] == report.counts
    assert {claim["verdict"] for claim in recorded["claims"]} <= {True, False, None}
    assert any(f["mean"] == round(figure.mean, 6) for f in recorded["figures"])


def test_deviations_are_all_explained_or_said_not_to_be(reported):
    report, _ = reported
    strays = report.counts["better"] + report.counts["worse"]
    assert sum(len(group) for _, group in report.deviations) == strays


def test_a_second_call_computes_nothing(reported, monkeypatch):
    _, folder = reported
    monkeypatch.setattr(runner, "execute", None)
    again = experiments.reproduce(folder, only=["cost"], sets=["yeast"], repeats=2, jobs=1, progress=False)
    assert again.facts["failures"] == []


@pytest.mark.parametrize("name", ["all.csv", "all.parquet"])
def test_export_has_a_row_for_each_run_and_cost(reported, tmp_path, name):
    polars = pytest.importorskip("polars")
    with Store(reported[1] / "results.sqlite") as store:
        store.export(tmp_path / name)
        results = store.results()
    read = polars.read_csv if name.endswith("csv") else polars.read_parquet
    frame = read(tmp_path / name)
    assert len(frame) == sum(len(result.losses) for result in results.values())
    assert {"version", "seed", "key", "measured", "loss"} <= set(frame.columns)
    with (
        Store(reported[1] / "results.sqlite") as store,
        pytest.raises(InvalidParameter, match=r"end in \.parquet or \.csv"),
    ):
        store.export(tmp_path / "all.txt")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "costs"], "reproduce: experiments must be some of"),
        (["--sets", "moon"], "reproduce: sets must be some of"),
        (["--repeats", "0"], "reproduce: repeats must be a whole number at least 1, got 0"),
    ],
)
def test_errors_of_the_command(arguments, message, capsys, tmp_path):
    assert cli.main(["reproduce", "--output", str(tmp_path), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_time_left():
    clock = runner.Clock({"a": 1.0, "b": 3.0}, known=2)
    assert clock.line() == "2 of 4 runs"
    clock.start -= 60
    clock.done("a")
    assert clock.line() == "3 of 4 runs, 1:00 spent, about 3:00 left"


def test_stand_in_is_never_called_by_the_real_name():
    (large,) = spec.experiments(["large"])
    assert all(load(name, n=10).name.endswith("-like") for name in large.sets[:1])
    assert all(name.endswith("-like") for name in large.sets)


def test_times_are_compared_as_ratios():
    """The paper has 105.18 s for O-BR and 21.49 s for PBT on delicious: 4.9 times."""

    def claim(ours, other):
        found = []
        for name, mean in (("DPP-PBT", ours), ("O-BR", other)):
            line = spec.Line(f"{name}, one row at a time", "obr")
            place = {"experiment": "large", "data": "delicious-like", "cost": "ms_per_row", "line": line}
            found.append(a_figure(mean, None, **place))
        return next(
            c for c in claims.claims(found, "ordered") if c.sentence == "delicious: PBT is 4.9 times as fast as O-BR."
        )

    assert claim(1.0, 5.0).verdict is True
    assert claim(1.0, 4.8).verdict is False
    assert "On the stand-in 4.8 (one row at a time) times" in claim(1.0, 4.8).counted


def test_results_are_of_one_moment(tmp_path):
    """While another process writes, a reader must not see losses of runs that it has not seen."""
    runs = [a_run(repeat=i) for i in range(2)]
    with Store(tmp_path / "r.sqlite") as writer, Store(tmp_path / "r.sqlite") as reader:
        writer.add(runs[0], an_outcome(runs[0]))
        reader.connection.execute("BEGIN")
        assert len(reader._results()) == 1
        writer.add(runs[1], an_outcome(runs[1]))
        assert len(reader._results()) == 1
        reader.connection.rollback()
        assert len(reader.results()) == 2


@pytest.mark.parametrize(
    ("learner", "options"),
    [
        ("published", {"basis": "pbt", "regressor": "gradient"}),
        ("published", {"basis": "pbt", "regressor": "gradient", "block_size": 1, "dense": True}),
        ("obr", {"regressor": "gradient"}),
        ("naive", {"basis": "pbt"}),
        ("naive", {"basis": "binary relevance"}),
    ],
)
def test_timed_runs_on_sparse_streams(monkeypatch, learner, options):
    """The way of running changes the time, not the losses of O-BR and PBT in blocks or one by one."""
    stream = make_stream(40, 30, 8, density=0.2, random_state=0)
    monkeypatch.setattr(work, "prepared", lambda *args: stream)
    share, cost = (None, None) if learner == "obr" or "binary relevance" in options.values() else (3, "hamming")
    outcome = work.execute(
        a_run(measure="timed", learner=learner, options=json.dumps(options), share=share, cost=cost, data="eurlex-like")
    )
    assert outcome.error is None
    assert outcome.losses["ms_per_row"] == pytest.approx(1e3 * outcome.losses["seconds"] / 40)
    assert 0 < outcome.losses["hamming"] < 0.6
