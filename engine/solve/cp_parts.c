/* Makes passes of CP-ALS in parts (engine/stream/pass_cuts.h), for runs with checkpoints. A
 * checkpoint that is written between two parts contains the position in the pass and the partial
 * sums, and a resumed run starts at this position. A stop request waits up to STOP_SECONDS for the
 * end of the current part.
 *
 * A pass is resumed at its position only if the resumed run makes it for the same mode or modes,
 * with the same strategies, and reads the same blocks or row ranges before the position. Hashes of
 * these blocks or ranges are compared. If the blocks are read in a different order, because memory,
 * schedule or layout differ, a pass for one mode starts again from its beginning. A pass for two
 * modes cannot start again, because a checkpoint does not contain the old values of the rows that
 * are already solved. */
#include "engine/solve/cp_checkpoint.h"

#include "base/error/clock.h"
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "engine/solve/cp_state.h"
#include "engine/stream/rows/row_pass.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Target duration of a part in seconds. A stop should take at most ten seconds, half of them for
 * writing the checkpoint. */
#define PART_SECONDS 3.0
/* A stop waits at most this many seconds for the end of a part. */
#define STOP_SECONDS 5.0
/* Number of sums (or counts) whose bytes are converted at once. */
enum { PIECE = 256 };

/* Returns the padded bytes of the blocks of the positions first .. end - 1 of a pass that updates
 * rows from their nonzeros. */
static uint64_t row_bytes(const struct cp_state *state, uint64_t first, uint64_t end)
{
    return slc_row_passes_bytes(state->current.rows, state->mode, first, end);
}

/* Returns the padded bytes of the block or, in a pass for two modes, of the range of rows at a
 * position of the current pass. */
static uint64_t bytes_at(const struct cp_state *state, uint64_t position)
{
    const struct cp_current_pass *current = &state->current;
    struct slc_block_entry entry;
    uint64_t bytes = 0;

    if (current->fused) {
        const struct slc_row_range *range = &state->ranges[state->mode].ranges[position];

        for (uint64_t b = 0; b < range->block_count; b++) {
            slc_reader_entry(current->reader, range->first_block + b, &entry);
            bytes += entry.padded_bytes;
        }
        return bytes;
    }
    slc_reader_entry(current->reader, current->order[position], &entry);
    return entry.padded_bytes;
}

/* Returns a hash of the file and of the block numbers or row ranges that the current pass reads
 * before `position`. */
static uint64_t hash_before(const struct cp_state *state, uint64_t position)
{
    const struct cp_current_pass *current = &state->current;
    uint64_t hash;

    if (current->rows != NULL) {
        return slc_row_passes_hash(current->rows, state->mode, position);
    }
    hash = slc_mix64(slc_reader_info(current->reader)->header_hash + position);
    for (uint64_t p = 0; p < position; p++) {
        if (current->fused) {
            const struct slc_row_range *range = &state->ranges[state->mode].ranges[p];

            hash = slc_mix64(slc_mix64(hash + range->first_row) + range->end_row);
            hash = slc_mix64(slc_mix64(hash + range->first_block) + range->block_count);
        } else {
            hash = slc_mix64(hash + current->order[p]);
        }
    }
    return hash;
}

static uint64_t part_end(void *context, uint64_t first, uint64_t count)
{
    struct cp_state *state = context;
    struct cp_current_pass *current = &state->current;
    const uint64_t requested = state->options->part_bytes;
    const uint64_t target =
        requested != 0 ? requested
                       : slc_pass_pace_bytes(current->pace, PART_SECONDS, current->bytes_left);
    uint64_t end = first;

    current->part_bytes = 0;
    if (current->rows != NULL) {
        end = slc_row_passes_end(current->rows, state->mode, first, target);
        current->part_bytes = row_bytes(state, first, end);
    }
    while (current->rows == NULL && end < count && (end == first || current->part_bytes < target)) {
        current->part_bytes += bytes_at(state, end++);
    }
    current->bytes_left -= slc_min_u64(current->part_bytes, current->bytes_left);
    current->first_block = first;
    current->end_block = end;
    if (current->fused) {
        slc_row_ranges_blocks(&state->ranges[state->mode], first, end, &current->first_block,
                              &current->end_block);
    }
    current->part_ns = slc_clock_ns();
    return end;
}

static enum slc_status end_part(void *context, uint64_t position, struct slc_error *err)
{
    struct cp_state *state = context;
    struct cp_current_pass *current = &state->current;

