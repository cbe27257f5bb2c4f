"""The derivatives of the paper's Appendices B and C, transcribed from the paper.

They verify the gradient of the product. The paper stores feature vectors as columns: Φ here is
the transpose of the given rows. Two points need interpretation: in Appendix B the printed derivative of ‖μ − μ*‖² in a
target vector lacks its minus sign, and in Appendix C "scalar − row vector" means the scalar at every place of the row.
The cases of the cross kernel compare a source index with a target index; only whether n is the differentiated vector
matters.
"""

import torch
from torch import Tensor


def mean_distance_gradients(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Appendix B: derivatives of ‖μ − μ*‖² in the rows of x and of y (with the sign corrected)."""
    difference = x.mean(0) - y.mean(0)
    return (2 * difference / len(x)).expand_as(x), (-2 * difference / len(y)).expand_as(y)


def covariance_distance_gradients(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Appendix B: derivatives of ‖Σ − Σ*‖²_F in the rows of x and of y."""
    phi, phi_star = x.T, y.T  # (d, N), (d, N*)
    mu, mu_star = phi.mean(1, keepdim=True), phi_star.mean(1, keepdim=True)
    sigma = phi @ phi.T / len(x) - mu @ mu.T
    sigma_star = phi_star @ phi_star.T / len(y) - mu_star @ mu_star.T
    by_phi = 4 / len(x) * (sigma - sigma_star) @ (phi - mu)
    by_phi_star = -4 / len(y) * (sigma - sigma_star) @ (phi_star - mu_star)
    return by_phi.T, by_phi_star.T


def kernel_distance_gradients(x: Tensor, y: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """Appendix C: derivatives of ‖X⁽ʳ⁾ − X*⁽ʳ⁾‖²_F in matrix form, in the rows of x and of y."""
    phi, phi_star, q = x.T, y.T, order - 1
    mu, mu_star = phi.mean(1, keepdim=True), phi_star.mean(1, keepdim=True)
    within = ((phi - mu).T @ (phi - mu)).pow(q)  # K^q
    within_star = ((phi_star - mu_star).T @ (phi_star - mu_star)).pow(q)  # K̄^q
    across = ((phi - mu).T @ (phi_star - mu_star)).pow(q)  # K̿^q
    by_phi = _by_own_domain(phi, mu, within, order) - _by_other_domain(phi_star, mu_star, across.T, order)
    by_phi_star = _by_own_domain(phi_star, mu_star, within_star, order) - _by_other_domain(phi, mu, across, order)
    return by_phi.T, by_phi_star.T


def _by_own_domain(phi: Tensor, mu: Tensor, kernel: Tensor, order: int) -> Tensor:
    """The first two terms of the derivative: of ‖X⁽ʳ⁾‖²."""
    n = phi.shape[1]
    ones = torch.ones(n, 1, dtype=phi.dtype)
    first = 2 / n**2 * order * phi @ (kernel.T - (ones.T @ kernel).T @ ones.T / n)
    second = 2 * order / n**2 * mu @ (ones.T @ kernel @ ones / n - ones.T @ kernel)
    return first + second


def _by_other_domain(other: Tensor, other_mu: Tensor, kernel: Tensor, order: int) -> Tensor:
    """The last two terms, with inverted sign: of 2⟨X⁽ʳ⁾, X*⁽ʳ⁾⟩. `kernel` is (other, own)."""
    n_other, n = kernel.shape
    ones, ones_other = torch.ones(n, 1, dtype=other.dtype), torch.ones(n_other, 1, dtype=other.dtype)
    first = 2 * order / (n * n_other) * other @ (kernel - (kernel @ ones) @ ones.T / n)
    second = 2 * order / (n * n_other) * other_mu @ (ones_other.T @ kernel - ones_other.T @ kernel @ ones / n)
    return first - second


def kernel_distance_gradient_by_cases(x: Tensor, y: Tensor, order: int, row: int) -> Tensor:
    """Appendix C: derivative of ‖X⁽ʳ⁾ − X*⁽ʳ⁾‖²_F in one row of x, summed pair by pair over the cases of dK and dK̿."""
    n, n_star, mu, mu_star = len(x), len(y), x.mean(0), y.mean(0)
    total = torch.zeros_like(x[0])
    for i in range(n):
        for j in range(n):
            kernel = (x[i] - mu) @ (x[j] - mu)
            total += order / n**2 * kernel ** (order - 1) * _within_kernel_case(x, mu, i, j, row)
        for j in range(n_star):
            kernel = (x[i] - mu) @ (y[j] - mu_star)
            derivative = (y[j] - mu_star) * (float(i == row) - 1 / n)
            total -= 2 * order / (n * n_star) * kernel ** (order - 1) * derivative
    return total


def _within_kernel_case(x: Tensor, mu: Tensor, i: int, j: int, row: int) -> Tensor:
    """The four cases of the derivative of ⟨φ_i − μ, φ_j − μ⟩ in φ_row."""
    n = len(x)
    zero = torch.zeros_like(mu)
    of_product = {(True, False): x[j], (False, True): x[i], (True, True): 2 * x[i], (False, False): zero}
    of_mean_and_j = x[j] / n + (mu if j == row else zero)  # ⟨μ, φ_j⟩
    of_i_and_mean = x[i] / n + (mu if i == row else zero)  # ⟨φ_i, μ⟩
    return of_product[i == row, j == row] - of_mean_and_j - of_i_and_mean + 2 / n * mu
