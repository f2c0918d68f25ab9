/* Public functions that make a store from entries that the caller pushes. */
#include "convert/build/builder.h"
#include "api/call.h"
#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/build/build_memory.h"
#include "convert/publish/build_complete.h"
#include "storage/manifest/names.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    PIECE_ENTRIES = 8192, /* entries per piece, the same number as in a piece of parsed text */
    /* entries sampled to choose buckets; enough for a hundred buckets of similar size */
    SAMPLE_ENTRIES = 32768,
    OVERHEAD_BYTES = 2 << 20,         /* memory that the process touches only after planning */
    WORKER_OVERHEAD_BYTES = 256 << 10 /* stack and allocator */
};

struct sluice_builder {
    struct slc_builder *builder;
    struct sluice_builder_options options;
    uint32_t order;
    unsigned base;
    uint64_t entries;                /* entries pushed so far */
    uint64_t sequence;               /* number of the next piece */
    uint64_t largest[SLC_MAX_ORDER]; /* largest index pushed per mode */
    uint64_t start_ns;
    struct api_run run;
    bool failed;
    char titles[SLC_MAX_ORDER][SLC_TITLE_BYTES];
};

/* Reduces the number of workers until their memory fits the budget, and leaves the remaining memory
 * to the builder. */
static enum slc_status divide_memory(struct slc_builder_options *build,
                                     unsigned order,
                                     uint64_t beside,
                                     struct slc_error *err)
{
    const uint64_t budget = build->memory_bytes;
    const uint64_t resident = slc_memory_resident() + OVERHEAD_BYTES + beside;
    uint64_t least = 0;

    for (; build->workers >= 1; build->workers--) {
        build->caller_bytes = resident + build->workers * (uint64_t)WORKER_OVERHEAD_BYTES;
        least = build->caller_bytes + slc_builder_memory_min(build, order);
        if (least <= budget) {
            break;
        }
    }
    if (build->workers == 0) {
        return slc_fail_budget(err, budget, least + (UINT64_C(1) << 20), "building this store");
    }
    build->memory_bytes = budget - build->caller_bytes;
    return SLC_OK;
}

static enum slc_status read_options(struct sluice_builder *builder,
                                    const struct sluice_builder_options *given,
                                    struct slc_error *err)
{
    struct sluice_builder_options *known = &builder->options;
    const struct sluice_entry_options *entries = &known->entries;

    SLC_TRY(API_READ_OPTIONS(sluice_builder_options, known, given, err));
    if (builder->order < 1 || builder->order > SLUICE_MAX_ORDER ||
        (entries->dims_order != 0 && entries->dims_order != builder->order)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the order is %u and dims_order is %u: a tensor has 1 to %d modes, and "
                        "dims_order must be the order or 0",
                        builder->order, entries->dims_order, (int)SLUICE_MAX_ORDER);
    }
    if (known->named_modes != 0 && known->name == NULL) {
        return slc_fail(err, SLC_ERR_USAGE, "named_modes is set, but `name` is NULL");
    }
    for (uint32_t n = 0; n < builder->order; n++) {
        if (known->titles[n] != NULL && strlen(known->titles[n]) >= SLC_TITLE_BYTES) {
            return slc_fail(err, SLC_ERR_USAGE, "the title of mode %u has more than %d bytes", n,
                            SLC_TITLE_BYTES - 1);
        }
        /* Copy the title, because the caller may free the text before the title is written. */
        if (known->titles[n] != NULL) {
            known->titles[n] = strcpy(builder->titles[n], known->titles[n]);
        }
    }
    builder->base = entries->index_base == SLUICE_BASE_ONE;
    api_run_init(&builder->run, &known->run);
    SLC_TRY(API_CHECK_CHOICES(err, {"duplicates", (int)entries->duplicates, SLUICE_DUPLICATES_MAX},
                              {"value", (int)entries->value, SLUICE_VALUE_F64},
                              {"index_base", (int)entries->index_base, SLUICE_BASE_ONE}));
    return api_check_output(&known->output, err);
}

/* Writes the names of the indices of one mode, up to the first index for which the callback returns
 * NULL. */
static enum slc_status write_names(const struct sluice_builder_options *known,
                                   uint32_t mode,
                                   const char *folder,
                                   struct slc_manifest *manifest,
                                   struct slc_error *err)
{
    struct slc_names_writer *writer = NULL;
    enum slc_status status = slc_names_writer_open(NULL, folder, mode, &writer, err);

    for (uint64_t i = 0; i < manifest->dims[mode] && status == SLC_OK; i++) {
        const char *name = known->name(known->run.context, mode, i);

        if (name == NULL) {
            break;
        }
        status = slc_names_writer_add(writer, name, strlen(name), err);
    }
    if (status != SLC_OK || slc_names_writer_count(writer) == 0) {
        slc_names_writer_abandon(writer);
        return status;
    }
    return slc_names_writer_finish(writer, &manifest->names[manifest->names_count++], err);
}

