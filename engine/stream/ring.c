/* Implements the ring with one mutex, one queue of slots and two condition variables.
 *
 * The queue has READING and READY slots. With `in_order`, slots enter the queue when they are
 * claimed, and the head may be taken only when it is READY. Without `in_order`, slots enter the
 * queue when they become READY, so the head may always be taken. Every call locks the mutex once.
 * This costs little, because there are only a few calls per block of a few megabytes.
 *
 * Invariants, under the mutex: free_count slots are on the stack `free_slots` and are FREE; every
 * slot in the queue is READING or READY; `left` is the number of blocks of the pass that are not
 * done. */
#include "engine/stream/ring.h"

#include "base/error/clock.h"
#include "base/memory/memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define NS_PER_SECOND UINT64_C(1000000000)

struct slot {
    enum slc_slot_state state;
    uint64_t position;
};

struct slc_ring {
    pthread_mutex_t mutex;
    pthread_cond_t freed; /* wakes the reader when a slot becomes FREE or the pass is aborted */
    /* wakes workers when a slot becomes READY, after slc_ring_notify, and at the end of the pass */
    pthread_cond_t changed;
    unsigned slot_count;
    struct slot *slots;
    unsigned *free_slots;
    unsigned free_count;
    unsigned *queue; /* circular queue, slot_count elements */
    unsigned queue_head;
    unsigned queue_count;
    bool in_order;
    uint64_t left;
    atomic_uint_fast64_t news; /* written under the mutex, read without it */
    atomic_bool aborted;       /* written under the mutex, read without it */
    struct slc_error fault;    /* the first error; SLC_OK if there was none */
};

static void
change(struct slc_ring *ring, unsigned slot, enum slc_slot_state from, enum slc_slot_state to)
{
    assert(slot < ring->slot_count);
    assert(ring->slots[slot].state == from);
    ring->slots[slot].state = to;
}

static void enqueue_slot(struct slc_ring *ring, unsigned slot)
{
    assert(ring->queue_count < ring->slot_count);
    ring->queue[(ring->queue_head + ring->queue_count) % ring->slot_count] = slot;
    ring->queue_count++;
}

enum slc_status
slc_ring_create(unsigned slot_count, struct slc_ring **result, struct slc_error *err)
{
    struct slc_ring *ring = slc_calloc(1, sizeof *ring);
    pthread_condattr_t clock;

    SLC_TRY(slc_check_memory(ring != NULL, err, "for a ring of %u slots", slot_count));
    assert(slot_count > 0);
    ring->slot_count = slot_count;
    pthread_mutex_init(&ring->mutex, NULL);
    pthread_cond_init(&ring->freed, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&ring->changed, &clock);
    pthread_condattr_destroy(&clock);
    ring->slots = slc_calloc(slot_count, sizeof *ring->slots);
    ring->free_slots = slc_calloc(slot_count, sizeof *ring->free_slots);
    ring->queue = slc_calloc(slot_count, sizeof *ring->queue);
    if (ring->slots == NULL || ring->free_slots == NULL || ring->queue == NULL) {
        slc_ring_destroy(ring);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a ring of %u slots", slot_count);
    }
    slc_error_clear(&ring->fault);
    *result = ring;
    return SLC_OK;
}

void slc_ring_destroy(struct slc_ring *ring)
{
    if (ring == NULL) {
        return;
    }
    pthread_cond_destroy(&ring->changed);
    pthread_cond_destroy(&ring->freed);
    pthread_mutex_destroy(&ring->mutex);
    slc_free(ring->slots);
    slc_free(ring->free_slots);
    slc_free(ring->queue);
    slc_free(ring);
}

void slc_ring_begin(struct slc_ring *ring, uint64_t blocks, bool in_order)
{
    pthread_mutex_lock(&ring->mutex);
    for (unsigned slot = 0; slot < ring->slot_count; slot++) {
        assert(ring->slots[slot].state == SLC_SLOT_FREE);
        /* The lowest slots are on top of the stack and are claimed first, because if only some
         * slots could be registered with the I/O method, these are the lowest slots. */
        ring->free_slots[slot] = ring->slot_count - 1 - slot;
    }
    ring->free_count = ring->slot_count;
    ring->queue_head = 0;
    ring->queue_count = 0;
    ring->in_order = in_order;
    ring->left = blocks;
    atomic_store(&ring->aborted, false);
    slc_error_clear(&ring->fault);
    pthread_mutex_unlock(&ring->mutex);
}

