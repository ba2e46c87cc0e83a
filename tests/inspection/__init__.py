"""Tests of `bittrue.inspection`."""
