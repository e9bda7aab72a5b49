"""``torchemu calibrate``: a topology.yaml whose transport fits times measured on a machine."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from torchemu.bridge.binding import go
from torchemu.errors import CommandError
from torchemu.launch import progress


class CalibrateError(CommandError):
    """A calibration that cannot be done, and why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.description = (
        "Fits the transport section of a topology.yaml to measured times of collectives: what nccl-tests prints, or "
        "CSV with the columns collective, world, size (bytes, as in nccl-tests) and us; and if known variant (default, "
        "or what was forced, such as ring_ll), dtype and calls (back to back, of which us is the mean)."
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="measurements")
    parser.add_argument(
        "--gemm",
        metavar="FILE",
        help="measured products, too: CSV with the columns dtype, m, n, k, us; see the key kernels",
    )
    parser.add_argument(
        "--library",
        default="nccl-2.28",
        metavar="NAME",
        help="the library whose choices the times are of (default: nccl-2.28)",
    )
    parser.add_argument(
        "--topology", default="", metavar="NAME|FILE", help="what to start from, and to take the rest of the file from"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where the topology.yaml goes (default: standard output)"
    )
    parser.set_defaults(action=calibrate)


def calibrate(options: argparse.Namespace) -> int:
    """Calibrates, and prints how far predictions are off.

    Raises:
        CalibrateError: a file is wrong, with its line and column, or cannot be read or written.
    """
    try:
        handle = go.OpenCalibration(json.dumps(options.files), options.library, options.topology)
    except (OSError, ValueError, RuntimeError) as error:
        raise CalibrateError(str(error)) from None
    try:
        if options.gemm is not None:
            _add_products(handle, options.gemm)
        _run(handle)
        name = Path(options.output).stem if options.output else "calibrated"
        text, report = go.CalibrationYAML(handle, name), go.CalibrationReport(handle)
    finally:
        go.CloseCalibration(handle)
    if options.output is None:
        print(text)
        print(report, file=sys.stderr)
        return 0
    try:
        Path(options.output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CalibrateError(f"{options.output}: {os.strerror(error.errno or 0)}") from None
    print(report)
    print(f"Written: {options.output}")
    return 0


def _add_products(handle: int, file: str) -> None:
    try:
        go.CalibrateProducts(handle, file)
    except (OSError, ValueError, RuntimeError) as error:
        raise CalibrateError(str(error)) from None


def _run(handle: int) -> None:
    """Runs a calibration to its end, with a bar on a terminal."""
    share = 0.0
    with progress.Line() as line:
        while share < 1:
            share = go.StepCalibration(handle)
            line.write(f"calibrating {progress.bar(share, 1)} {share:4.0%}")
