/*
 * See engine/hybrid/hybrid_blocks.h.
 *
 * A fixed fraction is dealt out over the whole order: a block goes to the device where that brings
 * its nonzeros nearer to what is wanted so far, so that each side has large blocks and small ones,
 * and both are read at about the same time. Blocks that stay in the device's memory count first.
 *
 * A pass that measures is a queue until a tenth of the nonzeros is done and each side has done
 * some. Then what is left, the work that both have in hand included, is divided such that they end
 * together. Later passes are divided by what those before have shown. A side that whole blocks then
 * leave nothing for would never show that it has become quicker: now and then it gets the smallest.
 *
 * Cost: every side passes over the order once for each kind of block.
 */
#include "engine/hybrid/hybrid_blocks.h"

#include "base/memory/checked.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    MEASURED_SHARE =
        10, /* one in so many of the nonzeros is to be done before the rest is divided */
    /*
     * Of free blocks a side takes no more ahead than one in so many of the nonzeros: a device
     * copies sooner than it computes, and what it has taken the CPU cannot help with. That bounds
     * by how much one side ends before the other, too. But so many blocks, for one to be copied
     * while another is computed.
     */
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

static void give_block(struct slc_hybrid_blocks *pass, enum slc_hybrid_side side, uint64_t block)
{
    uint8_t *state = &pass->blocks.state[block];

    *state |= owner_bit[side];
    pass->own_left[side] += pass->blocks.nnz[block];
    if (!is_held(*state)) {
        pass->own_nnz[side] += pass->blocks.nnz[block];
    }
}

/*
 * Divides the free blocks, of which the device is to have this fraction of the nonzeros. One of
 * them goes to a side whatever the fraction is; NO_BLOCK: there is none such.
 */
static void deal_out(struct slc_hybrid_blocks *pass,
                     double fraction,
                     uint64_t tried_block,
                     enum slc_hybrid_side tried)
{
    double wanted = 0, given = 0;

    if (tried_block != NO_BLOCK) {
        give_block(pass, tried, tried_block);
    }
    for (uint64_t i = 0; i < pass->blocks.count; i++) {
        const uint64_t block = pass->blocks.order[i];
        const double nnz = (double)pass->blocks.nnz[block];

        if (is_free(pass->blocks.state[block])) {
            wanted += fraction * nnz;
            if (fraction > 0 && wanted - given >= nnz / 2) {
                give_block(pass, SLC_HYBRID_GPU, block);
                given += nnz;
            } else {
                give_block(pass, SLC_HYBRID_CPU, block);
            }
        }
    }
}

/* Nonzeros of blocks that are free; and the smallest of these, where there are several. */
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

/*
 * Whether a side that would get none of the free blocks, of which the device is to have `wanted`
 * nonzeros, is to be tried again with the smallest.
 */
static bool wants_trial(const struct slc_hybrid_blocks *pass,
                        double wanted,
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
    *side = wanted < free_nnz - wanted ? SLC_HYBRID_GPU : SLC_HYBRID_CPU;
    if (pass->own_left[*side] > 0 || 2 * fmin(wanted, free_nnz - wanted) >= nnz) {
        return false; /* it has something */
    }
    return nnz / (*side == SLC_HYBRID_CPU ? cpu_rate : device_rate) <=
           SLC_HYBRID_TRIAL_COST * (double)pass->nnz / (cpu_rate + device_rate);
}

/*
 * Divides the free blocks such that the device does `fraction` of all that is not done yet, as far
 * as what it has already allows.
 */
