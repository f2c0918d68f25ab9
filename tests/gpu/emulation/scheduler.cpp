/* Runs grids of emulated threads. Compiled without ThreadSanitizer: its own writes belong to no
 * emulated thread. */
#include "scheduler.h"

#include "fiber.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

enum { WARP = 32, BLOCK_THREADS_MAX = 1024 };
/* Blocks that run simultaneously: enough for each to get a share of the work that a grid divides.
 * In ThreadSanitizer the cost of every barrier of a thread grows with the number of threads. */
#if defined(SLC_EMULATION_TSAN)
enum { LIVE_BLOCKS = 2 };
#else
enum { LIVE_BLOCKS = 3 };
#endif
/* Two would suffice if all threads of a warp met in each call; parts of a warp may be further
 * apart. */
enum { WARP_PHASES = 8 };
/* Initial contents of shared memory: an integer out of any range, a double of 1e120. */
static const unsigned char shared_pattern = 0x58;

enum thread_state { RUNS, MEETS_WARP, MEETS_BLOCK, GONE };

struct emulated_block;

struct grid_thread {
    slc_emulated_thread visible;
    slc_fiber *fiber;
    emulated_block *block;
    thread_state state;
    /* In state MEETS_WARP, the current collective call with its arguments. When all threads have
     * met, `result` is its result. */
    slc_warp_call call;
    unsigned mask, parameter, width;
    uint64_t value, result;
    /* Addresses that represent __syncwarp calls to ThreadSanitizer. `sync` is the address of the
     * current call. The first thread of a warp has the addresses, `phase`, which successive calls
     * use in rotation, because threads may leave one call when others have already reached the
     * next. */
    const void *sync;
    char phase[WARP_PHASES];
    unsigned syncs;
};

struct grid_run {
    const std::function<void()> *body;
    const std::function<unsigned(unsigned)> *random;
    dim3 grid, block;
    unsigned threads; /* number of threads of a block */
};

struct emulated_block {
    const grid_run *run;
    std::vector<grid_thread> threads;
    std::unique_ptr<unsigned char[]> shared;
    unsigned at_barrier, gone;
    unsigned barriers; /* number of barriers that all threads have passed */
    /* Addresses that represent points of order to ThreadSanitizer. Barriers use those of `phase` in
     * rotation; `begun` and `ended` are the points before and after all threads. If these two were
     * one address, the end of a thread would be ordered before the start of another. */
    char phase[2], begun, ended;
};

slc_emulated_thread *slc_emulated_here;
static grid_thread *here;

/* Fibers are reused between grids: creating stacks takes longer than most blocks. */
struct fiber_store {
    std::vector<slc_fiber *> spare;
    unsigned made;

    ~fiber_store()
    {
        for (slc_fiber *fiber : spare) {
            slc_fiber_destroy(fiber);
        }
    }
};
static fiber_store fibers;

