"""What is fuzzed: for each way into the package, how to make an input from a seed corpus and what must hold of it.

An input is a Python literal, so that a failing one can be kept as text. A check raises for whatever is not documented:
`Wrong` where the package's answer is at fault, or the undocumented exception itself.
"""

from __future__ import annotations

import ast
import dataclasses
import io
import json
import os
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer

import bittrue as bt
import bittrue.cli
from bittrue import aie, ascend
from bittrue.files import FileError, TensorInfo, open_tensors, save
from bittrue.files.spec import format_from_json

from .mutator import TEXTS, Mutator

__all__ = ["TARGETS", "Sandbox", "Target", "Wrong"]


class Wrong(AssertionError):
    """An answer that breaks a promise."""


class Target(NamedTuple):
    """A way into the package."""

    share: int  # of the inputs of a run, in percent
    make: Callable[[Mutator], Any]
    check: Callable[[Any, Sandbox], None]


class Sandbox:
    """A folder with the corpus, which becomes the working directory; inputs may make what they like of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._calls = 0
        self.renew()

    def renew(self) -> None:
        """Empty the folder and write the corpus again."""
        os.chdir("/")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        os.chdir(self.folder)
        for name, data in corpus().items():
            Path(name).write_bytes(data)

    def tidy(self) -> None:
        """Renew now and then: inputs leave files behind, and may have overwritten others."""
        self._calls += 1
        if self._calls % 200 == 0:
            self.renew()


# --- the corpus: written by the package itself, and by NumPy ----------------------------------------------------------

OWN = (
    bt.p3109(6, 3),
    bt.FloatFormat("e3m3_mine", exponent_bits=3, mantissa_bits=3, bias=1, inf=False, nan="negative_zero"),
    bt.IntFormat("int5", width=5),
    bt.ComplexFormat("complex_bf16", part=bt.format("bfloat16")),
    dataclasses.replace(bt.format("hifloat8"), name="hif8_mine", inf_magnitude=None, max_code=0x6F),  # type: ignore[call-arg]
)
FORMATS = (
    *map(bt.format, ("bool", "int4", "uint8", "float4_e2m1fn", "float6_e3m2fn", "float8_e4m3fn", "hifloat8")),
    *map(bt.format, ("bfloat16", "float16", "tfloat32", "float32", "int64", "float64", "complex32", "complex64")),
    *OWN,
)
BLOCKS = tuple(map(bt.format, ("mx9", "mx4", "mxfp4", "nvfp4", "bfp16ebs8")))


def _arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for shape in ((3, 5), (), (0, 2)):
        for f in FORMATS:
            count = int(np.prod(shape))
            codes = rng.integers(0, 1 << min(f.bits, 62), count, np.uint64).astype(f.code_dtype)
            found[f"{f.name}{len(found)}"] = bt.Array(codes.view(f.storage).reshape(shape), f)
    for f in BLOCKS:
        found[f.name] = bt.array(rng.standard_normal((2, 40)).astype(np.float32), f)
    return found


@cache
def corpus() -> dict[str, bytes]:
    """Return the seed files by name."""
    import tempfile

    found: dict[str, bytes] = {}
    arrays = _arrays()
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        for name, array in arrays.items():
            save(at / f"{name}.npy", array)
        x = np.arange(12, dtype=">f4").reshape(3, 4)
        np.save(at / "big_endian.npy", x)
        np.save(at / "fortran.npy", np.asfortranarray(x.astype(np.float64)))
        np.savez_compressed(at / "deflated.npz", a=x, b=np.arange(300, dtype=np.int16), c=np.zeros(0))
        names = list(arrays)
        for n in range(0, len(names), 4):
            part = {name: arrays[name] for name in names[n : n + 4]}
            save(at / f"t{n}.npz", part)
            save(at / f"t{n}.safetensors", part, metadata={"format": "pt"} if n % 8 else None)
        plain = np.linspace(-3, 3, 48, dtype=np.float32)
        save(at / "plain.safetensors", {"w": plain.reshape(3, 16), "i": np.arange(3)})
        save(at / "plain.npy", plain)
        save(at / "m-1.safetensors", {"a": np.ones(3, np.float32)})
        save(at / "m-2.safetensors", {"b": np.zeros(2, np.int8)})
        shards = {"a": "m-1.safetensors", "b": "m-2.safetensors"}
        index = {"metadata": {"total_size": 14}, "weight_map": shards}
        (at / "m.safetensors.index.json").write_text(json.dumps(index))
        (at / "raw.bin").write_bytes(bytes(range(180)))
        for path in at.iterdir():
            found[path.name] = path.read_bytes()
    return found


def _seeds(suffix: str) -> list[bytes]:
    return [data for name, data in sorted(corpus().items()) if name.endswith(suffix)]


# --- files ------------------------------------------------------------------------------------------------------------

_MOST = 4096  # bytes that a repaired tensor may take


def _make_bytes(suffix: str) -> Callable[[Mutator], bytes]:
    return lambda m: m.damage(m.pick(_seeds(suffix)))


def _filling(m: Mutator, count: int) -> bytes:
    return m.draw.randbytes(count) if m.often(0.7) else bytes(count)


def make_safetensors(m: Mutator) -> bytes:
    """Damage the bytes, or the header's JSON; then often make sizes and offsets fit again."""
    seed = m.pick(_seeds(".safetensors"))
    if m.often(0.3):
        return m.damage(seed)
    length = int.from_bytes(seed[:8], "little")
    header, data = m.tree(json.loads(seed[8 : 8 + length]), m.pick((1, 1, 2, 4))), seed[8 + length :]
    if m.often(0.6) and isinstance(header, dict):
        data = _repair(header, m)
    text = json.dumps(header, ensure_ascii=m.often(0.5)).encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(text)) + text + data


