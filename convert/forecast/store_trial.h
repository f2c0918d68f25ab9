/*
 * A short trial of a store, for forecasts: what reading, checking and decoding its nonzeros takes,
 * and what they would be as rows of text.
 */
#ifndef SLC_CONVERT_STORE_TRIAL_H
#define SLC_CONVERT_STORE_TRIAL_H

#include "base/error/error.h"
#include "base/memory/limits.h"
#include "storage/block/reader.h"
#include "storage/file/files.h"

#include <stdint.h>

struct slc_store_trial {
    uint64_t nnz;          /* that were tried; 0: none, and nothing is known */
    double decode_seconds; /* of a nonzero, one thread, its share of the checksum included */
    double format_seconds; /* of a nonzero as a row of text, indices from 1 */
    double row_bytes;      /* of that row */
};

/* Nonzeros from all over the tiles that were tried, as the store numbers them. */
struct slc_store_sample {
    uint32_t room, count;
    uint64_t *coords[SLC_MAX_ORDER]; /* `room` each, the caller's */
    double *values;
};

/*
 * Tries some tiles of some blocks from all over the file, for about so many seconds; a block at
 * least, unless they are larger than 64 MiB, of which none is. `sample` (NULL: none is wanted) gets
 * as many nonzeros as it has room for, at most. Memory: a block and a decoder. Errors:
 * SLC_ERR_DAMAGED, SLC_ERR_IO, SLC_ERR_MEMORY.
 */
enum slc_status slc_store_trial(const struct slc_files *files,
                                const struct slc_reader *reader,
                                double seconds,
                                struct slc_store_sample *sample,
                                struct slc_store_trial *trial,
                                struct slc_error *err) SLC_NODISCARD;

#endif
