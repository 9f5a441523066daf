"""The command line: options into single library calls, a file for each command.

What users can mend (a `CsdppError`, a missing extra) is one line on stderr and exit code 2; bugs keep their
traceback; Ctrl-C is exit code 130.
"""

import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence

from csdpp import __version__
from csdpp.cli._bench import BENCH
from csdpp.cli._command import Command
from csdpp.cli._completion import SHELLS, PrintCompletion
from csdpp.cli._datasets import DATASETS
from csdpp.cli._demo import DEMO
from csdpp.cli._reproduce import REPRODUCE
from csdpp.cli._run import RUN
from csdpp.cli._serve import SERVE
from csdpp.cli._streams import INFO, PREDICT, TRAIN, UPDATE
from csdpp.errors import CsdppError

_ABOUT = """\
Online multi-label classification: tags a stream of items, learns from every
answer, and optimises the cost that you choose."""
_EXAMPLES = """\
examples:
  csdpp demo                      compare learners on real data, in seconds
  csdpp demo --rows 500 --seed 1  the same on fewer rows, in another order
  csdpp train tags.csdpp a.jsonl  learn a file, or a pipe
  csdpp predict tags.csdpp b.csv  tag another
  csdpp COMMAND --help            what a command does, and its options

exit codes: 0 done, 2 something you can mend (one line says what), 130 Ctrl-C,
143 SIGTERM"""


#: In the order in which `csdpp --help` lists them.
COMMANDS: dict[str, Command] = {
    "demo": DEMO,
    "run": RUN,
    "reproduce": REPRODUCE,
    "train": TRAIN,
    "update": UPDATE,
    "predict": PREDICT,
    "info": INFO,
    "datasets": DATASETS,
    "bench": BENCH,
    "serve": SERVE,
}


def make_parser() -> ArgumentParser:
    """The parser of all commands."""
    parser = ArgumentParser("csdpp", description=_ABOUT, epilog=_EXAMPLES, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"csdpp {__version__}")
    parser.add_argument(
        "--print-completion",
        action=PrintCompletion,
        choices=SHELLS,
        metavar="SHELL",
        help=f"print the completion of commands and options for {', '.join(SHELLS[:-1])} or {SHELLS[-1]}, and exit",
    )
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
    try:
        options = parser.parse_args(arguments)
        if options.command is None:
            parser.print_help(sys.stderr)
            return 2
        COMMANDS[options.command].call(options)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # whoever read our output has enough of it, such as head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
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
