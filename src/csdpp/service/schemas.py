"""What requests and answers look like: pydantic models, which are the OpenAPI description too."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter, ValidationError

from csdpp.service.rows import Refused

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Id = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9_<][!-.0-~]{0,199}$", description="1 to 200 visible ASCII characters without slash"),
]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
FeaturesIn = Annotated[
    dict[Name, Number] | list[Number],
    Field(description="By name, those left out being 0; or an array in the order of `GET /v1/model`."),
]
LabelsIn = Annotated[
    list[Name] | dict[Name, Annotated[bool, Field(strict=True)]],
    Field(description="All labels that hold; or, if only some are known, which of these hold and which do not."),
]

_RED = {"red": 0.7, "round": 1.0}
_ONE = {"id": "mail-17", "features": _RED}
_LEARN = _ONE | {"labels": ["apple", "ripe"]}
_ANSWER = {"id": "mail-17", "labels": {"apple": True, "ripe": False}}
_SAID: Any = {"id": "mail-17", "labels": ["apple"], "scores": {"apple": 0.21, "ripe": -0.05}, "version": 4711}
_LEARNED: Any = {"id": "mail-17", "seq": 4712, "version": 4712, "repeated": False}


def _config(*examples: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": list(examples)})


class Item(BaseModel):
    """An item to predict. Without an id it gets one."""

    model_config = _config(_ONE, {"features": [0.7, 1.0]})
    features: FeaturesIn
    id: Id | None = None


class PredictOne(Item):
    """An item, and what is wanted of it."""

    model_config = _config(_ONE | {"scores": True, "keep": True})
    scores: bool = Field(True, description="Also tell the score of each label.")
    keep: bool = Field(True, description="Keep the item, so that feedback can come.")


class PredictMany(BaseModel):
    """Several items."""

    model_config = _config({"items": [_ONE, {"features": {"green": 1.0}}], "scores": False})
    items: list[Item] = Field(min_length=1)
    scores: bool = Field(True, description="Also tell the score of each label.")
    keep: bool = Field(True, description="Keep the items, so that feedback can come.")


class LearnOne(Item):
    """An item with its labels."""

    model_config = _config(_LEARN)
    labels: LabelsIn


class LearnMany(BaseModel):
    """Several items with their labels, learned together."""

    model_config = _config({"items": [_LEARN]})
    items: list[LearnOne] = Field(min_length=1)


class FeedbackOne(BaseModel):
    """The answer to an item that was predicted."""

    model_config = _config(_ANSWER)
    id: Id
    labels: LabelsIn


class FeedbackMany(BaseModel):
    """Several answers, learned together."""

    model_config = _config({"items": [_ANSWER]})
    items: list[FeedbackOne] = Field(min_length=1)


def _one_or_many(value: Any) -> str:
    return "many" if isinstance(value, dict) and "items" in value else "one"


def _either(one: Any, many: Any) -> TypeAdapter[Any]:
    union: Any = Annotated[one, Tag("one")] | Annotated[many, Tag("many")]
    return TypeAdapter(Annotated[union, Discriminator(_one_or_many)])


def example(model: type[BaseModel]) -> Any:
    """The first example of a model."""
    extra: Any = model.model_config["json_schema_extra"]
    return extra["examples"][0]


#: Of each path: JSON bodies, lines of NDJSON, and the models.
BODIES: dict[str, tuple[TypeAdapter[Any], TypeAdapter[Any], type[BaseModel], type[BaseModel]]] = {
    path: (_either(one, many), TypeAdapter(one), one, many)
    for path, one, many in (
        ("/v1/predict", PredictOne, PredictMany),
        ("/v1/learn", LearnOne, LearnMany),
        ("/v1/feedback", FeedbackOne, FeedbackMany),
    )
}


def parse(adapter: TypeAdapter[Any], data: bytes) -> Any:
    """The body, or `Refused` with what is wrong with it."""
    try:
        return adapter.validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part)[:50] for part in first["loc"] if part not in ("one", "many"))
        if first["type"] == "json_invalid":
            raise Refused(400, "no_json", f"the body must be JSON: {first['msg'][:200]}") from None
        raise Refused(422, "invalid", f"{where[:200] or 'the body'}: {first['msg'][:200]}") from None


class Prediction(BaseModel):
    """What the model says of an item. Before anything is learned there are no labels and no scores."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SAID]})
    id: str
    labels: list[str]
    scores: dict[str, float] | None = None
    version: int = Field(description="How many answers the model had learned.")


class Predictions(BaseModel):
    """Of several items, in their order."""

    items: list[Prediction]
    version: int


class Learned(BaseModel):
    """An answer that the log holds and the model has learned."""

    model_config = ConfigDict(json_schema_extra={"examples": [_LEARNED]})
    id: str
    seq: int = Field(description="Its place in the order of learning, from 1.")
    version: int = Field(description="A version of the model that has learned it.")
    repeated: bool = Field(description="The log held it before: it was not learned again.")


class ManyLearned(BaseModel):
    """Of several answers, in their order."""

    items: list[Learned]
    version: int


class StoredItem(BaseModel):
    """What is known of an item."""

    id: str
    state: Literal["waiting", "learned"]
    received: float = Field(description="Seconds since 1970.")
    features: dict[str, float] | None = None
    predicted: list[str] | None = Field(None, description="What the model said when it came.")
    version: int | None = None
    seq: int | None = None
    answered: float | None = None
    answer: dict[str, bool] | None = None
    complete: bool | None = Field(None, description="Whether labels that the answer does not name do not hold.")


class Newest(BaseModel):
    """The items that came last."""

    items: list[StoredItem]


class ModelFacts(BaseModel):
    """What is served."""

    version: int
    parameters: dict[str, Any]
    features: list[str]
    labels: list[str]
    grow: bool
    learner: str
    csdpp: str
    snapshot: dict[str, Any]


class Problem(BaseModel):
    """What was wrong."""

    code: str
    message: str


class ErrorBody(BaseModel):
    """Every refusal looks like this."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"error": {"code": "unknown_item", "message": "there is no item 'mail-18'"}}]}
    )
    error: Problem


class Health(BaseModel):
    """Whether it is up."""

    status: str


class Snapshot(BaseModel):
    """What a checkpoint wrote."""

    seq: int
    bytes: int
    at: float
