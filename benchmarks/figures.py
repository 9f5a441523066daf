"""Every figure that the design promises on the real data sets, computed anew.

    python benchmarks/figures.py [--published FILE] [--record]

A stream is the rows of a set in random order, features scaled to [0, 1] over the set. `Dataset.permuted` gets the
seeds 0, 1, ... and a sampling learner the same seed. An expected figure is the mean of the first two; the spread
over all of them says how far such a mean may lie from another. FILE holds the paper's tables (columns table,
dataset, algorithm, share_of_K_percent, noise, cost, mean): means of 15 permutations that nobody knows any more.

Readings of the paper that the package does not offer are measured with `plain`, a loop over rows in plain NumPy.
Left out is the set with K = 45, which could not be had.
"""

import argparse
import csv
import json
import os
import platform
import sys
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from csdpp import CSDPP, OnlineBinaryRelevance
from csdpp.costs import resolve_cost
from csdpp.datasets import load_named

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / os.environ.get("CSDPP_DATA", "../shared/data")
PAGE = ROOT / "docs" / "figures.md"
RESULTS = ROOT / "benchmarks" / "results" / "figures.json"
TOLERANCE = 0.01


# ---------------------------------------------------------------------- readings that the package does not offer


def plain(X, Y, M, cost, *, seed, follow="Q", start="zero", signs="random", divide=1.0):
    """What the published recipe predicts for each row before it learns it, under other readings of the paper.

    Parameters
    ----------
    follow : "Q", "P" or "none"
        What the regressor is carried to after each step: all held directions (the package's "pbt"), the M sampled
        ones (algorithm 1 to the letter), or nothing.
    start : "zero", "orthonormal", "at once" or "for ever"
        Of U: the package's; M random directions with sigma = 1; the first M that come, with sigma = 1; the first
        M + 1, which then keep sigma = 1.
    signs : "random", "continued" or "positive"
        Of the directions: coin tosses; the largest coordinate in the old basis positive, so that a direction that
        hardly moves keeps its sign; a product with the example that is not negative.
    divide : number by which the label vector v is divided
    """
    X = np.hstack([X, np.ones((len(X), 1))])
    Y = Y.astype(bool)
    d, K = X.shape[1], Y.shape[1]
    cost, rng = resolve_cost(cost), np.random.RandomState(seed)
    held = M if start == "orthonormal" else 0
    Q, sigma = np.linalg.qr(rng.standard_normal((K, held)))[0].T, np.ones(held)
    full = start in ("orthonormal", "at once")
    rows, decoded = Q, np.arange(held)  # what the codes of W refer to, and which of them are decoded
    S, W = np.eye(d), np.zeros((d, held))  # A^-1 for lambda = 1
    Y_hat = np.empty(Y.shape, bool)
    for t, (x, y, y_hat) in enumerate(zip(X, Y, Y_hat, strict=True), 1):
        y_hat[:] = rows[decoded].T @ (W.T @ x)[decoded] >= 0.0
        v = np.sqrt(cost.weights(y, y_hat)) * np.where(y, 1.0, -1.0) / divide
        Q, lam = take_in(Q, sigma, M, v, 2.0 / np.sqrt(t) * M / K, signs, rng)
        full = full or (start == "zero" and np.minimum(lam, 1.0).sum() >= M)
        sigma = project(lam, M) if full else np.minimum(lam, 1.0) if start == "zero" else np.ones(len(lam))
        keep = sample(sigma, full, M, rng.random_sample())
        old = rows
        rows, decoded = (Q[keep], np.arange(len(keep))) if follow == "P" else (Q, keep)
        if follow == "none":
            W = np.hstack([W, np.zeros((d, len(rows) - len(old)))])
        else:
            W = W @ (old @ rows.T)
        Sx = S @ x
        g = Sx / (1.0 + x @ Sx)
        S -= np.outer(g, Sx)
        W = W - np.outer(g, W.T @ x - rows @ v)
    return Y_hat


