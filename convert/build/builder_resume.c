/* Resumes builds after an interruption: saves the builder's state in commits, and restores it.
 *
 * A commit flushes the workers' buffers to chunks, and writes and syncs all chunks to the spill
 * file, which then has a name. Then it replaces the saved state: splitters, key frames, counts of
 * fibers, ranges of coordinates, and the position of every bucket's chunks. Chunks written before a
 * commit are never overwritten, so state and file remain consistent with each other. Checksums
 * protect the state as a whole and each chunk; inconsistent data is discarded.
 *
 * A store does not depend on the times of commits, because it does not depend on the division of
 * entries into chunks. */
#include "convert/build/builder.h"
#include "convert/build/builder_internal.h"

#include "base/error/clock.h"
#include "base/error/log.h"
#include "base/hash.h"
#include "base/memory/checked.h"
#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "convert/build/build_fibers.h"
#include "convert/build/build_memory.h"

#include <assert.h>
#include <string.h>

/* Assumed cost of a commit: two syncs, together a few tens of milliseconds on a busy disk, and
 * writing all chunks in memory at 500 MB/s. */
static const double sync_seconds = 0.05;
static const double write_bytes_per_second = 5e8;
/* Largest fraction of the elapsed time that commits may use. */
static const double cost_share = 0.02;
/* Smallest time between commits, except before the last commit. With cheap commits, an interruption
 * loses at most this time. A push that is shorter than half this time is not committed. */
static const double interval_seconds = 30;
/* Tolerance for comparing the budgets of two runs. The memory that the process uses before the
 * build, which differs from run to run, is subtracted from the budget. */
static const uint64_t memory_slack_bytes = UINT64_C(512) << 10;

double slc_build_interval(const struct slc_builder *builder)
{
    return builder->options.commit_seconds > 0 ? builder->options.commit_seconds : interval_seconds;
}

bool slc_builder_commit_due(struct slc_builder *builder, bool last)
{
    const struct slc_builder_options *options = &builder->options;
    uint64_t now = slc_clock_ns();
    double since = (double)(now - builder->commit_ns) * 1e-9;
    double elapsed = (double)(now - builder->start_ns) * 1e-9;
    double cost = sync_seconds;

    if (!options->resumable) {
        return false;
    }
    if (!last && since < slc_build_interval(builder)) {
        return false;
    }
    if (options->commit_seconds > 0) {
        return true;
    }
    if (elapsed < interval_seconds / 2) {
        return false;
    }
    cost += (double)slc_spill_unwritten_bytes(builder->spill) / write_bytes_per_second;
    /* After the last commit, sorting and writing will last at least as long as the push did. */
    return builder->commit_cost_seconds + cost <= cost_share * elapsed * (last ? 2 : 1);
}

/* Writes the splitters. Without a sample there are none, and splitters->order is not set. */
static void save_splitters(struct slc_state *state, const struct slc_builder *builder)
{
    const struct slc_splitters *splitters = &builder->splitters;

    slc_state_put(state, splitters->count);
    slc_state_put(state, splitters->run.mode);
    slc_state_put(state, splitters->run.bits);
    for (unsigned n = 0; n < builder->order; n++) {
        slc_state_put(state, splitters->largest[n]);
    }
    for (size_t i = 0; i < (size_t)splitters->count * builder->order; i++) {
        slc_state_put(state, splitters->coords[i]);
    }
}

static void save_frames(struct slc_state *state, const struct slc_key_frames *frames)
{
    slc_state_put(state, frames->count);
    for (uint32_t i = 0; i < frames->count; i++) {
        const struct slc_key_frame *frame = frames->list[i];

        slc_state_put(state, frame->index_base);
        slc_state_put(state, frame->hopeless);
        for (unsigned n = 0; n < frames->order; n++) {
            slc_state_put(state, frame->hopeless ? 0 : frame->layout.mode_bits[n]);
        }
    }
    slc_state_put(state, frames->index_base);
    for (unsigned n = 0; n < frames->order; n++) {
        slc_state_put(state, frames->bits[n]);
    }
}

