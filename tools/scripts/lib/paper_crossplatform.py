"""Tables 2 to 4 and Figures 2 to 8 of [XPLAT], "Exploring the Limits of Cross-Platform Sparse Tensor
Processing"."""

import os
import statistics

from bench_tables import Failed, bench
from paper_runner import NONE, fastest_ms, info, rows_of, section
from peers import PEERS

TITLE = "Exploring the limits of cross-platform sparse tensor processing"

# Counts of Table 4: slices of mode 1, fibers of mode 3, nonzeros (vast-3d: one per fiber, section
# 5.4), rows of the matrix (size of mode 3).
COUNTS = {"nell-2": (12092, 337365, 76879419, 28818), "vast-3d": (165427, 26021945, 26021945, 2),
          "nell-1": (2902330, 17372417, 143599552, 25495389)}
# Least and most operations per byte of Tables 2 and 3.
INTENSITIES = {("ttm", "element-centric"): (1 / 12, 1 / 6), ("ttm", "fiber-centric"): (1 / 12, 1 / 2),
               ("mttkrp", "element-centric"): (1 / 10, 1 / 6), ("mttkrp", "row-centric"): (1 / 10, 1 / 2),
               ("ttm", "fpga"): (1 / 12, 1 / 2), ("mttkrp", "fpga"): (1 / 10, 1 / 2)}
# The fibers of the listings are those of mode 3, and the slices those of mode 1.
MODES = {"ttm": 3, "mttkrp": 1}
COLUMNS = 16  # of Figures 2 to 5; the paper prints no number for them
# Options with which `sluice bench device` measures the listings on a GPU.
DEVICE_OPTIONS = {"ttm": "--precision f32 --operation ttm", "mttkrp": "--precision f32 --kernel all"}
# Resources at 16 columns of section 5.3: DSPs and RAM blocks.
RESOURCES = {"ttm": (16, 527), "ttm-on-chip": (16, 1549), "mttkrp": (32, 590)}


class Case:
    """A tensor, and its operations per byte by operation and form."""

    def __init__(self, name, store, roof):
        self.name, self.store, self.intensity = name, store, {}
        for row in roof["intensity"]:
            if row["tensor"] == os.path.basename(store).removesuffix(".slc") and row["mode"] == MODES[row["operation"]]:
                self.intensity[row["operation"], row["form"]] = row

    def measure(self, runner, operation, columns):
        """Returns {kernel: GFLOP/s} with the operations that the paper counts."""
        form = "fiber-centric" if operation == "ttm" else "row-centric"
        operations = self.intensity[operation, form]["operations"] / COLUMNS * columns
        options = ("-r", columns, "--precision", "f32", "--mode", MODES[operation])
        if operation == "ttm":
            records = [runner.bench("ttm", self.store, *options)]
        else:
            records = [runner.bench("mttkrp", self.store, *options, "--memory-set", "1MiB", *kernel)
                       for kernel in (("--kernel", "xplat"), ("--kernel", "sluice", "--conflict", "owned"))]
        return {row["kernel"]: 1e-6 * operations / row["min_ms"] for record in records for row in record["rows"]}


def print_table_4(cases):
    rows = []
    for name in COUNTS:
        fibers = cases[name].intensity["ttm", "fiber-centric"]["fibers"]
        slices = cases[name].intensity["mttkrp", "row-centric"]["slices"]
        found = info(cases[name].store)
        rows.append([name, *COUNTS[name][:3], COUNTS[name][2] / COUNTS[name][1], slices, fibers, found["nnz"],
                     found["nnz"] / fibers, " x ".join(map(str, found["dims"]))])
    section("Table 4: tensors of the paper, and their stand-ins",
            (["tensor", "paper: slices", "fibers", "nonzeros", "nonzeros per fiber",
              "stand-in: slices", "fibers", "nonzeros", "nonzeros per fiber", "mode sizes"], rows))