def take_in(Q, sigma, M, v, eta, signs, rng):
    """Directions and eigenvalues of U + eta v v', the M + 1 largest."""
    r = Q @ v
    rest = v - Q.T @ r
    rest -= Q.T @ (Q @ rest)
    length = np.linalg.norm(rest)
    if length > 1e-10 * np.linalg.norm(v) and len(Q) < len(v):
        Q, sigma, r = np.vstack([Q, rest / length]), np.append(sigma, 0.0), np.append(r, length)
    lam, V = np.linalg.eigh(np.diag(sigma) + eta * np.outer(r, r))
    lam, V = lam[::-1][: M + 1], V[:, ::-1][:, : M + 1]
    if signs == "random":
        turned = rng.random_sample(len(lam)) < 0.5
    elif signs == "continued":
        turned = V[np.abs(V).argmax(axis=0), np.arange(len(lam))] < 0.0
    else:
        turned = V.T @ r < 0.0
    return np.where(turned, -V, V).T @ Q, lam


def project(sigma, M):
    """sum(clip(sigma - tau, 0, 1)) = M, with tau read off between the points where the sum bends."""
    bends = np.sort(np.concatenate([sigma - 1.0, sigma]))
    total = np.clip(sigma - bends[:, None], 0.0, 1.0).sum(axis=1)
    return np.clip(sigma - np.interp(M, total[::-1], bends[::-1]), 0.0, 1.0)


def sample(sigma, full, M, u):
    """Which directions are decoded: all, all but the weakest of M + 1, or all but the one that u draws (lemma 1)."""
    held = np.arange(len(sigma))
    if len(sigma) <= M:
        return held
    if not full:
        return held[:-1]
    chances = np.cumsum(1.0 - sigma)
    return np.delete(held, np.searchsorted(chances, u * chances[-1], side="right"))


# ------------------------------------------------------------------------------------------------ what is run


def published(M, cost, **options):
    """The paper's recipe."""

    def predict(data, seed):
        model = CSDPP.published(M, cost=cost, random_state=seed, **options)
        return model.prequential(data.X, data.Y)

    return predict


def defaults(M, cost, **options):
    """The package's own."""
    return lambda data, seed: CSDPP(M, cost=cost, **options).prequential(data.X, data.Y)


def reading(M, cost, **options):
    """Another reading of the paper."""
    return lambda data, seed: plain(data.X, data.Y, M, cost, seed=seed, **options)


def relevance(data, seed):
    """O-BR."""
    return OnlineBinaryRelevance().prequential(data.X, data.Y)


def permuted(data, seed):
    """Features scaled, rows in random order."""
    return scaled(data).permuted(seed)


def unscaled(data, seed):
    """Rows in random order."""
    return data.permuted(seed)


def in_file_order(data, seed):
    """Features scaled."""
    return scaled(data)


def relabelled(data, seed):
    """One order of the rows, many orders of the labels."""
    data = permuted(data, 0)
    return replace(data, Y=data.Y[:, np.random.default_rng(seed).permutation(data.Y.shape[1])])


def noisy(data, seed):
    """The generator that permuted the rows then hides each relevant label with probability 0.7."""
    data, rng = permuted(data, seed), np.random.default_rng(seed)
    rng.permutation(len(data.Y))
    Y = data.Y.copy()
    Y[data.Y == 1] = rng.random(np.count_nonzero(data.Y)) >= 0.7
    return replace(data, Y=Y)


@cache
def load(name, root):
    """A set as it is, dense."""
    data = load_named(name, root)
    dense = {part: getattr(data, part) for part in ("X", "Y")}
    return replace(data, **{part: m.toarray() if sparse.issparse(m) else m for part, m in dense.items()})


@cache
def scaled(data):
    """With features in [0, 1]."""
    return data.scaled()


# ---------------------------------------------------------------------------------------------------- figures


class Figure(NamedTuple):
    """A cell of a table: what is run, what is measured, what is expected. A recipe's name is unique."""

    table: str
    stream: str
    M: int
    recipe: str
    loss: str
    predict: Any  # (data, seed) -> predictions (n, K); None in a record
    expected: float | None = None
    algorithm: str = ""  # as the published tables call it
    prepare: Any = permuted  # (data, seed) -> data
    seeds: int = 2  # of which the expected figure is the mean


