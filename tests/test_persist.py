"""Models as files: what comes back goes on to the bit, files survive kills, and bad ones are refused."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from csdpp import CSDPP, OnlineBinaryRelevance, OnlineRandomProjection, container, persist
from csdpp.costs import F1, CountCost, Hamming
from csdpp.errors import CsdppError, DataFormatError, InvalidInput, InvalidParameter, MissingData
from csdpp.rates import Constant
from csdpp.tuning import OnlineTuner
from learners import LEARNERS, assert_same_state, data
from streams import correlated

every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())


def asymmetric(tp, fp, fn, tn):
    return (fp + 2 * fn) / (2 * (tp + fp + fn + tn))


# ------------------------------------------------------------------------------------ resumed is uninterrupted


@every_learner
@pytest.mark.parametrize("places", [(1,), (37, 64, 100)], ids=["first row", "several times"])
def test_resumed_equals_uninterrupted(learner, places, tmp_path):
    """Amid blocks, the random state included, saved and loaded again and again."""
    X, Y = data()
    whole, model = clone(learner), clone(learner)
    expected, got = whole.prequential(X, Y), []
    for rows in np.split(np.arange(len(X)), places):
        got.append(model.prequential(X[rows], Y[rows]))
        model.save(tmp_path / "model")
        scores = model.decision_function(X)
        model = type(learner).load(tmp_path / "model")
        np.testing.assert_array_equal(model.decision_function(X), scores)
    # Where the rows are cut changes the blocks and so the last digit; the bits are compared with the same cuts.
    pieces = clone(learner)
    for rows in np.split(np.arange(len(X)), places):
        pieces.partial_fit(X[rows], Y[rows])
    np.testing.assert_array_equal(np.vstack(got), expected)
    assert_same_state(model, pieces)
    assert persist.dumps(model) == persist.dumps(pieces)
    assert (model.n_seen_, model.get_params()) == (len(X), learner.get_params())


@every_learner
@pytest.mark.parametrize(
    "labels",
    [
        np.array(["low", "middle", "high"]),
        np.array([3, 1, 7]),
        np.array([True, False]),
        np.array(["yes", "no"], object),
        np.array([2.0, -1.0], np.float32),
    ],
    ids=["strings", "ints", "bools", "objects", "floats"],
)
def test_classes_come_back(learner, labels):
    X, _ = data()
    y = labels[np.digitize(X[:, 0], np.linspace(-0.5, 0.5, len(labels) - 1))]
    model = clone(learner).partial_fit(X[:70], y[:70])
    twin = persist.loads(persist.dumps(model))
    assert twin.classes_.dtype == model.classes_.dtype
    assert twin.classes_.tolist() == model.classes_.tolist()
    expected, got = model.prequential(X[70:], y[70:]), twin.prequential(X[70:], y[70:])
    np.testing.assert_array_equal(got, expected)
    assert got.dtype == expected.dtype
    assert persist.dumps(twin) == persist.dumps(model)


@pytest.mark.parametrize("kind", [np.bool_, np.uint8, np.int64, np.float32])
def test_formats_come_back(kind):
    X, Y = data()
    model = CSDPP(2).fit(sparse.csr_array(X), sparse.csr_matrix(Y.astype(kind)))
    twin = persist.loads(persist.dumps(model))
    assert sparse.issparse(twin.predict(X))
    assert twin.predict(X).dtype == np.dtype(kind)
    assert (twin.predict(X) != model.predict(X)).nnz == 0


def test_names_come_back():
    X, Y = data()
    X_frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(7)])
    Y_frame = pd.DataFrame(Y, columns=["Grüße", "a b", "", "\x00tail", "日本", "f"])
    model = CSDPP(2).fit(X_frame, Y_frame)
    twin = persist.loads(persist.dumps(model))
    assert twin.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    assert twin.classes_.tolist() == Y_frame.columns.tolist()
    twin.partial_fit(X_frame, Y_frame[Y_frame.columns[::-1]])
    assert_same_state(twin, model.partial_fit(X_frame, Y_frame))
    with pytest.raises(ValueError, match="feature names should match"):
        twin.predict(X_frame[X_frame.columns[::-1]])


@pytest.mark.parametrize("layout", [np.float32, "float32", np.dtype("float64")], ids=str)
def test_parameters_come_back(layout):
    X, Y = data()
    given = {"n_components": np.int64(2), "cost": F1, "dtype": layout, "rate": np.float32(3.0), "forgetting": 0.999}
    model = CSDPP(**given).fit(X, Y)
    twin = persist.loads(persist.dumps(model))
    assert_same_state(twin, model)
    assert (twin.n_components, twin.cost, twin.rate, twin.forgetting) == (2, F1(), 3.0, 0.999)
    assert np.dtype(twin.dtype) == np.dtype(layout)
    assert_same_state(clone(twin).fit(X, Y), model)


def test_unfitted_learners_and_learners_without_rows():
    X, Y = data()
    fresh = persist.loads(persist.dumps(CSDPP(3, rate=4.0)))
    assert fresh.get_params() == CSDPP(3, rate=4.0).get_params()
    assert not hasattr(fresh, "classes_")
    empty = persist.loads(persist.dumps(CSDPP(2).partial_fit(X[:0], Y[:0])))
    assert_same_state(empty.partial_fit(X, Y), CSDPP(2).fit(X, Y))


@pytest.mark.parametrize("learner", [CSDPP.published(2), OnlineRandomProjection(2)], ids=["csdpp", "o-rand"])
def test_a_random_state_that_is_shared_stays_shared(learner):
    """The parameter and the engine draw from one object: a second `fit` depends on what the first has drawn."""
    X, Y = data()
    model = clone(learner).set_params(random_state=np.random.RandomState(5)).fit(X[:50], Y[:50])
    model.random_state.standard_normal()  # leaves the second of a pair behind
    twin = persist.loads(persist.dumps(model))
    np.testing.assert_array_equal(twin.prequential(X[50:], Y[50:]), model.prequential(X[50:], Y[50:]))
    assert_same_state(twin.fit(X, Y), model.fit(X, Y))
    assert twin.random_state.random_sample() == model.random_state.random_sample()


@pytest.mark.parametrize(
    "learner",
    [CSDPP.published(2), CSDPP(2), OnlineRandomProjection(2), OnlineTuner([CSDPP.published(2)])],
    ids=["published", "csdpp", "o-rand", "tuner"],
)
def test_loading_leaves_the_random_state_of_numpy_alone(learner):
    (X, Y), numpys = data(), check_random_state(None)
    numpys.seed(7)
    content = persist.dumps(clone(learner).fit(X[:50], Y[:50]))
    numpys.seed(7)
    expected = clone(learner).fit(X[:50], Y[:50]).prequential(X[50:], Y[50:])
    numpys.seed(1)
    drawn = numpys.random_sample()
    numpys.seed(1)
    model = persist.loads(content)
    assert numpys.random_sample() == drawn
    np.testing.assert_array_equal(model.prequential(X[50:], Y[50:]), expected)


def test_equal_learners_are_equal_files():
    X, Y = data()
    tuned = persist.dumps(OnlineTuner().fit(X, Y))
    check_random_state(None).random_sample()
    assert persist.dumps(OnlineTuner().fit(X, Y)) == tuned
    assert persist.dumps(CSDPP(2).fit(X, Y)) == persist.dumps(CSDPP(2).fit(X, Y))
    assert persist.dumps(CSDPP(2).fit(X, Y)) != persist.dumps(CSDPP(2).fit(X[1:], Y[1:]))


@every_learner
@pytest.mark.parametrize("fitted", ["indicators", "classes"])
def test_every_number_of_the_state_is_saved(learner, fitted):
    """Against another walk: no array and no number of the engine is missing in the file, scratch apart."""
    X, Y = data()
    model = clone(learner).partial_fit(X, Y if fitted == "indicators" else Y[:, 0] + 2 * Y[:, 1])
    header, arrays = container.unpack(persist.dumps(model), "model")
    numbers = {value for value in header["state"].values() if isinstance(value, float)}
    saved = {(array.dtype.str, array.shape, array.tobytes()) for array in arrays}
    found = []

    def walk(node):
        if isinstance(node, np.ndarray):
            found.append(node)
        elif isinstance(node, list | tuple):
            for part in node:
                walk(part)
        elif isinstance(node, dict):
            for part in node.values():
                walk(part)
        elif isinstance(node, np.random.RandomState):
            walk(node.get_state()[1])
        elif isinstance(node, float):
            assert node in numbers
        elif hasattr(node, "__dict__") and not isinstance(node, type):
            walk({k: v for k, v in vars(node).items() if k not in ("work", "_turn", "_limit")})

    walk(model._engine)
    assert found
    for array in found:
        assert (array.dtype.str, array.shape, array.tobytes()) in saved


# ----------------------------------------------------------------------------- functions that no file can hold


def test_a_cost_of_ones_own_is_asked_for(tmp_path):
    X, Y = data()
    model = CSDPP(2, cost=CountCost(asymmetric)).fit(X[:90], Y[:90])
    model.save(tmp_path / "m")
    with pytest.raises(InvalidParameter, match=r"saved with cost 'asymmetric', a function of your own.*load\(path, c"):
        CSDPP.load(tmp_path / "m")
    with pytest.raises(InvalidParameter, match="cost must be the one called 'asymmetric', got 'f1'"):
        CSDPP.load(tmp_path / "m", cost="f1")
    twin = CSDPP.load(tmp_path / "m", cost=CountCost(asymmetric))
    np.testing.assert_array_equal(twin.prequential(X[90:], Y[90:]), model.prequential(X[90:], Y[90:]))
    assert_same_state(twin, model)


def test_rates_come_back_or_are_asked_for(tmp_path):
    X, Y = data()
    model = persist.loads(persist.dumps(CSDPP(2, rate=Constant(0.3)).fit(X[:90], Y[:90])))
    assert model.rate == Constant(0.3)
    assert_same_state(
        model.partial_fit(X[90:], Y[90:]), CSDPP(2, rate=Constant(0.3)).fit(X[:90], Y[:90]).partial_fit(X[90:], Y[90:])
    )
    CSDPP(2, rate=lambda t: 3.0 / t).fit(X, Y).save(tmp_path / "m")
    with pytest.raises(InvalidParameter, match="saved with rate '<lambda>'"):
        CSDPP.load(tmp_path / "m")
    assert CSDPP.load(tmp_path / "m", rate=lambda t: 3.0 / t).partial_fit(X, Y).n_seen_ == 300


def test_parameters_changed_amid_a_stream():
    X, Y = data()
    model = CSDPP(2).fit(X[:50], Y[:50]).set_params(forgetting=0.9).partial_fit(X[50:90], Y[50:90])
    model.set_params(block_size=7, rate=3.0, forgetting=0.95)
    twin = persist.loads(persist.dumps(model))
    assert_same_state(twin.partial_fit(X[90:], Y[90:]), model.partial_fit(X[90:], Y[90:]))


def test_what_the_file_holds_may_not_be_given(tmp_path):
    CSDPP(2).save(tmp_path / "m")
    with pytest.raises(InvalidParameter, match="cost must be left out, the file holds it"):
        CSDPP.load(tmp_path / "m", cost=Hamming())


def test_what_cannot_be_saved_is_said():
    class Mine(CSDPP):
        pass

    with pytest.raises(InvalidInput, match=r"can save CSDPP, .*, got Mine"):
        persist.dumps(Mine())
    with pytest.raises(InvalidParameter, match="random_state must be MT19937 to be saved, got PCG64"):
        persist.dumps(CSDPP(random_state=np.random.RandomState(np.random.PCG64(1))))
    with pytest.raises(InvalidInput, match="extra must be numbers, strings or arrays to be saved, got object"):
        persist.dumps(CSDPP(), extra={"a": object()})


# ------------------------------------------------------------------------------------------ inspect and extra


def test_inspect(tmp_path):
    X, Y = data()
    model = CSDPP(2, cost="accuracy").fit(X, pd.DataFrame(Y, columns=list("abcdef")))
    extra = {"rows": 12, "who": ("me", None), "nan": float("nan"), 3: {1, 2}, "array": np.arange(3)}
    persist.save(model, tmp_path / "m", extra=extra)
    told = persist.inspect(tmp_path / "m")
    assert (told["class"], told["format"], told["n_seen"], told["n_features"]) == ("CSDPP", persist.FORMAT, 150, 7)
    assert told["parameters"]["cost"] == "accuracy"
    assert told["labels"].tolist() == list("abcdef")
    assert told["state"]["regressor.W"] == "float64 (8, 6)"
    assert told["bytes"] == (tmp_path / "m").stat().st_size
    assert told["extra"].pop("array").tolist() == [0, 1, 2]
    assert np.isnan(told["extra"].pop("nan"))
    assert told["extra"] == {"rows": 12, "who": ("me", None), 3: {1, 2}}


def test_wrong_class_and_wrong_path(tmp_path):
    OnlineBinaryRelevance().save(tmp_path / "m")
    with pytest.raises(DataFormatError, match="holds a OnlineBinaryRelevance, and CSDPP was asked for"):
        CSDPP.load(tmp_path / "m")
    assert isinstance(persist.load(tmp_path / "m"), OnlineBinaryRelevance)
    with pytest.raises(MissingData, match="there is no such file"):
        CSDPP.load(tmp_path / "nothing")
    with pytest.raises(DataFormatError, match="must be a file, and is a folder"):
        CSDPP.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        CSDPP().save(tmp_path / "no" / "folder")


# -------------------------------------------------------------------------------------------- whole or not at all


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_save_that_fails_leaves_the_old_file(step, tmp_path, monkeypatch):
    X, Y = data()
    path = tmp_path / "m"
    model = CSDPP(2).fit(X[:50], Y[:50])
    model.save(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    if step == "write":
        pieces = persist.pack(*persist._describe(model.fit(X, Y), None))
        monkeypatch.setattr(persist, "pack", lambda *_: [*pieces[:3], "no bytes"])
        error = TypeError
    else:
        monkeypatch.setattr(os, step, fail)
        error = OSError
    with pytest.raises(error):
        model.fit(X, Y).save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]


def test_files_have_the_usual_rights_and_links_stay(tmp_path):
    CSDPP().save(tmp_path / "real")
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "real").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "link").symlink_to(tmp_path / "real")
    CSDPP(3).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert CSDPP.load(tmp_path / "real").n_components == 3


def test_killed_at_any_moment_leaves_a_whole_file(tmp_path):
    """SIGKILL, again and again, while a process does nothing but save ever newer states."""
    path = tmp_path / "m"
    code = f"""
        import numpy as np
        from csdpp import OnlineBinaryRelevance
        X = np.random.default_rng(0).standard_normal((4000, 300))
        model = OnlineBinaryRelevance()
        while True:
            model.partial_fit(X[:1], X[:1, :40] > 0)
            model.save({str(path)!r})
            print(model.n_seen_, flush=True)
    """
    rng = np.random.default_rng(1)
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
        for _ in range(int(rng.integers(1, 4))):
            lines = [process.stdout.readline()]
        try:
            process.wait(timeout=float(rng.uniform(0.0, 0.02)))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
        lines += process.stdout.read().splitlines(keepends=True)
        process.stdout.close()
        done = int([line for line in lines if line.endswith(b"\n")][-1])
        assert done <= persist.load(path).n_seen_ <= done + 1  # whole: the last one announced, or the one after it


# ------------------------------------------------------------------------------------------------ bad files


@pytest.fixture(scope="module")
def good():
    X, Y = data()
    return persist.dumps(CSDPP.published(2, random_state=0).fit(X, pd.DataFrame(Y, columns=list("abcdef"))))


def refused(content):
    """Loading gives the one error and takes little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(DataFormatError) as caught:
            persist.loads(content)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000 + 20 * len(content)
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_cut_short_at_any_place(good):
    for size in [*range(60), *range(60, len(good), 97), len(good) - 1]:
        refused(good[:size])


