/* Choosing a strategy: the forecast of the cost model, the assignment of tiles in a trial, and the
 * winner, with times invented by the test. */
#include "cpu/cpu.h"
#include "cpu/mttkrp/mttkrp_trial.h"
#include "slc_test.h"

#include <string.h>

enum { TILES = 400, COPY_BYTES = 1 << 20 };

/* Time per nonzero of tiles, by candidate, and the bytes of a private output that they touch. */
struct costs {
    uint64_t private_ns, locked_ns;
    uint64_t late_locked_ns; /* locked_ns in the second half of the pass; 0: unchanged */
    uint64_t copied_bytes;   /* further bytes of the private output that a tile touches */
    uint64_t outlier_every;  /* every N-th tile takes a hundred times as long */
};

/* Result of a pass of TILES tiles. */
struct outcome {
    unsigned timed[SLC_CONFLICT_REPLICA + 1]; /* tiles by strategy */
    unsigned others[SLC_CONFLICT_REPLICA + 1];
    enum slc_conflict last; /* strategy of the last tile */
};

static void
begin(struct slc_trial *trial, enum slc_conflict first, enum slc_conflict second, unsigned workers)
{
    const struct slc_mttkrp_job job = {.workers = workers,
                                       .nnz = (uint64_t)TILES * SLC_TILE_NNZ,
                                       .conflict = first,
                                       .rival = second};

    slc_trial_start(trial, &job, COPY_BYTES);
}

static void
add_tile(struct slc_trial *trial, const struct costs *costs, unsigned tile, struct outcome *outcome)
{
    const bool outlier = costs->outlier_every > 0 && tile % costs->outlier_every == 0;
    struct slc_trial_turn *turn;
    const enum slc_conflict conflict = slc_trial_next_strategy(trial, &turn);
    const bool copies = conflict == SLC_CONFLICT_PRIVATE;
    uint64_t ns = copies ? costs->private_ns : costs->locked_ns;

    if (!copies && costs->late_locked_ns > 0 && tile >= TILES / 2) {
        ns = costs->late_locked_ns;
    }
    outcome->last = conflict;
    if (turn == NULL) {
        outcome->others[conflict]++;
        return;
    }
    outcome->timed[conflict]++;
    slc_trial_add_tile(trial, turn, SLC_TILE_NNZ, ns * SLC_TILE_NNZ * (outlier ? 100 : 1),
                       copies ? costs->copied_bytes : 0);
}

static void pass(struct slc_trial *trial, const struct costs *costs, struct outcome *outcome)
{
    memset(outcome, 0, sizeof *outcome);
    for (unsigned tile = 0; tile < TILES; tile++) {
        add_tile(trial, costs, tile, outcome);
    }
}

/* The winner of a trial that begins with either candidate; both must agree. */
static enum slc_conflict winner_of(const struct costs *costs, unsigned workers)
{
    enum slc_conflict winner[2];

    for (unsigned i = 0; i < 2; i++) {
        const enum slc_conflict first = i == 0 ? SLC_CONFLICT_PRIVATE : SLC_CONFLICT_LOCKED;
        const enum slc_conflict second = i == 0 ? SLC_CONFLICT_LOCKED : SLC_CONFLICT_PRIVATE;
        struct slc_conflict_choice choice = {
            .chosen = first,
            .rival = second,
            .cost_count = 2,
            .costs = {{first, 5.0, 0.0}, {second, 6.0, 0.0}},
        };
        struct slc_trial trial;
        struct outcome outcome;

        slc_trial_init(&trial);
        begin(&trial, first, second, workers);
        pass(&trial, costs, &outcome);
        slc_trial_end(&trial);
        CU_ASSERT_TRUE(slc_trial_result(&trial, &choice));
        CU_ASSERT_EQUAL(choice.costs[0].conflict, first);
        CU_ASSERT_EQUAL(choice.costs[0].predicted_ns, 5.0);
        CU_ASSERT_EQUAL(choice.costs[choice.costs[0].conflict != choice.chosen].conflict,
                        choice.chosen);
        CU_ASSERT_TRUE(choice.costs[choice.chosen != first].measured_ns <=
                       choice.costs[choice.chosen == first].measured_ns);
        winner[i] = choice.chosen;
        slc_trial_destroy(&trial);
    }
    CU_ASSERT_EQUAL(winner[0], winner[1]);
    return winner[0];
}

