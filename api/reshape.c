/* Public functions that make stores from other stores. */
#include "convert/reshape/reshape.h"
#include "api/call.h"
#include "base/memory/memory.h"

#include <string.h>

static enum slc_status reshape(const struct slc_reshape_options *of,
                               const struct sluice_reshape_options *options,
                               struct sluice_convert_report *report,
                               struct slc_error *err)
{
    struct slc_reshape_options given = *of;
    struct sluice_reshape_options known = {0};
    struct slc_reshape_report made;
    struct api_run run = {.phase = NULL};

    SLC_TRY(API_READ_OPTIONS(sluice_reshape_options, &known, options, err));
    SLC_TRY(api_check_report(report, "sluice_convert_report", err));
    SLC_TRY(api_check_output(&known.output, err));
    SLC_TRY(api_parse_transforms(known.transform, &given.transforms, err));
    api_run_init(&run, &known.run);
    API_SET_RUN(&given, &run);
    API_SET_OUTPUT(&given, &known.output);
    given.codec = (enum slc_codec)known.output.codec; /* 0 means the codec of the store */
    given.keep_numbering = known.output.relabel == SLUICE_RELABEL_DEFAULT;
    given.keep_indices = known.keep_indices != 0;
    given.threads = api_run_threads(&run);
    SLC_TRY(slc_reshape(&given, &made, err));
    struct sluice_convert_report filled = {
        .order = made.order,
        .relabelled_modes = api_relabelled_modes(&made.build.relabel, made.order),
        .entries = made.nnz,
        .explicit_zeros = made.build.explicit_zeros,
        .nnz = made.build.summary.nnz,
        .store_bytes = made.build.summary.file_bytes,
        .listed_zeros = made.build.summary.values.zeros};
    memcpy(filled.dims, made.dims, made.order * sizeof filled.dims[0]);
    return API_FILL_REPORT(sluice_convert_report, report, &filled, err);
}

/* Returns the ranges of each mode, or NULL after an error. Ownership: the caller releases the
 * ranges with slc_free. */
static struct slc_ranges *
read_ranges(uint32_t count, const struct sluice_range *given, struct slc_error *err)
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
                              "range %u: the mode must be below %d, the first index at most the "
                              "last, and a mode has at most %d ranges",
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

enum sluice_status sluice_slice(const char *path,
                                const char *output,
                                uint32_t count,
                                const struct sluice_range *ranges,
                                const struct sluice_reshape_options *options,
                                struct sluice_convert_report *report,
                                struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"path", path}, {"output", output},
             {"ranges", API_ARRAY(ranges, count)});
    struct slc_ranges *read = read_ranges(count, ranges, err);
    struct slc_reshape_options slice = {
        .store = path, .output = output, .verb = "slice", .from_zero = true, .ranges = read};
    const enum slc_status status =
        read != NULL ? reshape(&slice, options, report, err) : fault.status;

    slc_free(read);
    return api_return(status, err, ret_err);
}

enum sluice_status sluice_permute(const char *path,
                                  const char *output,
                                  uint32_t count,
                                  const uint32_t *modes,
                                  const struct sluice_reshape_options *options,
                                  struct sluice_convert_report *report,
                                  struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"path", path}, {"output", output}, {"modes", API_ARRAY(modes, count)});
    struct slc_reshape_options permute = {
        .store = path, .output = output, .verb = "permute", .from_zero = true};
    enum slc_status status;

    if (count == 0 || count > SLC_MAX_ORDER) {
        status =
            slc_fail(err, SLC_ERR_USAGE, "modes has %u numbers, but a tensor has 1 to %d modes",
                     count, SLC_MAX_ORDER);
    } else {
        permute.mode_count = count;
        memcpy(permute.modes, modes, count * sizeof *modes);
        status = reshape(&permute, options, report, err);
    }
    return api_return(status, err, ret_err);
}
