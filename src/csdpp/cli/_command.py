"""What a command is, and what several of them share."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import NamedTuple


class Command(NamedTuple):
    """A command: how the list of commands and its own help describe it, its options, and the call that it is."""

    summary: str
    about: str
    examples: str
    add_options: Callable[[ArgumentParser], None]
    call: Callable[[Namespace], object]
