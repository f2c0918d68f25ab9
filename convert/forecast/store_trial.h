/* Measures the time to read, check and decode some nonzeros of a store, and the size of their
 * text. */
#ifndef SLC_CONVERT_STORE_TRIAL_H
#define SLC_CONVERT_STORE_TRIAL_H

#include "base/error/error.h"
#include "base/memory/limits.h"
#include "storage/block/reader.h"
#include "storage/file/files.h"

#include <stdint.h>

struct slc_store_trial {
    uint64_t nnz;          /* nonzeros in the trial; 0: the other fields are unknown */
    double decode_seconds; /* time per nonzero on one thread, including checksums */
    double format_seconds; /* time to write a nonzero as a row of text; indices start at 1 */
    double row_bytes;      /* average length of such a row */
};

/* A sample of nonzeros from all decoded tiles, with the indices of the store. */
struct slc_store_sample {
    uint32_t capacity, count;
    uint64_t *coords[SLC_MAX_ORDER]; /* arrays of `capacity`, owned by the caller */
    double *values;
};

/* Decodes some tiles of some blocks, which are spread over the file, for about `seconds` seconds.
 * Reads at least one block, unless blocks are larger than 64 MiB; then it reads none. `sample` (may
 * be NULL) receives at most `capacity` nonzeros. Memory: one block and one decoder. Errors:
 * SLC_ERR_DAMAGED, SLC_ERR_IO, SLC_ERR_MEMORY. */
enum slc_status slc_store_trial(const struct slc_reader *reader,
                                double seconds,
                                struct slc_store_sample *sample,
                                struct slc_store_trial *trial,
                                struct slc_error *err) SLC_NODISCARD;

#endif