/* Writes the combined ranges and counts of all workers. */
static void save_workers(struct slc_state *state, struct slc_builder *builder)
{
    uint64_t smallest[SLC_MAX_ORDER], largest[SLC_MAX_ORDER] = {0};
    uint64_t entries = 0;

    memset(smallest, 0xff, sizeof smallest);
    for (unsigned w = 0; w < builder->options.workers; w++) {
        struct slc_builder_worker *worker = &builder->workers[w];

        for (unsigned n = 0; n < builder->order && worker->frame != NULL; n++) {
            smallest[n] = slc_min_u64(smallest[n], worker->smallest[n]);
            largest[n] = slc_max_u64(largest[n], worker->largest[n]);
        }
        entries += worker->entries;
        if (w > 0 && builder->options.fibers == SLC_FIBERS_AUTO) {
            /* A later commit joins the same counts to those of the first worker again. This has no
             * effect, because the counts are sets. */
            slc_fiber_counts_join(&builder->workers[0].fibers, &worker->fibers);
        }
    }
    slc_state_put(state, entries);
    for (unsigned n = 0; n < builder->order; n++) {
        slc_state_put(state, smallest[n]);
        slc_state_put(state, largest[n]);
    }
    if (builder->options.fibers == SLC_FIBERS_AUTO) {
        slc_fiber_counts_save(&builder->workers[0].fibers, state);
    }
}

static void pass_extent(struct slc_state *state, bool reading, struct slc_spill_extent *extent)
{
    extent->segments = (uint32_t)slc_state_pass(state, reading, extent->segments, UINT32_MAX - 1);
    extent->segment_bytes = (uint32_t)slc_state_pass(state, reading, extent->segment_bytes,
                                                     SLC_BUILD_SEGMENT_BYTES_MAX);
    extent->chunk_bytes =
        (uint32_t)slc_state_pass(state, reading, extent->chunk_bytes, SLC_BUILD_CHUNK_BYTES);
    extent->file_bytes = slc_state_pass(state, reading, extent->file_bytes, UINT64_MAX / 2);
    extent->end_bytes = slc_state_pass(state, reading, extent->end_bytes, UINT64_MAX / 2);
    state->bad = state->bad || (reading && (extent->segment_bytes < SLC_BUILD_CHUNK_BYTES ||
                                            extent->segment_bytes % SLC_PAGE_BYTES != 0));
}

/* Writes or reads (slc_state_pass) a link: either to a chunk within the file, or to no chunk. */
static void pass_link(struct slc_state *state,
                      bool reading,
                      const struct slc_spill_extent *extent,
                      struct slc_chunk_link *link)
{
    link->segment = (uint32_t)slc_state_pass(state, reading, link->segment, extent->segments);
    link->offset = (uint32_t)slc_state_pass(state, reading, link->offset, extent->segment_bytes);
    link->bytes = (uint32_t)slc_state_pass(state, reading, link->bytes, extent->chunk_bytes);
    state->bad =
        state->bad ||
        (reading && link->bytes > 0 &&
         (link->segment == extent->segments || link->bytes > extent->segment_bytes - link->offset));
}

/* Writes or reads the chains of all buckets. `entries`: number of entries in all chains. */
static void pass_chains(struct slc_state *state,
                        bool reading,
                        struct slc_builder *builder,
                        uint64_t entries,
                        const struct slc_spill_extent *extent)
{
    for (uint32_t b = 0; b < builder->bucket_count && !state->bad; b++) {
        struct slc_chain *chain = &builder->chains[b];

        pass_link(state, reading, extent, &chain->last);
        slc_state_pass_number(state, reading, &chain->chunks);
        chain->entries = slc_state_pass(state, reading, chain->entries, entries);
        chain->runs = slc_state_pass(state, reading, chain->runs, chain->entries);
        slc_state_pass_number(state, reading, &chain->mark_stride);
        chain->mark_count =
            (unsigned)slc_state_pass(state, reading, chain->mark_count, SLC_CHAIN_MARKS);
        for (unsigned i = 0; i < chain->mark_count; i++) {
            pass_link(state, reading, extent, &chain->marks[i]);
        }
        state->bad = state->bad || (reading && (chain->entries > 0) != (chain->last.bytes > 0));
    }
}