def print_intensities(cases):
    rows = []
    for (operation, form), (least, most) in INTENSITIES.items():
        ours = [cases[name].intensity[operation, form] for name in COUNTS]
        rows.append([operation, form, least, ours[0]["ai_min"], most, ours[0]["ai_max"],
                     *(row["flop_per_byte"] for row in ours)])
    section("Tables 2 and 3: operations per byte, of words of 4 bytes",
            (["operation", "form", "paper: least", "sluice", "paper: most", "sluice",
              *(f"{name}, {COLUMNS} columns" for name in COUNTS)], rows),
            "Element-centric forms have one column per unit of work.")


def print_rooflines(runner, cases, roof):
    """Figures 2 and 3, and the places of Figures 4 and 5."""
    level = {row["level"]: row["gb_per_s"] for row in roof["levels"]}
    peak = max(row["gflop_per_s"] for row in roof["peaks"] if row["precision"] == "f32")
    names = {"ttm": ("xplat-element", "xplat-fiber", "fiber"), "mttkrp": ("xplat-element", "xplat-row", "sluice")}
    figures = {"ttm": (2, 4, "fiber-centric"), "mttkrp": (3, 5, "row-centric")}
    for operation, (figure, device_figure, form) in figures.items():
        rows = []
        for name in ("nell-2", "vast-3d", f"best {operation}", "worst"):
            rate = cases[name].measure(runner, operation, COLUMNS)
            intensity = cases[name].intensity[operation, form]["flop_per_byte"]
            rows.append([name, intensity, *(rate.get(kernel, NONE) for kernel in names[operation]),
                         min(peak, intensity * level["L1"]), min(peak, intensity * level["memory"])])
        between = []
        for place, kernel in ((2, names[operation][0]), (3, names[operation][1])):
            rates = [row[place] for row in rows]
            inside = [row[0] for row in rows[:2] if min(rates[2:]) <= row[place] <= max(rates[2:])]
            between.append(f"{kernel}: {' and '.join(inside) or 'none'}")
        section(f"Figure {figure}: {operation.upper()} on the CPU, {COLUMNS} columns, f32, GFLOP/s",
                (["tensor", "operations per byte", "element-centric", form, f"sluice ({names[operation][2]})",
                  "roof of L1", "roof of memory"], rows),
                f"Paper: nell-2 and vast-3d lie between the best and the worst case, and the element-centric form is the "
                f"fastest. Between them here: {'; '.join(between)}. Highest rate of the processors: {peak:.3g} GFLOP/s.")
        section(f"Figure {device_figure}: {operation.upper()} on a GPU",
                "Empty: this command uses no GPU. On a machine with one: sluice bench device X.slc "
                f"--rank {COLUMNS} {DEVICE_OPTIONS[operation]}.")


def print_fpga():
    """Figures 6 and 7, from the model of the FPGA designs; no tensor is needed."""
    columns = (1, 2, 4, 8, 16, 32, 64)
    curves, resources = {}, {}
    for name in ("nell-2", "vast-3d"):
        record = bench("fpga", "-r", ",".join(map(str, columns)), "--counts", ",".join(map(str, COUNTS[name])))
        for row in record["rows"]:
            curves.setdefault((row["design"], name), {})[row["rank"]] = row
            if (row["rank"], name) == (16, "nell-2"):
                resources[row["design"]] = row
    for figure, designs in ((6, ("ttm", "ttm-on-chip")), (7, ("mttkrp",))):
        rows = [[design, name, *(row[n]["gflop_per_s"] if row[n]["fit"] == "fits" else row[n]["fit"] for n in columns)]
                for (design, name), row in curves.items() if design in designs]
        section(f"Figure {figure}: {designs[0].upper()} on the FPGA of the paper, GFLOP/s by number of columns",
                (["design", "tensor", *columns], rows))
    section("Section 5.3: resources at 16 columns",
            (["design", "paper: DSPs", "model", "paper: RAM blocks", "model"],
             [[design, dsps, resources[design]["dsps"], blocks, resources[design]["ram_blocks"]]
              for design, (dsps, blocks) in RESOURCES.items()]),
            "Figures 6 and 7 are a model: nothing was placed, routed or run on a device. The paper prints no numbers for "
            "its curves; fpga/README.md compares its statements.")


