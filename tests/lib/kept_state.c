/* Copies the state of an MTTKRP job, and restores it into another job. */
#include "kept_state.h"

#include "slc_test.h"

#include <stdlib.h>
#include <string.h>

void slc_kept_state_take(struct slc_kept_state *kept, struct slc_backend *backend)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_mttkrp_state state;

    memset(kept, 0, sizeof *kept);
    SLC_ASSERT_OK(backend->ops->mttkrp_state(backend, &state, &err), &err);
    kept->count = state.count;
    for (unsigned i = 0; i < state.count; i++) {
        kept->bytes[i] = state.region[i].bytes;
        kept->data[i] = malloc(kept->bytes[i] + 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(kept->data[i]);
        memcpy(kept->data[i], state.region[i].data, kept->bytes[i]);
    }
}

void slc_kept_state_free(struct slc_kept_state *kept)
{
    for (unsigned i = 0; i < kept->count; i++) {
        free(kept->data[i]);
    }
    memset(kept, 0, sizeof *kept);
}

enum slc_status slc_kept_state_give(const struct slc_kept_state *kept,
                                    struct slc_backend *backend,
                                    struct slc_error *err)
{
    struct slc_mttkrp_state state;

    SLC_ASSERT_OK(backend->ops->mttkrp_state(backend, &state, err), err);
    CU_ASSERT_EQUAL_FATAL(state.count, kept->count);
    for (unsigned i = 0; i < state.count; i++) {
        CU_ASSERT_EQUAL_FATAL(state.region[i].bytes, kept->bytes[i]);
        memcpy(state.region[i].data, kept->data[i], kept->bytes[i]);
    }
    return backend->ops->mttkrp_resume(backend, err);
}
