/* Small modules of base/: error record, checked arithmetic, memory, random numbers, teams. */
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/error/log.h"
#include "base/hash.h"
#include "base/matrix.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "base/random.h"
#include "base/text/plain_text.h"
#include "base/text/utf8.h"
#include "base/thread/team.h"
#include "base/topology/placement.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef SLC_HAVE_OPENMP
#include <omp.h>
#endif

/* Detects ThreadSanitizer: clang has a feature for it, gcc a macro. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SANITIZED_THREADS 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define SANITIZED_THREADS 1
#endif
#ifndef SANITIZED_THREADS
#define SANITIZED_THREADS 0
#endif

static void first_fault_wins(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    char text[256];

    CU_ASSERT_EQUAL(slc_fail(&err, SLC_ERR_INPUT, "expected %d fields, found %d", 4, 3),
                    SLC_ERR_INPUT);
    CU_ASSERT_EQUAL(slc_fail(&err, SLC_ERR_IO, "later"), SLC_ERR_IO);
    CU_ASSERT_EQUAL(slc_fail_errno(&err, EIO, "other", "later"), SLC_ERR_IO);
    CU_ASSERT_EQUAL(err.status, SLC_ERR_INPUT);
    slc_error_locate_text(&err, "a.tns", 17, 5);
    slc_error_locate_text(&err, "b.tns", 18, 6);
    (void)slc_error_format(&err, NULL, text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "a.tns:17:5: expected 4 fields, found 3");
    slc_error_clear(&err);
    CU_ASSERT_EQUAL(slc_fail_errno(&err, ENOSPC, "x.blk", "writing"), SLC_ERR_NOSPACE);
    slc_error_locate_block(&err, NULL, 3, 4096);
    (void)slc_error_format(&err, NULL, text, sizeof text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "x.blk: block 3, offset 4096: writing: "));
    CU_ASSERT_EQUAL(slc_fail(NULL, SLC_ERR_IO, "no record"), SLC_ERR_IO);
}

static const char *name_of(enum slc_error_field field)
{
    return field == SLC_FIELD_MEMORY ? "--memory" : field == SLC_FIELD_MAX_TEMP ? "--max-temp" : "";
}

static void fields_are_named(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    char text[256];

    CU_ASSERT_EQUAL(slc_fail_budget(&err, 1 << 20, 3 << 20, "sorting"), SLC_ERR_BUDGET);
    CU_ASSERT_STRING_EQUAL(err.message,
                           "sorting needs 3 MiB of memory or more; the budget is 1.0 MiB");
    CU_ASSERT(err.field == SLC_FIELD_MEMORY && err.other_field == SLC_FIELD_NONE);
    CU_ASSERT_EQUAL(slc_fail_field(&err, SLC_ERR_IO, SLC_FIELD_IO, "later"), SLC_ERR_IO);
    slc_error_set_field(&err, SLC_FIELD_IO);
    CU_ASSERT_EQUAL(err.field, SLC_FIELD_MEMORY);
    (void)slc_error_format(&err, name_of, text, sizeof text);
    CU_ASSERT_STRING_EQUAL(
        text, "sorting needs 3 MiB of memory or more; the budget is 1.0 MiB (--memory)");
    slc_error_clear(&err);
    (void)slc_fail_fields(&err, SLC_ERR_BUDGET, SLC_FIELD_MAX_TEMP, SLC_FIELD_MEMORY, "%s", "more");
    slc_error_locate_file(&err, "x");
    (void)slc_error_format(&err, name_of, text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "x: more (--max-temp, --memory)");
    slc_error_clear(&err);
    (void)slc_fail_fields(&err, SLC_ERR_IO, SLC_FIELD_IO, SLC_FIELD_MEMORY, "more");
    (void)slc_error_format(&err, name_of, text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "more (--memory)");
    slc_error_clear(&err);
    (void)slc_fail(&err, SLC_ERR_IO, "failed");
    slc_error_set_field(&err, SLC_FIELD_MEMORY);
    (void)slc_error_format(&err, name_of, text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "failed (--memory)");
    slc_error_set_field(NULL, SLC_FIELD_MEMORY);
    CU_ASSERT_EQUAL(slc_fail_field(NULL, SLC_ERR_IO, SLC_FIELD_IO, "no record"), SLC_ERR_IO);
}

static void note_message(void *context, enum slc_log_level level, const char *message)
{
    (void)level;
    (void)snprintf(context, 256, "%s", message);
}

/* Names of files and columns are not changed by formatting, even if they contain formats. */
static void names_stay_as_they_are(void)
{
    const char *const name = "/data/--memory/a --io (sluice x) the --fast %s";
    struct slc_error err = SLC_ERROR_INIT;
    char logged[256] = "";

    (void)slc_fail(&err, SLC_ERR_INPUT, "%s: more '%s'", name, "--memory");
    CU_ASSERT_STRING_EQUAL(err.message,
                           "/data/--memory/a --io (sluice x) the --fast %s: more '--memory'");
    slc_error_clear(&err);
    (void)slc_fail_errno(&err, 0, NULL, "reading %s", name);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, name));
    slc_log_set_sink(note_message, logged);
    slc_log(SLC_LOG_NOTE, "%s", name);
    slc_log_set_sink(NULL, NULL);
    CU_ASSERT_STRING_EQUAL(logged, name);
}

