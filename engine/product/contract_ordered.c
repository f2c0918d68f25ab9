/* Writes the result of a contraction whose sums arrive in key order. This is the case if the lowest
 * bits of the keys belong to the contracted modes: without these bits, the key of a nonzero is the
 * key of its sum. The nonzeros of a fiber are then adjacent, and nothing is sorted or spilled.
 * Every worker computes the keys of its tile's sums and copies the sums to their final positions
 * (ordered.h). The first and the last fiber of a tile may continue in the neighbouring tiles. Cost:
 * reads the store once, writes the result once. */
#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/version.h"
#include "convert/build/build_manifest.h"
#include "convert/build/build_memory.h"
#include "convert/build/resume/build_folder.h"
#include "convert/build/sort/key_tables.h"
#include "engine/product/contract_internal.h"
#include "engine/product/ordered.h"

#include <stdio.h>
#include <string.h>

enum {
    /* Memory for key tables, the writer's index, paths, and records of pieces. */
    SMALL_OBJECTS_BYTES = 1 << 20
};

/* The sums of a worker's tile. */
struct piece {
    struct slc_ordered_piece sums; /* points to key_lo, key_hi and values */
    struct slc_ordered_place place;
    uint64_t *key_lo;
    uint64_t *key_hi; /* NULL if keys have at most 64 bits */
    double *values;
    bool failed; /* true if slc_ordered_reserve failed */
};

/* A store that is written. */
struct result {
    struct slc_build_folder folder;
    struct slc_writer *writer;
    struct slc_tiles *tiles;
    struct slc_ordered *ordered;
    struct piece *pieces; /* one per worker */
    uint64_t entries;
};

struct ordering {
    struct slc_contract_run *run;
    const struct slc_key_layout *layout;
    struct slc_key_tables tables;
    struct slc_buffer memory; /* memory of all pieces */
    struct result *results;
};

/* Returns the fiber run of the store, with the number that its mode has in the result; no run if
 * the mode is contracted. */
static struct slc_fiber_run inherited_run(const struct slc_contract_run *run)
{
    const struct slc_fiber_run *source = &run->info->keys.run;

    for (unsigned k = 0; k < run->job.kept_count; k++) {
        if (run->job.kept_mode[k] == source->mode) {
            return (struct slc_fiber_run){k, source->bits};
        }
    }
    return (struct slc_fiber_run){0, 0};
}

static slc_u128 mask_of(const struct slc_key_layout *layout, unsigned mode)
{
    return slc_key_join(layout->mask_lo[mode], layout->mask_hi[mode]);
}

bool slc_contract_keeps_order(const struct slc_contract_run *run, struct slc_key_layout *layout)
{
    const struct slc_contract_options *options = run->options;
    const struct slc_key_layout *source = &run->info->keys;
    struct slc_fiber_run wanted = {0, 0};

    if (options->relabel != SLC_RELABEL_NONE) {
        return false;
    }
    if (options->fibers != SLC_FIBERS_NONE) {
        wanted = options->fibers == SLC_FIBERS_GIVEN ? options->run : inherited_run(run);
    }
    if (slc_key_layout_init_run(layout, run->job.kept_count, run->report->dims, wanted, NULL) !=
        SLC_OK) {
        return false; /* the builder reports the error */
    }
    unsigned dropped = source->bits - layout->bits;
    for (unsigned k = 0; k < run->job.kept_count; k++) {
        const unsigned mode = run->job.kept_mode[k];

        if (run->report->dims[k] > SLC_ORDERED_MODE_MAX ||
            slc_manifest_permutation(&run->store.manifest, mode) != NULL ||
            mask_of(layout, k) != (dropped < 128 ? mask_of(source, mode) >> dropped : 0) ||
            mask_of(layout, k) << (dropped % 128) != mask_of(source, mode)) {
            return false;
        }
    }
    return true;
}

