"""The command line: options into single library calls.

What users can mend (a `CsdppError`, a missing extra) is one line on stderr and exit code 2; bugs keep their
traceback; Ctrl-C is exit code 130.
"""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from csdpp import __version__, demo
from csdpp.errors import CsdppError

_ABOUT = """\
Online multi-label classification: tags a stream of items, learns from every
answer, and optimises the cost that you choose."""
_EXAMPLES = """\
examples:
  csdpp demo                      compare learners on real data, in seconds
  csdpp demo --rows 500 --seed 1  the same on fewer rows, in another order
  csdpp COMMAND --help            what a command does, and its options

exit codes: 0 done, 2 something you can mend (one line says what), 130 Ctrl-C"""


class Command(NamedTuple):
    """A command: how the list of commands and its own help describe it, its options, and the call that it is."""

    summary: str
    about: str
    examples: str
    add_options: Callable[[ArgumentParser], None]
    call: Callable[[Namespace], object]


def _demo_options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, metavar="N", help="how many rows of the stream (default: all 2,417)")
    parser.add_argument(
        "--output", default="demo-output", metavar="DIR", help="folder for picture and figures (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="order of the rows, and random codes (default: %(default)s)"
    )
    parser.add_argument("--no-progress", action="store_true", help="no progress bar, even on a terminal")


COMMANDS = {
    "demo": Command(
        summary="compare learners on real data, in seconds",
        about="""\
Runs O-BR, O-RAND, DPP, and CS-DPP as published and with our defaults, over the
yeast stream that comes with river: each row is predicted, then learned, under
four costs. Prints a table; writes a picture of the running averages, the table
and all figures. Downloads nothing; needs pip install 'csdpp[demo]'.""",
        examples="""\
examples:
  csdpp demo                      all rows, into ./demo-output
  csdpp demo --seed 1             another order of the rows
  csdpp demo --rows 300           who learns fast?
  csdpp demo --output /data/demo  files elsewhere""",
        add_options=_demo_options,
        call=lambda options: demo.run(
            options.rows,
            options.output,
            seed=options.seed,
            progress=not options.no_progress,
        ),
    ),
}


def make_parser() -> ArgumentParser:
    """The parser of all commands."""
    parser = ArgumentParser("csdpp", description=_ABOUT, epilog=_EXAMPLES, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"csdpp {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for name, command in COMMANDS.items():
        command.add_options(
            commands.add_parser(
                name,
                help=command.summary,
                description=command.about,
                epilog=command.examples,
                formatter_class=RawDescriptionHelpFormatter,
            )
        )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; ``arguments`` default to those of the process. Returns the exit code."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        COMMANDS[options.command].call(options)
        return 0
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except CsdppError as error:
        return _say(str(error), 2)
    except ImportError as error:
        if error.name is not None:  # Python's own message, a bug: ours, which say what to install, name no module
            raise
        return _say(str(error), 2)


def _say(message: str, code: int) -> int:
    print(f"csdpp: {' '.join(message.split())}", file=sys.stderr)
    return code
