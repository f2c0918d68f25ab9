/*
 * See convert/contract.h. One scan of the store: workers contract tiles (contract_tile.h) and push
 * what is left to a builder, or, where no mode is left, add up one number per tile, in the order of
 * the file. Some tiles, spread over the file, are looked at before, for the builder's splitters.
 */
#include "convert/contract.h"

#include "base/checked.h"
#include "base/matrix.h"
#include "base/memory.h"
#include "base/version.h"
#include "convert/contract_tile.h"
#include "convert/tile_scan.h"
#include "storage/labels.h"
#include "storage/npy.h"
#include "storage/store.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    SAMPLE_ROWS = 32768,
    SAMPLE_TILES = 16,
    /* Records, paths, the scratch memory of reading an array. */
    OVERHEAD_BYTES = 1 << 20
};

/* Per worker; written a few times a tile. */
struct worker {
    uint64_t zeros;
    double tile_sum;
};

struct contract {
    const struct slc_contract_options *options;
    struct slc_contract_report *report;
    struct slc_store store;
    const struct slc_layout_info *info;
    struct slc_contraction job;
    struct slc_matrix vectors[SLC_MAX_ORDER];
    struct slc_labels labels[SLC_MAX_ORDER]; /* by label, the index; empty where a mode has none */
    unsigned workers;
    uint64_t beside_bytes; /* of the budget, everything but the builder */
    uint64_t budget_bytes;
    struct slc_buffer memory; /* of all workers, slc_contract_tile_bytes each */
    struct worker worker[SLC_MAX_THREADS];
    struct slc_builder *builder; /* NULL: a number is wanted */
    struct slc_buffer sample;
    uint32_t sampled; /* coordinates in each column of the sample */
    uint32_t stretch; /* of these, from one tile, at most */
    uint64_t tiles_done;
};

static enum slc_status check_options(const struct slc_contract_options *options,
                                     struct slc_error *err)
{
    if (options->threads == 0 || options->threads > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_USAGE, "%u threads: 1 to %d are possible", options->threads,
                        SLC_MAX_THREADS);
    }
    return options->vector_count > 0
               ? SLC_OK
               : slc_fail(err, SLC_ERR_USAGE, "there is no vector to multiply with");
}

/* Which modes are contracted and which are left. */
static enum slc_status divide_modes(struct contract *c, struct slc_error *err)
{
    const struct slc_contract_options *options = c->options;
    const unsigned order = c->info->order;
    bool contracted[SLC_MAX_ORDER] = {false};

    c->job.order = order;
    for (unsigned k = 0; k < options->vector_count; k++) {
        const unsigned mode = options->vectors[k].mode;

        if (mode >= order) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "mode %u does not exist; the tensor has modes 1 to %u", mode + 1,
                            order);
        }
        if (contracted[mode]) {
            return slc_fail(err, SLC_ERR_USAGE, "mode %u has two vectors; one can be given",
                            mode + 1);
        }
        contracted[mode] = true;
        c->job.vector_mode[c->job.vector_count++] = mode;
    }
    for (unsigned mode = 0; mode < order; mode++) {
        if (!contracted[mode]) {
            c->report->dims[c->job.kept_count] = c->info->dims[mode];
            c->job.kept_mode[c->job.kept_count++] = mode;
        }
    }
    c->report->order = c->job.kept_count;
    if (c->job.kept_count == 0 && options->output != NULL) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "every mode has a vector: the result is a number, not the store %s",
                        options->output);
    }
    if (c->job.kept_count > 0 && options->output == NULL) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "%u of %u modes have no vector: the result is a tensor, and needs a store "
                        "to be written to",
                        c->job.kept_count, order);
    }
    return SLC_OK;
}

