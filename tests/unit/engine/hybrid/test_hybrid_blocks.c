/* Distribution of blocks: passes are simulated step by step with two sides of given rates and slots
 * and with the test's own clock, so that the result can be compared with the ideal one. */
#include "engine/hybrid/hybrid_blocks.h"
#include "slc_test.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS_MOST = 400 };

/* The blocks and the speeds of a simulated pass. */
struct scene {
    uint64_t count;
    uint64_t nnz[BLOCKS_MOST];
    uint8_t state[BLOCKS_MOST];    /* state of each block at the start of the pass */
    double rate[SLC_HYBRID_PARTS]; /* nonzeros a second */
    unsigned slots;
    unsigned backlog; /* blocks in progress on the device at a time */
};

struct player {
    uint64_t block[BLOCKS_MOST]; /* blocks in progress; the first one is being computed */
    bool slot[BLOCKS_MOST];      /* whether the block is in a slot */
    unsigned count;
    double free_at; /* time at which the computation is finished */
};

/* A simulated pass. */
struct play {
    const struct scene *scene;
    struct slc_hybrid_blocks pass;
    struct player player[SLC_HYBRID_PARTS];
    uint64_t order[BLOCKS_MOST];
    uint8_t state[BLOCKS_MOST];
    unsigned taken[BLOCKS_MOST];
    uint64_t done[SLC_HYBRID_PARTS];
    unsigned slots_used;
    double now;
};

static uint64_t ns_of(double seconds)
{
    return (uint64_t)(seconds * 1e9) + 7;
}

static void give(struct play *play, enum slc_hybrid_side side, uint64_t block, bool slot)
{
    struct player *player = &play->player[side];

    CU_ASSERT_EQUAL(slc_hybrid_blocks_side(&play->pass, block), side);
    play->taken[block]++;
    if (player->count == 0) {
        player->free_at = play->now + (double)play->scene->nnz[block] / play->scene->rate[side];
    }
    player->slot[player->count] = slot;
    player->block[player->count++] = block;
}

/* Assigns all available blocks: reads finish at once. */
static void take_all(struct play *play)
{
    bool some = true;

    while (some) {
        uint64_t block;

        some = play->slots_used < play->scene->slots && slc_hybrid_blocks_read(&play->pass, &block);
        if (some) {
            play->slots_used++;
            give(play, slc_hybrid_blocks_side(&play->pass, block), block, true);
        }
        for (enum slc_hybrid_side side = 0; side < SLC_HYBRID_PARTS; side++) {
            const unsigned most = side == SLC_HYBRID_CPU ? 1 : play->scene->backlog;

            if (play->player[side].count < most &&
                slc_hybrid_blocks_next_held(&play->pass, side, &block)) {
                slc_hybrid_blocks_claim(&play->pass, side, block);
                give(play, side, block, false);
                some = true;
            }
        }
    }
}

/* Finishes the next block. Returns false if there is none. */
static bool advance(struct play *play)
{
    const struct player *cpu = &play->player[SLC_HYBRID_CPU];
    const struct player *device = &play->player[SLC_HYBRID_GPU];
    enum slc_hybrid_side side = SLC_HYBRID_CPU;
    struct player *player;

    if (cpu->count == 0 && device->count == 0) {
        return false;
    }
    if (cpu->count == 0 || (device->count > 0 && device->free_at < cpu->free_at)) {
        side = SLC_HYBRID_GPU;
    }
    player = &play->player[side];
    play->now = player->free_at;
    play->done[side] += play->scene->nnz[player->block[0]];
    slc_hybrid_blocks_done(&play->pass, side, play->done[side], ns_of(play->now));
    if (player->slot[0]) {
        slc_hybrid_blocks_release(&play->pass, player->block[0]);
        play->slots_used--;
    }
    player->count--;
    memmove(player->block, player->block + 1, player->count * sizeof player->block[0]);
    memmove(player->slot, player->slot + 1, player->count * sizeof player->slot[0]);
    if (player->count > 0) {
        player->free_at += (double)play->scene->nnz[player->block[0]] / play->scene->rate[side];
    }
    return true;
}

