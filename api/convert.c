/* Public functions that make stores from files or random numbers, and that append to a store. */
#include "convert/ingest/convert.h"
#include "api/call.h"
#include "base/error/log.h"
#include "base/memory/checked.h"
#include "convert/generate/generate.h"
#include "convert/generate/paper_tensor.h"
#include "convert/ingest/arrow/arrow.h"
#include "convert/ingest/names/name_maps.h"

#include <string.h>

static struct sluice_convert_report convert_report(const struct slc_convert_report *made)
{
    struct sluice_convert_report known = {
        .dialect = (enum sluice_dialect)made->dialect,
        .order = made->order,
        .index_base = made->index_base,
        .relabelled_modes = api_relabelled_modes(&made->build.relabel, made->order),
        .entries = made->build.entries,
        .skipped = made->skipped,
        .duplicates = made->build.duplicates,
        .explicit_zeros = made->build.explicit_zeros,
        .nnz = made->build.summary.nnz,
        .text_bytes = made->text_bytes,
        .store_bytes = made->build.summary.file_bytes,
        .seconds = made->total_seconds,
        .listed_zeros = made->build.summary.values.zeros};

    memcpy(known.dims, made->dims, made->order * sizeof known.dims[0]);
    return known;
}

/* Reads the options of a table if the input is a table. */
static enum slc_status read_table(const struct sluice_convert_options *known,
                                  struct slc_convert_options *convert,
                                  struct slc_csv_spec *csv,
                                  struct slc_error *err)
{
    const struct sluice_table_options *table = &known->table;
    const char delimiter[2] = {table->delimiter, '\0'};

    if (table->columns == NULL) {
        return table->value_column != NULL || table->delimiter != '\0' || table->no_header != 0 ||
                       table->missing != SLUICE_MISSING_ERROR || table->null != NULL
                   ? slc_fail(err, SLC_ERR_USAGE,
                              "value_column, delimiter, no_header, missing and null apply only to "
                              "tables: set columns")
                   : SLC_OK;
    }
    if (known->values != NULL) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "`values` applies only to coordinates in a .npy file: use value_column for a table");
    }
    if (known->dialect != SLUICE_DIALECT_AUTO || known->entries.index_base != SLUICE_BASE_AUTO ||
        known->entries.dims_order > 0) {
        return slc_fail(err, SLC_ERR_USAGE, "dialect, index_base and dims do not apply to tables");
    }
    enum slc_status status =
        API_CHECK_CHOICES(err, {"missing", (int)table->missing, SLUICE_MISSING_NAME});
    convert->csv = csv;
    SLC_TRY(status);
    return slc_csv_spec_set(csv, table->columns, table->value_column,
                            table->delimiter != '\0' ? delimiter : NULL, table->no_header != 0,
                            (enum slc_csv_missing)table->missing, table->null, err);
}

static enum slc_status read_convert(const struct sluice_convert_options *known,
                                    struct slc_convert_options *convert,
                                    struct slc_error *err)
{
    const struct sluice_entry_options *entries = &known->entries;
    enum slc_status status =
        API_CHECK_CHOICES(err, {"dialect", (int)known->dialect, SLUICE_DIALECT_CSV - 1},
                          {"duplicates", (int)entries->duplicates, SLUICE_DUPLICATES_MAX},
                          {"value", (int)entries->value, SLUICE_VALUE_F64},
                          {"index_base", (int)entries->index_base, SLUICE_BASE_ONE});

    if (status == SLC_OK && entries->dims_order > SLUICE_MAX_ORDER) {
        status = slc_fail(err, SLC_ERR_USAGE, "dims_order is %u, but a tensor has at most %d modes",
                          entries->dims_order, (int)SLUICE_MAX_ORDER);
    }
    SLC_THEN(status, api_check_output(&known->output, err));
    SLC_TRY(status);
    API_SET_OUTPUT(convert, &known->output);
    convert->dialect = (enum slc_dialect)known->dialect;
    convert->index_base = (int)entries->index_base - 1;
    convert->dims_order = entries->dims_order;
    memcpy(convert->dims, entries->dims, sizeof convert->dims);
    convert->duplicates = (enum slc_duplicates)entries->duplicates;
    convert->value = (enum slc_value_choice)entries->value;
    convert->keep_zeros = known->keep_zeros != 0;
    convert->restart = known->restart != 0;
    convert->commit_seconds = known->commit_seconds;
    convert->values = known->values;
    return api_parse_transforms(known->transform, &convert->transforms, err);
}