enum slc_status
slc_builder_commit(struct slc_builder *builder, const struct slc_state *note, struct slc_error *err)
{
    const struct slc_builder_options *options = &builder->options;
    uint64_t start_ns = slc_clock_ns();
    struct slc_spill_extent extent = {.segments = 0};
    struct slc_state state = {.bytes = NULL};

    assert(options->resumable);
    enum slc_status status = slc_scatter_flush_all(&builder->scatter, err);
    SLC_THEN(status, slc_spill_commit(builder->spill, &extent, err));
    if (status == SLC_OK) {
        slc_state_put(&state, options->identity.input);
        slc_state_put(&state, options->identity.options);
        slc_state_put(&state, builder->order);
        slc_state_put(&state, options->memory_bytes);
        slc_state_put(&state, options->assumed_base);
        slc_state_put(&state, builder->entries_expected);
        pass_extent(&state, false, &extent);
        save_splitters(&state, builder);
        save_frames(&state, &builder->frames);
        save_workers(&state, builder);
        pass_chains(&state, false, builder, 0, &extent);
        slc_state_put_bytes(&state, note->bytes, note->count);
        state.bad = state.bad || note->bad;
        status = slc_state_save(&state, options->files, builder->folder.part, SLC_PUSHED_STATE_NAME,
                                err);
    }
    slc_state_destroy(&state);
    SLC_TRY(status);
    if (!builder->folder.keep) {
        /* Before this sync, a power failure could remove the name of the folder. */
        SLC_TRY(slc_name_sync(options->files, builder->folder.part, err));
    }
    builder->folder.keep = true;
    builder->commit_ns = slc_clock_ns();
    builder->commit_cost_seconds += (double)(builder->commit_ns - start_ns) * 1e-9;
    return SLC_OK;
}

/* Reads splitters, which must be in order and no larger than the sample's largest coordinates. */
static enum slc_status
load_splitters(struct slc_state *state, struct slc_builder *builder, struct slc_error *err)
{
    struct slc_splitters *splitters = &builder->splitters;
    const unsigned order = builder->order;

    splitters->order = order;
    splitters->count = (uint32_t)slc_state_get(state, SLC_BUCKETS_MAX - 1);
    splitters->run.mode = (unsigned)slc_state_get(state, order - 1);
    splitters->run.bits = (unsigned)slc_state_get(state, SLC_FIBER_BITS_MAX);
    size_t numbers = (size_t)splitters->count * order;
    for (unsigned n = 0; n < order; n++) {
        splitters->largest[n] = slc_state_get(state, UINT64_MAX);
    }
    if (numbers == 0) {
        return SLC_OK; /* there is one bucket, which needs no splitters */
    }
    splitters->coords = slc_malloc(numbers * sizeof *splitters->coords);
    SLC_TRY(
        slc_check_memory(splitters->coords != NULL, err, "for %u key splitters", splitters->count));
    for (size_t i = 0; i < numbers; i++) {
        splitters->coords[i] = slc_state_get(state, splitters->largest[i % order]);
    }
    for (size_t i = order; i < numbers && !state->bad; i += order) {
        state->bad = slc_coords_compare(order, splitters->run, splitters->coords + i - order,
                                        splitters->coords + i) >= 0;
    }
    return SLC_OK;
}

static enum slc_status
load_frames(struct slc_state *state, struct slc_key_frames *frames, struct slc_error *err)
{
    uint32_t count = (uint32_t)slc_state_get(state, SLC_FRAMES_MAX - 1);

    for (uint32_t i = 0; i < count && !state->bad; i++) {
        uint64_t dims[SLC_MAX_ORDER];

        frames->index_base = slc_state_get(state, 1);
        bool hopeless = slc_state_get(state, 1) != 0;
        for (unsigned n = 0; n < frames->order; n++) {
            unsigned bits = (unsigned)slc_state_get(state, SLC_FRAME_MODE_BITS_MAX);

            dims[n] = UINT64_C(1) << bits;
            state->bad = state->bad || (!hopeless && dims[n] <= frames->splitters->largest[n]);
        }
        if (!state->bad) {

            SLC_TRY(slc_key_frames_add(frames, hopeless, dims, err));
        }
    }
    frames->index_base = slc_state_get(state, 1);
    for (unsigned n = 0; n < frames->order; n++) {
        frames->bits[n] = (unsigned)slc_state_get(state, 64);
    }
    return SLC_OK;
}

