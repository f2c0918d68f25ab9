/* The ring alone, with a reader that answers in random order after random delays and workers with
 * random delays: every block is delivered once, in order if requested, and no thread waits forever.
 * Also intended for ThreadSanitizer. */
#include "slc_test.h"

#include "base/error/clock.h"
#include "base/error/fault.h"
#include "base/random.h"
#include "base/thread/team.h"
#include "engine/stream/ring.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_SLOTS = 9, MAX_BLOCKS = 400 };

/* Reasons to end a pass early. */
enum trouble { NO_TROUBLE, FAILED_READ, FAILED_WORKER };

struct pass {
    struct slc_ring *ring;
    uint64_t seed;
    uint64_t blocks;  /* blocks that go through slots */
    uint64_t skipped; /* number of blocks that need no slot */
    unsigned slots;
    bool in_order;
    enum trouble trouble;
    uint64_t trouble_at; /* block at which the trouble occurs */
    unsigned delay_us;   /* largest random delay */
    atomic_uint_fast64_t to_skip;
    atomic_uint_fast64_t tickets; /* order in which blocks were received */
    uint64_t ticket[MAX_BLOCKS];
    atomic_uint taken[MAX_BLOCKS];
    uint64_t payload[MAX_SLOTS]; /* plain memory, synchronized only by the ring */
};

static void pause_randomly(const struct pass *pass, uint64_t draw, uint64_t stream)
{
    struct timespec time = {0, 0};

    if (pass->delay_us > 0) {
        time.tv_nsec =
            (long)slc_random_below(pass->seed, stream, draw, (uint64_t)pass->delay_us * 1000);
        (void)nanosleep(&time, NULL);
    }
}

/* Claims all possible slots, then completes a random read in flight. */
static void play_reader(struct pass *pass)
{
    unsigned flying[MAX_SLOTS];
    uint64_t flying_block[MAX_SLOTS];
    unsigned count = 0;
    uint64_t next = 0;
    uint64_t draw = 0;

    for (;;) {
        struct slc_error fault = SLC_ERROR_INIT;
        unsigned slot;
        unsigned pick;

        while (next < pass->blocks && slc_ring_claim(pass->ring, count == 0, &slot)) {
            flying[count] = slot;
            flying_block[count++] = next++;
        }
        if (count == 0) {
            return;
        }
        pause_randomly(pass, draw, 1);
        pick = (unsigned)slc_random_below(pass->seed, 2, draw++, count);
        slot = flying[pick];
        pass->payload[slot] = flying_block[pick] * 3 + 1;
        if (pass->trouble == FAILED_READ && flying_block[pick] == pass->trouble_at) {
            (void)slc_fail(&fault, SLC_ERR_IO, "the read failed");
            slc_ring_ready(pass->ring, slot, flying_block[pick], &fault);
        } else {
            slc_ring_ready(pass->ring, slot, flying_block[pick], NULL);
        }
        count--;
        flying[pick] = flying[count];
        flying_block[pick] = flying_block[count];
    }
}

static void compute(struct pass *pass, unsigned slot, uint64_t position)
{
    struct slc_error fault = SLC_ERROR_INIT;

    atomic_fetch_add(&pass->taken[position], 1);
    pass->ticket[position] = atomic_fetch_add(&pass->tickets, 1);
    if (pass->payload[slot] != position * 3 + 1) {
        (void)slc_fail(&fault, SLC_ERR_DAMAGED, "the wrong data");
        slc_ring_abort(pass->ring, &fault);
    }
    pause_randomly(pass, position, 3);
    if (pass->trouble == FAILED_WORKER && position == pass->trouble_at) {
        (void)slc_fail(&fault, SLC_ERR_NUMERIC, "the worker failed");
        slc_ring_abort(pass->ring, &fault);
    }
    if (position % 3 == 0) {
        slc_ring_copy(pass->ring, slot);
        pause_randomly(pass, position, 4);
    }
    slc_ring_release(pass->ring, slot);
}

/* Receives blocks; in between, blocks that need no slot; occasionally notifies the others. */
static void play_worker(struct pass *pass)
{
    uint64_t waited_ns = 0;

    for (;;) {
        uint64_t news = slc_ring_news(pass->ring);
        uint64_t left = atomic_load(&pass->to_skip);
        bool wait = left == 0;
        uint64_t position;
        unsigned slot;

        switch (slc_ring_take_block(pass->ring, news, wait, &slot, &position, &waited_ns)) {
        case SLC_RING_BLOCK:
            compute(pass, slot, position);
            if (position % 5 == 0) {
                slc_ring_notify(pass->ring);
            }
            break;
        case SLC_RING_NOTHING:
            if (left > 0 && atomic_compare_exchange_strong(&pass->to_skip, &left, left - 1)) {
                slc_ring_skip(pass->ring);
            }
            break;
        case SLC_RING_NEWS:
            break;
        case SLC_RING_END:
            return;
        }
    }
}

