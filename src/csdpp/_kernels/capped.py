"""Projection of a spectrum onto the capped simplex {0 <= sigma <= 1, sum(sigma) = M}."""

from numba import njit

from csdpp._kernels.vectors import KERNEL


@njit(**KERNEL)
def project_capped_inplace(sigma, held, M, full):
    """Project ``sigma[:held]`` (falling, non-negative) and say whether its trace is now held at M.

    The start of capped MSG: U_0 = 0 and trace(U) at most M. Until the entries, capped at one, would
    pass M, capping is all there is; from then on (``full``) the trace is M for good, so

        sigma_i <- min(1, max(0, sigma_i - tau))   with   sum_i sigma_i = M.

    No search tolerance: the first ``c`` entries end at one and the entries from ``p`` on at zero, and
    for a given (c, p) the shift is tau = (sum_{c <= i < p} sigma_i - (M - c)) / (p - c). At most M + 1
    entries are held, so p is ``held`` or ``held - 1``, and one walk over c finds the pair. O(held).
    """
    total = 0.0
    for i in range(held):
        total += min(1.0, sigma[i])
    if total < M and not full:
        for i in range(held):
            sigma[i] = min(1.0, sigma[i])
        return False
    if held <= M:  # the only point with trace M
        for i in range(held):
            sigma[i] = 1.0
        return True
    tail = 0.0
    for i in range(held):
        tail += sigma[i]
    for c in range(held):
        # entries before c are capped; `tail` is the sum of the others
        tau = (tail - (M - c)) / (held - c)
        if sigma[c] - tau <= 1.0:
            if sigma[held - 1] >= tau:
                for i in range(held):
                    sigma[i] = 1.0 if i < c else sigma[i] - tau
                return True
            break
        tail -= sigma[c]
    # The weakest entry would turn negative: it is zero, and the other M are one.
    for i in range(held):
        sigma[i] = 1.0 if i < held - 1 else 0.0
    return True
