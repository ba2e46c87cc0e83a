"""The commands and their options; what they do is in the module that each one names, imported when it runs."""

from __future__ import annotations

import enum
from typing import Annotated, Any

import typer

from ..formats import format as find_format
from ..kinds.block import BlockFormat, BlockRule
from ..rounding import NanPolicy, Overflow, Rounding, Rule, make_rule

__all__ = ["app"]

app = typer.Typer(
    name="bittrue",
    help="Bit-true number formats and casts of AI accelerators.",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _names(kind: type[enum.Enum]) -> str:
    """Return the members of a rule; the first one is the default."""
    first, *others = (str(m.value) for m in kind)
    return f"{first} (default), {', '.join(others)}."


RoundingOption = Annotated[str | None, typer.Option("--rounding", help=_names(Rounding), metavar="MODE")]
OverflowOption = Annotated[
    str | None,
    typer.Option(
        "--overflow",
        help=_names(Overflow),
        metavar="RULE",
    ),
]
NanOption = Annotated[str | None, typer.Option("--nan", help=_names(NanPolicy), metavar="RULE")]
SeedOption = Annotated[int | None, typer.Option("--seed", help="Seed of stochastic rounding.", metavar="N")]
TargetOption = Annotated[
    str | None, typer.Option("--target", help="Follow a product's casts: ascend:950, ascend:a2 ...", metavar="PRODUCT")
]
SaturationOption = Annotated[
    str | None,
    typer.Option(
        "--saturation",
        help="ascend: off, on, or pypto (its satmode's default); default: the product's state at reset.",
        metavar="STATE",
    ),
]
QuantOption = Annotated[
    str | None,
    typer.Option(
        "--quant",
        help="Fixpipe's parameter word; for a mode per column words by comma, or a .bin or .npy of uint64.",
        metavar="WORD",
    ),
]
LayoutOption = Annotated[
    str | None,
    typer.Option("--layout", help="Of ACTUAL: ND (default), or NZ, blocks as Fixpipe writes them.", metavar="LAYOUT"),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option("--scheduler", help="Spread the work over a Dask cluster: tcp://host:8786.", metavar="ADDRESS"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"bittrue {version('bittrue')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command("formats", epilog="Example: bittrue formats hifloat8")
def formats(
    name: Annotated[str | None, typer.Argument(help="A format by any of its names.", metavar="NAME")] = None,
    json: Json = False,
) -> None:
    """List all formats, or show one in full: fields, range, special codes, aliases, code table."""
    from . import catalogue

    if name is None:
        catalogue.list_formats(json)
    else:
        catalogue.one_format(name, json)


@app.command(
    "show",
    epilog="Examples: bittrue show 1.3 --format hifloat8 / bittrue show 0x7e --format fp8_e4m3fn / "
    "bittrue show 1,0.5,-3 --format mx6",
    context_settings={"ignore_unknown_options": True},  # -1.5 is a value
)
def show(
    value: Annotated[
        str,
        typer.Argument(
            help="A value (1.3, 1/3, 0x1.8p3, -inf, nan) or a code (0x7e, 0b1010); for block formats values apart by "
            "commas.",
            metavar="VALUE_OR_CODE",
        ),
    ],
    format: Annotated[str, typer.Option("--format", help="The format, by any of its names.", metavar="FORMAT")],
    target: TargetOption = None,
    source: Annotated[
        str, typer.Option("--src", help="With --target: the type that is cast from.", metavar="TYPE")
    ] = "float",
    json: Json = False,
) -> None:
    """Show a value or a code in a format: bits, exact value, neighbours, what each rounding mode gives."""
    from .show import show as run

    run(value, format, target, source, json)


@app.command(
    "encode",
    epilog="Examples: echo 1.3 | bittrue encode --to hifloat8 / "
    "bittrue encode --to bfloat16 --source float32 < bits.txt",
)
def encode(
    to: Annotated[str, typer.Option("--to", help="Format of the codes to write.", metavar="FORMAT")],
    source: Annotated[
        str | None,
        typer.Option(help="Lines are bit patterns of this format in hexadecimal, not numbers.", metavar="FORMAT"),
    ] = None,
    rounding: RoundingOption = None,
    overflow: OverflowOption = None,
    nan: NanOption = None,
    seed: SeedOption = None,
) -> None:
    """Read numbers line by line (1.3, 0x1.8p3, 1/3, -inf, nan) and write their codes in hexadecimal."""
    from .pipes import encode_lines

    encode_lines(to, source, make_rule(None, rounding=rounding, overflow=overflow, nan=nan, seed=seed))


@app.command("decode", epilog="Example: echo 0x2e | bittrue decode --from hifloat8 --as decimal")
def decode(
    source: Annotated[str, typer.Option("--from", help="Format of the codes to read.", metavar="FORMAT")],
    output: Annotated[
        str, typer.Option("--as", help="hex-float (default), decimal, float32-bits, float64-bits.", metavar="OUTPUT")
    ] = "hex-float",
) -> None:
    """Read codes in hexadecimal line by line and write their values."""
    from .pipes import decode_lines

    decode_lines(source, output)


@app.command(
    "vectors",
    epilog="Examples: bittrue vectors --to float8_e4m3fn > vectors.hex / "
    "bittrue vectors --to hifloat8 --source half --rounding nearest_away --rounding hybrid --overflow infinity",
)
def vectors(
    to: Annotated[str, typer.Option("--to", help="Format of the results, of up to 16 bits.", metavar="FORMAT")],
    source: Annotated[str, typer.Option(help="Format of the inputs.", metavar="FORMAT")] = "float32",
    rounding: Annotated[
        list[str] | None,
        typer.Option(help="A column for this mode; repeatable. Default: all that need no random bits.", metavar="MODE"),
    ] = None,
    overflow: OverflowOption = None,
    nan: NanOption = None,
) -> None:
    """Write test vectors in hexadecimal: every value and midpoint, what lies beside them, and each mode's result.

    Lines are an input and a code for each mode; // begins a comment, as in Verilog's $readmemh.
    """
    from .vectors import write_vectors

    write_vectors(to, source, rounding or [], overflow, nan)


@app.command(
    "convert",
    epilog="Examples: bittrue convert model.safetensors --to hifloat8 / "
    "bittrue convert x.bin --format float32 --shape 64,128 --to int8 --rounding floor -o y.bin",
)
def convert(
    source: Annotated[
        str,
        typer.Argument(
            help=".safetensors, .npz, .npy, .bin or .raw; for a sharded checkpoint its .safetensors.index.json or "
            "folder.",
            metavar="IN",
        ),
    ],
    to: Annotated[str, typer.Option("--to", help="What floating tensors become.", metavar="FORMAT")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Default: IN with the format before the suffix.", metavar="OUT"),
    ] = None,
    rounding: RoundingOption = None,
    overflow: OverflowOption = None,
    nan: NanOption = None,
    seed: SeedOption = None,
    include: Annotated[
        list[str] | None,
        typer.Option(help="Convert only tensors whose name matches (*, ?, [..]); repeatable.", metavar="PATTERN"),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="Copy tensors whose name matches as they are; repeatable.", metavar="PATTERN"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT where it exists.")] = False,
    threads: Annotated[
        int | None, typer.Option(help="Default: one per processor. The result never depends on it.", metavar="N")
    ] = None,
    source_format: Annotated[
        str | None, typer.Option("--format", help="Format of a raw IN (or of the codes of a .npy).", metavar="FORMAT")
    ] = None,
    source_shape: Annotated[
        str | None, typer.Option("--shape", help="Shape of a raw IN, as 64,128.", metavar="SIZES")
    ] = None,
    axis: Annotated[
        int | None,
        typer.Option(
            "--axis",
            help="Block formats: along which the blocks lie; default: as those of IN, or -1.",
            metavar="N",
        ),
    ] = None,
    convention: Annotated[
        str | None,
        typer.Option("--convention", help="mx9, mx6, mx4: ug1603 (default) or am027.", metavar="NAME"),
    ] = None,
    target: TargetOption = None,
    mode: Annotated[
        str | None, typer.Option("--mode", help="With --target: the cast mode, as CAST_ROUND.", metavar="MODE")
    ] = None,
    saturation: SaturationOption = None,
    scheduler: SchedulerOption = None,
    json: Json = False,
) -> None:
    """Convert the tensors of a file into another format, and say what that did to each of them.

    Exit code 1 when a tensor had to be left out because its dtype is not known.
    """
    from .convert import convert as run

    given = {"rounding": rounding, "overflow": overflow, "nan": nan, "seed": seed}
    if target is not None and any(value is not None for value in given.values()):
        raise ValueError(
            f"--target {target} brings its own rule; choose with --mode and --saturation, and leave out --rounding, "
            f"--overflow, --nan and --seed"
        )
    if mode is not None and target is None:
        raise ValueError(f"--mode {mode} needs --target; without one, --rounding chooses")
    if saturation is not None and target is None:
        raise ValueError(f"--saturation {saturation} needs --target; without one, --overflow and --nan choose")
    complete = run(
        source,
        to,
        output,
        _rule_for(to, convention, given),
        include or [],
        exclude or [],
        force,
        threads,
        source_format,
        source_shape,
        target,
        mode,
        saturation,
        json,
        axis,
        convention,
        scheduler,
    )
    if not complete:
        raise typer.Exit(1)


def _rule_for(to: str, convention: str | None, given: dict[str, Any]) -> Rule | BlockRule:
    """Return the rule that the options ask for, in the form that the format takes."""
    found = find_format(to)
    if not isinstance(found, BlockFormat):
        return make_rule(None, **given)
    if given["seed"] is not None:
        raise ValueError(f"--seed has no meaning for the block format {found.name}")
    from ..blocks import block_rule
    from .blocks import convention_of

    return block_rule(convention_of(found, convention), given["rounding"], given["overflow"], given["nan"])


@app.command(
    "study",
    epilog="Examples: bittrue study model.safetensors --html report.html / "
    "bittrue study model.safetensors --formats int8@channel,int4@group:128@mse,mx6",
)
def study(
    source: Annotated[
        str, typer.Argument(help=".safetensors, its .index.json (or folder), .npz or .npy.", metavar="MODEL")
    ],
    formats: Annotated[
        str | None,
        typer.Option(
            help="Formats by comma, each with options of its own after @. Default: hifloat8, float8_e4m3fn, mx9, mx6, "
            "mx4, mxfp4, nvfp4, int8.",
            metavar="LIST",
        ),
    ] = None,
    granularity: Annotated[
        str, typer.Option(help="What shares a scale: tensor, channel, group:N.", metavar="WHAT")
    ] = "tensor",
    scale: Annotated[str, typer.Option(help="none, absmax, power_of_two or mse.", metavar="RULE")] = "absmax",
    include: Annotated[
        list[str] | None, typer.Option(help="Study only tensors whose name matches; repeatable.", metavar="PATTERN")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Leave out tensors whose name matches; repeatable.", metavar="PATTERN")
    ] = None,
    html: Annotated[str | None, typer.Option(help="Write the report as one HTML page.", metavar="FILE")] = None,
    csv: Annotated[str | None, typer.Option(help="Write a line per tensor and format.", metavar="FILE")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace output that exists.")] = False,
    threads: Annotated[int | None, typer.Option(help="Default: one per processor.", metavar="N", min=1)] = None,
    resume: Annotated[
        str | None,
        typer.Option(help="Journal of an interrupted study. Default: found in the user's cache.", metavar="FILE"),
    ] = None,
    scheduler: SchedulerOption = None,
    json: Json = False,
) -> None:
    """Measure what number formats cost each tensor of a model; exit code 1 when a tensor had to be skipped."""
    from .study import study_file

    complete = study_file(
        source, formats, granularity, scale, include or [], exclude or [], html, csv, force, threads, resume, scheduler,
        json,
    )
    if not complete:
        raise typer.Exit(1)


@app.command(
    "compare",
    epilog="Examples: bittrue compare golden.npy dump.bin --format hifloat8 / "
    "bittrue compare golden.safetensors device.safetensors --standard mere_mare --html report.html",
)
def compare(
    golden: Annotated[
        str,
        typer.Argument(
            help=".safetensors, .npz, .npy, .bin or .raw; .hex or .mem: codes as lines of text.", metavar="GOLDEN"
        ),
    ],
    actual: Annotated[str, typer.Argument(help="What the device produced.", metavar="ACTUAL")],
    standard: Annotated[
        str,
        typer.Option(
            help="bitwise, ulp, allclose, absolute, double_thousandth, double_ten_thousandth, mere_mare, "
            "double_benchmark or mixed_tolerance.",
            metavar="STANDARD",
        ),
    ] = "bitwise",
    format: Annotated[
        str | None,
        typer.Option("--format", help="Format of raw files and of codes in .npy.", metavar="FORMAT"),
    ] = None,
    shape: Annotated[
        str | None, typer.Option("--shape", help="Shape of raw files, as 64,128.", metavar="SIZES")
    ] = None,
    layout: LayoutOption = None,
    third: Annotated[
        str | None, typer.Option(help="double_benchmark: the other implementation's output.", metavar="FILE")
    ] = None,
    wide_golden: Annotated[
        bool, typer.Option("--wide-golden", help="The golden data are unrounded, in another format.")
    ] = False,
    nan: Annotated[
        str | None, typer.Option(help="Two NaNs are equal (default), equal by code, or never.", metavar="RULE")
    ] = None,
    zeros: Annotated[
        str | None, typer.Option(help="+0 and -0 differ (default) or are equal.", metavar="RULE")
    ] = None,
    tensor: Annotated[
        list[str] | None,
        typer.Option(help="Compare only tensors whose name matches (*, ?, [..]); repeatable.", metavar="PATTERN"),
    ] = None,
    max_ulp: Annotated[int | None, typer.Option(help="ulp: largest distance.", metavar="N")] = None,
    rtol: Annotated[float | None, typer.Option(help="allclose, mixed_tolerance.", metavar="X")] = None,
    atol: Annotated[float | None, typer.Option(help="allclose, mixed_tolerance.", metavar="X")] = None,
    limit: Annotated[float | None, typer.Option(help="absolute, mixed_tolerance.", metavar="X")] = None,
    threshold: Annotated[float | None, typer.Option(help="mere_mare: T.", metavar="X")] = None,
    tolerance: Annotated[float | None, typer.Option(help="double_...: instead of 1/1000.", metavar="X")] = None,
    reading: Annotated[
        str | None, typer.Option(help="double_...: vendor or rtol_atol.", metavar="READING")
    ] = None,
    error: Annotated[str | None, typer.Option(help="double_...: relative or absolute.", metavar="ERROR")] = None,
    level: Annotated[str | None, typer.Option(help="double_benchmark: L0, L1 or L2.", metavar="LEVEL")] = None,
    divisor: Annotated[
        str | None, typer.Option(help="double_benchmark: error or threshold.", metavar="DIVISOR")
    ] = None,
    small: Annotated[
        float | None, typer.Option(help="double_benchmark: end of the small values.", metavar="X")
    ] = None,
    small_error: Annotated[
        float | None, typer.Option(help="double_benchmark: error allowed to small values.", metavar="X")
    ] = None,
    html: Annotated[str | None, typer.Option(help="Write the report as one HTML page.", metavar="FILE")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the HTML page where it exists.")] = False,
    json: Json = False,
) -> None:
    """Compare golden data with a device's dump; exit code 0: passed, 1: failed, 2: a mistake in the arguments."""
    from .compare import compare_files

    passed = compare_files(
        golden,
        actual,
        standard,
        third,
        format,
        shape,
        layout,
        tensor or [],
        html,
        force,
        json,
        wide_golden=wide_golden,
        nan=nan,
        zeros=zeros,
        max_ulp=max_ulp,
        rtol=rtol,
        atol=atol,
        limit=limit,
        threshold=threshold,
        tolerance=tolerance,
        reading=reading,
        error=error,
        level=level,
        divisor=divisor,
        small=small,
        small_error=small_error,
    )
    if not passed:
        raise typer.Exit(1)


@app.command(
    "diagnose",
    epilog="Examples: bittrue diagnose x.npy dump.bin --to hifloat8 --target ascend:950 / "
    "bittrue diagnose x.npy dump.npy --to bfloat16 --target aie:aie-ml",
)
def diagnose(
    source: Annotated[str, typer.Argument(help="The input of the conversion.", metavar="INPUT")],
    actual: Annotated[str, typer.Argument(help="What the device made of it.", metavar="ACTUAL")],
    to: Annotated[str | None, typer.Option("--to", help="Format of ACTUAL.", metavar="FORMAT")] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="ascend:950, ascend:a2, aie:aie-ml ...", metavar="TARGET")
    ] = None,
    format: Annotated[
        str | None, typer.Option("--format", help="Format of a raw INPUT.", metavar="FORMAT")
    ] = None,
    shape: Annotated[
        str | None, typer.Option("--shape", help="Shape of a raw INPUT, as 64,128.", metavar="SIZES")
    ] = None,
    layout: LayoutOption = None,
    scale: Annotated[float | None, typer.Option(help="The scale that was to be used.", metavar="X")] = None,
    zero_point: Annotated[int | None, typer.Option(help="The zero point likewise.", metavar="N")] = None,
    shift: Annotated[int | None, typer.Option(help="aie: shift of the accumulators.", metavar="N")] = None,
    deqscale: Annotated[float | None, typer.Option(help="ascend: scale of int32 to half.", metavar="X")] = None,
    mode: Annotated[
        str | None, typer.Option(help="ascend: quantisation mode of Fixpipe, as REQ8.", metavar="MODE")
    ] = None,
    quant: QuantOption = None,
    relu: Annotated[bool, typer.Option("--relu", help="ascend: Fixpipe with ReLU.")] = False,
    json: Json = False,
) -> None:
    """Find the rule that explains a device's dump; exit code 0: explained, 1: not, 2: a mistake in the arguments."""
    from .diagnose import diagnose_files

    explained = diagnose_files(
        source,
        actual,
        to,
        format,
        shape,
        layout,
        quant,
        json,
        target=target,
        scale=scale,
        zero_point=zero_point,
        shift=shift,
        deqscale=deqscale,
        mode=mode,
        relu=relu,
    )
    if not explained:
        raise typer.Exit(1)


@app.command("rules", epilog="Example: bittrue rules --product a2 --src half --dst int8_t --mode ODD")
def rules(
    product: Annotated[str | None, typer.Option(help="ascend:950, 950, a2, 2201 ...", metavar="PRODUCT")] = None,
    src: Annotated[str | None, typer.Option(help="Source type.", metavar="TYPE")] = None,
    dst: Annotated[str | None, typer.Option(help="Destination type.", metavar="TYPE")] = None,
    mode: Annotated[str | None, typer.Option(help="Say what becomes of this mode.", metavar="MODE")] = None,
    saturation: SaturationOption = None,
    json: Json = False,
) -> None:
    """Show the rule books of the hardware: which casts and modes a product has, what they do, and who says so."""
    from .rules import rules as run

    run(product, src, dst, mode, saturation, json)


quantparam = typer.Typer(
    help="Pack and unpack the 64-bit quantisation parameters of Ascend's Fixpipe (QUANT_PRE), with the bits drawn.",
    epilog="Example: bittrue quantparam unpack 0x7fb03f000000",
)
app.add_typer(quantparam, name="quantparam")


@quantparam.callback(invoke_without_command=True)
def _quantparam(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())



@app.command(
    "fixpipe",
    epilog="Examples: bittrue fixpipe acc.npy --mode REQ8 --quant 0x7fb33dccc000 --product a2 -o golden.npy / "
    "bittrue fixpipe acc.bin --format int32 --shape 64,128 --mode VREQ8 --quant words.bin --layout NZ -o golden.bin",
)
def fixpipe(
    source: Annotated[str, typer.Argument(help="Accumulators [m, n]: .npy, .bin or .raw.", metavar="ACC")],
    mode: Annotated[str, typer.Option(help="Quantisation mode, as VREQ8.", metavar="MODE")],
    output: Annotated[str, typer.Option("--output", "-o", help=".npy, .bin or .raw.", metavar="OUT")],
    quant: QuantOption = None,
    product: Annotated[str, typer.Option(help="950, a2, 2201 ...", metavar="PRODUCT")] = "950",
    relu: Annotated[bool, typer.Option("--relu", help="With ReLU.")] = False,
    alpha: Annotated[
        float | None, typer.Option(help="With --relu: factor below zero, of a leaky ReLU.", metavar="X")
    ] = None,
    saturation: SaturationOption = None,
    layout: Annotated[str, typer.Option(help="Of OUT: ND (rows) or NZ (blocks).", metavar="LAYOUT")] = "ND",
    format: Annotated[
        str | None, typer.Option("--format", help="Format of a raw ACC: int32 or float32.", metavar="FORMAT")
    ] = None,
    shape: Annotated[
        str | None, typer.Option("--shape", help="Shape of a raw ACC, as 64,128.", metavar="SIZES")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT where it exists.")] = False,
    json: Json = False,
) -> None:
    """Make golden data of Ascend's Fixpipe: what accumulators become under a quantisation mode."""
    from .fixpipe import fixpipe as run

    run(source, output, mode, quant, product, relu, alpha, saturation, layout, format, shape, force, json)


ArchOption = Annotated[str, typer.Option("--arch", help="NPU architecture (2201, 3510) or product.", metavar="ARCH")]
QuantModeOption = Annotated[
    str | None, typer.Option("--mode", help="Quantisation mode, as VREQ8: which fields it reads.", metavar="MODE")
]


@quantparam.command("pack", epilog="Example: bittrue quantparam pack --scale 0.05 --offset -3 --arch a2 --shift 4")
def quantparam_pack(
    scale: Annotated[str, typer.Option(help="Factor M1: 0.05, 1/3, 0x1.8p-3; cut to 1+8+10 bits.", metavar="NUMBER")],
    offset: Annotated[int, typer.Option(help="-256 to 255.", metavar="N")] = 0,
    signed: Annotated[
        bool | None, typer.Option("--signed/--unsigned", help="Result int8 (default, where the mode has it) or uint8.")
    ] = None,
    shift: Annotated[int | None, typer.Option(help="1 to 16, with MCB; arch 2201 only.", metavar="N")] = None,
    arch: ArchOption = "2201",
    mode: QuantModeOption = None,
    json: Json = False,
) -> None:
    """Print the word that holds these parameters."""
    from .quantparam import pack

    pack(scale, offset, signed, shift, arch, mode, json)


@quantparam.command("unpack", epilog="Example: bittrue quantparam unpack 0x7fb03f000000 --mode DEQF16")
def quantparam_unpack(
    words: Annotated[list[str], typer.Argument(help="64-bit words, hexadecimal (0x...) or decimal.", metavar="WORD")],
    arch: ArchOption = "2201",
    mode: QuantModeOption = None,
    json: Json = False,
) -> None:
    """Print the parameters that words hold."""
    from .quantparam import unpack

    unpack(words, arch, mode, json)


aie = typer.Typer(
    help="AMD AI Engine: tables of accumulators, vectors, matrix shapes and ports; shift, round and saturate.",
    epilog="Example: bittrue aie accum --arch aie-ml",
)
app.add_typer(aie, name="aie")


@aie.callback(invoke_without_command=True)
def _aie(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


AieArchOption = Annotated[
    str | None, typer.Option("--arch", help="aie, aie-ml (xdna1), xdna2 (aie2p) or aie-mlv2.", metavar="ARCH")
]


@aie.command("accum", epilog="Example: bittrue aie accum --arch aie-ml")
def aie_accum(arch: AieArchOption = None, json: Json = False) -> None:
    """Show which native accumulator each tag maps to, and how many lanes there may be."""
    from .aie import show as run

    run("accum", arch, json)


@aie.command("vector", epilog="Example: bittrue aie vector --arch xdna2")
def aie_vector(arch: AieArchOption = None, json: Json = False) -> None:
    """Show the element types of vectors and their legal numbers of lanes."""
    from .aie import show as run

    run("vector", arch, json)


@aie.command("mmul", epilog="Example: bittrue aie mmul --arch aie-mlv2")
def aie_mmul(arch: AieArchOption = None, json: Json = False) -> None:
    """Show the legal shapes of matrix products."""
    from .aie import show as run

    run("mmul", arch, json)


@aie.command("ports", epilog="Example: bittrue aie ports --arch aie")
def aie_ports(arch: AieArchOption = None, json: Json = False) -> None:
    """Show the types that streams, cascades and run-time parameters carry."""
    from .aie import show as run

    run("ports", arch, json)


@aie.command(
    "srs",
    epilog="Example: bittrue aie srs 0x3000000000000 --shift 50 --to int32 --arch aie",
    context_settings={"ignore_unknown_options": True},  # -5 is a value
)
def aie_srs(
    value: Annotated[str, typer.Argument(help="The accumulator, an integer.", metavar="VALUE")],
    shift: Annotated[int, typer.Option(help="Bits to shift to the right.", metavar="N")] = 0,
    to: Annotated[str, typer.Option("--to", help="Type of the result, as int16.", metavar="TYPE")] = "int32",
    arch: AieArchOption = None,
    json: Json = False,
) -> None:
    """Show what every rounding and saturation mode makes of an accumulator that is shifted, rounded and saturated."""
    from .aie import srs as run

    run(value, to, shift, arch, json)


@app.command(
    "explore",
    epilog="Examples: bittrue explore / bittrue explore hifloat8 1.3 / bittrue explore --port 0 --no-browser",
    context_settings={"ignore_unknown_options": True},  # -1.5 is a value
)
def explore(
    format: Annotated[str | None, typer.Argument(help="The format to show first.", metavar="FORMAT")] = None,
    value: Annotated[
        str | None, typer.Argument(help="A value or a code; block formats: values apart by commas.", metavar="VALUE")
    ] = None,
    port: Annotated[int | None, typer.Option(help="Of 127.0.0.1; 0: a free one. Default: 8950.", metavar="N")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
) -> None:
    """Explore formats, casts and quantisation in the browser: a page served to this machine alone, until Ctrl-C."""
    from .explore import explore as run

    run(format, value, port, browser)


@app.command("bench", epilog="Example: bittrue bench --only hifloat8 --size 2^22")
def bench(
    size: Annotated[str, typer.Option(help="Elements per array.", metavar="N")] = "2^24",
    repeat: Annotated[int, typer.Option(help="Rounds; the figures are medians.", metavar="N")] = 11,
    only: Annotated[
        str | None, typer.Option(help="Only rows that contain this text, or match it (*, ?).", metavar="PATTERN")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Convert a file of 2 GB instead of 256 MB.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Name the rows, measure nothing.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print docs/benchmarks.md.")] = False,
    plot: Annotated[
        str | None,
        typer.Option(help="Also measure how rates grow with elements and threads, and draw it.", metavar="FILE.png"),
    ] = None,
    json: Json = False,
) -> None:
    """Measure this machine: every conversion beside a plain copy and beside other libraries."""
    from .bench import bench as run

    form = "list" if listing else "json" if json else "markdown" if markdown else "table"
    run(size, repeat, only, full, form, plot)
