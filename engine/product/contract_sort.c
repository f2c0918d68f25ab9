/* Writes the result of a contraction whose sums do not arrive in key order. A builder sorts the
 * sums, and adds sums of a fiber that are not adjacent in the store. First, a sample of tiles
 * spread over the file is read, from which the builder computes its splitters. */
#include "base/memory/checked.h"
#include "base/version.h"
#include "convert/build/build_memory.h"
#include "convert/publish/build_complete.h"
#include "engine/product/contract_internal.h"
#include "storage/file/files.h"
#include "storage/scan/tile_scan.h"

#include <stdio.h>
#include <string.h>

enum {
    SAMPLE_ROWS = 32768,
    SAMPLE_TILES = 16,
    /* A part samples at most one tile of this number of blocks. */
    BLOCKS_PER_SAMPLE = 64,
    /* Reading may use 1 / SPARE_PART of the memory that remains with the smallest builder. Sorting
     * uses the rest, because memory for sorting saves more time than memory for reading. */
    SPARE_PART = 4
};

struct sorting {
    struct slc_contract_run *run;
    struct slc_builder *builders[SLC_CONTRACT_RESULTS_MAX]; /* one per result */
    struct slc_buffer sample;
    uint32_t sampled; /* number of sampled coordinates per mode */
    uint32_t stretch; /* maximum number of sums sampled per tile */
    /* zero sums in the sample; ignored, because the scan counts all zero sums */
    uint64_t zeros[SLC_CONTRACT_RESULTS_MAX];
};

static uint64_t sample_bytes(const struct slc_contract_run *run)
{
    return run->job.kept_count * (uint64_t)SAMPLE_ROWS * sizeof(uint64_t);
}

/* Returns the bytes that a contraction with run->workers workers needs in addition to the
 * builder. */
static uint64_t bytes_without_builder(const struct slc_contract_run *run)
{
    return run->fixed_bytes + slc_buffer_footprint(sample_bytes(run), SLC_PAGES_SMALL) +
           slc_contract_scan_bytes(run);
}

/* Returns the total bytes with the smallest builders; see slc_contract_needs_fn. `context` is the
 * builder's options. */
static uint64_t needed_bytes(const struct slc_contract_run *run, const void *context)
{
    struct slc_builder_options build = *(const struct slc_builder_options *)context;

    build.workers = run->workers;
    build.caller_bytes = bytes_without_builder(run);
    return build.caller_bytes +
           run->job.results * slc_builder_memory_min(&build, run->job.kept_count);
}

/* Chooses as many of the requested workers as fit with the smallest builders. The builders get most
 * of the remaining memory, in equal parts, and reading gets the rest. */
static enum slc_status divide_memory(struct slc_contract_run *run,
                                     struct slc_builder_options *build,
                                     struct slc_error *err)
{
    uint64_t least, needs;

    SLC_TRY(slc_contract_fit_threads(run, needed_bytes, build, &least, &needs, err));
    run->report->least_bytes = SLC_CONTRACT_MARGIN + slc_min_u64(run->least_ordered, least);
    if (needs > run->budget_bytes) {
        return slc_contract_fail_budget(run, least, err);
    }
    slc_contract_set_spare(run, (run->budget_bytes - needs) / SPARE_PART);
    build->workers = run->workers;
    build->caller_bytes = bytes_without_builder(run) + run->spare_bytes;
    build->memory_bytes = (run->budget_bytes - build->caller_bytes) / run->job.results;
    return SLC_OK;
}

static enum slc_status push_sums(void *context,
                                 unsigned worker,
                                 unsigned result,
                                 const struct slc_entries *entries,
                                 struct slc_error *err)
{
    struct sorting *sorting = context;

    return slc_builder_push(sorting->builders[result], worker, entries, err);
}

static enum slc_status
push_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct sorting *sorting = context;

    return slc_contract_one(sorting->run, worker, tile, push_sums, sorting, err);
}

/* Adds the first sums of a tile for the first result to the sample, at most sorting->stretch of
 * them. */
