"""Block formats at work: conversion, byte layouts, and arrays of blocks; the formats are in `blockformats`."""

from .array import BlockArray, block_array
from .codec import block_rule, decode, encode, quantize, take_apart, tensor_scale
from .layout import from_register, to_register

__all__ = [
    "BlockArray",
    "block_array",
    "block_rule",
    "decode",
    "encode",
    "from_register",
    "quantize",
    "take_apart",
    "tensor_scale",
    "to_register",
]