/* What vectors and the numbers of relabelled modes take. */
static uint64_t operand_bytes(const struct contract *c)
{
    const struct slc_manifest *manifest = &c->store.manifest;
    uint64_t bytes = 0;

    for (unsigned k = 0; k < c->job.vector_count; k++) {
        const uint64_t length = c->info->dims[c->job.vector_mode[k]];

        if (!slc_add_u64(bytes, slc_matrix_footprint(SLC_F64, length, 1), &bytes)) {
            return UINT64_MAX;
        }
    }
    for (unsigned i = 0; i < manifest->permutation_count; i++) {
        const uint64_t length = c->info->dims[manifest->permutations[i].mode];

        if (!slc_add_u64(bytes, slc_labels_memory_bytes(length), &bytes)) {
            return UINT64_MAX;
        }
    }
    return bytes;
}

static uint64_t sample_bytes(const struct contract *c)
{
    return c->job.kept_count * (uint64_t)SAMPLE_ROWS * sizeof(uint64_t);
}

/* As many workers as asked where they fit beside the least builder, which gets the rest. */
static enum slc_status
divide_memory(struct contract *c, struct slc_builder_options *build, struct slc_error *err)
{
    const uint64_t operands = operand_bytes(c);
    uint64_t fixed = slc_memory_resident() + OVERHEAD_BYTES +
                     slc_buffer_footprint(sample_bytes(c), SLC_PAGES_SMALL);
    uint64_t least = UINT64_MAX;

    if (!slc_add_u64(fixed, operands, &fixed)) {
        fixed = UINT64_MAX / 2;
    }
    for (c->workers = c->options->threads; c->workers >= 1; c->workers--) {
        build->workers = c->workers;
        c->beside_bytes =
            fixed + slc_tile_scan_memory_bytes(c->info, c->workers) +
            slc_buffer_footprint(c->workers * slc_contract_tile_bytes(&c->job), SLC_PAGES_SMALL);
        least = c->beside_bytes +
                (c->job.kept_count > 0 ? slc_builder_memory_min(build, c->job.kept_count) : 0);
        if (least <= c->budget_bytes) {
            build->beside_bytes = c->beside_bytes;
            build->memory_bytes = c->budget_bytes - c->beside_bytes;
            return SLC_OK;
        }
    }
    return slc_fail_budget(err, c->budget_bytes, least + (UINT64_C(1) << 20),
                           "multiplying this tensor (%" PRIu64 " MiB for vectors)",
                           slc_div_up_u64(operands, UINT64_C(1) << 20));
}

/* A vector must be all finite: one NaN would spoil everything that is added to it. */
static enum slc_status
check_vector(const struct slc_matrix *vector, const char *path, struct slc_error *err)
{
    for (uint64_t i = 0; i < vector->rows; i++) {
        const double value = slc_matrix_row_f64(vector, i)[0];

        if (!isfinite(value)) {
            (void)slc_fail(err, SLC_ERR_INPUT,
                           "number %" PRIu64 " of the vector, counting from 1, is %g; all have to "
                           "be finite",
                           i + 1, value);
            slc_error_locate_file(err, path);
            return SLC_ERR_INPUT;
        }
    }
    return SLC_OK;
}

static enum slc_status read_operands(struct contract *c, struct slc_error *err)
{
    const struct slc_manifest *manifest = &c->store.manifest;
    enum slc_status status = SLC_OK;

    for (unsigned k = 0; k < c->job.vector_count && status == SLC_OK; k++) {
        const char *path = c->options->vectors[k].path;

        status = slc_npy_read(c->store.files, path, SLC_F64, c->info->dims[c->job.vector_mode[k]],
                              1, &c->vectors[k], err);
        if (status == SLC_OK) {
            status = check_vector(&c->vectors[k], path, err);
            c->job.vector[k] = c->vectors[k].buffer.data;
        }
    }
    for (unsigned i = 0; i < manifest->permutation_count && status == SLC_OK; i++) {
        const struct slc_store_permutation *listed = &manifest->permutations[i];
        struct slc_labels *labels = &c->labels[listed->mode];

        status = slc_labels_read(c->store.files, c->store.path, listed, c->info->dims[listed->mode],
                                 labels, err);
        if (status == SLC_OK) {
            slc_labels_invert(labels);
            c->job.index[listed->mode] = labels->label;
        }
    }
    return status;
}

static enum slc_status
push_sums(void *context, unsigned worker, const struct slc_entries *entries, struct slc_error *err)
{
    struct contract *c = context;

    return slc_builder_push(c->builder, worker, entries, err);
}

