/* Divides the blocks of a pass between the CPU and the device.
 *
 * With a fixed fraction, blocks are assigned in the order of the schedule. A block goes to the
 * device if this brings the device's fraction of the nonzeros so far closer to the target. So each
 * side gets large and small blocks, and the blocks of both sides are read at about the same rate.
 * Blocks that are resident in device memory are counted first.
 *
 * A measuring pass works like SLC_HYBRID_QUEUE until a tenth of the nonzeros is done and each side
 * has computed some of them. The rest, including blocks in progress, is then divided so that both
 * sides finish together. Later passes are divided by the rates of earlier passes. A side that is
 * too slow for a whole block gets the smallest block after 1, 4, 16, .. passes, because otherwise
 * its rate would never be measured again.
 *
 * Cost: each side scans the order at most four times. A side searches separately for held blocks
 * and for blocks to be read, and each time first among reserved blocks, then among free blocks. */
#include "engine/hybrid/hybrid_blocks.h"

#include "base/memory/checked.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    /* The first 1/10 of the nonzeros is measured, before the rest is divided. */
    MEASURED_SHARE = 10,
    /* A side is ahead if, with one more free block, more than 1/32 of all nonzeros would be in its
     * blocks and not computed. A device copies faster than it computes, and the CPU cannot help
     * with blocks that the device has taken. The limit also bounds how long one side waits for the
     * other at the end of the pass. A side may always have two blocks: one is copied while the
     * other is computed. */
    AHEAD_SHARE = 32,
    AHEAD_BLOCKS = 2
};

#define NO_BLOCK UINT64_MAX

static const uint8_t owner_bit[SLC_HYBRID_PARTS] = {
    [SLC_HYBRID_CPU] = SLC_HYBRID_OF_CPU, [SLC_HYBRID_GPU] = SLC_HYBRID_OF_GPU};

static bool is_free(uint8_t state)
{
    return (state & (SLC_HYBRID_OF_CPU | SLC_HYBRID_OF_GPU | SLC_HYBRID_BLOCK_TAKEN)) == 0;
}

static bool is_held(uint8_t state)
{
    return (state & SLC_HYBRID_HELD) != 0;
}

static void assign_block(struct slc_hybrid_blocks *pass, enum slc_hybrid_side side, uint64_t block)
{
    uint8_t *state = &pass->blocks.state[block];

    *state |= owner_bit[side];
    pass->own_left[side] += pass->blocks.nnz[block];
    if (!is_held(*state)) {
        pass->own_nnz[side] += pass->blocks.nnz[block];
    }
}

/* Divides the free blocks so that the device gets `fraction` of their nonzeros. `tried_block`
 * (NO_BLOCK for none) goes to the side `tried` regardless of the fraction. */
static void assign_free_blocks(struct slc_hybrid_blocks *pass,
                               double fraction,
                               uint64_t tried_block,
                               enum slc_hybrid_side tried)
{
    double target = 0, assigned = 0;

    if (tried_block != NO_BLOCK) {
        assign_block(pass, tried, tried_block);
    }
    for (uint64_t i = 0; i < pass->blocks.count; i++) {
        const uint64_t block = pass->blocks.order[i];
        const double nnz = (double)pass->blocks.nnz[block];

        if (is_free(pass->blocks.state[block])) {
            target += fraction * nnz;
            if (fraction > 0 && target - assigned >= nnz / 2) {
                assign_block(pass, SLC_HYBRID_GPU, block);
                assigned += nnz;
            } else {
                assign_block(pass, SLC_HYBRID_CPU, block);
            }
        }
    }
}

/* Returns the number of nonzeros in free blocks. Sets *smallest to the free block with the fewest
 * nonzeros, or to NO_BLOCK if fewer than two blocks are free. */
