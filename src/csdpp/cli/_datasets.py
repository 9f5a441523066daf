"""`csdpp datasets`: list, info, fetch."""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter

from csdpp.cli._command import Command
from csdpp.datasets import REGISTRY, fetch
from csdpp.datasets.catalogue import describe, listing
from csdpp.errors import CsdppError, FetchError


def _add_options(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(
        title="what to do", dest="action", metavar="ACTION", required=True, help="list, info or fetch"
    )
    for name, summary, about, examples in _ACTIONS:
        inner = actions.add_parser(
            name, help=summary, description=about, epilog=examples, formatter_class=RawDescriptionHelpFormatter
        )
        if name == "info":
            inner.add_argument("names", nargs="+", metavar="NAME", help="of sets or stand-ins")
        if name == "fetch":
            inner.add_argument("names", nargs="+", metavar="NAME", help="of sets; all for every set")
            inner.add_argument(
                "--mirror", metavar="WHERE", help="address or folder that has NAME/FILE (default: as in the registry)"
            )
            inner.add_argument("--force", action="store_true", help="fetch even what is there")
            inner.add_argument(
                "--timeout", type=float, default=30.0, metavar="S", help="seconds without a byte (default: %(default)g)"
            )
            inner.add_argument("--no-progress", action="store_true", help="no progress bar, even on a terminal")
        inner.add_argument(
            "--root",
            metavar="DIR",
            help="folder in which the set's folder is made (default: the user's cache)"
            if name == "fetch"
            else "folder of the sets (default: CSDPP_DATA, then the user's cache)",
        )


_ACTIONS = (
    (
        "list",
        "the sets of the paper and their stand-ins, and what is at hand",
        "Prints a line for each set of the paper, with its sizes and the folder in which\n"
        "it lies, and for each generated stand-in.",
        "examples:\n  csdpp datasets list\n  csdpp datasets list --root data",
    ),
    (
        "info",
        "sizes, files, source and citation of sets",
        "Prints all that the registry knows of a set, and whether it is at hand.",
        "examples:\n  csdpp datasets info scene\n  csdpp datasets info delicious delicious-like",
    ),
    (
        "fetch",
        "download sets into the cache",
        "Downloads sets, tests checksums and statistics, and puts each in its place\n"
        "whole or not at all. What was interrupted goes on where it stopped. A set that\n"
        "is at hand is left as it is. Behind a proxy, set http_proxy and https_proxy.",
        """\
examples:
  csdpp datasets fetch scene
  csdpp datasets fetch all --mirror http://intranet/sets
  csdpp datasets fetch yeast --mirror /media/usb --root data

Without a network: copy the folder of a set (its ARFF and XML files) to a place
of your own and set CSDPP_DATA to the folder above it.""",
    ),
)


def _call(options: Namespace) -> None:
    if options.action == "list":
        print(listing(options.root))
    elif options.action == "info":
        print("\n\n".join(describe(name, options.root) for name in options.names))
    else:
        _fetch(options)


def _fetch(options: Namespace) -> None:
    """One after the other; what cannot be had does not keep the rest from coming."""
    names = list(REGISTRY) if options.names == ["all"] else options.names
    failures: list[CsdppError] = []
    for name in names:
        try:
            folder = fetch(
                name,
                root=options.root,
                mirror=options.mirror,
                force=options.force,
                progress=False if options.no_progress else None,
                timeout=options.timeout,
            )
        except FetchError as error:
            failures.append(error)
        else:
            print(f"{name}: {folder}", flush=True)
    if failures:
        raise FetchError("; ".join(map(str, failures)))


DATASETS = Command(
    summary="list, describe and download the sets of the paper",
    about="""\
The eleven sets of the paper: what they are, where they come from, which of them
are on this machine; and stand-ins of the same sizes for those that are hard to
come by. `csdpp datasets ACTION --help` tells more.""",
    examples="""\
examples:
  csdpp datasets list           names, sizes, and where they are
  csdpp datasets info scene     files, source and citation
  csdpp datasets fetch scene    into the cache, verified""",
    add_options=_add_options,
    call=_call,
)
