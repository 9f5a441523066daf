"""BLAS without detours: how many threads it takes, and calls that write into what they are given.

NumPy's products allocate and SciPy's solvers check and copy, which on blocks of 64 rows takes longer than the
arithmetic. Here all matrices are in C order; BLAS, which thinks in Fortran order, sees their transposes.
"""

from functools import cache
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from threadpoolctl import ThreadpoolController

Array = NDArray[Any]

#: Numbers in the largest matrix of a step from which on it pays to share the step among cores.
LARGE = 1_000_000


@cache
def _libraries() -> list[Any]:
    controllers: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return controllers


class one_blas_thread:
    """Within the context BLAS runs on one thread, unless ``large`` says that the matrices are worth more.

    About 4 microseconds, 2 where there is one thread already. The number of threads belongs to the whole process:
    learners in several Python threads should be run with one BLAS thread from the start.
    """

    def __init__(self, large: bool = False) -> None:
        self.limited: list[tuple[Any, int]] = []
        self.large = large

    def __enter__(self) -> None:
        if self.large:
            return
        for library in _libraries():
            threads = library.num_threads
            if threads > 1:
                self.limited.append((library, threads))
                library.set_num_threads(1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for library, threads in self.limited:
            library.set_num_threads(threads)
        self.limited.clear()


@cache
def _routines(dtype: str) -> tuple[Any, Any, Any]:
    like = np.empty(0, dtype)
    gemm, trsm = linalg.get_blas_funcs(("gemm", "trsm"), (like,))
    return gemm, trsm, linalg.get_lapack_funcs("potrf", (like,))


def subtract_product_inplace(target: Array, left: Array, right: Array) -> None:
    """Target -= left @ right: no temporary of the size of ``target`` (p, q)."""
    assert target.flags.c_contiguous  # else BLAS would write into a copy
    gemm = _routines(target.dtype.char)[0]
    gemm(-1.0, right.T, left.T, 1.0, target.T, overwrite_c=True)


def cholesky_inplace(C: Array) -> tuple[Array, int]:
    """The lower factor of a symmetric C (n, n), in C order, and how many leading rows have one."""
    assert C.flags.c_contiguous
    # The transpose of C's memory is the same symmetric matrix; its upper factor, transposed back, is the lower one.
    upper, failed_at = _routines(C.dtype.char)[2](C.T, lower=0, clean=1, overwrite_a=1)
    return upper.T, (failed_at - 1 if failed_at > 0 else len(C))


def solve_lower_inplace(L: Array, B: Array, *, transposed: bool = False, unit: bool = False) -> Array:
    """B <- L^-1 B, or (L')^-1 B, for lower triangular L (n, n) and B (n, q)."""
    assert B.flags.c_contiguous
    trsm = _routines(B.dtype.char)[1]
    # B' <- B' (L')^-1, and L' is what BLAS sees of L: an upper triangle.
    trsm(1.0, L.T, B.T, side=1, lower=0, trans_a=int(transposed), diag=int(unit), overwrite_b=True)
    return B
