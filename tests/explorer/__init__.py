"""Tests of the explorer: its answers, its page in a browser, its server."""