static uint64_t piece_bytes(const struct slc_key_layout *layout)
{
    return SLC_TILE_NNZ * ((layout->bits > 64 ? 2 : 1) * sizeof(uint64_t) + sizeof(double));
}

/* Returns the total bytes of a contraction without sorting; see slc_contract_needs_fn. */
static uint64_t needed_bytes(const struct slc_contract_run *run, const void *context)
{
    const struct slc_key_layout *layout = context;
    const unsigned workers = run->workers;
    const uint64_t each = SMALL_OBJECTS_BYTES + slc_build_writer_bytes(run->options->block_bytes) +
                          workers * slc_encoder_memory_bytes(layout, run->options->codec) +
                          slc_buffer_footprint(workers * piece_bytes(layout), SLC_PAGES_SMALL) +
                          slc_ordered_bytes(layout, workers);

    return run->fixed_bytes + slc_contract_scan_bytes(run) + run->job.results * each;
}

enum slc_status slc_contract_fits_ordered(struct slc_contract_run *run,
                                          const struct slc_key_layout *layout,
                                          bool *fits,
                                          struct slc_error *err)
{
    uint64_t least;
    const enum slc_status status =
        slc_contract_fit_threads(run, needed_bytes, layout, &least, &run->least_ordered, err);

    *fits = status == SLC_OK && run->least_ordered <= run->budget_bytes;
    run->report->least_bytes = least + SLC_CONTRACT_MARGIN;
    if (*fits) {
        slc_contract_set_spare(run, run->budget_bytes - run->least_ordered);
    }
    return status;
}

/* Appends sums to the worker's piece. */
static enum slc_status append_sums(void *context,
                                   unsigned worker,
                                   unsigned result,
                                   const struct slc_entries *entries,
                                   struct slc_error *err)
{
    const struct ordering *ordering = context;
    struct piece *piece = &ordering->results[result].pieces[worker];
    const uint32_t have = piece->sums.count;

    (void)err;
    for (uint32_t begin = 0; begin < entries->count; begin += SLC_KEY_BATCH) {
        const uint32_t count = (uint32_t)slc_min_u64(entries->count - begin, SLC_KEY_BATCH);

        slc_key_tables_form(&ordering->tables, entries->coords, begin, count, 0,
                            piece->key_lo + have + begin,
                            piece->key_hi != NULL ? piece->key_hi + have + begin : NULL);
    }
    memcpy(piece->values + have, entries->values, entries->count * sizeof *piece->values);
    piece->sums.count += entries->count;
    return SLC_OK;
}

static enum slc_status
sum_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct ordering *ordering = context;

    for (unsigned r = 0; r < ordering->run->job.results; r++) {
        ordering->results[r].pieces[worker].sums.count = 0;
    }
    return slc_contract_one(ordering->run, worker, tile, append_sums, ordering, err);
}

/* Reserves the positions of a worker's piece. Returns false if the result has failed. */
static bool reserve_in(struct result *result, unsigned worker)
{
    struct piece *piece = &result->pieces[worker];
    struct slc_error err = SLC_ERROR_INIT;

    result->entries += piece->sums.count;
    piece->failed =
        slc_ordered_reserve(result->ordered, &piece->sums, &piece->place, &err) != SLC_OK;
    slc_tiles_lock(result->tiles);
    if (piece->failed) {
        slc_tiles_fail(result->tiles, &err);
    }
    bool go_on = !slc_tiles_failed(result->tiles);
    slc_tiles_unlock(result->tiles);
    return go_on;
}

static bool reserve_pieces(void *context, unsigned worker)
{
    const struct ordering *ordering = context;
    bool go_on = true;

    for (unsigned r = 0; r < ordering->run->job.results; r++) {
        go_on &= reserve_in(&ordering->results[r], worker);
    }
    return go_on;
}

static void deliver_pieces(void *context, unsigned worker)
{
    const struct ordering *ordering = context;

    for (unsigned r = 0; r < ordering->run->job.results; r++) {
        const struct piece *piece = &ordering->results[r].pieces[worker];

        if (!piece->failed) {
            slc_ordered_deliver(ordering->results[r].ordered, worker, &piece->sums, &piece->place);
        }
    }
}