static enum slc_status
add_sums(void *context, unsigned worker, const struct slc_entries *entries, struct slc_error *err)
{
    struct contract *c = context;

    (void)err;
    for (uint32_t i = 0; i < entries->count; i++) {
        c->worker[worker].tile_sum += entries->values[i];
    }
    return SLC_OK;
}

static void *memory_of(const struct contract *c, unsigned worker)
{
    return (char *)c->memory.data + worker * slc_contract_tile_bytes(&c->job);
}

static enum slc_status
contract_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct contract *c = context;
    const uint64_t done = __atomic_add_fetch(&c->tiles_done, 1, __ATOMIC_RELAXED);

    if (worker == 0 && c->options->progress != NULL) {
        c->options->progress(c->options->context, "multiply", done, c->info->tile_count);
    }
    c->worker[worker].tile_sum = 0;
    return slc_contract_tile(&c->job, tile, memory_of(c, worker),
                             c->builder != NULL ? push_sums : add_sums, c, worker,
                             &c->worker[worker].zeros, err);
}

static bool add_tile_sum(void *context, unsigned worker)
{
    struct contract *c = context;

    c->report->scalar += c->worker[worker].tile_sum;
    return true;
}

/* The first sums of a tile, as many as its share of the sample holds. */
static enum slc_status sample_sums(void *context,
                                   unsigned worker,
                                   const struct slc_entries *entries,
                                   struct slc_error *err)
{
    struct contract *c = context;
    const uint32_t room = c->stretch - (uint32_t)slc_min_u64(c->stretch, entries->first);
    const uint32_t count = (uint32_t)slc_min_u64(entries->count, room);

    (void)worker;
    (void)err;
    for (unsigned k = 0; k < c->job.kept_count; k++) {
        memcpy((uint64_t *)c->sample.data + (uint64_t)k * SAMPLE_ROWS + c->sampled,
               entries->coords[k], count * sizeof(uint64_t));
    }
    c->sampled += count;
    return SLC_OK;
}

static enum slc_status
sample_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct contract *c = context;
    uint64_t zeros = 0;

    return slc_contract_tile(&c->job, tile, memory_of(c, worker), sample_sums, c, worker, &zeros,
                             err);
}

static bool one_tile(void *context, unsigned worker)
{
    (void)context;
    (void)worker;
    return false;
}

/* Some tiles, spread evenly over the file, tell the builder where the sums will lie. */
static enum slc_status give_sample(struct contract *c, struct slc_error *err)
{
    const uint64_t tiles = slc_min_u64(c->info->tile_count, SAMPLE_TILES);
    struct slc_entries sample = {.order = c->job.kept_count};
    enum slc_status status = slc_buffer_create(&c->sample, sample_bytes(c), SLC_PAGES_SMALL, err);

    c->stretch = tiles > 0 ? (uint32_t)(SAMPLE_ROWS / tiles) : 0;
    for (uint64_t t = 0; t < tiles && status == SLC_OK; t++) {
        const struct slc_tile_scan_options scan = {.files = c->store.files,
                                                   .reader = c->store.reader,
                                                   .workers = 1,
                                                   .last_row = UINT64_MAX,
                                                   .first_tile = c->info->tile_count * t / tiles};

        status = slc_tile_scan(
            &scan,
            &(struct slc_tile_scan_steps){.context = c, .decode = sample_tile, .in_turn = one_tile},
            err);
    }
    for (unsigned k = 0; k < c->job.kept_count; k++) {
        sample.coords[k] = (uint64_t *)c->sample.data + (uint64_t)k * SAMPLE_ROWS;
    }
    sample.count = c->sampled;
    if (status == SLC_OK && sample.count > 0) {
        status = slc_builder_sample(c->builder, &sample, (uint32_t)tiles, c->info->nnz, err);
    }
    slc_buffer_destroy(&c->sample);
    return status;
}

