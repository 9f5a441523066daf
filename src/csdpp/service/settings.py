"""Settings of the service: defaults, then a TOML file, the environment and flags; checked where they enter.

A setting `max_items` is ``max_items = 100`` in the file, ``CSDPP_SERVE_MAX_ITEMS=100`` in the environment and
``--max-items 100`` on the command line. Tokens stand in the file only.
"""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from csdpp.errors import InvalidParameter, MissingData
from csdpp.service.tokens import Token, read_tokens

ENVIRONMENT = "CSDPP_SERVE_"
_LOOPBACK = ("127.", "localhost", "::1")


def _about(text: str, least: float | None = None) -> dict[str, Any]:
    return {"help": text, "least": least}


def _say(default: Any, text: str, *, least: float | None = None) -> Any:
    """A field with its help and the least value that it may have."""
    return field(default=default, metadata=_about(text, least))


@dataclass(frozen=True)
class Settings:
    """All settings, checked.

    >>> Settings.of({"port": 8100, "labels": ["red", "green"]}).port
    8100
    """

    folder: str = _say("csdpp-serve", "of the store and the snapshots; made if it is not there")
    host: str = _say("127.0.0.1", "address to listen at; beyond loopback only with tokens")
    port: int = _say(8000, "port to listen at; 0: any free one", least=0)
    insecure: bool = _say(False, "listen beyond loopback without tokens")
    learner: dict[str, Any] = field(default_factory=dict, metadata=_about("parameters of CSDPP, such as cost=f1"))
    labels: tuple[str, ...] = _say((), "names of the labels known from the start")
    features: tuple[str, ...] = _say((), "names of the features known from the start")
    grow: bool = _say(False, "let requests bring new labels and features")
    max_labels: int = _say(10_000, "labels of the model", least=1)
    max_features: int = _say(100_000, "features of the model, and of an item", least=1)
    max_value: float = _say(1e6, "size of a feature", least=0.0)
    max_items: int = _say(1000, "items of a request; of NDJSON, those that are learned together", least=1)
    max_body: int = _say(8 << 20, "bytes of a JSON request", least=1)
    max_bulk_body: int = _say(256 << 20, "bytes of an NDJSON request", least=1)
    max_requests: int = _say(256, "requests that are worked on at a time", least=1)
    max_connections: int = _say(512, "connections that are open at a time", least=1)
    max_waiting: int = _say(10_000, "rows that wait to be stored or learned", least=1)
    request_seconds: float = _say(30.0, "time for a request", least=0.01)
    head_seconds: float = _say(10.0, "time for the head of a request, and between two requests", least=0.01)
    stop_seconds: float = _say(30.0, "time to finish accepted requests when stopping", least=0.0)
    checkpoint_rows: int = _say(20_000, "rows learned between two snapshots", least=1)
    checkpoint_seconds: float = _say(300.0, "time between two snapshots, if anything was learned", least=0.1)
    keep_items: int = _say(1_000_000, "items that are kept", least=1)
    keep_days: float = _say(90.0, "time that items are kept", least=0.0)
    tokens: tuple[Token, ...] = _say((), "who may do what: [[tokens]] tables in the file")

    @classmethod
    def read(
        cls,
        path: str | None = None,
        environment: Mapping[str, str] | None = None,
        flags: Mapping[str, Any] | None = None,
    ) -> Self:
        """Settings of a TOML file, the environment (by default that of the process) and flags, later ones first.

        >>> Settings.read(None, {"CSDPP_SERVE_PORT": "9000"}, {"labels": ["a"]}).port
        9000
        """
        given: dict[str, Any] = {}
        if path is not None:
            given |= _read_file(path)
        environment = os.environ if environment is None else environment
        for spec in fields(cls):
            text = environment.get(ENVIRONMENT + spec.name.upper())
            if text is not None and spec.name != "tokens":
                given[spec.name] = text
        return cls.of(given | {k: v for k, v in (flags or {}).items() if v is not None})

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Settings of plain values, or of the strings that stand for them."""
        known = {spec.name: spec for spec in fields(cls)}
        odd = [key for key in given if key not in known]
        if odd:
            raise InvalidParameter(f"csdpp serve: {odd[0]!r:.80} is no setting; csdpp serve --show-config lists them")
        return cls(**{key: _checked(known[key], value) for key, value in given.items()})

    def __post_init__(self) -> None:
        for kind, names in (("labels", self.labels), ("features", self.features)):
            if len(set(names)) != len(names) or not all(0 < len(name) <= 200 for name in names):
                raise InvalidParameter(f"csdpp serve: {kind} must be different names of 1 to 200 characters")
        if len(self.labels) > self.max_labels or len(self.features) > self.max_features:
            raise InvalidParameter("csdpp serve: more labels or features are named than max_labels or max_features")
        if not self.local and not self.tokens and not self.insecure:
            raise InvalidParameter(
                f"csdpp serve: host must be a loopback address as long as there are no tokens, got {self.host!r}; add "
                f"[[tokens]] to the file (csdpp serve --new-token NAME makes one), or pass --insecure"
            )

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host.startswith(_LOOPBACK)

    def show(self) -> str:
        """The settings as TOML that `read` takes; of tokens the hashes, as in the file.

        >>> print(Settings.of({"labels": ["a"]}).show().splitlines()[5])
        labels = ["a"]  # names of the labels known from the start
        """
        lines = []
        for spec in fields(self):
            value = getattr(self, spec.name)
            if spec.name != "tokens":
                lines.append(f"{spec.name} = {_toml(value)}  # {spec.metadata['help']}")
        for token in self.tokens:
            lines += ["", token.toml()]
        return "\n".join(lines)


def _read_file(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MissingData(f"csdpp serve: there is no file {path}; csdpp serve --show-config prints one") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidParameter(f"csdpp serve: {path} must be TOML that can be read: {error}") from None


def _checked(spec: Any, value: Any) -> Any:
    """The value in the type of the field, or an error that says what it must be."""
    name, kind, least = spec.name, spec.type, spec.metadata["least"]
    try:
        new = _converted(name, kind, value)
    except (TypeError, ValueError) as error:
        hint = f" ({error})" if name in ("learner", "tokens") else ""
        wanted = _KINDS.get(kind, "names")
        raise InvalidParameter(f"csdpp serve: {name} must be {wanted}, got {value!r:.80}{hint}") from None
    if least is not None and not least <= new < float("inf"):
        raise InvalidParameter(f"csdpp serve: {name} must be at least {least}, got {value!r:.80}")
    return new


_KINDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    dict[str, Any]: "parameters of CSDPP such as cost=f1",
    tuple[Token, ...]: "tables of name, sha256 and scopes",
}


_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _converted(name: str, kind: Any, value: Any) -> Any:
    if name == "tokens":
        return value if isinstance(value, tuple) else read_tokens(value)
    if name == "learner":
        return _parameters(value)
    if kind is bool:
        if not isinstance(value, bool) and str(value).lower() not in _BOOLEANS:
            raise TypeError
        return value if isinstance(value, bool) else _BOOLEANS[str(value).lower()]
    if kind in (int, float):
        if isinstance(value, bool) or (kind is int and isinstance(value, float)):
            raise TypeError
        return kind(value)
    if kind is str:
        if not isinstance(value, str) or not value:
            raise TypeError
        return value
    names = value.split() if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(one, str) for one in names):
        raise TypeError
    return tuple(names)


def _parameters(value: Any) -> dict[str, Any]:
    """Parameters of CSDPP from a table, or from words name=value; refused here rather than by the first row."""
    from csdpp import CSDPP

    if not isinstance(value, Mapping):
        words = value.split() if isinstance(value, str) else value
        pairs = [word.partition("=") for word in words]
        value = {key: _literal(text) for key, _, text in pairs}
    model = CSDPP(**value)
    model._check_options()
    return {key: value[key] for key in sorted(value)}


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + " }" if value else "{}"
    if isinstance(value, tuple):
        return json.dumps(list(value), ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)
