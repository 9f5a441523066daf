"""docs/service.md: its curl examples are run and answer as shown, its Python runs, its files are sound."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
from csdpp import cli
from csdpp.errors import CsdppError
from csdpp.service.client import AsyncClient, Client, Learned, ServiceError
from csdpp.service.settings import Settings
from csdpp.service.tokens import new_token
from service import FRUIT, live

ROOT = Path(__file__).resolve().parents[1]
PAGE, FILES = ROOT / "docs" / "service.md", ROOT / "docs" / "service"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_curl_examples_answer_as_shown(tmp_path):
    if shutil.which("curl") is None or shutil.which("bash") is None:
        pytest.skip("needs curl and bash")
    blocks = FENCE.findall(PAGE.read_text(encoding="utf-8"))
    shown = 0
    with live(tmp_path, **FRUIT | {"learner": {"cost": "f1", "n_components": 2}}) as service:
        for (language, code), (after, answer) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
            if language == "sh":
                command = ["bash", "-euo", "pipefail", "-c", code.replace("curl -sS", "curl -sSf --noproxy '*'")]
                environment = os.environ | {"URL": service.url}
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
                if after == "json":
                    got = [json.loads(line) for line in done.stdout.splitlines()]
                    lines = answer.splitlines() if len(got) > 1 else [answer]
                    assert got == [json.loads(line) for line in lines]
                    shown += 1
            elif language == "py":
                exec(code, {"URL": service.url})
    assert shown == 4


def test_settings_of_the_page_are_read():
    settings = Settings.read(str(FILES / "serve.toml"), {})
    assert settings.tokens[0].scopes == ("predict",)
    assert tomllib.loads((FILES / "serve.toml").read_text())["learner"] == settings.learner


def test_unit_is_sound(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    unit = tmp_path / "csdpp-serve.service"
    shutil.copy(FILES / "csdpp-serve.service", unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    about = [line for line in done.stderr.splitlines() if "csdpp-serve" in line]
    assert about == []


def test_container_file_is_sound():
    """Each instruction is one, and what it says of the command line is true."""
    text = re.sub(r"\\\n", " ", (FILES / "Containerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    words = [line.split(maxsplit=1) for line in lines]
    known = {"FROM", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT"}
    assert {word for word, _ in words} == known
    assert words[0][0] == "FROM"
    for word, rest in words:
        if "[" in rest and word != "RUN":
            assert all(isinstance(part, str) for part in json.loads(rest[rest.index("[") :]))
        if word == "RUN":
            assert subprocess.run(["sh", "-n", "-c", rest], check=False).returncode == 0
        if word == "ENV":
            given = dict(pair.split("=") for pair in rest.split())
            Settings.read(None, given, {"insecure": True})
    entry = json.loads(words[-1][1])
    assert entry[0] == "csdpp"
    assert cli.make_parser().parse_args([*entry[1:-1], "x"]).command == "serve"


def test_file_then_environment_then_flags(tmp_path, capsys, monkeypatch):
    path = tmp_path / "serve.toml"
    path.write_text('port = 1\nmax_items = 2\nlabels = ["x y", "ü"]\ngrow = true\nlearner = { n_components = 0.5 }\n')
    monkeypatch.setenv("CSDPP_SERVE_MAX_ITEMS", "3")
    monkeypatch.setenv("CSDPP_SERVE_KEEP_DAYS", "1.5")
    assert (
        cli.main(["serve", "--config", str(path), "--show-config", "--keep-days", "2", "--learner", "cost=rank"]) == 0
    )
    shown = capsys.readouterr().out
    settings = Settings.of(tomllib.loads(shown))
    assert (settings.port, settings.max_items, settings.keep_days, settings.grow) == (1, 3, 2.0, True)
    assert (settings.labels, settings.learner) == (("x y", "ü"), {"cost": "rank"})
    path.write_text(shown)
    assert Settings.read(str(path), {}) == settings


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"prot": 1}, "'prot' is no setting"),
        ({"port": "x"}, "port must be a whole number, got 'x'"),
        ({"port": 1.5}, "port must be a whole number"),
        ({"max_items": 0}, "max_items must be at least 1"),
        ({"keep_days": "nan"}, "keep_days must be at least 0.0"),
        ({"grow": "perhaps"}, "grow must be true or false"),
        ({"labels": [1]}, "labels must be names"),
        ({"labels": ["a", "a"]}, "labels must be different names"),
        ({"learner": {"cots": "f1"}}, "learner must be parameters of CSDPP"),
        ({"learner": {"cost": "f2"}}, "cost must be one of"),
        ({"tokens": [{"name": "x", "sha256": "x", "scopes": ["predict"]}]}, "sha256 must be 64 hexadecimal digits"),
        ({"tokens": [{"name": "x", "sha256": "0" * 64, "scopes": ["all"]}]}, "scopes must be some of"),
        ({"host": ""}, "host must be text"),
    ],
)
def test_wrong_settings_are_refused_in_one_sentence(given, said):
    with pytest.raises(CsdppError, match=re.escape(said)):
        Settings.of(given)


def test_file_that_is_none(tmp_path, capsys):
    assert cli.main(["serve", "--config", str(tmp_path / "none.toml")]) == 2
    (tmp_path / "bad.toml").write_text("port = ")
    assert cli.main(["serve", "--config", str(tmp_path / "bad.toml")]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert "there is no file" in first
    assert "must be TOML that can be read" in second


# ---- clients


def test_clients_are_alike(tmp_path):
    """Every public call of one is a call of the other, and gives the same."""
    secret, token = new_token("both", ["predict", "learn", "admin"])
    names = [name for name in vars(Client) if not name.startswith("_")]
    assert names == [name for name in vars(AsyncClient) if not name.startswith("_")]

    async def ask(url):
        async with AsyncClient(url, secret) as client:
            said = await client.predict({"red": 1.0}, id="one")
            first = await client.feedback("one", ["apple"])
            many = await client.predict_many([{"red": 1.0}, [0.0, 1.0]], scores=False, keep=False)
            lines = [line async for line in client.learn_many([({"red": 1}, ["apple"]), ({"blue": 1}, [])])]
            learned = await client.learn([1.0, 0.0], {"apple": True, "ripe": False}, id="two")
            await client.checkpoint()
            return (
                said,
                first,
                many,
                lines,
                learned,
                await client.item("one"),
                await client.model(),
                await client.metrics(),
            )

    with live(tmp_path, tokens=(token,), **FRUIT) as service, Client(service.url, secret) as client:
        said, first, many, lines, learned, item, model, metrics = asyncio.run(ask(service.url))
        assert client.predict({"red": 1.0}, id="one").id == said.id == "one"
        assert client.feedback("one", ["apple"]) == Learned("one", 1, 3, True)
        assert (first.seq, first.repeated) == (1, False)
        assert [one.scores for one in many] == [None, None]
        assert isinstance(lines[1], ServiceError)
        assert (lines[0].seq, lines[1].code) == (2, "unknown_feature")
        assert client.learn([1.0, 0.0], {"apple": True, "ripe": False}, id="two").seq == learned.seq == 3
        assert client.item("one") == item
        assert client.model()["version"] == model["version"] == metrics["version"] == client.metrics()["version"] == 3
        with pytest.raises(
            ServiceError, match=r"was answered otherwise before; an answer is final \(409 other_answer\)"
        ):
            client.feedback("one", ["ripe"])
        with pytest.raises(ServiceError, match="401"), Client(service.url) as nobody:
            nobody.model()


def test_clients_come_again_when_told_to(tmp_path):
    with live(tmp_path, **FRUIT) as service:
        refused, write = [], service.pipeline.store.write

        def fail_twice(*jobs):
            if len(refused) < 2:
                refused.append(1)
                raise OSError("a hiccup")
            return write(*jobs)

        service.pipeline.store.write = fail_twice
        with Client(service.url) as client:
            client._options.pause = lambda attempt, answer: 0.01 if attempt < 5 else None
            assert client.learn({"red": 1}, ["apple"]).seq == 1
        refused.clear()
        with Client(service.url, retries=0) as client, pytest.raises(ServiceError, match="503 storage"):
            client.learn({"red": 1}, ["apple"])


def test_client_says_when_nobody_answers():
    with Client("http://127.0.0.1:9", retries=1) as client, pytest.raises(ServiceError, match="does not answer"):
        client.model()


def test_service_imports_without_its_extra():
    without = "import sys; sys.modules.update(dict.fromkeys(['fastapi', 'uvicorn', 'httpx']))"
    code = f"{without}; from csdpp import cli; sys.exit(cli.main(['serve']))"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (
        2,
        "csdpp: csdpp serve: needs fastapi and uvicorn; pip install 'csdpp[serve]'\n",
    )
