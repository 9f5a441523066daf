"""Rates: how far one row may turn the directions, eta_t = rate_t M / K.

A number r is the paper's schedule rate_t = r / sqrt(t), t being the rows remembered: under ``forgetting`` mu < 1 it
settles at r sqrt(1 - mu) and does not die. `Constant` does not die either way; any other schedule is a function of t.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from csdpp.errors import InvalidParameter

Floats = NDArray[np.float64]
Schedule = Callable[[Floats], Any]


@dataclass(frozen=True)
class Constant:
    """The same rate for every row: the directions follow the last rows for ever, and never settle.

    Parameters
    ----------
    rate : float, not negative
        Its eta = rate M / K has to stand beside ``rate=10``, which is 0.1 after 10,000 rows.

    Examples
    --------
    >>> from csdpp import CSDPP
    >>> CSDPP(0.25, rate=Constant(0.3)).rate
    Constant(rate=0.3)
    """

    rate: float

    def __call__(self, t: Floats) -> Floats:
        """The rates of the rows numbered ``t`` (n,), from 1: (n,)."""
        return np.full(len(t), float(self.rate))


def check_rate(who: str, rate: Any) -> None:
    """Raise unless ``rate`` is a positive number or can be called; a schedule is asked for its first row.

    >>> check_rate("CSDPP", lambda t: 10.0 / t)
    >>> check_rate("CSDPP", -1.0)
    Traceback (most recent call last):
    ...
    csdpp.errors.InvalidParameter: CSDPP: rate must be a positive number or a function of the rows' numbers, got -1.0
    """
    if callable(rate):
        rates_of(who, rate, 0, 1)
        return
    number = isinstance(rate, int | float | np.integer | np.floating) and not isinstance(rate, bool | np.bool_)
    if not number or not np.isfinite(rate) or not rate > 0:
        raise InvalidParameter(
            f"{who}: rate must be a positive number or a function of the rows' numbers, got {rate!r}"
        )


def rates_of(who: str, rate: Schedule, done: int, n: int) -> Floats:
    """The rates of the n rows after ``done`` rows: one call of ``rate`` with their numbers, as floats (n,).

    >>> rates_of("CSDPP", lambda t: 10.0 / t, 4, 2)
    array([2. , 1.67])
    """
    given = rate(np.arange(done + 1, done + n + 1, dtype=np.float64))
    try:
        rates = np.broadcast_to(np.asarray(given, np.float64), n)
    except (TypeError, ValueError):
        rates = np.full(n, np.nan)
    if not (np.isfinite(rates) & (rates >= 0)).all():
        raise InvalidParameter(
            f"{who}: rate must give a finite number, not negative, for each of the {n} rows after row {done}, "
            f"got {given!r}"
        )
    return np.ascontiguousarray(rates)