static uint64_t count_free(const struct slc_hybrid_blocks *pass, uint64_t *smallest)
{
    uint64_t nnz = 0, blocks = 0, least = 0;

    for (uint64_t b = 0; b < pass->blocks.count; b++) {
        if (is_free(pass->blocks.state[b])) {
            nnz += pass->blocks.nnz[b];
            least = blocks == 0 || pass->blocks.nnz[b] < pass->blocks.nnz[least] ? b : least;
            blocks++;
        }
    }
    *smallest = blocks > 1 ? least : NO_BLOCK;
    return nnz;
}

/* Returns true if a side should be tried with the smallest free block, because it would get no free
 * block if the device got `target` of the free blocks' nonzeros. */
static bool needs_trial(const struct slc_hybrid_blocks *pass,
                        double target,
                        double free_nnz,
                        uint64_t smallest,
                        enum slc_hybrid_side *side)
{
    const struct slc_hybrid *hybrid = pass->hybrid;
    const double cpu_rate = slc_hybrid_rate(&hybrid->rates, SLC_HYBRID_CPU);
    const double device_rate = slc_hybrid_rate(&hybrid->rates, SLC_HYBRID_GPU);

    if (hybrid->wish.kind != SLC_HYBRID_ADAPTIVE || !slc_hybrid_tries_again(hybrid) ||
        smallest == NO_BLOCK) {
        return false;
    }
    double nnz = (double)pass->blocks.nnz[smallest];
    *side = target < free_nnz - target ? SLC_HYBRID_GPU : SLC_HYBRID_CPU;
    if (pass->own_left[*side] > 0 || 2 * fmin(target, free_nnz - target) >= nnz) {
        return false; /* the side has work without a trial */
    }
    return nnz / (*side == SLC_HYBRID_CPU ? cpu_rate : device_rate) <=
           SLC_HYBRID_TRIAL_COST * (double)pass->nnz / (cpu_rate + device_rate);
}

/* Divides the free blocks so that the device computes about `fraction` of all remaining work,
 * including the blocks that it already has. */
static void divide_blocks(struct slc_hybrid_blocks *pass, double fraction)
{
    const uint64_t not_done = pass->nnz - pass->done[SLC_HYBRID_CPU] - pass->done[SLC_HYBRID_GPU];
    const uint64_t device_nnz = pass->own_left[SLC_HYBRID_GPU] + pass->assigned[SLC_HYBRID_GPU] -
                                pass->done[SLC_HYBRID_GPU];
    uint64_t smallest;
    const double free_nnz = (double)count_free(pass, &smallest);
    const double target = fmax(0, fmin(fraction * (double)not_done - (double)device_nnz, free_nnz));
    enum slc_hybrid_side tried = SLC_HYBRID_CPU;

    if (!needs_trial(pass, target, free_nnz, smallest, &tried)) {
        smallest = NO_BLOCK;
    }
    if (free_nnz > 0) {
        assign_free_blocks(pass, target / free_nnz, smallest, tried);
    }
    pass->measuring = false;
}

void slc_hybrid_blocks_begin(struct slc_hybrid_blocks *pass,
                             struct slc_hybrid *hybrid,
                             const struct slc_hybrid_block_list *blocks,
                             uint64_t now_ns)
{
    const double planned = slc_hybrid_planned(hybrid);

    memset(pass, 0, sizeof *pass);
    pass->hybrid = hybrid;
    pass->blocks = *blocks;
    pass->start_ns = now_ns;
    pass->last_ns[SLC_HYBRID_CPU] = now_ns;
    pass->last_ns[SLC_HYBRID_GPU] = now_ns;
    for (uint64_t b = 0; b < blocks->count; b++) {
        pass->nnz += blocks->nnz[b];
        pass->to_read += !is_held(blocks->state[b]);
        if ((blocks->state[b] & SLC_HYBRID_OF_GPU) != 0) {
            assign_block(pass, SLC_HYBRID_GPU, b);
        }
    }
    if (planned >= 0) {
        divide_blocks(pass, planned);
    } else if (blocks->count == 1) {
        divide_blocks(pass, 1); /* one block cannot be divided */
    } else {
        pass->measuring = hybrid->wish.kind == SLC_HYBRID_ADAPTIVE;
    }
}

