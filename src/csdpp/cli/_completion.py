"""`csdpp --print-completion SHELL`: what a shell needs to complete commands and options."""

from argparse import Action, ArgumentParser, Namespace
from typing import Any

#: The shells that shtab writes for.
SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")


class PrintCompletion(Action):
    """Print the completion of the whole parser and leave, as --version does."""

    def __call__(self, parser: ArgumentParser, options: Namespace, values: Any, option: str | None = None) -> None:
        """Needs shtab."""
        try:
            import shtab
        except ImportError:
            raise ImportError(
                "--print-completion: needs shtab, not installed here; pip install 'csdpp[completion]'"
            ) from None
        print(shtab.complete(parser, shell=values))
        parser.exit()