static void deals_in_turns(void)
{
    const struct costs costs = {.private_ns = 4, .locked_ns = 8};

    for (unsigned workers = 1; workers <= 8; workers *= 2) {
        const unsigned half = SLC_TRIAL_TILES_PER_WORKER / 2 * workers;
        struct slc_trial trial;
        struct outcome outcome;

        slc_trial_init(&trial);
        begin(&trial, SLC_CONFLICT_LOCKED, SLC_CONFLICT_PRIVATE, workers);
        pass(&trial, &costs, &outcome);
        CU_ASSERT_EQUAL(outcome.timed[SLC_CONFLICT_PRIVATE], half);
        CU_ASSERT_EQUAL(outcome.timed[SLC_CONFLICT_LOCKED], half);
        /* Private is first in the initial order. */
        CU_ASSERT_EQUAL(outcome.others[SLC_CONFLICT_PRIVATE], TILES - 2 * half);
        CU_ASSERT_EQUAL(outcome.others[SLC_CONFLICT_LOCKED], 0);
        slc_trial_destroy(&trial);
    }
}

static void the_faster_one_wins(void)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        CU_ASSERT_EQUAL(winner_of(&(struct costs){.private_ns = 4, .locked_ns = 5}, workers),
                        SLC_CONFLICT_PRIVATE);
        CU_ASSERT_EQUAL(winner_of(&(struct costs){.private_ns = 5, .locked_ns = 4}, workers),
                        SLC_CONFLICT_LOCKED);
    }
}

/* One tile in five is interrupted; the median of a turn is not affected. */
static void interruptions_do_not_count(void)
{
    CU_ASSERT_EQUAL(
        winner_of(&(struct costs){.private_ns = 4, .locked_ns = 5, .outlier_every = 5}, 4),
        SLC_CONFLICT_PRIVATE);
    CU_ASSERT_EQUAL(
        winner_of(&(struct costs){.private_ns = 5, .locked_ns = 4, .outlier_every = 5}, 4),
        SLC_CONFLICT_LOCKED);
}

/* A strategy that is fast at the start of a file and slow later loses. */
static void all_of_the_pass_counts(void)
{
    const struct costs costs = {.private_ns = 6, .locked_ns = 4, .late_locked_ns = 20};

    CU_ASSERT_EQUAL(winner_of(&costs, 2), SLC_CONFLICT_PRIVATE);
}

/* If every tile touches another part of the private outputs, these outputs cost more than the times
 * of the tiles show, but at most the cost of one whole private output. */
static void copies_are_paid_for(void)
{
    struct costs costs = {.private_ns = 4, .locked_ns = 5};

    costs.copied_bytes = COPY_BYTES / 100; /* the cost is limited to a whole private output, which
                                              is negligible for 26 M nonzeros */
    CU_ASSERT_EQUAL(winner_of(&costs, 2), SLC_CONFLICT_PRIVATE);
    CU_ASSERT_EQUAL(winner_of(&costs, 1), SLC_CONFLICT_PRIVATE); /* adds to the output */
}

/* The private outputs of the trial have 64 bytes per nonzero in all: 13 ns per nonzero, or the
 * measured time. */
static void adding_up_is_measured(void)
{
    static const struct {
        uint64_t add_ns; /* time to add up pieces of 65,536 bytes */
        unsigned pieces;
        enum slc_conflict winner;
    } cases[] = {
        {0, 0, SLC_CONFLICT_LOCKED},
        {1, 15, SLC_CONFLICT_LOCKED}, /* 15 samples are too few for a decision */
        {1, 16, SLC_CONFLICT_PRIVATE},
        {1000, 100, SLC_CONFLICT_PRIVATE},
        {65536, 100, SLC_CONFLICT_LOCKED},
    };

    for (size_t c = 0; c < SLC_COUNT(cases); c++) {
        const struct costs costs = {
            .private_ns = 4, .locked_ns = 10, .copied_bytes = UINT64_C(4) * TILES * SLC_TILE_NNZ};
        const struct slc_mttkrp_job job = {.workers = 2,
                                           .nnz = (uint64_t)TILES * SLC_TILE_NNZ,
                                           .conflict = SLC_CONFLICT_PRIVATE,
                                           .rival = SLC_CONFLICT_LOCKED};
        struct slc_conflict_choice choice = {.chosen = SLC_CONFLICT_PRIVATE};
        struct slc_trial trial;
        struct outcome outcome;

        slc_trial_init(&trial);
        slc_trial_start(&trial, &job, UINT64_C(64) * TILES * SLC_TILE_NNZ);
        pass(&trial, &costs, &outcome);
        CU_ASSERT_EQUAL(outcome.last, SLC_CONFLICT_LOCKED);
        for (unsigned p = 0; p < cases[c].pieces; p++) {
            slc_trial_add_copies(&trial, 65536, cases[c].add_ns);
        }
        slc_trial_end(&trial);
        CU_ASSERT_TRUE(slc_trial_result(&trial, &choice));
        CU_ASSERT_EQUAL(choice.chosen, cases[c].winner);
        slc_trial_destroy(&trial);
    }
}