static enum slc_status allocate_pieces(struct ordering *ordering, struct slc_error *err)
{
    const unsigned workers = ordering->run->workers, results = ordering->run->job.results;
    const bool wide = ordering->layout->bits > 64;

    SLC_TRY(slc_buffer_create(&ordering->memory,
                              (uint64_t)results * workers * piece_bytes(ordering->layout),
                              SLC_PAGES_SMALL, err));
    uint64_t *at = ordering->memory.data;
    struct piece *pieces = slc_calloc((size_t)results * workers, sizeof *pieces);
    SLC_TRY(slc_check_memory(pieces != NULL, err, "to multiply with %u threads", workers));
    for (unsigned r = 0; r < results; r++) {
        ordering->results[r].pieces = pieces + (size_t)r * workers;
    }
    for (unsigned p = 0; p < results * workers; p++) {
        struct piece *piece = &pieces[p];

        piece->key_lo = at;
        at += SLC_TILE_NNZ;
        piece->key_hi = wide ? at : NULL;
        at += wide ? SLC_TILE_NNZ : 0;
        piece->values = (double *)(void *)at;
        at += SLC_TILE_NNZ;
        piece->sums.key_lo = piece->key_lo;
        piece->sums.key_hi = piece->key_hi;
        piece->sums.values = piece->values;
    }
    return SLC_OK;
}

static enum slc_status
open_output(const struct ordering *ordering, struct result *result, struct slc_error *err)
{
    const struct slc_contract_options *options = ordering->run->options;
    char *path = slc_path_join(result->folder.part, SLC_BLCO_NAME);
    enum slc_status status =
        path == NULL
            ? slc_fail(err, SLC_ERR_MEMORY, "no memory for the path of the block file")
            : slc_writer_open(&(struct slc_writer_options){.files = result->folder.files,
                                                           .path = path,
                                                           .layout = SLC_LAYOUT_BLCO,
                                                           .order = ordering->layout->order,
                                                           .dims = ordering->run->report->dims,
                                                           .run = ordering->layout->run,
                                                           .codec = options->codec,
                                                           .block_bytes = options->block_bytes},
                              &result->writer, err);

    slc_free(path);
    SLC_TRY(status);
    SLC_TRY(slc_tiles_create(&(struct slc_tiles_options){.layout = ordering->layout,
                                                         .codec = options->codec,
                                                         .workers = ordering->run->workers,
                                                         .writer = result->writer},
                             &result->tiles, err));
    return slc_ordered_create(&(struct slc_ordered_options){.layout = ordering->layout,
                                                            .dims = ordering->run->report->dims,
                                                            .workers = ordering->run->workers,
                                                            .tiles = result->tiles},
                              &result->ordered, err);
}

static enum slc_status scan_tiles(struct ordering *ordering, struct slc_error *err)
{
    const struct slc_tile_steps steps = {.context = ordering,
                                         .decode = sum_tile,
                                         .in_turn = reserve_pieces,
                                         .deliver = deliver_pieces};
    enum slc_status status = slc_contract_scan(ordering->run, &steps, err);

    for (unsigned r = 0; r < ordering->run->job.results; r++) {
        SLC_THEN(status, slc_tiles_status(ordering->results[r].tiles, err));
    }
    return status;
}

