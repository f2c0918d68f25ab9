"""Makes tables of the figures of tools/gpu-acceptance, in the terms of the papers, from the record
so far."""

from gpu_tensors import SIX, geometric_mean, name_of


def table(title, columns, rows):
    """Returns a table as lines. Columns are as wide as necessary, and the first column is aligned
    left."""
    if not rows:
        return []
    cells = [columns, *rows]
    widths = [max(len(row[c]) for row in cells) for c in range(len(columns))]
    return ["", title] + ["  " + "  ".join(text.ljust(w) if c == 0 else text.rjust(w)
                                         for c, (text, w) in enumerate(zip(row, widths))) for row in cells]


def printed_summaries(record):
    """Returns the entries of the summaries of `sluice bench device`, by call, tensor, precision,
    rank and kernel."""
    return {(of["call"], name_of(entry["tensor"]), entry["precision"], entry["rank"], entry["kernel"]): entry
            for of in record.get("in_memory_summaries", []) for entry in of["summary"] if not entry.get("devices")}


def by_tensor(record, precision, rank):
    """Returns by tensor: the first entry of sluice, and the ratio of each other kernel within the
    same call."""
    own, ratios = {}, {}
    for (_, name, *of, kernel), entry in printed_summaries(record).items():
        if of != [precision, rank]:
            continue
        if kernel == "sluice":
            own.setdefault(name, entry)
        elif entry["ratio"]:
            ratios.setdefault(name, {}).setdefault(kernel, entry["ratio"])
    return own, ratios


def mean_of_six(numbers):
    """Returns the geometric mean of the numbers of the six tensors that the targets use, as
    text."""
    six = [number for name, number in numbers.items() if name in SIX]
    return f"{geometric_mean(six):.2f}" if six else "-"


def text_of(number, form):
    return format(number, form) if number else "-"


def in_memory(record):
    own, ratios = by_tensor(record, "f64", 32)
    others = sorted({kernel for of in ratios.values() for kernel in of})
    rows = []
    for name, entry in own.items():
        rows.append([name, *(text_of(entry[field], form) for field, form in (
            ("all_modes_ms", ".3f"), ("slowest_over_fastest", ".2f"), ("gflop_per_s", ".3g"), ("model_gb_per_s", ".3g"),
            ("ceiling_share", ".2f"))), *(text_of(ratios.get(name, {}).get(kernel), ".2f") for kernel in others)])
    if rows:
        shares = {name: entry["ceiling_share"] for name, entry in own.items() if entry["ceiling_share"]}
        rows.append(["mean of six", "", "", "", "", mean_of_six(shares),
                     *(mean_of_six({name: of[kernel] for name, of in ratios.items() if kernel in of}) for kernel in others)])
    return table("MTTKRP in memory, f64, rank 32: ms of all modes, slowest over fastest mode, GB/s by the byte model, share of "
                 "the ceiling of random rows; time of other kernels divided by time of sluice",
                 ["tensor", "ms", "slowest/fastest", "GFLOP/s", "GB/s", "ceiling", *others], rows)


def other_ranks(record):
    """Makes a table of the time of BLCO divided by the time of sluice, by tensor."""
    cases = sorted({(row["precision"], row["rank"]) for row in record.get("in_memory", [])} - {("f64", 32)})
    names = list(dict.fromkeys(name_of(row["tensor"]) for row in record.get("in_memory", [])))
    rows = []
    for precision, rank in cases:
        ratios = {name: of["blco"] for name, of in by_tensor(record, precision, rank)[1].items() if "blco" in of}
        rows.append([f"{precision} {rank}", mean_of_six(ratios), *(f"{ratios[name]:.2f}" if name in ratios else "-" for name in names)])
    return table("MTTKRP in memory at other ranks: time of BLCO's kernel divided by time of sluice", ["rank", "mean of six", *names], rows)


def forms(record):
    """Makes a table of the time to build the form of each kernel, and of the size of the form, as
    means over tensors."""
    found = {}
    for case, entry in printed_summaries(record).items():
        if case[2:4] == ("f64", 32) and entry.get("build_ms") and case[1] in SIX:
            found.setdefault(case[4], {})[case[1]] = entry
    rows = [[kernel, *(mean_of_six({name: entry[field] for name, entry in of.items() if entry.get(field)})
                       for field in ("build_ms", "build_iterations", "form_bytes_per_nnz"))] for kernel, of in found.items()]
    return table("Forms of the tensors, means of six: ms to build, time to build in MTTKRPs of all modes, bytes per nonzero",
                 ["kernel", "ms", "all modes", "B/nnz"], rows)


def streaming(record):
    """Makes a table of streamed MTTKRPs. The overlap is the time in which copies and kernels
    overlap, relative to the shorter of their times."""
    rows = []
    for codec, measured in record.get("streaming", {}).items():
        for row in measured["through"]:
            copies, kernels, both = row["copies_alone_ms"], row["kernels_alone_ms"], row["whole_ms"]
            hidden = (copies + kernels - both) / min(copies, kernels) if min(copies, kernels) > 0 else 1
            rows.append([codec, f"{row['copied_bytes'] / 1e9:.2f}", f"{copies:.1f}", f"{kernels:.1f}", f"{both:.1f}",
                         f"{max(0.0, min(1.0, hidden)):.2f}", f"{kernels / both:.2f}"])
    return table("MTTKRP streamed from the host's memory: ms of copies and kernels alone and of both, overlap, overall over "
                 "in-memory throughput",
                 ["codec", "GB copied", "copies", "kernels", "both", "overlap", "overall"], rows)


def lines(record):
    return in_memory(record) + other_ranks(record) + forms(record) + streaming(record)