/* Simulates a whole pass, in which every block is assigned once. Returns its duration. */
static double play_pass(const struct scene *scene, struct slc_hybrid *share)
{
    struct play *play = calloc(1, sizeof *play);
    struct slc_hybrid_block_list blocks = {.count = scene->count};
    double end;

    CU_ASSERT_FATAL(play != NULL);
    play->scene = scene;
    memcpy(play->state, scene->state, sizeof play->state);
    for (uint64_t b = 0; b < scene->count; b++) {
        play->order[b] = b;
    }
    blocks.order = play->order;
    blocks.nnz = scene->nnz;
    blocks.state = play->state;
    slc_hybrid_blocks_begin(&play->pass, share, &blocks, ns_of(0));
    do {
        take_all(play);
    } while (advance(play));
    for (uint64_t b = 0; b < scene->count; b++) {
        CU_ASSERT_EQUAL(play->taken[b], 1);
        if ((scene->state[b] & SLC_HYBRID_OF_GPU) != 0) {
            CU_ASSERT_EQUAL(slc_hybrid_blocks_side(&play->pass, b), SLC_HYBRID_GPU);
        }
    }
    CU_ASSERT_EQUAL(play->slots_used, 0);
    CU_ASSERT_EQUAL(play->pass.to_read, 0);
    slc_hybrid_blocks_end(&play->pass, ns_of(play->now));
    end = play->now;
    free(play);
    return end;
}

/* Blocks of descending size, the largest `spread` times the smallest; a device `times` as fast
 * as the CPU. */
static struct scene make_scene(uint64_t count, double spread, double times)
{
    struct scene scene = {.count = count, .rate = {1e6, times * 1e6}, .slots = 6, .backlog = 3};

    for (uint64_t b = 0; b < count; b++) {
        const double part = count > 1 ? (double)(count - 1 - b) / (double)(count - 1) : 0;

        scene.nnz[b] = (uint64_t)(10000 * (1 + (spread - 1) * part));
    }
    return scene;
}

static uint64_t all_nnz(const struct scene *scene)
{
    uint64_t nnz = 0;

    for (uint64_t b = 0; b < scene->count; b++) {
        nnz += scene->nnz[b];
    }
    return nnz;
}

/* Returns the time of both sides together without waiting. */
static double ideal_seconds(const struct scene *scene)
{
    return (double)all_nnz(scene) / (scene->rate[SLC_HYBRID_CPU] + scene->rate[SLC_HYBRID_GPU]);
}

/* Makes every `every`-th block resident. */
static void hold(struct scene *scene, unsigned every)
{
    for (uint64_t b = 0; every > 0 && b < scene->count; b += every) {
        scene->state[b] |= SLC_HYBRID_HELD;
    }
}

/* A fixed fraction: within a block of the requested fraction, for any rates. */
static void test_static(void)
{
    static const double fractions[] = {0, 0.01, 0.3, 0.5, 0.9, 1};

    for (size_t f = 0; f < SLC_COUNT(fractions); f++) {
        for (unsigned held = 0; held <= 2; held++) {
            struct scene scene = make_scene(60, 3, held == 1 ? 10 : 0.3);
            struct slc_hybrid share = {.wish = {SLC_HYBRID_STATIC, fractions[f]}};
            const double nnz = (double)all_nnz(&scene);

            hold(&scene, held);
            play_pass(&scene, &share);
            CU_ASSERT_DOUBLE_EQUAL(slc_hybrid_fraction(share.last), fractions[f],
                                   (double)scene.nnz[0] / nnz);
            if (fractions[f] == 0 || fractions[f] == 1) {
                CU_ASSERT_EQUAL(slc_hybrid_fraction(share.last), fractions[f]);
            }
        }
    }
}