def test_any_bit_turned(good):
    for place in [*range(52), *np.random.default_rng(0).integers(0, len(good), 200).tolist()]:
        turned = bytearray(good)
        turned[place] ^= 1 << (place % 8)
        refused(bytes(turned))


def test_more_than_a_file(good):
    refused(good + b"\0")
    refused(good + good)


@given(st.binary(max_size=200))
def test_random_bytes(content):
    refused(content)
    refused(container.MAGIC + content)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["$array", "$dtype", "$objects", "$random", "$dict", "$cost", "x"]), inner)
    ),
    max_leaves=5,
)


def with_header(content, change):
    """The same arrays under another header, checksum and all."""
    header, arrays = container.unpack(content, "good")
    described = header.pop("arrays")
    header = json.loads(json.dumps(header))
    change(header)
    packed = container.pack(header, arrays)
    if "arrays" in header or not described:
        return None
    return b"".join(packed)


def places_in(node, path=()):
    yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from places_in(value, (*path, key))


def put(header, path, value):
    node = header
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value


@given(st.data(), JUNK)
def test_headers_that_say_anything_are_refused_or_make_a_sound_model(good, choice, junk):
    """Well-formed files by somebody who knows the format: an error of ours, or a model that can predict and learn."""
    header, _ = container.unpack(good, "good")
    del header["arrays"]
    path = choice.draw(st.sampled_from([p for p in places_in(header) if p]))
    content = with_header(good, lambda header: put(header, path, junk))
    X, Y = data(20)
    try:
        model = persist.loads(content)
    except CsdppError:
        return
    if hasattr(model, "classes_") and hasattr(model, "_engine"):
        with np.errstate(all="ignore"):
            for call in (lambda: model.predict(X), lambda: model.partial_fit(X, Y)):
                with contextlib.suppress(CsdppError, ValueError, TypeError):
                    call()