static void long_paths_keep_their_end(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    char path[2000];

    memset(path, 'p', sizeof path);
    memcpy(path + sizeof path - 5, ".tns", 5);
    (void)slc_fail(&err, SLC_ERR_IO, "x");
    slc_error_locate_file(&err, path);
    CU_ASSERT_EQUAL(strlen(err.file), sizeof err.file - 1);
    CU_ASSERT_EQUAL(strncmp(err.file, "..p", 3), 0);
    CU_ASSERT_STRING_EQUAL(err.file + strlen(err.file) - 4, ".tns");
}

static void exit_codes(void)
{
    CU_ASSERT_EQUAL(slc_status_exit_code(SLC_OK), 0);
    CU_ASSERT_EQUAL(slc_status_exit_code(SLC_ERR_USAGE), 2);
    CU_ASSERT_EQUAL(slc_status_exit_code(SLC_ERR_INPUT), 3);
    CU_ASSERT_EQUAL(slc_status_exit_code(SLC_ERR_BUDGET), 4);
    CU_ASSERT_EQUAL(slc_status_exit_code(SLC_ERR_DAMAGED), 5);
    CU_ASSERT_EQUAL(slc_status_exit_code(SLC_ERR_TIME_LIMIT), 75);
    CU_ASSERT_STRING_EQUAL(slc_status_name(SLC_ERR_NOSPACE), "no-space");
    CU_ASSERT_STRING_EQUAL(slc_status_name((enum slc_status)999), "unknown");
}

static void checked_arithmetic(void)
{
    uint64_t value = 7;

    CU_ASSERT_FALSE(slc_add_u64(UINT64_MAX, 1, &value));
    CU_ASSERT_TRUE(slc_add_u64(UINT64_MAX - 1, 1, &value) && value == UINT64_MAX);
    CU_ASSERT_FALSE(slc_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &value));
    CU_ASSERT_TRUE(slc_round_up_u64(4097, 4096, &value) && value == 8192);
    CU_ASSERT_TRUE(slc_round_up_u64(0, 4096, &value) && value == 0);
    CU_ASSERT_FALSE(slc_round_up_u64(UINT64_MAX - 5, 4096, &value));
    CU_ASSERT_EQUAL(slc_div_up_u64(UINT64_MAX, 2), UINT64_C(1) << 63);
}

static void bytes_are_little_endian(void)
{
    uint8_t raw[8];

    slc_store_u64(raw, UINT64_C(0x0807060504030201));
    for (unsigned i = 0; i < 8; i++) {
        CU_ASSERT_EQUAL(raw[i], i + 1);
    }
    CU_ASSERT_EQUAL(slc_load_u16(raw + 1), 0x0302);
    CU_ASSERT_EQUAL(slc_load_u32(raw + 3), 0x07060504);
    slc_store_f64(raw, -0.0);
    CU_ASSERT_EQUAL(raw[7], 0x80);
    CU_ASSERT_EQUAL(slc_bits_f64(slc_load_f64(raw)), UINT64_C(1) << 63);
    slc_store_f32(raw, 1.5F);
    CU_ASSERT_EQUAL(slc_load_f32(raw), 1.5F);
}