/* Resident blocks count towards the device's part, and are kept even if they exceed it. */
static void test_residents(void)
{
    for (unsigned tenths = 0; tenths <= 10; tenths++) {
        struct scene scene = make_scene(100, 1, 4);
        struct slc_hybrid share = {.wish = {SLC_HYBRID_STATIC, 0.4}};
        struct slc_hybrid queue = {.wish = {SLC_HYBRID_QUEUE, 0}};

        for (uint64_t b = 0; b < scene.count; b++) {
            /* Some blocks are resident, and some are to become resident. */
            if (b % 10 < tenths) {
                scene.state[b] =
                    b % 2 == 0 ? SLC_HYBRID_OF_GPU : SLC_HYBRID_OF_GPU | SLC_HYBRID_HELD;
            }
        }
        play_pass(&scene, &share);
        CU_ASSERT_DOUBLE_EQUAL(slc_hybrid_fraction(share.last), fmax(0.4, tenths * 0.1), 1e-9);
        play_pass(&scene, &queue);
        CU_ASSERT_DOUBLE_EQUAL(slc_hybrid_fraction(queue.last), fmax(tenths * 0.1, 0.8), 0.07);
    }
}

/* If all blocks but one are resident, the device leaves this block to the CPU. */
static void test_one_free(void)
{
    for (uint64_t count = 2; count <= 8; count++) {
        struct scene scene = make_scene(count, 1, 1);
        struct slc_hybrid share = {.wish = {SLC_HYBRID_QUEUE, 0}};
        struct slc_hybrid_blocks pass;
        uint64_t order[8], block;
        struct slc_hybrid_block_list blocks = {
            .count = count, .order = order, .nnz = scene.nnz, .state = scene.state};

        for (uint64_t b = 0; b < count; b++) {
            order[b] = b;
            scene.state[b] = b == 1 ? SLC_HYBRID_HELD : SLC_HYBRID_HELD | SLC_HYBRID_OF_GPU;
        }
        slc_hybrid_blocks_begin(&pass, &share, &blocks, ns_of(0));
        for (uint64_t taken = 1; taken < count; taken++) {
            CU_ASSERT(slc_hybrid_blocks_next_held(&pass, SLC_HYBRID_GPU, &block));
            CU_ASSERT(block != 1);
            slc_hybrid_blocks_claim(&pass, SLC_HYBRID_GPU, block);
        }
        CU_ASSERT(slc_hybrid_blocks_next_held(&pass, SLC_HYBRID_CPU, &block));
        CU_ASSERT_EQUAL(block, 1);
    }
}

/* Resident blocks must not leave the CPU idle at the end. */
static void test_queue_with_residents(void)
{
    for (unsigned read = 0; read <= 1; read++) {
        struct scene scene = make_scene(320, 1, 1);
        struct slc_hybrid share = {.wish = {SLC_HYBRID_QUEUE, 0}};

        for (uint64_t b = 0; b < scene.count; b++) {
            const bool stays = b % 16 < 7;

            scene.state[b] = stays       ? SLC_HYBRID_HELD | SLC_HYBRID_OF_GPU
                             : read == 0 ? SLC_HYBRID_HELD
                                         : 0;
        }
        CU_ASSERT(play_pass(&scene, &share) < 1.05 * ideal_seconds(&scene));
    }
}

/* Both sides end at about the same time, for any rates and locations of blocks. */
static void test_queue(void)
{
    static const double times[] = {0.1, 1, 4, 30};

    for (size_t t = 0; t < SLC_COUNT(times); t++) {
        for (unsigned held = 0; held <= 2; held++) {
            struct scene scene = make_scene(300, 2, times[t]);
            struct slc_hybrid share = {.wish = {SLC_HYBRID_QUEUE, 0}};
            double seconds;

            hold(&scene, held);
            seconds = play_pass(&scene, &share);
            CU_ASSERT(seconds < 1.1 * ideal_seconds(&scene) + 4 * 20000 / 1e6);
        }
    }
}

