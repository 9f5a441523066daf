"""`csdpp bench`."""

from argparse import ArgumentParser

from csdpp import bench
from csdpp.bench import streams
from csdpp.cli._command import Command


def _add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--output", default="bench-output", metavar="DIR", help="folder for tables and pictures (default: %(default)s)"
    )
    parser.add_argument(
        "--sets", nargs="+", metavar="SET", help=f"some of {', '.join(streams.NAMES)} (default: all that can be had)"
    )
    parser.add_argument(
        "--peers",
        metavar="PYTHON",
        help="an interpreter that has the peers; `make bench-env` makes one (default: none)",
    )
    parser.add_argument("--data", metavar="DIR", help="folder of the real sets (default: CSDPP_DATA)")
    parser.add_argument("--quick", action="store_true", help="a few rows of two streams, under a minute")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="of generated streams and row orders (default: %(default)s)"
    )
    parser.add_argument("--no-progress", action="store_true", help="do not say what is being measured")


BENCH = Command(
    summary="measure speed, memory and losses beside other packages",
    about="""\
Runs every learner over four generated streams and the real sets, predicting
each row before it is learned, one process and one thread a learner: ours, the
same in plain NumPy, and, with --peers, what others would pick. Prints tables of
rows per second, peak memory and losses, best of a small grid of settings for
each; writes them as JSON and Markdown, and pictures of speed against loss. A
run that was interrupted goes on where it stopped.""",
    examples="""\
examples:
  csdpp bench --quick                          does it work here?
  csdpp bench --sets S1 S2                     two generated streams
  csdpp bench --peers .venv-bench/bin/python   everything, some 25 minutes""",
    add_options=_add_options,
    call=lambda options: bench.run(
        options.output,
        sets=options.sets,
        peers=options.peers,
        data=options.data,
        quick=options.quick,
        seed=options.seed,
        progress=not options.no_progress,
    ),
)
