/*
 * The ring: slots between the reader thread and the workers. Pure state and waiting, no I/O, so
 * that it can be tested alone under ThreadSanitizer.
 *
 * A slot is in exactly one state; each change is asserted:
 *   FREE -> READING (reader thread) -> READY (reader) -> COMPUTING (a worker) -> FREE (the worker
 *   that finishes its last tile).
 * Where a device takes whole blocks, a worker that has checked one hands it over: COMPUTING ->
 * COPYING, and FREE when the device has its copy.
 *
 * Handing out in order cannot deadlock: slots are claimed in the order in which blocks are handed
 * out, so the block that is next always holds a slot before any later one does, and its read is
 * never waiting for a later block to be computed.
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

/* What a worker gets from slc_ring_take. */
enum slc_ring_event {
    SLC_RING_BLOCK,   /* a block: *slot and *position are set */
    SLC_RING_NEWS,    /* somebody called slc_ring_tell: look for work elsewhere, then come back */
    SLC_RING_NOTHING, /* nothing now, and the caller did not want to wait */
    SLC_RING_END      /* every block of the pass is done, or it was aborted */
};

struct slc_ring;

/* Owns: slc_ring_destroy, which takes NULL. Errors: SLC_ERR_MEMORY. */
enum slc_status
slc_ring_create(unsigned slot_count, struct slc_ring **ring, struct slc_error *err) SLC_NODISCARD;
void slc_ring_destroy(struct slc_ring *ring);

/*
 * Starts a pass of `blocks` blocks; all slots must be FREE. With `in_order` blocks are handed to
 * workers strictly in the order in which their slots were claimed, whatever order they arrive in.
 */
void slc_ring_begin(struct slc_ring *ring, uint64_t blocks, bool in_order);

/* Reader thread: takes a FREE slot (-> READING). Waits when `wait`; false when there is none (or
   the pass was aborted). */
bool slc_ring_claim(struct slc_ring *ring, bool wait, unsigned *slot);
/* Reader thread: the block with this position has arrived (-> READY), or failed with `fault`
   (copied; the pass aborts and the first such fault is kept). */
void slc_ring_ready(struct slc_ring *ring,
                    unsigned slot,
                    uint64_t position,
                    const struct slc_error *fault);

/*
 * Worker: takes the next READY block (-> COMPUTING). With `wait` it waits for one, for the end, or
 * until slc_ring_news differs from `news`: workers that share the tiles of a block by other means
 * read the news first, look there, and come here last, so that no tile is missed while they sleep.
 * *waited_ns grows by the time spent waiting.
 */
enum slc_ring_event slc_ring_take(struct slc_ring *ring,
                                  uint64_t news,
                                  bool wait,
                                  unsigned *slot,
                                  uint64_t *position,
                                  uint64_t *waited_ns);
/*
 * Worker: waits until there is something for slc_ring_take, as it does, but for so long at most:
 * devices tell nobody when they have made a copy.
 */
void slc_ring_rest(struct slc_ring *ring, uint64_t news, uint64_t most_ns, uint64_t *waited_ns);
/* Worker: a device reads the block from now on (COMPUTING -> COPYING). */
void slc_ring_copy(struct slc_ring *ring, unsigned slot);
/* Worker: done with the block (COMPUTING or COPYING -> FREE). */
void slc_ring_give_back(struct slc_ring *ring, unsigned slot);
/* Worker: a block of the pass that needed no slot is done. */
void slc_ring_skip(struct slc_ring *ring);

/* The number of slc_ring_tell so far; tell wakes every worker that waits in slc_ring_take. */
uint64_t slc_ring_news(const struct slc_ring *ring);
void slc_ring_tell(struct slc_ring *ring);

/* Any thread: ends the pass early with this fault; the first one is kept. */
void slc_ring_abort(struct slc_ring *ring, const struct slc_error *fault);
bool slc_ring_aborted(const struct slc_ring *ring);

/* After all threads have left: frees every slot and returns the kept fault (SLC_OK when none). */
enum slc_status slc_ring_end(struct slc_ring *ring, struct slc_error *err);

enum slc_slot_state slc_ring_state(struct slc_ring *ring, unsigned slot);

#endif
