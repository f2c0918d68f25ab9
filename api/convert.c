/*
 * Public API: making stores from text or random numbers.
 */
#include "convert/ingest/convert.h"
#include "api/internal.h"
#include "convert/generate/generate.h"

#include <string.h>

static enum slc_status give_convert_report(struct sluice_convert_report *report,
                                           const struct slc_convert_report *made,
                                           struct slc_error *err)
{
    struct sluice_convert_report known = {.struct_bytes = sizeof known,
                                          .dialect = (enum sluice_dialect)made->dialect,
                                          .order = made->order,
                                          .index_base = made->index_base,
                                          .entries = made->build.entries,
                                          .duplicates = made->build.duplicates,
                                          .explicit_zeros = made->build.explicit_zeros,
                                          .nnz = made->build.summary.nnz,
                                          .text_bytes = made->text_bytes,
                                          .store_bytes = made->build.summary.file_bytes,
                                          .seconds = made->total_seconds,
                                          .skipped = made->skipped};

    for (unsigned n = 0; n < made->order; n++) {
        known.relabelled_modes |= made->build.relabel.verdict[n] == SLC_RELABELLED ? 1U << n : 0U;
    }
    memcpy(known.dims, made->dims, made->order * sizeof known.dims[0]);
    return api_give_report(report, &known, sizeof known, "sluice_convert_report", err);
}

enum slc_status
api_take_transforms(const char *text, struct slc_transforms *transforms, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    while (text != NULL && status == SLC_OK) {
        char step[64];
        const size_t length = strcspn(text, ",");

        if (length >= sizeof step) {
            return slc_fail(err, SLC_ERR_USAGE, "transform '%s': a step of this length is unknown",
                            text);
        }
        memcpy(step, text, length);
        step[length] = '\0';
        status = slc_transforms_add(transforms, step, err);
        text = text[length] == ',' ? text + length + 1 : NULL;
    }
    return status;
}

/* What a table's columns become, where the input is one. */
static enum slc_status take_table(const struct sluice_convert_options *known,
                                  struct slc_convert_options *convert,
                                  struct slc_csv_spec *csv,
                                  struct slc_error *err)
{
    const bool of_table = known->value_column != NULL || known->delimiter != NULL ||
                          known->no_header != 0 || known->missing != SLUICE_MISSING_ERROR;

    if (known->columns == NULL) {
        return of_table ? slc_fail(err, SLC_ERR_USAGE,
                                   "value_column, delimiter, no_header and missing are of tables: "
                                   "they go with columns")
                        : SLC_OK;
    }
    if (known->values != NULL) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "values are of coordinates in an .npy file; those of a table are in its "
                        "value_column");
    }
    if (known->dialect != SLUICE_DIALECT_AUTO || known->index_base != -1 || known->dims_order > 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "dialect, index_base and dims do not go with columns of a table");
    }
    if ((unsigned)known->missing > SLUICE_MISSING_NAME) {
        return slc_fail(err, SLC_ERR_USAGE, "missing %d is not one of the enumeration",
                        (int)known->missing);
    }
    convert->csv = csv;
    return slc_csv_spec_set(csv, known->columns, known->value_column, known->delimiter,
                            known->no_header != 0, (enum slc_csv_missing)known->missing, err);
}

enum slc_status api_take_labels(const char *const *labels,
                                uint32_t count,
                                struct slc_name_maps *names,
                                const struct slc_name_maps **names_of,
                                struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (uint32_t i = 0; i < count && status == SLC_OK; i++) {
        status = slc_name_maps_add(names, NULL, labels[i], err);
    }
    *names_of = count > 0 ? names : NULL;
    return status;
}

static enum slc_status take_options(const struct sluice_convert_options *known,
                                    struct slc_convert_options *convert,
                                    struct slc_error *err)
{
    enum slc_status status;

