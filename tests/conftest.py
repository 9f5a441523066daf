"""What every test may rely on: the place of the data, one BLAS thread, repeatable examples, no screen."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

# Before anything imports NumPy: threads on the small matrices of these tests cost far more than they give.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ["MPLBACKEND"] = "Agg"

# CI tries the same examples in every run, so that what fails there fails here too. No deadline: the first
# example pays for the compiler.
settings.register_profile("csdpp", deadline=None)
settings.register_profile("csdpp-ci", settings.get_profile("csdpp"), derandomize=True, print_blob=True)
settings.load_profile("csdpp-ci" if os.environ.get("CI") else "csdpp")


def data_folder():
    """The folder of the real data sets: CSDPP_DATA, relative to the project if not absolute."""
    return (ROOT / os.environ.get("CSDPP_DATA", "../shared/data")).resolve()


def pytest_configure(config):
    """Drop the compiled kernels once any kernel's source is newer.

    Numba recompiles a function when its own file changes, but not when another file does from which it calls:
    without this, the tests of an edited kernel could pass on the old one.
    """
    if hasattr(config, "workerinput"):  # the process that started this worker has done it
        return
    package = ROOT / "src/csdpp"
    edited = max(path.stat().st_mtime for path in package.glob("_kernels/*.py"))
    compiled = [*package.rglob("*.nbi"), *package.rglob("*.nbc")]
    if any(path.stat().st_mtime < edited for path in compiled):
        for path in compiled:
            path.unlink(missing_ok=True)


def pytest_report_header():
    """Say at the top of a run whether the tests on real data take part."""
    return f"real data: {data_folder() if data_folder().is_dir() else 'none (set CSDPP_DATA)'}"


@pytest.fixture(scope="session")
def data_dir():
    """The folder of the real data sets; where it is absent, the test is skipped."""
    if not data_folder().is_dir():
        pytest.skip(f"needs the real data sets, and {data_folder()} is no folder; set CSDPP_DATA")
    return data_folder()
