"""What the paper prints wrongly, and what is right; each was checked."""

from __future__ import annotations

from majorant.experiments.printed import MISPRINTS

__all__ = ["errata"]

_FORMULAS = (
    "The squared hinge loss, Eq. (eq:squaredHingeLoss), is printed as max{(1 − v)², 0}, which is (1 − "
    "v)²; it is "
    "max{1 − v, 0}².",
    "Its derivative, Eq. (eq:gradientsqhinge), is printed as max(2(v − 1), 0), also in the gradient of "
    "one sample; "
    "it is min(2(v − 1), 0).",
    "The formula of the precision is that of the recall; precision is TP/(TP + FP).",
    "The remark after Eq. (eq:A_bar_approx_inv), for fewer rows than features: with the thin "
    "factorisation P has "
    "orthonormal columns but is not square, and Ā⁻¹g has a second part, (g − PPᵀg)/σ, which is left out.",
    "Stochastic steps use the whole f with every sample: their mean is the gradient of the mean loss plus f, "
    "another objective than Φ, in which f counts as often as there are rows.",
    "The indices in the listings of Momentum and Adam are slipped; here they are the usual ones.",
    "λ = δ = 0 for the ℓ2 penalty means φ ≡ 0, not 0/0.",
    "With Welsch's potential and η = 0 the curvature is singular in floating-point numbers wherever L "
    "lacks full "
    "column rank; a plain solve fails there.",
)

_TABLES = (
    "In tab:a1a, tab:w8a and tab:cina0 the rows Recall and Precision are swapped: only with the names put "
    "right "
    "are the figures of a cell those of whole test rows. The tables sparsity:* have them right.",
    "tab:time: the row of a1a with ℓ2 is that of data as large as cina0.",
    "tab:time: the heads MMI and H MMI, MM and H MM are very likely exchanged, as a hybrid would "
    "otherwise take a "
    "fifth of the time of what it contains.",
    "MM INVERSION on w8a with ℓ2 (panel d, accuracy 0.6471) is unstable by rounding, not by nature.",
)


def errata() -> list[str]:
    """All of them, a sentence or two each: formulas, tables, single figures."""
    slips = [
        f"{slip.label}, {slip.place}: {slip.measure} {slip.printed:g} is very likely {slip.right:.4f} "
        f"({slip.because})."
        for slip in MISPRINTS
    ]
    return [*_FORMULAS, *_TABLES, *slips]