static void play(void *context, unsigned worker, unsigned workers)
{
    (void)workers;
    if (worker == 0) {
        play_reader(context);
    } else {
        play_worker(context);
    }
}

static enum slc_status run_pass(struct pass *pass, unsigned workers, struct slc_error *err)
{
    struct slc_error team = SLC_ERROR_INIT;

    atomic_store(&pass->to_skip, pass->skipped);
    atomic_store(&pass->tickets, 0);
    for (unsigned b = 0; b < MAX_BLOCKS; b++) {
        atomic_store(&pass->taken[b], 0);
    }
    slc_ring_begin(pass->ring, pass->blocks + pass->skipped, pass->in_order);
    SLC_ASSERT_OK(slc_team_run(workers + 1, play, pass, &team), &team);
    return slc_ring_end(pass->ring, err);
}

static void check_complete(const struct pass *pass, unsigned workers)
{
    uint64_t missing = 0;
    uint64_t out_of_order = 0;

    for (uint64_t b = 0; b < pass->blocks; b++) {
        missing += atomic_load(&pass->taken[b]) != 1;
        /* With one worker the tickets have the order of delivery. */
        out_of_order += pass->in_order && workers == 1 && pass->ticket[b] != b;
    }
    CU_ASSERT_EQUAL(missing, 0);
    CU_ASSERT_EQUAL(out_of_order, 0);
    CU_ASSERT_EQUAL(atomic_load(&pass->to_skip), 0);
    for (unsigned slot = 0; slot < pass->slots; slot++) {
        CU_ASSERT(slc_ring_state(pass->ring, slot) == SLC_SLOT_FREE);
    }
}

static void test_stress(void)
{
    static struct pass pass;
    uint64_t round = 0;

    for (unsigned workers = 1; workers <= 8; workers++) {
        for (unsigned shape = 0; shape < 8; shape++) {
            struct slc_error err = SLC_ERROR_INIT;

            round++;
            pass.seed = slc_test_seed() * 1000 + round;
            pass.slots = 1 + (unsigned)slc_random_below(pass.seed, 4, 0, MAX_SLOTS);
            pass.blocks = slc_random_below(pass.seed, 4, 1, MAX_BLOCKS);
            pass.skipped = shape & 2 ? slc_random_below(pass.seed, 4, 2, 50) : 0;
            pass.in_order = shape & 1;
            pass.delay_us = shape & 4 ? 40 : 0;
            pass.trouble = NO_TROUBLE;
            SLC_ASSERT_OK(slc_ring_create(pass.slots, &pass.ring, &err), &err);
            /* The same ring serves pass after pass. */
            for (unsigned again = 0; again < 2; again++) {
                SLC_ASSERT_OK(run_pass(&pass, workers, &err), &err);
                check_complete(&pass, workers);
            }
            slc_ring_destroy(pass.ring);
        }
    }
}

static void test_trouble(void)
{
    static struct pass pass;

    for (unsigned workers = 1; workers <= 8; workers++) {
        for (unsigned shape = 0; shape < 8; shape++) {
            struct slc_error err = SLC_ERROR_INIT;
            const bool read = shape & 1;

            pass.seed = slc_test_seed() * 77 + workers * 10 + shape;
            pass.slots = 1 + (unsigned)slc_random_below(pass.seed, 4, 0, MAX_SLOTS);
            pass.blocks = 60;
            pass.skipped = 0;
            pass.in_order = shape & 2;
            pass.delay_us = shape & 4 ? 40 : 0;
            pass.trouble = read ? FAILED_READ : FAILED_WORKER;
            pass.trouble_at = slc_random_below(pass.seed, 4, 1, pass.blocks);
            SLC_ASSERT_OK(slc_ring_create(pass.slots, &pass.ring, &err), &err);
            SLC_ASSERT_FAILS(run_pass(&pass, workers, &err), read ? SLC_ERR_IO : SLC_ERR_NUMERIC,
                             &err, read ? "the read failed" : "the worker failed");
            CU_ASSERT(slc_ring_aborted(pass.ring));
            /* After an aborted pass the ring is ready for the next. */
            slc_error_clear(&err);
            pass.trouble = NO_TROUBLE;
            SLC_ASSERT_OK(run_pass(&pass, workers, &err), &err);
            check_complete(&pass, workers);
            slc_ring_destroy(pass.ring);
        }
    }
}

