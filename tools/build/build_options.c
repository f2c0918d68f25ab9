/* Parses the options and prints the reports of commands that build a store; runs slice and
 * permute. */
#include "tools/build/build_options.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "convert/build/resume/build_folder.h"
#include "convert/build/sort/fibers.h"
#include "tools/forecast/forecast_ahead.h"
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

/* Parses decimal digits up to `end` as a number from 1 to `most`; returns 0 for anything else. */
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
        return slc_fail(
            err, SLC_ERR_USAGE,
            "--fibers '%s': use auto, none, or MODE[:BITS] with a mode of 1 or more and 1 to %d "
            "bits",
            text, SLC_FIBER_BITS_MAX);
    }
    return SLC_OK;
}

enum slc_status
build_codec(const struct build_options *options, enum slc_codec *codec, struct slc_error *err)
{
    return slc_codec_parse(options->codec, codec)
               ? SLC_OK
               : slc_fail(err, SLC_ERR_USAGE, "--codec %s is not supported by this library",
                          options->codec);
}

enum slc_relabel build_relabel(const struct build_options *options)
{
    return options->relabel == build_relabel_choices[0] ? SLC_RELABEL_NONE : SLC_RELABEL_FREQUENCY;
}

enum slc_status build_labels(const struct option_strings *labels,
                             struct slc_name_maps *names,
                             struct slc_error *err)
{
    for (unsigned i = 0; i < labels->count; i++) {
        SLC_TRY(slc_name_maps_add(names, NULL, labels->text[i], err));
    }
    return SLC_OK;
}

unsigned build_threads(const struct build_options *options)
{
    return options->threads != 0 ? (unsigned)options->threads : slc_team_default_workers();
}

enum slc_status build_start_all(const struct build_options *options,
                                const struct cleanup_outputs *outputs,
                                struct slc_error *err)
{
    console_start(options->quiet ? CONSOLE_QUIET : CONSOLE_NORMAL);
    progress_start(options->progress, options->quiet);
    return cleanup_watch_all(outputs, err);
}

enum slc_status
build_start(const struct build_options *options, const char *output, struct slc_error *err)
{
    return build_start_all(options, &(struct cleanup_outputs){.count = 1, .paths = {output}}, err);
}

/* Prints the modes whose renumbering has the verdict `verdict`, and its meaning `what`. Prints
 * nothing if there is no such mode. */
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
    printf("  %-12s mode%s", "relabel", plural(found));
    for (unsigned n = 0; n < order; n++) {
        if (report->verdict[n] == verdict) {
            printf(" %u", n + 1);
        }
    }
    printf(" %s\n", what);
}

/* Prints the mode whose fibers are kept together, and the measurement that chose it. */
static void report_fibers(const struct slc_fiber_report *report)
{
    const struct slc_fiber_run *run = &report->run;

    if (run->bits > 0) {
        printf("  %-12s of mode %u, in pieces of 2^%u indices", "fibers", run->mode + 1, run->bits);
        if (report->chosen) {
            printf(": %.3g nonzeros per piece on average (chosen)", report->piece_nnz);
        }
    } else {
        printf("  %-12s not kept together", "fibers");
        if (report->chosen) {
            printf(": %.3g nonzeros per piece of mode %u on average", report->piece_nnz,
                   report->mode + 1);
        }
    }
    printf("\n");
}

/* Prints which modes have their indices renumbered by frequency, and the effect on the size. */
static void report_relabel(const struct slc_relabel_report *report, unsigned order, double nnz)
{
    struct format_text a;
    struct format_text b;

    report_verdict(report, order, SLC_RELABELLED, "renumbered by decreasing frequency");
    report_verdict(report, order, SLC_RELABEL_IN_ORDER,
                   "already numbered by decreasing frequency in the input");
    report_verdict(report, order, SLC_RELABEL_TOO_LONG,
                   "unchanged: the permutation would be larger than all coordinates");
    report_verdict(report, order, SLC_RELABEL_TOO_LARGE, "unchanged: the store would be larger");
    if (report->tried_bytes > 0) {
        printf("  %-12s coordinates %.2f bits unchanged, %.2f by frequency; %s, or %s with "
               "permutations (%.2fs)\n",
               "", 8.0 * (double)report->plain_index_bytes / nnz,
               8.0 * (double)report->tried_index_bytes / nnz,
               format_data(&a, (double)report->plain_bytes),
               format_data(&b, (double)(report->tried_bytes + report->permutation_bytes)),
               report->seconds);
    }
}

