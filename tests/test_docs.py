"""What the documents say: their links lead somewhere, their Python runs, their figures are the recorded ones."""

import inspect
import json
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

from csdpp import CSDPP, costs

ROOT = Path(__file__).resolve().parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def prose(path):
    """The text without its fenced blocks."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path):
    """Of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def tables(text):
    """Each table as its header and rows of stripped cells."""
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        header, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in block.splitlines())
        yield header, rows


def by_name(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.name)


@by_name([*DOCS, ROOT / "README.md"])
def test_links_lead_somewhere(path):
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        file, _, anchor = target.partition("#")
        if "://" in file:
            continue
        found = path.parent / file if file else path
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@by_name(DOCS)
def test_python_runs(path, tmp_path, monkeypatch):
    """In order and in one namespace. Blocks of a session (>>>) are run by pytest's own doctests."""
    monkeypatch.chdir(tmp_path)
    text, namespace = path.read_text(encoding="utf-8"), {}
    for block in FENCE.finditer(text):
        language, code = block.groups()
        if language == "python" and ">>>" not in code:
            line = text.count("\n", 0, block.start()) + 1
            exec(compile("\n" * line + code, str(path), "exec"), namespace)


@by_name(DOCS)
def test_formulas_survive_markdown(path):
    """Within $...$ GitHub reads a backslash before punctuation, and *, as Markdown; a formula must not break a line."""
    text = re.sub(r"`[^`\n]*`", "", prose(path))
    assert not [line for line in text.splitlines() if line.count("$") % 2]
    for formula in re.findall(r"\$([^$]+)\$", text):
        assert not re.search(r"\\[^a-zA-Z]|\*", formula), formula
        assert formula.count("{") == formula.count("}"), formula


def test_maths_keeps_the_sections_that_the_code_refers_to():
    headings = re.findall(r"^##+ ([\d.]+) (.*)$", prose(ROOT / "docs" / "maths.md"), re.MULTILINE)
    assert {
        ("2", "From labels to directions: capped MSG"),
        ("2.1", "The start and the keep rule"),
        ("6", "The block engine"),
    } <= set(headings)
    top = [number for number, _ in headings if "." not in number]
    assert top == [str(i + 1) for i in range(len(top))]


def test_maths_quotes_the_recorded_figures():
    """Tables headed `stream, M, loss`: a column is a recipe's mean over all permutations, or what was published."""
    content = json.loads((ROOT / "benchmarks" / "results" / "figures.json").read_text(encoding="utf-8"))
    measured, published = {}, {}
    for figure in content["figures"]:
        key = f"{figure['stream']}, {figure['M']}, {figure['loss'].replace('_', ' ')}"
        measured[key, figure["recipe"]] = np.mean(figure["losses"])
        published[key, figure["recipe"]] = figure["published"]
    compared = 0
    for header, rows in tables((ROOT / "docs" / "maths.md").read_text(encoding="utf-8")):
        if header[0] != "stream, M, loss":
            continue
        for key, *cells in rows:
            for recipe, cell in zip(header[1:], cells, strict=True):
                # The published column stands beside the recipe that opens the table.
                value = published[key, header[1]] if recipe == "published" else measured[key, recipe]
                assert cell == f"{float(value):.3f}", (key, recipe)
                compared += 1
    assert compared > 100


def test_notation_names_what_exists():
    text = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
    for name in re.findall(r"`(csdpp\.[\w.]+)`", text):
        pkgutil.resolve_name(name)
    for name in re.findall(r"`Cost\.(\w+)`", text):
        assert callable(getattr(costs.Cost, name))
    parameters = inspect.signature(CSDPP).parameters
    learner = CSDPP(2).fit(np.eye(6), np.tri(6, 4, dtype=int))
    transformed = CSDPP.published(2).fit(np.eye(6), np.tri(6, 4, dtype=int))
    for header, rows in tables(text):
        public = [i for i, head in enumerate(header) if head in ("in the public API", "public", "parameter")]
        for cell in (row[i] for row in rows for i in public):
            for name in re.findall(r"`(?:len\()?(\w+)\)?`", cell):
                assert name in parameters or hasattr(learner, name) or hasattr(transformed, name), name