void slc_emulation_fail(const char *format, ...)
{
    va_list arguments;

    fputs("emulation: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

static const char *call_name(slc_warp_call call)
{
    static const char *const names[] = {
        "__syncwarp",        "__shfl_sync",       "__shfl_up_sync",   "__shfl_down_sync",
        "__shfl_xor_sync",   "__ballot_sync",     "__match_any_sync", "__reduce_add_sync",
        "__reduce_min_sync", "__reduce_max_sync", "__reduce_or_sync"};

    return names[call];
}

[[noreturn]] static void fail_thread(const grid_thread *thread, const char *what)
{
    const slc_emulated_thread *t = &thread->visible;

    slc_emulation_fail(
        "block %u,%u,%u, thread %u,%u,%u, in %s: %s", t->block_index.x, t->block_index.y,
        t->block_index.z, t->thread_index.x, t->thread_index.y, t->thread_index.z,
        thread->state == MEETS_BLOCK ? "__syncthreads" : call_name(thread->call), what);
}

/* ---- called by emulated threads */

static void wait_as(thread_state state)
{
    here->state = state;
    slc_fiber_give_way();
}

/* Returns the __syncwarp at which threads of the mask already wait, or the warp's next. */
static const void *sync_of(grid_thread *self)
{
    grid_thread *warp = self - self->visible.lane;

    for (unsigned l = 0; l < WARP; l++) {
        if ((self->mask >> l & 1U) != 0 && warp + l <= &self->block->threads.back() &&
            warp[l].state == MEETS_WARP && warp[l].call == SLC_WARP_SYNC &&
            warp[l].mask == self->mask) {
            return warp[l].sync;
        }
    }
    return &warp->phase[warp->syncs++ % WARP_PHASES];
}

uint64_t slc_emulated_warp(
    slc_warp_call call, unsigned mask, uint64_t value, unsigned parameter, unsigned width)
{
    grid_thread *self = here;

    self->call = call;
    self->mask = mask;
    self->value = value;
    self->parameter = parameter;
    self->width = width;
    if ((mask >> self->visible.lane & 1U) == 0) {
        fail_thread(self, "the thread is not in its own mask");
    }
    if (call == SLC_WARP_SYNC) {
        self->sync = sync_of(self);
        slc_fiber_release(self->sync);
    }
    wait_as(MEETS_WARP);
    if (call == SLC_WARP_SYNC) {
        slc_fiber_acquire(self->sync);
    }
    return self->result;
}

void slc_emulated_block(void)
{
    grid_thread *self = here;
    emulated_block *block = self->block;
    const void *barrier = &block->phase[block->barriers % 2];

    block->at_barrier++;
    slc_fiber_release(barrier);
    wait_as(MEETS_BLOCK);
    slc_fiber_acquire(barrier);
}

static void thread_main(void *argument)
{
    grid_thread *self = static_cast<grid_thread *>(argument);

    slc_fiber_acquire(&self->block->begun);
    (*self->block->run->body)();
    slc_fiber_release(&self->block->ended);
    self->state = GONE;
}

/* ---- collective calls of a warp */

static unsigned lanes_of(const grid_thread *warp, unsigned count, thread_state state)
{
    unsigned lanes = 0;

    for (unsigned l = 0; l < count; l++) {
        lanes |= (unsigned)(warp[l].state == state) << l;
    }
    return lanes;
}

/* The lane whose value `lane` receives in a shuffle; its own if the source is out of range. */
static unsigned shuffle_source(const grid_thread *thread, unsigned lane)
{
    const unsigned width = thread->width;
    const unsigned begin = lane / width * width;
    const unsigned place = lane - begin;
    const unsigned parameter = thread->parameter;

    switch (thread->call) {
    case SLC_WARP_SHUFFLE:
        return begin + parameter % width;
    case SLC_WARP_SHUFFLE_UP:
        return place >= parameter ? lane - parameter : lane;
    case SLC_WARP_SHUFFLE_DOWN:
        return place + parameter < width ? lane + parameter : lane;
    default:
        return (place ^ parameter) < width ? begin + (place ^ parameter) : lane;
    }
}

static uint64_t reduce(slc_warp_call call, uint64_t a, uint64_t b)
{
    switch (call) {
    case SLC_WARP_ADD:
        return (uint32_t)(a + b);
    case SLC_WARP_MIN:
        return a < b ? a : b;
    case SLC_WARP_MAX:
        return a > b ? a : b;
    default:
        return a | b;
    }
}

static uint64_t result_of(const grid_thread *warp, unsigned lane, unsigned mask)
{
    const grid_thread *thread = &warp[lane];
    uint64_t result = thread->value;
    unsigned source;

    switch (thread->call) {
    case SLC_WARP_SYNC:
        return 0;
    case SLC_WARP_SHUFFLE:
    case SLC_WARP_SHUFFLE_UP:
    case SLC_WARP_SHUFFLE_DOWN:
    case SLC_WARP_SHUFFLE_XOR:
        source = shuffle_source(thread, lane);
        if ((mask >> source & 1U) == 0) {
            fail_thread(thread, "it reads a thread that takes no part");
        }
        return warp[source].value;
    case SLC_WARP_BALLOT:
    case SLC_WARP_MATCH:
        result = 0;
        for (unsigned l = 0; l < WARP; l++) {
            const bool takes_part = (mask >> l & 1U) != 0;
            const bool set =
                takes_part && (thread->call == SLC_WARP_BALLOT ? warp[l].value != 0
                                                               : warp[l].value == thread->value);

            result |= (uint64_t)set << l;
        }
        return result;
    default:
        for (unsigned l = 0; l < WARP; l++) {
            if (l != lane && (mask >> l & 1U) != 0) {
                result = reduce(thread->call, result, warp[l].value);
            }
        }
        return result;
    }
}

/* Resumes the threads whose whole mask has reached the same call. Returns true if there were
 * any. */
static bool warp_meet(grid_thread *warp, unsigned count)
{
    unsigned waiting = lanes_of(warp, count, MEETS_WARP);
    const unsigned others = lanes_of(warp, count, GONE) | lanes_of(warp, count, MEETS_BLOCK);
    bool any = false;

    for (unsigned l = 0; l < count; l++) {
        const unsigned mask = warp[l].mask & (count == WARP ? ~0U : (1U << count) - 1U);

        if ((waiting >> l & 1U) == 0) {
            continue;
        }
        if ((mask & others) != 0) {
            fail_thread(&warp[l], "a thread of its mask waits elsewhere, or has ended");
        }
        if ((mask & ~waiting) != 0) {
            continue; /* some still run */
        }
        for (unsigned m = 0; m < count; m++) {
            if ((mask >> m & 1U) != 0 &&
                (warp[m].call != warp[l].call || warp[m].mask != warp[l].mask)) {
                fail_thread(&warp[l],
                            "a thread of its mask makes another call, or with another mask");
            }
        }
        for (unsigned m = 0; m < count; m++) {
            if ((mask >> m & 1U) != 0) {
                warp[m].result = result_of(warp, m, mask);
            }
        }
        for (unsigned m = 0; m < count; m++) {
            if ((mask >> m & 1U) != 0) {
                warp[m].state = RUNS;
            }
        }
        waiting &= ~mask;
        any = true;
    }
    return any;
}

/* ---- blocks */

static slc_fiber *fiber_take(void)
{
    slc_fiber *fiber;

    if (fibers.spare.empty()) {
        return slc_fiber_create(fibers.made++);
    }
    fiber = fibers.spare.back();
    fibers.spare.pop_back();
    return fiber;
}

static std::unique_ptr<emulated_block>
block_begin(const grid_run *run, unsigned ordinal, size_t shared_bytes)
{
    std::unique_ptr<emulated_block> block(new emulated_block{});

    block->run = run;
    block->threads.resize(run->threads);
    /* Exact size, so that AddressSanitizer knows its end. */
    block->shared.reset(new unsigned char[shared_bytes]);
    memset(block->shared.get(), shared_pattern, shared_bytes);
    for (unsigned t = 0; t < run->threads; t++) {
        grid_thread *thread = &block->threads[t];

        thread->visible.thread_index = {t % run->block.x, t / run->block.x % run->block.y,
                                        t / run->block.x / run->block.y};
        thread->visible.block_index = {ordinal % run->grid.x, ordinal / run->grid.x % run->grid.y,
                                       ordinal / run->grid.x / run->grid.y};
        thread->visible.block_size = run->block;
        thread->visible.grid_size = run->grid;
        thread->visible.lane = t % WARP;
        thread->visible.shared = block->shared.get();
        thread->block = block.get();
        thread->state = RUNS;
        thread->fiber = fiber_take();
        slc_fiber_begin(thread->fiber, thread_main, thread);
    }
    slc_fiber_release(&block->begun);
    return block;
}

static void thread_run(grid_thread *thread)
{
    here = thread;
    slc_emulated_here = &thread->visible;
    if (!slc_fiber_resume(thread->fiber)) {
        fibers.spare.push_back(thread->fiber);
        thread->fiber = nullptr;
        thread->block->gone++;
    }
}

/* Runs a warp until all its threads wait or have ended. Returns true if any progressed. */
static bool warp_run(emulated_block *block, unsigned first)
{
    const unsigned left = block->run->threads - first;
    const unsigned count = left < WARP ? left : (unsigned)WARP;
    grid_thread *warp = &block->threads[first];
    bool any = false;

    while (lanes_of(warp, count, RUNS) != 0) {
        /* Upwards or downwards from a random start. */
        const unsigned start = (*block->run->random)(count);
        const bool upwards = (*block->run->random)(2) != 0;

        for (unsigned i = 0; i < count; i++) {
            const unsigned l = (start + (upwards ? i : count - i)) % count;

            if (warp[l].state == RUNS) {
                thread_run(&warp[l]);
            }
        }
        any = true;
        warp_meet(warp, count);
    }
    return any;
}

/* Resumes all threads if all have reached the barrier. */
static bool block_meet(emulated_block *block)
{
    if (block->at_barrier == 0 || block->at_barrier + block->gone < block->run->threads) {
        return false;
    }
    for (grid_thread &thread : block->threads) {
        if (block->gone != 0 && thread.state == MEETS_BLOCK) {
            fail_thread(&thread, "other threads of the block have ended");
        }
        thread.state = RUNS;
    }
    block->at_barrier = 0;
    block->barriers++;
    return true;
}

[[noreturn]] static void fail_stuck(const emulated_block *block)
{
    for (const grid_thread &thread : block->threads) {
        if (thread.state == MEETS_WARP || thread.state == MEETS_BLOCK) {
            fail_thread(&thread, "it waits for ever");
        }
    }
    slc_emulation_fail("a block neither runs nor waits");
}

void slc_grid_run(dim3 grid,
                  dim3 block,
                  size_t shared_bytes,
                  const std::function<void()> &body,
                  const std::function<unsigned(unsigned below)> &random)
{
    grid_run run{&body, &random, grid, block, block.x * block.y * block.z};
    const unsigned blocks = grid.x * grid.y * grid.z;
    std::vector<std::unique_ptr<emulated_block>> live;
    unsigned begun = 0;

    if (blocks == 0 || run.threads == 0 || run.threads > BLOCK_THREADS_MAX) {
        slc_emulation_fail("a grid of %u blocks of %u threads", blocks, run.threads);
    }
    slc_fiber_ignore_begin();
    while (begun < blocks || !live.empty()) {
        while (begun < blocks && live.size() < LIVE_BLOCKS) {
            live.push_back(block_begin(&run, begun++, shared_bytes));
        }
        const unsigned b = random((unsigned)live.size());
        emulated_block *chosen = live[b].get();
        const unsigned warps = (run.threads + WARP - 1) / WARP;
        const unsigned first = random(warps);
        bool any = false;

        for (unsigned w = 0; w < warps && !any; w++) {
            any = warp_run(chosen, (first + w) % warps * WARP);
        }
        any = any || block_meet(chosen);
        if (chosen->gone == run.threads) {
            slc_fiber_acquire(&chosen->ended);
            live.erase(live.begin() + b);
        } else if (!any) {
            /* No other block can wake these threads, so they wait forever. */
            fail_stuck(chosen);
        }
    }
    slc_emulated_here = nullptr;
    slc_fiber_ignore_end();
}