/* `bytes` rounded up to whole pages. */
static uint64_t in_pages(uint64_t bytes)
{
    const uint64_t page_bytes = slc_memory_page_bytes();

    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

static void buffers(void)
{
    struct slc_buffer buffer;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_buffer_create(&buffer, 0, SLC_PAGES_SMALL, &err), &err);
    CU_ASSERT_PTR_NULL(buffer.data);
    slc_buffer_destroy(&buffer);
    SLC_ASSERT_OK(slc_buffer_create(&buffer, 5000, SLC_PAGES_SMALL, &err), &err);
    CU_ASSERT_EQUAL(buffer.bytes, in_pages(5000));
    CU_ASSERT_EQUAL((uintptr_t)buffer.data % 4096, 0);
    slc_buffer_destroy(&buffer);
    CU_ASSERT_EQUAL(slc_buffer_footprint(5000000, SLC_PAGES_HUGE), 6291456);
    SLC_ASSERT_OK(slc_buffer_create(&buffer, 5000000, SLC_PAGES_HUGE, &err), &err);
    CU_ASSERT_EQUAL(buffer.bytes, 6291456);
    CU_ASSERT_EQUAL((uintptr_t)buffer.data % (2U << 20), 0);
    for (size_t i = 0; i < buffer.bytes; i += 4096) {
        CU_ASSERT_EQUAL_FATAL(((uint8_t *)buffer.data)[i], 0);
        ((uint8_t *)buffer.data)[i] = 1;
    }
    slc_buffer_destroy(&buffer);
    CU_ASSERT_EQUAL(slc_buffer_footprint(5000000, SLC_PAGES_MIXED), in_pages(5000000));
    SLC_ASSERT_OK(slc_buffer_create(&buffer, 5000000, SLC_PAGES_MIXED, &err), &err);
    CU_ASSERT_EQUAL(buffer.bytes, in_pages(5000000));
    CU_ASSERT_EQUAL((uintptr_t)buffer.data % (2U << 20), 0);
    memset(buffer.data, 1, buffer.bytes);
    slc_buffer_shrink(&buffer, buffer.bytes);
    CU_ASSERT_EQUAL(buffer.bytes, in_pages(5000000));
    slc_buffer_shrink(&buffer, 100000);
    CU_ASSERT_EQUAL(buffer.bytes, in_pages(100000));
    CU_ASSERT_EQUAL(((uint8_t *)buffer.data)[buffer.bytes - 1], 1);
    slc_buffer_shrink(&buffer, 0);
    CU_ASSERT_PTR_NULL(buffer.data);
    slc_buffer_destroy(&buffer);
    SLC_ASSERT_FAILS(slc_buffer_create(&buffer, SIZE_MAX - 100, SLC_PAGES_SMALL, &err),
                     SLC_ERR_MEMORY, &err, "cannot map");
    slc_error_clear(&err);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 1);
    SLC_ASSERT_FAILS(slc_buffer_create(&buffer, 100, SLC_PAGES_SMALL, &err), SLC_ERR_MEMORY, &err,
                     NULL);
    CU_ASSERT_EQUAL(slc_fault_seen(SLC_FAULT_ALLOCATION), 1);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    CU_ASSERT_TRUE(slc_memory_resident() > 0);
    CU_ASSERT_TRUE(slc_memory_peak() >= slc_memory_resident());
    CU_ASSERT_TRUE(slc_memory_total() > slc_memory_resident());
    const uint64_t machine = slc_memory_machine();
    (void)setenv(SLC_MEMORY_VARIABLE, "1048576", 1);
    CU_ASSERT_TRUE(slc_memory_machine() == 1 << 20 && slc_memory_total() == 1 << 20);
    (void)setenv(SLC_MEMORY_VARIABLE, "x", 1);
    CU_ASSERT_EQUAL(slc_memory_machine(), machine);
    (void)unsetenv(SLC_MEMORY_VARIABLE);
}

