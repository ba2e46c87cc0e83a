"""Numba loops over plain arrays and numbers; they know no `Format`.  Importing this package imports Numba."""
