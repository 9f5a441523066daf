"""Write the files of the present format: run it once when `csdpp.persist.FORMAT` has been raised.

    python tests/stored/write.py

Each file has learned the first 60 rows of a stream; its extra are the predictions when it goes on over the others.
Files of older formats stay as they are.
"""

import sys
from pathlib import Path

from csdpp import CSDPP, OnlineBinaryRelevance, OnlineCompressedSensing, OnlineRandomProjection, persist

FOLDER = Path(__file__).resolve().parent
LEARNERS = {
    "csdpp": CSDPP(2),
    "pbt": CSDPP.published(2, random_state=3),
    "macro-f1": CSDPP(2, cost="macro_f1", forgetting=0.99, dtype="float32"),
    "auto": CSDPP(2, regularization="auto"),
    "o-br": OnlineBinaryRelevance(),
    "o-rand": OnlineRandomProjection(2, random_state=3),
    "o-cs": OnlineCompressedSensing(0.6, random_state=3),
}


def main():
    sys.path.insert(0, str(FOLDER.parent))
    from streams import correlated

    X, Y = correlated(120, 5, 6, 21)
    for name, learner in LEARNERS.items():
        model = learner.partial_fit(X[:60], Y[:60])
        later = persist.loads(persist.dumps(model)).prequential(X[60:], Y[60:])
        persist.save(model, FOLDER / f"{persist.FORMAT}-{name}.csdpp", extra=later)


if __name__ == "__main__":
    main()