class Measured(NamedTuple):
    """A figure, its loss for each seed, and the published one as it is printed, empty if there is none."""

    figure: Figure
    losses: list[float]
    published: str = ""

    @property
    def ours(self):
        """The mean over as many seeds as the expected figure has."""
        return float(np.mean(self.losses[: self.figure.seeds]))

    @property
    def mean(self):
        """Over all seeds."""
        return float(np.mean(self.losses))

    @property
    def spread(self):
        """Standard deviation of one seed."""
        return float(np.std(self.losses, ddof=1))

    @property
    def difference(self):
        """Ours less the expected figure, as both are printed; 0 if none is expected."""
        return 0.0 if self.figure.expected is None else round(round(self.ours, 3) - self.figure.expected, 3)

    @property
    def deviations(self):
        """How far the expected figure is from the mean over all seeds, in standard deviations of a mean like it."""
        return (self.figure.expected - self.mean) / (self.spread / np.sqrt(self.figure.seeds))

    @property
    def agrees(self):
        """Within 0.01."""
        return abs(self.difference) <= TOLERANCE

    @property
    def within_spread(self):
        """No further off than two means of that many seeds are from each other in 99 of 100 cases."""
        return abs(self.difference) <= 2.6 * self.spread * np.sqrt(2.0 / self.figure.seeds)


LOSSES = ("hamming", "f1", "accuracy", "rank_published")

#: What was chosen because it agrees: the design gives these figures without saying how they came about.
NOTES = """
The design does not say how all of its figures were run. Where it is silent, several readings were tried and the
closest one was taken, so there the agreement confirms less:

* permutations: of two ways to seed them, one meets the 18 figures of "The defaults" to three digits. The design's four
  weightings and four regularisations come from other permutations: its two figures for the same run differ there too;
* hidden labels: the closest of fourteen ways to draw them;
* scene's labels in random order: PBC rather than PBT; in file order: the closest of some thirty recipes, PBC with the
  expected decoder. As published, PBC gives 0.313 there and PBT 0.460;
* no intercept: features as they are. Scaled to [0, 1], an intercept makes no difference;
* v / sqrt(K): from an orthonormal start. From U = 0 the extra factor costs next to nothing.

The draws of the sampled decoder and of the other readings are ours, so those figures agree up to chance.
"""


def figures():
    """All of them, table by table."""
    for table, rows in (
        ("The published recipe", published_recipe()),
        ("The published recipe with PBC: two weightings", published_weightings()),
        ("The defaults", default_recipe()),
        ("The defaults: four weightings", default_weightings()),
        ("The defaults: four regularisations", regularizations()),
        ("From the published recipe to the defaults", one_change_at_a_time()),
        ("O-BR, relevant labels hidden with p = 0.7", label_noise()),
        ("Other readings of the paper", other_readings()),
        ("None: whose signs the directions have", signs_of_none()),
        ("The order of labels and of rows", orders()),
    ):
        for row in rows:
            yield Figure(table, *row)


def published_recipe():
    expected = {
        ("yeast", 2): (0.227, 0.432, 0.563, 0.003),
        ("yeast", 4): (0.217, 0.397, 0.511, 0.015),
        ("yeast", 7): (0.210, 0.388, 0.501, 0.023),
        ("emotions", 1): (0.328, 0.443, 0.556, 0.112),
        ("emotions", 2): (0.281, 0.395, 0.509, 0.019),
        ("emotions", 3): (0.221, 0.378, 0.483, 0.013),
        ("CAL500", 18): (0.142, 0.593, 0.738, 0.073),
        ("scene", 2): (0.184, 0.664, 0.756, 0.153),
        ("scene", 3): (0.179, 0.595, 0.693, 0.097),
    }
    for (stream, M), row in expected.items():
        for loss, value in zip(LOSSES, row, strict=True):
            yield stream, M, "PBT", loss, published(M, loss), value, "CS-DPP-PBT"
        yield stream, M, "PBC", "hamming", published(M, "hamming", basis="pbc"), None, "CS-DPP-PBC"
    yield "yeast", 2, "PBT", "rank", published(2, "rank"), 0.27, "CS-DPP-PBT"


def published_weightings():
    expected = {
        ("CAL500", 18): ((0.592, 0.737, 0.074), (0.602, 0.751, 0.115)),
        ("yeast", 2): ((0.432, 0.560, 0.003), (0.427, 0.541, 0.006)),
        ("yeast", 4): ((0.396, 0.511, 0.015), (0.390, 0.505, 0.025)),
        ("scene", 2): ((0.654, 0.743, 0.147), (0.634, 0.741, 0.147)),
        ("scene", 3): ((0.584, 0.680, 0.097), (0.566, 0.664, 0.099)),
    }
    recipes = {"PBC": "ordered", "PBC, shapley": "shapley"}
    for (stream, M), rows in expected.items():
        for (recipe, weighting), row in zip(recipes.items(), rows, strict=True):
            for loss, value in zip(LOSSES[1:], row, strict=True):
                predict = published(M, loss, basis="pbc", weighting=weighting)
                yield stream, M, recipe, loss, predict, value, "CS-DPP-PBC"


