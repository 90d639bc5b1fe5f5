"""The kinds of noise that people type."""

from __future__ import annotations

from enum import Enum

__all__ = ["NoiseKind"]


class NoiseKind(Enum):
    """The typed kind of noise: one kind, or the one with less noise."""

    AUTO = "auto"
    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"
    ELLIPTIC = "elliptic"
    K_NORM = "k-norm"

    def allows(self, kind: NoiseKind) -> bool:
        """Whether noise of a kind may be bought: of any kind with AUTO, else of this kind alone."""
        return self in (NoiseKind.AUTO, kind)

    @property
    def pure(self) -> bool:
        """Whether noise of a pure ε may be bought."""
        return self.allows(NoiseKind.LAPLACE) or self is NoiseKind.K_NORM

    @property
    def normal(self) -> bool:
        """Whether normal noise may be bought."""
        return self.allows(NoiseKind.GAUSSIAN) or self is NoiseKind.ELLIPTIC

    @property
    def shared(self) -> bool:
        """Whether it is typed as noise of which cells share a part."""
        return self in (NoiseKind.ELLIPTIC, NoiseKind.K_NORM)
