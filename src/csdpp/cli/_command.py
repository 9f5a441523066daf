"""What a command is, and what several of them share."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any, NamedTuple


class Command(NamedTuple):
    """A command: how the list of commands and its own help describe it, its options, and the call that it is."""

    summary: str
    about: str
    examples: str
    add_options: Callable[[ArgumentParser], None]
    call: Callable[[Namespace], object]


def add_dask(parser: ArgumentParser) -> None:
    """The option that spreads runs over a cluster."""
    parser.add_argument(
        "--dask",
        nargs="?",
        const="local",
        metavar="ADDRESS",
        help="spread runs over the Dask cluster of this scheduler, such as tcp://host:8786; without an address, over "
        "the cores of this machine",
    )


def spread_of(options: Namespace) -> Any:
    """How `--dask` says to spread runs; None: as usual."""
    if options.dask is None:
        return None
    from csdpp import distributed

    return distributed.spread(options.dask)
