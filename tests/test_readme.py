"""The README's table is what its script recorded."""

import importlib.util
import json

from conftest import ROOT


def test_table_is_the_recorded_one():
    spec = importlib.util.spec_from_file_location("table", ROOT / "benchmarks" / "table.py")
    table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(table)
    readme = (ROOT / "README.md").read_text()
    rows = json.loads(table.RESULTS.read_text())["rows"]
    assert len(rows) == 6
    assert table.into_readme(readme, table.markdown(rows)) == readme
