/* Builds a sorted-n or fiber-n layout. Scans and encoding alternate, and each uses all workers.
 * First, a batch of ranges is gathered and each range is sorted. Then one worker queues the tiles
 * of the batch, and all workers encode them. A partition that does not fit in memory consists of
 * several ranges. Only complete tiles are encoded; the remaining nonzeros are kept for the next
 * batch. */
#include "convert/layout/sorted_build.h"

#include "base/error/clock.h"
#include "base/hash.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "convert/build/build_tiles.h"
#include "convert/build/tile_cut.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Must be incremented when a change of the code cuts partitions or chooses keys differently, so
 * that a build that an older version began is not resumed. */
#define CUTS_VERSION 2U

struct build {
    const struct slc_sorted_options *options;
    const struct slc_layout_info *info;
    struct slc_sorted_report *report;
    struct slc_sorted_plan plan;
    struct slc_gather *gather;
    struct slc_writer *writer;
    struct slc_writer_kept kept; /* nonzeros and partitions that an interrupted build left */
    struct slc_tiles *tiles;
    struct slc_tile_cutter cutter;
    struct slc_buffer area;
    struct slc_key_columns gathered;
    struct slc_key_columns scratch; /* scratch of the sort, as large as `gathered` */

    /* Position of the next tile. Tiles are queued in file order. */
    uint64_t part;      /* the current partition */
    uint64_t part_done; /* nonzeros of the current partition that are already queued */
    uint64_t available; /* number of gathered nonzeros */
    uint64_t listed;    /* gathered nonzeros that are already in a tile */
    uint32_t borrowed;  /* tiles in the area that are not in the file yet */
    bool all_listed;    /* protected by the tiles' lock */
    struct slc_error fault;
};

static uint64_t tag_of(const struct slc_layout_info *info)
{
    const uint64_t parts[] = {CUTS_VERSION, info->header_hash, info->content_sum,
                              slc_sorted_part_nnz(info->nnz)};

    return slc_hash64(parts, sizeof parts);
}

/* For fiber-n: returns how many of the next `fit` nonzeros form a tile that ends with a complete
 * fiber; `fit` if they are all in one fiber. */
static uint32_t end_with_fiber(const struct build *build, uint64_t at, uint32_t fit)
{
    const struct slc_key_columns rest = slc_key_columns_from(build->gathered, at);
    const slc_u128 next = slc_key_columns_get(rest, fit);
    uint32_t end = fit;

    while (end > 0 &&
           slc_key_same_fiber(&build->plan.keys, slc_key_columns_get(rest, end - 1), next)) {
        end--;
    }
    return end > 0 ? end : fit;
}

/* Cuts the next tile from the gathered nonzeros. Sets *nnz to its size, or to 0 if further nonzeros
 * may belong to the tile. */
static struct slc_tile_source cut_tile(struct build *build, uint32_t *nnz)
{
    const struct slc_key_columns *gathered = &build->gathered;
    const bool fibers = build->options->layout == SLC_LAYOUT_FIBER;
    uint64_t at = build->listed;
    uint64_t rest = build->plan.cuts.parts[build->part].nnz - build->part_done;
    uint64_t needed = slc_min_u64(SLC_TILE_NNZ, rest);
    uint32_t have = (uint32_t)slc_min_u64(needed, build->available - at);
    const uint64_t *hi = gathered->hi == NULL ? NULL : gathered->hi + at;
    uint32_t fit = slc_tile_cutter_fit(&build->cutter, gathered->lo + at, hi, 0, have, false);
    bool one_upper;

    /* Only the next nonzero shows whether the tile, or its last fiber, continues. */
    *nnz = fit == have && (fibers ? have < rest && at + have == build->available : have < needed)
               ? 0
               : fit;
    if (fibers && *nnz > 0 && *nnz < rest) {
        *nnz = end_with_fiber(build, at, fit);
    }
    one_upper = hi != NULL && *nnz > 0 && hi[0] == hi[*nnz - 1]; /* keys ascend */
    return (struct slc_tile_source){.nnz = *nnz,
                                    .key_lo = gathered->lo + at,
                                    .key_hi = one_upper ? NULL : hi,
                                    .upper = one_upper ? hi[0] : 0,
                                    .values = gathered->values + at};
}