/* Finds the next block for a side, starting at the side's end of the order. If `own` is set,
 * considers only blocks reserved for the side. */
static bool find_of(
    struct slc_hybrid_blocks *pass, enum slc_hybrid_side side, bool held, bool own, uint64_t *block)
{
    const uint64_t count = pass->blocks.count;
    uint64_t *passed = &pass->passed[side][held][own];

    for (; *passed < count; ++*passed) {
        const uint64_t place = side == SLC_HYBRID_GPU ? *passed : count - 1 - *passed;
        const uint8_t state = pass->blocks.state[pass->blocks.order[place]];

        if (is_held(state) == held && (state & SLC_HYBRID_BLOCK_TAKEN) == 0 &&
            ((!own && is_free(state)) || (state & owner_bit[side]) != 0)) {
            *block = pass->blocks.order[place];
            return true;
        }
    }
    return false;
}

/* Finds the next block for a side: first a block reserved for it, then a free block. */
static bool
find_block(struct slc_hybrid_blocks *pass, enum slc_hybrid_side side, bool held, uint64_t *block)
{
    return find_of(pass, side, held, true, block) || find_of(pass, side, held, false, block);
}

/* Returns true if `block` is free and the side has enough work without it (AHEAD_SHARE). */
static bool
is_ahead(const struct slc_hybrid_blocks *pass, enum slc_hybrid_side side, uint64_t block)
{
    const uint64_t nnz = pass->blocks.nnz[block];
    const uint64_t most = slc_max_u64(pass->nnz / AHEAD_SHARE, AHEAD_BLOCKS * nnz);

    return is_free(pass->blocks.state[block]) &&
           pass->own_left[side] + pass->assigned[side] - pass->done[side] + nnz > most;
}

/* If both sides have a block to be read, chooses the side whose block is read next. */
static enum slc_hybrid_side prefer_side(const struct slc_hybrid_blocks *pass,
                                        const uint64_t block[SLC_HYBRID_PARTS])
{
    const bool cpu_ahead = is_ahead(pass, SLC_HYBRID_CPU, block[SLC_HYBRID_CPU]);
    const bool device_ahead = is_ahead(pass, SLC_HYBRID_GPU, block[SLC_HYBRID_GPU]);
    const double cpu_read = (double)pass->own_nnz_read[SLC_HYBRID_CPU];
    const double device_read = (double)pass->own_nnz_read[SLC_HYBRID_GPU];

    if (cpu_ahead != device_ahead) {
        return cpu_ahead ? SLC_HYBRID_GPU : SLC_HYBRID_CPU;
    }
    if (pass->in_progress[SLC_HYBRID_CPU] != pass->in_progress[SLC_HYBRID_GPU]) {
        return pass->in_progress[SLC_HYBRID_CPU] < pass->in_progress[SLC_HYBRID_GPU]
                   ? SLC_HYBRID_CPU
                   : SLC_HYBRID_GPU;
    }
    /* Chooses the side that has read the smaller fraction of its own blocks. */
    return cpu_read * (double)pass->own_nnz[SLC_HYBRID_GPU] <
                   device_read * (double)pass->own_nnz[SLC_HYBRID_CPU]
               ? SLC_HYBRID_CPU
               : SLC_HYBRID_GPU;
}

bool slc_hybrid_blocks_read(struct slc_hybrid_blocks *pass, uint64_t *block)
{
    uint64_t next[SLC_HYBRID_PARTS];
    const bool cpu = find_block(pass, SLC_HYBRID_CPU, false, &next[SLC_HYBRID_CPU]);
    const bool device = find_block(pass, SLC_HYBRID_GPU, false, &next[SLC_HYBRID_GPU]);
    enum slc_hybrid_side side = cpu ? SLC_HYBRID_CPU : SLC_HYBRID_GPU;

    if (!cpu && !device) {
        return false;
    }
    if (cpu && device) {
        side = prefer_side(pass, next);
    }
    *block = next[side];
    if ((pass->blocks.state[*block] & owner_bit[side]) != 0) {
        pass->own_nnz_read[side] += pass->blocks.nnz[*block];
    }
    slc_hybrid_blocks_claim(pass, side, *block);
    pass->in_progress[side]++;
    pass->to_read--;
    return true;
}

