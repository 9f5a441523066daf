"""The costs of the paper, compiled (section 5.1)."""

from csdpp._kernels import weights as kernels
from csdpp.costs._base import Cost


class Hamming(Cost):
    """The share of labels predicted wrongly, (fp + fn) / K. Every weight is 1/K.

    >>> Hamming().loss([1, 0, 0, 0], [0, 1, 0, 0])
    0.5
    """

    name = "hamming"
    _kind = kernels.HAMMING
    _shared = True


class F1(Cost):
    """The example-based F1 loss, 1 − 2 tp / (2 tp + fp + fn); 0 where nothing is relevant or predicted.

    >>> F1().loss([1, 1, 0, 0], [1, 0, 0, 0])
    0.333
    """

    name = "f1"
    _kind = kernels.F1


class Accuracy(Cost):
    """The Jaccard loss, 1 − tp / (tp + fp + fn); 0 where nothing is relevant or predicted.

    >>> Accuracy().loss([1, 1, 0, 0], [1, 0, 0, 0])
    0.5
    """

    name = "accuracy"
    _kind = kernels.ACCURACY


class Rank(Cost):
    """The share of pairs (relevant, irrelevant) in the wrong order, a tie counting half; 0 without a pair.

    The normalised rank loss as the paper prints it, (fn / P + fp / N) / 2 with P relevant and N irrelevant
    labels. Its tables were made with another one, `RankPublished`.

    >>> Rank().loss([1, 1, 0, 0], [1, 0, 1, 0])
    0.5
    """

    name = "rank"
    _kind = kernels.RANK


class RankPublished(Cost):
    """The rank loss of the paper's tables, for their reproduction only: (fn fp + fn tn / 2) / (P N).

    A tie of two predicted labels is free, so predicting everything costs nothing. 1 where no label is
    relevant, whatever is predicted (there c(y, y) = 0 and with it Lemma 2 fail); 0 where all are.

    >>> RankPublished().loss([1, 1, 0, 0], [1, 1, 1, 1])
    0.0
    """

    name = "rank_published"
    _kind = kernels.RANK_PUBLISHED
