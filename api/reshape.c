/*
 * Public API: stores that grow, and stores of other ones.
 */
#include "convert/reshape/reshape.h"
#include "api/internal.h"
#include "base/memory/memory.h"
#include "convert/ingest/convert.h"

#include <string.h>

void sluice_append_options_init(struct sluice_append_options *options, uint64_t bytes)
{
    static const struct sluice_append_options defaults = {.struct_bytes = sizeof defaults,
                                                          .index_base = -1};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}

void sluice_reshape_options_init(struct sluice_reshape_options *options, uint64_t bytes)
{
    static const struct sluice_reshape_options defaults = {.struct_bytes = sizeof defaults};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}

static enum slc_status give_append_report(struct sluice_append_report *report,
                                          const struct slc_convert_report *made,
                                          struct slc_error *err)
{
    struct sluice_append_report known = {.struct_bytes = sizeof known,
                                         .order = made->order,
                                         .known = made->appended_before,
                                         .entries = made->entries,
                                         .nnz_before = made->old_nnz,
                                         .nnz = made->appended_before ? made->old_nnz
                                                                      : made->build.summary.nnz,
                                         .layouts_dropped = made->layouts_dropped};

    memcpy(known.dims, made->dims, made->order * sizeof known.dims[0]);
    return api_give_report(report, &known, sizeof known, "sluice_append_report", err);
}

enum slc_status sluice_append(const char *path,
                              const char *input,
                              const struct sluice_append_options *options,
                              struct sluice_append_report *report,
                              struct slc_error *err)
{
    struct sluice_append_options known;
    struct slc_convert_options append = {.input = input, .output = path, .append = true};
    struct slc_convert_report made = {0};
    struct slc_name_maps names = {.files = NULL};
    struct slc_stop stop = {.flag = NULL};
    enum slc_status status;

    sluice_append_options_init(&known, sizeof known);
    status = api_take_options(&known, sizeof known, options, "sluice_append_options", err);
    if (status == SLC_OK) {
        status = api_take_fibers(known.fibers, known.fiber_mode, known.fiber_bits, &append.fibers,
                                 &append.run, err);
    }
    if (status == SLC_OK) {
        status = api_check_report(report, "sluice_append_report", err);
    }
    if (status == SLC_OK && ((unsigned)known.dialect >= SLUICE_DIALECT_CSV ||
                             (unsigned)known.duplicates > SLUICE_DUPLICATES_KEEP_LAST)) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "dialect %d, where a table is told of by `table`, or duplicates %d is "
                          "not one of the enumerations",
                          (int)known.dialect, (int)known.duplicates);
    }
    if (status == SLC_OK && known.table != 0 &&
        (known.dialect != SLUICE_DIALECT_AUTO || known.index_base != -1 || known.values != NULL)) {
        status =
            slc_fail(err, SLC_ERR_USAGE, "dialect, index_base and values do not go with a table");
    }
    if (status != SLC_OK) {
        return status;
    }
    append.table = known.table != 0;
    append.values = known.values;
    append.dialect = (enum slc_dialect)known.dialect;
    append.index_base = known.index_base;
    append.duplicates = (enum slc_duplicates)known.duplicates;
    for (unsigned n = 0; n < SLUICE_MAX_ORDER; n++) {
        append.fixed_modes[n] = (known.fixed_modes >> n & 1) != 0;
    }
    append.again = known.again != 0;
    append.drop_layouts = known.drop_layouts != 0;
    append.codec = SLC_CODEC_PACKED; /* until the store's is known */
    append.block_bytes = known.block_bytes;
    append.memory_bytes = api_memory_bytes(known.memory_bytes);
    append.temp_folder = known.temp_folder;
    append.max_temp = known.max_temp_bytes;
    append.threads = api_threads(known.threads);
    append.progress = known.progress;
    append.context = known.context;
    stop.flag = known.stop;
    append.stop = &stop;
    status = api_take_labels(known.labels, known.label_count, &names, &append.names, err);
    if (status == SLC_OK) {
        status = slc_convert(&append, &made, err);
    }
    slc_name_maps_destroy(&names);
    return status == SLC_OK && report != NULL ? give_append_report(report, &made, err) : status;
}

static enum slc_status reshape(const struct slc_reshape_options *of,
                               const struct sluice_reshape_options *options,
                               struct sluice_convert_report *report,
                               struct slc_error *err)
{
    struct slc_reshape_options given = *of;
    struct sluice_reshape_options known;
    struct slc_reshape_report made;
    struct slc_stop stop = {.flag = NULL};
    enum slc_status status;

