"""The one place of each formula. The framework and the dataframe tracker call the functions in here."""

__all__ = []
