/* What convert and generate share; see build_options.h. */
#include "tools/build/build_options.h"

#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "convert/build/sort/fibers.h"
#include "tools/progress/cleanup.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const build_codec_choices[] = {"packed", "lz4", "blco", NULL};

const char *const build_relabel_choices[] = {"none", "frequency", NULL};

/* Decimal digits up to `end`, 1 to `most`; 0 where it is anything else. */
static unsigned parse_small(const char *text, const char *end, unsigned most)
{
    unsigned number = 0;

    for (; text < end && *text >= '0' && *text <= '9' && number <= most; text++) {
        number = number * 10 + (unsigned)(*text - '0');
    }
    return text == end && number <= most ? number : 0;
}

enum slc_status build_fibers(const struct build_options *options,
                             enum slc_fibers *fibers,
                             struct slc_fiber_run *run,
                             struct slc_error *err)
{
    const char *text = options->fibers;
    const char *end = text + strlen(text);
    const char *colon = strchr(text, ':');
    unsigned mode = parse_small(text, colon != NULL ? colon : end, SLC_MAX_ORDER);
    unsigned bits =
        colon != NULL ? parse_small(colon + 1, end, SLC_FIBER_BITS_MAX) : SLC_FIBER_BITS;

    if (strcmp(text, "auto") == 0) {
        *fibers = SLC_FIBERS_AUTO;
    } else if (strcmp(text, "none") == 0) {
        *fibers = SLC_FIBERS_NONE;
    } else if (mode > 0 && bits > 0) {
        *fibers = SLC_FIBERS_GIVEN;
        *run = (struct slc_fiber_run){mode - 1, bits};
    } else {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--fibers '%s': auto, none, or MODE[:BITS] with a mode from 1 and 1 to %d "
                        "bits",
                        text, SLC_FIBER_BITS_MAX);
    }
    return SLC_OK;
}

enum slc_relabel build_relabel(const struct build_options *options)
{
    return options->relabel == build_relabel_choices[0] ? SLC_RELABEL_NONE : SLC_RELABEL_FREQUENCY;
}

enum slc_status build_labels(const struct option_strings *labels,
                             struct slc_name_maps *names,
                             struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned i = 0; i < labels->count && status == SLC_OK; i++) {
        status = slc_name_maps_add(names, NULL, labels->text[i], err);
    }
    return status;
}

unsigned build_threads(const struct build_options *options)
{
    return options->threads != 0 ? (unsigned)options->threads : slc_team_default_workers();
}

enum slc_status
build_start(const struct build_options *options, const char *output, struct slc_error *err)
{
    console_start(options->quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
    progress_start(options->progress, options->quiet);
    return cleanup_watch(output, err);
}

/* The modes with a verdict, and what it means; nothing where there are none. */
static void report_verdict(const struct slc_relabel_report *report,
                           unsigned order,
                           enum slc_relabel_verdict verdict,
                           const char *what)
{
    unsigned found = 0;

    for (unsigned n = 0; n < order; n++) {
        found += report->verdict[n] == verdict;
    }
    if (found == 0) {
        return;
    }
    printf("  %-12s mode%s", "relabel", found == 1 ? "" : "s");
    for (unsigned n = 0; n < order; n++) {
        if (report->verdict[n] == verdict) {
            printf(" %u", n + 1);
        }
    }
    printf(" %s\n", what);
}

/* Which fibers are kept together, and why. */
static void report_fibers(const struct slc_fiber_report *report)
{
    const struct slc_fiber_run *run = &report->run;

    if (run->bits > 0) {
        printf("  %-12s of mode %u, %u bits", "fibers", run->mode + 1, run->bits);
        if (report->chosen) {
            printf(": %.3g nonzeros in a piece on average (chosen)", report->piece_nnz);
        }
    } else {
        printf("  %-12s of no mode", "fibers");
        if (report->chosen) {
            printf(": %.3g nonzeros in a piece of mode %u on average", report->piece_nnz,
                   report->mode + 1);
        }
    }
    printf("\n");
}

/* Which modes are numbered by frequency, and what that changed or would have changed. */
static void report_relabel(const struct slc_relabel_report *report, unsigned order, double nnz)
{
    struct format_text a;
    struct format_text b;

    report_verdict(report, order, SLC_RELABELLED, "numbered by falling frequency");
    report_verdict(report, order, SLC_RELABEL_IN_ORDER, "by falling frequency in the input");
    report_verdict(report, order, SLC_RELABEL_TOO_LONG,
                   "as in the input: a permutation would take more than all coordinates");
    report_verdict(report, order, SLC_RELABEL_TOO_LARGE,
                   "as in the input: the store would be larger");
    if (report->tried_bytes > 0) {
        printf("  %-12s coordinates %.2f bits as in the input, %.2f by frequency; %s, or %s with "
               "permutations (%.2fs)\n",
               "", 8.0 * (double)report->plain_index_bytes / nnz,
               8.0 * (double)report->tried_index_bytes / nnz,
               format_data(&a, (double)report->plain_bytes),
               format_data(&b, (double)(report->tried_bytes + report->permutation_bytes)),
               report->seconds);
    }
}

void build_report(const struct slc_builder_report *report, unsigned order, const uint64_t *dims)
{
    const struct slc_writer_summary *summary = &report->summary;
    struct format_text a;
    struct format_text b;
    double nnz = summary->nnz > 0 ? (double)summary->nnz : 1;
    double log2_cells = 0;

    for (unsigned n = 0; n < order; n++) {
        log2_cells += log2((double)dims[n]);
    }
    printf("  %-12s %s (%s entries read)\n", "nonzeros", format_count(&a, summary->nnz),
           format_count(&b, report->entries));
    printf("  %-12s %s in %" PRIu64 " block%s, values %s\n", "store",
           format_data(&a, (double)summary->file_bytes), summary->block_count,
           summary->block_count == 1 ? "" : "s", summary->value_type == SLC_F32 ? "f32" : "f64");
    printf("  %-12s %.2f bytes per nonzero; coordinates %.2f bits (log2(e * cells / nonzeros): "
           "%.2f)\n",
           "size", (double)summary->file_bytes / nnz, 8.0 * (double)summary->index_bytes / nnz,
           summary->nnz > 0 ? log2(exp(1.0)) + log2_cells - log2(nnz) : 0.0);
    report_fibers(&report->fibers);
    report_relabel(&report->relabel, order, nnz);
    if (report->spill_bytes > 0) {
        printf("  %-12s %s through the temporary file, %" PRIu64 " buckets, %" PRIu64
               " split again\n",
               "spill", format_data(&a, (double)report->spill_bytes), report->buckets,
               report->recursions);
    }
    printf("  %-12s spill %.2fs, sort %.2fs, encode %.2fs, write %.2fs\n", "build",
           report->spill_seconds, report->sort_seconds, report->encode_seconds,
           report->write_seconds);
}

void build_report_memory(uint64_t budget_bytes)
{
    struct format_text a;
    struct format_text b;

    printf("  %-12s %s at most, budget %s\n", "memory", format_memory(&a, slc_memory_peak()),
           format_memory(&b, budget_bytes));
}