bool slc_ring_claim(struct slc_ring *ring, bool wait, unsigned *slot)
{
    bool claimed = false;

    pthread_mutex_lock(&ring->mutex);
    while (wait && ring->free_count == 0 && !ring->aborted) {
        pthread_cond_wait(&ring->freed, &ring->mutex);
    }
    if (ring->free_count > 0 && !ring->aborted) {
        *slot = ring->free_slots[--ring->free_count];
        change(ring, *slot, SLC_SLOT_FREE, SLC_SLOT_READING);
        if (ring->in_order) {
            enqueue_slot(ring, *slot);
        }
        claimed = true;
    }
    pthread_mutex_unlock(&ring->mutex);
    return claimed;
}

/* Keeps the first error and wakes all threads. Needs: the caller holds the mutex. */
static void abort_locked(struct slc_ring *ring, const struct slc_error *fault)
{
    assert(fault->status != SLC_OK);
    if (!ring->aborted) {
        ring->fault = *fault;
        atomic_store(&ring->aborted, true);
    }
    pthread_cond_broadcast(&ring->freed);
    pthread_cond_broadcast(&ring->changed);
}

void slc_ring_ready(struct slc_ring *ring,
                    unsigned slot,
                    uint64_t position,
                    const struct slc_error *fault)
{
    pthread_mutex_lock(&ring->mutex);
    change(ring, slot, SLC_SLOT_READING, SLC_SLOT_READY);
    ring->slots[slot].position = position;
    if (fault != NULL) {
        abort_locked(ring, fault);
    } else {
        if (!ring->in_order) {
            enqueue_slot(ring, slot);
        }
        pthread_cond_signal(&ring->changed);
    }
    pthread_mutex_unlock(&ring->mutex);
}

/* Takes the head of the queue if it is READY. Needs: the caller holds the mutex. */
static bool take_head(struct slc_ring *ring, unsigned *slot, uint64_t *position)
{
    if (ring->queue_count == 0) {
        return false;
    }
    unsigned head = ring->queue[ring->queue_head];
    if (ring->slots[head].state != SLC_SLOT_READY) {
        return false;
    }
    change(ring, head, SLC_SLOT_READY, SLC_SLOT_COMPUTING);
    ring->queue_head = (ring->queue_head + 1) % ring->slot_count;
    ring->queue_count--;
    *slot = head;
    *position = ring->slots[head].position;
    /* The new head may have become READY earlier, when it was not the head and could not be taken.
     * Wake a worker for it. */
    if (ring->queue_count > 0 &&
        ring->slots[ring->queue[ring->queue_head]].state == SLC_SLOT_READY) {
        pthread_cond_signal(&ring->changed);
    }
    return true;
}

enum slc_ring_event slc_ring_take_block(struct slc_ring *ring,
                                        uint64_t news,
                                        bool wait,
                                        unsigned *slot,
                                        uint64_t *position,
                                        uint64_t *waited_ns)
{
    enum slc_ring_event event;
    uint64_t start_ns = 0;

    pthread_mutex_lock(&ring->mutex);
    for (;;) {
        if (ring->aborted || ring->left == 0) {
            event = SLC_RING_END;
            break;
        }
        if (take_head(ring, slot, position)) {
            event = SLC_RING_BLOCK;
            break;
        }
        if (!wait) {
            event = SLC_RING_NOTHING;
            break;
        }
        if (ring->news != news) {
            event = SLC_RING_NEWS;
            break;
        }
        if (start_ns == 0) {
            start_ns = slc_clock_ns();
        }
        pthread_cond_wait(&ring->changed, &ring->mutex);
    }
    pthread_mutex_unlock(&ring->mutex);
    if (start_ns != 0) {
        *waited_ns += slc_clock_ns() - start_ns;
    }
    return event;
}

