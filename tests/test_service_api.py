"""What each path of the service takes and gives."""

import json
import threading

import numpy as np
import pytest

pytest.importorskip("fastapi")
from csdpp import CSDPP
from service import FRUIT, JSON, NDJSON, live


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with live(tmp_path_factory.mktemp("store"), **FRUIT) as service:
        yield service


def learn(service, id, red, round_, labels):
    return service.post("/v1/learn", {"id": id, "features": {"red": red, "round": round_}, "labels": labels})


def test_item_is_predicted_answered_and_learned(service):
    status, said = service.post("/v1/predict", {"id": "mail-1", "features": {"red": 0.5}})
    assert status == 200
    assert said["id"] == "mail-1"
    assert set(said) == {"id", "labels", "scores", "version"}
    assert service.get("/v1/items/mail-1")[1]["state"] == "waiting"
    before = service.get("/v1/model")[1]["version"]
    status, learned = service.post("/v1/feedback", {"id": "mail-1", "labels": ["apple"]})
    assert (status, learned["repeated"], learned["version"]) == (200, False, before + 1)
    item = service.get("/v1/items/mail-1")[1]
    assert item["state"] == "learned"
    assert item["features"] == {"red": 0.5}
    assert item["answer"] == {"apple": True}
    assert item["seq"] == learned["seq"]
    assert service.get("/v1/items?limit=1")[1]["items"][0]["id"] == "mail-1"


def test_same_answer_again_changes_nothing_and_another_is_refused(service):
    status, first = learn(service, "again", 1, 0, ["apple"])
    assert status == 200
    assert learn(service, "again", 1, 0, ["apple"])[1] == first | {"repeated": True}
    assert service.post("/v1/feedback", {"id": "again", "labels": ["apple"]})[1]["repeated"]
    assert service.post("/v1/feedback", {"id": "again", "labels": {"apple": True}})[1]["repeated"]
    status, said = service.post("/v1/feedback", {"id": "again", "labels": ["ripe"]})
    assert (status, said["error"]["code"]) == (409, "other_answer")
    status, said = learn(service, "again", 2, 0, ["apple"])
    assert (status, said["error"]["code"]) == (409, "other_features")
    assert service.post("/v1/predict", {"id": "again", "features": {"red": 2}})[0] == 409
    assert service.get("/v1/model")[1]["version"] == first["version"]


def test_arrays_stand_for_names(service):
    learn(service, "names", 0.25, 0.5, ["ripe"])
    status, said = service.post("/v1/learn", {"id": "names", "features": [0.25, 0.5], "labels": ["ripe"]})
    assert (status, said["repeated"]) == (200, True)
    status, said = service.post("/v1/predict", {"features": [1.0]})
    assert (status, said["error"]["code"]) == (422, "wrong_length")


def test_predictions_are_those_of_the_learner(tmp_path):
    """Requests are the batches: the model is the plain learner after one partial_fit a request."""
    rng = np.random.default_rng(0)
    X, Y = rng.random((60, 2)), rng.random((60, 2)) < 0.5
    plain = CSDPP(2)
    with live(tmp_path, **FRUIT) as service:
        for rows in (slice(0, 1), slice(1, 40), slice(40, 60)):
            items = [
                {"features": x.tolist(), "labels": [n for n, holds in zip(FRUIT["labels"], y, strict=True) if holds]}
                for x, y in zip(X[rows], Y[rows], strict=True)
            ]
            assert service.post("/v1/learn", {"items": items})[0] == 200
            plain.partial_fit(X[rows], Y[rows])
        said = service.post("/v1/predict", {"items": [{"features": x.tolist()} for x in X], "keep": False})[1]
    scores = [[item["scores"][name] for name in FRUIT["labels"]] for item in said["items"]]
    assert np.array_equal(scores, plain.decision_function(X))
    assert all(item["labels"] == [n for n, s in item["scores"].items() if s >= 0] for item in said["items"])


def test_predictions_need_not_be_kept_nor_tell_scores(service):
    status, said = service.post("/v1/predict", {"id": "gone", "features": {}, "keep": False, "scores": False})
    assert (status, said["scores"]) == (200, None)
    assert service.get("/v1/items/gone")[0] == 404
    assert service.post("/v1/feedback", {"id": "gone", "labels": []})[0] == 404


