/*
 * Passes of CP-ALS in parts (engine/stream/pass_cuts.h), where the run has checkpoints: between two
 * parts one may be written that says where the pass stands, with all that it has summed up, and a
 * run that goes on from it begins there. A stop waits for the end of a part.
 *
 * Whether a pass can go on is told by its kind and strategies and by a hash of what was read before
 * it, blocks in their order or ranges of rows. Where a run that goes on has another order, by a
 * plan for less memory or another schedule, or another layout, a pass for one mode begins anew. One
 * for two modes cannot: its factor's rows that have been solved for are as they were in no
 * checkpoint.
 */
#include "engine/solve/cp_checkpoint.h"

#include "base/error/clock.h"
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "engine/solve/cp_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What a part aims at: a stop may take ten seconds (DESIGN), half of them for writing. */
#define PART_SECONDS 3.0
/* What a stop waits for the end of a part. */
#define STOP_SECONDS 5.0
/* Words of sums that are converted at a time. */
enum { PIECE = 256 };

/* Padded bytes of the block, or of the blocks of the range, at a position of the pass at hand. */
static uint64_t bytes_at(const struct cp_state *state, uint64_t position)
{
    const struct cp_passing *passing = &state->passing;
    struct slc_block_entry entry;
    uint64_t bytes = 0;

    if (passing->fused) {
        const struct slc_row_range *range = &state->ranges[state->mode].ranges[position];

        for (uint64_t b = 0; b < range->block_count; b++) {
            slc_reader_entry(passing->reader, range->first_block + b, &entry);
            bytes += entry.padded_bytes;
        }
        return bytes;
    }
    slc_reader_entry(passing->reader, passing->order[position], &entry);
    return entry.padded_bytes;
}

/*
 * A hash of what the pass at hand has read when it stands at `position`: numbers of blocks, of that
 * file. The same tensor in another store has other blocks.
 */
static uint64_t hash_before(const struct cp_state *state, uint64_t position)
{
    const struct cp_passing *passing = &state->passing;
    uint64_t hash = slc_mix64(slc_reader_info(passing->reader)->header_hash + position);

    for (uint64_t p = 0; p < position; p++) {
        if (passing->fused) {
            const struct slc_row_range *range = &state->ranges[state->mode].ranges[p];

            hash = slc_mix64(slc_mix64(hash + range->first_row) + range->end_row);
            hash = slc_mix64(slc_mix64(hash + range->first_block) + range->block_count);
        } else {
            hash = slc_mix64(hash + passing->order[p]);
        }
    }
    return hash;
}

static uint64_t part_end(void *context, uint64_t first, uint64_t count)
{
    struct cp_state *state = context;
    struct cp_passing *passing = &state->passing;
    const uint64_t asked = state->options->part_bytes;
    const uint64_t want =
        asked != 0 ? asked : slc_pass_pace_bytes(passing->pace, PART_SECONDS, passing->bytes_left);
    uint64_t end = first;

    passing->part_bytes = 0;
    while (end < count && (end == first || passing->part_bytes < want)) {
        passing->part_bytes += bytes_at(state, end++);
    }
    passing->bytes_left -= passing->part_bytes;
    passing->first_block = first;
    passing->end_block = end;
    if (passing->fused) {
        slc_row_ranges_blocks(&state->ranges[state->mode], first, end, &passing->first_block,
                              &passing->end_block);
    }
    passing->part_ns = slc_clock_ns();
    return end;
}

static enum slc_status end_part(void *context, uint64_t position, struct slc_error *err)
{
    struct cp_state *state = context;
    struct cp_passing *passing = &state->passing;

    slc_pass_pace_note(passing->pace, passing->part_bytes, slc_seconds_since(passing->part_ns));
    passing->position = position;
    passing->left = cp_stop_due(state);
    enum slc_status status =
        passing->left ? cp_checkpoint_now(state, err) : cp_checkpoint_due(state, err);
    passing->position = 0;
    SLC_TRY(status);
    if (passing->left) {
        return slc_fail(err, SLC_ERR_INTERRUPTED, "stopped between two parts of a pass");
    }
    return SLC_OK;
}

/* The name of the section with region `region` of job `job`. */
static void name_section(char name[SLC_CHECKPOINT_NAME_BYTES], unsigned job, unsigned region)
{
    (void)snprintf(name, SLC_CHECKPOINT_NAME_BYTES, "sums-%u-%u", (job + 1) % 10,
                   (region + 1) % 10);
}