def _repair(header: dict[str, Any], m: Mutator) -> bytes:
    try:
        typed = json.loads(header.get("__metadata__", {}).get("bittrue", "{}"))
    except (ValueError, AttributeError, TypeError):
        typed = {}
    at = 0
    for name, entry in header.items():
        about = typed.get(name) if isinstance(typed, dict) else None
        size = _size(about.get("format"), about.get("shape"), about.get("axis")) if isinstance(about, dict) else None
        if isinstance(entry, dict) and name != "__metadata__":
            if size is not None:
                entry.update(dtype="U8", shape=[size])
            else:
                size = _size(_SAFETENSORS.get(str(entry.get("dtype"))), entry.get("shape"), None)
            if size is not None:
                entry["data_offsets"] = [at, at + size]
                at += size
    return _filling(m, at)


_SAFETENSORS = {"F4": "float4_e2m1fn", "U8": "uint8", "F32": "float32", "BF16": "bfloat16", "I64": "int64"}


def _size(fmt: Any, shape: Any, axis: Any) -> int | None:
    """Return the bytes that a tensor would take, if that makes sense and is little."""
    try:
        size = TensorInfo("x", format_from_json(fmt), tuple(shape), axis).nbytes
    except Exception:  # the tree was damaged; the reader will say so
        return None
    return size if size <= _MOST else None


def make_npy(m: Mutator) -> bytes:
    """Damage the bytes, or the header as the literal that it is; then often make the size fit again."""
    seed = m.pick(_seeds(".npy"))
    if m.often(0.3):
        return m.damage(seed)
    length = int.from_bytes(seed[8:10], "little")
    header, data = ast.literal_eval(seed[10 : 10 + length].decode()), seed[10 + length :]
    if m.often(0.4):
        shape = tuple(m.draw.randint(0, 6) for _ in range(m.draw.randint(0, 4)))
        header = {"descr": m.pick(_DESCRS), "fortran_order": m.often(0.5), "shape": shape}
    if m.often(0.7):
        header = m.tree(header, m.pick((1, 1, 2, 4)))
    if m.often(0.6) and isinstance(header, dict):
        size = _npy_size(header)
        data = data if size is None else _filling(m, size)
    text = repr(_tuples(header)).encode("utf-8", "surrogatepass")
    wide = len(text) > 60000 or m.often(0.2)
    version, width = (m.pick((2, 3)), 4) if wide else (1, 2)
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(width, "little") + text + data


_DESCRS = ("<f4", ">f8", "<c16", ">i2", "|b1", "|u1", "=f2", "<V2", [["hifloat8", "|u1"]], [["bfloat16", "<u2"]])


