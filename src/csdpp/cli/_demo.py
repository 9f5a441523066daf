"""`csdpp demo`."""

from argparse import ArgumentParser

from csdpp import demo
from csdpp.cli._command import Command


def _add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, metavar="N", help="how many rows of the stream (default: all 2,417)")
    parser.add_argument(
        "--output", default="demo-output", metavar="DIR", help="folder for picture and figures (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="order of the rows, and random codes (default: %(default)s)"
    )
    parser.add_argument("--no-progress", action="store_true", help="no progress bar, even on a terminal")


DEMO = Command(
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
    add_options=_add_options,
    call=lambda options: demo.run(
        options.rows,
        options.output,
        seed=options.seed,
        progress=not options.no_progress,
    ),
)
