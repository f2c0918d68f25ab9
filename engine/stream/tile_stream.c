/* Implements tile streams. If steps have turns, tiles are assigned in ascending ordinal, so the
 * worker whose tile has the turn never waits for another worker. Memory is counted here instead of
 * by a plan, because there are no matrices, and the caller counts the memory of the process. */
#include "engine/stream/tile_stream.h"

#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "base/thread/turns.h"
#include "engine/plan/plan_sizes.h"
#include "engine/stream/tile_rows.h"

#include <string.h>

/* Memory of a worker's stack and allocator, doubled for memory that the steps allocate. */
#define WORKER_BYTES (2 * SLC_PLAN_THREAD_BYTES)

struct run {
    const struct slc_tile_steps *steps;
    const struct slc_part *part; /* NULL: all blocks are read */
    struct slc_turns turns;
    bool ended; /* true if a step ended the pass; written only by the worker that has the turn */
    uint64_t turn_ns[SLC_MAX_THREADS];
};

/* Returns a plan with the members that a stream needs, except the number of slots. */
static struct slc_plan
plan_of(const struct slc_tile_stream *tiles, const struct slc_reader *reader, unsigned workers)
{
    const struct slc_layout_info *info = slc_reader_info(reader);

    return (struct slc_plan){
        .request = {.io = tiles->io, .precision = SLC_F64, .read_limit = tiles->read_limit},
        .threads = workers,
        .layout_count = 1,
        .slot_bytes = slc_max_u64(info->max_block_bytes, SLC_PAGE_BYTES)};
}

/* Returns the bytes of a tile stream without its slots. */
static uint64_t fixed_bytes(const struct slc_layout_info *info, unsigned workers)
{
    const uint64_t each = slc_decoder_memory_bytes(info, SLC_F64) +
                          slc_tile_rows_memory_bytes(info->order) + WORKER_BYTES;

    return slc_plan_plus(workers * each + SLC_PLAN_IO_THREADS * SLC_PLAN_THREAD_BYTES,
                         slc_plan_times(info->block_count, SLC_PLAN_STREAM_BYTES_PER_BLOCK));
}

static uint64_t slots_bytes(const struct slc_plan *plan, unsigned slots)
{
    return slc_buffer_footprint(slc_plan_times(slots, plan->slot_bytes), SLC_PAGES_MIXED);
}

/* Returns the number of blocks that a pass reads. */
static uint64_t count_blocks(const struct slc_tile_stream *tiles, const struct slc_reader *reader)
{
    return tiles->part != NULL ? tiles->part->block_count : slc_reader_info(reader)->block_count;
}

/* Returns the padded bytes of block i of a pass in file order. */
static uint64_t
bytes_of_block(const struct slc_tile_stream *tiles, const struct slc_reader *reader, uint64_t i)
{
    struct slc_block_entry entry;

    slc_reader_entry(reader, tiles->part != NULL ? tiles->part->blocks[i] : i, &entry);
    return entry.padded_bytes;
}

/* Returns the memory for all blocks that a pass reads. */
static uint64_t blocks_bytes(const struct slc_tile_stream *tiles, const struct slc_reader *reader)
{
    uint64_t bytes = 0;

    for (uint64_t i = 0; i < count_blocks(tiles, reader); i++) {
        bytes += bytes_of_block(tiles, reader, i);
    }
    return slc_buffer_footprint(bytes, SLC_PAGES_SMALL);
}

uint64_t slc_tile_stream_memory_bytes(const struct slc_tile_stream *tiles,
                                      const struct slc_reader *reader,
                                      unsigned workers,
                                      bool least)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    const struct slc_plan plan = plan_of(tiles, reader, workers);
    const unsigned slots =
        least ? SLC_PLAN_SLOTS_MIN : slc_plan_slots_useful(&plan, info->block_count);
    const uint64_t kept = least || !tiles->keep_blocks ? 0 : blocks_bytes(tiles, reader);

    return slc_plan_plus(slc_plan_plus(fixed_bytes(info, workers), kept),
                         slots_bytes(&plan, slots));
}

/* Plans to keep as many blocks as fit in `bytes`. Blocks have similar sizes, so the size of the
 * largest block determines their number, except if all blocks fit. */
static void keep_blocks(struct slc_plan *plan,
                        const struct slc_tile_stream *tiles,
                        const struct slc_reader *reader,
                        uint64_t bytes)
{
    const uint64_t count = count_blocks(tiles, reader);
    struct slc_plan_layout *layout = &plan->layouts[0];

    if (tiles->part != NULL) {
        layout->listed = tiles->part->blocks;
        layout->listed_count = count;
    }
    layout->cached_blocks =
        blocks_bytes(tiles, reader) <= bytes ? count : slc_min_u64(bytes / plan->slot_bytes, count);
    for (uint64_t i = 0; i < count; i++) {
        layout->cache_bytes +=
            slc_plan_caches(layout, count, i) ? bytes_of_block(tiles, reader, i) : 0;
    }
    plan->cached_blocks = layout->cached_blocks;
    plan->cache_bytes = layout->cache_bytes;
}

/* Returns the largest useful number of slots, or fewer if the memory would exceed `bytes`. */
static unsigned count_slots(const struct slc_plan *plan,
                            const struct slc_layout_info *info,
                            unsigned workers,
                            uint64_t bytes)
{
    const uint64_t fixed = fixed_bytes(info, workers);
    unsigned slots = slc_plan_slots_useful(plan, info->block_count);

    while (slots > SLC_PLAN_SLOTS_MIN && slc_plan_plus(fixed, slots_bytes(plan, slots)) > bytes) {
        slots--;
    }
    return slots;
}

