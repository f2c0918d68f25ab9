/* Checks the options of a conversion and hashes the options that determine the store. */
#include "base/hash.h"
#include "convert/ingest/convert_internal.h"

#include <inttypes.h>
#include <string.h>

enum slc_status slc_conversion_check_options(const struct slc_convert_options *options,
                                             struct slc_error *err)
{
    if (!options->input) {
        return slc_fail(err, SLC_ERR_USAGE, "an input is required");
    }
    if (options->values && strcmp(options->input, "-") == 0 && strcmp(options->values, "-") == 0) {
        return slc_fail(err, SLC_ERR_USAGE, "only one of two inputs can be standard input");
    }
    if (options->csv && (options->values || options->names || options->append)) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "the columns of a table cannot be given with separate values, names or an append");
    }
    if (options->table && (!options->append || options->values)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the table of the store applies only to an append without separate values");
    }
    if (options->index_base < -1 || options->index_base > 1) {
        return slc_fail(err, SLC_ERR_USAGE, "index base %d: must be 0, 1 or auto",
                        options->index_base);
    }
    if (options->dims_order > SLC_MAX_ORDER) {
        return slc_fail(err, SLC_ERR_USAGE, "%u mode sizes given: at most %d modes are supported",
                        options->dims_order, (int)SLC_MAX_ORDER);
    }
    for (unsigned m = 0; m < options->dims_order; m++) {
        if (options->dims[m] < 1 || options->dims[m] > SLC_MAX_MODE_LENGTH) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "size %" PRIu64 " of mode %u: must be 1 to %" PRIu64, options->dims[m],
                            m + 1, SLC_MAX_MODE_LENGTH);
        }
    }
    if (options->threads > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_USAGE, "%u threads: at most %d are supported",
                        options->threads, (int)SLC_MAX_THREADS);
    }
    return SLC_OK;
}

uint64_t slc_conversion_options_hash(const struct slc_convert_options *options)
{
    const uint64_t numbers[] = {
        options->dialect,
        (uint64_t)(int64_t)options->index_base,
        options->dims_order,
        slc_hash64(options->dims, options->dims_order * sizeof options->dims[0]),
        options->duplicates,
        options->keep_zeros,
        options->append,
        options->table,
        options->again,
        options->drop_layouts,
        slc_hash64(options->fixed_modes, sizeof options->fixed_modes),
        slc_transforms_hash(&options->transforms),
        options->codec,
        options->value,
        options->fibers,
        options->fibers == SLC_FIBERS_GIVEN ? options->run.mode : 0,
        options->fibers == SLC_FIBERS_GIVEN ? options->run.bits : 0,
        options->relabel,
        options->block_bytes,
        slc_hash64(options->input, strlen(options->input)),
        options->names ? options->names->identity : 0,
        options->csv ? slc_csv_spec_hash(options->csv) : 0,
        options->values ? slc_hash64(options->values, strlen(options->values)) : 0,
        slc_hash64(SLC_VERSION, strlen(SLC_VERSION))};

    return slc_hash64(numbers, sizeof numbers);
}