def _npy_size(header: dict[str, Any]) -> int | None:
    try:
        descr = header["descr"]
        if isinstance(descr, str):
            size = int(np.dtype(descr).itemsize * np.prod(header["shape"], dtype=object))
            return size if 0 <= size <= _MOST else None
        title, field = descr[0][0] if isinstance(descr[0][0], list) else ("{}", descr[0][0])
        about = json.loads(title)
        size = _size(about.get("format", field), about.get("shape", header["shape"]), about.get("axis"))
        if size is not None and "shape" in about:
            header["shape"] = [size]
        return size
    except Exception:  # the tree was damaged; the reader will say so
        return None


def _tuples(header: Any) -> Any:
    """JSON has no tuples; a .npy header has them within `shape` and within `descr`."""
    if not isinstance(header, dict):
        return header
    shape, descr = header.get("shape"), header.get("descr")
    if isinstance(shape, list):
        header["shape"] = tuple(shape)
    if isinstance(descr, list):
        header["descr"] = [
            tuple(tuple(p) if isinstance(p, list) else p for p in field) if isinstance(field, list) else field
            for field in descr
        ]
    return header


def make_npz(m: Mutator) -> bytes:
    """Damage the archive, or pack damaged members into a sound one."""
    if m.often(0.5):
        return m.damage(m.pick(_seeds(".npz")))
    memory = io.BytesIO()
    kind = m.pick((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(memory, "w", kind) as archive:
        for n in range(m.draw.randint(0, 3)):
            name = (m.text(f"x{n}.npy").replace("\0", "") or "x") if m.often(0.3) else f"x{n}.npy"
            if name not in archive.namelist():
                archive.writestr(name.encode("utf-8", "replace").decode(), make_npy(m))
    data = memory.getvalue()
    return m.damage(data, 2) if m.often(0.3) else data


def make_index(m: Mutator) -> bytes:
    """Damage the index of a sharded checkpoint; its shards are sound."""
    seed = m.pick(_seeds(".index.json"))
    if m.often(0.3):
        return m.damage(seed)
    return json.dumps(m.tree(json.loads(seed), 4)).encode("utf-8", "surrogatepass")


def make_raw(m: Mutator) -> tuple[bytes, str, tuple[int, ...] | None]:
    """A raw file, the format that is said to be in it, and its shape."""
    data = m.draw.randbytes(m.draw.randint(0, 300))
    shape = tuple(m.draw.randint(-1, 9) for _ in range(m.draw.randint(0, 4))) if m.often(0.6) else None
    f = m.pick((*FORMATS, *BLOCKS))
    if shape is not None and m.often(0.5):
        size = _size(bt.files.spec.format_to_json(f), shape, None)
        data = data if size is None else _filling(m, size)
    return data, f.name, shape


def _check_file(name: str) -> Callable[[bytes, Sandbox], None]:
    def check(data: bytes, box: Sandbox) -> None:
        Path(name).write_bytes(data)
        check_reader(name)

    return check


def check_raw(case: tuple[bytes, str, tuple[int, ...] | None], box: Sandbox) -> None:
    """A raw file opens under the format and shape given, or says why not."""
    data, name, shape = case
    Path("x.bin").write_bytes(data)
    f = next(f for f in (*FORMATS, *BLOCKS) if f.name == name)
    check_reader("x.bin", format=f, shape=shape)


def check_reader(path: str, **how: Any) -> None:
    """A file opens and all of it can be used, written and read again, or one `FileError` names it and what is wrong."""
    if path.endswith((".safetensors", ".json")):
        _survey(path)
    try:
        with open_tensors(path, **how) as reader:
            tensors = {name: reader.read(name) for name in reader.names}
            pieces = {name: b"".join(p.tobytes() for p in _pieces(reader, name)) for name in reader.names}
    except FileError as error:
        _one_line(str(error))
        if path not in str(error) and not path.endswith("json"):  # it may be a shard that is at fault
            raise Wrong(f"the message does not name {path}: {error}") from error
        return
    except ValueError as error:
        if how and "shape=" in str(error) and _one_line(str(error)):
            return  # the caller's shape, not the file
        raise
    for name, tensor in tensors.items():
        if tensor.codes.tobytes() != pieces[name]:
            raise Wrong(f"tensor {name!r}: read as a whole and in pieces it differs")
        repr(tensor)
        if tensor.size <= _MOST:
            _use(tensor)
    again = f"again.{'safetensors' if path.endswith(('json', 'safetensors')) else path.rpartition('.')[2]}"
    single = path.endswith((".npy", ".bin"))
    try:
        save(again, next(iter(tensors.values())) if single else tensors, force=True)
    except ValueError as error:
        if not str(error).startswith("name="):  # a name that files may hold, but that we do not write
            raise
        return
    for name, tensor in ({"again": next(iter(tensors.values()))} if single else tensors).items():
        with open_tensors(again, **how) as reader:
            back = reader.read(name)
        if (back.format, back.shape, back.tobytes()) != (tensor.format, tensor.shape, tensor.tobytes()):
            raise Wrong(f"tensor {name!r}: {tensor.format} {tensor.shape} became {back.format} {back.shape}")


def _survey(path: str) -> None:
    """Open a file as `convert` and `study` do, which go on past tensors of unknown dtypes."""
    try:
        with open_tensors(path, lenient=True) as reader:
            for info in reader.unsupported.values():
                repr(info)
            for name in reader.names:
                reader.read(name)
    except FileError as error:
        _one_line(str(error))


def _pieces(reader: Any, name: str) -> Any:
    return reader.raw(name, 48) if reader[name].format.kind == "block" else reader.chunks(name, 48)


def _use(tensor: Any) -> None:
    """Values come out, unless a code of a scale is reserved."""
    try:
        np.asarray(tensor)
    except ValueError as error:
        if tensor.format.kind != "block" or "is reserved" not in str(error):
            raise
        _one_line(str(error))


def _one_line(text: str) -> bool:
    if not text or "\n" in text:
        raise Wrong(f"the message is not one line: {text!r}")
    return True


# --- QUANT_PRE words --------------------------------------------------------------------------------------------------

_MODES = (None, *(m.name for m in ascend.QuantMode))
_ARCHES = (2201, 3510, 2201, 3510, "a2", "950", "910", 0, "x")
_WORDS = (0, 3 << 37 | 0x3F000000, 0x7FB03F000000, 0x3F800000, 0x7F800000, 0x7FC00000, 1, 0x1FFF, 2**64 - 1, 2**64, -1)


def make_words(m: Mutator) -> tuple[Any, Any, str | None, bool, list[list[int]]]:
    """Words, architecture, mode, ReLU, accumulators."""
    words = [m.pick(_WORDS) ^ (1 << m.draw.randrange(64)) * m.often(0.7) for _ in range(m.draw.randint(1, 4))]
    given = words[0] if m.often(0.5) else words
    columns = len(words) if m.often(0.9) else m.draw.randint(0, 5)
    acc = [[m.pick((0, 1, -1, 77, 2**31 - 1, -(2**31), m.draw.randint(-999, 999))) for _ in range(columns)]] * 2
    return given, m.pick(_ARCHES), m.pick(_MODES), m.often(0.3), acc


def check_words(case: tuple[Any, Any, str | None, bool, list[list[int]]], box: Sandbox) -> None:
    """Words unpack and pack to themselves and drive Fixpipe, or a `ValueError` says why not."""
    given, arch, mode, relu, acc = case
    try:
        param = ascend.QuantParam.unpack(given, arch, mode)
        repr(param)
        back = param.pack(arch, mode)
    except ValueError as error:
        _one_line(str(error))
        return
    if np.any(np.asarray(back, np.uint64) != np.asarray(given, np.uint64)):
        raise Wrong(f"{given} came back as {back}")
    if mode is None:
        return
    try:
        product = {2201: "a2", 3510: "950"}.get(arch, arch)
        dtype = np.float32 if "F32" in mode[:5] else np.int32
        found = ascend.fixpipe(np.array(acc, dtype), mode, given, relu, product)
    except ValueError as error:
        _one_line(str(error))
        return
    if found.shape != np.shape(acc):
        raise Wrong(f"fixpipe made {found.shape} of {np.shape(acc)}")


# --- block vector streams ---------------------------------------------------------------------------------------------


def make_stream(m: Mutator) -> tuple[str, int, bytes, bool]:
    """Tag, size, bytes, and whether they come from a file."""
    kind = m.pick(aie.block.block_types())
    size = m.pick(kind.sizes) if m.often(0.9) else m.pick((0, 1, 8, 32, 63, 512))
    f = bt.format(kind.name)
    whole = max(1, size) * f.block_bytes // f.block_size
    data = m.draw.randbytes(whole * m.draw.randint(0, 3))
    data = m.damage(data, 2) if m.often(0.3) else data
    return m.text(kind.name) if m.often(0.05) else kind.name, size, data, m.often(0.5)


def check_stream(case: tuple[str, int, bytes, bool], box: Sandbox) -> None:
    """Every vector of a stream has the bytes that it came from; an odd end is a `ValueError`."""
    tag, size, data, from_file = case
    found = b""
    try:
        stream = aie.BlockVectorStream(io.BytesIO(data) if from_file else data, tag, size)
        for vector in stream:
            found += vector.tobytes()
            np.asarray(vector), repr(vector), vector.exponents, vector.mantissas
    except ValueError as error:
        _one_line(str(error))
        return
    if found != data:
        raise Wrong(f"{len(data)} bytes became {len(found)} others")


# --- the command line -------------------------------------------------------------------------------------------------


@cache
def _command() -> Any:
    """The tree of commands; building it takes longer than most commands."""
    return typer.main.get_command(bittrue.cli.app)


_LEFT_OUT = ("explore",)  # serves until it is stopped
_EXPECTED = (ValueError, OverflowError, OSError, typer.BadParameter.__mro__[2])


def call(arguments: Sequence[str], stdin: bytes = b"") -> tuple[int, bytes, str]:
    """Run the command line in this process; return exit code, stdout and stderr."""
    kept = sys.stdin, sys.stdout, sys.stderr
    said: list[BaseException] = []
    out, err = io.BytesIO(), io.BytesIO()
    module: Any = bittrue.cli
    complain, get_command = module._complain, typer.main.get_command
    command = _command()
    try:
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
        sys.stdout, sys.stderr = (io.TextIOWrapper(memory, encoding="utf-8") for memory in (out, err))
        module._complain = lambda error: (said.append(error), complain(error))
        typer.main.get_command = lambda _: command
        code = bittrue.cli.main(list(arguments))
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            stream.detach()  # type: ignore[attr-defined]  # else the memory is closed with it
    finally:
        sys.stdin, sys.stdout, sys.stderr = kept
        module._complain, typer.main.get_command = complain, get_command
    text = err.getvalue().decode()
    if code not in (0, 1, 2):
        raise Wrong(f"exit code {code}")
    if (code == 2) != bool(said):
        raise Wrong(f"exit code {code}, errors {said}")
    if said and not isinstance(said[0], _EXPECTED):
        raise said[0]
    if said and not (text.startswith("error: ") and text.count("\n") == 1 and len(text) > len("error: \n")):
        raise Wrong(f"a mistake must be one line: {text!r}")
    return code, out.getvalue(), text


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_FORMAT_NAMES = tuple(f.name for f in (*bt.formats(), *bt.formats("block")))
_REAL_NAMES = tuple(f.name for f in bt.formats() if f.kind != "complex")
_ALIASES = _split("half HiF8 fp8_e4m3fn_t DT_FP16 F8_E5M2 U8 p3109_k8p4se p3109_k5p2uf int8_t float p3109_k99p9se")
_NUMBERS = _split(
    "1.3 -1.5e-3 0x1.8p3 1/3 inf -nan 0x7e 0b101 -0 1e400 1+2j 3 2.5 448 1e-7 65504 0x0.8p-149 1e38 1,0.5,-3"
)
_ROUNDINGS = tuple(m.value for m in bt.Rounding)
_OVERFLOWS = tuple(m.value for m in bt.Overflow)
_NANS = tuple(m.value for m in bt.NanPolicy)
_INTEGERS = tuple(map(str, (*range(-3, 9), 16, 64, 255, 512, 10**6, 2**31, 2**32, 2**63, 2**64 - 1, 2**64)))
_REALS = _split("0 1 0.5 1e-3 -1 1e-300 1e300 inf nan 2.5e-2")
_PRODUCTS = _split("ascend:950 ascend:a2 ascend:310p ascend:910 a2 950 2201 3510 aie:aie-ml aie:aie xdna2 aie-mlv2 aie")
_MODE_NAMES = _split("CAST_RINT CAST_ODD CAST_HYBRID CAST_NONE RINT ODD REQ8 VDEQF16 DEQF16 F322F16 NoQuant")
_OUTPUTS = _split("out.npy out.npz out.safetensors out.bin out.html out.csv folder out.safetensors.index.json .")
_STANDARDS = _split(
    "bitwise ulp allclose absolute double_thousandth double_ten_thousandth mere_mare double_benchmark mixed_tolerance"
)
_ASCEND_TYPES = _split("half float bfloat16_t hifloat8_t int8_t int32_t fp8_e4m3fn_t fp4x2_e2m1_t complex32 double")
_PATTERNS = _split("* w *a* [ab] a float* [ ?")
#: What suits a parameter of the command line, by its name.
_SUITED: dict[str, Sequence[str]] = {
    **dict.fromkeys(_split("to format source_format name"), (*_FORMAT_NAMES, *_ALIASES)),
    **dict.fromkeys(_split("rounding"), _ROUNDINGS),
    **dict.fromkeys(_split("overflow"), _OVERFLOWS),
    **dict.fromkeys(_split("nan"), (*_NANS, "equal", "code", "never")),
    **dict.fromkeys(_split("offset seed shift threads repeat max_ulp zero_point axis size"), _INTEGERS),
    **dict.fromkeys(_split("rtol atol limit threshold tolerance small small_error deqscale"), _REALS),
    **dict.fromkeys(_split("product target arch"), _PRODUCTS),
    **dict.fromkeys(_split("src dst"), _ASCEND_TYPES),
    **dict.fromkeys(_split("mode"), _MODE_NAMES),
    **dict.fromkeys(_split("html csv output resume"), _OUTPUTS),
    **dict.fromkeys(_split("shape source_shape"), _split("48 3,16 6x8 180 2,3,30 9,-1 45 -1 3,5 x")),
    **dict.fromkeys(_split("include exclude tensor only"), _PATTERNS),
    **dict.fromkeys(_split("value"), _NUMBERS),
    **dict.fromkeys(_split("quant words"), _split("0x7fb03f000000 0x3f800000 0 1 -1 0x7f800000 0xffffffffffffffff x")),
    "scale": (*_REALS, "1/3", "none", "absmax", "power_of_two", "mse", "0x1.8p-3", "1/0"),
    "granularity": _split("tensor channel group:32 group:0 group:x group"),
    "formats": _split("int8@group:32 mx6,int4@channel@mse hifloat8 nvfp4,mx9 int8@ @ float8_e4m3fn@tensor,,"),
    "standard": _STANDARDS,
    "convention": _split("ug1603 am027"),
    "zeros": _split("differ equal"),
    "reading": _split("vendor rtol_atol"),
    "error": _split("relative absolute"),
    "level": _split("L0 L1 L2"),
    "divisor": _split("error threshold"),
}
_LINES = (*_NUMBERS, "0x2e", "7f", "ff", "-1", " 3 ", "")


def _value(m: Mutator, parameter: str = "") -> str:
    """Return what may be given for a parameter."""
    suited = _SUITED.get(parameter)
    if suited is None or m.often(0.12):
        suited = m.pick((*_SUITED.values(), _names(), TEXTS))
    word = str(m.pick(suited))
    return _safe(m.text(word) if m.often(0.05) else word)


@cache
def _names() -> tuple[str, ...]:
    return tuple(corpus())


def _safe(word: str) -> str:
    """Let no argument name a file outside the sandbox."""
    return word if word in _NUMBERS else word.replace("/", "|").replace("~", "-").replace("..", ".")


def make_arguments(m: Mutator) -> list[str]:
    """Return a command with options and arguments that it has, mostly."""
    command, words = _command(), []
    while hasattr(command, "commands"):
        names = [n for n in command.commands if n not in _LEFT_OUT]
        words.append(m.pick(names))
        command = command.commands[words[-1]]
    options: list[list[str]] = []
    optional = m.pick((0.0, 0.03, 0.15))
    for p in command.params:
        if p.param_type_name == "argument":
            file = words[0] in ("convert", "compare", "diagnose", "study")
            options.append([m.pick(_names()) if file and m.often(0.9) else _value(m, p.name)])
        elif m.often(0.95 if p.required else optional):
            flag, value = m.pick((*p.opts, *p.secondary_opts)), _value(m, p.name)
            options.append([flag] if p.is_flag else [f"{flag}={value}"] if m.often(0.3) else [flag, value])
    m.draw.shuffle(options)
    words += [word for option in options for word in option]
    if m.often(0.1):
        stray = ("--help", "--version", "--", "-h", "--json", "--bogus", _value(m))
        words.insert(m.draw.randint(0, len(words)), m.pick(stray))
    if "bench" in words:
        words.append("--list")  # as an argument too many, after "--"
    return [w if w.isprintable() else w.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for w in words]


def check_arguments(words: list[str], box: Sandbox) -> None:
    """Any arguments give exit code 0, 1 or 2, one line for a mistake, and JSON that is JSON."""
    box.tidy()
    code, out, _ = call(words)
    if code == 1 and not {"compare", "convert", "diagnose", "study"} & set(words):
        raise Wrong("this command has no exit code 1")
    if "--json" in words and code < 2 and not {"-h", "--help", "--version", "--list"} & set(words):
        json.loads(out, parse_constant=_no_constant)


def _no_constant(name: str) -> None:
    raise Wrong(f"{name} is no JSON number")


def make_pipe(m: Mutator) -> tuple[list[str], bytes]:
    """Arguments of encode or decode that are mostly right, and lines."""
    words = ["encode", "--to"] if m.often(0.6) else ["decode", "--from"]
    name = m.pick(_REAL_NAMES) if m.often(0.95) else _value(m, "to")
    words.append(name)
    codes = name
    if words[0] == "encode":
        codes = m.pick(_REAL_NAMES) if m.often(0.3) else ""
        words += ["--source", codes] if codes else []
        for option, chance in (("rounding", 0.6), ("overflow", 0.4), ("nan", 0.2), ("seed", 0.1)):
            words += [f"--{option}", _value(m, option)] if m.often(chance) else []
    else:
        words += ["--as", m.pick(_split("hex-float decimal float32-bits float64-bits"))]
    bits = bt.format(codes).bits if codes in _REAL_NAMES else 8
    lines = [f"{m.draw.getrandbits(bits):x}" if codes else m.pick(_LINES) for _ in range(m.draw.randint(0, 6))]
    text = "\n".join(lines).encode() + b"\n" * m.often(0.8)
    return words, m.damage(text, 2) if m.often(0.2) else text


def check_pipe(case: tuple[list[str], bytes], box: Sandbox) -> None:
    """A line answers each line, or an error names the line."""
    words, data = case
    code, out, _ = call(words, data)
    lines = data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    if code == 0 and (out.count(b"\n") != lines or not out.isascii()):
        raise Wrong(f"{lines} lines were answered by {out!r}")
    if code == 1:
        raise Wrong("exit code 1")


TARGETS: dict[str, Target] = {
    "npy": Target(20, make_npy, _check_file("x.npy")),
    "npz": Target(16, make_npz, _check_file("x.npz")),
    "safetensors": Target(20, make_safetensors, _check_file("x.safetensors")),
    "index": Target(11, make_index, _check_file("x.safetensors.index.json")),
    "raw": Target(6, make_raw, check_raw),
    "words": Target(9, make_words, check_words),
    "streams": Target(5, make_stream, check_stream),
    "pipes": Target(8, make_pipe, check_pipe),
    "arguments": Target(5, make_arguments, check_arguments),
}
#: What inputs are made of, by target.
WORDS: dict[str, tuple[bytes, ...]] = {
    "npy": (*b"descr fortran_order shape <f4 |u1 |V2 |O >c8 True () (1,) hifloat8".split(), b"\x93NUMPY"),
    "npz": (b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b".npy", b"\x93NUMPY", b"<f8"),
    "safetensors": tuple(
        b"dtype shape data_offsets F32 F4 U8 bittrue __metadata__ int float tapered scaled shared_exponent hifloat8 "
        b"element rule axis width { } [ ] , :".split()
    ),
    "index": tuple(b"weight_map metadata m-1.safetensors m-2.safetensors plain.safetensors { }".split()),
    "pipes": tuple(line.encode() for line in _LINES),
}
