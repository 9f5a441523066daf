"""What there is, in words: the sets of the paper and their stand-ins as a table, and all that is known of one."""

from __future__ import annotations

import textwrap
from importlib.util import find_spec
from pathlib import Path

from csdpp.datasets.registry import REGISTRY, Entry, FilePath, entry, folders, plain_name
from csdpp.datasets.standins import STAND_INS


def place_of(known: Entry, root: FilePath | None = None) -> Path | None:
    """The folder in which a set lies; None where it is not at hand."""
    places = (folder / known.name for folder in folders(root))
    return next((place for place in places if known.files_in(place) is not None), None)


def listing(root: FilePath | None = None) -> str:
    """A line for each set of the paper, whether it is at hand, and for each stand-in.

    Examples
    --------
    >>> print(listing("no such folder").splitlines()[1])
    cal500               502        68     174        26.044  -
    """
    lines = [f"{'name':<15}{'rows':>9}{'features':>10}{'labels':>8}{'labels a row':>14}  at hand"]
    for known in REGISTRY.values():
        place = place_of(known, root)
        bundled = known.name == "yeast" and root is None and find_spec("river") is not None
        where = str(place) if place else "in river's wheel" if bundled else "-"
        lines.append(_line(known.name, known, where))
    lines += [_line(name, stand_in.model, "generated") for name, stand_in in STAND_INS.items()]
    return "\n".join(lines)


def _line(name: str, known: Entry, where: str) -> str:
    return f"{name:<15}{known.N:>9,}{known.d:>10,}{known.K:>8,}{known.cardinality:>14.3f}  {where}"


def describe(name: str, root: FilePath | None = None) -> str:
    """All that is known of a set of the paper or of a stand-in.

    Examples
    --------
    >>> print(describe("scene", "no such folder"))
    scene: Photographs of landscapes and their kinds
    <BLANKLINE>
      rows          2,407
      features      294
      labels        6
      labels a row  1.074
      files         scene-train.arff, scene-test.arff, scene.xml
      sha256        known for 3 of 3 files
      from          https://...
      at hand       no: csdpp datasets fetch scene
      cite          Boutell, Luo, Shen, Brown: ...
    """
    if name.lower() in STAND_INS:
        stand_in = STAND_INS[name.lower()]
        known = stand_in.model
        title = f"generated, with the sizes of {known.name}; labels of rank {stand_in.rank}. It is not {known.name}"
        return "\n".join([f"{name.lower()}: {title}", "", *_facts(_sizes(known))])
    known = entry(name, "describe")
    place = place_of(known, root)
    facts = _sizes(known)
    if known.paper_rows:
        facts["paper"] = f"drew {known.paper_rows:,} of the rows anew for each run"
    facts["files"] = ", ".join(known.files)
    facts["sha256"] = f"known for {len(known.sha256)} of {len(known.files)} files"
    facts["from"] = known.plain or known.archive
    facts["at hand"] = str(place) if place else f"no: csdpp datasets fetch {plain_name(name)}"
    facts["cite"] = known.citation
    return "\n".join([f"{known.name}: {known.title}", "", *_facts(facts)])


def _sizes(known: Entry) -> dict[str, str]:
    return {
        "rows": f"{known.N:,}",
        "features": f"{known.d:,}",
        "labels": f"{known.K:,}",
        "labels a row": f"{known.cardinality:.3f}",
    }


def _facts(facts: dict[str, str]) -> list[str]:
    """Aligned, long ones over several lines."""
    lines = []
    for what, said in facts.items():
        first, *more = textwrap.wrap(said, 92, break_long_words=False, break_on_hyphens=False) or [""]
        lines += [f"  {what:<14}{first}", *(" " * 16 + line for line in more)]
    return lines