bool slc_hybrid_blocks_next_held(struct slc_hybrid_blocks *pass,
                                 enum slc_hybrid_side side,
                                 uint64_t *block)
{
    /* The CPU requests a block only when it is idle, so no limit is needed. */
    return find_block(pass, side, true, block) &&
           (side == SLC_HYBRID_CPU || !is_ahead(pass, side, *block));
}

void slc_hybrid_blocks_claim(struct slc_hybrid_blocks *pass,
                             enum slc_hybrid_side side,
                             uint64_t block)
{
    uint8_t *state = &pass->blocks.state[block];

    assert(is_free(*state) ||
           (*state & (owner_bit[side] | SLC_HYBRID_BLOCK_TAKEN)) == owner_bit[side]);
    if (!is_free(*state)) {
        pass->own_left[side] -= pass->blocks.nnz[block];
    }
    *state = (uint8_t)(*state | owner_bit[side] | SLC_HYBRID_BLOCK_TAKEN);
    pass->assigned[side] += pass->blocks.nnz[block];
}

enum slc_hybrid_side slc_hybrid_blocks_side(const struct slc_hybrid_blocks *pass, uint64_t block)
{
    assert((pass->blocks.state[block] & SLC_HYBRID_BLOCK_TAKEN) != 0);
    return (pass->blocks.state[block] & SLC_HYBRID_OF_GPU) != 0 ? SLC_HYBRID_GPU : SLC_HYBRID_CPU;
}

void slc_hybrid_blocks_release(struct slc_hybrid_blocks *pass, uint64_t block)
{
    const enum slc_hybrid_side side = slc_hybrid_blocks_side(pass, block);

    assert(pass->in_progress[side] > 0);
    pass->in_progress[side]--;
}

/* Returns the work that a side has done so far. */
static struct slc_hybrid_part part_of(const struct slc_hybrid_blocks *pass,
                                      enum slc_hybrid_side side)
{
    return (struct slc_hybrid_part){pass->done[side],
                                    (double)(pass->last_ns[side] - pass->start_ns) * 1e-9};
}

void slc_hybrid_blocks_done(struct slc_hybrid_blocks *pass,
                            enum slc_hybrid_side side,
                            uint64_t nnz,
                            uint64_t now_ns)
{
    const uint64_t *done = pass->done;

    /* A damaged block may contain more or fewer nonzeros than its index entry states. */
    nnz = slc_min_u64(nnz, pass->assigned[side]);
    if (nnz <= done[side]) {
        return;
    }
    pass->done[side] = nnz;
    pass->last_ns[side] = now_ns;
    if (pass->measuring && done[SLC_HYBRID_CPU] > 0 && done[SLC_HYBRID_GPU] > 0 &&
        done[SLC_HYBRID_CPU] + done[SLC_HYBRID_GPU] >= pass->nnz / MEASURED_SHARE) {
        struct slc_hybrid_rates rates = {{0}, {0}};

        for (enum slc_hybrid_side s = 0; s < SLC_HYBRID_PARTS; s++) {
            const struct slc_hybrid_part part = part_of(pass, s);

            slc_hybrid_rates_record(&rates, s, &part);
        }
        if (slc_hybrid_rates_fraction(&rates) >= 0) {
            divide_blocks(pass, slc_hybrid_rates_fraction(&rates));
        }
    }
}

void slc_hybrid_blocks_end(struct slc_hybrid_blocks *pass, uint64_t now_ns)
{
    struct slc_hybrid_part parts[SLC_HYBRID_PARTS];

    for (enum slc_hybrid_side side = 0; side < SLC_HYBRID_PARTS; side++) {
        slc_hybrid_blocks_done(pass, side, pass->assigned[side], now_ns);
        parts[side] = part_of(pass, side);
    }
    slc_hybrid_record(pass->hybrid, parts);
}
