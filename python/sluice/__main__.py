"""Converts a Parquet, Arrow, Feather or ORC file, or adds its rows to a store."""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from typing import Any, Dict, Iterable, Optional, Sequence

from ._arrow import open_table
from ._convert import convert
from ._errors import SluiceError
from ._tensor import Tensor

# Exit codes of the command sluice by the status of an error; 1 for any other status.
EXIT_CODES = {"usage": 2, "input": 3, "format": 3, "unsupported": 3, "budget": 4, "io": 5, "nospace": 5, "damaged": 5}


# Options of both commands whose name is not that of the argument.
OPTIONS = {"overwrite": "--force"}


def message_of(fault: SluiceError, arguments: Iterable[str]) -> str:
    """Returns the message of an error, with the options of the command instead of the arguments of Python."""
    names = {name: OPTIONS.get(name, "--" + name.replace("_", "-")) for name in arguments}
    text, last = str(fault), re.search(r" \((\w+(?:, \w+)*)\)$", str(fault))
    if fault.field is None:
        return text
    if last is not None and fault.field in last[1].split(", "):
        shown = [names[name] for name in last[1].split(", ") if name in names]
        return text[:last.start()] + (f" ({', '.join(shown)})" if shown else "")
    return names[fault.field] + text[len(fault.field):] if fault.field in names and text.startswith(fault.field + " ") else text


def parse(given: Optional[Sequence[str]]) -> Dict[str, Any]:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="python3 -m sluice", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="convert | append")
    conversion = commands.add_parser("convert", help="convert a file to a store", 
                                     description="The options are those of `sluice convert` with the same names.")
    conversion.add_argument("input", metavar="FILE", help="file, or folder of Parquet files")
    conversion.add_argument("output", metavar="OUT.slc")
    conversion.add_argument("--columns", metavar="LIST", help="modes; if not given, all columns except that of the values")
    conversion.add_argument("--value-column", metavar="NAME", help="column of the values; if not given, rows are counted")
    conversion.add_argument("--missing", choices=("error", "skip", "name"), default="error", help="rows with nulls [error]")
    conversion.add_argument("--null", metavar="WORDS", help="words that are read as nulls: nan,NA")
    conversion.add_argument("--transform", metavar="STEPS", help="functions applied to the values: abs,log1p")
    conversion.add_argument("--keep-zeros", action="store_true", help="store values of 0 as listed cells")
    conversion.add_argument("-f", "--overwrite", "--force", action="store_true")
    addition = commands.add_parser("append", help="add the rows of a file to a store that was made from a table",
                                   description="The options are those of `sluice append` with the same names.")
    addition.add_argument("store", metavar="X.slc")
    addition.add_argument("input", metavar="FILE", help="file with the columns of the table, or folder of Parquet files")
    addition.add_argument("--again", action="store_true", help="add the rows even if the same file was added before")
    for command in (conversion, addition):
        command.add_argument("--duplicates", default="sum", help="how to combine nonzeros with equal coordinates [sum]")
        command.add_argument("--memory", metavar="SIZE", help="memory budget of the whole process")
        command.add_argument("-t", "--threads", type=int, default=0)
    return vars(parser.parse_args(given))


def run(path: str, options: Dict[str, Any]) -> None:
    """Runs a command and prints its result."""
    if options.pop("command") == "convert":
        tensor = convert(open_table(path), options.pop("output"), source_name=path, **options)
        if options["columns"] is None:
            print(f"sluice: note: every column is a mode ({', '.join(tensor.titles)}); select modes with --columns", file=sys.stderr)
    else:
        tensor = Tensor(options.pop("store"))
        if not tensor.append(open_table(path), source_name=path, **options):
            print(f"{path} was added before; add it again with --again")
            return
    print(tensor)
    if tensor.skipped_rows > 0:
        print(f"{tensor.skipped_rows:,} rows with nulls were skipped")


def main(given: Optional[Sequence[str]] = None) -> int:
    options = parse(given)
    names = list(options)
    warnings.showwarning = lambda message, *_: print(f"sluice: warning: {message}", file=sys.stderr)
    try:
        run(options.pop("input"), options)
    except KeyboardInterrupt:
        return 130
    except SluiceError as fault:
        print(f"sluice: {message_of(fault, names)}", file=sys.stderr)
        return EXIT_CODES.get(fault.status, 1)
    except OSError as fault:
        print(f"sluice: {f'{fault.filename}: ' if fault.filename else ''}{fault.strerror or fault}", file=sys.stderr)
        return EXIT_CODES["io"]
    return 0


if __name__ == "__main__":
    sys.exit(main())
