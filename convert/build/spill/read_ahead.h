/*
 * Reading ahead: while buckets are sorted, a thread of its own fetches the chunks of the next one
 * from the spill file. As every chunk names the one before it, they can only be fetched one after
 * the other, so whoever fetched those of its own bucket would wait for each.
 *
 * Buffers are common to all buckets. The thread serves them in the order in which they were begun,
 * so the one that it is at never waits for buffers that only a later one could give back. A bucket
 * that it has not come to when its first chunk is wanted is left to the caller: a slow disk then
 * has several requests at a time, as it had without.
 */
#ifndef SLC_CONVERT_READ_AHEAD_H
#define SLC_CONVERT_READ_AHEAD_H

#include "base/error/error.h"
#include "convert/build/spill/chunk.h"
#include "convert/build/spill/spill.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_read_ahead_options {
    struct slc_spill *spill; /* frozen from create to destroy */
    unsigned requests;       /* begun and not ended at a time, at most */
    uint8_t *memory;         /* buffers * buffer_bytes, begins with a page */
    uint32_t buffers;        /* at least 2: one that the caller is at, one being filled */
    uint32_t buffer_bytes;   /* whole pages. Larger chunks are left to the caller */
};

struct slc_read_ahead;

/* The chunks of one bucket. */
struct slc_read_request;

/* Starts the thread. Owns: slc_read_ahead_destroy. Errors: SLC_ERR_MEMORY, SLC_ERR_SYSTEM. */
enum slc_status slc_read_ahead_create(const struct slc_read_ahead_options *options,
                                      struct slc_read_ahead **ahead,
                                      struct slc_error *err) SLC_NODISCARD;

/* Waits for the chunk that is being read; requests that have not ended are dropped. Takes NULL. */
void slc_read_ahead_destroy(struct slc_read_ahead *ahead);

/* Asks for the chain that ends with `last`. Never NULL: see `requests`. Any thread. */
struct slc_read_request *slc_read_ahead_begin(struct slc_read_ahead *ahead,
                                              struct slc_chunk_link last);

/*
 * The next chunk of a request, which stays as it is until the next call for this request. *found is
 * false where reading ahead has ended: that chunk and all before it are the caller's to fetch. One
 * caller per request. Errors: those of slc_spill_fetch.
 */
enum slc_status slc_read_ahead_next(struct slc_read_ahead *ahead,
                                    struct slc_read_request *request,
                                    struct slc_chunk *chunk,
                                    bool *found,
                                    struct slc_error *err) SLC_NODISCARD;

/* Ends a request: what of its chain was read ahead and is not taken, as where the caller has found
 * it wrong, is dropped. */
void slc_read_ahead_end(struct slc_read_ahead *ahead, struct slc_read_request *request);

#endif