/* Restores the combined ranges and counts of all workers as those of the first worker. */
static void load_workers(struct slc_state *state, struct slc_builder *builder)
{
    struct slc_builder_worker *worker = &builder->workers[0];

    worker->entries = slc_state_get(state, UINT64_MAX);
    for (unsigned n = 0; n < builder->order; n++) {
        worker->smallest[n] = slc_state_get(state, UINT64_MAX);
        worker->largest[n] = slc_state_get(state, UINT64_MAX);
    }
    if (builder->frames.count > 0) {
        worker->frame = builder->frames.list[builder->frames.count - 1];
    }
    state->bad = state->bad || (worker->entries > 0) != (worker->frame != NULL);
    if (builder->options.fibers == SLC_FIBERS_AUTO) {
        slc_fiber_counts_load(&worker->fibers, state);
    }
}

/* Reads the fields before the spill file's extent. If the state is unusable, *why is the reason. */
static void load_head(struct slc_state *state, struct slc_builder *builder, const char **why)
{
    struct slc_builder_options *options = &builder->options;

    *why = slc_identity_differs(state, &options->identity);
    if (*why == NULL && slc_state_get(state, SLC_MAX_ORDER) != builder->order) {
        *why = "its options differ";
    }
    uint64_t memory_bytes = slc_state_get(state, UINT64_MAX);
    if (memory_bytes > options->memory_bytes &&
        memory_bytes - options->memory_bytes <= memory_slack_bytes) {
        options->memory_bytes = memory_bytes;
    }
    options->assumed_base = (unsigned)slc_state_get(state, 1);
    builder->entries_expected = slc_state_get(state, UINT64_MAX);
}

/* Reads the extent of the spill file and all fields after it. */
static enum slc_status
load_all(struct slc_builder *builder, const char **why, struct slc_error *err)
{
    struct slc_state *state = &builder->note;
    struct slc_spill_extent extent = {.segments = 0};

    pass_extent(state, true, &extent);
    enum slc_status status = load_splitters(state, builder, err);
    if (status != SLC_OK || state->bad) {
        return status;
    }
    if (!slc_push_memory_suits(&builder->options, builder->order, builder->splitters.count + 1,
                               builder->entries_expected, extent.segment_bytes)) {
        *why = "it used a larger memory budget";
        return SLC_OK;
    }
    SLC_TRY(slc_build_allocate_push_memory(builder, builder->splitters.count + 1, &extent, err));
    SLC_TRY(load_frames(state, &builder->frames, err));
    load_workers(state, builder);
    pass_chains(state, true, builder, builder->workers[0].entries, &extent);
    return SLC_OK;
}

/* Returns true if a fault means that the state is unusable, not just temporarily unreadable. */
static bool is_unusable(enum slc_status status)
{
    return status == SLC_ERR_DAMAGED || status == SLC_ERR_UNSUPPORTED;
}

/* If complete.state exists but does not describe a usable store, sets *why to the reason; otherwise
 * leaves *why unchanged. */
static enum slc_status
check_complete(const struct slc_builder *builder, const char **why, struct slc_error *err)
{
    const struct slc_files *files = builder->options.files;
    const char *folder = builder->folder.part;
    struct slc_state state = {.bytes = NULL};
    bool there, sound = false;
    enum slc_status status = slc_state_exists(files, folder, SLC_COMPLETE_STATE_NAME, &there, err);

    if (status != SLC_OK || !there) {
        return status;
    }
    status = slc_state_load(&state, files, folder, SLC_COMPLETE_STATE_NAME, &sound, err);
    if (status == SLC_OK) {
        *why = sound ? slc_identity_differs(&state, &builder->options.identity) : NULL;
        *why = *why != NULL ? *why : "its state is inconsistent";
    }
    slc_state_destroy(&state);
    return status;
}

