"""BLAS threads: one for small matrices, where more are 10 to 100 times slower, all of them for large ones."""

from functools import cache
from types import TracebackType
from typing import Any

from threadpoolctl import ThreadpoolController

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
