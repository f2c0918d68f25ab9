/*
 * The ring: slots between the reader thread and the workers. It only keeps state and waits, without
 * I/O, so that it can be tested in isolation under ThreadSanitizer.
 *
 * A slot is in exactly one state; each transition is asserted:
 *     FREE -> READING (reader thread) -> READY (reader) -> COMPUTING (a worker) -> FREE (the worker
 *     that finishes its last tile).
 * If a device processes whole blocks, a worker that has checked a block passes it to the device:
 * COMPUTING -> COPYING, then FREE when the device has its copy.
 *
 * In-order delivery cannot deadlock: slots are claimed in the order of delivery, so the next block
 * always holds a slot before any later one does, and its read never waits for a later block to be
 * computed.
 */
#ifndef SLC_ENGINE_RING_H
#define SLC_ENGINE_RING_H

#include "base/error/error.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_slot_state {
    SLC_SLOT_FREE,
    SLC_SLOT_READING,
    SLC_SLOT_READY,
    SLC_SLOT_COPYING,
    SLC_SLOT_COMPUTING
};

/* Results of slc_ring_take_block. */
enum slc_ring_event {
    SLC_RING_BLOCK,   /* a block: *slot and *position are set */
    SLC_RING_NEWS,    /* slc_ring_notify was called: search for other work, then call again */
    SLC_RING_NOTHING, /* nothing at present, and `wait` was false */
    SLC_RING_END      /* every block of the pass is done, or the pass was aborted */
};

struct slc_ring;

/* Owns: release with slc_ring_destroy, which accepts NULL. Errors: SLC_ERR_MEMORY. */
enum slc_status
slc_ring_create(unsigned slot_count, struct slc_ring **ring, struct slc_error *err) SLC_NODISCARD;
void slc_ring_destroy(struct slc_ring *ring);

/* Starts a pass of `blocks` blocks; all slots must be FREE. With `in_order` workers get blocks
 * strictly in the order in which their slots were claimed, regardless of the order of arrival. */
void slc_ring_begin(struct slc_ring *ring, uint64_t blocks, bool in_order);

/* Reader thread: claims a FREE slot (-> READING). With `wait`, waits for a FREE slot. Returns false
 * if there is none or the pass was aborted. */
bool slc_ring_claim(struct slc_ring *ring, bool wait, unsigned *slot);
/* Reader thread: records that the block with this position has arrived (-> READY), or that its read
 * failed with `fault`. `fault` is copied; the pass is aborted and the first such error is kept. */
void slc_ring_ready(struct slc_ring *ring,
                    unsigned slot,
                    uint64_t position,
                    const struct slc_error *fault);

/*
 * Worker: takes the next READY block (-> COMPUTING). With `wait`, waits for a block, for the end of
 * the pass, or until slc_ring_news differs from `news`. Workers that share tiles of open blocks
 * first read the news, then search for tiles, and call this function last, so that they miss no
 * tile while they sleep. Adds the waiting time to *waited_ns.
 */
enum slc_ring_event slc_ring_take_block(struct slc_ring *ring,
                                        uint64_t news,
                                        bool wait,
                                        unsigned *slot,
                                        uint64_t *position,
                                        uint64_t *waited_ns);
/* Worker: waits like slc_ring_take_block, but without taking a block, and for at most `most_ns`,
 * because devices do not signal completed copies. */
void slc_ring_wait(struct slc_ring *ring, uint64_t news, uint64_t most_ns, uint64_t *waited_ns);
/* Worker: marks the block as read by a device from now on (COMPUTING -> COPYING). */
void slc_ring_copy(struct slc_ring *ring, unsigned slot);
/* Worker: releases the block's slot (COMPUTING or COPYING -> FREE). */
void slc_ring_release(struct slc_ring *ring, unsigned slot);
/* Worker: counts as done a block of the pass that needed no slot. */
void slc_ring_skip(struct slc_ring *ring);

/* Returns the number of calls of slc_ring_notify so far. Each call of slc_ring_notify wakes every
 * worker in slc_ring_take_block. */
uint64_t slc_ring_news(const struct slc_ring *ring);
void slc_ring_notify(struct slc_ring *ring);

/* Any thread: ends the pass early with the error `fault`; the first error is kept. */
void slc_ring_abort(struct slc_ring *ring, const struct slc_error *fault);
bool slc_ring_aborted(const struct slc_ring *ring);

/* Called after all threads have left the pass: frees every slot and returns the first error, SLC_OK
 * if there was none. */
enum slc_status slc_ring_end(struct slc_ring *ring, struct slc_error *err);

enum slc_slot_state slc_ring_state(struct slc_ring *ring, unsigned slot);

#endif