void build_report_zeros(const struct slc_builder_report *report, bool kept)
{
    struct format_text a;

    if (kept) {
        printf("  %-12s %s of the nonzeros below are listed cells with the value 0\n", "zeros",
               format_count(&a, report->summary.values.zeros));
    } else {
        printf("  %-12s %s dropped\n", "zeros", format_count(&a, report->explicit_zeros));
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
           plural(summary->block_count), summary->value_type == SLC_F32 ? "f32" : "f64");
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

    printf("  %-12s peak %s, budget %s\n", "memory", format_memory(&a, slc_memory_peak()),
           format_memory(&b, budget_bytes));
}

const char *const reshape_codec_choices[] = {"keep", "packed", "lz4", "blco", NULL};
const char *const reshape_relabel_choices[] = {"keep", "none", "frequency", NULL};

enum slc_status reshape_transforms(const struct option_strings *given,
                                   struct slc_transforms *transforms,
                                   struct slc_error *err)
{
    for (unsigned i = 0; i < given->count; i++) {
        SLC_TRY(slc_transforms_add(transforms, given->text[i], err));
    }
    return SLC_OK;
}

static enum slc_status fill_options(const struct build_options *build,
                                    const struct option_strings *transforms,
                                    struct slc_reshape_options *out,
                                    struct slc_error *err)
{
    SLC_TRY(reshape_transforms(transforms, &out->transforms, err));
    /* If options->codec stays 0, the output has the codec of the input store. */
    if (build->codec != reshape_codec_choices[0]) {
        SLC_TRY(build_codec(build, &out->codec, err));
    }
    out->keep_numbering = build->relabel == reshape_relabel_choices[0];
    out->relabel =
        build->relabel == reshape_relabel_choices[2] ? SLC_RELABEL_FREQUENCY : SLC_RELABEL_NONE;
    BUILD_SET(out, build);
    return build_fibers(build, &out->fibers, &out->run, err);
}

/* Seconds of decoding with which a forecast measures the rate of the decoder. */
#define TRIAL_SECONDS 0.05
/* Seconds that each run needs to start, to sync its files and to finish. */
#define ALWAYS_SECONDS 0.02

static void estimate_times(const struct slc_reshape_forecast *found, struct forecast *forecast)
{
    const struct slc_build_forecast *built = &found->built;
    const double reads = forecast->read_rate, writes = forecast->write_rate;
    const double spill = (double)built->spill_bytes;

    forecast_add_phase(forecast, "begin and end");
    forecast_add_part(forecast, "syncing", ALWAYS_SECONDS);
    forecast_add_phase(forecast, "collect");
    forecast_add_part(forecast, "reading", slc_ratio((double)found->read_bytes, reads));
    forecast_add_part(forecast, "decoding", found->scan_seconds + built->scatter_seconds);
    forecast_add_part(forecast, "spilling", slc_ratio(spill, writes));
    forecast_add_phase(forecast, "write");
    forecast_add_part(forecast, "sorting", built->sort_seconds + built->encode_seconds);
    forecast_add_part(forecast, "writing",
                      slc_ratio((double)built->store_bytes, writes) + slc_ratio(spill, reads));
}

static enum slc_status forecast_reshape(const struct forecast_options *options,
                                        const struct slc_reshape_options *reshape,
                                        struct slc_reshape_forecast *found,
                                        struct forecast *forecast,
                                        struct slc_error *err)
{
    const struct slc_build_forecast *built = &found->built;
    char blocks[4096 + 16];