def peer_rates(runner, case):
    """Returns the ms of one MTTKRP of all modes, by peer and number of columns."""
    tensor, times = runner.peer_tensor(case.store), {}
    for name, path in runner.peers.items():
        for columns in (8, 16, 32):
            try:
                times[name, columns] = PEERS[name](path, tensor, columns, runner.threads, runner.repeat)
            except Failed as reason:
                print(f"{case.name}: {name} failed: {reason}")
    return times


def print_speedups(runner, cases):
    """Figure 8. The element-centric MTTKRP of all modes is compared with peers."""
    rows = []
    for name in COUNTS:
        case, ttm, mttkrp, peers = cases[name], [], [], {peer: [] for peer in ("SPLATT", "PARTI")}
        theirs = peer_rates(runner, case)
        runner.layout(case.store, "--sorted", "all")
        for columns in (8, 16, 32):
            rate = case.measure(runner, "ttm", columns)
            ttm.append(rate["fiber"] / rate["xplat-element"])
            options = ("-r", columns, "--memory-set", "1MiB")
            element = fastest_ms(runner.bench("mttkrp", case.store, *options, "--precision", "f32", "--kernel", "xplat-element"))
            ours = fastest_ms(runner.bench("mttkrp", case.store, *options, "--precision", "f32", "--conflict", "owned"))
            mttkrp.append(element / ours)
            for peer in peers:
                if (peer, columns) in theirs:
                    peers[peer].append(theirs[peer, columns] / element)
        rows.append([name, *(statistics.mean(peers[peer]) if peers[peer] else NONE for peer in peers), NONE,
                     statistics.mean(mttkrp), statistics.mean(ttm)])
    section("Figure 8: speedups over the state of the art on the CPU, means of 8, 16 and 32 columns",
            (["tensor", "element-centric MTTKRP over SPLATT", "over ParTI", "element-centric TTM over ParTI",
              "sluice's MTTKRP over element-centric", "sluice's TTM over element-centric"], rows),
            "Paper: up to 7 for MTTKRP and 6 for TTM over all devices (abstract), and less than 1 for TTM of vast-3d. It "
            "prints no other numbers. A cell without a number needs SPLATT=PATH or PARTI=PATH; TTM of ParTI is not run, "
            "because tools/bench-peers knows only its MTTKRP. SPLATT computes in f64, the others in f32. The bars of the "
            "A100 need a GPU.")


def report(runner):
    stores = {name: runner.stand_in(name) for name in COUNTS}
    found = info(stores["nell-2"])
    sizes = ("--dims", "x".join(map(str, found["dims"])), "--nnz", found["nnz"])
    cube = ("--dims", "x".join([str(found["nnz"])] * 3), "--nnz", found["nnz"])
    stores["best ttm"] = runner.generate("best-ttm", *sizes, "--dist", "dense-fibers:3")
    stores["best mttkrp"] = runner.generate("best-mttkrp", *sizes, "--dist", "dense-slices:1")
    stores["worst"] = runner.generate("worst", *cube, "--dist", "worst")
    roof = bench("roofline", *stores.values(), "-r", COLUMNS, "-t", runner.threads, "-n", 1, "--precision", "f32",
                 "--kernel", "mttkrp-stream", "--memory-set", runner.memory_set)
    cases = {name: Case(name, store, roof) for name, store in stores.items()}
    for store in stores.values():
        runner.layout(store, "--sorted", 1)
    print_intensities(cases)
    print_table_4(cases)
    print_rooflines(runner, cases, roof)
    print_fpga()
    print_speedups(runner, cases)
