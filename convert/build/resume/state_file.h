/*
 * Progress of a build in a small file of its part folder: 8-byte fields and byte strings, in a
 * fixed order, with a checksum. The file is replaced as a whole, so it always holds one complete
 * state.
 */
#ifndef SLC_CONVERT_STATE_FILE_H
#define SLC_CONVERT_STATE_FILE_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Identifies a store: two builds with the same numbers produce the same store. */
struct slc_build_identity {
    uint64_t input;
    uint64_t options;
};

/* All zero: empty. Owns memory: slc_state_destroy. */
struct slc_state {
    uint8_t *bytes;
    size_t count;
    size_t capacity;
    size_t at; /* of the next field to be read */
    bool bad;  /* out of memory for a field, or a field read was missing or out of range */
};

void slc_state_put(struct slc_state *state, uint64_t value);
void slc_state_put_bytes(struct slc_state *state, const void *data, size_t bytes);

/* Returns the next field; if it is missing or above `most`, returns 0 and sets `bad`. */
uint64_t slc_state_get(struct slc_state *state, uint64_t most);
/* Copies the next bytes; if there are fewer, writes zeros and sets `bad`. */
void slc_state_get_bytes(struct slc_state *state, void *data, size_t bytes);

/* Lets one function both write and read a record: appends and returns `value`, or, if `reading`,
 * returns the next field. */
static inline uint64_t
slc_state_pass(struct slc_state *state, bool reading, uint64_t value, uint64_t most)
{
    if (reading) {
        return slc_state_get(state, most);
    }
    slc_state_put(state, value);
    return value;
}
/* Does the same in place, for a number without an upper bound. */
static inline void slc_state_pass_number(struct slc_state *state, bool reading, uint64_t *number)
{
    *number = slc_state_pass(state, reading, *number, UINT64_MAX);
}

void slc_state_destroy(struct slc_state *state);

/* Replaces FOLDER/NAME. Errors: SLC_ERR_MEMORY (also if the state is bad), SLC_ERR_IO, .. */
enum slc_status slc_state_save(const struct slc_state *state,
                               const struct slc_files *files,
                               const char *folder,
                               const char *name,
                               struct slc_error *err) SLC_NODISCARD;

/* Reads FOLDER/NAME; *sound is false if it is missing or damaged. Errors: SLC_ERR_IO, .. */
enum slc_status slc_state_load(struct slc_state *state,
                               const struct slc_files *files,
                               const char *folder,
                               const char *name,
                               bool *sound,
                               struct slc_error *err) SLC_NODISCARD;

/* Reads the identity at the beginning of a state. Returns NULL, or the name of the part that
 * differs. */
const char *slc_identity_differs(struct slc_state *state,
                                 const struct slc_build_identity *identity);

/* Checks if FOLDER/NAME exists. A NULL folder fails with SLC_ERR_MEMORY, so that callers need not
 * check the allocation of the path. */
enum slc_status slc_state_exists(const struct slc_files *files,
                                 const char *folder,
                                 const char *name,
                                 bool *there,
                                 struct slc_error *err) SLC_NODISCARD;

/* Removes FOLDER/NAME; succeeds if it does not exist. */
enum slc_status slc_state_remove(const struct slc_files *files,
                                 const char *folder,
                                 const char *name,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