/* Converts or appends with the names of indices in the files of `labels`. */
static enum slc_status run_convert(const struct slc_convert_options *of,
                                   const struct sluice_run_options *options,
                                   const char *const *labels,
                                   uint64_t label_count,
                                   struct slc_convert_report *made,
                                   struct slc_error *err)
{
    struct slc_convert_options convert = *of;
    struct slc_name_maps names = {.files = NULL};
    struct api_run run = {.phase = NULL};
    enum slc_status status = SLC_OK;

    for (uint64_t i = 0; i < label_count && status == SLC_OK; i++) {
        status = slc_name_maps_add(&names, NULL, labels[i], err);
    }
    api_run_init(&run, options);
    API_SET_RUN(&convert, &run);
    convert.threads = api_run_threads(&run);
    convert.names = label_count > 0 ? &names : NULL;
    SLC_THEN(status, slc_convert(&convert, made, err));
    slc_name_maps_destroy(&names);
    return status;
}

/* Opens a stream as the input of a conversion. Errors: those of slc_arrow_open; SLC_ERR_USAGE if
 * `stream` is NULL. */
static enum slc_status open_arrow(struct ArrowArrayStream *stream,
                                  const char *source_name,
                                  struct slc_convert_options *convert,
                                  struct slc_error *err)
{
    convert->input = source_name != NULL ? source_name : "the Arrow table";
    return stream == NULL ? slc_fail(err, SLC_ERR_USAGE, "`stream` must not be NULL")
                          : slc_arrow_open(stream, convert->input, &convert->arrow, err);
}

/* Rejects a source_name for a file, because only streams may have one. */
static enum slc_status check_unnamed(const char *source_name, struct slc_error *err)
{
    return source_name == NULL
               ? SLC_OK
               : slc_fail(err, SLC_ERR_USAGE, "source_name applies only to Arrow tables");
}

static void close_arrow(struct ArrowArrayStream *stream, const struct slc_convert_options *convert)
{
    slc_arrow_close(convert->arrow);
    if (stream != NULL && stream->release != NULL) {
        stream->release(stream);
        stream->release = NULL;
    }
}

/* Checks the options of a table in a stream. If no columns are given, selects all columns. */
static enum slc_status read_arrow(struct sluice_convert_options *known,
                                  const struct slc_convert_options *convert,
                                  char items[SLC_ARROW_ITEMS_BYTES],
                                  struct slc_error *err)
{
    if (known->label_count > 0 || known->restart != 0 || known->commit_seconds != 0 ||
        known->table.delimiter != '\0' || known->table.no_header != 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "labels, restart, commit_seconds, delimiter and no_header do not apply to "
                        "Arrow tables");
    }
    if (known->table.columns != NULL) {
        return SLC_OK;
    }
    known->table.columns = items;
    return slc_arrow_all_columns(convert->arrow, known->table.value_column, items, err);
}

/* Converts a file or, if `input` is NULL, a stream. */
static enum sluice_status convert_to_store(const char *input,
                                           struct ArrowArrayStream *stream,
                                           const char *output,
                                           const struct sluice_convert_options *options,
                                           struct sluice_convert_report *report,
                                           struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;
    const struct api_pointer needed = {"output", output};
    struct sluice_convert_options known = {0};
    struct slc_convert_options convert = {.input = input, .output = output};
    char items[SLC_ARROW_ITEMS_BYTES];
    struct slc_convert_report made = {0};
    struct slc_csv_spec csv = {.order = 0};
    enum slc_status status = API_READ_OPTIONS(sluice_convert_options, &known, options, err);

    SLC_THEN(status, api_check_report(report, "sluice_convert_report", err));
    SLC_THEN(status, api_need(&needed, 1, err)); /* after an error, the stream is released */
    SLC_THEN(status, read_convert(&known, &convert, err));
    if (input == NULL) {
        SLC_THEN(status, open_arrow(stream, known.source_name, &convert, err));
        SLC_THEN(status, read_arrow(&known, &convert, items, err));
    } else {
        SLC_THEN(status, check_unnamed(known.source_name, err));
    }
    SLC_THEN(status, read_table(&known, &convert, &csv, err));
    SLC_THEN(status,
             run_convert(&convert, &known.run, known.labels, known.label_count, &made, err));
    close_arrow(stream, &convert);
    if (status == SLC_OK) {
        const struct sluice_convert_report filled = convert_report(&made);

        status = API_FILL_REPORT(sluice_convert_report, report, &filled, err);
    }
    return api_return(status, err, ret_err);
}