/* Restores the state of an earlier run. Sets *why to the reason if the state is unusable. */
static enum slc_status
restore_state(struct slc_builder *builder, const char **why, struct slc_error *err)
{
    struct slc_error fault = SLC_ERROR_INIT;
    bool sound;

    if (builder->options.restart) {
        *why = "a restart was requested";
        return SLC_OK;
    }
    /* slc_complete_find has already handled a valid complete store. */
    enum slc_status status = check_complete(builder, why, err);
    if (status != SLC_OK || *why != NULL) {
        return status;
    }
    if (!builder->options.resumable) {
        *why = builder->options.completable
                   ? "its store is incomplete"
                   : "a run with a separate temporary folder cannot be resumed";
        return SLC_OK;
    }
    status = slc_state_load(&builder->note, builder->options.files, builder->folder.part,
                            SLC_PUSHED_STATE_NAME, &sound, err);
    if (status != SLC_OK || !sound) {
        *why = "it ended before its first commit";
        return status;
    }
    load_head(&builder->note, builder, why);
    if (*why != NULL) {
        return SLC_OK;
    }
    status = load_all(builder, why, &fault);
    if (builder->note.bad || is_unusable(status)) {
        *why = "its state is inconsistent";
        return SLC_OK;
    }
    if (status != SLC_OK && err != NULL) {
        *err = fault;
    }
    return status;
}

enum slc_status slc_builder_restore(struct slc_builder *builder, struct slc_error *err)
{
    const uint64_t memory_bytes = builder->options.memory_bytes;
    const unsigned assumed_base = builder->options.assumed_base;
    const char *why = NULL;

    builder->start_ns = builder->commit_ns = slc_clock_ns();
    if (!builder->folder.found) {
        return SLC_OK;
    }
    enum slc_status status = restore_state(builder, &why, err);
    if (status == SLC_OK && why == NULL) {
        builder->resumed = true;
        return SLC_OK;
    }
    slc_build_release_push_memory(builder);
    slc_splitters_destroy(&builder->splitters);
    slc_state_destroy(&builder->note);
    memset(builder->workers, 0, builder->options.workers * sizeof *builder->workers);
    slc_build_fibers_reset(builder);
    builder->options.memory_bytes = memory_bytes;
    builder->options.assumed_base = assumed_base;
    SLC_TRY(status);
    slc_log(SLC_LOG_NOTE, "removing %s, the leftover of an interrupted run: %s",
            builder->folder.part, why);
    return slc_build_folder_empty(&builder->folder, err);
}

struct slc_state *slc_builder_resumed(struct slc_builder *builder)
{
    return builder->resumed ? &builder->note : NULL;
}

uint64_t slc_build_tag(const struct slc_builder *builder)
{
    const struct slc_build_identity *identity = &builder->options.identity;

    return slc_mix64(slc_mix64(identity->input) + identity->options);
}

bool slc_build_keeps(const struct slc_builder *builder, enum slc_status status)
{
    return builder->folder.keep && status != SLC_OK && status != SLC_ERR_INPUT &&
           status != SLC_ERR_USAGE && !is_unusable(status);
}

void slc_builder_end(struct slc_builder *builder, enum slc_status status)
{
    if (builder != NULL && slc_build_keeps(builder, status)) {
        slc_log(SLC_LOG_NOTE, "progress is kept in %s: the same command resumes from it",
                builder->folder.made ? builder->folder.part : builder->folder.output);
    } else if (builder != NULL) {
        builder->folder.keep = false;
    }
    slc_build_destroy(builder);
}

enum slc_status
slc_build_drop_commits(struct slc_builder *builder, bool recorded, struct slc_error *err)
{
    const struct slc_files *files = builder->options.files;
    const bool committed = builder->folder.keep;

    builder->folder.keep = recorded;
    if (!committed) {
        return SLC_OK;
    }
    /* Remove the states before the spill file: a state must never exist without its chunks. */
    SLC_TRY(slc_state_remove(files, builder->folder.part, SLC_PUSHED_STATE_NAME, err));
    SLC_TRY(slc_state_remove(files, builder->folder.part, SLC_SORTED_STATE_NAME, err));
    return slc_state_remove(files, builder->folder.part, SLC_BLCO_NAME ".journal", err);
}
