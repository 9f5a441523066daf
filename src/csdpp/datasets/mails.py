"""A directory of invented e-mails with the folders that their reader put them into: for trying out, and the tutorial.

Each mail is about one to three subjects; a subject is a folder and has words of its own among those that all mails
share. One folder comes half-way, and from three quarters on the subjects have other words: the world drifts.
"""

import email
import os
from collections.abc import Iterator
from dataclasses import dataclass
from email import policy
from email.message import EmailMessage
from pathlib import Path

import numpy as np

from csdpp.errors import DataFormatError, InvalidParameter, MissingData

__all__ = ["Mail", "write_mails", "read_mails", "LATE_FOLDER"]

#: The folder that no mail of the first half is in.
LATE_FOLDER = "travel"
_WORDS = {
    "work": """meeting agenda project deadline report slides budget client review draft team roadmap sprint
        release merger""",
    "invoices": """invoice payment amount due account transfer bank tax receipt euro reminder total vat refund
        statement""",
    "family": """mum dad sister birthday dinner grandma kids weekend garden cake photos hug wedding baby
        christening""",
    "newsletters": """unsubscribe weekly issue readers editor stories podcast subscribe digest browser trends survey
        webinar""",
    "health": """doctor appointment clinic dentist results blood prescription insurance knee therapy x-ray
        vaccine surgery""",
    "school": """teacher homework class parents exam grades trip pupils lessons choir term essay library
        principal holidays""",
    "orders": """parcel order shipped tracking delivery warehouse return size colour basket courier voucher
        warranty spare""",
    LATE_FOLDER: """flight hotel booking passport train seat luggage itinerary beach visa airport cabin ferry
        boarding tickets""",
}
_COMMON = """
    the a to and of in for on with at from you we i is are was be have has will would can could please thanks
    dear hello regards best see attached find let know if when about this that it not our your next last week
    month today tomorrow soon new old great sorry forward looking here there some more all any one two three
    time day back also just still very
"""
_OTHER_WORDS = 6  # of each subject: they come with the drift, and as many of the others go


@dataclass(frozen=True)
class Mail:
    """A mail: the name of its file, its text with the subject line, and the folders that it belongs into."""

    name: str
    text: str
    folders: tuple[str, ...]


def write_mails(folder: str | os.PathLike[str], n: int = 1500, *, random_state: int | None = None) -> list[str]:
    """Write n mails in order of time, ``00000.eml`` and so on, into a folder, which is made; return the folders' names.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = write_mails(folder, 20, random_state=0)
    ...     mails = list(read_mails(folder))
    >>> len(mails), set(mails[0].folders) <= set(names)
    (20, True)
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= 10**6:
        raise InvalidParameter(f"write_mails: n must be a whole number from 1 to 1,000,000, got {n!r}")
    rng = np.random.default_rng(random_state)
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    for i in range(n):
        message = _compose(rng, i / n)
        (path / f"{i:05}.eml").write_bytes(message.as_bytes())
    return list(_WORDS)


def read_mails(folder: str | os.PathLike[str]) -> Iterator[Mail]:
    """The mails of a folder in the order of their names, one at a time."""
    files = sorted(Path(folder).glob("*.eml"))
    if not files:
        raise MissingData(f"read_mails: {os.fspath(folder)} has no files that end in .eml; write_mails makes some")
    for file in files:
        message = email.message_from_bytes(file.read_bytes(), policy=policy.default)
        body = message.get_body(("plain",))
        if body is None:
            raise DataFormatError(f"{file}: must be a mail with a part in plain text, and has none")
        names = tuple(part.strip() for part in str(message.get("X-Folders", "")).split(",") if part.strip())
        yield Mail(file.name, f"{message.get('Subject', '')}\n{body.get_content()}", names)


def _compose(rng: np.random.Generator, when: float) -> EmailMessage:
    """A mail at a moment between 0 (first) and 1 (last)."""
    names = [name for name in _WORDS if name != LATE_FOLDER or when >= 0.5]
    # Invoices come with orders and travel, family with school and health: folders hang together.
    first = str(rng.choice(names))
    friends = {"orders": ["invoices"], LATE_FOLDER: ["invoices", "family"], "school": ["family"], "health": ["family"]}
    chosen = {first} | {name for name in friends.get(first, []) if name in names and rng.random() < 0.5}
    if rng.random() < 0.1:
        chosen.add(str(rng.choice(names)))
    words: list[str] = []
    for name in sorted(chosen):
        own = _WORDS[name].split()
        known = own[_OTHER_WORDS:] if when >= 0.75 else own[:-_OTHER_WORDS]
        words += rng.choice(known, 3).tolist()
    words += rng.choice(_COMMON.split(), 25).tolist()
    rng.shuffle(words)
    message = EmailMessage()
    message["From"], message["To"] = "somebody@example.org", "you@example.org"
    message["Subject"] = " ".join(words[:5])
    message["X-Folders"] = ", ".join(sorted(chosen))
    message.set_content("\n".join(" ".join(words[at : at + 10]) for at in range(5, len(words), 10)))
    return message