def default_recipe():
    expected = {
        ("yeast", 2): (0.210, 0.386, 0.500),
        ("emotions", 1): (0.234, 0.415, 0.526),
        ("emotions", 2): (0.222, 0.385, 0.490),
        ("scene", 2): (0.155, 0.531, 0.614),
        ("scene", 3): (0.138, 0.448, 0.516),
        ("CAL500", 18): (0.142, 0.591, 0.735),
    }
    for (stream, M), row in expected.items():
        for loss, value in zip(LOSSES[:3], row, strict=True):
            yield stream, M, "defaults, ordered", loss, defaults(M, loss, weighting="ordered"), value
        for loss in LOSSES[1:3]:
            yield stream, M, "defaults, mean", loss, defaults(M, loss)


def default_weightings():
    weightings = ("ordered", "shapley", "marginal", "mean")
    expected = {
        ("scene", 3): ((0.446, 0.513), (0.467, 0.536), (0.449, 0.546), (0.453, 0.521)),
        ("yeast", 4): ((0.382, 0.496), (0.384, 0.497), (0.369, 0.485), (0.376, 0.489)),
        ("emotions", 2): ((0.386, 0.482), (0.383, 0.484), (0.376, 0.476), (0.382, 0.477)),
        ("CAL500", 18): ((0.597, 0.739), (0.600, 0.751), (0.554, 0.705), (0.575, 0.732)),
    }
    for (stream, M), rows in expected.items():
        for weighting, row in zip(weightings, rows, strict=True):
            for loss, value in zip(LOSSES[1:3], row, strict=True):
                predict = defaults(M, loss, weighting=weighting)
                yield stream, M, f"defaults, {weighting}", loss, predict, value


def regularizations():
    expected = {
        ("scene", 6): (0.394, 0.361, 0.329, 0.329),
        ("enron", 6): (0.566, 0.519, 0.464, 0.454),
        ("yeast", 7): (0.384, 0.374, 0.373, 0.381),
        ("emotions", 3): (0.375, 0.360, 0.403, 0.427),
    }
    for (stream, M), row in expected.items():
        for strength, value in zip((0.1, 1.0, 10.0, 30.0), row, strict=True):
            predict = defaults(M, "f1", regularization=strength)
            yield stream, M, f"defaults, lambda {strength:g}", "f1", predict, value


def one_change_at_a_time():
    steps = {
        "PBC": {},
        "+ mean reference": {"reference": "mean"},
        "+ expected decoder": {"decode": "expected"},
        "+ feature encoder": {"encoder": "feature"},
        "+ rate 10": {"rate": 10.0},
        "+ mean weights": {"weighting": "mean"},
    }
    for stream, M in (("yeast", 2), ("emotions", 2), ("scene", 3), ("CAL500", 18)):
        for loss in LOSSES[:2]:
            options = {"basis": "pbc"}
            for recipe, step in steps.items():
                options |= step
                algorithm = "CS-DPP-PBC" if recipe == "PBC" else ""
                yield stream, M, recipe, loss, published(M, loss, **options), None, algorithm


def label_noise():
    expected = {("scene", 6): (0.054, 0.316, 0.846), ("yeast", 14): (0.091, 0.739, None)}
    for (stream, K), row in expected.items():
        for loss, value in zip(("hamming", "f1", "rank_published"), row, strict=True):
            yield stream, K, "O-BR", loss, relevance, value, "O-BR", noisy


