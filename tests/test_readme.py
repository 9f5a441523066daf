"""Tables in the README and in docs/speed.md are what their scripts recorded."""

import importlib.util
import json

from conftest import ROOT


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_table_is_the_recorded_one():
    table = script("table")
    readme = (ROOT / "README.md").read_text()
    rows = json.loads(table.RESULTS.read_text())["rows"]
    assert len(rows) == 6
    assert table.into_readme(readme, table.markdown(rows)) == readme


def test_tables_of_speed_are_the_recorded_ones():
    kernels = script("kernels")
    page = kernels.PAGE.read_text()
    parts = json.loads(kernels.RESULTS.read_text())["parts"]
    assert list(parts) == [part.__name__ for part in kernels.PARTS]
    assert kernels.into_page(page, parts) == page


def test_one_row_overhead_and_compilation_stay_within_their_bounds():
    """As recorded: at most 60 us beyond a row among many, 15 s for compiling every learner."""
    parts = json.loads(script("kernels").RESULTS.read_text())["parts"]
    assert all(row["overhead, us"] <= 60 for row in parts["single_rows"])
    assert all(row["every learner once, s"] <= 15 for row in parts["first_use"])
