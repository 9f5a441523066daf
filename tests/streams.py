"""Small streams that the tests of all learners share: ordinary ones and nasty ones."""

import numpy as np


def correlated(n=60, d=5, K=6, seed=0):
    """Labels from a low-rank linear model with noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    scores = X @ rng.standard_normal((d, 2)) @ rng.standard_normal((2, K)) + 0.5 * rng.standard_normal((n, K))
    return X, (scores > 0.7).astype(int)


def rank_deficient(n=60, seed=1):
    """Repeated features and repeated labels: neither X'X nor the label covariance has full rank."""
    X, Y = correlated(n, 4, 3, seed)
    return np.hstack([X, X[:, :2], np.zeros((n, 1))]), np.hstack([Y, Y])


def constant_labels(n=40, seed=2):
    """One label on all rows, one on none."""
    X, Y = correlated(n, 4, 5, seed)
    Y[:, 0], Y[:, 1] = 1, 0
    return X, Y


def few_kinds(n=50, seed=3):
    """Only two different rows, again and again."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n)
    return np.eye(2)[kind], np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 1]])[kind]


def empty_labels(n=30, seed=4):
    """No label ever."""
    return correlated(n, 4, 5, seed)[0], np.zeros((n, 5), int)


def all_labels(n=30, seed=5):
    """Every label always."""
    return correlated(n, 4, 5, seed)[0], np.ones((n, 5), int)


def zero_rows(n=40, seed=6):
    """Some rows without a single feature."""
    X, Y = correlated(n, 4, 5, seed)
    X[::3] = 0.0
    return X, Y


def one_label(n=40, seed=7):
    """K = 1."""
    return correlated(n, 4, 1, seed)


def unrelated(n=50, seed=8):
    """Labels that the features say nothing about, more features than a block has rows, K = 12."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 15)), (rng.random((n, 12)) < 0.3).astype(int)


STREAMS = {
    stream.__name__: stream
    for stream in (
        correlated,
        rank_deficient,
        constant_labels,
        few_kinds,
        empty_labels,
        all_labels,
        zero_rows,
        one_label,
        unrelated,
    )
}
