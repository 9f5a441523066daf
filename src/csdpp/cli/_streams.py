"""`csdpp train`, `update`, `predict` and `info`."""

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

from csdpp import persist, streaming
from csdpp.cli._command import Command
from csdpp.datasets.sources import FORMATS


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _assignment(text: str) -> tuple[str, Any]:
    """`name=value`, the value as JSON where it is any."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    return name, _value(value)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _add_sources(parser: ArgumentParser, what: str) -> None:
    parser.usage = "%(prog)s MODEL [SOURCE ...] [options]"
    parser.add_argument("model", metavar="MODEL", help="file of the model")
    parser.add_argument(
        "sources", nargs="*", metavar="SOURCE", help=f"{what}: files, the name of a set, or - (default: standard input)"
    )


#: Options of readers: their name, how they are parsed, and what they say. Those that are given are handed on.
_READING: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--format",
        {"metavar": "NAME", "help": f"{', '.join(FORMATS)} (default: by the ending; jsonl on standard input)"},
    ),
    ("--label-prefix", {"metavar": "TEXT", "help": "tables: columns that begin so are labels"}),
    (
        "--features",
        {"type": _names, "metavar": "A,B", "help": "tables: columns that are features (default: all others)"},
    ),
    ("--id-column", {"metavar": "NAME", "help": "tables: column that names the row"}),
    ("--delimiter", {"metavar": "C", "help": "csv: between fields (default: a comma; a tab in .tsv)"}),
    ("--n-features", {"type": int, "metavar": "D", "help": "svmlight: how many features there are"}),
    ("--n-labels", {"type": int, "metavar": "K", "help": "svmlight: how many labels there are"}),
    ("--zero-based", {"action": "store_true", "help": "svmlight: features count from 0 (default: from 1)"}),
    ("--one-based-labels", {"action": "store_true", "help": "svmlight: labels count from 1 (default: from 0)"}),
    ("--xml", {"metavar": "FILE", "help": "mulan: file of label names (default: beside the ARFF)"}),
    ("--label-path", {"metavar": "FILE", "help": "xmc: file of labels, where they are not with the features"}),
    ("--encoding", {"metavar": "NAME", "help": "of text (default: utf-8)"}),
)


def _add_reading(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("how rows are read")
    for name, options in _READING:
        group.add_argument(name, **options)
    group.add_argument(
        "--fill", type=float, metavar="X", help="number for missing features (default: they are refused)"
    )


def _reading(options: Namespace) -> dict[str, Any]:
    """What was said about reading, as the library calls it."""
    given = {name.lstrip("-").replace("-", "_") for name, _ in _READING}
    found = {name: value for name, value in vars(options).items() if name in given and value not in (None, False)}
    if found.pop("one_based_labels", False):
        found["zero_based_labels"] = False
    return found


def _source(options: Namespace) -> tuple[Any, dict[str, Any]]:
    """The sources, and how they are read."""
    reading = {"fill": options.fill, **_reading(options)}
    sources = options.sources or ["-"]
    if sources == ["-"]:
        reading.setdefault("format", "jsonl")
    return (sources[0] if len(sources) == 1 else sources), reading


# ---- learning


def _add_learning(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--labels",
        type=_names,
        metavar="A,B",
        help="names of labels that are known beforehand; in tables, their columns",
    )
    parser.add_argument(
        "--block-rows", type=int, metavar="N", help="rows that are held and learned at a time (default: 1000)"
    )
    parser.add_argument(
        "--checkpoint-rows",
        type=int,
        default=100_000,
        metavar="N",
        help="rows after which the model is written (default: %(default)s)",
    )
    parser.add_argument(
        "--new-names",
        choices=["grow", "ignore", "refuse"],
        default="grow",
        help="what to do with features and labels that come later (default: %(default)s)",
    )
    parser.add_argument(
        "--live", action="store_true", help="the source goes on where it was left: pass over nothing when resumed"
    )
    parser.add_argument("--no-progress", action="store_true", help="no line of progress, even on a terminal")


def _learning(options: Namespace) -> dict[str, Any]:
    return {
        "label_names": options.labels or (),
        "block_rows": options.block_rows,
        "checkpoint_rows": options.checkpoint_rows,
        "new_names": options.new_names,
        "live": options.live,
        "progress": False if options.no_progress else None,
    }


def _add_train(parser: ArgumentParser) -> None:
    _add_sources(parser, "labelled rows")
    group = parser.add_argument_group("the learner")
    group.add_argument(
        "--learner", default="CSDPP", metavar="NAME", help=f"{', '.join(persist.LEARNERS)} (default: %(default)s)"
    )
    group.add_argument("--cost", metavar="NAME", help="hamming, f1, accuracy, rank, micro_f1, macro_f1 (default: f1)")
    group.add_argument(
        "--components", type=_value, metavar="M", help="directions: a number, or a share of the labels (default: 0.1)"
    )
    group.add_argument(
        "--set", type=_assignment, action="append", default=[], metavar="NAME=VALUE", help="any other parameter of it"
    )
    _add_learning(parser)
    parser.add_argument("--restart", action="store_true", help="begin anew, whatever MODEL holds")
    _add_reading(parser)


def _train(options: Namespace) -> None:
    source, reading = _source(options)
    named = {"cost": options.cost, "n_components": options.components}
    parameters = {name: value for name, value in named.items() if value is not None} | dict(options.set)
    report = streaming.train(
        source,
        options.model,
        learner=options.learner,
        parameters=parameters,
        restart=options.restart,
        **_learning(options),
        **reading,
    )
    _tell(report)


def _add_update(parser: ArgumentParser) -> None:
    _add_sources(parser, "labelled rows")
    _add_learning(parser)
    parser.add_argument(
        "--abandon", action="store_true", help="leave the stream amid which MODEL was left, and begin this one"
    )
    _add_reading(parser)


def _update(options: Namespace) -> None:
    source, reading = _source(options)
    _tell(streaming.update(options.model, source, abandon=options.abandon, **_learning(options), **reading))


def _tell(report: streaming.Report) -> None:
    """What was learned; after a signal the exit code says which."""
    print(
        f"{report.path}: {report.learned:,} rows learned, {report.rows:,} of this stream; "
        f"{report.cost} {report.average:.4f} before each was learned"
    )
    if report.signal is not None:
        print("csdpp: stopped; the same command goes on from there", file=sys.stderr)
        raise SystemExit(128 + report.signal)


# ---- predicting


def _add_predict(parser: ArgumentParser) -> None:
    _add_sources(parser, "rows, whose labels are passed over")
    parser.add_argument("--output", default="-", metavar="FILE", help="(default: standard output)")
    parser.add_argument(
        "--output-format",
        choices=["jsonl", "csv", "svmlight"],
        help="of the answers (default: by the ending of --output, else jsonl)",
    )
    parser.add_argument("--scores", action="store_true", help="scores too: a label is predicted from 0 on")
    parser.add_argument("--top", type=int, metavar="N", help="the N labels of the highest scores, highest first")
    parser.add_argument(
        "--block-rows", type=int, default=5000, metavar="N", help="rows that are held at a time (default: %(default)s)"
    )
    parser.add_argument("--no-progress", action="store_true", help="no line of progress, even on a terminal")
    _add_reading(parser)


def _predict(options: Namespace) -> None:
    source, reading = _source(options)
    streaming.predict(
        options.model,
        source,
        options.output,
        output_format=options.output_format,
        scores=options.scores,
        top=options.top,
        block_rows=options.block_rows,
        progress=False if options.no_progress else None,
        **reading,
    )


_RESUMED = """\
The file is written every --checkpoint-rows rows, at the end, upon SIGTERM and
upon Ctrl-C (exit codes 143, 130), each time whole or not at all. After that, or
after a crash, the same command goes on from the last of them: rows that were
learned are passed over, and the result is that of a run without interruption."""

TRAIN = Command(
    summary="learn from files or a pipe, into a file",
    about=f"""\