/* Queues the tiles of the gathered nonzeros. */
static enum slc_status list_tiles(struct build *build, unsigned worker, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    while (build->listed < build->available && status == SLC_OK) {
        const struct slc_sorted_part *part = &build->plan.cuts.parts[build->part];
        uint32_t nnz;

        if (slc_stop_wanted(build->options->stop)) {
            return slc_stop_check(build->options->stop, err);
        }
        struct slc_tile_source tile = cut_tile(build, &nnz);
        if (nnz == 0) {
            break;
        }
        if (build->part_done == 0 && build->part > 0) {
            slc_tiles_next_partition(build->tiles, part->continued);
        }
        status = slc_tiles_queue(build->tiles, worker, &tile, &build->borrowed, err);
        build->listed += nnz;
        build->part_done += nnz;
        if (build->part_done == part->nnz) {
            build->part++;
            build->part_done = 0;
        }
    }
    return status;
}

static void emit_worker(void *context, unsigned worker, unsigned workers)
{
    struct build *build = context;
    struct slc_tiles *tiles = build->tiles;

    (void)workers;
    if (worker == 0) {
        struct slc_error ignored = SLC_ERROR_INIT;
        enum slc_status status = list_tiles(build, worker, &build->fault);

        /* Write the queued tiles also after an error: the writer must not stop within a tile. */
        if (slc_tiles_release(tiles, worker, &build->borrowed, &ignored) != SLC_OK &&
            status == SLC_OK) {
            build->fault = ignored;
        }
        slc_tiles_lock(tiles);
        build->all_listed = true;
        slc_tiles_wake(tiles);
        slc_tiles_unlock(tiles);
        return;
    }
    slc_tiles_lock(tiles);
    while (!build->all_listed && !slc_tiles_failed(tiles)) {
        if (!slc_tiles_encode_next(tiles, worker)) {
            slc_tiles_wait(tiles);
        }
    }
    slc_tiles_unlock(tiles);
}

/* Encodes and writes the gathered nonzeros, except for a last tile that may be incomplete. */
static enum slc_status write_gathered(struct build *build, struct slc_error *err)
{
    uint64_t start_ns = slc_clock_ns();

    build->all_listed = false;
    slc_error_clear(&build->fault);
    enum slc_status status = slc_team_run(build->plan.workers, emit_worker, build, err);
    SLC_THEN(status, slc_error_pass(err, &build->fault));
    build->report->emit_seconds += slc_seconds_since(start_ns);
    return status;
}

/* Moves the nonzeros that are not in a tile yet to the beginning of the area. */
static void move_rest(struct build *build)
{
    const struct slc_key_columns *gathered = &build->gathered;
    uint64_t rest = build->available - build->listed;

    memmove(gathered->lo, gathered->lo + build->listed, rest * sizeof *gathered->lo);
    memmove(gathered->values, gathered->values + build->listed, rest * sizeof *gathered->values);
    if (gathered->hi != NULL) {
        memmove(gathered->hi, gathered->hi + build->listed, rest * sizeof *gathered->hi);
    }
    build->available = rest;
    build->listed = 0;
}

/* The ranges of a batch while they are sorted. */
struct batch {
    struct build *build;
    uint64_t first;
};

static void sort_ranges(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct batch *batch = context;
    const struct build *build = batch->build;
    const struct slc_gather_range *ranges = build->plan.ranges + batch->first;
    uint64_t at = build->available;

    (void)worker;
    for (uint64_t r = 0; r < begin; r++) {
        at += ranges[r].nnz;
    }
    for (uint64_t r = begin; r < end; r++) {
        if (!slc_stop_wanted(build->options->stop)) {
            slc_column_sort(slc_key_columns_from(build->gathered, at),
                            slc_key_columns_from(build->scratch, at), ranges[r].nnz);
        }
        at += ranges[r].nnz;
    }
}

