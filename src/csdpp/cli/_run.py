"""`csdpp run`."""

from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from csdpp.cli._command import Command, add_dask, spread_of
from csdpp.experiments import compare


def _size(text: str) -> float | int:
    """A code size: a whole number is M, a share has a point."""
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise ArgumentTypeError(f"expected M, such as 10, or a share of K, such as 0.25, got {text!r}") from None


def _reading(options: Any) -> dict[str, Any]:
    """What goes to the reader of the format; only what was given."""
    given = {"format": options.format, "xml": options.xml}
    given |= {"labels": options.labels, "label_prefix": options.label_prefix}
    return {name: value for name, value in given.items() if value is not None}


def _add_options(parser: ArgumentParser) -> None:
    parser.add_argument("source", nargs="+", metavar="SOURCE", help="files, or the name of a set (csdpp datasets list)")
    parser.add_argument(
        "--learners",
        nargs="+",
        metavar="LEARNER",
        default=["cs-dpp", "dpp", "o-br"],
        help=f"some of {', '.join(compare.LEARNERS)}, with options after a colon; or module:attribute for your own "
        "(default: cs-dpp dpp o-br)",
    )
    parser.add_argument(
        "--costs",
        nargs="+",
        metavar="COST",
        default=["hamming", "f1", "accuracy", "rank"],
        help="some of hamming, f1, accuracy, rank, rank_published, micro_f1, macro_f1 (default: the first four)",
    )
    parser.add_argument(
        "--components",
        nargs="+",
        type=_size,
        metavar="M",
        default=[0.25],
        help="code sizes: whole numbers, or shares of the labels (default: 0.25)",
    )
    parser.add_argument("--repeats", type=int, default=1, metavar="R", help="orders of the rows (default: %(default)s)")
    parser.add_argument("--rows", type=int, metavar="N", help="how many rows, drawn at random (default: all)")
    parser.add_argument(
        "--noise", type=float, default=0.0, metavar="P", help="chance that a relevant label is hidden (default: 0)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of all that is drawn (default: %(default)s)")
    parser.add_argument("--keep-order", action="store_true", help="rows in the order of the file")
    parser.add_argument("--no-scale", action="store_true", help="features as they are, not scaled to [0, 1]")
    parser.add_argument("--format", metavar="NAME", help="of the files (default: by their ending)")
    parser.add_argument("--xml", metavar="FILE", help="label names of a Mulan ARFF (default: beside it)")
    parser.add_argument("--labels", nargs="+", metavar="NAME", help="label columns of CSV or Parquet")
    parser.add_argument("--label-prefix", metavar="TEXT", help="how the names of label columns begin")
    add_dask(parser)
    parser.add_argument(
        "--output",
        default="run-output",
        metavar="DIR",
        help="folder for what is written (default: %(default)s)",
    )
    parser.add_argument("--no-progress", action="store_true", help="do not say what is running")


RUN = Command(
    summary="compare learners on your own data or any known set",
    about="""\
Runs learners over a data set prequentially: every row is predicted, then
learned. Learners that take a cost run once for each, and are measured in the
one that they were told. Prints mean costs and speed; writes costs.csv,
results.json (all curves) and costs.png (costs as they ran) into a folder.
Features are scaled to [0, 1] and rows put in random order unless you say
otherwise. Needs pip install 'csdpp[plots]'.""",
    examples="""\
examples:
  csdpp run yeast                              three learners, four costs
  csdpp run mine.csv --label-prefix tag_       columns tag_... are labels
  csdpp run train.svm --costs f1 --repeats 5   five orders: are they different?
  csdpp run yeast --components 2 0.5           M = 2, and half of the labels
  csdpp run yeast --learners cs-dpp cs-dpp:rate=2,weighting=ordered o-br
  csdpp run yeast --noise 0.5 --learners dpp o-br --costs hamming""",
    add_options=_add_options,
    call=lambda options: compare.run(
        options.source[0] if len(options.source) == 1 else options.source,
        options.learners,
        options.output,
        costs=options.costs,
        components=options.components,
        repeats=options.repeats,
        noise=options.noise,
        rows=options.rows,
        seed=options.seed,
        scale=not options.no_scale,
        permute=not options.keep_order,
        spread=spread_of(options),
        progress=not options.no_progress,
        **_reading(options),
    ),
)
