"""What can be said after so many trials: rates with their exact 95 % bounds. Pure."""

from scipy.stats import beta


def at_most(events: int, trials: int) -> float:
    """The rate that is not exceeded with 95 % confidence (Clopper and Pearson, one-sided)."""
    if events >= trials:
        return 1.0
    return float(beta.ppf(0.95, events + 1, trials - events))
