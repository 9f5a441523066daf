"""The reference of all commands as Markdown, read off the parser: `python -m csdpp.cli._reference docs/cli.md`.

Tables of options, not the text of --help, whose layout differs between versions of Python.
"""

import sys
from argparse import SUPPRESS, Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path

from csdpp.cli import make_parser

_HEAD = """\
# Command line

Every command and option, generated from the parser: after a change, `make docs` writes this page anew. The same is
said by `csdpp COMMAND --help`.

```sh
csdpp --print-completion bash > csdpp-completion.sh
source csdpp-completion.sh
```

completes commands and options in bash; zsh, fish, tcsh and powershell likewise. It needs
`pip install 'csdpp[completion]'`.
"""


def reference(parser: ArgumentParser | None = None) -> str:
    """The page, each command a section in the order of `csdpp --help`."""
    lines = [_HEAD]
    for command in _commands(parser or make_parser()):
        lines += [f"## {command.prog}", "", (command.description or "").strip(), ""]
        lines += [*_usage(command), *_table(command)]
        if command.epilog:
            lines += ["```text", command.epilog.strip(), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _commands(parser: ArgumentParser) -> Iterator[ArgumentParser]:
    """The parser and those of its commands, which may have commands of their own."""
    yield parser
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for command in action.choices.values():
                yield from _commands(command)


def _usage(parser: ArgumentParser) -> list[str]:
    """What must be given, in a line; options are in the table."""
    needed = [_spelled(action) for action in parser._actions if action.required or not action.option_strings]
    return [f"`{' '.join([parser.prog, *needed, '[options]'])}`", ""]


def _table(parser: ArgumentParser) -> list[str]:
    """A row for each option and argument that the help shows."""
    rows = ["| option | |", "|---|---|"]
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            rows += [f"| `{choice.dest}` | {choice.help} |" for choice in action._choices_actions]
        elif action.help != SUPPRESS:
            text = parser._get_formatter()._expand_help(action)
            rows.append(f"| `{_spelled(action)}` | {' '.join(text.split())} |")
    return [*rows, ""]


def _spelled(action: Action) -> str:
    """An option as one types it: --sets SET [SET ...]."""
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None and action.metavar is None:
        metavar = "{" + ",".join(map(str, action.choices)) + "}"
    values = "" if action.nargs == 0 else metavar
    several = {"+": f"{values} [{values} ...]", "*": f"[{values} ...]", "?": f"[{values}]"}
    values = several.get(str(action.nargs), values)
    return f"{', '.join(action.option_strings)} {values}".strip()


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