    if (known->dims_order > SLUICE_MAX_ORDER) {
        return slc_fail(err, SLC_ERR_USAGE, "dims_order is %u; a tensor has at most %d modes",
                        known->dims_order, (int)SLUICE_MAX_ORDER);
    }
    if ((unsigned)known->dialect >= SLUICE_DIALECT_CSV) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "dialect %d: a table is what columns are given of, and there is no other",
                        (int)known->dialect);
    }
    if ((unsigned)known->duplicates > SLUICE_DUPLICATES_KEEP_LAST ||
        (unsigned)known->value > SLUICE_VALUE_F64) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "duplicates %d or value %d is not one of the enumerations",
                        (int)known->duplicates, (int)known->value);
    }
    convert->dialect = (enum slc_dialect)known->dialect;
    convert->index_base = known->index_base;
    convert->dims_order = known->dims_order;
    memcpy(convert->dims, known->dims, sizeof convert->dims);
    convert->duplicates = (enum slc_duplicates)known->duplicates;
    convert->codec = (enum slc_codec)known->codec;
    convert->value = (enum slc_value_choice)known->value;
    convert->relabel = (enum slc_relabel)known->relabel;
    convert->block_bytes = known->block_bytes;
    convert->memory_bytes = api_memory_bytes(known->memory_bytes);
    convert->temp_folder = known->temp_folder;
    convert->max_temp = known->max_temp_bytes;
    convert->threads = api_threads(known->threads);
    convert->overwrite = known->overwrite != 0;
    convert->restart = known->restart != 0;
    convert->commit_seconds = known->commit_seconds;
    convert->progress = known->progress;
    convert->context = known->context;
    convert->values = known->values;
    status = api_check_form(known->codec, known->relabel, err);
    if (status == SLC_OK) {
        status = api_take_fibers(known->fibers, known->fiber_mode, known->fiber_bits,
                                 &convert->fibers, &convert->run, err);
    }
    return status == SLC_OK ? api_take_transforms(known->transform, &convert->transforms, err)
                            : status;
}

enum slc_status sluice_convert(const char *input,
                               const char *output,
                               const struct sluice_convert_options *options,
                               struct sluice_convert_report *report,
                               struct slc_error *err)
{
    struct sluice_convert_options known;
    struct slc_convert_options convert = {.input = input, .output = output};
    struct slc_convert_report made = {0};
    struct slc_name_maps names = {.files = NULL};
    struct slc_csv_spec csv = {.order = 0};
    struct slc_stop stop = {.flag = NULL};
    enum slc_status status;

    sluice_convert_options_init(&known, sizeof known);
    status = api_take_options(&known, sizeof known, options, "sluice_convert_options", err);
    if (status == SLC_OK) {
        status = api_check_report(report, "sluice_convert_report", err);
    }
    if (status == SLC_OK) {
        status = take_options(&known, &convert, err);
    }
    if (status == SLC_OK) {
        status = take_table(&known, &convert, &csv, err);
    }
    if (status == SLC_OK) {
        status = api_take_labels(known.labels, known.label_count, &names, &convert.names, err);
    }
    stop.flag = known.stop;
    convert.stop = &stop;
    if (status == SLC_OK) {
        status = slc_convert(&convert, &made, err);
    }
    slc_name_maps_destroy(&names);
    return status == SLC_OK && report != NULL ? give_convert_report(report, &made, err) : status;
}

enum slc_status sluice_generate(const char *output,
                                uint32_t order,
                                const uint64_t *dims,
                                uint64_t nnz,
                                const struct sluice_generate_options *options,
                                struct slc_error *err)
{
    struct sluice_generate_options known;
    struct slc_generate_options generate = {.output = output, .order = order, .nnz = nnz};
    struct slc_generate_report report = {0};
    struct slc_stop stop = {.flag = NULL};
    enum slc_status status;

    sluice_generate_options_init(&known, sizeof known);
    status = api_take_options(&known, sizeof known, options, "sluice_generate_options", err);
    if (status == SLC_OK) {
        status = api_need_path(output, "output", err);
    }
    if (status == SLC_OK) {
        status = api_check_form(known.codec, known.relabel, err);
    }
    if (status == SLC_OK) {
        status = api_take_fibers(known.fibers, known.fiber_mode, known.fiber_bits, &generate.fibers,
                                 &generate.run, err);
    }
    if (status == SLC_OK && (unsigned)known.distribution > SLUICE_DIST_WORST) {
        status = slc_fail(err, SLC_ERR_USAGE, "distribution %d is not one of the enumeration",
                          (int)known.distribution);
    }
    if (status != SLC_OK) {
        return status;
    }
    if (order < 1 || order > SLUICE_MAX_ORDER) {
        return slc_fail(err, SLC_ERR_USAGE, "the order is %u; a tensor has 1 to %d modes", order,
                        (int)SLUICE_MAX_ORDER);
    }
    memcpy(generate.dims, dims, order * sizeof *dims);
    generate.distribution = (enum slc_distribution)known.distribution;
    generate.zipf_exponent = known.zipf_exponent;
    generate.rank = known.rank;
    generate.noise = known.noise;
    generate.seed = known.seed;
    generate.codec = (enum slc_codec)known.codec;
    generate.relabel = (enum slc_relabel)known.relabel;
    generate.block_bytes = known.block_bytes;
    generate.memory_bytes = api_memory_bytes(known.memory_bytes);
    generate.threads = api_threads(known.threads);
    generate.overwrite = known.overwrite != 0;
    generate.best_ttm = known.best_ttm;
    generate.temp_folder = known.temp_folder;
    generate.max_temp = known.max_temp_bytes;
    generate.progress = known.progress;
    generate.context = known.context;
    stop.flag = known.stop;
    generate.stop = &stop;
    return slc_generate(&generate, &report, err);
}
