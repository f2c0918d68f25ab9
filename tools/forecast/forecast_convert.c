#include "tools/forecast/forecast_convert.h"

#include "base/memory/checked.h"
#include "convert/build/resume/build_folder.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Prints bounds of the mode sizes that the sample of a table does not determine. */
static void print_bounds(const struct slc_convert_forecast *found)
{
    struct format_text a, b;

    for (unsigned m = 0; m < found->order; m++) {
        if (found->dims_least[m] < found->dims_most[m]) {
            printf("  %-12s mode %u: %s to %s\n", "", m + 1, format_count(&a, found->dims_least[m]),
                   format_count(&b, found->dims_most[m]));
        }
    }
}

/* Prints the properties of the input. */
static void print_input(const struct slc_convert_forecast *found,
                        const struct slc_convert_options *convert)
{
    struct format_text a, b;
    char dims[FORMAT_DIMS_BYTES];

    printf(convert->append ? "Would append %s to %s\n" : "Would convert %s to %s\n", convert->input,
           convert->output);
    printf("  %-12s %s, compression %s", "input", slc_dialect_name(found->dialect),
           found->compression);
    if (found->input_bytes > 0) {
        printf(", %s", format_data(&a, (double)found->input_bytes));
    }
    if (found->text_bytes > found->input_bytes) {
        printf(", about %s unpacked", format_data(&b, (double)found->text_bytes));
    }
    printf("\n  %-12s %s (%s)\n", "dims", format_dims(dims, found->order, found->dims),
           found->table           ? "expected, from a sample"
           : found->dims_declared ? "declared"
                                  : "at least, from a sample");
    if (found->table) {
        print_bounds(found);
    }
    if (found->entries > 0) {
        printf("  %-12s about %s\n", "entries", format_count(&a, found->entries));
    } else {
        printf("  %-12s unknown: the input does not state their number\n", "entries");
    }
}

static void fill_forecast(const struct slc_convert_forecast *found,
                          const struct slc_convert_options *convert,
                          struct forecast *forecast)
{
    const uint64_t push = found->push_bytes, sort = found->sort_bytes;
    const uint64_t build = push > sort ? push : sort;

    *forecast = (struct forecast){
        .command = convert->append ? "append" : "convert",
        .budget_bytes = convert->memory_bytes,
        .memory_bytes = slc_max_u64(build, found->table_bytes),
        .memory_most_bytes = slc_max_u64(build, found->table_most_bytes),
        .output = convert->output,
        .temp_folder = convert->temp_folder,
        .final_bytes = found->store_bytes,
        .final_most_bytes = found->store_most_bytes,
        .temp_bytes = found->spill_bytes + found->spool_bytes,
        .temp_most_bytes = found->spill_bytes + found->spool_most_bytes,
        .read_bytes = found->input_bytes + found->sample_bytes + found->old_bytes +
                      found->spill_bytes + found->spool_read_bytes,
        .written_bytes = found->store_bytes + found->spill_bytes + found->spool_bytes,
        .passes = found->spill_bytes > 0
                      ? (convert->append ? "one over the input, the old store, the temporary file "
                                           "and the new store"
                                         : "one over the input, one over the temporary file, one "
                                           "over the store")
                  : convert->append ? "one over the input, the old store and the new one"
                  : found->table
                      ? "one over the input, one over temporary files, one over the store"
                      : "one over the input, one over the store"};
    forecast_add_buffer(forecast, "table", found->table_bytes,
                        "process, strings of columns and text while reading");
    forecast_add_buffer(forecast, "reading", found->parse_bytes,
                        "process, input and parsers while reading");
    forecast_add_buffer(forecast, "collecting", push - found->parse_bytes,
                        "buckets and their contents while reading");
    forecast_add_buffer(forecast, "sorting", sort,
                        "process, buckets, sort areas, encoders and writer");
}

/* Time to build another layout, relative to the time to sort and encode the store. */
#define LAYOUT_OF_SORT 2.0

