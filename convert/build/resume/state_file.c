/* Writes and reads state files. A state file has a magic number, a hash of all following bytes, the
 * size of the state, and the state. */
#include "convert/build/resume/state_file.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <errno.h>
#include <string.h>

#define STATE_MAGIC "\x89SLCSTA1"

enum {
    HEAD_HASH = 8,
    HEAD_COUNT = 16,
    HEAD_BYTES = 24,
    /* Most bytes of a state: several times the size of one with the most buckets and modes. */
    STATE_BYTES_MAX = 64 << 20
};

void slc_state_put_bytes(struct slc_state *state, const void *data, size_t bytes)
{
    if (state->count + bytes > state->capacity) {
        size_t capacity = slc_max_u64(state->count + bytes, slc_max_u64(2 * state->capacity, 1024));
        uint8_t *grown = slc_realloc(state->bytes, capacity);

        if (grown == NULL) {
            state->bad = true;
            return;
        }
        state->bytes = grown;
        state->capacity = capacity;
    }
    if (bytes > 0) {
        memcpy(state->bytes + state->count, data, bytes);
        state->count += bytes;
    }
}

void slc_state_put(struct slc_state *state, uint64_t value)
{
    uint8_t field[8];

    slc_store_u64(field, value);
    slc_state_put_bytes(state, field, sizeof field);
}

void slc_state_get_bytes(struct slc_state *state, void *data, size_t bytes)
{
    if (state->bad || state->count - state->at < bytes) {
        state->bad = true;
        memset(data, 0, bytes);
    } else if (bytes > 0) {
        memcpy(data, state->bytes + state->at, bytes);
        state->at += bytes;
    }
}

uint64_t slc_state_get(struct slc_state *state, uint64_t most)
{
    uint8_t field[8];

    slc_state_get_bytes(state, field, sizeof field);
    uint64_t value = slc_load_u64(field);
    state->bad = state->bad || value > most;
    return state->bad ? 0 : value;
}

void slc_state_destroy(struct slc_state *state)
{
    slc_free(state->bytes);
    *state = (struct slc_state){.bytes = NULL};
}

enum slc_status slc_state_save(const struct slc_state *state,
                               const struct slc_files *files,
                               const char *folder,
                               const char *name,
                               struct slc_error *err)
{
    char *path = slc_path_join(folder, name);
    uint8_t *whole = slc_malloc(HEAD_BYTES + state->count);
    enum slc_status status;

    if (path == NULL || whole == NULL || state->bad) {
        status =
            slc_fail(err, SLC_ERR_MEMORY, "no memory to record the progress of the conversion");
    } else {
        memcpy(whole, STATE_MAGIC, HEAD_HASH);
        slc_store_u64(whole + HEAD_COUNT, state->count);
        memcpy(whole + HEAD_BYTES, state->bytes, state->count);
        slc_store_u64(whole + HEAD_HASH,
                      slc_hash64(whole + HEAD_COUNT, HEAD_BYTES - HEAD_COUNT + state->count));
        status = slc_file_replace(files, path, whole, HEAD_BYTES + state->count, err);
    }
    slc_free(whole);
    slc_free(path);
    return status;
}

/* Extracts the state from the bytes of a file. Returns false if the bytes are invalid. */
static bool open_whole(struct slc_state *state, uint8_t *whole, uint64_t bytes)
{
    if (bytes < HEAD_BYTES || memcmp(whole, STATE_MAGIC, HEAD_HASH) != 0 ||
        slc_load_u64(whole + HEAD_COUNT) != bytes - HEAD_BYTES ||
        slc_load_u64(whole + HEAD_HASH) != slc_hash64(whole + HEAD_COUNT, bytes - HEAD_COUNT)) {
        return false;
    }
    state->bytes = whole;
    state->count = state->capacity = bytes;
    state->at = HEAD_BYTES;
    state->bad = false;
    return true;
}

enum slc_status slc_state_load(struct slc_state *state,
                               const struct slc_files *files,
                               const char *folder,
                               const char *name,
                               bool *sound,
                               struct slc_error *err)
{
    char *path = slc_path_join(folder, name);
    struct slc_file_stat stat;
    void *whole = NULL;
    uint64_t bytes = 0;
    enum slc_status status = SLC_OK;

    *sound = false;
    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    int code = files->stat_path(files->self, path, &stat);
    if (code < 0 && code != -ENOENT) {
        status = slc_fail_errno(err, -code, path, "looking for the state of an earlier run");
    }
    if (code >= 0 && stat.kind == 'f' && stat.bytes <= STATE_BYTES_MAX) {
        status = slc_file_load(files, path, STATE_BYTES_MAX, &whole, &bytes, err);
    }
    if (whole != NULL) {
        *sound = open_whole(state, whole, bytes);
    }
    if (!*sound) {
        slc_free(whole);
    }
    slc_free(path);
    return status;
}

const char *slc_identity_differs(struct slc_state *state, const struct slc_build_identity *identity)
{
    if (slc_state_get(state, UINT64_MAX) != identity->input) {
        return "the input has changed";
    }
    return slc_state_get(state, UINT64_MAX) != identity->options ? "its options differ" : NULL;
}

enum slc_status slc_state_exists(const struct slc_files *files,
                                 const char *folder,
                                 const char *name,
                                 bool *there,
                                 struct slc_error *err)
{
    char *path = folder == NULL ? NULL : slc_path_join(folder, name);
    struct slc_file_stat stat;
    enum slc_status status = SLC_OK;

    *there = false;
    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    int code = files->stat_path(files->self, path, &stat);
    *there = code >= 0;
    if (code < 0 && code != -ENOENT && code != -ENOTDIR && code != -EACCES) {
        status = slc_fail_errno(err, -code, path, "looking for the state of an earlier run");
    }
    slc_free(path);
    return status;
}

enum slc_status slc_state_remove(const struct slc_files *files,
                                 const char *folder,
                                 const char *name,
                                 struct slc_error *err)
{
    char *path = slc_path_join(folder, name);
    enum slc_status status = SLC_OK;

    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    int code = files->unlink(files->self, path);
    if (code < 0 && code != -ENOENT) {
        status = slc_fail_errno(err, -code, path, "removing a file that is no longer needed");
    }
    slc_free(path);
    return status;
}
