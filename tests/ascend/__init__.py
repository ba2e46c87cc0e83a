"""Tests of `bittrue.ascend`."""
