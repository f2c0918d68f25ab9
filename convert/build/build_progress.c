#include "convert/build/build_output.h"

#include "base/error/clock.h"
#include "convert/build/resume/build_folder.h"
#include "convert/build/resume/state_file.h"

enum slc_status slc_build_progress_load(struct slc_build_progress *progress,
                                        uint64_t kept_nnz,
                                        struct slc_build_fact *fact,
                                        struct slc_error *err)
{
    struct slc_state state = {.bytes = NULL};
    struct slc_build_fact next = {.buckets = 0};
    bool sound = false;
    enum slc_status status = slc_state_load(&state, progress->files, progress->folder,
                                            SLC_SORTED_STATE_NAME, &sound, err);

    *fact = next;
    progress->count = 0;
    progress->saved_ns = slc_clock_ns();
    if (status != SLC_OK || !sound || slc_state_get(&state, UINT64_MAX) != progress->tag) {
        slc_state_destroy(&state);
        return status;
    }
    uint32_t count = (uint32_t)slc_state_get(&state, SLC_BUCKETS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        next.buckets = (uint32_t)slc_state_get(&state, SLC_BUCKETS_MAX);
        next.nnz = slc_state_get(&state, kept_nnz);
        next.counts.duplicates = slc_state_get(&state, UINT64_MAX);
        next.counts.explicit_zeros = slc_state_get(&state, UINT64_MAX);
        next.counts.rounded_values = slc_state_get(&state, UINT64_MAX);
        if (state.bad || next.buckets <= fact->buckets) {
            break;
        }
        *fact = progress->facts[progress->count++] = next;
    }
    slc_state_destroy(&state);
    return SLC_OK;
}

static enum slc_status save_facts(const struct slc_build_progress *progress, struct slc_error *err)
{
    struct slc_state state = {.bytes = NULL};

    slc_state_put(&state, progress->tag);
    slc_state_put(&state, progress->count);
    for (uint32_t i = 0; i < progress->count; i++) {
        const struct slc_build_fact *fact = &progress->facts[i];

        slc_state_put(&state, fact->buckets);
        slc_state_put(&state, fact->nnz);
        slc_state_put(&state, fact->counts.duplicates);
        slc_state_put(&state, fact->counts.explicit_zeros);
        slc_state_put(&state, fact->counts.rounded_values);
    }
    enum slc_status status =
        slc_state_save(&state, progress->files, progress->folder, SLC_SORTED_STATE_NAME, err);
    slc_state_destroy(&state);
    return status;
}

enum slc_status slc_build_progress_add(struct slc_build_progress *progress,
                                       const struct slc_build_fact *fact,
                                       struct slc_error *err)
{
    if (progress->count == SLC_BUCKETS_MAX) {
        return SLC_OK; /* only after a wrong state file: a bucket adds at most one fact */
    }
    progress->facts[progress->count++] = *fact;
    if (slc_seconds_since(progress->saved_ns) < progress->seconds) {
        return SLC_OK;
    }
    enum slc_status status = save_facts(progress, err);
    progress->saved_ns = slc_clock_ns();
    return status;
}
