"""Effects of features are the slopes of the scores; directions and related labels by name."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from csdpp import CPLST, CSDPP, PLST, OnlineBinaryRelevance, OnlineRandomProjection, explain
from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.tuning import OnlineTuner
from learners import LEARNERS, data

LINEAR = {name: learner for name, learner in LEARNERS.items() if not name.startswith("o-cs")}
LINEAR |= {"auto": CSDPP(2, regularization="auto"), "plst": PLST(2), "cplst": CPLST(2), "all": CSDPP(6)}
LINEAR |= {"tuner": OnlineTuner([CSDPP(2), OnlineBinaryRelevance()]), "o-rand-6": OnlineRandomProjection(6)}


@pytest.mark.parametrize("learner", LINEAR.values(), ids=LINEAR.keys())
def test_effects_are_the_slopes_of_the_scores(learner):
    X, Y = data()
    X = X * 10.0
    model = clone(learner).fit(X, Y)
    zero = model.decision_function(np.zeros((1, 7)))
    slopes = (model.decision_function(np.eye(7)) - zero).T
    found = explain.effects(model)
    np.testing.assert_allclose(found, slopes, atol=1e-5 if found.dtype == np.float32 else 1e-10)
    np.testing.assert_allclose(explain.effects(model, [4, 1]), slopes[[4, 1]], atol=1e-5)


def test_by_name():
    X, Y = data()
    names = [f"word {i}" for i in range(7)]
    tags = list("abcdef")
    model = CSDPP(2).fit(pd.DataFrame(X, columns=names), pd.DataFrame(Y, columns=tags))
    found = explain.top_features(model, "c", 3)
    slopes = explain.effects(model, ["c"])[0]
    assert [name for name, _ in found] == [names[i] for i in np.argsort(-np.abs(slopes))[:3]]
    assert [value for _, value in found] == [slopes[names.index(name)] for name, _ in found]
    scale = np.zeros(7)
    scale[5] = 2.0
    assert explain.top_features(model, "c", 3, scale=scale) == [("word 5", 2.0 * slopes[5])]
    assert explain.top_features(model, "c", 1, names=range(7))[0][0] == np.argmax(np.abs(slopes))


def test_directions_and_related_labels():
    X, Y = data()
    model = CSDPP(2).partial_fit(X, Y, classes=list("abcdef"))
    found = explain.direction_labels(model, 0, 6)
    loadings = dict(zip("abcdef", model.directions_[0], strict=True))
    assert dict(found) == loadings
    assert [abs(value) for _, value in found] == sorted(map(abs, loadings.values()), reverse=True)
    U = model.directions_.T @ np.diag(model.spectrum_) @ model.directions_
    size = np.sqrt(np.diag(U))
    expected = dict(zip("abcdef", (U / np.outer(size, size))[1], strict=True))
    got = dict(explain.related_labels(model, "b", 10))
    assert got.keys() == set("acdef")
    np.testing.assert_allclose(list(got.values()), [expected[name] for name in got], atol=1e-12)
    assert explain.related_labels(PLST(2).fit(X, Y), 0, 1)[0][0] in range(1, 6)


def test_what_cannot_be_is_said():
    X, Y = data()
    model = CSDPP(2).fit(X, Y)
    with pytest.raises(InvalidParameter, match="label must be one of classes_, got 'x'"):
        explain.top_features(model, "x")
    with pytest.raises(InvalidParameter, match=r"names must be of the 7 features, got shape \(2,\)"):
        explain.top_features(model, 0, names=["a", "b"])
    with pytest.raises(InvalidParameter, match="direction must be a whole number from 0 to 2, got 3"):
        explain.direction_labels(model, 3)
    with pytest.raises(InvalidParameter, match="n must be a whole number at least 1"):
        explain.related_labels(model, 0, 0)
    with pytest.raises(InvalidInput, match="decodes label by label"):
        explain.effects(clone(LEARNERS["o-cs"]).fit(X, Y))
    with pytest.raises(InvalidInput, match="has no directions; use CSDPP or PLST"):
        explain.direction_labels(OnlineBinaryRelevance().fit(X, Y), 0)
    for fresh in (CSDPP(), PLST()):
        with pytest.raises(InvalidInput, match="is not fitted yet"):
            explain.related_labels(fresh, 0)
    with pytest.raises(InvalidInput, match="model must be a learner of this package"):
        explain.effects(pd.Series([1], name="classes_").to_frame().assign(classes_=1))
