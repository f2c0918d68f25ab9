/* The ring of slots between the reader thread and the workers. The module only keeps the state of
 * slots and lets threads wait; it makes no I/O, so that it can be tested alone under
 * ThreadSanitizer.
 *
 * A slot goes through these states; assertions check each transition:
 *
 *  - FREE: the slot has no block.
 *  - READING: the reader thread has claimed the slot and reads a block into it.
 *  - READY: the block has arrived, and no worker has taken it.
 *  - COMPUTING: workers multiply the tiles of the block. The worker that finishes the last tile
 *    makes the slot FREE.
 *  - COPYING: only if a device processes whole blocks. A worker has checked the block and passed it
 *    to the device. The slot becomes FREE when the device has its copy.
 *
 * In-order delivery cannot deadlock: slots are claimed in the order of delivery, so the next block
 * always gets a slot before any later block, and its read never waits until a later block has been
 * computed. */
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
    SLC_RING_BLOCK, /* a block was taken; *slot and *position are set */
    /* slc_ring_notify was called: search for other work, then call slc_ring_take_block again */
    SLC_RING_NEWS,
    SLC_RING_NOTHING, /* no block is READY, and `wait` is false */
    SLC_RING_END      /* every block of the pass is done, or the pass was aborted */
};

struct slc_ring;

/* Creates a ring. Ownership: release with slc_ring_destroy, which accepts NULL. Errors:
 * SLC_ERR_MEMORY. */
enum slc_status
slc_ring_create(unsigned slot_count, struct slc_ring **ring, struct slc_error *err) SLC_NODISCARD;
void slc_ring_destroy(struct slc_ring *ring);

/* Starts a pass over `blocks` blocks. Needs: all slots are FREE. With `in_order`, workers get
 * blocks in the order in which their slots were claimed; otherwise in the order of arrival. */
void slc_ring_begin(struct slc_ring *ring, uint64_t blocks, bool in_order);

/* Reader thread: claims a FREE slot (-> READING). With `wait`, waits for a FREE slot. Returns false
 * if no slot is FREE or the pass was aborted. */
bool slc_ring_claim(struct slc_ring *ring, bool wait, unsigned *slot);
/* Reader thread: records that the block at `position` has arrived in the slot (-> READY). If its
 * read failed, `fault` is not NULL: the pass is aborted, and a copy of the first error is kept. */
void slc_ring_ready(struct slc_ring *ring,
                    unsigned slot,
                    uint64_t position,
                    const struct slc_error *fault);

/* Worker: takes the next READY block (-> COMPUTING). With `wait`, waits for a block, for the end of
 * the pass, or until slc_ring_news() differs from `news`. A worker first calls slc_ring_news(),
 * then searches for a tile of an open block, and then passes the number as `news`. If a tile has
 * become available in the meantime, slc_ring_news() has changed, and the worker does not sleep.
 * Adds the waiting time to *waited_ns. */
enum slc_ring_event slc_ring_take_block(struct slc_ring *ring,
                                        uint64_t news,
                                        bool wait,
                                        unsigned *slot,
                                        uint64_t *position,
                                        uint64_t *waited_ns);
/* Worker: waits like slc_ring_take_block, but takes no block, and waits at most `most_ns`. Used to
 * poll devices, which do not signal completed copies. */
void slc_ring_wait(struct slc_ring *ring, uint64_t news, uint64_t most_ns, uint64_t *waited_ns);
/* Worker: records that a device now reads the block (COMPUTING -> COPYING). */
void slc_ring_copy(struct slc_ring *ring, unsigned slot);
/* Worker: releases the block's slot (COMPUTING or COPYING -> FREE). */
void slc_ring_release(struct slc_ring *ring, unsigned slot);
/* Worker: counts a block that needed no slot as done. */
void slc_ring_skip(struct slc_ring *ring);

/* slc_ring_notify wakes every worker that waits in the ring. slc_ring_news returns the number of
 * calls of slc_ring_notify. */
uint64_t slc_ring_news(const struct slc_ring *ring);
void slc_ring_notify(struct slc_ring *ring);

/* Any thread: aborts the pass with the error `fault`. If several threads abort it, the first error
 * is kept. */
void slc_ring_abort(struct slc_ring *ring, const struct slc_error *fault);
bool slc_ring_aborted(const struct slc_ring *ring);

/* Called when all threads have left the pass. Makes every slot FREE and returns the first error, or
 * SLC_OK. */
enum slc_status slc_ring_end(struct slc_ring *ring, struct slc_error *err);

enum slc_slot_state slc_ring_state(struct slc_ring *ring, unsigned slot);

#endif
