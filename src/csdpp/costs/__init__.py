"""Costs c(y, ŷ): what a wrong prediction of a row of labels costs, and how much of it each label pays.

The costs are those of the paper's sections 2 and 5.1, the label weights those of its section 4. The weight
δ⁽ᵏ⁾ is the price of getting label k wrong while some of the other labels are right already:

========== ==================================================== =======================================
weighting  the other labels                                     the weights of the mistakes add up to c
========== ==================================================== =======================================
"ordered"  before k right, after k as predicted (the paper's)   yes (Lemma 2)
"shapley"  the same, averaged over all orders of the labels     yes
"marginal" all as predicted                                     no
"mean"     average of "shapley" and "marginal"                  no
========== ==================================================== =======================================

Built in are `Hamming`, `F1`, `Accuracy` and `Rank`, all functions of the four counts of a row, and `MicroF1` and
`MacroF1`, which are measures of a whole stream and weigh a row by those before it. For a cost of your own there
are `CountCost`, a function of the counts, and `AnyCost`, any function of (y, ŷ).

>>> F1().loss([[1, 1, 0, 0], [0, 1, 0, 1]], [[1, 0, 1, 0], [0, 1, 0, 1]])
array([0.5, 0. ])
>>> F1().weights([1, 1, 0, 0], [1, 0, 1, 0])
array([0.4, 0.3, 0.2, 0.2])
"""

from typing import Any

from csdpp.costs._base import Cost, check_mask, resolve_weighting
from csdpp.costs._builtin import F1, Accuracy, Hamming, Rank, RankPublished
from csdpp.costs._memory import MacroF1, MicroF1, StreamCost
from csdpp.costs._user import AnyCost, CountCost
from csdpp.errors import InvalidParameter

__all__ = [
    "Cost",
    "Hamming",
    "F1",
    "Accuracy",
    "Rank",
    "RankPublished",
    "StreamCost",
    "MicroF1",
    "MacroF1",
    "CountCost",
    "AnyCost",
    "resolve_cost",
    "resolve_weighting",
    "check_mask",
]

NAMED: dict[str, type[Cost]] = {c.name: c for c in (Hamming, F1, Accuracy, Rank, RankPublished, MicroF1, MacroF1)}


def resolve_cost(cost: Any) -> Cost:
    """The cost that is meant by an instance, a class or a name.

    >>> resolve_cost("f1") == resolve_cost(F1) == resolve_cost(F1())
    True
    """
    if isinstance(cost, Cost):
        return cost
    if isinstance(cost, str) and cost in NAMED:
        return NAMED[cost]()
    if isinstance(cost, type) and cost in NAMED.values():
        return cost()
    raise InvalidParameter(
        f"cost must be one of {', '.join(map(repr, NAMED))} or a cost of csdpp.costs, got {cost!r}; wrap a "
        "function of your own in CountCost or AnyCost"
    )