/* The strategy does not change if the pass ends within the trial, if its tiles are empty, or if
 * there is no second strategy. */
static void decides_nothing_too_early(void)
{
    const struct costs costs = {.private_ns = 9, .locked_ns = 4};
    struct slc_conflict_choice choice = {.chosen = SLC_CONFLICT_PRIVATE};
    struct slc_trial_turn *turn;
    struct slc_trial trial;
    struct outcome outcome;

    slc_trial_init(&trial);
    begin(&trial, SLC_CONFLICT_PRIVATE, SLC_CONFLICT_LOCKED, 2);
    slc_trial_end(&trial);
    CU_ASSERT_FALSE(slc_trial_result(&trial, &choice));
    for (unsigned tile = 0; tile < 3 * TILES / 4; tile++) {
        add_tile(&trial, &costs, tile, &outcome);
    }
    slc_trial_end(&trial);
    CU_ASSERT_FALSE(slc_trial_result(&trial, &choice));

    begin(&trial, SLC_CONFLICT_PRIVATE, SLC_CONFLICT_LOCKED, 2);
    for (unsigned tile = 0; tile < TILES; tile++) {
        (void)slc_trial_next_strategy(&trial, &turn);
        if (turn != NULL) {
            slc_trial_add_tile(&trial, turn, 0, 1000, 0);
        }
    }
    slc_trial_end(&trial);
    CU_ASSERT_TRUE(slc_trial_result(&trial, &choice)); /* the candidate with the faster forecast
                                                        * is kept */

    begin(&trial, SLC_CONFLICT_PRIVATE, SLC_CONFLICT_AUTO, 2);
    CU_ASSERT_FALSE(slc_trial_result(&trial, &choice));
    CU_ASSERT_EQUAL(choice.chosen, SLC_CONFLICT_PRIVATE);
    slc_trial_destroy(&trial);
}

/* The choice of a backend for a shape. */
static struct slc_conflict_choice
choose(unsigned workers, uint64_t nnz, const uint64_t dims[3], bool deterministic)
{
    struct slc_matrix shapes[3];
    struct slc_mttkrp_job job = {.order = 3,
                                 .mode = 0,
                                 .rank = 16,
                                 .nnz = nnz,
                                 .workers = workers,
                                 .deterministic = deterministic,
                                 .output = &shapes[0]};
    struct slc_conflict_choice choice;

    for (unsigned m = 0; m < 3; m++) {
        shapes[m] = (struct slc_matrix){.type = SLC_F64, .rows = dims[m], .cols = 16, .pitch = 16};
        job.factors[m] = &shapes[m];
    }
    slc_cpu_backend_ops()->mttkrp_choose(&job, dims[0], &choice);
    return choice;
}