def test_request_is_whole_or_not_at_all(service):
    good = {"id": "whole-1", "features": {"red": 1}, "labels": ["apple"]}
    for bad, status in (
        ({"id": "whole-2", "features": {"blue": 1}, "labels": []}, 422),
        ({"id": "whole-2", "features": {"red": 1}, "labels": ["pear"]}, 422),
        ({"id": "whole-1", "features": {"red": 1}, "labels": ["apple"]}, 422),
        ({"id": "whole-2", "features": {"red": 1e9}, "labels": []}, 422),
    ):
        got, said = service.post("/v1/learn", {"items": [good, bad]})
        assert got == status
        assert said["error"]["message"].startswith("item 1: ")
        assert service.get("/v1/items/whole-1")[0] == 404


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("nonsense", 400, "no_json"),
        ('{"features": {"red": NaN}}', 422, "invalid"),
        ('{"features": {"red": "1"}}', 422, "invalid"),
        ('{"features": {"red": true}}', 422, "invalid"),
        ('{"features": {"red": 1}, "more": 1}', 422, "invalid"),
        ('{"features": {"blue": 1}}', 422, "unknown_feature"),
        ('{"features": {"red": 1e300}}', 422, "too_large"),
        ('{"id": "a/b", "features": {}}', 422, "invalid"),
        ('{"id": "", "features": {}}', 422, "invalid"),
        ('{"items": []}', 422, "invalid"),
        ("[]", 422, "invalid"),
        ("[" * 100_000, 400, "no_json"),
        ('{"features": {"\\ud800": 1}}', 400, "no_json"),
        (json.dumps({"items": [{"features": {}}] * 1001}), 413, "too_many_items"),
    ],
)
def test_bad_body_is_refused_in_one_sentence(service, body, status, code):
    got, said = service.ask("POST", "/v1/predict", content=body, headers=JSON)
    assert (got, said["error"]["code"]) == (status, code)
    assert "\n" not in said["error"]["message"]


def test_each_line_of_ndjson_has_an_answer(service):
    good = {"id": "line-1", "features": {"red": 1}, "labels": ["apple"]}
    lines = [good, "nonsense", good | {"id": "line-2", "labels": ["pear"]}, "", good | {"id": "line-3"}, good]
    one, two, three, four, five = service.lines("/v1/learn", lines)
    assert (one["id"], one["repeated"]) == ("line-1", False)
    assert (two["status"], two["error"]["code"]) == (400, "no_json")
    assert (three["status"], three["error"]["code"]) == (422, "unknown_label")
    assert four["seq"] == one["seq"] + 1
    assert five["error"]["code"] == "twice"
    said = service.lines("/v1/predict", [{"id": "line-4", "features": {"red": 1}, "keep": False}, {"features": [1]}])
    assert (said[0]["id"], said[1]["status"]) == ("line-4", 422)
    assert service.get("/v1/items/line-4")[0] == 404


def test_many_lines_are_learned_in_their_order(service):
    before = service.get("/v1/model")[1]["version"]
    lines = [{"id": f"bulk-{i}", "features": {"red": i / 1000}, "labels": ["ripe"]} for i in range(1000)]
    answers = service.lines("/v1/learn", lines)
    assert [answer["seq"] for answer in answers] == list(range(before + 1, before + 1001))
    assert all(answer["repeated"] for answer in service.lines("/v1/learn", lines))
    assert service.get("/v1/model")[1]["version"] == before + 1000


def test_ndjson_may_come_in_any_pieces(service):
    body = b'{"id": "piece-1", "features": {"red": 1}, "labels": []}\n\n{"features": {}, "labels": []}'
    for step in (1, 7, 1000):
        pieces = (body[i : i + step] for i in range(0, len(body), step))
        answer = service.http.post("/v1/learn", content=pieces, headers=NDJSON)
        assert len(answer.text.splitlines()) == 2