static enum slc_status scan(struct contract *c, struct slc_error *err)
{
    const struct slc_tile_scan_options options = {.files = c->store.files,
                                                  .reader = c->store.reader,
                                                  .workers = c->workers,
                                                  .last_row = UINT64_MAX};
    const struct slc_tile_scan_steps steps = {
        .context = c, .decode = contract_tile, .in_turn = c->builder == NULL ? add_tile_sum : NULL};

    return slc_tile_scan(&options, &steps, err);
}

static void release_operands(struct contract *c)
{
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_matrix_destroy(&c->vectors[n]);
        slc_labels_destroy(&c->labels[n]);
    }
    slc_buffer_destroy(&c->memory);
}

static enum slc_status contract_to_number(struct contract *c, struct slc_error *err)
{
    enum slc_status status = scan(c, err);

    if (status == SLC_OK && !isfinite(c->report->scalar)) {
        status = slc_fail(err, SLC_ERR_INPUT,
                          "the products add up to %g, beyond the range of f64: scale the vectors",
                          c->report->scalar);
    }
    return status;
}

static enum slc_status contract_to_store(struct contract *c,
                                         const struct slc_builder_options *build,
                                         struct slc_error *err)
{
    struct slc_store_origin origin = {.dialect = "ttv", .writer = "sluice " SLC_VERSION};
    enum slc_status status = slc_builder_create(build, c->job.kept_count, &c->builder, err);

    if (status != SLC_OK) {
        return status;
    }
    status = give_sample(c, err);
    if (status == SLC_OK) {
        status = scan(c, err);
    }
    if (status != SLC_OK) {
        slc_builder_abandon(c->builder);
        return status;
    }
    /* Before a store is sorted in their place. */
    release_operands(c);
    (void)snprintf(origin.source, sizeof origin.source, "%s", c->options->store);
    return slc_builder_finish(c->builder, 0, c->report->dims, &origin, &c->report->build, err);
}

static enum slc_status run(struct contract *c, struct slc_error *err)
{
    const struct slc_contract_options *options = c->options;
    struct slc_builder_options build = {.files = options->files,
                                        .output = options->output,
                                        .temp_folder = options->temp_folder,
                                        .overwrite = options->overwrite,
                                        .codec = options->codec,
                                        .value = SLC_VALUE_AUTO,
                                        .duplicates = SLC_DUPLICATES_SUM,
                                        .block_bytes = options->block_bytes,
                                        .max_temp = options->max_temp,
                                        .fibers = options->fibers,
                                        .run = options->run,
                                        .relabel = options->relabel};
    enum slc_status status = divide_modes(c, err);

    if (status == SLC_OK) {
        status = divide_memory(c, &build, err);
    }
    if (status == SLC_OK) {
        status = read_operands(c, err);
    }
    if (status == SLC_OK) {
        status = slc_buffer_create(&c->memory, c->workers * slc_contract_tile_bytes(&c->job),
                                   SLC_PAGES_SMALL, err);
    }
    if (status == SLC_OK) {
        status =
            c->job.kept_count > 0 ? contract_to_store(c, &build, err) : contract_to_number(c, err);
    }
    for (unsigned w = 0; w < c->workers; w++) {
        c->report->zero_sums += c->worker[w].zeros;
    }
    return status;
}

enum slc_status slc_contract(const struct slc_contract_options *options,
                             struct slc_contract_report *report,
                             struct slc_error *err)
{
    enum slc_status status = check_options(options, err);
    struct contract *c;

    *report = (struct slc_contract_report){.order = 0};
    if (status != SLC_OK) {
        return status;
    }
    c = slc_calloc(1, sizeof *c);
    if (c == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to multiply a tensor");
    }
    c->options = options;
    c->report = report;
    c->budget_bytes =
        options->memory_bytes == 0 ? slc_memory_total() / 5 * 4 : options->memory_bytes;
    status = slc_store_open_within(options->files, options->store, c->budget_bytes, &c->store, err);
    if (status == SLC_OK) {
        c->info = slc_reader_info(c->store.reader);
        report->nnz = c->info->nnz;
        status = run(c, err);
        release_operands(c);
        slc_store_close(&c->store);
    }
    slc_free(c);
    return status;
}