/* Matrices over contiguous numbers, which must all be finite in the stored type. */
static void matrices_from_numbers(void)
{
    double numbers[6] = {1, 2, 3, 4, 5, 1e39};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix m;

    SLC_ASSERT_OK(slc_matrix_create_from(&m, SLC_F64, 2, 3, numbers, &err), &err);
    CU_ASSERT(slc_matrix_get(&m, 0, 2) == 3 && slc_matrix_get(&m, 1, 2) == 1e39);
    CU_ASSERT_EQUAL(slc_matrix_row_f64(&m, 1)[3], 0);
    slc_matrix_destroy(&m);
    SLC_ASSERT_FAILS(slc_matrix_create_from(&m, SLC_F32, 2, 3, numbers, &err), SLC_ERR_INPUT, &err,
                     "row 2, column 3, counting from 1, is 1e+39, beyond the range of f32");
    CU_ASSERT_EQUAL(m.buffer.bytes, 0);
    slc_error_clear(&err);
    numbers[4] = -INFINITY;
    SLC_ASSERT_FAILS(slc_matrix_create_from(&m, SLC_F64, 6, 1, numbers, &err), SLC_ERR_INPUT, &err,
                     "number 5 of the vector, counting from 1, is -inf;");
    slc_matrix_destroy(&m);
}

static void matrices(void)
{
    struct slc_matrix m;
    struct slc_error err = SLC_ERROR_INIT;

    CU_ASSERT_EQUAL(slc_matrix_pitch(SLC_F64, 1), 1);
    CU_ASSERT_EQUAL(slc_matrix_pitch(SLC_F64, 3), 4);
    CU_ASSERT_EQUAL(slc_matrix_pitch(SLC_F64, 7), 8);
    CU_ASSERT_EQUAL(slc_matrix_pitch(SLC_F64, 33), 40);
    CU_ASSERT_EQUAL(slc_matrix_pitch(SLC_F32, 16), 16);
    CU_ASSERT_EQUAL(slc_matrix_pitch(SLC_F32, 17), 32);
    SLC_ASSERT_OK(slc_matrix_create(&m, SLC_F32, 10, 5, &err), &err);
    slc_matrix_set(&m, 9, 4, 2.5);
    CU_ASSERT_EQUAL(slc_matrix_get(&m, 9, 4), 2.5);
    CU_ASSERT_EQUAL(slc_matrix_row_f32(&m, 9)[4], 2.5F);
    slc_matrix_destroy(&m);
    slc_matrix_destroy(&m);
    SLC_ASSERT_OK(slc_matrix_create(&m, SLC_F64, 0, 5, &err), &err);
    slc_matrix_destroy(&m);
    SLC_ASSERT_FAILS(slc_matrix_create(&m, SLC_F64, UINT64_MAX / 8, 5, &err), SLC_ERR_MEMORY, &err,
                     "address space");
    CU_ASSERT_EQUAL(slc_matrix_footprint(SLC_F64, UINT64_MAX / 8, 5), UINT64_MAX);
}

static void philox_known_answers(void)
{
    /* Test vectors published with the generator (Random123, kat_vectors). */
    uint32_t words[4];

    slc_philox4x32(0, 0, 0, words);
    CU_ASSERT_EQUAL(words[0], 0x6627e8d5);
    CU_ASSERT_EQUAL(words[1], 0xe169c58d);
    CU_ASSERT_EQUAL(words[2], 0xbc57ac4c);
    CU_ASSERT_EQUAL(words[3], 0x9b00dbd8);
    slc_philox4x32(UINT64_C(0x299f31d0a4093822), UINT64_C(0x0370734413198a2e),
                   UINT64_C(0x85a308d3243f6a88), words);
    CU_ASSERT_EQUAL(words[0], 0xd16cfe09);
    CU_ASSERT_EQUAL(words[1], 0x94fdcceb);
    CU_ASSERT_EQUAL(words[2], 0x5001e420);
    CU_ASSERT_EQUAL(words[3], 0x24126ea1);
}

