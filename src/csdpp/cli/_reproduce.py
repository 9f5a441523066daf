"""`csdpp reproduce`."""

from argparse import ArgumentParser

from csdpp import experiments
from csdpp.cli._command import Command, add_dask, spread_of
from csdpp.experiments.spec import REPEATS


def _add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--output", default="reproduction", metavar="DIR", help="folder of results and report (default: %(default)s)"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        help="some of the experiments noise, large, basis, cost, orders, defaults, ablation, regret, ceilings, batch, "
        "readings (default: all)",
    )
    parser.add_argument("--sets", nargs="+", metavar="SET", help="some of the data sets (default: all at hand)")
    parser.add_argument(
        "--repeats", type=int, default=REPEATS, metavar="R", help="repetitions (default: %(default)s, as published)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of all that is drawn (default: %(default)s)")
    parser.add_argument("--jobs", type=int, metavar="J", help="processes (default: one a core)")
    add_dask(parser)
    parser.add_argument("--export", metavar="FILE", help="also write every result as .parquet or .csv")
    parser.add_argument("--no-progress", action="store_true", help="do not say how far it is")


REPRODUCE = Command(
    summary="the tables and figures of the paper, beside ours",
    about="""\
Runs the experiments of the paper, and some beyond it, on the data sets that are
at hand (below CSDPP_DATA or fetched), and writes report.html: each published
figure beside ours, with its standard error and a mark for agreement; the
figures; the paper's claims, true or false; what deviates and why. All results
are kept in results.sqlite: interrupted or killed, the same command goes on
where it was, and more repetitions add to what is there. Says how long it will
still take. Needs pip install 'csdpp[experiments]'.""",
    examples="""\
examples:
  csdpp reproduce --repeats 3                     everything, shortened
  csdpp reproduce                                 everything, as published
  csdpp reproduce --only cost --sets yeast enron  one experiment, two sets
  csdpp reproduce --export results.parquet        with a table of all runs""",
    add_options=_add_options,
    call=lambda options: experiments.reproduce(
        options.output,
        only=options.only,
        sets=options.sets,
        repeats=options.repeats,
        seed=options.seed,
        jobs=options.jobs,
        spread=spread_of(options),
        export=options.export,
        progress=not options.no_progress,
    ),
)
