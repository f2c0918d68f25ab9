#include "tools/session/layout_report.h"

#include "base/memory/checked.h"
#include "tools/progress/format.h"

#include <inttypes.h>
#include <stdio.h>

/* Prints which fibers a layout keeps together. */
static void print_run(const struct slc_fiber_run *run)
{
    if (run->bits > 0) {
        printf("  %-12s of mode %u kept together, in runs of up to 2^%u indices\n", "fibers",
               run->mode + 1, run->bits);
    }
}

/* Prints "sorted-1: 64 partitions, 0 rows split" or "fiber-2: whole fibers of mode 2". */
static void print_head(enum slc_layout_kind kind, unsigned mode, const struct slc_sorted_cuts *cuts)
{
    struct format_text a;

    printf("%s-%u: ", slc_layout_name(kind), mode + 1);
    if (kind == SLC_LAYOUT_SORTED) {
        printf("%s partition%s, %" PRIu64 " row%s split", format_count(&a, cuts->count),
               plural(cuts->count), cuts->split_rows, plural(cuts->split_rows));
    } else {
        printf("whole fibers of mode %u", mode + 1);
    }
}

double layout_disk_bytes(const struct slc_layout_info *info, const struct slc_sorted_plan *plan)
{
    return (double)info->file_bytes +
           (double)plan->cuts.count * (2048.0 + 88.0 + 16.0 * info->order);
}

void layout_print_plan(const struct slc_relayout *layouts,
                       enum slc_layout_kind kind,
                       unsigned mode,
                       const struct slc_sorted_plan *plan)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->store.reader);
    struct format_text a, b;

    print_head(kind, mode, &plan->cuts);
    printf("\n  %-12s %u to %s, %" PRIu64 " to gather nonzeros\n", "scans", plan->count_scans,
           kind == SLC_LAYOUT_SORTED ? "count rows and fibers" : "divide by keys", plan->batches);
    print_run(&plan->keys.run);
    printf("  %-12s %s with %u thread%s, %s of it for nonzeros\n", "memory",
           format_memory(&a, plan->need_bytes), plan->workers, plural(plan->workers),
           format_memory(&b, plan->area_bytes));
    printf("  %-12s about %s\n", "disk", format_data(&a, layout_disk_bytes(info, plan)));
}

void layout_print_built(const struct slc_relayout *layouts,
                        enum slc_layout_kind kind,
                        unsigned mode,
                        const struct slc_sorted_report *report,
                        bool verbose)
{
    const struct slc_sorted_cuts cuts = {.count = report->partitions,
                                         .split_rows = report->split_rows};
    double nnz = layouts->store.manifest.nnz > 0 ? (double)layouts->store.manifest.nnz : 1;
    double seconds = report->count_seconds + report->gather_seconds + report->sort_seconds +
                     report->emit_seconds;
    struct format_text a, b;

    print_head(kind, mode, &cuts);
    if (kind == SLC_LAYOUT_FIBER) {
        printf(", %s of them", format_count(&a, report->summary.fiber_count));
    }
    printf("; %s, %.2f bytes per nonzero; %.2fs, %snnz/s\n",
           format_data(&a, (double)report->summary.file_bytes),
           (double)report->summary.file_bytes / nnz, seconds,
           format_scaled(&b, slc_ratio(nnz, seconds)));
    if (report->kept_nnz > 0) {
        printf("  %-12s %s nonzeros from an interrupted build\n", "resumed",
               format_count(&a, report->kept_nnz));
    }
    if (verbose) {
        printf("  %-12s %u to %s (%.2fs), %" PRIu64 " to gather nonzeros (%.2fs, and %.2fs "
               "to sort them)\n",
               "scans", report->count_scans,
               kind == SLC_LAYOUT_SORTED ? "count rows and fibers" : "divide by keys",
               report->count_seconds, report->gather_scans, report->gather_seconds,
               report->sort_seconds);
        print_run(&report->run);
        printf("  %-12s %.2fs; all threads: encode %.2fs, write %.2fs\n", "output",
               report->emit_seconds, report->encode_seconds, report->write_seconds);
    }
}