def other_readings():
    letter = "algorithm 1 to the letter"
    expected = {("yeast", 7): (0.273, 0.471), ("emotions", 3): (0.301, 0.481), ("scene", 3): (0.191, 0.718)}
    for (stream, M), row in expected.items():
        for loss, value in zip(LOSSES[:2], row, strict=True):
            yield stream, M, letter, loss, reading(M, loss, follow="P"), value, "CS-DPP-PBT"
    for M in (6, 14, 27):
        yield "enron", M, "PBT", "hamming", published(M, "hamming"), None, "CS-DPP-PBT"
    starts = {
        "orthonormal": "orthonormal start",
        "at once": "first M at one",
        "for ever": "first M + 1 at one for ever",
    }
    for start, recipe in starts.items():
        for stream, M in (("yeast", 4), ("scene", 3), ("CAL500", 18), ("enron", 6), ("enron", 14), ("enron", 27)):
            predict = reading(M, "hamming", start=start)
            yield stream, M, recipe, "hamming", predict, None, "CS-DPP-PBT"
    recipe, start = "orthonormal start", {"start": "orthonormal"}
    yield "CAL500", 18, recipe, "f1", reading(18, "f1", **start), 0.615, "CS-DPP-PBT"
    divide = {"divide": np.sqrt(14.0)}
    yield "yeast", 2, "v / sqrt(K)", "f1", reading(2, "f1", **divide), None, "CS-DPP-PBT"
    recipe = "v / sqrt(K), orthonormal start"
    yield "yeast", 2, recipe, "f1", reading(2, "f1", **divide, **start), 0.516, "CS-DPP-PBT"
    predict = published(4, "hamming", fit_intercept=False)
    yield "yeast", 4, "no intercept", "hamming", predict, None, "CS-DPP-PBT"
    recipe = "no intercept, features not scaled"
    yield "yeast", 4, recipe, "hamming", predict, 0.446, "CS-DPP-PBT", unscaled


def signs_of_none():
    expected = {
        ("yeast", 4): (0.508, 0.482, 0.304),
        ("emotions", 2): (0.498, 0.443, 0.471),
        ("scene", 2): (0.501, 0.187, 0.201),
    }
    for (stream, M), row in expected.items():
        for signs, value in zip(("random", "continued", "positive"), row, strict=True):
            predict = reading(M, "hamming", follow="none", signs=signs)
            if signs == "random":  # this one the package offers
                predict = published(M, "hamming", basis="none")
            yield stream, M, f"none, signs {signs}", "hamming", predict, value, "CS-DPP-None"


def orders():
    for basis in ("pbc", "pbt"):
        for loss, value in (("f1", 0.565), ("accuracy", 0.655)):
            recipe, value = f"{basis.upper()}, labels in random order", value if basis == "pbc" else None
            yield "scene", 3, recipe, loss, published(3, loss, basis=basis), value, "", relabelled, 15
    for recipe, value, options in (
        ("PBC, rows in file order", None, {"basis": "pbc"}),
        ("PBC, rows in file order, expected decoder", 0.30, {"basis": "pbc", "decode": "expected"}),
        ("PBT, rows in file order", None, {"basis": "pbt"}),
    ):
        yield "scene", 3, recipe, "f1", published(3, "f1", **options), value, "", in_file_order


# ------------------------------------------------------------------------------------------ running and writing


def measure(figure, seeds, root=DATA, look_up=lambda figure: ""):
    """The losses of a figure for seeds 0, 1, ..., to the five digits that are recorded."""
    data, cost = load(figure.stream, root), resolve_cost(figure.loss)
    losses = []
    for seed in range(max(seeds, figure.seeds)):
        stream = figure.prepare(data, seed)
        losses.append(round(float(cost.loss(stream.Y, figure.predict(stream, seed)).mean()), 5))
    return Measured(figure, losses, look_up(figure))