/* A single thread makes all steps. */
static void test_states(void)
{
    struct slc_error first = SLC_ERROR_INIT;
    struct slc_error second = SLC_ERROR_INIT;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_ring *ring;
    uint64_t waited_ns = 0;
    uint64_t position;
    unsigned a, b, c;

    SLC_ASSERT_OK(slc_ring_create(2, &ring, &err), &err);
    slc_ring_begin(ring, 3, true);
    CU_ASSERT(slc_ring_claim(ring, false, &a));
    CU_ASSERT(slc_ring_claim(ring, true, &b));
    CU_ASSERT(!slc_ring_claim(ring, false, &c));
    CU_ASSERT(slc_ring_state(ring, a) == SLC_SLOT_READING);
    slc_ring_ready(ring, b, 11, NULL);
    CU_ASSERT(slc_ring_state(ring, b) == SLC_SLOT_READY);
    /* Block 11 has arrived, but it is the turn of block 10. */
    CU_ASSERT(slc_ring_take_block(ring, 0, false, &c, &position, &waited_ns) == SLC_RING_NOTHING);
    slc_ring_notify(ring);
    CU_ASSERT(slc_ring_take_block(ring, 0, true, &c, &position, &waited_ns) == SLC_RING_NEWS);
    CU_ASSERT_EQUAL(waited_ns, 0);
    /* A wait ends by itself, or at once after a notification or an arriving block. */
    slc_ring_wait(ring, 1, 1000, &waited_ns);
    CU_ASSERT(waited_ns >= 1000);
    slc_ring_wait(ring, 0, UINT64_C(3600) * 1000000000, &waited_ns);
    slc_ring_ready(ring, a, 10, NULL);
    slc_ring_wait(ring, 1, UINT64_C(3600) * 1000000000, &waited_ns);
    CU_ASSERT(slc_ring_take_block(ring, 1, true, &c, &position, &waited_ns) == SLC_RING_BLOCK);
    CU_ASSERT(c == a && position == 10);
    CU_ASSERT(slc_ring_state(ring, a) == SLC_SLOT_COMPUTING);
    slc_ring_release(ring, a);
    CU_ASSERT(slc_ring_claim(ring, false, &c) && c == a);
    CU_ASSERT(slc_ring_take_block(ring, 1, true, &c, &position, &waited_ns) == SLC_RING_BLOCK);
    CU_ASSERT(c == b && position == 11);
    slc_ring_copy(ring, b);
    CU_ASSERT(slc_ring_state(ring, b) == SLC_SLOT_COPYING);
    CU_ASSERT(!slc_ring_claim(ring, false, &c));
    (void)slc_fail(&first, SLC_ERR_IO, "first");
    (void)slc_fail(&second, SLC_ERR_DAMAGED, "second");
    slc_ring_ready(ring, a, 12, &first);
    slc_ring_abort(ring, &second);
    slc_ring_wait(ring, 1, UINT64_C(3600) * 1000000000, &waited_ns);
    CU_ASSERT(slc_ring_take_block(ring, 1, true, &c, &position, &waited_ns) == SLC_RING_END);
    CU_ASSERT(!slc_ring_claim(ring, true, &c));
    slc_ring_release(ring, b);
    CU_ASSERT(slc_ring_state(ring, b) == SLC_SLOT_FREE);
    SLC_ASSERT_FAILS(slc_ring_end(ring, &err), SLC_ERR_IO, &err, "first");
    slc_ring_destroy(ring);
    slc_ring_destroy(NULL);
}

static void test_no_memory(void)
{
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_ring *ring;
        enum slc_status status;
        bool hit;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_ring_create(4, &ring, &err);
        hit = slc_fault_seen(SLC_FAULT_ALLOCATION) >= k;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        if (!hit) {
            SLC_ASSERT_OK(status, &err);
            slc_ring_destroy(ring);
            return;
        }
        SLC_ASSERT_FAILS(status, SLC_ERR_MEMORY, &err, "ring");
    }
}

static const struct slc_test tests[] = {
    {"states change step by step", test_states},
    {"1 to 8 workers, random delays, in order and not", test_stress},
    {"failing reads and workers", test_trouble},
    {"no memory", test_no_memory},
};

SLC_SUITE(ring)
{
    return slc_test_main("ring", tests, SLC_COUNT(tests), argc, argv);
}
