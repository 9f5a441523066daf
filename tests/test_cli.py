"""The command line: help that teaches, one library call for each command, and exit codes."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import csdpp
from csdpp import bench, cli, demo, experiments
from csdpp.datasets import REGISTRY, STAND_INS
from csdpp.errors import CsdppError, FetchError, InvalidParameter
from csdpp.experiments import compare

SCRIPT = str(Path(sys.executable).with_name("csdpp"))


def run(*command, code=None):
    """A process of its own; its exit code, stdout and stderr."""
    command = command if code is None else (sys.executable, "-c", code)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch):
    """Even where the environment says that colours are welcome."""
    for variable in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def calls(monkeypatch):
    """What `csdpp demo`, `csdpp bench` and `csdpp reproduce` call, instead of the work."""
    made = []
    for module in (demo, bench):
        monkeypatch.setattr(module, "run", lambda *args, **options: made.append((args, options)))
    for module, name in ((experiments, "reproduce"), (compare, "run")):
        monkeypatch.setattr(module, name, lambda *args, **options: made.append((args, options)))
    return made


@pytest.fixture
def parsed(monkeypatch):
    """Commands and the options that they were given, instead of the work."""
    made = []
    for name, command in cli.COMMANDS.items():
        nothing = command._replace(call=lambda options: made.append((options.command, options)))
        monkeypatch.setitem(cli.COMMANDS, name, nothing)
    return made


def failing(monkeypatch, error):
    def run(*args, **options):
        raise error

    monkeypatch.setattr(demo, "run", run)


# ---- help


def test_help_lists_every_command_with_examples(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    for name, command in cli.COMMANDS.items():
        assert re.search(rf"^ +{name} +{re.escape(command.summary)}$", text, re.MULTILINE)
    assert "examples:" in text
    assert "exit codes:" in text


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_help_of_a_command_says_what_it_does_and_explains_every_option(name, capsys):
    with pytest.raises(SystemExit):
        cli.main([name, "--help"])
    text = capsys.readouterr().out
    command = cli.COMMANDS[name]
    assert command.about in text
    assert command.examples in text
    (parser,) = [action.choices[name] for action in cli.make_parser()._actions if action.dest == "command"]
    assert all(action.help for action in parser._actions)
    assert max(map(len, text.splitlines())) <= 80


def test_examples_are_commands_that_exist(parsed):
    texts = [cli.make_parser().epilog, *(command.examples for command in cli.COMMANDS.values())]
    examples = [line.split("  ")[0] for text in texts for line in re.findall(r"^  (csdpp .*)$", text, re.MULTILINE)]
    assert len(examples) > len(cli.COMMANDS)
    for example in examples:
        if "COMMAND" not in example:
            assert cli.main(shlex.split(example)[1:]) == 0
    assert {name for name, _ in parsed} == cli.COMMANDS.keys()


def test_no_command_shows_the_help_and_fails(capsys):
    assert cli.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "examples:" in err


@pytest.mark.parametrize("command", [[SCRIPT], [sys.executable, "-m", "csdpp"]], ids=["script", "module"])
def test_version_is_that_of_the_package(command):
    assert run(*command, "--version") == (0, f"csdpp {csdpp.__version__}\n", "")


# ---- options become a library call


@pytest.mark.parametrize(
    ("options", "call"),
    [
        ([], ((None, "demo-output"), {"seed": 0, "progress": True})),
        (
            ["--rows", "10", "--output", "x y", "--seed", "4", "--no-progress"],
            ((10, "x y"), {"seed": 4, "progress": False}),
        ),
    ],
)
def test_demo_is_one_library_call(calls, options, call):
    assert cli.main(["demo", *options]) == 0
    assert calls == [call]


def test_bench_is_one_library_call(calls):
    assert cli.main(["bench"]) == 0
    plain = {"sets": None, "peers": None, "data": None, "quick": False, "seed": 0, "progress": True}
    assert calls == [(("bench-output",), plain)]
    chosen = ["--sets", "S1", "yeast", "--peers", "p", "--data", "d", "--quick", "--seed", "3", "--no-progress"]
    assert cli.main(["bench", "--output", "x", *chosen]) == 0
    given = {"sets": ["S1", "yeast"], "peers": "p", "data": "d", "quick": True, "seed": 3, "progress": False}
    assert calls[1:] == [(("x",), given)]


def test_datasets_lists_describes_and_fetches(monkeypatch, capsys, tmp_path):
    assert cli.main(["datasets", "list", "--root", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["name", *REGISTRY, *STAND_INS]
    assert cli.main(["datasets", "info", "Scene", "eurlex-like"]) == 0
    out = capsys.readouterr().out
    assert "Boutell" in out
    assert "It is not eurlex-eurovec" in out
    made = []

    def fetch(name, **options):
        made.append((name, options))
        if name == "medical":
            raise FetchError("fetch: medical could not be had")
        return tmp_path / name

    monkeypatch.setattr("csdpp.cli._datasets.fetch", fetch)
    assert cli.main(["datasets", "fetch", "scene", "--mirror", "m", "--timeout", "3", "--force"]) == 0
    wanted = {"root": None, "mirror": "m", "force": True, "progress": None, "timeout": 3.0}
    assert made == [("scene", wanted)]
    assert capsys.readouterr().out == f"scene: {tmp_path / 'scene'}\n"
    assert cli.main(["datasets", "fetch", "all", "--no-progress"]) == 2
    assert [name for name, _ in made[1:]] == list(REGISTRY)
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 10
    assert err == "csdpp: fetch: medical could not be had\n"


@pytest.mark.parametrize("module", [False, True], ids=["script", "module"])
def test_demo_as_a_process(tmp_path, module):
    command = (sys.executable, "-m", "csdpp") if module else (SCRIPT,)
    code, out, err = run(*command, "demo", "--rows", "20", "--output", str(tmp_path / "new"))
    assert (code, err) == (0, "")  # no bar: stderr is no terminal
    assert "CS-DPP, our defaults" in out
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"costs.png", "costs.csv", "results.json"}


# ---- what goes wrong


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InvalidParameter("demo: rows must be\n  less"), 2, "csdpp: demo: rows must be less\n"),
        (CsdppError("no"), 2, "csdpp: no\n"),
        (ImportError("demo: needs rich"), 2, "csdpp: demo: needs rich\n"),
        (KeyboardInterrupt(), 130, "csdpp: interrupted\n"),
    ],
)
def test_expected_errors_are_one_line(monkeypatch, capsys, error, code, line):
    failing(monkeypatch, error)
    assert cli.main(["demo"]) == code
    assert capsys.readouterr() == ("", line)


@pytest.mark.parametrize(
    "error", [ValueError("bug"), ModuleNotFoundError("No module", name="nmpy"), ZeroDivisionError()]
)
def test_bugs_are_not_caught(monkeypatch, error):
    failing(monkeypatch, error)
    with pytest.raises(type(error)):
        cli.main(["demo"])


@pytest.mark.parametrize("arguments", [["demo", "--rows", "many"], ["demo", "--bogus"], ["bogus"]])
def test_wrong_options_exit_2(arguments, capsys, calls):
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == 2
    assert "error:" in capsys.readouterr().err
    assert calls == []


def test_error_in_a_process(tmp_path):
    code, out, err = run(SCRIPT, "demo", "--rows", "0", "--output", str(tmp_path))
    assert (code, out) == (2, "")
    assert err == "csdpp: demo: rows must be a whole number from 1 to 2417, got 0\n"


def test_missing_extra_in_a_process():
    code, out, err = run(
        code="import sys; sys.modules['rich'] = sys.modules['river'] = None\n"
        "from csdpp.cli import main; sys.exit(main(['demo']))"
    )
    assert (code, out) == (2, "")
    assert err == "csdpp: demo: needs rich and river, not installed here; pip install 'csdpp[demo]'\n"


def test_bug_in_a_process_keeps_its_traceback():
    code, _, err = run(
        code="import sys; from csdpp import cli, demo; demo.run = lambda *a, **k: 1 / 0; sys.exit(cli.main(['demo']))"
    )
    assert code == 1
    assert "Traceback" in err
    assert "ZeroDivisionError" in err


def test_ctrl_c_in_a_process():
    """The signal comes while the command runs."""
    code, out, err = run(
        code="import signal, sys; from csdpp import cli, demo\n"
        "demo.run = lambda *a, **k: signal.raise_signal(signal.SIGINT)\n"
        "sys.exit(cli.main(['demo']))"
    )
    assert (code, out, err) == (130, "", "csdpp: interrupted\n")