def published_figures(path):
    """A function that gives the published value of a figure as it is printed."""
    with path.open(newline="", encoding="utf-8") as file:
        cells = {tuple(row[k] for k in ("table", "dataset", "algorithm", "cost")): row for row in csv.DictReader(file)}
    labels = {"yeast": 14, "emotions": 6, "CAL500": 174, "scene": 6, "enron": 53}

    def look_up(figure):
        loss = "rank" if figure.loss.startswith("rank") else figure.loss
        tables = ["noise_comp_p70"]
        if figure.algorithm != "O-BR":
            K = labels[figure.stream] if figure.algorithm else 0
            tables = [f"pb_comp_m{share}" for share in (10, 25, 50) if -(-share * K // 100) == figure.M]
        found = [cells.get((table, figure.stream, figure.algorithm, loss)) for table in tables]
        return next((row["mean"] for row in found if row), "")

    return look_up


def as_markdown(measured, made_with):
    """The page of all tables."""
    expected = [m for m in measured if m.figure.expected is not None]
    apart = [m for m in expected if not m.agrees]
    lines = [
        "# Figures",
        "",
        "```sh",
        "python benchmarks/figures.py --published tables.csv --record",
        "```",
        "",
        "writes this page and [its data](../benchmarks/results/figures.json); what is run stands at the top of",
        "[the script](../benchmarks/figures.py), why in [maths.md](maths.md). Without the paper's tables the last",
        "column stays empty.",
        "",
        "* expected: what the design says, the mean of two permutations where nothing else is stated;",
        "* ours: the mean over the same number of permutations, the first ones;",
        "* all: mean and standard deviation of one permutation, over all of them;",
        "* published: the paper's figure for this stream, cost and algorithm, whatever the recipe of the row.",
        "",
        f"{len(expected) - len(apart)} of {len(expected)} expected figures are met within {TOLERANCE}. "
        + ("The others:" if apart else ""),
        "",
    ]
    for m in apart:
        f = m.figure
        lines += [
            f"* {f.stream}, M = {f.M}, {f.recipe}, {f.loss.replace('_', ' ')}: {m.difference:+.3f}, "
            f"{'within' if m.within_spread else '**beyond**'} the spread of such means "
            f"({m.mean:.3f} over all permutations: the expected {f.expected:.3f} is {abs(m.deviations):.1f} standard "
            f"deviations off)"
        ]
    lines += NOTES.splitlines()
    table = None
    for m in measured:
        f = m.figure
        if f.table != table:
            table = f.table
            lines += ["", f"## {table}", ""]
            lines += ["| stream, M | recipe | loss | expected | ours | difference | all | published |"]
            lines += ["|---|---|---|---|---|---|---|---|"]
        expected = "" if f.expected is None else f"{f.expected:.3f}"
        difference = "" if f.expected is None else f"{m.difference:+.3f}"
        cells = [f"{f.stream}, {f.M}", f.recipe, f.loss.replace("_", " "), expected, f"{m.ours:.3f}", difference]
        lines += ["| " + " | ".join([*cells, f"{m.mean:.3f} ± {m.spread:.3f}", m.published]) + " |"]
    lines += ["", "## Made with", "", *(f"* {name}: {value}" for name, value in made_with.items()), ""]
    return "\n".join(lines)


def as_json(measured, made_with):
    """All of it, a line a figure."""
    rows = []
    for m in measured:
        row = {key: value for key, value in m.figure._asdict().items() if key not in ("predict", "prepare")}
        rows.append(json.dumps(row | {"losses": m.losses, "published": m.published}))
    figures = ",\n    ".join(rows)
    return f'{{\n  "made_with": {json.dumps(made_with)},\n  "figures": [\n    {figures}\n  ]\n}}\n'


def from_json(text):
    """What `as_json` wrote: (measured, made_with)."""
    content = json.loads(text)
    measured = []
    for row in content["figures"]:
        losses, printed = row.pop("losses"), row.pop("published")
        measured.append(Measured(Figure(**row, predict=None), losses, printed))
    return measured, content["made_with"]


def circumstances(seeds):
    """What a figure may depend on."""
    packages = ("csdpp", "numpy", "scipy", "numba", "scikit-learn")
    return {
        "permutations": f"seeds 0 to {seeds - 1}",
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        "machine": f"{platform.system()} {platform.machine()}, {processor()}, one thread",
    }


def processor():
    """Its name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets (default: CSDPP_DATA)")
    parser.add_argument("--published", type=Path, help="the paper's tables, a CSV file")
    parser.add_argument("--seeds", type=int, default=10, help="permutations, at least 2 (default: %(default)s)")
    parser.add_argument("--only", default="", help="only tables whose title holds this text")
    parser.add_argument("--record", action="store_true", help=f"write {PAGE.name} and {RESULTS.name}")
    options = parser.parse_args()
    if options.record and options.only:
        parser.error("--record writes all tables; leave --only out")
    look_up = published_figures(options.published) if options.published else lambda figure: ""
    measured = []
    with threadpool_limits(1):
        for figure in figures():
            if options.only in figure.table:
                if sys.stderr.isatty():
                    print(f"\r{len(measured)} figures", end="", file=sys.stderr, flush=True)
                measured.append(measure(figure, options.seeds, options.data, look_up))
    made_with = circumstances(options.seeds)
    page = as_markdown(measured, made_with)
    print(page)
    if options.record:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(as_json(measured, made_with), encoding="utf-8")
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