/* The device gets the large blocks. */
static void test_ends(void)
{
    struct scene scene = make_scene(200, 5, 1);
    struct slc_hybrid share = {.wish = {SLC_HYBRID_QUEUE, 0}};
    struct slc_hybrid_block_list blocks = {
        .count = scene.count, .nnz = scene.nnz, .state = scene.state};
    struct slc_hybrid_blocks pass;
    uint64_t order[BLOCKS_MOST], block, last[SLC_HYBRID_PARTS] = {200, 0};
    unsigned count[SLC_HYBRID_PARTS] = {0};

    for (uint64_t b = 0; b < scene.count; b++) {
        order[b] = b;
    }
    blocks.order = order;
    slc_hybrid_blocks_begin(&pass, &share, &blocks, 0);
    while (slc_hybrid_blocks_read(&pass, &block)) {
        const enum slc_hybrid_side side = slc_hybrid_blocks_side(&pass, block);

        CU_ASSERT(side == SLC_HYBRID_CPU ? block < last[side]
                                         : block > last[side] || count[side] == 0);
        last[side] = block;
        count[side]++;
    }
    /* Without feedback the sides alternate. */
    CU_ASSERT_EQUAL(count[SLC_HYBRID_CPU], 100);
    CU_ASSERT_EQUAL(count[SLC_HYBRID_GPU], 100);
    CU_ASSERT_EQUAL(last[SLC_HYBRID_CPU], last[SLC_HYBRID_GPU] + 1);
}

/* The fraction is close to the ratio of rates in the first pass, and closer in later ones. */
static void test_adaptive(void)
{
    static const double times[] = {0.1, 0.5, 1, 3, 20};

    for (size_t t = 0; t < SLC_COUNT(times); t++) {
        for (unsigned held = 0; held <= 2; held++) {
            struct scene scene = make_scene(300, 2, times[t]);
            struct slc_hybrid share = {.wish = {SLC_HYBRID_ADAPTIVE, 0}};
            const double wanted = times[t] / (1 + times[t]);
            double seconds = 0;

            hold(&scene, held);
            CU_ASSERT(slc_hybrid_planned(&share) < 0);
            for (unsigned pass = 0; pass < 4; pass++) {
                seconds = play_pass(&scene, &share);
                CU_ASSERT_DOUBLE_EQUAL(slc_hybrid_fraction(share.last), wanted,
                                       pass == 0 ? 0.06 : 0.02);
                CU_ASSERT(seconds < (pass == 0 ? 1.25 : 1.1) * ideal_seconds(&scene) + 0.04);
            }
            CU_ASSERT_DOUBLE_EQUAL(slc_hybrid_planned(&share), wanted, 0.02);
        }
    }
}

/* A side changes its speed halfway: the fraction follows. */
static void test_follows(void)
{
    struct scene scene = make_scene(300, 1, 9);
    struct slc_hybrid share = {.wish = {SLC_HYBRID_ADAPTIVE, 0}};

    play_pass(&scene, &share);
    CU_ASSERT_DOUBLE_EQUAL(slc_hybrid_planned(&share), 0.9, 0.02);
    scene.rate[SLC_HYBRID_GPU] = 1e6;
    for (unsigned pass = 0; pass < 12; pass++) {
        play_pass(&scene, &share);
    }
    CU_ASSERT_DOUBLE_EQUAL(slc_hybrid_planned(&share), 0.5, 0.02);
}

/* A side that was delayed in the first pass is tried again, and gets its part in the end. */
static void test_held_up(void)
{
    for (unsigned residents = 0; residents <= 8; residents += 8) {
        struct scene scene = make_scene(16, 1, 3);
        struct slc_hybrid share = {.wish = {SLC_HYBRID_ADAPTIVE, 0}};

        for (unsigned b = 0; b < residents; b++) {
            scene.state[2 * b] = SLC_HYBRID_HELD | SLC_HYBRID_OF_GPU;
        }
        scene.rate[SLC_HYBRID_CPU] /= 12;
        play_pass(&scene, &share);
        scene.rate[SLC_HYBRID_CPU] *= 12;
        for (unsigned pass = 0; pass < 20; pass++) {
            play_pass(&scene, &share);
        }
        CU_ASSERT_DOUBLE_EQUAL(slc_hybrid_fraction(share.last), 0.75, 0.07);
    }
}