enum sluice_status sluice_convert(const char *input,
                                  const char *output,
                                  const struct sluice_convert_options *options,
                                  struct sluice_convert_report *report,
                                  struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"input", input});
    return convert_to_store(input, NULL, output, options, report, ret_err);
}

enum sluice_status sluice_convert_arrow(struct ArrowArrayStream *stream,
                                        const char *output,
                                        const struct sluice_convert_options *options,
                                        struct sluice_convert_report *report,
                                        struct sluice_error *ret_err)
{
    return convert_to_store(NULL, stream, output, options, report, ret_err);
}

static enum slc_status read_append(const struct sluice_append_options *known,
                                   struct slc_convert_options *append,
                                   struct slc_error *err)
{
    enum slc_status status =
        API_CHECK_CHOICES(err, {"dialect", (int)known->dialect, SLUICE_DIALECT_CSV - 1},
                          {"duplicates", (int)known->duplicates, SLUICE_DUPLICATES_MAX},
                          {"index_base", (int)known->index_base, SLUICE_BASE_ONE});

    SLC_THEN(status, api_check_output(&known->output, err));
    SLC_TRY(status);
    if (known->output.codec != SLUICE_CODEC_DEFAULT ||
        known->output.relabel != SLUICE_RELABEL_DEFAULT || known->output.overwrite != 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "codec, relabel and overwrite must be 0: a store keeps its codec and "
                        "numbering");
    }
    if (known->table != 0 && (known->dialect != SLUICE_DIALECT_AUTO ||
                              known->index_base != SLUICE_BASE_AUTO || known->values != NULL)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "dialect, index_base and values do not apply to tables");
    }
    API_SET_OUTPUT(append, &known->output); /* the codec is later replaced by the store's codec */
    append->table = known->table != 0;
    append->values = known->values;
    append->dialect = (enum slc_dialect)known->dialect;
    append->index_base = (int)known->index_base - 1;
    append->duplicates = (enum slc_duplicates)known->duplicates;
    for (unsigned n = 0; n < SLUICE_MAX_ORDER; n++) {
        append->fixed_modes[n] = (known->fixed_modes >> n & 1) != 0;
    }
    append->again = known->again != 0;
    append->drop_layouts = known->drop_layouts != 0;
    return SLC_OK;
}

/* Appends a file or, if `input` is NULL, a stream. */
static enum sluice_status append_to_store(const char *path,
                                          const char *input,
                                          struct ArrowArrayStream *stream,
                                          const struct sluice_append_options *options,
                                          struct sluice_append_report *report,
                                          struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;
    const struct api_pointer needed = {"path", path};
    struct sluice_append_options known = {0};
    struct slc_convert_options append = {.input = input, .output = path, .append = true};
    struct slc_convert_report made = {0};
    enum slc_status status = API_READ_OPTIONS(sluice_append_options, &known, options, err);

    SLC_THEN(status, api_check_report(report, "sluice_append_report", err));
    SLC_THEN(status, api_need(&needed, 1, err)); /* after an error, the stream is released */
    SLC_THEN(status, read_append(&known, &append, err));
    if (input == NULL) {
        SLC_THEN(status, open_arrow(stream, known.source_name, &append, err));
        if (status == SLC_OK && (known.label_count > 0 || known.values != NULL ||
                                 append.dialect != SLC_DIALECT_AUTO || append.index_base != -1)) {
            status =
                slc_fail(err, SLC_ERR_USAGE,
                         "dialect, index_base, labels and values do not apply to Arrow tables");
        }
        append.table = true;
    } else {
        SLC_THEN(status, check_unnamed(known.source_name, err));
    }
    SLC_THEN(status, run_convert(&append, &known.run, known.labels, known.label_count, &made, err));
    close_arrow(stream, &append);
    if (status == SLC_OK) {
        struct sluice_append_report filled = {.order = made.order,
                                              .layouts_dropped = made.layouts_dropped,
                                              .known = made.appended_before,
                                              .entries = made.entries,
                                              .nnz_before = made.old_nnz,
                                              .nnz = made.appended_before ? made.old_nnz
                                                                          : made.build.summary.nnz,
                                              .skipped = made.skipped};

        memcpy(filled.dims, made.dims, made.order * sizeof filled.dims[0]);
        status = API_FILL_REPORT(sluice_append_report, report, &filled, err);
    }
    return api_return(status, err, ret_err);
}

