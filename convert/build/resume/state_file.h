/*
 * How far a build has come, in a small file of its unfinished folder: fields of 8 bytes and runs of
 * bytes, in an order that writer and reader agree on, under a checksum. The file is replaced as a
 * whole, so that it holds one state or the next, never a part of each.
 */
#ifndef SLC_CONVERT_STATE_FILE_H
#define SLC_CONVERT_STATE_FILE_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a store depends on: two builds with the same numbers make the same store. */
struct slc_build_identity {
    uint64_t input;
    uint64_t options;
};

/* All zero: empty. Owns memory: slc_state_destroy. */
struct slc_state {
    uint8_t *bytes;
    size_t count;
    size_t room;
    size_t at; /* of the next field to be read */
    bool bad;  /* no memory for a field, or one that was read was not there or out of range */
};

void slc_state_put(struct slc_state *state, uint64_t value);
void slc_state_put_bytes(struct slc_state *state, const void *data, size_t bytes);

/* The next field; 0, and the state is bad, where there is none or it is above `most`. */
uint64_t slc_state_get(struct slc_state *state, uint64_t most);
/* Copies the next bytes; zeros, and the state is bad, where there are fewer. */
void slc_state_get_bytes(struct slc_state *state, void *data, size_t bytes);

/*
 * For records that one function writes and reads: puts `value` and returns it, or, where `reading`,
 * returns the next field.
 */
static inline uint64_t
slc_state_pass(struct slc_state *state, bool reading, uint64_t value, uint64_t most)
{
    if (reading) {
        return slc_state_get(state, most);
    }
    slc_state_put(state, value);
    return value;
}
/* The same with a number of any value. */
static inline void slc_state_pass_number(struct slc_state *state, bool reading, uint64_t *number)
{
    *number = slc_state_pass(state, reading, *number, UINT64_MAX);
}

void slc_state_destroy(struct slc_state *state);

/* Replaces FOLDER/NAME. Errors: SLC_ERR_MEMORY (also of a state that is bad), SLC_ERR_IO, .. */
enum slc_status slc_state_save(const struct slc_state *state,
                               const struct slc_files *files,
                               const char *folder,
                               const char *name,
                               struct slc_error *err) SLC_NODISCARD;

/* Reads it; *sound is false where it is not there or not what was written. Errors: SLC_ERR_IO, ..
 */
enum slc_status slc_state_load(struct slc_state *state,
                               const struct slc_files *files,
                               const char *folder,
                               const char *name,
                               bool *sound,
                               struct slc_error *err) SLC_NODISCARD;

/* Reads the identity at the beginning of a state. NULL, or what differs. */
const char *slc_identity_differs(struct slc_state *state,
                                 const struct slc_build_identity *identity);

/* Whether FOLDER/NAME is there; a folder that is NULL is one without memory for its path. */
enum slc_status slc_state_exists(const struct slc_files *files,
                                 const char *folder,
                                 const char *name,
                                 bool *there,
                                 struct slc_error *err) SLC_NODISCARD;

/* Removes it; that it is not there is success. */
enum slc_status slc_state_remove(const struct slc_files *files,
                                 const char *folder,
                                 const char *name,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