    SLC_TRY(slc_build_folder_check(slc_files_system(), reshape->output, reshape->overwrite, err));
    SLC_TRY(slc_reshape_forecast(reshape, TRIAL_SECONDS, found, err));
    *forecast = (struct forecast){
        .command = reshape->verb,
        .brief = options->brief,
        .budget_bytes = reshape->memory_bytes,
        .memory_bytes = slc_max_u64(found->scan_bytes + built->push_bytes,
                                    found->fixed_bytes + built->sort_bytes),
        .output = reshape->output,
        .temp_folder = reshape->temp_folder,
        .final_bytes = built->store_bytes,
        .temp_bytes = built->spill_bytes,
        .free_bytes = UINT64_MAX,
        .read_bytes = found->read_bytes + built->spill_bytes,
        .written_bytes = built->store_bytes + built->spill_bytes,
        .passes = built->spill_bytes > 0
                      ? "one over the store, one over the temporary file, one over the output"
                      : "one over the store, one over the output"};
    forecast_add_buffer(forecast, "scanning", found->scan_bytes,
                        "process, blocks and decoders while reading the store");
    forecast_add_buffer(forecast, "collecting", built->push_bytes,
                        "buckets and their contents while reading the store");
    forecast_add_buffer(forecast, "sorting", found->fixed_bytes + built->sort_bytes,
                        "process, buckets, sort areas, encoders and writer");
    if (!options->no_probe) {
        (void)snprintf(blocks, sizeof blocks, "%.4000s/%s", reshape->store, SLC_BLCO_NAME);
        forecast_try_drives(forecast, blocks);
        estimate_times(found, forecast);
    }
    return SLC_OK;
}

static enum slc_status
estimate_ahead(const void *context, struct forecast *forecast, struct slc_error *err)
{
    const struct forecast_options options = {.brief = true};
    struct slc_reshape_forecast found;

    return forecast_reshape(&options, context, &found, forecast, err);
}

static enum slc_status dry_run(const struct forecast_options *options,
                               const struct slc_reshape_options *reshape,
                               struct slc_error *err)
{
    struct slc_reshape_forecast found;
    struct forecast forecast;
    char dims[FORMAT_DIMS_BYTES];
    struct format_text a, b;

    SLC_TRY(forecast_reshape(options, reshape, &found, &forecast, err));
    return forecast_dry_run(&forecast, options->json, err,
                            "Would %s %s to %s\n"
                            "  %-12s %s\n"
                            "  %-12s about %s of %s\n",
                            reshape->verb, reshape->store, reshape->output, "dims",
                            format_dims(dims, found.order, found.dims), "nonzeros",
                            format_count(&a, found.kept), format_count(&b, found.nnz));
}

int reshape_run(const struct build_options *build,
                const struct option_strings *transforms,
                const struct forecast_options *forecast,
                struct slc_reshape_options *reshape)
{
    struct slc_reshape_report report;
    struct forecast_ahead ahead;
    struct slc_error err = SLC_ERROR_INIT;
    struct format_text a, b;
    char dims[FORMAT_DIMS_BYTES];

    if (build_start(build, forecast->dry_run ? "-" : reshape->output, &err) != SLC_OK ||
        fill_options(build, transforms, reshape, &err) != SLC_OK) {
        return console_error(&err);
    }
    if (forecast->dry_run) {
        return dry_run(forecast, reshape, &err) == SLC_OK ? 0 : console_error(&err);
    }
    forecast_ahead(&ahead, build->quiet, reshape->store, estimate_ahead, reshape);
    if (slc_reshape(reshape, &report, &err) != SLC_OK) {
        return console_error(&err);
    }
    console_clear_live();
    if (report.build.summary.nnz == 0 && report.nnz > 0) {
        console_note("no nonzeros are left: %s is an empty tensor", reshape->output);
    }
    if (build->quiet) {
        forecast_compare(&ahead, true, reshape->output);
        return 0;
    }
    printf("Wrote %s from %s\n", reshape->output, reshape->store);
    printf("  %-12s %s\n", "dims", format_dims(dims, report.order, report.dims));
    printf("  %-12s %s of %s\n", "nonzeros", format_count(&a, report.build.summary.nnz),
           format_count(&b, report.nnz));
    build_report(&report.build, report.order, report.dims);
    build_report_memory(build->memory);
    forecast_compare(&ahead, false, reshape->output);
    return 0;
}
