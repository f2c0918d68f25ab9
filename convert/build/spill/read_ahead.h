/* Reads ahead: while buckets are sorted, a separate thread fetches the chunks of the next bucket
 * from the spill file. Every chunk names its predecessor, so a chain can be fetched only
 * sequentially, and a sorting thread that fetched its own bucket would wait for each chunk.
 *
 * All requests share the buffers. The thread serves requests in the order in which they were made,
 * so it never waits for buffers that only a later request could release. If the thread has not
 * reached a bucket when the bucket's first chunk is needed, the caller fetches the bucket itself,
 * so that a slow disk still has several requests in flight. */
#ifndef SLC_CONVERT_READ_AHEAD_H
#define SLC_CONVERT_READ_AHEAD_H

#include "base/error/error.h"
#include "convert/build/spill/chunk.h"
#include "convert/build/spill/spill.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_read_ahead_options {
    struct slc_spill *spill; /* frozen from create to destroy */
    unsigned requests;       /* maximum number of requests that are active at a time */
    uint8_t *memory;         /* buffers * buffer_bytes, page-aligned */
    uint32_t buffers;        /* at least 2: one used by the caller, one being filled */
    uint32_t buffer_bytes;   /* size of a buffer, whole pages; the caller fetches larger chunks */
};

struct slc_read_ahead;

/* A request for the chunks of one bucket. */
struct slc_read_request;

/* Starts the thread. Ownership: release with slc_read_ahead_destroy. Errors: SLC_ERR_MEMORY,
 * SLC_ERR_SYSTEM. */
enum slc_status slc_read_ahead_create(const struct slc_read_ahead_options *options,
                                      struct slc_read_ahead **ahead,
                                      struct slc_error *err) SLC_NODISCARD;

/* Waits for the chunk being read; drops active requests. Accepts NULL. */
void slc_read_ahead_destroy(struct slc_read_ahead *ahead);

/* Requests the chain that ends with `last`. Never returns NULL; the caller must not have more than
 * options.requests active requests. Threads: any. */
struct slc_read_request *slc_read_ahead_request(struct slc_read_ahead *ahead,
                                                struct slc_chunk_link last);

/* Returns the next chunk of a request, valid until the next call for this request. *found is false
 * if the thread does not read this chain, or has stopped reading it: the caller must then fetch the
 * next chunk and all its predecessors. One caller per request. Errors: those of slc_spill_fetch. */
enum slc_status slc_read_ahead_next(struct slc_read_ahead *ahead,
                                    struct slc_read_request *request,
                                    struct slc_chunk *chunk,
                                    bool *found,
                                    struct slc_error *err) SLC_NODISCARD;

/* Ends a request and drops chunks of its chain that were not returned (for example, if the caller
 * failed). */
void slc_read_ahead_end(struct slc_read_ahead *ahead, struct slc_read_request *request);

#endif
