"""Each formula once.
The framework of maps and the protected dataframes both call the functions in here.
"""

__all__ = []