enum sluice_status sluice_append(const char *path,
                                 const char *input,
                                 const struct sluice_append_options *options,
                                 struct sluice_append_report *report,
                                 struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"input", input});
    return append_to_store(path, input, NULL, options, report, ret_err);
}

enum sluice_status sluice_append_arrow(const char *path,
                                       struct ArrowArrayStream *stream,
                                       const struct sluice_append_options *options,
                                       struct sluice_append_report *report,
                                       struct sluice_error *ret_err)
{
    return append_to_store(path, NULL, stream, options, report, ret_err);
}

/* Sets mode sizes and distribution; generate->order and nnz are the arguments of the caller. */
static enum slc_status set_shape(struct slc_generate_options *generate,
                                 const struct sluice_generate_options *known,
                                 const uint64_t *dims,
                                 struct slc_error *err)
{
    if (known->like != NULL) {
        const struct slc_paper_tensor *tensor = slc_paper_tensor_find(known->like);
        const double scale = known->scale != 0 ? known->scale : 1;

        if (tensor == NULL || generate->order != 0 || generate->nnz != 0) {
            return slc_fail(err, SLC_ERR_USAGE,
                            tensor == NULL
                                ? "'%s' is not a tensor of sluice-generate(1), STAND-INS"
                                : "the shape is that of %s: omit mode sizes and nonzeros",
                            known->like);
        }
        if (!(scale > 0 && scale <= 1)) {
            return slc_fail(err, SLC_ERR_USAGE, "scale %g: must be above 0 and at most 1", scale);
        }
        slc_paper_tensor_options(tensor, scale, generate);
        return SLC_OK;
    }
    if (generate->order < 1 || generate->order > SLUICE_MAX_ORDER) {
        return slc_fail(err, SLC_ERR_USAGE, "the order is %u, but a tensor has 1 to %d modes",
                        generate->order, (int)SLUICE_MAX_ORDER);
    }
    memcpy(generate->dims, dims, generate->order * sizeof *dims);
    generate->distribution = (enum slc_distribution)known->distribution;
    generate->zipf_exponent = known->zipf_exponent != 0 ? known->zipf_exponent : 1.0;
    generate->mode = known->distribution == SLUICE_DIST_BEST
                         ? (unsigned)slc_min_u64(known->best_ttm, UINT32_MAX)
                         : (unsigned)slc_min_u64(known->mode, UINT32_MAX - 1) + 1;
    generate->fiber_count = known->fiber_count;
    return SLC_OK;
}

enum sluice_status sluice_generate(const char *output,
                                   uint32_t order,
                                   const uint64_t *dims,
                                   uint64_t nnz,
                                   const struct sluice_generate_options *options,
                                   struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"output", output}, {"dims", API_ARRAY(dims, order)});
    struct sluice_generate_options known = {0};
    struct slc_generate_options generate = {.output = output, .order = order, .nnz = nnz};
    struct slc_generate_report report = {0};
    struct api_run run = {.phase = NULL};
    enum slc_status status = API_READ_OPTIONS(sluice_generate_options, &known, options, err);

    SLC_THEN(status, api_check_output(&known.output, err));
    SLC_THEN(status,
             API_CHECK_CHOICES(err, {"distribution", (int)known.distribution, SLUICE_DIST_FIBERS}));
    SLC_THEN(status, set_shape(&generate, &known, dims, err));
    if (status != SLC_OK) {
        return api_return(status, err, ret_err);
    }
    api_run_init(&run, &known.run);
    API_SET_RUN(&generate, &run);
    API_SET_OUTPUT(&generate, &known.output);
    generate.threads = api_run_threads(&run);
    generate.rank = known.rank;
    generate.noise = known.noise;
    generate.seed = known.seed;
    status = slc_generate(&generate, &report, err);
    if (status == SLC_OK && report.dims_lost) {
        slc_log(SLC_LOG_NOTE, "%s does not state its mode sizes: specify them to read it back",
                output);
    }
    return api_return(status, err, ret_err);
}