/* A side so slow that a block takes longer than the whole pass on the other is not tried again. */
static void test_hopeless(void)
{
    struct scene scene = make_scene(16, 1, 200);
    struct slc_hybrid share = {.wish = {SLC_HYBRID_ADAPTIVE, 0}};

    for (unsigned pass = 0; pass < 20; pass++) {
        play_pass(&scene, &share);
        CU_ASSERT(pass == 0 || slc_hybrid_fraction(share.last) == 1);
    }
}

/* No block, one, and two. */
static void test_few_blocks(void)
{
    static const struct slc_hybrid_wish wishes[] = {
        {SLC_HYBRID_STATIC, 0.3}, {SLC_HYBRID_ADAPTIVE, 0}, {SLC_HYBRID_QUEUE, 0}};

    for (size_t w = 0; w < SLC_COUNT(wishes); w++) {
        for (unsigned held = 0; held <= 1; held++) {
            for (uint64_t count = 0; count <= 3; count++) {
                struct scene scene = make_scene(count, 1, 1);
                struct slc_hybrid share = {.wish = wishes[w]};
                double fraction;

                hold(&scene, held);
                scene.slots = 2;
                for (unsigned pass = 0; pass < 3; pass++) {
                    play_pass(&scene, &share);
                    fraction = slc_hybrid_fraction(share.last);
                    CU_ASSERT(count > 0 || fraction < 0);
                    CU_ASSERT(count != 1 || fraction == (wishes[w].kind != SLC_HYBRID_STATIC));
                    CU_ASSERT(count != 2 || wishes[w].kind == SLC_HYBRID_STATIC || fraction == 0.5);
                }
                CU_ASSERT_EQUAL(share.passes, 3);
            }
        }
    }
}

/* Any sizes, states, rates and numbers of slots: every block is assigned once. */
static void test_anything(void)
{
    for (uint64_t round = 0; round < 300; round++) {
        const uint64_t seed = slc_test_seed();
        struct scene scene = {.count = slc_random_below(seed, round, 0, 40),
                              .rate = {1e3 * (1 + (double)slc_random_below(seed, round, 1, 1000)),
                                       1e3 * (1 + (double)slc_random_below(seed, round, 2, 1000))},
                              .slots = 2 + (unsigned)slc_random_below(seed, round, 3, 5),
                              .backlog = 1 + (unsigned)slc_random_below(seed, round, 4, 5)};
        struct slc_hybrid share = {
            .wish = {1 + (enum slc_hybrid_kind)slc_random_below(seed, round, 5, 3),
                     (double)slc_random_below(seed, round, 6, 11) / 10}};

        for (uint64_t b = 0; b < scene.count; b++) {
            const uint64_t state = slc_random_below(seed, round, 100 + b, 5);

            scene.nnz[b] = 1 + slc_random_below(seed, round, 200 + b, 5000);
            scene.state[b] = state < 2    ? SLC_HYBRID_HELD
                             : state == 2 ? SLC_HYBRID_OF_GPU
                             : state == 3 ? SLC_HYBRID_OF_GPU | SLC_HYBRID_HELD
                                          : 0;
        }
        for (unsigned pass = 0; pass < 3; pass++) {
            play_pass(&scene, &share);
        }
        CU_ASSERT_EQUAL(share.parts[0].nnz + share.parts[1].nnz, 3 * all_nnz(&scene));
    }
}

SLC_SUITE(hybrid_blocks)
{
    static const struct slc_test tests[] = {
        {"a fixed fraction", test_static},
        {"blocks that stay with the device", test_residents},
        {"one block that does not stay", test_one_free},
        {"a queue with resident blocks", test_queue_with_residents},
        {"a queue from both ends", test_queue},
        {"the device gets the large blocks, the CPU the small ones", test_ends},
        {"measured rates divide the rest, and later passes", test_adaptive},
        {"a side that changes its pace", test_follows},
        {"a side that was held up", test_held_up},
        {"a side that is too slow for a block", test_hopeless},
        {"few blocks, or none", test_few_blocks},
        {"any blocks and sides", test_anything},
    };

    return slc_test_main("engine: share of a pass", tests, SLC_COUNT(tests), argc, argv);
}
