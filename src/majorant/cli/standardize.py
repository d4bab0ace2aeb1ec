"""`--standardize`: features in units of their standard deviation, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from majorant.errors import MajorantError

if TYPE_CHECKING:
    from majorant.cli.data import CommandData
    from majorant.cli.models import Estimator


class Standardizer:
    """Divides features by their standard deviations, which are sums over the blocks of the data.

    Features are only scaled, not shifted: since the intercept is free, shifting would change nothing but
    that, and sparse data stay sparse.

    Parameters
    ----------
    data : CommandData
        One pass over the blocks updates means and variances by the formula of Chan, Golub and LeVeque, which
        does not cancel (scikit-learn's `StandardScaler.partial_fit`).
    wanted : bool
        Whether to scale at all.
    """

    def __init__(self, data: CommandData, *, wanted: bool) -> None:
        self.wanted, self._scaler = wanted, None
        if wanted:
            import numpy as np
            from sklearn.preprocessing import StandardScaler

            from majorant.rows.sources import checked

            self._scaler = StandardScaler(with_mean=False)
            for i, block in enumerate(data):
                self._scaler.partial_fit(checked(data.blocks, i, block).X)
            if not np.all(np.isfinite(self._scaler.scale_)):
                worst = int(np.flatnonzero(~np.isfinite(self._scaler.scale_))[0])
                raise MajorantError(
                    f"the values of feature {worst + 1} are so large that they have no standard deviation: "
                    "rescale them first"
                )

    def scaled(self, data: CommandData) -> CommandData:
        """The data in the units that the penalty is to see: block by block, when a block is loaded."""
        return data if self._scaler is None else data.transformed(self._scaler.transform)

    @property
    def deviations(self) -> Any:
        """What the features are divided by; None if they are not."""
        return None if self._scaler is None else self._scaler.scale_

    def unscale(self, estimator: Estimator) -> None:
        """Let a model that was trained on scaled features take the unscaled ones."""
        if self._scaler is None:
            return
        import scipy.sparse as sp

        sparse = sp.issparse(estimator.coef_)
        estimator.densify()
        estimator.coef_ = estimator.coef_ / self._scaler.scale_
        if sparse:
            estimator.sparsify()
