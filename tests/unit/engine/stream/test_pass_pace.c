/* The length of parts, by simulating whole runs: parts come close to their target time, for any
 * speed of passes and its changes; short passes are not split; clock jumps do no harm. */
#include "base/random.h"
#include "engine/stream/pass_pace.h"
#include "slc_test.h"

#include <math.h>

#define MIB    (UINT64_C(1) << 20)
#define TARGET 3.0

/* Parts of one simulated pass. */
struct played {
    unsigned parts;
    double first, longest, shortest; /* seconds of the first part and other parts */
};

/* A pass over this many bytes at this rate, times up to `noise` more or less. */
static struct played
play(struct slc_pass_pace *pace, uint64_t bytes, double rate, double noise, uint64_t stream)
{
    struct played played = {.shortest = INFINITY};

    for (uint64_t left = bytes; left > 0; played.parts++) {
        const uint64_t part = slc_pass_pace_bytes(pace, TARGET, left);
        const double drawn = slc_random_f64(slc_test_seed(), stream, played.parts);
        const double seconds = (double)part / rate * (1.0 + noise * (2.0 * drawn - 1.0));

        CU_ASSERT_TRUE_FATAL(part > 0 && part <= left);
        slc_pass_pace_record(pace, part, seconds);
        left -= part;
        if (played.parts == 0) {
            played.first = seconds;
        } else {
            played.longest = fmax(played.longest, seconds);
            played.shortest = fmin(played.shortest, seconds);
        }
    }
    return played;
}

/* The first part is small, later parts are near the target; later passes have no small part. */
static void parts_take_the_target_time(void)
{
    for (unsigned draw = 0; draw < 100; draw++) {
        const double rate = (double)MIB * exp(10.0 * slc_random_f64(slc_test_seed(), 1, draw));
        const uint64_t bytes = 100000 * MIB;
        struct slc_pass_pace pace = {0};
        struct played played = play(&pace, bytes, rate, 0.0, draw);

        CU_ASSERT_DOUBLE_EQUAL(played.first, (double)(64 * MIB) / rate, 0.01 * played.first);
        CU_ASSERT_TRUE(played.parts == 2 || played.shortest > 0.75 * TARGET);
        CU_ASSERT_TRUE(played.longest < 1.5 * TARGET + 0.01);
        played = play(&pace, bytes, rate, 0.2, draw);
        CU_ASSERT_TRUE(played.first < 1.9 * TARGET);
        CU_ASSERT_TRUE(played.longest < 2.3 * TARGET);
        CU_ASSERT_TRUE(played.parts < 3 || played.shortest > 0.4 * TARGET);
    }
}

/* A short pass is a single part: from the start if it is small, and otherwise once it is known
 * to be fast. */
static void short_passes_are_whole(void)
{
    struct slc_pass_pace pace = {0};

    CU_ASSERT_EQUAL(play(&pace, 1, (double)MIB, 0.0, 1).parts, 1);
    pace.bytes_per_second = 0.0;
    CU_ASSERT_EQUAL(play(&pace, 95 * MIB, (double)MIB, 0.0, 1).parts, 1);
    pace.bytes_per_second = 0.0;
    CU_ASSERT_EQUAL(play(&pace, 400 * MIB, 100.0 * (double)MIB, 0.0, 1).parts, 2);
    CU_ASSERT_EQUAL(play(&pace, 400 * MIB, 100.0 * (double)MIB, 0.0, 1).parts, 1);
    CU_ASSERT_EQUAL(play(&pace, 500 * MIB, 100.0 * (double)MIB, 0.0, 1).parts, 2);
}

/* Ten times faster once blocks are cached, or slower because of another process: adapts after a
 * few parts. */
static void follows_changes(void)
{
    struct slc_pass_pace pace = {0};
    struct played played;

    (void)play(&pace, 3000 * MIB, 100.0 * (double)MIB, 0.0, 1);
    played = play(&pace, 30000 * MIB, 1000.0 * (double)MIB, 0.0, 1);
    CU_ASSERT_TRUE(played.parts < 22);
    CU_ASSERT_DOUBLE_EQUAL(played.longest, TARGET, 0.3 * TARGET);
    played = play(&pace, 3000 * MIB, 100.0 * (double)MIB, 0.0, 1);
    CU_ASSERT_TRUE(played.longest < 2.0 * TARGET);
}

static void clocks_jump(void)
{
    static const double jumps[] = {0.0, -1.0, -1e300, (double)INFINITY, (double)NAN, 1e-320};
    struct slc_pass_pace pace = {0};

    for (size_t i = 0; i < SLC_COUNT(jumps); i++) {
        slc_pass_pace_record(&pace, 1000 * MIB, jumps[i]);
        CU_ASSERT_EQUAL(pace.bytes_per_second, 0.0);
    }
    slc_pass_pace_record(&pace, 0, 1.0);
    CU_ASSERT_EQUAL(pace.bytes_per_second, 0.0);
    /* An hour that did not elapse: the next parts are small, then right again. */
    slc_pass_pace_record(&pace, 1000 * MIB, 10.0);
    slc_pass_pace_record(&pace, 300 * MIB, 3600.0);
    CU_ASSERT_TRUE(slc_pass_pace_bytes(&pace, TARGET, 100000 * MIB) > 0);
    CU_ASSERT_TRUE(play(&pace, 100000 * MIB, 100.0 * (double)MIB, 0.0, 1).parts < 350);
    /* The slowest possible rate, and the fastest. */
    pace.bytes_per_second = 1e-300;
    CU_ASSERT_EQUAL(slc_pass_pace_bytes(&pace, TARGET, UINT64_MAX), 1);
    pace.bytes_per_second = 1e300;
    CU_ASSERT_EQUAL(slc_pass_pace_bytes(&pace, TARGET, UINT64_MAX), UINT64_MAX);
}

static const struct slc_test tests[] = {
    {"parts take the target time", parts_take_the_target_time},
    {"short passes are not cut", short_passes_are_whole},
    {"speeds that change", follows_changes},
    {"a clock that jumps", clocks_jump},
};

SLC_SUITE(pass_pace)
{
    return slc_test_main("engine pass pace", tests, SLC_COUNT(tests), argc, argv);
}