/* Computes the time of each phase from the sample and the measured drives. */
static void estimate_times(const struct slc_convert_forecast *found, struct forecast *forecast)
{
    const double reads = forecast->read_rate, writes = forecast->write_rate;
    const double spill = (double)found->spill_bytes;

    forecast_add_phase(forecast, "begin and end");
    forecast_add_part(forecast, "syncing", found->always_seconds);
    if (found->table) {
        forecast_add_phase(forecast, "table");
        forecast_add_part(forecast, "reading", slc_ratio((double)found->input_bytes, reads));
        forecast_add_part(forecast, "parsing", found->table_seconds);
        forecast_add_part(forecast, "spooling", slc_ratio((double)found->spool_bytes, writes));
    }
    forecast_add_phase(forecast, "collect");
    forecast_add_part(forecast, "reading",
                      reads > 0 && !found->table ? (double)found->input_bytes / reads : 0);
    forecast_add_part(forecast, "unpacking", found->unpack_seconds);
    forecast_add_part(forecast, "parsing", found->parse_seconds + found->scatter_seconds);
    forecast_add_part(forecast, "spilling", slc_ratio(spill, writes));
    if (found->old_bytes > 0) {
        forecast_add_phase(forecast, "old store");
        forecast_add_part(forecast, "reading", slc_ratio((double)found->old_bytes, reads));
        forecast_add_part(forecast, "decoding", found->old_seconds);
    }
    forecast_add_phase(forecast, "write");
    forecast_add_part(forecast, "sorting",
                      (1 + LAYOUT_OF_SORT * found->layouts) *
                          (found->sort_seconds + found->encode_seconds));
    forecast_add_part(forecast, "writing",
                      slc_ratio((double)found->store_bytes, writes) + slc_ratio(spill, reads));
}

static enum slc_status make_forecast(const struct forecast_options *options,
                                     const struct slc_convert_options *convert,
                                     struct slc_convert_forecast *found,
                                     struct forecast *forecast,
                                     struct slc_error *err)
{
    const bool by_path = strcmp(convert->input, "-") != 0;

    SLC_TRY(convert->append ? SLC_OK
                            : slc_build_folder_check(slc_files_system(), convert->output,
                                                     convert->overwrite, err));
    SLC_TRY(slc_convert_forecast(convert, options->brief, found, err));
    fill_forecast(found, convert, forecast);
    forecast->brief = options->brief;
    if (found->entries > 0 && !options->no_probe) {
        forecast_try_drives(forecast, by_path ? convert->input : NULL);
        estimate_times(found, forecast);
    }
    return SLC_OK;
}

static enum slc_status
make_brief_forecast(const void *context, struct forecast *forecast, struct slc_error *err)
{
    const struct forecast_options options = {.brief = true};
    struct slc_convert_forecast found;
    const enum slc_status status = make_forecast(&options, context, &found, forecast, err);

    return status == SLC_OK && found.entries == 0
               ? slc_fail(err, SLC_ERR_UNSUPPORTED,
                          "the input does not state its number of nonzeros")
               : status;
}

void forecast_convert_ahead(const struct slc_convert_options *convert,
                            bool quiet,
                            struct forecast_ahead *ahead)
{
    forecast_ahead(ahead, quiet, convert->input, make_brief_forecast, convert);
}

/* Checks that the disk space and --max-temp suffice, and that the upper bound of the memory for the
 * strings of a table fits into the budget. */
static enum slc_status check_limits(const struct slc_convert_forecast *found,
                                    const struct slc_convert_options *convert,
                                    struct forecast *forecast,
                                    struct slc_error *err)
{
    const uint64_t temp_most = slc_max_u64(forecast->temp_bytes, forecast->temp_most_bytes);
    struct format_text a;

    SLC_TRY(forecast_check_space(forecast, err));
    if (convert->max_temp > 0 && temp_most > convert->max_temp) {
        return slc_fail(err, SLC_ERR_BUDGET, "%s of about %s %s: raise --max-temp%s",
                        found->table ? "temporary files" : "a temporary file",
                        format_data(&a, (double)temp_most),
                        forecast->temp_bytes > convert->max_temp ? "are needed" : "may be needed",
                        found->spill_bytes > 0 ? ", or raise --memory" : "");
    }
    if (found->tight) {
        return slc_fail(err, SLC_ERR_BUDGET,
                        "the distinct strings of the columns %s into %s: --memory %" PRIu64
                        "MiB is enough for the upper bound",
                        found->too_small ? "will not fit" : "may not fit",
                        format_memory(&a, convert->memory_bytes), (found->enough_bytes >> 20) + 1);
    }
    return SLC_OK;
}

enum slc_status forecast_convert(const struct forecast_options *options,
                                 const struct slc_convert_options *convert,
                                 struct slc_error *err)
{
    struct slc_convert_forecast found;
    struct forecast forecast;

    SLC_TRY(make_forecast(options, convert, &found, &forecast, err));
    if (!options->json) {
        print_input(&found, convert);
    }
    if (found.entries == 0) {
        console_note("no further estimates: they depend on the number of nonzeros");
        return SLC_OK;
    }
    enum slc_status status = check_limits(&found, convert, &forecast, err);
    if (status == SLC_OK || status == SLC_ERR_BUDGET) {
        struct slc_error report_err = SLC_ERROR_INIT;
        const enum slc_status report_status =
            forecast_report(&forecast, options->json, &report_err);

        if (status == SLC_OK && report_status != SLC_OK) {
            *err = report_err;
            status = report_status;
        }
    }
    return status;
}
