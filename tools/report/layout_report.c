/* What is told of layouts; see layout_report.h. */
#include "tools/report/layout_report.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/forecast/store_trial.h"
#include "tools/forecast/forecast.h"
#include "tools/progress/format.h"

#include <inttypes.h>
#include <stdio.h>

enum slc_status layout_print_list(const char *store, struct slc_error *err)
{
    struct slc_manifest *manifest = slc_malloc(sizeof *manifest);
    enum slc_status status;
    double nnz;

    if (manifest == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the manifest");
    }
    status = slc_manifest_read(slc_files_or_system(NULL), store, manifest, err);
    nnz = status == SLC_OK && manifest->nnz > 0 ? (double)manifest->nnz : 1;
    for (unsigned i = 0; status == SLC_OK && i < manifest->layout_count; i++) {
        const struct slc_store_layout *layout = &manifest->layouts[i];
        struct format_text size;

        printf("%-14s %s in %" PRIu64 " block%s, %.2f bytes per nonzero, codec %s\n", layout->file,
               format_data(&size, (double)layout->file_bytes), layout->block_count,
               layout->block_count == 1 ? "" : "s", (double)layout->file_bytes / nnz,
               slc_codec_name(layout->codec));
    }
    slc_free(manifest);
    return status;
}

/* Which fibers the keys of a layout keep together. */
static void print_run(const struct slc_fiber_run *run)
{
    if (run->bits > 0) {
        printf("  %-12s of mode %u kept together, in runs of up to 2^%u indices\n", "fibers",
               run->mode + 1, run->bits);
    }
}

/* "sorted-1: 64 partitions, 0 rows in pieces" or "fiber-2: whole fibers of mode 2". */
static void print_head(enum slc_layout_kind kind, unsigned mode, const struct slc_sorted_cuts *cuts)
{
    struct format_text a;

    printf("%s-%u: ", slc_layout_name(kind), mode + 1);
    if (kind == SLC_LAYOUT_SORTED) {
        printf("%s partition%s, %" PRIu64 " row%s in pieces", format_count(&a, cuts->count),
               cuts->count == 1 ? "" : "s", cuts->split_rows, cuts->split_rows == 1 ? "" : "s");
    } else {
        printf("whole fibers of mode %u", mode + 1);
    }
}

/* As the nonzeros take now, half a page of padding for each partition and its entry. */
static double disk_bytes(const struct slc_layout_info *info, const struct slc_sorted_plan *plan)
{
    return (double)info->file_bytes +
           (double)plan->cuts.count * (2048.0 + 88.0 + 16.0 * info->order);
}

/* Of a trial of decoding. */
#define TRIAL_SECONDS 0.3
/* In times of decoding a nonzero: counting or gathering it in a scan; sorting and encoding it. */
#define SCAN_OF_DECODE 4.0
#define SORT_OF_DECODE 80.0
/* What begin, syncs and end take. */
#define ALWAYS_SECONDS 0.05

enum slc_status layout_judge(const struct slc_relayout *layouts,
                             const struct slc_sorted_plan *plan,
                             bool quiet,
                             struct slc_error *err)
{
    const struct slc_reader *reader = layouts->store.reader;
    const struct slc_layout_info *info = slc_reader_info(reader);
    const double scans = (double)plan->count_scans + (double)plan->batches;
    const double work = (double)info->nnz / plan->workers;
    struct forecast forecast = {.command = "layout", .output = slc_reader_path(reader)};
    struct slc_store_trial trial;
    struct format_text a;

    SLC_TRY(slc_store_trial(NULL, reader, TRIAL_SECONDS, NULL, &trial, err));
    forecast.final_bytes = (uint64_t)disk_bytes(info, plan);
    if (trial.nnz > 0) {
        forecast_try_drives(&forecast, slc_reader_path(reader));
        forecast_phase(&forecast, "begin and end");
        forecast_part(&forecast, "syncing", ALWAYS_SECONDS);
        forecast_phase(&forecast, "scan");
        forecast_part(&forecast, "reading",
                      forecast.read_rate > 0 ? scans * (double)info->file_bytes / forecast.read_rate
                                             : 0);
        forecast_part(&forecast, "decoding", SCAN_OF_DECODE * scans * work * trial.decode_seconds);
        forecast_phase(&forecast, "write");
        forecast_part(&forecast, "sorting", SORT_OF_DECODE * work * trial.decode_seconds);
        forecast_part(&forecast, "writing",
                      forecast.write_rate > 0 ? (double)forecast.final_bytes / forecast.write_rate
                                              : 0);
    }
    SLC_TRY(forecast_check_room(&forecast, err));
    if (!quiet) {
        printf("  %-12s %s read\n", "bytes", format_data(&a, scans * (double)info->file_bytes));
        forecast_print_time(&forecast);
    }
    return SLC_OK;
}

/* Of memory for encoders and the writer, that is touched (measured: 0.21 to 0.45). */
#define ENCODERS_FILLED 0.35
/* In times of a scan that counts: sorting, encoding and writing (measured: 1.2 to 3.6). */
#define WRITE_OF_SCAN 2.5

void layout_expect(void *expected, const struct slc_sorted_plan *plan)
{
    struct layout_expected *layout = expected;
    struct forecast_told *told = &layout->ahead.told;
    const struct slc_layout_info *info = slc_reader_info(layout->layouts->store.reader);
    const double scan = plan->count_scans > 0 ? plan->count_seconds / plan->count_scans : 0;
    const uint64_t memory =
        slc_memory_resident() + plan->area_bytes +
        (uint64_t)(ENCODERS_FILLED * (double)(plan->need_bytes - plan->area_bytes));

    told->memory_bytes = slc_max_u64(told->memory_bytes, memory);
    told->read_bytes += (plan->count_scans + plan->batches) * info->file_bytes;
    told->final_bytes += (uint64_t)disk_bytes(info, plan);
    told->seconds +=
        ALWAYS_SECONDS + plan->count_seconds + scan * ((double)plan->batches + WRITE_OF_SCAN);
    layout->ahead.known = true;
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
           kind == SLC_LAYOUT_SORTED ? "count rows and fibers" : "cut by keys", plan->batches);
    print_run(&plan->keys.run);
    printf("  %-12s %s with %u thread%s, %s of it for nonzeros\n", "memory",
           format_memory(&a, plan->need_bytes), plan->workers, plan->workers == 1 ? "" : "s",
           format_memory(&b, plan->area_bytes));
    printf("  %-12s about %s\n", "disk", format_data(&a, disk_bytes(info, plan)));
}

void layout_print_report(const struct slc_relayout *layouts,
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
           format_scaled(&b, seconds > 0 ? nnz / seconds : 0));
    if (report->kept_nnz > 0) {
        printf("  %-12s %s nonzeros were there from an interrupted build\n", "resumed",
               format_count(&a, report->kept_nnz));
    }
    if (verbose) {
        printf("  %-12s %u to %s (%.2fs), %" PRIu64 " to gather nonzeros (%.2fs, and %.2fs "
               "to sort them)\n",
               "scans", report->count_scans,
               kind == SLC_LAYOUT_SORTED ? "count rows and fibers" : "cut by keys",
               report->count_seconds, report->gather_scans, report->gather_seconds,
               report->sort_seconds);
        print_run(&report->run);
        printf("  %-12s %.2fs; all threads: encode %.2fs, write %.2fs\n", "output",
               report->emit_seconds, report->encode_seconds, report->write_seconds);
    }
}
