/* Runs whole commands with clocks that jump by microseconds and by hours, forwards and backwards:
 * the monotonic clock, as on a virtual machine after migration or sleep, and the wall clock, as
 * when it is set. Results are bitwise the same as with steady clocks, no reported time is negative
 * or of another century, and every run ends. */
#include "command_disk.h"
#include "recorded_files.h"
#include "slc_test.h"

#include "base/memory/memory.h"
#include "base/random.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000000)
#define HOUR   (3600 * SECOND)

enum { JUMPS_EVERY = 20, ITERATIONS = 3 };

/* The linker substitutes this main for the command's (command_main.h). */
int __wrap_main(int argc, char **argv);
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
time_t __real_time(time_t *now);
time_t __wrap_time(time_t *now);

enum kind { SOUND, BACK, BOTH_WAYS };

static struct {
    enum kind kind;
    atomic_uint_fast64_t calls;
    /* offset added to the monotonic clock, whose time stays far above 0 */
    atomic_int_fast64_t offset_ns;
    atomic_uint_fast64_t jumps;
    int64_t wall_seconds;
} clocks;

/* The size of the jump at this call; 0: none. */
static int64_t jump_at(uint64_t call)
{
    static const int64_t sizes[] = {SECOND / 1000000, SECOND / 100, 2 * SECOND, HOUR, 5 * HOUR};
    /* One random call in every N: any code that makes N calls meets a jump. */
    const uint64_t drawn = slc_random_below(slc_test_seed(), 1, call / JUMPS_EVERY, JUMPS_EVERY);
    const int64_t size = sizes[slc_random_below(slc_test_seed(), 2, call, SLC_COUNT(sizes))];
    const bool ahead = slc_random_below(slc_test_seed(), 3, call, 2) == 1;

    return clocks.kind == SOUND || drawn != call % JUMPS_EVERY ? 0
           : clocks.kind == BOTH_WAYS && ahead                 ? size
                                                               : -size;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    const int code = __real_clock_gettime(clock, now);
    const int64_t jump = jump_at(atomic_fetch_add(&clocks.calls, 1));
    int64_t told;

    atomic_fetch_add(&clocks.offset_ns, jump);
    atomic_fetch_add(&clocks.jumps, jump != 0);
    told = now->tv_sec * SECOND + now->tv_nsec + atomic_load(&clocks.offset_ns);
    now->tv_sec = (time_t)(told / SECOND);
    now->tv_nsec = (long)(told % SECOND);
    return code;
}

time_t __wrap_time(time_t *now)
{
    const time_t told = __real_time(NULL) + (time_t)clocks.wall_seconds;

    if (now != NULL) {
        *now = told;
    }
    return told;
}

static void set_clocks(enum kind kind, int64_t wall_seconds)
{
    clocks.kind = kind;
    clocks.wall_seconds = wall_seconds;
    atomic_store(&clocks.calls, 0);
    atomic_store(&clocks.jumps, 0);
    atomic_store(&clocks.offset_ns, INT64_C(1000000) * HOUR);
}

/* Whether all values in seconds are plausible times. */
static bool times_are_times(const char *key, const json_t *value)
{
    const char *name;
    json_t *below;
    size_t i;

    if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, name, below)
        {
            const bool all = strcmp(key, "seconds") == 0;

            if (!times_are_times(all ? "seconds" : name, below)) {
                return false;
            }
        }
    }
    json_array_foreach(value, i, below)
    {
        if (!times_are_times(key, below)) {
            return false;
        }
    }
    if (json_is_number(value) && strstr(key, "seconds") != NULL) {
        /* Each jump forwards may be counted as the duration of an iteration. */
        const double most = ITERATIONS * (3600 + 5 * 3600.0 * (double)atomic_load(&clocks.jumps));

        if (!(json_number_value(value) >= 0 && json_number_value(value) <= most)) {
            printf("# %s: %g\n", key, json_number_value(value));
            return false;
        }
    }
    return true;
}

