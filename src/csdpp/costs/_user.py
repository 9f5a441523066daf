"""A user's own cost: `CountCost` for a function of the counts, `AnyCost` for any function of (y, ŷ)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any
from warnings import warn

import numpy as np
from numba.extending import is_jitted
from numpy.typing import NDArray

from csdpp._kernels import weights as kernels
from csdpp.costs._base import CELLS, Bools, Cost, Floats, Ints
from csdpp.errors import CostConditionWarning, InvalidInput, InvalidParameter


class _UserCost(Cost):
    """What `CountCost` and `AnyCost` share: the user's function, its name, the look at its values."""

    def __init__(self, f: Callable[..., Any], name: str | None, vectorizes: bool | None) -> None:
        who = type(self).__name__
        if not callable(f):
            raise InvalidParameter(f"{who}: f must be a function, got {f!r}; pass the cost function itself")
        self.f = f
        self.name = name if name is not None else getattr(f, "__name__", type(f).__name__)
        self._vectorizes = vectorizes  # whether f takes many at once; None: to be found out at the first use
        self._warned = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def _identity(self) -> tuple[Any, ...]:
        return self.f, self.name

    def _number(self, *arguments: Any) -> float:
        try:
            value = self.f(*arguments)
        except ZeroDivisionError:
            return np.nan  # as with arrays; `_require_finite` has the sentence for it
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InvalidInput(
                f"cost {self.name!r} must return one number for one row, got {value!r}; correct the function"
            ) from None

    def _many(self, n: int, *arguments: Any) -> Floats:
        values = np.asarray(self.f(*arguments), dtype=np.float64)
        if values.shape != (n,):
            raise InvalidInput(
                f"cost {self.name!r} must return {n} numbers for {n} predictions, got shape {values.shape}; "
                "correct the function"
            )
        return values

    def _try_many(self, one_by_one: Callable[[], Floats], n: int, *arguments: Any) -> bool:
        """Whether f gives for many at once what it gives one by one; an error of whatever kind means no."""
        try:
            return np.allclose(self._many(n, *arguments), one_by_one(), rtol=1e-9, atol=1e-12, equal_nan=True)
        except Exception:
            return False

    def _require_finite(self, values: Floats, counts: Callable[[int], Any]) -> None:
        for t in np.flatnonzero(~np.isfinite(values))[:1]:
            tp, fp, fn, tn = counts(t)
            raise InvalidInput(
                f"cost {self.name!r} must be a finite number, got {values[t]} at tp={tp}, fp={fp}, fn={fn}, "
                f"tn={tn}; return 0 where the formula divides 0 by 0"
            )

    def _check_condition(self, right: Floats, wrong: Floats, perfect: Bools, where: Callable[[int], str]) -> None:
        """Warn once if c(label wrong) < c(label right), or if c(label right) ≠ 0 with all others right."""
        if self._warned:
            return
        for t in np.flatnonzero(perfect & (np.abs(right) > kernels.ROUNDING))[:1]:
            self._warn(f"must be 0 for a perfect prediction, got {right[t]:g} at {where(t)}")
        for t in np.flatnonzero(wrong < right - kernels.ROUNDING)[:1]:
            self._warn(
                f"must not rise when a label is put right, got {wrong[t]:g} before and {right[t]:g} after at {where(t)}"
            )

    def _warn(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            warn(
                f"cost {self.name!r} {what}; Lemma 2 of the paper does not hold for it: its label weights, "
                "absolute differences, do not add up to the cost",
                CostConditionWarning,
                stacklevel=2,
            )


class CountCost(_UserCost):
    """A cost f(tp, fp, fn, tn) of the four counts of a row.

    f may be a numba-compiled function of four integers (fastest), Python that also takes NumPy arrays of
    counts (found out by trying), or Python for integers only (one call for each count). It must return 0
    where its formula divides 0 by 0. A violation of c(y, y) = 0, or a cost that rises when a label is put
    right, is warned of once (`CostConditionWarning`) when weights are asked for.

    "ordered" and "marginal" weights take O(K) a row and O(mistakes) evaluations of f, "shapley" and "mean"
    O(mistakes^1.5) evaluations.

    >>> def misses_count_fourfold(tp, fp, fn, tn):
    ...     return (fp + 4 * fn) / (4 * (tp + fp + fn + tn))
    >>> cost = CountCost(misses_count_fourfold)
    >>> cost.loss([1, 1, 0, 0], [1, 0, 1, 0])
    0.3125
    >>> cost.weights([1, 1, 0, 0], [1, 0, 1, 0])
    array([0.25  , 0.25  , 0.0625, 0.0625])
    """

    def __init__(self, f: Callable[..., Any], name: str | None = None) -> None:
        super().__init__(f, name, None)

    def _loss_rows(self, Y: Bools, Y_hat: Bools, out: Floats) -> None:
        tp = np.count_nonzero(Y & Y_hat, axis=1)
        fn = np.count_nonzero(Y, axis=1) - tp
        fp = np.count_nonzero(Y_hat, axis=1) - tp
        out[:] = self._at(tp, fp, fn, Y.shape[1] - tp - fp - fn)

    def _at(self, *counts: Ints) -> Floats:
        """The cost at n quadruples of counts, four arrays (n,): (n,)."""
        if is_jitted(self.f):
            values = np.empty(counts[0].size)
            try:
                kernels.count_losses(self.f, *counts, values)
            except ZeroDivisionError:  # say where
                values = self._one_by_one(*counts)
        else:
            with np.errstate(all="ignore"):  # we look at the values instead
                values = self._many(counts[0].size, *counts) if self._takes_arrays() else self._one_by_one(*counts)
        self._require_finite(values, lambda t: [c[t] for c in counts])
        return values

    def _one_by_one(self, *counts: Ints) -> Floats:
        return np.array([self._number(*four) for four in zip(*(c.tolist() for c in counts), strict=True)], float)

    def _takes_arrays(self) -> bool:
        if self._vectorizes is None:
            grid = np.indices((5, 5, 5, 5)).reshape(4, -1)
            probe = list(grid[:, grid.sum(axis=0) == 4])  # all counts of four labels
            self._vectorizes = self._try_many(lambda: self._one_by_one(*probe), probe[0].size, *probe)
        return self._vectorizes

    def _weights_row(self, y: Bools, y_hat: Bools, weighting_id: int, out: NDArray[Any]) -> None:
        if is_jitted(self.f):
            try:
                status = kernels.count_weights(self.f, weighting_id, y, y_hat, out)[0]
            except ZeroDivisionError:
                status = kernels.NOT_FINITE
            if status == kernels.FINE or (self._warned and status != kernels.NOT_FINITE):
                return
            # The path below finds the place and says what is amiss.
        tp, fp, fn, tn = kernels.row_counts(y, y_hat)
        P, N = tp + fn, fp + tn
        if weighting_id == kernels.ORDERED:
            # State s: s mistakes are put right, i misses and j false alarms are left.
            # Label k sees the state right after it.
            wrong = y != y_hat
            i = fn - np.concatenate([[0], np.cumsum(y[wrong])])
            j = fp - np.concatenate([[0], np.cumsum(~y[wrong])])
            state = np.cumsum(wrong)
            out[:] = np.where(y, self._steps(True, i, j, P, N)[state], self._steps(False, i, j, P, N)[state])
            return
        self._steps(P > 0, np.array([0]), np.array([0]), P, N)  # "marginal" alone would not look at c(y, y)
        hit = self._value(weighting_id, True, fn, fp, P, N) if tp else 0.0
        miss = self._value(weighting_id, True, fn - 1, fp, P, N) if fn else 0.0
        alarm = self._value(weighting_id, False, fn, fp - 1, P, N) if fp else 0.0
        reject = self._value(weighting_id, False, fn, fp, P, N) if tn else 0.0
        kernels.fill_four(y, y_hat, hit, miss, alarm, reject, out)

    def _value(self, weighting_id: int, relevant: bool, f: int, g: int, P: int, N: int) -> float:
        """The weight of one kind of label with f misses and g false alarms among the others."""
        marginal = float(self._steps(relevant, np.array([f]), np.array([g]), P, N)[0])
        if weighting_id == kernels.MARGINAL:
            return marginal
        size = kernels.shapley_scratch(f, g)
        i, j, weight = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
        shapley, m = 0.0, 0
        while m <= f + g:
            n, m = kernels.shapley_terms(f, g, m, i, j, weight)
            shapley += float(weight[:n] @ self._steps(relevant, i[:n], j[:n], P, N))
        return (shapley + marginal) / 2 if weighting_id == kernels.MEAN else shapley

    def _steps(self, relevant: bool, i: Ints, j: Ints, P: int, N: int) -> Floats:
        """|c(label wrong) − c(label right)| with i misses and j false alarms among the other labels: (n,)."""
        # Where there is no room for one more such mistake, no label asks: compare with itself.
        i_wrong = np.minimum(i + 1, P) if relevant else i
        j_wrong = j if relevant else np.minimum(j + 1, N)
        i_all, j_all = np.concatenate([i, i_wrong]), np.concatenate([j, j_wrong])
        right, wrong = np.split(self._at(P - i_all, j_all, i_all, N - j_all), 2)
        self._check_condition(right, wrong, i + j == 0, lambda t: f"tp={P - i[t]}, fp={j[t]}, fn={i[t]}, tn={N - j[t]}")
        return np.abs(wrong - right)


class AnyCost(_UserCost):
    """Any cost f(y, ŷ) of two rows of K labels, which it gets as arrays of 0/1 integers.

    Parameters
    ----------
    f : callable
        ``f(y, y_hat) -> float`` on arrays (K,). If f also takes a matrix (m, K) of candidate predictions
        for one y and returns their costs (m,), that is used.
    vectorized : bool, default None
        Whether f takes the matrix; None: to be found out at the first use. With True it is never called
        otherwise.
    orders : int, default 8
        Label orders over which "shapley" weights are averaged.
    random_state : int, default 0
        Seed of these orders.
    name : str, default the function's name

    Notes
    -----
    At most K + 1 evaluations a row for "ordered" and "marginal" weights, in chunks so that memory stays
    bounded.

    "shapley" has no closed form here: it is the average of the ordered weights over ``orders`` random orders
    of the labels, in pairs of an order and its reverse. That is unbiased, and as Lemma 2 holds for each
    order, it holds exactly for the average. The orders follow from the seed and the row: equal rows have
    equal weights, whatever came before.

    >>> def first_counts_double(y, Y_hat):
    ...     wrong = y != Y_hat
    ...     return (wrong.sum(axis=-1) + wrong[..., 0]) / (len(y) + 1)
    >>> AnyCost(first_counts_double).weights([1, 0, 0], [0, 0, 0])
    array([0.5 , 0.25, 0.25])
    """

    def __init__(
        self,
        f: Callable[..., Any],
        vectorized: bool | None = None,
        orders: int = 8,
        random_state: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__(f, name, vectorized)
        for what, value, least in (("orders", orders, 1), ("random_state", random_state, 0)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise InvalidParameter(f"AnyCost: {what} must be an integer, at least {least}, got {value!r}; pass one")
        self.vectorized = vectorized
        self.orders = orders
        self.random_state = random_state

    def _identity(self) -> tuple[Any, ...]:
        return self.f, self.name, self.vectorized, self.orders, self.random_state

    def _loss_rows(self, Y: Bools, Y_hat: Bools, out: Floats) -> None:
        for t in range(len(out)):
            out[t] = self._at(Y[t], Y_hat[t : t + 1])[0]

    def _at(self, y: Bools, Y_hat: Bools) -> Floats:
        """The costs of m candidate predictions (m, K) for one truth: (m,)."""
        truth, candidates = y.astype(np.int64), Y_hat.astype(np.int64)
        with np.errstate(all="ignore"):  # we look at the values instead
            if self._takes_matrix(truth):
                values = self._many(len(candidates), truth, candidates)
            else:
                values = np.array([self._number(truth, row) for row in candidates])
        self._require_finite(values, lambda t: kernels.row_counts(y, Y_hat[t]))
        return values

    def _takes_matrix(self, y: Ints) -> bool:
        if self._vectorizes is None:
            m = 7 if len(y) != 7 else 8  # not square: a row must not pass for a column
            probe = np.random.default_rng(0).integers(0, 2, (m, len(y)))
            self._vectorizes = self._try_many(lambda: np.array([self._number(y, row) for row in probe]), m, y, probe)
        return self._vectorizes

    def _known_loss_rows(self, Y: Bools, Y_hat: Bools, known: Bools, out: Floats) -> None:
        """The function may know its K labels: those not told it gets as neither there nor predicted."""
        out[:] = 0.0
        for t in np.flatnonzero(known.any(axis=1)):
            out[t] = self._at(Y[t] & known[t], (Y_hat[t] & known[t])[None])[0]

    def _known_weights_row(self, y: Bools, y_hat: Bools, known: Bools, weighting_id: int, out: NDArray[Any]) -> None:
        if not len(known):
            self._weights_row(y, y_hat, weighting_id, out)
        elif known.any():
            self._weights_row(y & known, y_hat & known, weighting_id, out)
        if len(known):
            out[~known] = 0.0

    def _weights_row(self, y: Bools, y_hat: Bools, weighting_id: int, out: NDArray[Any]) -> None:
        if weighting_id == kernels.ORDERED:
            out[:] = self._along(y, y_hat, np.arange(len(y)))
        elif weighting_id == kernels.SHAPLEY:
            out[:] = self._shapley(y, y_hat)
        elif weighting_id == kernels.MARGINAL:
            out[:] = self._marginal(y, y_hat)
        else:
            out[:] = (self._shapley(y, y_hat) + self._marginal(y, y_hat)) / 2

    def _shapley(self, y: Bools, y_hat: Bools) -> Floats:
        row = zlib.crc32(np.packbits(y_hat).tobytes(), zlib.crc32(np.packbits(y).tobytes()))
        rng = np.random.default_rng([self.random_state, row])
        total = np.zeros(len(y))
        order = np.arange(len(y))
        for turn in range(self.orders):
            order = order[::-1] if turn % 2 else rng.permutation(len(y))
            total += self._along(y, y_hat, order)
        return total / self.orders

    def _along(self, y: Bools, y_hat: Bools, order: Ints) -> Floats:
        """The ordered weights with the labels put right in this order.

        State s: the first s of L mistakes are put right. A mistake pays the difference of two states,
        another label the difference that changing it makes to a state: (L + 1) + (K − L) evaluations.
        """
        wrong = y != y_hat
        L = np.count_nonzero(wrong)
        state = np.empty(len(y), np.int64)  # which state label k sees
        state[order] = np.cumsum(wrong[order])
        turn = np.where(wrong, state, L + 1)  # in which state label k is put right
        others = np.flatnonzero(~wrong)
        at_state = self._candidates(y, y_hat, turn, np.arange(L + 1), np.full(L + 1, -1))
        price = at_state[state - wrong]
        price[others] = self._candidates(y, y_hat, turn, state[others], others)
        return self._differences(price, at_state[state], state == L)

    def _marginal(self, y: Bools, y_hat: Bools) -> Floats:
        K, wrong = len(y), y != y_hat
        now, perfect = self._at(y, np.stack([y_hat, y]))
        changed = self._candidates(y, y_hat, np.ones(K, np.int64), np.zeros(K, np.int64), np.arange(K))
        self._differences(np.array([perfect]), np.array([perfect]), np.array([True]))  # for the warning's sake
        return self._differences(np.where(wrong, now, changed), np.where(wrong, changed, now), np.zeros(K, bool))

    def _candidates(self, y: Bools, y_hat: Bools, turn: Ints, state: Ints, change: Ints) -> Floats:
        """Costs (m,) of ŷ with labels of turn <= state[t] put right, label change[t] changed (−1: none)."""
        costs = np.empty(len(state))
        step = max(1, CELLS // len(y))
        for start in range(0, len(state), step):
            chunk = slice(start, start + step)
            matrix = np.where(turn <= state[chunk, None], y, y_hat)
            rows = np.flatnonzero(change[chunk] >= 0)
            matrix[rows, change[chunk][rows]] ^= True
            costs[chunk] = self._at(y, matrix)
        return costs

    def _differences(self, wrong: Floats, right: Floats, perfect: Bools) -> Floats:
        self._check_condition(right, wrong, perfect, lambda k: f"label {k}")
        return np.abs(wrong - right)