static void divide_blocks(struct slc_hybrid_blocks *pass, double fraction)
{
    const uint64_t not_done = pass->nnz - pass->done[SLC_HYBRID_CPU] - pass->done[SLC_HYBRID_GPU];
    const uint64_t device_nnz =
        pass->own_left[SLC_HYBRID_GPU] + pass->given[SLC_HYBRID_GPU] - pass->done[SLC_HYBRID_GPU];
    uint64_t smallest;
    const double free_nnz = (double)count_free(pass, &smallest);
    const double wanted = fmax(0, fmin(fraction * (double)not_done - (double)device_nnz, free_nnz));
    enum slc_hybrid_side tried = SLC_HYBRID_CPU;

    if (!wants_trial(pass, wanted, free_nnz, smallest, &tried)) {
        smallest = NO_BLOCK;
    }
    if (free_nnz > 0) {
        deal_out(pass, wanted / free_nnz, smallest, tried);
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
            give_block(pass, SLC_HYBRID_GPU, b);
        }
    }
    if (planned >= 0) {
        divide_blocks(pass, planned);
    } else if (blocks->count == 1) {
        divide_blocks(pass, 1); /* there is nothing to share */
    } else {
        pass->measuring = hybrid->wish.kind == SLC_HYBRID_ADAPTIVE;
    }
}

/* The next block of a side, from its end of the order; `own`: of those nobody else may have. */
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

/* What the other side could not take over comes first. */
static bool
find_block(struct slc_hybrid_blocks *pass, enum slc_hybrid_side side, bool held, uint64_t *block)
{
    return find_of(pass, side, held, true, block) || find_of(pass, side, held, false, block);
}

/* Whether a side should take no free block now, for it has enough of them. */
static bool
is_ahead(const struct slc_hybrid_blocks *pass, enum slc_hybrid_side side, uint64_t block)
{
    const uint64_t nnz = pass->blocks.nnz[block];
    const uint64_t most = slc_max_u64(pass->nnz / AHEAD_SHARE, AHEAD_BLOCKS * nnz);

    return is_free(pass->blocks.state[block]) &&
           pass->own_left[side] + pass->given[side] - pass->done[side] + nnz > most;
}

/* Which of two sides that have a block to be read gets it read next. */
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
    if (pass->in_hand[SLC_HYBRID_CPU] != pass->in_hand[SLC_HYBRID_GPU]) {
        return pass->in_hand[SLC_HYBRID_CPU] < pass->in_hand[SLC_HYBRID_GPU] ? SLC_HYBRID_CPU
                                                                             : SLC_HYBRID_GPU;
    }
    /* The one of whose own blocks the smaller part has been read. */
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
    slc_hybrid_blocks_take(pass, side, *block);
    pass->in_hand[side]++;
    pass->to_read--;
    return true;
}

bool slc_hybrid_blocks_next_held(struct slc_hybrid_blocks *pass,
                                 enum slc_hybrid_side side,
                                 uint64_t *block)
{
    /* The CPU comes here when it has nothing to do. */
    return find_block(pass, side, true, block) &&
           (side == SLC_HYBRID_CPU || !is_ahead(pass, side, *block));
}

void slc_hybrid_blocks_take(struct slc_hybrid_blocks *pass,
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
    pass->given[side] += pass->blocks.nnz[block];
}

enum slc_hybrid_side slc_hybrid_blocks_side(const struct slc_hybrid_blocks *pass, uint64_t block)
{
    assert((pass->blocks.state[block] & SLC_HYBRID_BLOCK_TAKEN) != 0);
    return (pass->blocks.state[block] & SLC_HYBRID_OF_GPU) != 0 ? SLC_HYBRID_GPU : SLC_HYBRID_CPU;
}

void slc_hybrid_blocks_let_go(struct slc_hybrid_blocks *pass, uint64_t block)
{
    const enum slc_hybrid_side side = slc_hybrid_blocks_side(pass, block);

    assert(pass->in_hand[side] > 0);
    pass->in_hand[side]--;
}

/* What a side has done so far. */
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

    /* What a block says of itself is not what the index does, where it is damaged. */
    nnz = slc_min_u64(nnz, pass->given[side]);
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

            slc_hybrid_rates_note(&rates, s, &part);
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
        slc_hybrid_blocks_done(pass, side, pass->given[side], now_ns);
        parts[side] = part_of(pass, side);
    }
    slc_hybrid_note(pass->hybrid, parts);
}