/* Adds titles and names to the manifest. Callback `attach` of struct slc_builder_options. */
static enum slc_status
attach(void *context, const char *folder, struct slc_manifest *manifest, struct slc_error *err)
{
    const struct sluice_builder *builder = context;
    const struct sluice_builder_options *known = &builder->options;

    for (uint32_t n = 0; n < builder->order; n++) {
        if (known->titles[n] != NULL) {
            (void)snprintf(manifest->titles[n], sizeof manifest->titles[n], "%s", known->titles[n]);
        }
        if (known->name != NULL && (known->named_modes >> n & 1) != 0) {
            SLC_TRY(write_names(known, n, folder, manifest, err));
        }
    }
    return SLC_OK;
}

/* Returns the memory for writing names: the memory of the largest named mode whose size is known.
 * slc_builder_memory_min does not include this memory. */
static uint64_t names_bytes(const struct sluice_builder *builder)
{
    uint64_t most = 0;

    if (builder->options.named_modes == 0) {
        return 0;
    }
    for (uint32_t n = 0; n < builder->options.entries.dims_order; n++) {
        if ((builder->options.named_modes >> n & 1) != 0) {
            most = slc_max_u64(most, builder->options.entries.dims[n]);
        }
    }
    return slc_names_memory_bytes(most);
}

static enum slc_status
create(struct sluice_builder *builder, const char *output, struct slc_error *err)
{
    const struct sluice_builder_options *known = &builder->options;
    struct slc_builder_options build = {.output = output,
                                        .value = (enum slc_value_choice)known->entries.value,
                                        .duplicates =
                                            (enum slc_duplicates)known->entries.duplicates,
                                        .keep_zeros = known->keep_zeros != 0,
                                        .workers = api_run_threads(&builder->run),
                                        .assumed_base = builder->base,
                                        .attach = attach,
                                        .attached = builder};

    API_SET_RUN(&build, &builder->run);
    API_SET_OUTPUT(&build, &known->output);
    if (build.workers > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_USAGE, "%u threads: the number of threads must be 1 to %d",
                        build.workers, SLC_MAX_THREADS);
    }
    SLC_TRY(divide_memory(&build, builder->order, names_bytes(builder), err));
    return slc_builder_create(&build, builder->order, &builder->builder, err);
}

enum sluice_status sluice_builder_create(const char *output,
                                         uint32_t order,
                                         const struct sluice_builder_options *options,
                                         struct sluice_builder **ret_builder,
                                         struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"output", output}, {"ret_builder", ret_builder});
    enum slc_status status = SLC_OK;
    struct sluice_builder *builder = slc_calloc(1, sizeof *builder);
    if (builder == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory to build a store");
        return api_return(status, err, ret_err);
    }
    builder->order = order;
    builder->start_ns = slc_clock_ns();
    status = read_options(builder, options, err);
    SLC_THEN(status, create(builder, output, err));
    if (status != SLC_OK) {
        slc_free(builder);
        return api_return(status, err, ret_err);
    }
    *ret_builder = builder;
    return SLUICE_OK;
}

/* Checks entries and updates the largest index per mode. Errors: SLC_ERR_INPUT, whose
 * message names the entry. */
static enum slc_status check_entries(struct sluice_builder *builder,
                                     uint64_t count,
                                     const uint64_t *const *coords,
                                     const double *values,
                                     struct slc_error *err)
{
    for (uint32_t n = 0; n < builder->order; n++) {
        const uint64_t limit = builder->options.entries.dims_order > 0
                                   ? builder->options.entries.dims[n]
                                   : SLC_MAX_MODE_LENGTH;

        if (coords[n] == NULL) {
            return slc_fail(err, SLC_ERR_USAGE, "coords[%u] is NULL", n);
        }
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t index = coords[n][i];

            if (index < builder->base || index - builder->base >= limit) {
                return slc_fail(err, SLC_ERR_INPUT,
                                "entry %" PRIu64 " has index %" PRIu64
                                " in mode %u; indices must be %u to %" PRIu64,
                                builder->entries + i, index, n, builder->base,
                                limit - 1 + builder->base);
            }
            builder->largest[n] = slc_max_u64(builder->largest[n], index);
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) {
            return slc_fail(err, SLC_ERR_INPUT, "entry %" PRIu64 " is %g; values must be finite",
                            builder->entries + i, values[i]);
        }
    }
    return SLC_OK;
}

/* Samples the entries of the first push: all entries if there are at most SAMPLE_ENTRIES, otherwise
 * SAMPLE_ENTRIES at equal distances. */
static enum slc_status push_sample(struct sluice_builder *builder,
                                   uint64_t count,
                                   const uint64_t *const *coords,
                                   struct slc_error *err)
{
    struct slc_entries sample = {.order = builder->order,
                                 .count = (uint32_t)slc_min_u64(count, SAMPLE_ENTRIES)};
    const bool all = count <= SAMPLE_ENTRIES;
    uint64_t *memory = NULL;

