"""Bit-true number formats, casts and block layouts of AI accelerators."""
