"""Bearer tokens: random, kept as SHA-256 hashes, each with scopes.

A token has 256 random bits, so that one round of a fast hash is as good as many: there is nothing to guess.
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

SCOPES = ("predict", "learn", "admin")


@dataclass(frozen=True)
class Token:
    """Whose it is, the hash of it, and what it allows."""

    name: str
    sha256: str
    scopes: tuple[str, ...]

    def toml(self) -> str:
        """The table that stands for it in the settings."""
        scopes = json.dumps(list(self.scopes))
        return f'[[tokens]]\nname = {json.dumps(self.name)}\nsha256 = "{self.sha256}"\nscopes = {scopes}'


def new_token(name: str, scopes: Sequence[str]) -> tuple[str, Token]:
    """A fresh token, to be handed over, and what is kept of it.

    >>> secret, kept = new_token("annotators", ["predict", "learn"])
    >>> find([kept], secret) is kept, find([kept], secret + "x") is None
    (True, True)
    """
    secret = "csdpp_" + secrets.token_urlsafe(32)
    table = {"name": name, "sha256": hash_of(secret), "scopes": list(scopes)}
    return secret, read_tokens([table])[0]


def hash_of(secret: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def find(tokens: Iterable[Token], secret: str) -> Token | None:
    """Whose token it is: every hash is compared, in constant time."""
    given, found = hash_of(secret), None
    for token in tokens:
        if hmac.compare_digest(token.sha256, given):
            found = token
    return found


def read_tokens(tables: Any) -> tuple[Token, ...]:
    """Tokens of plain tables; ValueError where they are none."""
    tokens = []
    for table in tables if isinstance(tables, list) else [None]:
        match table:
            case {"name": str(name), "sha256": str(digest), "scopes": list(scopes), **rest} if not rest:
                if not re.fullmatch("[0-9a-f]{64}", digest):
                    raise ValueError("sha256 must be 64 hexadecimal digits")
                if not scopes or not set(scopes) <= set(SCOPES):
                    raise ValueError(f"scopes must be some of {', '.join(SCOPES)}")
                tokens.append(Token(name, digest, tuple(scopes)))
            case _:
                raise ValueError("a token has name, sha256 and scopes")
    if len({token.name for token in tokens}) < len(tokens):
        raise ValueError("tokens must have different names")
    return tuple(tokens)