@every_learner
def test_every_array_of_another_shape_or_type_is_refused(learner):
    """The compiled code trusts shapes: none of the state may come in another one, whoever wrote the file."""
    X, Y = data()
    content = persist.dumps(clone(learner).fit(X, Y))
    header, arrays = container.unpack(content, "good")
    del header["arrays"]
    used = [value["$array"] for value in header["state"].values() if isinstance(value, dict) and "$array" in value]
    assert used
    for i in used:
        others = [arrays[i][:-1], np.concatenate([arrays[i], arrays[i]]), arrays[i][None], arrays[i].astype(np.float16)]
        others += [arrays[i][:, :-1]] if arrays[i].ndim == 2 and arrays[i].size else []
        for other in others:
            if other.shape == arrays[i].shape and other.dtype == arrays[i].dtype:
                continue
            refused(b"".join(container.pack(header, [*arrays[:i], other, *arrays[i + 1 :]])))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.update(format=99), r"is of format 99, and this csdpp reads up to \d+; upgrade csdpp"),
        (lambda h: h.update(format="1"), "must give the version of its format"),
        (lambda h: h.update({"class": "os.system"}), "must hold one of CSDPP, "),
        (lambda h: h["parameters"].update(cost={"$cost": "system"}), "the header holds what cannot be read"),
        (lambda h: h["parameters"].update(rate=-1.0), r"do not fit together \(CSDPP: rate must be a positive number"),
        (lambda h: h["parameters"].update(n_components=10**9), "do not fit together"),
        (lambda h: h["parameters"].update(bogus=1), "the parameters must be those of CSDPP"),
        (lambda h: h["fitted"].update(n_features_in_=10**12), "features and labels must be counted"),
        (lambda h: h["fitted"].update(predict=1), "a learner has no fitted predict"),
        (lambda h: h["state"].pop("clock"), "clock is missing"),
        (lambda h: h["state"].update({"encoder.basis.more": 1}), "there is no place for encoder.basis.more"),
        (lambda h: h["state"].update({"K": 7}), "K must be 6 with these parameters, got 7"),
        (lambda h: h["state"].update({"recipe.cost": 77}), "recipe.cost must be"),
        (lambda h: h["targets"].update(kind="many"), "labels cannot be 'many'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(good, change, message):
    with pytest.raises(DataFormatError, match=message):
        persist.loads(with_header(good, change))


def test_counters_that_compiled_code_trusts(good):
    header, arrays = container.unpack(good, "good")
    del header["arrays"]
    i = header["state"]["encoder.basis.counts"]["$array"]
    for place in range(5):
        for wrong in (-1, 10**6):
            if (place, wrong) == (2, 10**6):
                continue  # many updates are fine
            counts = arrays[i].copy()
            counts[place] = wrong
            refused(b"".join(container.pack(header, [*arrays[:i], counts, *arrays[i + 1 :]])))


def test_strings_that_are_none(good):
    header, arrays = container.unpack(good, "good")
    del header["arrays"]
    content = bytearray(b"".join(container.pack(header, arrays)))
    place = content.rindex("ab".encode("utf-32-le"))
    content[place : place + 4] = b"\xff\xff\xff\x7f"
    content[16:48] = hashlib.sha256(content[48:]).digest()
    with pytest.raises(DataFormatError, match="strings must be Unicode"):
        persist.loads(bytes(content))


def test_deep_and_long_json_is_refused():
    for text in (b"[" * 100_000, b'{"format":' + b"1" * 100_000 + b"}", b'{"arrays": [{"dtype":"O"}]}', b"[]"):
        body = container._PREFIX.pack(container.MAGIC, len(text), hashlib.sha256(text).digest()) + text
        refused(body)


# ---- files of every version

STORED = sorted(Path(__file__).with_name("stored").glob("*.csdpp"))


@pytest.mark.parametrize("path", STORED, ids=[path.stem for path in STORED])
def test_stored_files_give_the_predictions_they_must_give(path):
    """Each has learned the first 60 rows of a stream, and tells beside it what it answered on the others."""
    X, Y = correlated(120, 5, 6, 21)
    model = persist.load(path)
    assert model.n_seen_ == 60
    expected = persist.inspect(path)["extra"]
    np.testing.assert_array_equal(model.prequential(X[60:], Y[60:]), expected)
    grown = persist.loads(persist.dumps(persist.load(path).add_labels(1)))
    answers = grown.predict(X)
    assert answers.shape == (120, 7)
    decoded = path.stem.endswith(("rand", "o-cs"))  # a label more out of the same codes
    assert decoded or not answers[:, 6].any()


def test_a_file_of_every_version_is_stored():
    assert {int(path.stem.split("-")[0]) for path in STORED} == set(range(1, persist.FORMAT + 1))


@pytest.mark.parametrize("path", STORED, ids=[path.stem for path in STORED])
def test_chances_begin_afresh_where_a_file_knows_none(path):
    X, Y = correlated(120, 5, 6, 21)
    model = persist.load(path)
    assert model._engine.calibration.sums.any() == (persist.inspect(path)["format"] >= 3)
    model.partial_fit(X[60:], Y[60:])
    again = persist.loads(persist.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_what_a_file_of_this_version_must_have_is_not_made_up(good):
    with pytest.raises(DataFormatError, match=r"calibration\.sums is missing"):
        persist.loads(with_header(good, lambda header: header["state"].pop("calibration.sums")))
