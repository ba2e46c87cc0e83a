"""Exhaustive proof: every input pattern through the fast codec, beside an oracle that shares no code with it."""
