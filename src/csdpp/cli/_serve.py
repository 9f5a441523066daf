"""`csdpp serve`."""

from argparse import ArgumentParser, Namespace
from dataclasses import fields

from csdpp.cli._command import Command
from csdpp.service.settings import Settings
from csdpp.service.tokens import SCOPES, new_token


def _add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help="TOML file with settings")
    parser.add_argument("--show-config", action="store_true", help="print all settings as TOML, and exit")
    parser.add_argument("--new-token", metavar="NAME", help="print a fresh token and the TOML for its hash, and exit")
    parser.add_argument(
        "--scopes", nargs="+", choices=SCOPES, default=list(SCOPES), help="of the new token (default: all)"
    )
    parser.add_argument(
        "--cut-log", type=int, metavar="SEQ", help="drop the answers from this one on out of a damaged log, and exit"
    )
    group = parser.add_argument_group("settings, also in the file and as CSDPP_SERVE_NAME in the environment")
    for spec in fields(Settings):
        if spec.name == "tokens":
            continue
        flag, text = f"--{spec.name.replace('_', '-')}", spec.metadata["help"]
        if spec.type is bool:
            group.add_argument(flag, action="store_const", const=True, help=text)
        elif spec.name in ("labels", "features", "learner"):
            metavar = "NAME=VALUE" if spec.name == "learner" else "NAME"
            group.add_argument(flag, nargs="+", metavar=metavar, help=text)
        else:
            metavar = "N" if spec.type is int else "X" if spec.type is float else "TEXT"
            group.add_argument(flag, metavar=metavar, help=f"{text} (default: {spec.default})")


def _call(options: Namespace) -> object:
    if options.new_token is not None:
        secret, token = new_token(options.new_token, options.scopes)
        print(f"{secret}\n\n{token.toml()}")
        return None
    flags = {spec.name: getattr(options, spec.name, None) for spec in fields(Settings)}
    settings = Settings.read(options.config, flags=flags)
    if options.show_config:
        print(settings.show())
        return None
    try:
        from csdpp.service import server
    except ModuleNotFoundError as error:
        raise ImportError("csdpp serve: needs fastapi and uvicorn; pip install 'csdpp[serve]'") from error
    if options.cut_log is not None:
        return server.cut_log(settings, options.cut_log)
    if code := server.run(settings):
        raise SystemExit(code)
    return None


SERVE = Command(
    summary="a learner behind HTTP that learns from answers",
    about="""\
Items come in, tags go out, answers come back later and are learned at once.
Every item and answer is on the disk before it is acknowledged: after a crash
the model is exactly what it was. Listens on loopback unless there are tokens.""",
    examples="""\
examples:
  csdpp serve --labels apple ripe --learner cost=f1 n_components=0.5
  csdpp serve --config serve.toml --port 8100
  csdpp serve --new-token annotators --scopes predict learn
  csdpp serve --show-config""",
    add_options=_add_options,
    call=_call,
)
