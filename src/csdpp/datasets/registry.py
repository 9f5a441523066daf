"""What is known of the paper's data sets: sizes, files, checksums, where they come from, whom to cite.

The facts are in registry.toml. A set is at hand where its files lie in a folder of its name: below CSDPP_DATA, or in
the cache that `fetch` fills.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from csdpp.datasets._types import Statistics
from csdpp.errors import InvalidParameter, MissingData

FilePath = str | os.PathLike[str]


@dataclass(frozen=True)
class Entry:
    """What is known of a set of the paper.

    `N`, `d`, `K` and `cardinality` are of the whole set. `paper_rows` is how many rows the paper drew from it, None
    for all. `archive` and `plain` are addresses: of an archive with the files, of the folder where they lie unpacked.
    """

    name: str
    title: str
    N: int
    d: int
    K: int
    cardinality: float
    arff: tuple[str, ...]
    xml: str
    archive: str
    citation: str
    plain: str | None = None
    paper_rows: int | None = None
    split: tuple[str, ...] = ()
    sha256: Mapping[str, str] = field(default_factory=dict)
    corrections: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that make up the set."""
        return (*self.arff, self.xml)

    @property
    def statistics(self) -> Statistics:
        """As `Dataset.statistics` should give them."""
        return Statistics(self.N, self.d, self.K, self.cardinality, self.cardinality / self.K)

    def files_in(self, folder: FilePath) -> tuple[list[Path], Path] | None:
        """The ARFF files and the XML where all of them lie in the folder, whatever their case; else None."""
        folder = Path(folder)
        there = {path.name.lower(): path for path in folder.iterdir()} if folder.is_dir() else {}
        for arff in filter(None, (self.arff, self.split)):
            found = [there.get(name.lower()) for name in (*arff, self.xml)]
            paths = [path for path in found if path is not None]
            if len(paths) == len(found):
                return paths[:-1], paths[-1]
        return None


def _read() -> dict[str, Entry]:
    """The entries of registry.toml, in its order."""
    text = files("csdpp.datasets").joinpath("registry.toml").read_text(encoding="utf-8")
    entries: dict[str, Entry] = {}
    for name, facts in tomllib.loads(text).items():
        parts: dict[str, Any] = {part: tuple(facts.pop(part, ())) for part in ("arff", "split")}
        entries[name] = Entry(name, **parts, **facts)
    return entries


#: The eleven sets of the paper, by name, in its order.
REGISTRY: Mapping[str, Entry] = _read()
_ALIASES = {"eurlex": "eurlex-eurovec", "nus-wide": "nuswide", "eurlex-eurovoc": "eurlex-eurovec"}


def plain_name(name: str) -> str:
    """A name as the registry has it: case does not matter, nor - or _; short names are spelled out."""
    name = name.lower().replace("_", "-")
    return _ALIASES.get(name, name)


def entry(name: str, who: str = "entry") -> Entry:
    """What is known of a set of the paper.

    Examples
    --------
    >>> entry("Delicious").statistics
    Statistics(N=16105, d=500, K=983, cardinality=19.02, density=0.019...)
    """
    if plain_name(name) not in REGISTRY:
        raise InvalidParameter(f"{who}: name must be one of {', '.join(REGISTRY)}, got {name!r}; choose one")
    return REGISTRY[plain_name(name)]


def cache_folder() -> Path:
    """The folder into which sets are fetched: csdpp/ in the user's cache, which XDG_CACHE_HOME can move."""
    home = os.environ.get("XDG_CACHE_HOME")
    if not home:
        home = os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else None
    return Path(home or Path.home() / ".cache") / "csdpp"


def folders(root: FilePath | None = None) -> list[Path]:
    """Where sets are looked for, in this order: `root` alone if given, else CSDPP_DATA, then the cache."""
    if root is not None:
        return [Path(root)]
    data = os.environ.get("CSDPP_DATA")
    return [*([Path(data)] if data else []), cache_folder()]


def find(name: str, root: FilePath | None = None, who: str = "find") -> tuple[list[Path], Path]:
    """The ARFF files and the XML of a set that is at hand.

    Raises
    ------
    MissingData
        With the folders that were searched and what to do.
    """
    known = entry(name, who)
    searched = [folder / known.name for folder in folders(root)]
    for folder in searched:
        if (found := known.files_in(folder)) is not None:
            return found
    wanted = ", ".join(known.files)
    raise MissingData(
        f"{who}: expected {known.name!r} ({wanted}) in {' or '.join(map(str, searched))}, got no such files; set "
        f"CSDPP_DATA to a folder that has {known.name}/, or run csdpp datasets fetch {known.name}"
    )