static enum slc_status sample_sums(void *context,
                                   unsigned worker,
                                   unsigned result,
                                   const struct slc_entries *entries,
                                   struct slc_error *err)
{
    struct sorting *sorting = context;
    const uint32_t space =
        sorting->stretch - (uint32_t)slc_min_u64(sorting->stretch, entries->first);
    const uint32_t count = (uint32_t)slc_min_u64(entries->count, space);

    (void)worker;
    (void)err;
    if (result > 0) {
        return SLC_OK;
    }
    for (unsigned k = 0; k < sorting->run->job.kept_count; k++) {
        memcpy((uint64_t *)sorting->sample.data + (uint64_t)k * SAMPLE_ROWS + sorting->sampled,
               entries->coords[k], count * sizeof(uint64_t));
    }
    sorting->sampled += count;
    return SLC_OK;
}

static enum slc_status
sample_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct sorting *sorting = context;

    return slc_contract_tile(&sorting->run->job, tile, NULL, sorting->run->memory.data, sample_sums,
                             sorting, worker, sorting->zeros, err);
}

static bool one_tile(void *context, unsigned worker)
{
    (void)context;
    (void)worker;
    return false;
}

/* Returns the number of tiles to sample. A part reads few blocks, so it samples few tiles. */
static uint64_t count_samples(const struct slc_contract_run *run)
{
    const uint64_t most = slc_min_u64(slc_contract_tiles(run), SAMPLE_TILES);

    return run->job.part == NULL ? most
                                 : slc_min_u64(most, run->part.block_count / BLOCKS_PER_SAMPLE);
}

/* Sets *entry to the block of sample `number` of `count` of a part. */
static void find_sample(const struct slc_contract_run *run,
                        uint64_t number,
                        uint64_t count,
                        struct slc_block_entry *entry)
{
    const uint64_t position = (2 * number + 1) * run->part.block_count / (2 * count);

    slc_reader_entry(run->reader, run->part.blocks[position], entry);
}

/* Returns the first tile of sample `number` of `count`. */
static uint64_t sample_at(const struct slc_contract_run *run, uint64_t number, uint64_t count)
{
    struct slc_block_entry entry;

    if (run->job.part == NULL) {
        return run->info->tile_count * number / count;
    }
    find_sample(run, number, count, &entry);
    return entry.first_tile;
}

/* Sets the number of bytes that the samples of a part read. */
static void count_sample_bytes(struct slc_contract_run *run)
{
    const uint64_t count = run->job.part != NULL ? count_samples(run) : 0;
    struct slc_block_entry entry;

    for (uint64_t i = 0; i < count; i++) {
        find_sample(run, i, count, &entry);
        run->report->sample_bytes += entry.padded_bytes;
    }
}

/* Samples tiles at equal distances in the file, so that the builders know the distribution of
 * coordinates, which is the same for all results except for sums that are zero. */
static enum slc_status sample_tiles(struct sorting *sorting, struct slc_error *err)
{
    const struct slc_contract_run *run = sorting->run;
    const uint64_t tiles = count_samples(run);
    struct slc_entries sample = {.order = run->job.kept_count};
    enum slc_status status =
        slc_buffer_create(&sorting->sample, sample_bytes(run), SLC_PAGES_SMALL, err);

    sorting->stretch = tiles > 0 ? (uint32_t)(SAMPLE_ROWS / tiles) : 0;
    for (uint64_t t = 0; t < tiles && status == SLC_OK; t++) {
        const struct slc_tile_scan_options scan = {.files = run->store.files,
                                                   .reader = run->reader,
                                                   .workers = 1,
                                                   .last_row = UINT64_MAX,
                                                   .first_tile = sample_at(run, t, tiles)};

        status = slc_tile_scan(&scan,
                               &(struct slc_tile_steps){
                                   .context = sorting, .decode = sample_tile, .in_turn = one_tile},
                               err);
    }
    for (unsigned k = 0; k < run->job.kept_count; k++) {
        sample.coords[k] = (uint64_t *)sorting->sample.data + (uint64_t)k * SAMPLE_ROWS;
    }
    sample.count = sorting->sampled;
    for (unsigned r = 0; r < run->job.results && status == SLC_OK && sample.count > 0; r++) {
        status =
            slc_builder_sample(sorting->builders[r], &sample, (uint32_t)tiles, run->info->nnz, err);
    }
    slc_buffer_destroy(&sorting->sample);
    return status;
}