static void forecasts_measured_times(void)
{
    static const struct {
        unsigned workers;
        uint64_t nnz;
        uint64_t dims[3];
        enum slc_conflict chosen, rival;
    } cases[] = {
        {1, 20000000, {5000000, 3000000, 1000000}, SLC_CONFLICT_DIRECT, SLC_CONFLICT_AUTO},
        /* With small modes, both strategies take about the same time, so a trial gains nothing. */
        {2, 20000000, {1000, 1000, 3587}, SLC_CONFLICT_PRIVATE, SLC_CONFLICT_AUTO},
        {64, 900000000, {1000, 1000, 3587}, SLC_CONFLICT_PRIVATE, SLC_CONFLICT_AUTO},
        /* Tiles that would need sorting: 40 against 65 ns; private outputs for many workers cost
         * too much. */
        {2, 20000000, {3000000, 5000000, 1000000}, SLC_CONFLICT_PRIVATE, SLC_CONFLICT_AUTO},
        {64, 20000000, {5000000, 3000000, 1000000}, SLC_CONFLICT_LOCKED, SLC_CONFLICT_AUTO},
        /* There are so many tiles that trying the strategy with the slower forecast costs
         * little. */
        {2, 52599649, {4774840, 4774840, 56727}, SLC_CONFLICT_PRIVATE, SLC_CONFLICT_LOCKED},
        {64, 900000000, {5000000, 3000000, 1000000}, SLC_CONFLICT_PRIVATE, SLC_CONFLICT_LOCKED},
        /* A large mode whose tiles have narrow windows: both strategies cost about the same. */
        {2, 27809031, {2487826, 58, 197}, SLC_CONFLICT_PRIVATE, SLC_CONFLICT_LOCKED},
        {2, 2780903, {248782, 58, 197}, SLC_CONFLICT_PRIVATE, SLC_CONFLICT_AUTO},
        {8, 27809031, {2487826, 58, 197}, SLC_CONFLICT_LOCKED, SLC_CONFLICT_AUTO},
        {8, 278090310, {24878260, 58, 197}, SLC_CONFLICT_LOCKED, SLC_CONFLICT_PRIVATE},
        {2, 0, {10, 10, 10}, SLC_CONFLICT_LOCKED, SLC_CONFLICT_AUTO},
    };

    for (size_t c = 0; c < SLC_COUNT(cases); c++) {
        const struct slc_conflict_choice choice =
            choose(cases[c].workers, cases[c].nnz, cases[c].dims, false);

        if (choice.chosen != cases[c].chosen || choice.rival != cases[c].rival) {
            printf("# case %zu: %s, rival %s, %.2f and %.2f ns\n", c,
                   slc_conflict_name(choice.chosen), slc_conflict_name(choice.rival),
                   choice.costs[0].predicted_ns, choice.costs[1].predicted_ns);
        }
        CU_ASSERT_EQUAL(choice.chosen, cases[c].chosen);
        CU_ASSERT_EQUAL(choice.rival, cases[c].rival);
        CU_ASSERT_EQUAL(choice.costs[0].conflict, choice.chosen);
        CU_ASSERT_EQUAL(choice.cost_count, cases[c].workers == 1 ? 1 : 2);
        CU_ASSERT_TRUE(cases[c].workers == 1 ||
                       choice.costs[0].predicted_ns <= choice.costs[1].predicted_ns);
    }
}

/* COLUMNS replaces LOCKED if every worker has columns and few workers decode the same tiles. */
static void columns_spare_memory(void)
{
    static const uint64_t dims[3] = {3000000, 5000000, 1000000};
    static const struct {
        unsigned workers;
        bool spare;
    } cases[] = {{1, false}, {2, true}, {4, true}, {64, false}};

    for (size_t c = 0; c < SLC_COUNT(cases); c++) {
        const struct slc_conflict_choice choice = choose(cases[c].workers, 20000000, dims, false);
        const bool private_first = choice.costs[0].conflict == SLC_CONFLICT_PRIVATE;

        CU_ASSERT_EQUAL(choice.spare.conflict,
                        cases[c].spare ? SLC_CONFLICT_COLUMNS : SLC_CONFLICT_AUTO);
        CU_ASSERT_TRUE(!cases[c].spare ||
                       choice.spare.predicted_ns < choice.costs[private_first].predicted_ns);
    }
}

static void deterministic_jobs_have_no_choice(void)
{
    static const uint64_t dims[3] = {2487826, 58, 197};

    for (unsigned workers = 1; workers <= 64; workers *= 8) {
        const struct slc_conflict_choice choice = choose(workers, 900000000, dims, true);

        CU_ASSERT_EQUAL(choice.chosen, SLC_CONFLICT_ORDERED);
        CU_ASSERT_EQUAL(choice.rival, SLC_CONFLICT_AUTO);
        CU_ASSERT_EQUAL(choice.cost_count, 0);
        CU_ASSERT_EQUAL(choice.spare.conflict, SLC_CONFLICT_AUTO);
    }
}

static const struct slc_test tests[] = {
    {"candidates alternate, the leader gets the rest", deals_in_turns},
    {"the faster candidate wins, whichever begins", the_faster_one_wins},
    {"interruptions do not count", interruptions_do_not_count},
    {"all of the pass counts", all_of_the_pass_counts},
    {"copies are paid for once", copies_are_paid_for},
    {"adding up is measured", adding_up_is_measured},
    {"a trial that is not over says nothing", decides_nothing_too_early},
    {"the model forecasts the measured times", forecasts_measured_times},
    {"columns spare memory", columns_spare_memory},
    {"deterministic jobs have no choice", deterministic_jobs_have_no_choice},
};

SLC_SUITE(mttkrp_choice)
{
    return slc_test_main("mttkrp choice", tests, SLC_COUNT(tests), argc, argv);
}