static void random_moments(void)
{
    double sum = 0, squares = 0, normal_sum = 0, normal_squares = 0;
    const uint64_t count = 100000;

    for (uint64_t i = 0; i < count; i++) {
        double x = slc_random_f64(slc_test_seed(), 3, i);
        double z = slc_random_normal(slc_test_seed(), 4, i);

        CU_ASSERT_TRUE_FATAL(x >= 0 && x < 1);
        CU_ASSERT_TRUE_FATAL(slc_random_below(slc_test_seed(), 5, i, 7) < 7);
        sum += x;
        squares += x * x;
        normal_sum += z;
        normal_squares += z * z;
    }
    /* The tolerance is five standard deviations of the means. */
    CU_ASSERT_DOUBLE_EQUAL(sum / (double)count, 0.5, 5 * 0.2887 / 316);
    CU_ASSERT_DOUBLE_EQUAL(squares / (double)count, 1.0 / 3, 5 * 0.2981 / 316);
    CU_ASSERT_DOUBLE_EQUAL(normal_sum / (double)count, 0, 5.0 / 316);
    CU_ASSERT_DOUBLE_EQUAL(normal_squares / (double)count, 1, 5 * 1.4142 / 316);
}

/* Hashing in pieces of any size yields the hash of the whole. */
static void hash_in_pieces(void)
{
    static const size_t lengths[] = {0, 1, 240, 241, 1000, 4096};
    static uint8_t bytes[4096];
    struct slc_hash_stream stream;

    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)slc_random_below(slc_test_seed(), 7, i, 256);
    }
    for (size_t l = 0; l < SLC_COUNT(lengths); l++) {
        for (size_t piece = 1; piece <= 1000; piece = 3 * piece + 1) {
            slc_hash_stream_begin(&stream);
            for (size_t done = 0, more; done < lengths[l]; done += more) {
                more = piece < lengths[l] - done ? piece : lengths[l] - done;
                slc_hash_stream_add(&stream, bytes + done, more);
            }
            CU_ASSERT_EQUAL(slc_hash_stream_end(&stream), slc_hash64(bytes, lengths[l]));
        }
    }
}

static void hash_known_answers(void)
{
    /* XXH3 64-bit of the empty input, as published with xxHash. */
    CU_ASSERT_EQUAL(slc_hash64("", 0), UINT64_C(0x2d06800538d394c2));
    CU_ASSERT_EQUAL(slc_hash64(NULL, 0), UINT64_C(0x2d06800538d394c2));
    CU_ASSERT_NOT_EQUAL(slc_hash64("a", 1), slc_hash64("b", 1));
    hash_in_pieces();
}

struct meeting {
    pthread_barrier_t barrier;
    bool openmp;
    unsigned seen[64];
};

static void meet(void *context, unsigned worker, unsigned workers)
{
    struct meeting *meeting = context;

#ifdef SLC_HAVE_OPENMP
    if (worker == 0) {
        meeting->openmp = omp_in_parallel();
    }
#endif
    meeting->seen[worker] = workers;
    /* The barrier lets no worker pass until all workers run. */
    pthread_barrier_wait(&meeting->barrier);
}

#ifdef SLC_HAVE_OPENMP
static const bool have_openmp = true;
#else
static const bool have_openmp = false;
#endif

static void run_teams(bool openmp)
{
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned workers = 1; workers <= 9; workers++) {
        struct meeting meeting;

        memset(&meeting, 0, sizeof meeting);
        pthread_barrier_init(&meeting.barrier, NULL, workers);
        SLC_ASSERT_OK(slc_team_run(workers, meet, &meeting, &err), &err);
        for (unsigned w = 0; w < workers; w++) {
            CU_ASSERT_EQUAL(meeting.seen[w], workers);
        }
        CU_ASSERT_EQUAL(meeting.openmp, openmp && workers > 1);
        pthread_barrier_destroy(&meeting.barrier);
    }
    slc_fault_arm(SLC_FAULT_THREAD, 1);
    {
        struct meeting meeting;

        memset(&meeting, 0, sizeof meeting);
        SLC_ASSERT_FAILS(slc_team_run(4, meet, &meeting, &err), SLC_ERR_SYSTEM, &err, "use fewer");
        CU_ASSERT_EQUAL(meeting.seen[0], 0);
    }
    slc_fault_arm(SLC_FAULT_THREAD, 0);
}