    sluice_reshape_options_init(&known, sizeof known);
    status = api_take_options(&known, sizeof known, options, "sluice_reshape_options", err);
    if (status == SLC_OK) {
        status = api_check_report(report, "sluice_convert_report", err);
    }
    if (status == SLC_OK) {
        status = api_need_path(given.store, "path", err);
    }
    if (status == SLC_OK) {
        status = api_need_path(given.output, "output", err);
    }
    if (status == SLC_OK) {
        status = api_check_form(known.codec != 0 ? known.codec : SLUICE_CODEC_PACKED, known.relabel,
                                err);
    }
    if (status == SLC_OK) {
        status = api_take_transforms(known.transform, &given.transforms, err);
    }
    if (status == SLC_OK) {
        status = api_take_fibers(known.fibers, known.fiber_mode, known.fiber_bits, &given.fibers,
                                 &given.run, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    given.keep_indices = known.keep_indices != 0;
    given.codec = (enum slc_codec)known.codec;
    given.relabel = (enum slc_relabel)known.relabel;
    given.keep_numbering = known.relabel_given == 0;
    given.overwrite = known.overwrite != 0;
    given.threads = api_threads(known.threads);
    given.block_bytes = known.block_bytes;
    given.memory_bytes = api_memory_bytes(known.memory_bytes);
    given.temp_folder = known.temp_folder;
    given.max_temp = known.max_temp_bytes;
    given.progress = known.progress;
    given.context = known.context;
    stop.flag = known.stop;
    given.stop = &stop;
    status = slc_reshape(&given, &made, err);
    if (status == SLC_OK && report != NULL) {
        struct sluice_convert_report told = {.struct_bytes = sizeof told,
                                             .order = made.order,
                                             .entries = made.nnz,
                                             .explicit_zeros = made.build.explicit_zeros,
                                             .nnz = made.build.summary.nnz,
                                             .store_bytes = made.build.summary.file_bytes};

        for (unsigned n = 0; n < made.order; n++) {
            told.relabelled_modes |= made.build.relabel.verdict[n] == SLC_RELABELLED ? 1U << n : 0U;
            told.dims[n] = made.dims[n];
        }
        status = api_give_report(report, &told, sizeof told, "sluice_convert_report", err);
    }
    return status;
}

/* The ranges of each mode; slc_free. NULL after an error. */
static struct slc_ranges *
take_ranges(uint32_t count, const struct sluice_range *given, struct slc_error *err)
{
    struct slc_ranges *ranges = slc_calloc(SLC_MAX_ORDER, sizeof *ranges);
    enum slc_status status = SLC_OK;

    if (ranges == NULL) {
        (void)!slc_fail(err, SLC_ERR_MEMORY, "no memory for ranges of indices");
        return NULL;
    }
    for (uint32_t i = 0; i < count && status == SLC_OK; i++) {
        struct slc_ranges *of_mode = &ranges[given[i].mode % SLC_MAX_ORDER];

        if (given[i].mode >= SLC_MAX_ORDER || given[i].last < given[i].first ||
            of_mode->count == SLC_RANGES_MAX) {
            status = slc_fail(err, SLC_ERR_USAGE,
                              "range %u: a mode below %d, a first index up to the last, and at "
                              "most %d ranges of a mode are possible",
                              i, SLC_MAX_ORDER, SLC_RANGES_MAX);
        } else {
            of_mode->range[of_mode->count++] =
                (struct slc_range){.first = given[i].first, .last = given[i].last};
        }
    }
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        if (ranges[n].count > 0) {
            slc_ranges_unite(&ranges[n]);
        }
    }
    if (status != SLC_OK) {
        slc_free(ranges);
        return NULL;
    }
    return ranges;
}

enum slc_status sluice_slice(const char *path,
                             const char *output,
                             uint32_t count,
                             const struct sluice_range *ranges,
                             const struct sluice_reshape_options *options,
                             struct sluice_convert_report *report,
                             struct slc_error *err)
{
    struct slc_reshape_options slice = {
        .store = path, .output = output, .verb = "slice", .from_zero = true};
    struct slc_error fault = SLC_ERROR_INIT;
    struct slc_ranges *taken = take_ranges(count, ranges, &fault);
    enum slc_status status = fault.status;

    if (taken != NULL) {
        slice.ranges = taken;
        status = reshape(&slice, options, report, &fault);
    }
    if (status != SLC_OK && err != NULL && err->status == SLC_OK) {
        *err = fault;
    }
    slc_free(taken);
    return status;
}

enum slc_status sluice_permute(const char *path,
                               const char *output,
                               uint32_t count,
                               const uint32_t *modes,
                               const struct sluice_reshape_options *options,
                               struct sluice_convert_report *report,
                               struct slc_error *err)
{
    struct slc_reshape_options permute = {
        .store = path, .output = output, .verb = "permute", .from_zero = true};

    if (count == 0 || count > SLC_MAX_ORDER) {
        return slc_fail(err, SLC_ERR_USAGE, "an order of %u modes; a tensor has 1 to %d", count,
                        SLC_MAX_ORDER);
    }
    permute.mode_count = count;
    memcpy(permute.modes, modes, count * sizeof *modes);
    return reshape(&permute, options, report, err);
}
