#!/usr/bin/env python3
"""bin() and log(): every number is in the bin that decimal arithmetic gives, and the names of bins
are their exact bounds, all different and in order."""

import os
import random
import sys
from decimal import ROUND_FLOOR, Decimal, getcontext

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import FULL, QUICK, check, names_of, run, sluice  # noqa: E402

getcontext().prec = 120
ROWS = 1000000 if FULL else 2000 if QUICK else 20000
WIDTHS = ("0.1", "0.01", "0.25", "3", "1e-7")
ORIGINS = ("0", "-1.5", "100000", "0.05", "1616976024321")
BINS = 500


def written(value, draw):
    """Returns a text of the number: plain, with zeros, a sign or blanks, or with an exponent."""
    text = format(value, "f")
    way = draw.randrange(6)
    if way == 0 and "." in text:
        return text + "000"
    if way == 1 and value >= 0:
        return "+0" + text
    if way == 2:
        return f" {text} "
    if way == 3:
        return format(value, "e")
    return text


def numbers(width, origin, count, draw):
    """Yields random numbers near BINS bins: on an edge, just below or above it, and in between."""
    for _ in range(count):
        edge = origin + width * draw.randrange(-BINS // 2, BINS // 2)
        step = Decimal(draw.randrange(1, 10)).scaleb(-draw.randrange(1, 25))
        yield edge + draw.choice((0, 0, width * step, -width * step, width * Decimal(draw.randrange(1000)) / 1000))


def converted(folder, item, texts):
    """Returns the names of the bins of the numbers, in the order of `texts`."""
    table, store, out = (os.path.join(folder, name) for name in ("t.csv", "t.slc", "out.tns"))
    with open(table, "w", encoding="ascii") as file:
        file.write("row,x\n" + "".join(f"{i},{text}\n" for i, text in enumerate(texts)))
    sluice("convert", table, store, "--columns", f"int(row),{item}", "--overwrite", "-q")
    sluice("export", store, out, "--overwrite", "-q")
    names = names_of(store, 2)
    with open(out, encoding="ascii") as file:
        rows = dict(map(int, line.split()[:2]) for line in file if line[0] != "#")
    check(len(set(names)) == len(names) and names == sorted(names, key=bounds), "names are unique and ordered")
    return [names[rows[i + 1] - 1] for i in range(len(texts))]


def bounds(name):
    low, high = name[1:-1].split(", ")
    check(name[0] == "[" and name[-1] == ")", name)
    return Decimal(low), Decimal(high)


def bins(folder):
    draw = random.Random(7)
    for w in WIDTHS:
        for o in ORIGINS:
            width, origin = Decimal(w), Decimal(o)
            values = list(numbers(width, origin, ROWS // (len(WIDTHS) * len(ORIGINS)), draw))
            names = converted(folder, f"bin(x,{w},{o})", [written(value, draw) for value in values])
            for value, name in zip(values, names):
                number = ((value - origin) / width).to_integral_value(rounding=ROUND_FLOOR)
                wanted = (origin + number * width, origin + (number + 1) * width)
                check(bounds(name) == wanted, f"bin(x,{w},{o}) of {value} is {name}, wanted {wanted}")


def prices(folder):
    """Each bin of the prices 0.00 to 9.99 has ten prices, or one, and the shortest name."""
    texts = [f"{i // 100}.{i % 100:02}" for i in range(1000)]
    names = converted(folder, "bin(x,0.1)", texts)
    check(names[30] == "[0.3, 0.4)" and names[999] == "[9.9, 10)", f"{names[30]} {names[999]}")
    check(all(names.count(name) == 10 for name in set(names)), "ten prices in each bin")
    check(len(set(converted(folder, "bin(x,0.01)", texts))) == 1000, "a bin for each price")


def large(folder):
    """Neighbouring bins of large numbers, and of small ones, have different names."""
    for item, text, name in (("bin(x,1)", "1616976024321", "[1616976024321, 1616976024322)"),
                             ("bin(x,0.0000001,100000)", "100000", "[100000, 100000.0000001)"),
                             ("bin(x,1e-9)", "-0.0000000005", "[-1e-09, 0)"),
                             ("bin(x,1e21)", "2.5e21", "[2e+21, 3e+21)"),
                             ("bin(x,1e20)", "250000000000000000000", "[200000000000000000000, 300000000000000000000)"),
                             ("bin(x,12.50,-1e3)", "0", "[0, 12.5)")):
        check(converted(folder, item, [text]) == [name], f"{item} of {text}: {converted(folder, item, [text])}")
    for item in ("bin(x,1e30,1)", "bin(x,0.1,1e40)", "bin(x,0.00000000000000000000000001,12345678901234567890)"):
        _, said = sluice("convert", os.path.join(folder, "t.csv"), os.path.join(folder, "n.slc"), "--columns", item, status=2)
        check("22 digits" in said or "WIDTH" in said, said)


def powers(folder):
    """Bounds of log() are powers of the base, rounded to 12 digits unless the base is an integer; a number is in
    the bin of its own power."""
    for base, most in (("1.1", 40), ("10", 100), ("2", 100), ("3", 60), ("16", 50), ("1024", 19), ("1.000001", 40), ("7.3", 40)):
        whole = base.isdigit()
        bound = [Decimal(base) ** k if whole else Decimal(f"{float(base) ** k:.12g}") for k in range(-most, most + 1)]
        near = Decimal("1e-13") if base != "1.000001" else Decimal("1e-12")
        texts = [format(value, "f") for edge in bound for value in (edge, edge * (1 - near), edge * (1 + near))]
        names = converted(folder, f"log(x,{base})", texts)
        for text, name in zip(texts, names):
            low, high = map(float, bounds(name))
            check(low <= float(text) < high, f"log(x,{base}) of {text} is {name}")
        if whole:  # bin i begins at the i-th power of the base
            check(len(set(names)) == 2 * most + 2, f"{base}: {len(set(names))} bins")
            check(all(abs(bounds(name)[0] / edge - 1) < Decimal("1e-15") for name, edge in zip(names[::3], bound)), base)
    check(converted(folder, "log(x,1.1)", ["1.21"]) == ["[1.21, 1.331)"], "1.1 squared")
    _, said = sluice("convert", os.path.join(folder, "t.csv"), os.path.join(folder, "n.slc"), "--columns", "log(x,1.0000001)", status=2)
    check("from 1.000001 to 1000000" in said, said)


run([
    ("random numbers, as in decimal arithmetic", bins),
    ("prices", prices),
    ("names of large and small bounds", large),
    ("logarithms", powers),
])