/* Gathers `count` ranges after the nonzeros of an incomplete tile, and sorts each range. */
static enum slc_status
gather_batch(struct build *build, uint64_t first, uint64_t count, struct slc_error *err)
{
    const struct slc_key_columns out = slc_key_columns_from(build->gathered, build->available);
    struct batch batch = {build, first};
    uint64_t start_ns = slc_clock_ns();
    enum slc_status status =
        slc_gather_ranges(build->gather, build->plan.ranges + first, count, &out, err);

    build->report->gather_scans++;
    build->report->gather_seconds += slc_seconds_since(start_ns);
    if (status == SLC_OK && build->plan.sorts) {
        start_ns = slc_clock_ns();
        status = slc_team_for(build->plan.workers, count, 1, sort_ranges, &batch, err);
        build->report->sort_seconds += slc_seconds_since(start_ns);
    }
    if (status == SLC_OK && slc_stop_wanted(build->options->stop)) {
        status = slc_fail(err, SLC_ERR_INTERRUPTED, "stopped before its end");
    }
    for (uint64_t r = first; r < first + count; r++) {
        build->available += build->plan.ranges[r].nnz;
    }
    return status;
}

/* Removes the `done` nonzeros that are already in the file, up to key `last`, from the ranges.
 * Returns the first range that is still needed. */
static uint64_t skip_done(struct slc_sorted_plan *plan, uint64_t done, slc_u128 last)
{
    uint64_t range = 0;

    while (range < plan->range_count && done >= plan->ranges[range].nnz) {
        done -= plan->ranges[range++].nnz;
    }
    if (done > 0) {
        plan->ranges[range].first_key = last + 1;
        plan->ranges[range].nnz -= done;
    }
    return range;
}

/* Builds the layout, starting after the nonzeros that are already in the file. */
static enum slc_status build_parts(struct build *build, struct slc_error *err)
{
    struct slc_sorted_plan *plan = &build->plan;
    enum slc_status status = SLC_OK;
    uint64_t range = skip_done(plan, build->kept.nnz, build->kept.last_key);

    while (range < plan->range_count && status == SLC_OK) {
        uint64_t batch = slc_sorted_plan_batch(plan, range, build->available);

        assert(batch > 0); /* every range fits the area next to an incomplete tile */
        status = gather_batch(build, range, batch, err);
        range += batch;
        if (status == SLC_OK) {
            status = write_gathered(build, err);
            move_rest(build);
        }
    }
    assert(status != SLC_OK || (build->part == plan->cuts.count && build->available == 0));
    return status;
}

/* Returns columns for area_nnz nonzeros, starting at byte `at` of the area. */
static struct slc_key_columns columns_at(const struct build *build, uint64_t at)
{
    const uint64_t nnz = build->plan.area_nnz;
    uint64_t *words = (uint64_t *)(void *)((char *)build->area.data + at / 8 * 8);

    return (struct slc_key_columns){.lo = words,
                                    .hi = build->info->keys.bits > 64 ? words + 2 * nnz : NULL,
                                    .values = (double *)(void *)(words + nnz)};
}

/* Allocates memory for nonzeros, and the encoders. */
static enum slc_status allocate_memory(struct build *build, struct slc_error *err)
{
    const struct slc_sorted_plan *plan = &build->plan;

    SLC_TRY(slc_buffer_create(&build->area, plan->area_bytes,
                              plan->area_bytes % (2 << 20) == 0 ? SLC_PAGES_HUGE : SLC_PAGES_SMALL,
                              err));
    build->gathered = columns_at(build, 0);
    if (plan->sorts) {
        build->scratch = columns_at(build, plan->area_bytes / 2);
    }
    slc_tile_cutter_init(&build->cutter, &plan->keys, build->info->dims);
    SLC_TRY(slc_sorted_plan_gather(plan, build->options, &build->gather, err));
    return slc_tiles_create(&(struct slc_tiles_options){.layout = &plan->keys,
                                                        .content = &build->info->content_keys,
                                                        .codec = build->info->codec,
                                                        .workers = plan->workers,
                                                        .writer = build->writer},
                            &build->tiles, err);
}

/* Returns true if the nonzeros that an interrupted build left can be the beginning of this layout.
 * Their checksums do not prove which build wrote them. */