    slc_pass_pace_record(current->pace, current->part_bytes, slc_seconds_since(current->part_ns));
    current->position = position;
    current->left = cp_stop_due(state);
    enum slc_status status =
        current->left ? cp_checkpoint_now(state, err) : cp_checkpoint_due(state, err);
    current->position = 0;
    SLC_TRY(status);
    if (current->left) {
        return slc_fail(err, SLC_ERR_INTERRUPTED,
                        "the run was stopped between two parts of a pass");
    }
    return SLC_OK;
}

/* Sets `name` to the name of the section for memory region `region` of job `job`. */
static void name_section(char name[SLC_CHECKPOINT_NAME_BYTES], unsigned job, unsigned region)
{
    (void)snprintf(name, SLC_CHECKPOINT_NAME_BYTES, "sums-%u-%u", (job + 1) % 10,
                   (region + 1) % 10);
}

static void write_words(struct slc_checkpoint *checkpoint,
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

static void read_words(struct slc_checkpoint_reader *reader,
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

/* Loads the partial sums of the checkpoint into a job. */
static enum slc_status read_job(struct cp_state *state, unsigned job, struct slc_error *err)
{
    struct slc_checkpoint_reader *reader = slc_checkpoint_found(state->options->checkpoint);
    struct slc_backend *backend = state->current.backend[job];
    struct slc_mttkrp_state sums;

    SLC_TRY(backend->ops->mttkrp_state(backend, &sums, err));
    for (unsigned r = 0; r < sums.count; r++) {
        char name[SLC_CHECKPOINT_NAME_BYTES];

        name_section(name, job, r);
        slc_checkpoint_seek(reader, name);
        read_words(reader, sums.region[r].data, sums.region[r].bytes, sums.region[r].word_bytes);
        SLC_TRY(slc_checkpoint_end(reader, err));
    }
    return backend->ops->mttkrp_resume(backend, err);
}

static enum slc_status resume_jobs(void *context, struct slc_error *err)
{
    struct cp_state *state = context;

    for (unsigned j = 0; j < state->current.jobs; j++) {
        SLC_TRY(read_job(state, j, err));
    }
    return SLC_OK;
}

enum slc_status cp_part_gather(struct cp_state *state, struct slc_error *err)
{
    struct cp_current_pass *current = &state->current;

    for (unsigned j = 0; current->position != 0 && j < current->jobs; j++) {
        struct slc_backend *backend = current->backend[j];

        SLC_TRY(backend->ops->mttkrp_state(backend, &current->sums[j], err));
    }
    return SLC_OK;
}

void cp_part_write(const struct cp_state *state)
{
    const struct cp_current_pass *current = &state->current;
    struct slc_checkpoint *checkpoint = state->options->checkpoint;

    for (unsigned j = 0; current->position != 0 && j < current->jobs; j++) {
        for (unsigned r = 0; r < current->sums[j].count; r++) {
            char name[SLC_CHECKPOINT_NAME_BYTES];

            name_section(name, j, r);
            slc_checkpoint_section(checkpoint, name);
            write_words(checkpoint, current->sums[j].region[r].data,
                        current->sums[j].region[r].bytes, current->sums[j].region[r].word_bytes);
        }
    }
}

struct slc_cp_part cp_part_saved(const struct cp_state *state)
{
    const struct cp_current_pass *current = &state->current;
    struct slc_cp_part part = {.position = current->position};

    if (part.position != 0) {
        part.fused = current->fused;
        part.hash = hash_before(state, part.position);
        for (unsigned j = 0; j < current->jobs; j++) {
            part.conflict[j] = current->strategy[j].conflict;
            part.rival[j] = current->strategy[j].rival;
        }
    }
    return part;
}

static enum slc_status fail_resume(unsigned mode, struct slc_error *err)
{
    return slc_fail_field(
        err, SLC_ERR_USAGE, SLC_FIELD_RESTART,
        "the checkpoint was written within a pass that updates mode %u and the next mode, but this "
        "run would make that pass differently: use the memory, layouts, passes and schedule of the "
        "run that wrote the checkpoint, or start a new run",
        mode + 1);
}

enum slc_status
cp_part_check(const struct cp_state *state, const struct slc_cp_saved *saved, struct slc_error *err)
{
    const unsigned mode = saved->mode_order[saved->place];

    return saved->part.position != 0 && saved->part.fused &&
                   (state->plan->fusion.modes >> mode & 1U) == 0
               ? fail_resume(mode, err)
               : SLC_OK;
}

/* Returns true if the current pass can be resumed at the position `part` of the checkpoint. */
static bool
matches_part(const struct cp_state *state, const struct slc_cp_part *part, uint64_t count)
{
    const struct cp_current_pass *current = &state->current;

    for (unsigned j = 0; j < current->jobs; j++) {
        if (part->conflict[j] != current->strategy[j].conflict ||
            part->rival[j] != current->strategy[j].rival) {
            return false;
        }
    }
    return part->position != 0 && part->position < count && part->fused == current->fused &&
           part->hash == hash_before(state, part->position);
}

/* Called ten times a second. If a stop is requested and the rest of the part is expected to take
 * longer than STOP_SECONDS, ends the part. The sums of this part are then lost. */
static void watch_pass(void *context, uint64_t blocks_done, uint64_t blocks, uint64_t bytes)
{
    struct cp_state *state = context;
    const struct cp_current_pass *current = &state->current;

    if (cp_stop_requested(state)) {
        const double passed = slc_seconds_since(current->part_ns);
        const double left = (double)current->end_block - (double)blocks_done;
        const double done = (double)blocks_done - (double)current->first_block;

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
    struct cp_current_pass *current = &state->current;
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
    *current = (struct cp_current_pass){.fused = count > 1,
                                        .jobs = count,
                                        .backend = {state->backend, state->second_backend},
                                        .reader = slc_stream_reader(state->stream, layout),
                                        .order = slc_stream_order(state->stream, layout),
                                        .pace = &state->pace[state->mode][count > 1]};
    memcpy(current->strategy, strategies, count * sizeof *strategies);
    uint64_t positions = current->fused ? state->ranges[state->mode].count
                                        : slc_reader_info(current->reader)->block_count;
    current->cuts = (struct slc_pass_cuts){
        .end = part_end, .between = end_part, .resume = resume_jobs, .context = state};
    if (matches_part(state, &part, positions)) {
        current->cuts.first = part.position;
    } else if (part.position != 0 && part.fused) {
        return fail_resume(state->mode, err);
    }
    for (uint64_t p = current->cuts.first; p < positions; p++) {
        current->bytes_left += bytes_at(state, p);
    }
    state->pass_stop = 0;
    pass->cuts = &current->cuts;
    pass->stop = &state->pass_stop;
    pass->progress = watch_pass;
    return SLC_OK;
}

enum slc_status cp_row_pass_begin(struct cp_state *state,
                                  const struct slc_row_passes *rows,
                                  struct cp_pass *pass,
                                  struct slc_error *err)
{
    struct cp_current_pass *current = &state->current;
    const struct slc_cp_part part = state->part;
    const uint64_t positions = slc_row_passes_count(rows, state->mode);

    state->part.position = 0;
    *pass = (struct cp_pass){
        .stop = state->options->stop,
        .progress = state->options->progress != NULL ? cp_report_progress : NULL,
    };
    *current = (struct cp_current_pass){.rows = rows, .pace = &state->pace[state->mode][0]};
    if (state->options->checkpoint == NULL) {
        return SLC_OK;
    }
    current->cuts = (struct slc_pass_cuts){
        .end = part_end, .between = end_part, .resume = resume_jobs, .context = state};
    if (matches_part(state, &part, positions)) {
        current->cuts.first = part.position;
    } else if (part.position != 0 && state->options->deterministic) {
        return slc_fail_field(
            err, SLC_ERR_USAGE, SLC_FIELD_RESTART,
            "the checkpoint was written within a pass that updates mode %u, but this run would "
            "divide the rows of that pass differently: use the memory, layouts and schedule of the "
            "run that wrote the checkpoint, or start a new run",
            state->mode + 1);
    }
    current->bytes_left = row_bytes(state, current->cuts.first, positions);
    state->pass_stop = 0;
    pass->cuts = &current->cuts;
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

        /* Sums are f64 even if factors are f32. */
        bytes[0] = slc_max_u64(bytes[0], dims[n] * pitch * sizeof(double));
        bytes[1] = slc_max_u64(bytes[1], partitions * sizeof(uint64_t));
        bytes[2] = slc_max_u64(bytes[2], partitions * pitch * sizeof(double));
    }
    bytes[SLC_MTTKRP_REGIONS] = bytes[0];
    return jobs == 1 ? SLC_MTTKRP_REGIONS : SLC_MTTKRP_REGIONS + 1;
}
