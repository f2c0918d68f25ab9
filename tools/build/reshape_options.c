/* See reshape_options.h. */
#include "tools/build/reshape_options.h"

#include "base/memory/checked.h"
#include "convert/build/resume/build_folder.h"
#include "tools/forecast/forecast_ahead.h"
#include "tools/progress/cleanup.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/progress.h"

#include <stdio.h>

const char *const reshape_codec_choices[] = {"keep", "packed", "lz4", "blco", NULL};
const char *const reshape_relabel_choices[] = {"keep", "none", "frequency", NULL};

enum slc_status reshape_transforms(const struct option_strings *given,
                                   struct slc_transforms *transforms,
                                   struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned i = 0; i < given->count && status == SLC_OK; i++) {
        status = slc_transforms_add(transforms, given->text[i], err);
    }
    return status;
}

static enum slc_status fill_options(const struct build_options *build,
                                    const struct option_strings *transforms,
                                    struct slc_reshape_options *out,
                                    struct slc_error *err)
{
    enum slc_status status = reshape_transforms(transforms, &out->transforms, err);

    /* Zero: as the store that is reshaped has it. */
    if (status == SLC_OK && build->codec != reshape_codec_choices[0] &&
        !slc_codec_parse(build->codec, &out->codec)) {
        status =
            slc_fail(err, SLC_ERR_USAGE, "--codec %s is not known to this library", build->codec);
    }
    out->keep_numbering = build->relabel == reshape_relabel_choices[0];
    out->relabel =
        build->relabel == reshape_relabel_choices[2] ? SLC_RELABEL_FREQUENCY : SLC_RELABEL_NONE;
    out->block_bytes = build->block_bytes;
    out->memory_bytes = build->memory;
    out->temp_folder = build->temp_dir;
    out->max_temp = build->max_temp;
    out->threads = build_threads(build);
    out->overwrite = build->force;
    out->progress = progress_phase;
    out->publishing = cleanup_publishing;
    return status == SLC_OK ? build_fibers(build, &out->fibers, &out->run, err) : status;
}

/* Of a trial of decoding. */
#define TRIAL_SECONDS 0.05
/* What begin, syncs and end take. */
#define ALWAYS_SECONDS 0.02

static void judge_time(const struct slc_reshape_forecast *found, struct forecast *forecast)
{
    const struct slc_build_forecast *built = &found->built;
    const double reads = forecast->read_rate, writes = forecast->write_rate;
    const double spill = (double)built->spill_bytes;

    forecast_phase(forecast, "begin and end");
    forecast_part(forecast, "syncing", ALWAYS_SECONDS);
    forecast_phase(forecast, "collect");
    forecast_part(forecast, "reading", reads > 0 ? (double)found->read_bytes / reads : 0);
    forecast_part(forecast, "decoding", found->scan_seconds + built->scatter_seconds);
    forecast_part(forecast, "spilling", writes > 0 ? spill / writes : 0);
    forecast_phase(forecast, "write");
    forecast_part(forecast, "sorting", built->sort_seconds + built->encode_seconds);
    forecast_part(forecast, "writing",
                  (writes > 0 ? (double)built->store_bytes / writes : 0) +
                      (reads > 0 ? spill / reads : 0));
}

static enum slc_status forecast_reshape(const struct forecast_options *options,
                                        const struct slc_reshape_options *reshape,
                                        struct slc_reshape_forecast *found,
                                        struct forecast *forecast,
                                        struct slc_error *err)
{
    const struct slc_build_forecast *built = &found->built;
    char blocks[4096 + 16];
    enum slc_status status =
        slc_build_folder_check(slc_files_system(), reshape->output, reshape->overwrite, err);

    if (status == SLC_OK) {
        status = slc_reshape_forecast(reshape, TRIAL_SECONDS, found, err);
    }
    if (status != SLC_OK) {
        return status;
    }
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
    forecast_buffer(forecast, "scanning", found->scan_bytes,
                    "process, blocks and decoders while the store is read");
    forecast_buffer(forecast, "collecting", built->push_bytes,
                    "buckets and what they hold, meanwhile");
    forecast_buffer(forecast, "sorting", found->fixed_bytes + built->sort_bytes,
                    "process, buckets, sort areas, encoders and writer");
    if (!options->no_probe) {
        (void)snprintf(blocks, sizeof blocks, "%.4000s/%s", reshape->store, SLC_BLCO_NAME);
        forecast_try_drives(forecast, blocks);
        judge_time(found, forecast);
    }
    return SLC_OK;
}

static enum slc_status
judge_ahead(const void *context, struct forecast *forecast, struct slc_error *err)
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
    enum slc_status status = forecast_reshape(options, reshape, &found, &forecast, err);

    if (status == SLC_OK) {
        status = forecast_check_room(&forecast, err);
    }
    if (status == SLC_OK && !options->json) {
        printf("Would %s %s to %s\n", reshape->verb, reshape->store, reshape->output);
        printf("  %-12s %s\n", "dims", format_dims(dims, found.order, found.dims));
        printf("  %-12s about %s of %s\n", "nonzeros", format_count(&a, found.kept),
               format_count(&b, found.nnz));
    }
    return status == SLC_OK ? forecast_report(&forecast, options->json, err) : status;
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
    forecast_ahead(&ahead, build->quiet, reshape->store, judge_ahead, reshape);
    if (slc_reshape(reshape, &report, &err) != SLC_OK) {
        return console_error(&err);
    }
    console_settle();
    if (report.build.summary.nnz == 0 && report.nnz > 0) {
        console_note("none of the nonzeros is left: %s is an empty tensor", reshape->output);
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