static void teams_are_complete(void)
{
    const struct slc_placement unbound = {0};
    struct meeting meeting = {.openmp = false};
    struct slc_error err = SLC_ERROR_INIT;

    unsetenv(SLC_TEAM_VARIABLE);
#ifdef SLC_HAVE_OPENMP
    omp_set_dynamic(1);
    run_teams(have_openmp);
    CU_ASSERT_TRUE(omp_get_dynamic() != 0);
    omp_set_dynamic(0);
#endif
    run_teams(have_openmp);
    slc_placement_enter(&unbound);
    run_teams(false);
    setenv(SLC_TEAM_VARIABLE, "openmp", 1);
    if (have_openmp) {
        run_teams(true);
    } else {
        SLC_ASSERT_FAILS(slc_team_run(2, meet, &meeting, &err), SLC_ERR_USAGE, &err,
                         "but this build has no OpenMP");
        slc_error_clear(&err);
    }
    slc_placement_leave();
    setenv(SLC_TEAM_VARIABLE, "pool", 1);
    run_teams(false);
    setenv(SLC_TEAM_VARIABLE, "tea", 1);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_team_run(2, meet, &meeting, &err), SLC_ERR_USAGE, &err,
                     "SLUICE_TEAM is 'tea', not openmp or pool");
    unsetenv(SLC_TEAM_VARIABLE);
    CU_ASSERT_TRUE(slc_team_default_workers() >= 1);
}

struct nest {
    struct meeting inner[3];
    enum slc_status status[3];
};

static void meet_inside(void *context, unsigned worker, unsigned workers)
{
    struct nest *nest = context;

    (void)workers;
    nest->status[worker] = slc_team_run(4, meet, &nest->inner[worker], NULL);
}

static void teams_within_teams(void)
{
    struct nest nest;
    struct slc_error err = SLC_ERROR_INIT;

    memset(&nest, 0, sizeof nest);
    for (unsigned i = 0; i < 3; i++) {
        pthread_barrier_init(&nest.inner[i].barrier, NULL, 4);
    }
    SLC_ASSERT_OK(slc_team_run(3, meet_inside, &nest, &err), &err);
    for (unsigned i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(nest.status[i], SLC_OK);
        for (unsigned w = 0; w < 4; w++) {
            CU_ASSERT_EQUAL(nest.inner[i].seen[w], 4);
        }
        pthread_barrier_destroy(&nest.inner[i].barrier);
    }
}

static void teams_in_a_forked_child(void)
{
    struct meeting meeting;
    struct slc_error err = SLC_ERROR_INIT;
    int status = -1;
    pid_t child;

    if (SANITIZED_THREADS) {
        slc_test_skip("ThreadSanitizer ends a forked child that starts threads");
        return;
    }
    memset(&meeting, 0, sizeof meeting);
    pthread_barrier_init(&meeting.barrier, NULL, 3);
    SLC_ASSERT_OK(slc_team_run(3, meet, &meeting, &err), &err);
    child = fork();
    if (child == 0) {
        alarm(30); /* ends the child if it waits for threads of its parent */
        memset(meeting.seen, 0, sizeof meeting.seen);
        _exit(slc_team_run(3, meet, &meeting, NULL) == SLC_OK && meeting.seen[2] == 3 ? 0 : 1);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    SLC_ASSERT_OK(slc_team_run(3, meet, &meeting, &err), &err);
    pthread_barrier_destroy(&meeting.barrier);
}

static void mark(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    uint8_t *marks = context;

    (void)worker;
    for (uint64_t i = begin; i < end; i++) {
        marks[i]++;
    }
}

static void ranges_cover_once(void)
{
    uint8_t marks[1000];
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned workers = 1; workers <= 4; workers++) {
        for (uint64_t grain = 1; grain < 1500; grain = grain * 3 + 1) {
            memset(marks, 0, sizeof marks);
            SLC_ASSERT_OK(slc_team_for(workers, sizeof marks, grain, mark, marks, &err), &err);
            for (size_t i = 0; i < sizeof marks; i++) {
                CU_ASSERT_EQUAL_FATAL(marks[i], 1);
            }
        }
    }
    SLC_ASSERT_OK(slc_team_for(2, 0, 5, mark, marks, &err), &err);
}

