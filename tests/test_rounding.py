"""Rules as data: names in any case, suggestions for misspelt ones, and arguments that change a rule."""

from __future__ import annotations

import re

import pytest

from bittrue.rounding import NanPolicy, Overflow, Rounding, Rule, make_rule, member, suggestion


def test_names_and_members_are_the_same():
    assert member(Rounding, "Nearest_AWAY", "rounding") is Rounding.nearest_away
    assert member(Overflow, Overflow.wrap, "overflow") is Overflow.wrap
    assert member(Overflow, "raise", "overflow") is Overflow.raise_


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("zer", "'zer' is not one of the nan rules; did you mean 'zero'? (keep, zero, max, raise)"),
        ("drop", "'drop' is not one of the nan rules (keep, zero, max, raise)"),
        (7, "7 is not one of the nan rules (keep, zero, max, raise)"),
        (None, "None is not one of the nan rules (keep, zero, max, raise)"),
    ],
)
def test_what_is_no_name_is_refused_with_all_names(value, shown):
    with pytest.raises(ValueError, match=re.escape(f"nan={shown}") + "$"):
        member(NanPolicy, value, "nan")


@pytest.mark.parametrize(
    ("value", "meant"),
    [("RNE", "nearest_even"), ("CAST_ROUND", "nearest_away"), ("conv_odd", "nearest_odd"), ("RTZ", "trunc")],
)
def test_names_that_others_use_lead_to_ours(value, meant):
    with pytest.raises(ValueError, match=f"; did you mean '{meant}'"):
        member(Rounding, value, "rounding")


def test_suggestions():
    assert suggestion("FLOR", ["floor", "ceil"]) == "; did you mean 'floor'?"
    assert suggestion("odd", iter(["even", "odd_", "oddly"])) == "; did you mean 'odd_'?"
    assert suggestion("stochastic", ["floor", "ceil"]) == ""
    assert suggestion(8, ["8.0"]) == ""  # 2 of 4 letters: not close enough


def test_a_rule_of_the_defaults():
    assert make_rule(None) == make_rule(None, rounding=None, seed=None) == Rule()
    assert make_rule(None) is make_rule(None, overflow=None)
    assert make_rule(None, rounding="floor", seed=3) == Rule(rounding="floor", seed=3)


def test_arguments_change_parts_of_a_rule():
    rule = Rule(rounding="floor", overflow="ieee", nan="max", flush_inputs=True, seed=5)
    assert make_rule(rule) is rule and make_rule(rule, nan=None) is rule
    changed = make_rule(rule, overflow="infinity", nan=None, seed=0)
    assert changed == Rule(rounding="floor", overflow="infinity", nan="max", flush_inputs=True, seed=0)
    assert rule.overflow is Overflow.ieee


@pytest.mark.parametrize("rule", ["floor", {"rounding": "floor"}, Rounding.floor])
def test_what_is_no_rule_is_refused(rule):
    words = f"rule={rule!r} must be a bittrue.Rule, not {type(rule).__name__}"
    with pytest.raises(TypeError, match=re.escape(words) + "$"):
        make_rule(rule)


def test_limits_of_rules():
    assert Rule(seed=(1 << 64) - 1).seed == (1 << 64) - 1 and Rule(seed=0).seed == 0
    for seed in (-1, 1 << 64):
        with pytest.raises(ValueError, match=rf"^seed={seed} must be an integer from 0 to 2\*\*64 - 1$"):
            Rule(seed=seed)
    assert Rule(nan_sign="positive").nan_sign == "positive"
    with pytest.raises(ValueError, match=r"^nan_sign='Keep' must be 'keep' or 'positive'$"):
        Rule(nan_sign="Keep")