def test_models_grow_when_they_may(tmp_path):
    pytest.importorskip("csdpp.growth")
    with live(tmp_path, grow=True, learner={"n_components": 2}, labels=["a", "b"], max_labels=3) as service:
        assert service.post("/v1/predict", {"id": "x", "features": {"one": 1}})[1]["labels"] == []
        assert service.post("/v1/learn", {"features": {"one": 1.0}, "labels": ["a"]})[0] == 200
        assert service.post("/v1/learn", {"features": {"one": 1.0, "two": 2.0}, "labels": ["c"]})[0] == 200
        assert service.post("/v1/feedback", {"id": "x", "labels": {"b": True}})[0] == 200
        status, said = service.post("/v1/learn", {"features": {}, "labels": ["d"]})
        assert (status, said["error"]["code"]) == (422, "too_many_names")
        facts = service.get("/v1/model")[1]
        assert (facts["features"], facts["labels"], facts["version"]) == (["one", "two"], ["a", "b", "c"], 3)
        assert len(service.post("/v1/predict", {"features": {"two": 1}})[1]["scores"]) == 3


def test_metrics_tell_costs_labels_and_latency(tmp_path):
    with live(tmp_path, **FRUIT) as service:
        for _ in range(20):
            service.post("/v1/learn", {"features": {"red": 1}, "labels": ["apple"]})
        facts = service.get("/v1/metrics")[1]
        text = service.http.get("/metrics").text
        status, saved = service.ask("POST", "/v1/checkpoint")
    assert facts["rows"] == facts["version"] == 20
    # Before anything is learned every label is predicted: one of two is wrong, once.
    assert facts["costs"]["hamming"] == pytest.approx(0.5 / 20)
    assert [(one["label"], one["tp"], one["fp"], one["tn"]) for one in facts["labels"]] == [
        ("apple", 20, 0, 0),
        ("ripe", 0, 1, 19),
    ]
    assert facts["curve"][-1][0] == 20
    assert facts["latency"]["/v1/learn"]["requests"] == 20
    assert "csdpp_rows_learned_total 20.0" in text
    assert 'csdpp_answers_total{route="/v1/learn",status="200"} 20.0' in text
    assert (status, saved["seq"]) == (200, 20)


def test_events_come_every_second(service):
    with service.http.stream("GET", "/v1/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        line = next(line for line in stream.iter_lines() if line)
    facts = json.loads(line.removeprefix("data: "))
    assert {"costs", "latency", "items", "labels", "curve"} <= set(facts)


def test_page_of_openapi_tells_every_path_with_examples(service):
    page = service.get("/openapi.json")[1]
    assert set(page["paths"]) >= {"/v1/predict", "/v1/feedback", "/v1/learn", "/v1/items/{id}", "/v1/model"}
    for path in ("/v1/predict", "/v1/feedback", "/v1/learn"):
        content = page["paths"][path]["post"]["requestBody"]["content"]
        assert "application/x-ndjson" in content
        assert set(content["application/json"]["examples"]) == {"one", "many"}
    refs = set(json.dumps(page).split('"#/components/schemas/')[1:])
    assert {ref.partition('"')[0] for ref in refs} <= set(page["components"]["schemas"])


def test_readers_do_not_wait_for_the_writer(tmp_path):
    """While learning is held up, predictions are told by the version published last."""
    with live(tmp_path, **FRUIT) as service:
        assert learn(service, "one", 1, 0, ["apple"])[0] == 200
        go, learn_now = threading.Event(), service.pipeline.learning.learn
        service.pipeline.learning.learn = lambda batch: (go.wait(20), learn_now(batch))
        writer = threading.Thread(target=learn, args=[service, "two", 1, 0, ["apple"]])
        writer.start()
        while not service.pipeline.waiting:
            pass
        for keep in (True, False):
            assert service.post("/v1/predict", {"features": {"red": 1}, "keep": keep})[1]["version"] == 1
        go.set()
        writer.join()
        assert service.post("/v1/predict", {"features": {"red": 1}})[1]["version"] == 2


def test_too_much_is_refused_until_there_is_room(tmp_path):
    with live(tmp_path, max_waiting=10, **FRUIT) as service:
        go, write = threading.Event(), service.pipeline.store.write
        service.pipeline.store.write = lambda *job: (go.wait(20), write(*job))[1]
        items = [{"features": {"red": 1}, "labels": []}] * 8
        first = threading.Thread(target=service.post, args=["/v1/learn", {"items": items}])
        first.start()
        while not service.pipeline.waiting:
            pass
        answer = service.http.post("/v1/learn", content=json.dumps({"items": items}), headers=JSON)
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 30
        assert service.post("/v1/predict", {"features": {}, "keep": False})[0] == 200
        go.set()
        first.join()
        assert service.post("/v1/learn", {"items": items})[0] == 200
