/*
 * The ring: slots between the reader thread and the workers. Pure state and waiting, no I/O, so
 * that it can be tested alone under ThreadSanitizer.
 *
 * A slot is in exactly one state; each change is asserted:
 *   FREE -> READING (reader thread) -> READY (reader) -> COMPUTING (a worker) -> FREE (the worker
 *   that finishes its last tile). A GPU adds COPYING between READY and COMPUTING.
 */
#ifndef SLC_ENGINE_RING_H
#define SLC_ENGINE_RING_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_slot_state {
    SLC_SLOT_FREE,
    SLC_SLOT_READING,
    SLC_SLOT_READY,
    SLC_SLOT_COPYING,
    SLC_SLOT_COMPUTING
};

struct slc_ring;

/* Owns: slc_ring_destroy, which takes NULL. Errors: SLC_ERR_MEMORY, SLC_ERR_SYSTEM. */
enum slc_status
slc_ring_create(unsigned slot_count, struct slc_ring **ring, struct slc_error *err) SLC_NODISCARD;
void slc_ring_destroy(struct slc_ring *ring);

/* Starts a pass of `blocks` blocks; all slots must be FREE. With `in_order` blocks are handed to
   workers strictly in ascending position, whatever order they arrive in. */
void slc_ring_begin(struct slc_ring *ring, uint64_t blocks, bool in_order);

/* Reader thread: takes a FREE slot for block position `position` (-> READING). Waits when `wait`;
   false when there is none (or the pass was aborted). */
bool slc_ring_claim(struct slc_ring *ring, uint64_t position, bool wait, unsigned *slot);
/* Reader thread: the block has arrived (-> READY), or failed with `fault` (copied; the pass aborts
   and the first such fault is kept). */
void slc_ring_ready(struct slc_ring *ring, unsigned slot, const struct slc_error *fault);

/* Worker: takes the next READY block (-> COMPUTING); waits for one. False at the end of the pass or
   when it was aborted. *waited_ns grows by the time spent waiting. */
bool slc_ring_take(struct slc_ring *ring, unsigned *slot, uint64_t *position, uint64_t *waited_ns);
/* Worker: done with the block (-> FREE). */
void slc_ring_give_back(struct slc_ring *ring, unsigned slot);

/* Any thread: ends the pass early with this fault; the first one is kept. */
void slc_ring_abort(struct slc_ring *ring, const struct slc_error *fault);
bool slc_ring_aborted(const struct slc_ring *ring);

/* After all threads have left: frees every slot and returns the kept fault (SLC_OK when none). */
enum slc_status slc_ring_end(struct slc_ring *ring, struct slc_error *err);

enum slc_slot_state slc_ring_state(const struct slc_ring *ring, unsigned slot);

#endif