/* Returns the plan of a stream, except the schedule. */
static struct slc_plan make_plan(const struct slc_tile_stream *tiles,
                                 const struct slc_reader *reader,
                                 unsigned workers,
                                 uint64_t bytes)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    struct slc_plan plan = plan_of(tiles, reader, workers);

    plan.slot_count = count_slots(&plan, info, workers, bytes);
    if (tiles->keep_blocks) {
        const uint64_t used =
            slc_plan_plus(fixed_bytes(info, workers), slots_bytes(&plan, plan.slot_count));

        keep_blocks(&plan, tiles, reader, bytes > used ? bytes - used : 0);
    }
    return plan;
}

uint64_t slc_tile_stream_kept_bytes(const struct slc_tile_stream *tiles,
                                    const struct slc_reader *reader,
                                    unsigned workers,
                                    uint64_t bytes)
{
    return make_plan(tiles, reader, workers, bytes).cache_bytes;
}

static enum slc_status
run_steps(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct run *run = context;
    const struct slc_tile_steps *steps = run->steps;
    const enum slc_status status = steps->decode(steps->context, worker, tile, err);
    bool active = true, continues = true;

    if (status == SLC_OK && steps->in_turn != NULL) {
        const uint64_t start_ns = slc_clock_ns();
        const uint64_t turn = run->part != NULL
                                  ? slc_part_ordinal(run->part, tile->block, tile->ordinal)
                                  : tile->ordinal;
        const bool has_turn = slc_turns_wait(&run->turns, turn);

        run->turn_ns[worker] += slc_clock_ns() - start_ns;
        if (!has_turn) {
            return slc_fail(err, SLC_ERR_INTERRUPTED, "the pass ended before the tile's turn");
        }
        active = !run->ended;
        continues = active && steps->in_turn(steps->context, worker);
        run->ended = !continues;
        slc_turns_done(&run->turns);
    }
    if (status == SLC_OK && active && steps->deliver != NULL) {
        steps->deliver(steps->context, worker);
    }
    /* To end a pass early, a consumer must return an error. slc_tile_stream_run clears this
     * error. */
    return continues ? status : slc_fail(err, SLC_ERR_INTERRUPTED, "a step ended the pass");
}

static void stop_waiting(void *context)
{
    slc_turns_stop(&((struct run *)context)->turns);
}

enum slc_status slc_tile_stream_open(struct slc_tile_stream *tiles,
                                     struct slc_reader *reader,
                                     unsigned workers,
                                     uint64_t bytes,
                                     bool in_order,
                                     struct slc_error *err)
{
    const struct slc_layouts layouts = slc_layouts_one(reader);
    struct slc_plan plan = make_plan(tiles, reader, workers, bytes);

    memset(&tiles->stats, 0, sizeof tiles->stats);
    tiles->turn_seconds = 0;
    tiles->workers = workers;
    plan.schedule = tiles->schedule;
    if (in_order || (plan.schedule == SLC_SCHEDULE_AUTO && slc_plan_blocks_near_equal(reader))) {
        plan.schedule = SLC_SCHEDULE_FILE;
    } else if (plan.schedule == SLC_SCHEDULE_AUTO) {
        plan.schedule = SLC_SCHEDULE_LARGEST;
    }
    tiles->used_schedule = plan.schedule;
    tiles->slot_count = plan.slot_count;
    tiles->slot_bytes = plan.slot_bytes;
    return slc_stream_open(tiles->files, &layouts, &plan, &tiles->open, err);
}

enum slc_status slc_tile_stream_pass(struct slc_tile_stream *tiles,
                                     const struct slc_tile_steps *steps,
                                     struct slc_error *err)
{
    struct run *run = slc_calloc(1, sizeof *run);
    const struct slc_part *part = tiles->part;
    const struct slc_pass pass = {
        .tiles = {.consumer = {.tile = run_steps, .wake = stop_waiting, .context = run},
                  .blocks = part != NULL ? part->blocks : NULL,
                  .block_count = part != NULL ? part->block_count : 0},
        .stop = tiles->stop};
    struct slc_error fault = SLC_ERROR_INIT;

    SLC_TRY(slc_check_memory(run != NULL, err, "to stream a layout"));
    run->steps = steps;
    run->part = part;
    enum slc_status status = slc_turns_init(&run->turns, &fault);
    if (status == SLC_OK) {
        status = slc_stream_pass(tiles->open, &pass, &fault);
        slc_stream_stats(tiles->open, &tiles->stats);
        slc_turns_destroy(&run->turns);
    }
    if (status == SLC_ERR_INTERRUPTED && run->ended) {
        slc_error_clear(&fault);
        status = SLC_OK;
    }
    slc_error_pass(err, &fault);
    for (unsigned w = 0; w < tiles->workers; w++) {
        tiles->turn_seconds += (double)run->turn_ns[w] * 1e-9;
    }
    slc_free(run);
    return status;
}

void slc_tile_stream_close(struct slc_tile_stream *tiles)
{
    slc_stream_close(tiles->open);
    tiles->open = NULL;
}

enum slc_status slc_tile_stream_run(struct slc_tile_stream *tiles,
                                    struct slc_reader *reader,
                                    unsigned workers,
                                    uint64_t bytes,
                                    const struct slc_tile_steps *steps,
                                    struct slc_error *err)
{
    enum slc_status status =
        slc_tile_stream_open(tiles, reader, workers, bytes, steps->in_turn != NULL, err);

    SLC_THEN(status, slc_tile_stream_pass(tiles, steps, err));
    slc_tile_stream_close(tiles);
    return status;
}