static void put_words(struct slc_checkpoint *checkpoint,
                      const unsigned char *data,
                      uint64_t bytes,
                      unsigned word_bytes)
{
    uint8_t piece[8 * PIECE];
    uint64_t count;

    for (uint64_t at = 0; at < bytes; at += count) {
        count = slc_min_u64(bytes - at, (uint64_t)PIECE * word_bytes);
        for (uint64_t i = 0; i < count; i += word_bytes) {
            if (word_bytes == 4) {
                uint32_t word;

                memcpy(&word, data + at + i, sizeof word);
                slc_store_u32(piece + i, word);
            } else {
                uint64_t word;

                memcpy(&word, data + at + i, sizeof word);
                slc_store_u64(piece + i, word);
            }
        }
        slc_checkpoint_put(checkpoint, piece, count);
    }
}

static void get_words(struct slc_checkpoint_reader *reader,
                      unsigned char *data,
                      uint64_t bytes,
                      unsigned word_bytes)
{
    slc_checkpoint_get(reader, data, bytes);
    for (uint64_t at = 0; at < bytes; at += word_bytes) {
        if (word_bytes == 4) {
            const uint32_t word = slc_load_u32(data + at);

            memcpy(data + at, &word, sizeof word);
        } else {
            const uint64_t word = slc_load_u64(data + at);

            memcpy(data + at, &word, sizeof word);
        }
    }
}

/* Gives a job the sums of the checkpoint. */
static enum slc_status read_job(struct cp_state *state, unsigned job, struct slc_error *err)
{
    struct slc_checkpoint_reader *reader = slc_checkpoint_found(state->options->checkpoint);
    struct slc_backend *backend = state->passing.backend[job];
    struct slc_mttkrp_state sums;

    SLC_TRY(backend->ops->mttkrp_state(backend, &sums, err));
    for (unsigned r = 0; r < sums.count; r++) {
        char name[SLC_CHECKPOINT_NAME_BYTES];

        name_section(name, job, r);
        slc_checkpoint_seek(reader, name);
        get_words(reader, sums.region[r].data, sums.region[r].bytes, sums.region[r].word_bytes);
        SLC_TRY(slc_checkpoint_end(reader, err));
    }
    return backend->ops->mttkrp_resume(backend, err);
}

static enum slc_status resume_jobs(void *context, struct slc_error *err)
{
    struct cp_state *state = context;

    for (unsigned j = 0; j < state->passing.jobs; j++) {
        SLC_TRY(read_job(state, j, err));
    }
    return SLC_OK;
}

enum slc_status cp_part_gather(struct cp_state *state, struct slc_error *err)
{
    struct cp_passing *passing = &state->passing;

    for (unsigned j = 0; passing->position != 0 && j < passing->jobs; j++) {
        struct slc_backend *backend = passing->backend[j];

        SLC_TRY(backend->ops->mttkrp_state(backend, &passing->sums[j], err));
    }
    return SLC_OK;
}

void cp_part_put(const struct cp_state *state)
{
    const struct cp_passing *passing = &state->passing;
    struct slc_checkpoint *checkpoint = state->options->checkpoint;

    for (unsigned j = 0; passing->position != 0 && j < passing->jobs; j++) {
        for (unsigned r = 0; r < passing->sums[j].count; r++) {
            char name[SLC_CHECKPOINT_NAME_BYTES];

            name_section(name, j, r);
            slc_checkpoint_section(checkpoint, name);
            put_words(checkpoint, passing->sums[j].region[r].data, passing->sums[j].region[r].bytes,
                      passing->sums[j].region[r].word_bytes);
        }
    }
}

struct slc_cp_part cp_part_saved(const struct cp_state *state)
{
    const struct cp_passing *passing = &state->passing;
    struct slc_cp_part part = {.position = passing->position};

    if (part.position != 0) {
        part.fused = passing->fused;
        part.hash = hash_before(state, part.position);
        for (unsigned j = 0; j < passing->jobs; j++) {
            part.conflict[j] = passing->strategy[j].conflict;
            part.rival[j] = passing->strategy[j].rival;
        }
    }
    return part;
}

static enum slc_status refuse_checkpoint(unsigned mode, struct slc_error *err)
{
    return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_RESTART,
                          "the checkpoint was written within a pass that updates mode %u and the "
                          "one after it, which this run would read otherwise: give it the memory, "
                          "layouts, passes and schedule of the one that wrote it, or begin anew",
                          mode + 1);
}

enum slc_status
cp_part_check(const struct cp_state *state, const struct slc_cp_saved *saved, struct slc_error *err)
{
    const unsigned mode = saved->mode_order[saved->place];

    return saved->part.position != 0 && saved->part.fused &&
                   (state->plan->fusion.modes >> mode & 1U) == 0
               ? refuse_checkpoint(mode, err)
               : SLC_OK;
}