static void texts_are_made_plain(void)
{
    static const char *const texts[][2] = {
        {"", ""},
        {"caf\xc3\xa9 \xe2\x82\xac \xc2\xa0", "caf\xc3\xa9 \xe2\x82\xac \xc2\xa0"},
        {"\x1b[2J\n\x7f.", "?[2J??."},
        {"a\xc2\x9b\x31m\xc2", "a??1m\xc2"},
        {"\xe2\x80\x8d\xd8\x9b\xe2\x80\x90\xe2\x81\xa5\xe2\x80",
         "\xe2\x80\x8d\xd8\x9b\xe2\x80\x90\xe2\x81\xa5\xe2\x80"},
        {"a\xe2\x80\xae" /* NOLINT(misc-misleading-bidirectional) */
         "b\xe2\x80\x8e\xe2\x80\xa8\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c.",
         "a???b??????????????."},
    };

    for (size_t i = 0; i < SLC_COUNT(texts); i++) {
        char text[64];

        strcpy(text, texts[i][0]);
        CU_ASSERT_EQUAL(slc_text_is_plain(text), strcmp(texts[i][0], texts[i][1]) == 0);
        slc_text_make_plain(text);
        CU_ASSERT_STRING_EQUAL(text, texts[i][1]);
    }
}

/* Each text, its buffer size, and the length of its first character. */
static void characters_are_measured(void)
{
    static const struct {
        const char *text;
        size_t room;
        unsigned length;
    } cases[] = {
        {"", 4, 1},
        {"", 0, 0},
        {"a\xff", 4, 1},
        {"\xc3\xa9", 2, 2},
        {"\xc3\xa9", 1, 0},
        {"\xc3", 4, 0},
        {"\xc3(", 4, 0},
        {"\xe2\x82\xac", 3, 3},
        {"\xe2\x82", 4, 0},
        {"\xf0\x9f\x8c\x8a", 4, 4},
        {"\xf0\x9f\x8c\x8a", 3, 0},
        {"\xf4\x8f\xbf\xbf", 4, 4},
        /* Invalid: overlong, a surrogate, above U+10FFFF, a continuation byte. */
        {"\xc0\x80", 4, 0},
        {"\xc1\xbf", 4, 0},
        {"\xe0\x9f\xbf", 4, 0},
        {"\xf0\x8f\xbf\xbf", 4, 0},
        {"\xed\xa0\x80", 4, 0},
        {"\xed\x9f\xbf", 4, 3},
        {"\xf4\x90\x80\x80", 4, 0},
        {"\xf5\x80\x80\x80", 4, 0},
        {"\x80", 4, 0},
        {"\xff", 4, 0},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        CU_ASSERT_EQUAL(slc_utf8_length(cases[i].text, cases[i].room), cases[i].length);
    }
}

static const struct slc_test tests[] = {
    {"first fault wins", first_fault_wins},
    {"long paths keep their end", long_paths_keep_their_end},
    {"exit codes", exit_codes},
    {"fields of errors are named", fields_are_named},
    {"names of files and columns stay in messages", names_stay_as_they_are},
    {"texts are made plain", texts_are_made_plain},
    {"characters are measured", characters_are_measured},
    {"checked arithmetic", checked_arithmetic},
    {"bytes are little-endian", bytes_are_little_endian},
    {"buffers", buffers},
    {"matrices", matrices},
    {"matrices over contiguous numbers", matrices_from_numbers},
    {"philox known answers", philox_known_answers},
    {"random moments", random_moments},
    {"hash known answers", hash_known_answers},
    {"teams are complete", teams_are_complete},
    {"teams within teams", teams_within_teams},
    {"teams in a forked child", teams_in_a_forked_child},
    {"ranges cover every index once", ranges_cover_once},
};

SLC_SUITE(base)
{
    return slc_test_main("base", tests, SLC_COUNT(tests), argc, argv);
}