static bool kept_fits(const struct build *build)
{
    const struct slc_sorted_cuts *cuts = &build->plan.cuts;
    const struct slc_writer_kept *kept = &build->kept;
    uint64_t nnz = 0;

    if (build->options->layout == SLC_LAYOUT_FIBER) {
        return kept->nnz <= build->info->nnz;
    }
    for (uint64_t part = 0; part < kept->partitions; part++) {
        nnz += cuts->parts[part].nnz;
    }
    if (nnz != kept->nnz || kept->partitions == 0 || kept->partitions == cuts->count) {
        return nnz == kept->nnz;
    }
    return cuts->parts[kept->partitions].continued
               ? cuts->parts[kept->partitions].first_row == kept->last_row
               : cuts->parts[kept->partitions].first_row > kept->last_row;
}

static enum slc_status open_writer(struct build *build, struct slc_error *err)
{
    const struct slc_layout_info *info = build->info;
    const struct slc_writer_options options = {.files = build->options->files,
                                               .path = build->options->path,
                                               .layout = build->options->layout,
                                               .layout_mode = build->options->mode,
                                               .order = info->order,
                                               .dims = info->dims,
                                               .relabelled_modes = info->relabelled_modes,
                                               .run = build->plan.keys.run,
                                               .content_run = &info->content_keys.run,
                                               .codec = info->codec,
                                               .block_bytes = build->options->block_bytes,
                                               .keep_journal = build->options->keep_journal};
    enum slc_status status = slc_writer_resume(&options, tag_of(info), build->plan.cuts.count,
                                               &build->writer, &build->kept, err);

    if (status == SLC_OK && !kept_fits(build)) {
        /* Remove the file, so that the build starts from the beginning. */
        slc_writer_abandon(build->writer);
        build->writer = NULL;
        status = slc_writer_resume(&options, tag_of(info), build->plan.cuts.count, &build->writer,
                                   &build->kept, err);
    }
    build->part = build->kept.partitions;
    if (build->options->layout == SLC_LAYOUT_FIBER) {
        build->part_done = build->kept.nnz; /* nonzeros of the only partition */
        build->part = build->kept.nnz == info->nnz ? build->plan.cuts.count : 0;
    }
    build->report->kept_nnz = build->kept.nnz;
    return status;
}

/* Checks that the written nonzeros match the header of the input file. */
static enum slc_status check_summary(const struct build *build, struct slc_error *err)
{
    const struct slc_writer_summary *summary = &build->report->summary;
    const struct slc_layout_info *info = build->info;

    if (summary->nnz == info->nnz && summary->content_sum == info->content_sum &&
        summary->value_type == info->value_type) {
        return SLC_OK;
    }
    return slc_fail_file(err, SLC_ERR_DAMAGED, slc_reader_path(build->options->reader),
                         "%" PRIu64 " nonzeros with content sum %016" PRIx64
                         " were sorted, but the header states %" PRIu64
                         " nonzeros with content sum %016" PRIx64
                         ": check the store to find the damage in the file",
                         summary->nnz, summary->content_sum, info->nnz, info->content_sum);
}

/* Removes a finished file with wrong nonzeros, and its journal, so that no build uses it. */
static void remove_invalid(const struct slc_sorted_options *options)
{
    static const char ending[] = ".journal";
    const size_t bytes = strlen(options->path) + sizeof ending;
    char *journal = slc_malloc(bytes);

    (void)options->files->unlink(options->files->self, options->path);
    if (journal != NULL) {
        (void)snprintf(journal, bytes, "%s%s", options->path, ending);
        (void)options->files->unlink(options->files->self, journal);
    }
    slc_free(journal);
}

/* Finishes the writer or, after an error, suspends it so that a later call can resume. */
static enum slc_status
end_writer(struct build *build, enum slc_status status, struct slc_error *err)
{
    struct slc_writer *writer = build->writer;

    build->writer = NULL;
    if (status == SLC_OK) {
        status = slc_writer_finish(writer, &build->report->summary, err);
        if (status == SLC_OK) {
            status = check_summary(build, err);
            if (status != SLC_OK) {
                remove_invalid(build->options);
            }
        }
        return status;
    }
    if (status == SLC_ERR_DAMAGED) {
        slc_writer_abandon(writer);
    } else if (writer != NULL) {
        struct slc_error second = SLC_ERROR_INIT;

        /* Ignore a second fault: a later call verifies the kept blocks. */
        (void)!slc_writer_suspend(writer, &second);
    }
    return status;
}