/* Whether the pass at hand is the one that a checkpoint stands in. */
static bool is_left(const struct cp_state *state, const struct slc_cp_part *part, uint64_t count)
{
    const struct cp_passing *passing = &state->passing;

    for (unsigned j = 0; j < passing->jobs; j++) {
        if (part->conflict[j] != passing->strategy[j].conflict ||
            part->rival[j] != passing->strategy[j].rival) {
            return false;
        }
    }
    return part->position != 0 && part->position < count && part->fused == passing->fused &&
           part->hash == hash_before(state, part->position);
}

/*
 * Called ten times a second: ends a part that a stop would have to wait for too long, by the blocks
 * that it has got through so far. What it has summed up is then lost.
 */
static void watch_pass(void *context, uint64_t blocks_done, uint64_t blocks, uint64_t bytes)
{
    struct cp_state *state = context;
    const struct cp_passing *passing = &state->passing;

    if (cp_stop_requested(state)) {
        const double passed = slc_seconds_since(passing->part_ns);
        const double left = (double)passing->end_block - (double)blocks_done;
        const double done = (double)blocks_done - (double)passing->first_block;

        if (passed * left > STOP_SECONDS * (done + 1.0)) {
            __atomic_store_n(&state->pass_stop, 1, __ATOMIC_RELAXED);
        }
    }
    if (state->options->progress != NULL) {
        cp_report_progress(context, blocks_done, blocks, bytes);
    }
}

enum slc_status cp_pass_begin(struct cp_state *state,
                              const struct cp_strategy *strategies,
                              unsigned count,
                              struct cp_pass *pass,
                              struct slc_error *err)
{
    struct cp_passing *passing = &state->passing;
    const struct slc_cp_part part = state->part;
    const unsigned layout = state->plan->mode_layout[state->mode];

    state->part.position = 0;
    *pass = (struct cp_pass){
        .stop = state->options->stop,
        .progress = state->options->progress != NULL ? cp_report_progress : NULL,
    };
    if (state->options->checkpoint == NULL || !state->executor->ops->in_parts ||
        strategies[0].conflict == SLC_CONFLICT_REPLICA) {
        return SLC_OK;
    }
    *passing = (struct cp_passing){.fused = count > 1,
                                   .jobs = count,
                                   .backend = {state->backend, state->second_backend},
                                   .reader = slc_stream_reader(state->stream, layout),
                                   .order = slc_stream_order(state->stream, layout),
                                   .pace = &state->pace[state->mode][count > 1]};
    memcpy(passing->strategy, strategies, count * sizeof *strategies);
    uint64_t positions = passing->fused ? state->ranges[state->mode].count
                                        : slc_reader_info(passing->reader)->block_count;
    passing->cuts = (struct slc_pass_cuts){
        .end = part_end, .between = end_part, .resume = resume_jobs, .context = state};
    if (is_left(state, &part, positions)) {
        passing->cuts.first = part.position;
    } else if (part.position != 0 && part.fused) {
        return refuse_checkpoint(state->mode, err);
    }
    for (uint64_t p = passing->cuts.first; p < positions; p++) {
        passing->bytes_left += bytes_at(state, p);
    }
    state->pass_stop = 0;
    pass->cuts = &passing->cuts;
    pass->stop = &state->pass_stop;
    pass->progress = watch_pass;
    return SLC_OK;
}
unsigned cp_part_bytes(const struct slc_plan *plan,
                       unsigned order,
                       const uint64_t *dims,
                       uint64_t bytes[CP_PART_SECTIONS])
{
    const uint64_t pitch = slc_matrix_pitch(plan->request.precision, plan->request.rank);
    const unsigned jobs = plan->fusion.modes != 0 ? 2 : 1;

    memset(bytes, 0, CP_PART_SECTIONS * sizeof bytes[0]);
    for (unsigned n = 0; n < order; n++) {
        const uint64_t partitions = slc_max_u64(plan->partitions[n], plan->fusion.ranges[n]);

        /* Sums are f64, whatever the factors are. */
        bytes[0] = slc_max_u64(bytes[0], dims[n] * pitch * sizeof(double));
        bytes[1] = slc_max_u64(bytes[1], partitions * sizeof(uint64_t));
        bytes[2] = slc_max_u64(bytes[2], partitions * pitch * sizeof(double));
    }
    bytes[SLC_MTTKRP_REGIONS] = bytes[0];
    return jobs == 1 ? SLC_MTTKRP_REGIONS : SLC_MTTKRP_REGIONS + 1;
}