static void expect_times(const struct slc_files *files, const char *path)
{
    struct slc_error err = SLC_ERROR_INIT;
    void *data = NULL;
    uint64_t bytes = 0;
    json_t *record;

    SLC_ASSERT_OK(slc_file_load(files, path, 1 << 20, &data, &bytes, &err), &err);
    record = json_loadb(data, bytes, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(record);
    CU_ASSERT(times_are_times("", record));
    json_decref(record);
    slc_free(data);
}

/* Whether a time in brackets, or in a table, is negative. */
static bool has_negative_time(const char *text)
{
    for (const char *at = text; (at = strchr(at, '-')) != NULL; at++) {
        if (at - text > 2 && strchr("0123456789", at[1]) != NULL &&
            (at[-1] == '(' || (at[-1] == ' ' && at[-2] == ' '))) {
            printf("# %.60s\n", at - 2);
            return true;
        }
    }
    return false;
}

/* The factors of a run that stops at the time limit and is resumed as often as necessary. */
static uint64_t factors_of(const char *limit)
{
    struct slc_recorded *disk = slc_recorded_create();
    const struct slc_files *files = slc_recorded_files(disk);
    struct command_words said;
    struct slc_error err = SLC_ERROR_INIT;
    char command[256];
    uint64_t hashes[4], sum = 0;
    unsigned runs = 0;
    bool stopped = true;

    SLC_ASSERT_OK(command_on_disk(files, "generate x.slc --dims 30x20x10 --nnz 2000 -q --seed 3",
                                  &said, &err),
                  &err);
    (void)snprintf(command, sizeof command,
                   "cpd x.slc -r 3 -i %d --tol 0 --deterministic -t 2 --io pread -o r -v "
                   "--progress always --no-cache %s",
                   ITERATIONS, limit);
    for (; runs < 100 && stopped; runs++) {
        slc_error_clear(&err);
        stopped = command_on_disk(files, command, &said, &err) != SLC_OK;
        CU_ASSERT(!stopped || strstr(err.message, "exit code 75") != NULL);
        CU_ASSERT_PTR_NULL(strstr(said.text, "nan"));
        CU_ASSERT(!has_negative_time(said.text));
        CU_ASSERT(runs > 0 || stopped || strstr(said.text, "and actual values") != NULL);
        expect_times(files, "r/run.json");
    }
    CU_ASSERT(!stopped && (runs == 1 || *limit != '\0'));
    for (unsigned i = 0; i < 4; i++) {
        char path[32] = "r/lambda.npy";

        if (i < 3) {
            (void)snprintf(path, sizeof path, "r/mode-%u.npy", i + 1);
        }
        hashes[i] = command_disk_hash(files, path);
        CU_ASSERT(hashes[i] != 0);
        sum += hashes[i];
    }
    slc_recorded_destroy(disk);
    return sum;
}

static void test_cpd(void)
{
    static const int64_t walls[] = {0, 5 * 3600, -5 * 3600, INT64_C(-4000000000)};
    uint64_t sound, jumps = 0;

    set_clocks(SOUND, 0);
    sound = factors_of("--checkpoint-interval 0");
    for (size_t w = 0; w < SLC_COUNT(walls); w++) {
        set_clocks(BOTH_WAYS, walls[w]);
        CU_ASSERT_EQUAL(factors_of("--checkpoint-interval 0"), sound);
        jumps += atomic_load(&clocks.jumps);
    }
    CU_ASSERT(jumps > 0);
    /* A jump backwards is no elapsed time: nothing is due and no limit is reached. */
    set_clocks(BACK, 0);
    CU_ASSERT_EQUAL(factors_of(""), sound);
    CU_ASSERT(atomic_load(&clocks.jumps) > 0);
    /* Time asleep has elapsed: the limit is reached, and the run resumes where it stopped. */
    set_clocks(BOTH_WAYS, 0);
    CU_ASSERT_EQUAL(factors_of("--maxsecs 3000"), sound);
    printf("# %" PRIu64 " jumps\n", jumps);
}

static uint64_t store_of(const char *name)
{
    struct slc_recorded *disk = slc_recorded_create();
    const struct slc_files *files = slc_recorded_files(disk);
    struct command_words said;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t hash;

    SLC_ASSERT_OK(
        command_on_disk(files, "generate t.tns --dims 60x40x30 --nnz 20000 -q", &said, &err), &err);
    SLC_ASSERT_OK(
        command_on_disk(files, "convert t.tns x.slc -t 2 --checkpoint-interval 1 -q", &said, &err),
        &err);
    SLC_ASSERT_OK(command_on_disk(files, "check x.slc -t 2", &said, &err), &err);
    hash = command_disk_hash(files, name);
    slc_recorded_destroy(disk);
    return hash;
}

static void test_convert(void)
{
    uint64_t sound;

    set_clocks(SOUND, 0);
    sound = store_of("x.slc/blco.blk");
    CU_ASSERT(sound != 0);
    set_clocks(BOTH_WAYS, 0);
    CU_ASSERT_EQUAL(store_of("x.slc/blco.blk"), sound);
    CU_ASSERT(atomic_load(&clocks.jumps) > 0);
}

int __wrap_main(int argc, char **argv)
{
    static const struct slc_test tests[] = {
        {"cpd", test_cpd},
        {"convert", test_convert},
    };

    return slc_test_main("clocks", tests, SLC_COUNT(tests), argc, argv);
}