enum slc_status slc_sorted_build(const struct slc_sorted_options *options,
                                 struct slc_sorted_report *report,
                                 struct slc_error *err)
{
    struct build *build = slc_calloc(1, sizeof *build);

    SLC_TRY(slc_check_memory(build != NULL, err, "to build a layout"));
    memset(report, 0, sizeof *report);
    build->options = options;
    build->report = report;
    build->info = slc_reader_info(options->reader);
    enum slc_status status = slc_sorted_plan_make(options, &build->plan, err);
    if (status == SLC_OK) {
        report->partitions = options->layout == SLC_LAYOUT_SORTED ? build->plan.cuts.count : 0;
        report->split_rows = build->plan.cuts.split_rows;
        report->run = build->plan.keys.run;
        report->count_scans = build->plan.count_scans;
        report->count_seconds = build->plan.count_seconds;
        if (options->planned != NULL) {
            options->planned(options->planned_context, &build->plan);
        }
        status = open_writer(build, err);
    }
    SLC_THEN(status, allocate_memory(build, err));
    SLC_THEN(status, build_parts(build, err));
    if (build->tiles != NULL) {
        slc_tiles_seconds(build->tiles, &report->encode_seconds, &report->write_seconds);
    }
    slc_tiles_destroy(build->tiles);
    status = end_writer(build, status, err);
    slc_gather_destroy(build->gather);
    slc_buffer_destroy(&build->area);
    slc_sorted_plan_destroy(&build->plan);
    slc_free(build);
    return status;
}

/* Fills in the report from a finished file. */
static void report_finished(const struct slc_reader *reader, struct slc_sorted_report *report)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    bool before = false;

    report->partitions = info->partition_count;
    report->kept_nnz = info->nnz;
    report->run = info->keys.run;
    for (uint64_t p = 0; p < info->partition_count; p++) {
        struct slc_partition partition;

        slc_reader_partition(reader, p, &partition);
        report->split_rows += partition.continued && !before;
        before = partition.continued;
    }
}

static enum slc_status
sync_file(const struct slc_files *files, const char *path, struct slc_error *err)
{
    const int fd = files->open(files->self, path, O_RDONLY | SLC_OPEN_OWN, 0);
    int code = fd;

    if (fd >= 0) {
        code = files->sync(files->self, fd);
        (void)files->close(files->self, fd);
    }
    return slc_check_call(code, err, path, "syncing the block file");
}

enum slc_status slc_sorted_finished(const struct slc_sorted_options *options,
                                    const char *path,
                                    struct slc_sorted_report *report,
                                    bool *finished,
                                    struct slc_error *err)
{
    const struct slc_layout_info *from = slc_reader_info(options->reader);
    const struct slc_writer_options written = {
        .files = options->files, .path = options->path, .block_bytes = options->block_bytes};
    struct slc_error fault = SLC_ERROR_INIT;
    struct slc_reader *reader = NULL;
    enum slc_status status = slc_reader_open(options->files, path, &reader, &fault);

    *finished = false;
    memset(report, 0, sizeof *report);
    if (status == SLC_ERR_FORMAT || status == SLC_ERR_DAMAGED || status == SLC_ERR_UNSUPPORTED ||
        (status == SLC_ERR_IO && fault.system_errno == ENOENT)) {
        return SLC_OK;
    }
    if (status != SLC_OK) {
        slc_error_pass(err, &fault);
        return status;
    }
    const struct slc_layout_info *info = slc_reader_info(reader);
    if (info->layout == options->layout && info->layout_mode == options->mode &&
        info->nnz == from->nnz && info->content_sum == from->content_sum) {
        status =
            slc_writer_finished(&written, tag_of(from), reader, &report->summary, finished, err);
    }
    if (status == SLC_OK && *finished) {
        report_finished(reader, report);
        status = sync_file(options->files, path, err);
    }
    slc_reader_close(reader);
    return status;
}
