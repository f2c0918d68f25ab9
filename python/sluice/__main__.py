"""`python3 -m sluice convert FILE OUT.slc`: converts a Parquet, Arrow, Feather or ORC file."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from typing import Any, Optional, Sequence

from ._convert import convert
from ._errors import SluiceError, UsageError

FORMATS = {".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather", ".ipc": "feather", ".orc": "orc"}


def open_table(path: str) -> Any:
    """Opens a file, or a folder of Parquet files, with pyarrow or, for Parquet, with duckdb."""
    folder = os.path.isdir(path)
    form = "parquet" if folder else FORMATS.get(os.path.splitext(path)[1].lower())
    if form is None:
        raise UsageError(f"{path}: expected a file that ends in {', '.join(FORMATS)}, or a folder of Parquet files; "
                         "the command `sluice convert` reads CSV and tensors")
    if importlib.util.find_spec("pyarrow") is not None:
        return importlib.import_module("pyarrow.dataset").dataset(path, format=form)
    if form == "parquet" and importlib.util.find_spec("duckdb") is not None:
        return importlib.import_module("duckdb").read_parquet(os.path.join(path, "**", "*.parquet") if folder else path)
    raise UsageError("this needs the Python package pyarrow or, for Parquet, duckdb: pip install pyarrow")


def main(given: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m sluice", description=__doc__)
    command = parser.add_subparsers(required=True, metavar="convert").add_parser(
        "convert", help="convert a file to a store", description="The options are those of `sluice convert`.")
    command.add_argument("input", metavar="FILE", help="file, or folder of Parquet files")
    command.add_argument("output", metavar="OUT.slc")
    command.add_argument("--columns", metavar="LIST", help="modes; if not given, all columns except that of the values")
    command.add_argument("--value-column", metavar="NAME", help="column of the values; if not given, rows are counted")
    command.add_argument("--missing", choices=("error", "skip", "name"), default="error", help="rows with nulls [error]")
    command.add_argument("--duplicates", default="sum", help="how to combine nonzeros with equal coordinates [sum]")
    command.add_argument("--transform", metavar="STEPS", help="functions applied to the values: abs,log1p")
    command.add_argument("--memory", metavar="SIZE", help="memory budget of the whole process")
    command.add_argument("-t", "--threads", type=int, default=0)
    command.add_argument("-f", "--overwrite", action="store_true")
    options = vars(parser.parse_args(given))
    path, output = options.pop("input"), options.pop("output")
    try:
        print(convert(open_table(path), output, **options))
    except KeyboardInterrupt:
        return 130
    except (SluiceError, OSError) as fault:
        print(f"sluice: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