/* Writes the remaining sums, the end of the block file and the manifest. */
static enum slc_status
finish_store(const struct ordering *ordering, unsigned number, struct slc_error *err)
{
    struct slc_contract_run *run = ordering->run;
    struct result *result = &ordering->results[number];
    struct slc_builder_report *report = slc_contract_build_report(run, number);
    struct slc_store_origin origin = {.dialect = "ttv", .writer = "sluice " SLC_VERSION};
    struct slc_ordered_counts counts = {.zeros = 0};
    struct slc_writer *writer = result->writer;

    SLC_TRY(slc_ordered_finish(result->ordered, &counts, err));
    slc_tiles_seconds(result->tiles, &report->encode_seconds, &report->write_seconds);
    report->entries = result->entries;
    report->duplicates = counts.duplicates;
    report->explicit_zeros = counts.zeros;
    report->fibers.run = ordering->layout->run;
    result->writer = NULL;
    uint64_t start_ns = slc_clock_ns();
    enum slc_status status = slc_writer_finish(writer, &report->summary, err);
    report->write_seconds += slc_seconds_since(start_ns);
    (void)snprintf(origin.source, sizeof origin.source, "%s", run->options->store);
    slc_contract_record_part(run, number, &origin);
    SLC_THEN(status, slc_build_manifest_write(
                         &(struct slc_build_manifest){
                             .files = result->folder.files,
                             .folder = result->folder.part,
                             .order = ordering->layout->order,
                             .dims = run->report->dims,
                             .codec = run->options->codec,
                             .duplicates = SLC_DUPLICATES_SUM,
                             .attach = run->options->names ? slc_names_carry : NULL,
                             .attached = &run->names,
                             .report = report},
                         &origin, err));
    return status;
}

/* Completes all stores, and then publishes them one after the other. */
static enum slc_status finish_stores(struct ordering *ordering, struct slc_error *err)
{
    const struct slc_contract_run *run = ordering->run;
    const unsigned results = run->job.results;

    for (unsigned r = 0; r < results; r++) {
        SLC_TRY(finish_store(ordering, r, err));
    }
    for (unsigned r = 0; r < results; r++) {
        if (run->options->publishing != NULL) {
            run->options->publishing();
        }
        SLC_TRY(slc_build_folder_publish(&ordering->results[r].folder, err));
    }
    return SLC_OK;
}

static void release_memory(struct ordering *ordering)
{
    for (unsigned r = 0; ordering->results != NULL && r < ordering->run->job.results; r++) {
        struct result *result = &ordering->results[r];

        slc_ordered_destroy(result->ordered);
        slc_tiles_destroy(result->tiles);
        slc_writer_abandon(result->writer);
        slc_build_folder_end(&result->folder);
    }
    slc_key_tables_destroy(&ordering->tables);
    slc_free(ordering->results != NULL ? ordering->results[0].pieces : NULL);
    slc_free(ordering->results);
    slc_buffer_destroy(&ordering->memory);
}

/* Creates the folder of every result. */
static enum slc_status create_folders(struct ordering *ordering, struct slc_error *err)
{
    const struct slc_contract_run *run = ordering->run;

    ordering->results = slc_calloc(run->job.results, sizeof *ordering->results);
    SLC_TRY(slc_check_memory(ordering->results != NULL, err, "to write results"));
    for (unsigned r = 0; r < run->job.results; r++) {
        SLC_TRY(slc_build_folder_create(&ordering->results[r].folder, run->store.files,
                                        slc_contract_output(run, r), run->options->overwrite, false,
                                        err));
    }
    return SLC_OK;
}

enum slc_status slc_contract_ordered(struct slc_contract_run *run,
                                     const struct slc_key_layout *layout,
                                     struct slc_error *err)
{
    struct ordering ordering = {.run = run, .layout = layout};

    if (run->options->dry_run) {
        return SLC_OK;
    }
    enum slc_status status = slc_contract_start(run, true, err);
    SLC_THEN(status, create_folders(&ordering, err));
    SLC_THEN(status, slc_key_tables_init(&ordering.tables, layout, err));
    SLC_THEN(status, allocate_pieces(&ordering, err));
    for (unsigned r = 0; r < run->job.results; r++) {
        SLC_THEN(status, open_output(&ordering, &ordering.results[r], err));
    }
    SLC_THEN(status, scan_tiles(&ordering, err));
    SLC_THEN(status, finish_stores(&ordering, err));
    release_memory(&ordering);
    return status;
}
