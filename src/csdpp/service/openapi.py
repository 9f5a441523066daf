"""The OpenAPI description: what each path takes and gives, its refusals, and examples."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from csdpp.service import schemas
from csdpp.service.guard import JSON, NDJSON
from csdpp.service.guard import ROUTES as GUARDED

_REF = "#/components/schemas/{model}"
_REFUSALS = {
    400: "The body is not JSON.",
    401: "The token is missing or unknown.",
    403: "The token lacks the scope.",
    404: "There is no such item.",
    405: "The path does not answer this method.",
    408: "The body came too slowly.",
    409: "The item has other features, or was answered otherwise.",
    413: "The body is too large, or has too many items.",
    415: "The body is of another type.",
    421: "Without tokens: Host is not this machine.",
    422: "The body does not fit the schema, or names what the model does not know.",
    429: "Too many rows are waiting; Retry-After tells for how long.",
    503: "Too many requests, no room on the disk, or stopping; Retry-After tells for how long.",
}
_ALWAYS = (405, 421, 503)
_TOKEN = (401, 403)
_BODY = (400, 408, 409, 413, 415, 422, 429)


def _json(model: type[BaseModel] | None) -> dict[str, Any]:
    return {"schema": {"$ref": _REF.format(model=model.__name__)} if model else {}}


def _responses(good: Any, *refusals: int, text: str = "Done.", kind: str = JSON) -> dict[int | str, Any]:
    content = {kind: _json(good) if isinstance(good, type) else {"schema": good}}
    out: dict[int | str, Any] = {200: {"description": text, "content": content}}
    for status in sorted({*refusals, *_ALWAYS}):
        headers = {"Retry-After": {"schema": {"type": "integer"}}} if status in (429, 503) else {}
        out[status] = {
            "description": _REFUSALS[status],
            "headers": headers,
            "content": {JSON: _json(schemas.ErrorBody)},
        }
    return out


def _route(tag: str, summary: str, responses: dict[int | str, Any], **more: Any) -> dict[str, Any]:
    return {"tags": [tag], "summary": summary, "responses": responses, "response_model": None, **more}


def _answer(path: str, summary: str, text: str, one: type[BaseModel], many: type[BaseModel]) -> dict[str, Any]:
    _, _, body, bodies = schemas.BODIES[path]
    either = {"anyOf": [_json(one)["schema"], _json(many)["schema"]]}
    responses = _responses(either, *_TOKEN, *_BODY, *((404,) if path == "/v1/feedback" else ()), text=text)
    responses[200]["content"][NDJSON] = {"schema": {"type": "string", "description": "A line for each line."}}
    example, several = schemas.example(body), schemas.example(bodies)
    request = {
        "required": True,
        "content": {
            JSON: {
                "schema": {"anyOf": [_json(body)["schema"], _json(bodies)["schema"]]},
                "examples": {"one": {"value": example}, "many": {"value": several}},
            },
            NDJSON: {"schema": {"type": "string", "description": f"Lines of {body.__name__}."}},
        },
    }
    return _route("work", summary, responses, openapi_extra={"requestBody": request})


_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
_LIMIT = {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}}
_OBJECT: dict[str, Any] = {"type": "object"}
_TEXT: dict[str, Any] = {"type": "string"}
#: Arguments of FastAPI for each path.
ROUTES: dict[str, dict[str, Any]] = {
    "/v1/predict": _answer(
        "/v1/predict", "Predict items", "What the model says.", schemas.Prediction, schemas.Predictions
    ),
    "/v1/feedback": _answer(
        "/v1/feedback",
        "Learn answers to predicted items",
        "Stored and learned. The same answer again is no error and changes nothing.",
        schemas.Learned,
        schemas.ManyLearned,
    ),
    "/v1/learn": _answer(
        "/v1/learn", "Learn items with labels", "Stored and learned.", schemas.Learned, schemas.ManyLearned
    ),
    "/v1/items/{id}": _route("items", "An item", _responses(schemas.StoredItem, *_TOKEN, 404, 422)),
    "/v1/items": _route(
        "items",
        "The items that came last",
        _responses(schemas.Newest, *_TOKEN, 422),
        openapi_extra={"parameters": [_LIMIT]},
    ),
    "/v1/model": _route("facts", "What is served", _responses(schemas.ModelFacts, *_TOKEN)),
    "/v1/metrics": _route("facts", "How well and how fast it does", _responses(_OBJECT, *_TOKEN)),
    "/v1/events": _route("facts", "The same every second", _responses(_TEXT, *_TOKEN, kind="text/event-stream")),
    "/metrics": _route("facts", "For Prometheus", _responses(_TEXT, *_TOKEN, kind="text/plain")),
    "/v1/checkpoint": _route(
        "admin", "Take a snapshot", _responses(schemas.Snapshot, *_TOKEN, 408, 413, text="On the disk.")
    ),
    "/healthz": _route("facts", "Whether it is up", _responses(schemas.Health)),
    "/readyz": _route("facts", "Whether it can learn", _responses(schemas.Health)),
    "/": _route("facts", "The dashboard", _responses(_TEXT, kind="text/html")),
}


def describe(app: FastAPI) -> None:
    """Let the application describe itself so."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _schema(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _schema(app: FastAPI) -> dict[str, Any]:
    about = "Online multi-label classification: items come in, tags go out, answers are learned at once."
    out = get_openapi(title=app.title, version=app.version, description=about, routes=app.routes)
    models = [(model, "serialization") for model in _models()]
    _, found = models_json_schema(models, ref_template=_REF)  # type: ignore[arg-type]
    components = out.setdefault("components", {})
    components["schemas"] = found["$defs"]
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, methods in out["paths"].items():
        for method, operation in methods.items():
            scope = GUARDED[path][method.upper()]
            operation["security"] = [] if scope is None else [{"token": []}]
            if scope:
                operation["description"] = f"Needs the scope {scope}."
            operation["responses"].pop("422", None) if path == "/v1/items/{id}" else None
    return out


def _models() -> list[type[BaseModel]]:
    found = vars(schemas).values()
    return [one for one in found if isinstance(one, type) and issubclass(one, BaseModel) and one is not BaseModel]
