"""The picture of docs/tutorial.md: run its lines and keep what they draw.

python benchmarks/tutorial.py
"""

import doctest
import shutil
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def main():
    parsed = doctest.DocTestParser().get_doctest((DOCS / "tutorial.md").read_text(), {}, "tutorial", None, 0)
    lines = [example.source for example in parsed.examples]
    assert lines[-1] == "home.cleanup()\n"
    names = {}
    for line in lines[:-1]:
        exec(line, names)
    shutil.copy(Path(names["home"].name) / "tutorial.png", DOCS / "tutorial.png")
    names["home"].cleanup()


if __name__ == "__main__":
    main()