/* Returns true if slc_ring_take_block would return without waiting. Needs: the caller holds the
 * mutex. */
static bool has_event(const struct slc_ring *ring, uint64_t news)
{
    return ring->aborted || ring->left == 0 || ring->news != news ||
           (ring->queue_count > 0 &&
            ring->slots[ring->queue[ring->queue_head]].state == SLC_SLOT_READY);
}

void slc_ring_wait(struct slc_ring *ring, uint64_t news, uint64_t most_ns, uint64_t *waited_ns)
{
    const uint64_t start_ns = slc_clock_ns();
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t until_ns = (uint64_t)until.tv_nsec + most_ns;
    until.tv_sec += (time_t)(until_ns / NS_PER_SECOND);
    until.tv_nsec = (long)(until_ns % NS_PER_SECOND);
    pthread_mutex_lock(&ring->mutex);
    while (!has_event(ring, news) &&
           pthread_cond_timedwait(&ring->changed, &ring->mutex, &until) == 0) {
    }
    pthread_mutex_unlock(&ring->mutex);
    *waited_ns += slc_clock_ns() - start_ns;
}

/* Counts a block as done, and wakes all workers after the last block. Needs: the caller holds the
 * mutex. */
static void count_done(struct slc_ring *ring)
{
    assert(ring->left > 0);
    ring->left--;
    if (ring->left == 0) {
        pthread_cond_broadcast(&ring->changed);
    }
}

void slc_ring_copy(struct slc_ring *ring, unsigned slot)
{
    pthread_mutex_lock(&ring->mutex);
    change(ring, slot, SLC_SLOT_COMPUTING, SLC_SLOT_COPYING);
    pthread_mutex_unlock(&ring->mutex);
}

void slc_ring_release(struct slc_ring *ring, unsigned slot)
{
    pthread_mutex_lock(&ring->mutex);
    assert(slot < ring->slot_count);
    change(ring, slot,
           ring->slots[slot].state == SLC_SLOT_COPYING ? SLC_SLOT_COPYING : SLC_SLOT_COMPUTING,
           SLC_SLOT_FREE);
    ring->free_slots[ring->free_count++] = slot;
    count_done(ring);
    pthread_cond_signal(&ring->freed);
    pthread_mutex_unlock(&ring->mutex);
}

void slc_ring_skip(struct slc_ring *ring)
{
    pthread_mutex_lock(&ring->mutex);
    count_done(ring);
    pthread_mutex_unlock(&ring->mutex);
}

uint64_t slc_ring_news(const struct slc_ring *ring)
{
    return atomic_load(&ring->news);
}

void slc_ring_notify(struct slc_ring *ring)
{
    /* Without the mutex, a worker that has compared `news` but does not sleep yet would miss the
     * signal. */
    pthread_mutex_lock(&ring->mutex);
    atomic_fetch_add(&ring->news, 1);
    pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->mutex);
}

void slc_ring_abort(struct slc_ring *ring, const struct slc_error *fault)
{
    pthread_mutex_lock(&ring->mutex);
    abort_locked(ring, fault);
    pthread_mutex_unlock(&ring->mutex);
}

bool slc_ring_aborted(const struct slc_ring *ring)
{
    return atomic_load(&ring->aborted);
}

enum slc_status slc_ring_end(struct slc_ring *ring, struct slc_error *err)
{
    pthread_mutex_lock(&ring->mutex);
    for (unsigned slot = 0; slot < ring->slot_count; slot++) {
        /* Slots are still in use only if the pass was aborted. */
        assert(ring->aborted || ring->slots[slot].state == SLC_SLOT_FREE);
        ring->slots[slot].state = SLC_SLOT_FREE;
    }
    assert(ring->aborted || ring->left == 0);
    pthread_mutex_unlock(&ring->mutex);
    slc_error_pass(err, &ring->fault);
    return ring->fault.status;
}

enum slc_slot_state slc_ring_state(struct slc_ring *ring, unsigned slot)
{
    assert(slot < ring->slot_count);
    pthread_mutex_lock(&ring->mutex);
    enum slc_slot_state state = ring->slots[slot].state;
    pthread_mutex_unlock(&ring->mutex);
    return state;
}