    if (!all) {
        memory = slc_malloc((size_t)sample.count * builder->order * sizeof *memory);
        SLC_TRY(slc_check_memory(memory != NULL, err, "for a sample of %u entries", sample.count));
    }
    for (uint32_t n = 0; n < builder->order; n++) {
        uint64_t *column = all ? NULL : memory + (size_t)n * sample.count;

        for (uint64_t i = 0; !all && i < sample.count; i++) {
            column[i] = coords[n][count / sample.count * i];
        }
        sample.coords[n] = all ? coords[n] : column;
    }
    enum slc_status status =
        slc_builder_sample(builder->builder, &sample, all ? 1 : sample.count, 0, err);
    slc_free(memory);
    return status;
}

static enum slc_status push_pieces(struct sluice_builder *builder,
                                   uint64_t count,
                                   const uint64_t *const *coords,
                                   const double *values,
                                   struct slc_error *err)
{
    for (uint64_t done = 0; done < count; done += PIECE_ENTRIES) {
        struct slc_entries entries = {.order = builder->order,
                                      .count = (uint32_t)slc_min_u64(count - done, PIECE_ENTRIES),
                                      .values = values + done,
                                      .sequence = builder->sequence++};

        for (uint32_t n = 0; n < builder->order; n++) {
            entries.coords[n] = coords[n] + done;
        }
        SLC_TRY(slc_builder_push(builder->builder, 0, &entries, err));
    }
    return SLC_OK;
}

enum sluice_status sluice_builder_push(struct sluice_builder *builder,
                                       uint64_t count,
                                       const uint64_t *const *coords,
                                       const double *values,
                                       struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"builder", builder}, {"coords", API_ARRAY(coords, count)},
             {"values", API_ARRAY(values, count)});
    enum slc_status status;

    if (builder->failed) {
        status = slc_fail(
            err, SLC_ERR_USAGE,
            "an earlier push failed, and the builder accepts no more entries: abandon the builder");
        return api_return(status, err, ret_err);
    }
    if (count == 0) {
        return SLUICE_OK;
    }
    status = check_entries(builder, count, coords, values, err);
    if (status == SLC_OK && builder->entries == 0) {
        status = push_sample(builder, count, coords, err);
    }
    SLC_THEN(status, push_pieces(builder, count, coords, values, err));
    builder->entries += count;
    builder->failed = status != SLC_OK;
    return api_return(status, err, ret_err);
}

static enum slc_status
find_dims(const struct sluice_builder *builder, uint64_t *dims, struct slc_error *err)
{
    const struct sluice_entry_options *entries = &builder->options.entries;

    if (entries->dims_order == 0 && builder->entries == 0) {
        return slc_fail(
            err, SLC_ERR_INPUT,
            "there are no entries and no mode sizes: set dims to make a tensor without nonzeros");
    }
    for (uint32_t n = 0; n < builder->order; n++) {
        dims[n] =
            entries->dims_order > 0 ? entries->dims[n] : builder->largest[n] - builder->base + 1;
    }
    return SLC_OK;
}

static struct sluice_convert_report builder_report(const struct sluice_builder *builder,
                                                   const uint64_t *dims,
                                                   const struct slc_builder_report *made)
{
    struct sluice_convert_report known = {.order = builder->order,
                                          .index_base = builder->base,
                                          .relabelled_modes =
                                              api_relabelled_modes(&made->relabel, builder->order),
                                          .entries = made->entries,
                                          .duplicates = made->duplicates,
                                          .explicit_zeros = made->explicit_zeros,
                                          .nnz = made->summary.nnz,
                                          .store_bytes = made->summary.file_bytes,
                                          .seconds = slc_seconds_since(builder->start_ns),
                                          .listed_zeros = made->summary.values.zeros};

    memcpy(known.dims, dims, builder->order * sizeof *dims);
    return known;
}

enum sluice_status sluice_builder_finish(struct sluice_builder *builder,
                                         struct sluice_convert_report *report,
                                         struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"builder", builder});
    struct slc_store_origin origin = {.source = "entries that a program pushed",
                                      .dialect = "entries",
                                      .writer = "sluice " SLC_VERSION};
    struct slc_builder_report made = {0};
    uint64_t dims[SLC_MAX_ORDER] = {0};
    enum slc_status status =
        builder->failed
            ? slc_fail(err, SLC_ERR_USAGE, "an earlier push failed, so there is no store to finish")
            : api_check_report(report, "sluice_convert_report", err);

    SLC_THEN(status, find_dims(builder, dims, err));
    if (status != SLC_OK) {
        sluice_builder_abandon(builder);
        return api_return(status, err, ret_err);
    }
    status = slc_builder_finish(builder->builder, builder->base, dims, &origin, &made, err);
    if (status == SLC_OK) {
        const struct sluice_convert_report known = builder_report(builder, dims, &made);

        status = API_FILL_REPORT(sluice_convert_report, report, &known, err);
    }
    slc_free(builder);
    return api_return(status, err, ret_err);
}

void sluice_builder_abandon(struct sluice_builder *builder)
{
    if (builder != NULL) {
        slc_builder_abandon(builder->builder);
        slc_free(builder);
    }
}
