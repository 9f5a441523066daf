"""What must hold of the project as a whole: what it installs, what it needs, and what no file may say."""

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import csdpp

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_DEVELOPERS = {"test", "dev"}

# Spelled with brackets, so that this file does not say what it forbids.
FORBIDDEN = {
    "the host of a package registry": r"[p]ypi\.org|[p]ythonhosted\.org|[n]pmjs\.|[d]eb\.debian\.org",
    "where a package came from": r"--(extra-)?[i]ndex-url|--find-[l]inks",
    "an absolute path on somebody's machine": r"(?<![\w.$})/])/(home|root|work|tmp|opt|Users)/\w",
}
# The real data lie beside the project; only what reads them may say so.
BESIDE = r"\.\./[s]hared"
MAY_READ_BESIDE = ("tests/", "benchmarks/")


def run(*command):
    """Run a command at the project's root; its output is the message if it fails."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def project_files():
    """Every file that is committed or would be, by its path from the root."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs the repository: only git knows which files belong to the project")
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return [name for name in names if (ROOT / name).is_file()]


def test_version_is_the_installed_one_and_in_the_changelog():
    assert importlib.metadata.version("csdpp") == csdpp.__version__, "the installation is stale: make setup"
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## .*\b{re.escape(csdpp.__version__)}\b", changelog, re.MULTILINE)


@pytest.mark.parametrize("name", PROJECT["scripts"])
def test_command_starts(name):
    command = shutil.which(name, path=Path(sys.executable).parent)
    assert command, f"{name} is declared in pyproject.toml, but not installed"
    assert name in run(command, "--help")


def test_package_imports_with_the_core_dependencies_alone():
    """Only the river adapter, the demo and the parts of the service may ask for an extra when they are imported."""
    optional = {Requirement(r).name for name in EXTRAS.keys() - FOR_DEVELOPERS for r in EXTRAS[name]} - {"csdpp"}
    assert "matplotlib" in optional
    code = f"""
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys({optional!r}))  # None: import raises ImportError
import csdpp
for module in pkgutil.walk_packages(csdpp.__path__, "csdpp."):
    apart = module.name in {{"csdpp.river", "csdpp.demo", "csdpp.__main__"}} or "csdpp.service." in module.name
    if not apart:
        importlib.import_module(module.name)
"""
    run(sys.executable, "-c", code)


def test_wheel_holds_the_package_and_nothing_else(tmp_path):
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert "csdpp/py.typed" in packed
    assert packed == {name.removeprefix("src/") for name in project_files() if name.startswith("src/")}


def test_constraints_pin_everything_the_project_asks_for():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    asked = [*PROJECT["dependencies"], *(r for extra in EXTRAS.values() for r in extra)]
    for requirement in map(Requirement, asked):
        if requirement.name != "csdpp":
            pin = pins.get(canonicalize_name(requirement.name))
            assert pin, f"{requirement} is not pinned in constraints.txt: make lock"
            assert pin in requirement.specifier, f"constraints.txt pins {requirement.name} to {pin}: make lock"


@pytest.mark.parametrize("extra", sorted(EXTRAS.keys() - FOR_DEVELOPERS))
def test_readme_names_extra(extra):
    assert re.search(rf"\[(\w+,)*{extra}(,\w+)*\]", (ROOT / "README.md").read_text(encoding="utf-8"))


def test_no_file_says_where_it_was_made():
    found = []
    for name in project_files():
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture or an archive
        rules = FORBIDDEN if name.startswith(MAY_READ_BESIDE) else FORBIDDEN | {"the data beside us": BESIDE}
        for number, line in enumerate(text.splitlines(), 1):
            found += [f"{name}:{number}: {what}: {line.strip()}" for what, r in rules.items() if re.search(r, line)]
    assert not found, "\n".join(found)


def test_naive_statements_of_the_paper_are_independent():
    """The naive files judge the package, so they may not use it."""
    files = sorted((ROOT / "tests").glob("naive*.py"))
    assert files
    for file in files:
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not [name for name in imported if name.split(".")[0] in {"csdpp", ""}], file.name