Learns rows of features and labels in the order in which they come, each once,
and keeps the model in MODEL. Holds no more than a block of rows. Tells the
running cost: each row is predicted before it is learned.

{_RESUMED}""",
    examples="""\
examples:
  csdpp train tags.csdpp mails.jsonl                    JSON lines
  csdpp train tags.csdpp mails.csv --label-prefix is_   a table
  csdpp train tags.csdpp yeast --cost accuracy          a set of the paper
  csdpp train tags.csdpp --components 0.3 --set rate=5  from standard input
  csdpp train t.csdpp a.svm --n-features 99 --n-labels 7

JSON lines:
  {"x": {"length": 3.5, "new": 1}, "y": ["toys", "gifts"]}
  {"x": {"length": 1}, "y": {"toys": true}}   other labels are not known""",
    add_options=_add_train,
    call=_train,
)

UPDATE = Command(
    summary="go on learning from files or a pipe",
    about=f"""\
Has the model in MODEL learn more rows, and writes it into the same file.
Columns are matched by name where the rows have names.

{_RESUMED}""",
    examples="""\
examples:
  csdpp update tags.csdpp today.jsonl
  csdpp update tags.csdpp --block-rows 1 --live   a pipe that never ends
  csdpp update tags.csdpp more.csv --new-names ignore""",
    add_options=_add_update,
    call=_update,
)

PREDICT = Command(
    summary="predict rows of files or of a pipe",
    about="""\
Predicts each row by the model in MODEL and writes a line for it: JSON with the
names of its labels, or CSV with a column for each label. Columns are matched by
name where the rows have names; what the model does not know has no say.""",
    examples="""\
examples:
  csdpp predict tags.csdpp new.csv --output answers.csv
  csdpp predict tags.csdpp new.jsonl --top 3
  csdpp predict tags.csdpp --scores --block-rows 1   answers as rows come""",
    add_options=_add_predict,
    call=_predict,
)

INFO = Command(
    summary="tell what a file of a model holds",
    about="""\
Prints class, parameters, sizes, labels and state of the model in a file, the
stream that it learned and how far, and the cost on the way. The checksum is
tested; nothing in the file is run.""",
    examples="""\
examples:
  csdpp info tags.csdpp""",
    add_options=lambda parser: _add_info(parser),
    call=lambda options: print("\n\n".join(streaming.describe(path) for path in options.files)),
)


def _add_info(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="of models")
