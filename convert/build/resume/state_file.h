/* Saves the progress of a build in a small file of OUT.slc.part. A state is a sequence of 8-byte
 * fields and byte strings in a fixed order; the file adds a checksum. The file is replaced as a
 * whole, so it always holds one complete state. */
#ifndef SLC_CONVERT_STATE_FILE_H
#define SLC_CONVERT_STATE_FILE_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Hashes of the input and of the options. Two builds with equal hashes produce the same store. */
struct slc_build_identity {
    uint64_t input;
    uint64_t options;
};

/* If all members are zero, the state is empty. Owns memory: slc_state_destroy. */
struct slc_state {
    uint8_t *bytes;
    size_t count;
    size_t capacity;
    size_t at; /* position of the next field to be read */
    bool bad;  /* no memory for a field, or a field to be read is missing or too large */
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
/* Writes *number or reads it, like slc_state_pass; the number has no upper bound. */
static inline void slc_state_pass_number(struct slc_state *state, bool reading, uint64_t *number)
{
    *number = slc_state_pass(state, reading, *number, UINT64_MAX);
}

void slc_state_destroy(struct slc_state *state);

/* Writes the state to FOLDER/NAME and replaces an existing file. Errors: SLC_ERR_MEMORY (also if
 * state->bad); those of file operations. */
enum slc_status slc_state_save(const struct slc_state *state,
                               const struct slc_files *files,
                               const char *folder,
                               const char *name,
                               struct slc_error *err) SLC_NODISCARD;

/* Reads the state from FOLDER/NAME; *sound is false if the file is missing or damaged. Errors:
 * those of file operations. */
enum slc_status slc_state_load(struct slc_state *state,
                               const struct slc_files *files,
                               const char *folder,
                               const char *name,
                               bool *sound,
                               struct slc_error *err) SLC_NODISCARD;

/* Reads the identity at the beginning of a state and compares it with `identity`. Returns NULL if
 * they are equal, otherwise a phrase that names the difference. */
const char *slc_identity_differs(struct slc_state *state,
                                 const struct slc_build_identity *identity);

/* Sets *there to true if FOLDER/NAME exists. A NULL folder fails with SLC_ERR_MEMORY, so that
 * callers need not check the allocation of the path. */
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