static enum slc_status scan_tiles(struct sorting *sorting, struct slc_error *err)
{
    return slc_contract_scan(
        sorting->run, &(struct slc_tile_steps){.context = sorting, .decode = push_tile}, err);
}

static enum slc_status
create_builders(struct sorting *sorting, struct slc_builder_options *build, struct slc_error *err)
{
    for (unsigned r = 0; r < sorting->run->job.results; r++) {
        build->output = slc_contract_output(sorting->run, r);
        SLC_TRY(
            slc_builder_create(build, sorting->run->job.kept_count, &sorting->builders[r], err));
    }
    return SLC_OK;
}

/* Sorts and publishes the results one after the other. After an error, the remaining builders are
 * abandoned. */
static enum slc_status finish_builders(struct sorting *sorting, struct slc_error *err)
{
    const struct slc_contract_run *run = sorting->run;
    enum slc_status status = SLC_OK;

    for (unsigned r = 0; r < run->job.results; r++) {
        struct slc_store_origin origin = {.dialect = "ttv", .writer = "sluice " SLC_VERSION};

        (void)snprintf(origin.source, sizeof origin.source, "%s", run->options->store);
        slc_contract_record_part(run, r, &origin);
        if (status == SLC_OK) {
            status = slc_builder_finish(sorting->builders[r], 0, run->report->dims, &origin,
                                        slc_contract_build_report(run, r), err);
        } else {
            slc_builder_abandon(sorting->builders[r]);
        }
    }
    return status;
}

/* Returns true if the sums of a part that are zero are stored. The fibers that the order of the
 * joined store keeps together are chosen from all coordinates, with those of zero sums. */
static bool keeps_zeros(const struct slc_contract_run *run)
{
    return run->job.part != NULL && run->fibers == SLC_FIBERS_AUTO;
}

enum slc_status slc_contract_sorted(struct slc_contract_run *run, struct slc_error *err)
{
    const struct slc_contract_options *options = run->options;
    struct slc_builder_options build = {.files = options->files,
                                        .publishing = options->publishing,
                                        .stop = options->stop,
                                        .attach = options->names ? slc_names_carry : NULL,
                                        .attached = &run->names,
                                        .progress = options->progress,
                                        .context = options->context,
                                        .temp_folder = options->temp_folder,
                                        .overwrite = options->overwrite,
                                        .codec = options->codec,
                                        .value = SLC_VALUE_AUTO,
                                        .duplicates = SLC_DUPLICATES_SUM,
                                        .keep_zeros = keeps_zeros(run),
                                        .block_bytes = options->block_bytes,
                                        .max_temp = options->max_temp,
                                        .fibers = run->fibers,
                                        .run = run->run,
                                        .relabel = options->relabel};
    struct sorting sorting = {.run = run};
    enum slc_status status = divide_memory(run, &build, err);

    count_sample_bytes(run);
    if (run->options->dry_run) {
        return status;
    }
    SLC_THEN(status, slc_contract_start(run, false, err));
    SLC_THEN(status, slc_check_open_files(err));
    SLC_THEN(status, create_builders(&sorting, &build, err));
    SLC_THEN(status, sample_tiles(&sorting, err));
    SLC_THEN(status, scan_tiles(&sorting, err));
    if (status != SLC_OK) {
        for (unsigned r = 0; r < run->job.results; r++) {
            slc_builder_abandon(sorting.builders[r]);
        }
        return status;
    }
    /* The memory is released before the builders sort, because they use it to sort. */
    slc_contract_release(run);
    return finish_builders(&sorting, err);
}
