"""docs/cli.md is what the parser says; and the shells can complete it."""

import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

import pytest

from csdpp import cli
from csdpp.cli._completion import SHELLS
from csdpp.cli._reference import reference

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"


def test_page_is_what_the_parser_says():
    assert PAGE.read_text(encoding="utf-8") == reference(), "docs/cli.md is stale: make docs"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_and_option_is_on_the_page(name):
    (section,) = [part for part in reference().split("\n## ") if part.startswith(f"csdpp {name}\n")]
    parser = ArgumentParser()
    cli.COMMANDS[name].add_options(parser)
    for action in parser._actions:
        for option in action.option_strings or [action.dest]:
            assert option in section or action.metavar in section, option


def test_commands_of_a_command_and_what_must_be_given_are_on_the_page():
    parser = ArgumentParser("tool")
    inner = parser.add_subparsers(metavar="COMMAND").add_parser("fetch", help="get it", description="Gets a set.")
    inner.add_argument("sets", nargs="+", metavar="SET", help="which")
    inner.add_argument("--mirror", required=True, help="from where (default: %(default)s)")
    inner.add_argument("--kind", choices=["a", "b"], help="of what")
    page = reference(parser)
    assert "| `fetch` | get it |" in page
    assert "## tool fetch\n\nGets a set." in page
    assert "`tool fetch SET [SET ...] --mirror MIRROR [options]`" in page
    assert "| `--mirror MIRROR` | from where (default: None) |" in page
    assert "| `--kind {a,b}` | of what |" in page


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_knows_every_command(shell, capsys):
    pytest.importorskip("shtab")
    with pytest.raises(SystemExit) as left:
        cli.main(["--print-completion", shell])
    assert left.value.code == 0
    script = capsys.readouterr().out
    for name in cli.COMMANDS:
        assert name in script


def test_bash_completes():
    """By bash itself: what it offers after `csdpp de` and `csdpp demo --r`."""
    script = subprocess.run(
        [sys.executable, "-m", "csdpp", "--print-completion", "bash"], capture_output=True, text=True, check=True
    ).stdout
    for words, offered in (("csdpp de", "demo"), ("csdpp demo --ro", "--rows")):
        asked = (
            f"{script}\nCOMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}; _shtab_csdpp; echo ${{COMPREPLY[@]}}"
        )
        done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [offered]


def test_completion_without_shtab_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["--print-completion", "bash"]) == 2
    assert capsys.readouterr().err == (
        "csdpp: --print-completion: needs shtab, not installed here; pip install 'csdpp[completion]'\n"
    )
