"""How results appear in notebooks: HTML tables and plots."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Iterable, List, Optional, Sequence

from ._errors import UsageError
from ._interop import package, titles_and_names
from ._numpy import np

if TYPE_CHECKING:
    from ._result import Result
    from ._sweep import Sweep

COMPONENTS, ROWS = 8, 5  # components, and rows of each mode, in an HTML table
FACTOR_BYTES = 1 << 28   # larger factors are not read for an HTML table
BARS = 60                # modes up to this size are plotted in the order of their indices


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Returns an HTML table; cells are HTML."""
    lines = ["<tr>" + "".join(f"<th>{escape(head)}</th>" for head in heads) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td style='text-align: left; vertical-align: top'>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    return "<table>" + "".join(lines) + "</table>"


def heaviest(result: "Result", count: int) -> List[int]:
    """Returns the numbers of the components with the largest weights, largest first."""
    return [int(component) for component in np.argsort(-np.abs(result.weights), kind="stable")[:count]]


def _mode_titles(result: "Result", titles: Sequence[str]) -> List[str]:
    return [f"mode {mode}" + (f" ({title})" if title else "") for mode, title in enumerate(titles)]


def result_html(result: "Result") -> str:
    """Returns the summary of a result and the top rows of its heaviest components as HTML."""
    text = f"<p>{escape(result._summary())}</p>"
    if sum(factor.nbytes for factor in result.factors) > FACTOR_BYTES:
        return text
    rows, titles = [], [""] * len(result.factors)
    for component in heaviest(result, COMPONENTS):
        cells: List[List[str]] = [[] for _ in result.factors]
        for row in result._top_rows(component, ROWS, result._selected_modes(None), "absolute", None):
            titles[row.mode] = row.title or ""
            cells[row.mode].append(f"{escape(row.name if row.name is not None else str(row.index))} ({row.value:.3g})")
        rows.append([str(component), f"{result.weights[component]:.6g}", *("<br>".join(cell) for cell in cells)])
    more = f"<p>The {COMPONENTS} heaviest of {result.rank} components.</p>" if result.rank > COMPONENTS else ""
    return text + _table(["component", "weight", *_mode_titles(result, titles)], rows) + more


def sweep_html(sweep: "Sweep") -> str:
    """Returns the ranks of a sweep and the suggested rank as HTML."""
    def number(given: Optional[float], form: str) -> str:
        return "" if given is None else format(given, form)

    rows = [[f"<b>{rank.rank}</b>" if rank.rank == sweep.rank else str(rank.rank), str(rank.runs), f"{rank.fit:.6f}",
             number(rank.agreement, ".3f"), number(rank.consistency, ".1f"), escape(rank.note)] for rank in sweep.ranks]
    return (f"<p>{escape(sweep._summary())} ({escape(sweep.why)}).</p>" +
            _table(["rank", "runs", "best fit", "agreement", "core consistency (%)", "note"], rows))


def plot_result(result: "Result", components: Optional[Sequence[int]], rows: int) -> Any:
    """Plots columns of the factors; returns an array of axes, components x modes."""
    pyplot = package("matplotlib.pyplot")
    chosen = heaviest(result, 4) if components is None else list(components)
    if not chosen or any(not 0 <= component < result.rank for component in chosen):
        raise UsageError(f"components {chosen}: expected numbers from 0 to {result.rank - 1}")
    modes = range(len(result.factors))
    titles, names = titles_and_names(result, [mode for mode in modes if len(result.factors[mode]) <= BARS], None)
    _, axes = pyplot.subplots(len(chosen), len(modes), squeeze=False, figsize=(3.6 * len(modes), 2.2 * len(chosen)), layout="constrained")
    for line, component in enumerate(chosen):
        for mode in modes:
            axis, factor = axes[line][mode], result.factors[mode]
            if len(factor) <= BARS:
                axis.bar(range(len(factor)), factor[:, component])
                if mode in names and len(factor) <= 24:
                    axis.set_xticks(range(len(factor)), [name or str(index) for index, name in enumerate(names[mode])], rotation=90, fontsize=6)
            else:
                found = result._top_rows(component, rows, [mode], "absolute", None)[::-1]
                axis.barh(range(len(found)), [row.value for row in found])
                axis.set_yticks(range(len(found)), [row.name or str(row.index) for row in found], fontsize=6)
            if line == 0:
                axis.set_title(_mode_titles(result, titles)[mode], fontsize=9)
        axes[line][0].set_ylabel(f"component {component}\nweight {result.weights[component]:.4g}", fontsize=8)
    return axes


def plot_sweep(sweep: "Sweep") -> Any:
    """Plots fits, agreement and core consistency by rank; returns an array of axes."""
    pyplot = package("matplotlib.pyplot")
    _, axes = pyplot.subplots(1, 3, figsize=(10, 2.8), layout="constrained")
    numbers = [rank.rank for rank in sweep.ranks]
    axes[0].plot(numbers, [rank.fit for rank in sweep.ranks])
    axes[0].scatter([run.rank for run in sweep.runs], [run.fit for run in sweep.runs], s=12)
    axes[1].plot(numbers, [np.nan if rank.agreement is None else rank.agreement for rank in sweep.ranks], marker="o")
    axes[2].plot(numbers, [np.nan if rank.consistency is None else rank.consistency for rank in sweep.ranks], marker="o")
    for axis, title in zip(axes, ("fit", "agreement of the runs", "core consistency (%)")):
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("rank")
        axis.set_xticks(numbers)
        if sweep.rank is not None:
            axis.axvline(sweep.rank, color="gray", linestyle=":")
    return axes
