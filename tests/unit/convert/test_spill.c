/* Chunks keep every bit; the spill stream returns them from memory and from the file. */
#include "base/error/fault.h"
#include "base/memory/bytes.h"
#include "base/memory/memory.h"
#include "base/random.h"
#include "base/thread/team.h"
#include "builder_fixture.h"
#include "convert/build/spill/chunk.h"
#include "convert/build/spill/scatter.h"
#include "convert/build/spill/spill.h"
#include "faulty_files.h"
#include "slc_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES_MAX = 700, RUNS_MAX = 40 };

/* Rows of a random kind: keys narrow, wide or constant; values of every form. */
static void
random_rows(uint64_t seed, uint64_t round, uint64_t *memory, struct slc_chunk_rows *rows)
{
    uint32_t count = 1 + (uint32_t)slc_random_below(seed, 1, round, ENTRIES_MAX);
    unsigned form = (unsigned)slc_random_below(seed, 2, round, 6);
    unsigned bits = (unsigned)slc_random_below(seed, 3, round, 65);
    bool narrow = round % 3 != 0;
    uint32_t i;

    *rows = (struct slc_chunk_rows){.rows = memory,
                                    .count = count,
                                    .frame = (uint32_t)round,
                                    .range = {.first_lo = slc_random_u64(seed, 4, round),
                                              .first_hi = round % 7,
                                              .narrow = narrow}};
    for (i = 0; i < count; i++) {
        uint64_t *row = memory + (size_t)i * slc_chunk_row_words(&rows->range);
        uint64_t index = round * ENTRIES_MAX + i;
        double value = 0;

        row[0] = bits == 0 ? 7 : slc_random_u64(seed, 30, index) >> (64 - bits);
        if (!narrow) {
            row[1] = slc_random_u64(seed, 31, index) >> round % 64;
        }
        rows->any |= row[0];
        switch (form) {
        case 0:
            value = 3.25;
            break;
        case 1:
            value = (double)slc_random_below(seed, 50, index, 300) - 100;
            break;
        case 2:
            value =
                (double)(int64_t)(slc_random_u64(seed, 50, index) >> (10 + round % 20)) - 0x1p53;
            break;
        case 3:
            value = (double)(float)slc_random_normal(seed, 50, index);
            break;
        case 4:
            value = slc_random_normal(seed, 50, index);
            break;
        default:
            value = i % 2 == 0 ? -0.0 : round % 2 == 0 ? 1e-320 : 5;
        }
        memcpy(&row[narrow ? 1 : 2], &value, 8);
    }
}

static uint32_t random_runs(uint64_t seed, uint64_t round, uint32_t count, struct slc_run *runs)
{
    uint32_t run_count = 0;
    uint32_t left = count;

    while (left > 0) {
        uint32_t length = 1 + (uint32_t)slc_random_below(seed, 60, round * 64 + run_count, left);

        length = run_count == RUNS_MAX - 1 ? left : length;
        runs[run_count] =
            (struct slc_run){slc_random_u64(seed, 61, round * 64 + run_count) >> (run_count % 60),
                             (uint32_t)slc_random_u64(seed, 62, round * 64 + run_count), length};
        run_count++;
        left -= length;
    }
    return run_count;
}

/* Number of nonzeros from `begin` on in an open chunk that differ from the packed ones. */
static uint64_t
count_wrong(const struct slc_chunk *chunk, const struct slc_chunk_rows *rows, uint32_t begin)
{
    uint32_t words = slc_chunk_row_words(&rows->range);
    slc_u128 first = slc_key_join(rows->range.first_lo, rows->range.first_hi);
    uint64_t lo[ENTRIES_MAX], hi[ENTRIES_MAX], lo_alone[ENTRIES_MAX];
    double values[ENTRIES_MAX];
    uint64_t wrong = 0;

    slc_chunk_entries(chunk, begin, rows->count - begin, lo, hi, values);
    slc_chunk_entries(chunk, begin, rows->count - begin, lo_alone, NULL, NULL);
    for (uint32_t i = begin; i < rows->count; i++) {
        const uint64_t *row = rows->rows + (size_t)i * words;
        slc_u128 key = words == 2 ? first + row[0] : slc_key_join(row[0], row[1]);

        wrong += slc_key_join(lo[i - begin], hi[i - begin]) != key ||
                 lo_alone[i - begin] != (uint64_t)key ||
                 memcmp(&values[i - begin], &row[words - 1], 8) != 0;
    }
    return wrong;
}

static void test_chunks_keep_every_bit(void)
{
    uint64_t seed = slc_test_seed();
    uint64_t round, wrong = 0;
    uint64_t *memory = malloc(ENTRIES_MAX * 3 * 8);

    for (round = 0; round < 600; round++) {
        struct slc_run runs[RUNS_MAX];
        struct slc_chunk_rows rows;
        uint32_t run_count, size, i;
        uint64_t most;
        uint8_t *bytes;
        const uint8_t *cursor;
        uint64_t sequence = 0;
        struct slc_chunk chunk;

        random_rows(seed, round, memory, &rows);
        run_count = random_runs(seed, round, rows.count, runs);
        most = slc_chunk_bytes_max((uint64_t)rows.count * 8 * slc_chunk_row_words(&rows.range),
                                   run_count);
        bytes = malloc(most);
        size = slc_chunk_pack(bytes, &rows, runs, run_count);
        CU_ASSERT(size <= most);
        slc_chunk_seal(bytes, (struct slc_chunk_link){3, 4, 5});
        SLC_ASSERT_OK(slc_chunk_open(&chunk, bytes, size, NULL), NULL);
        wrong += chunk.count != rows.count || chunk.run_count != run_count ||
                 chunk.frame != rows.frame || chunk.previous.segment != 3 ||
                 chunk.previous.bytes != 5;
        cursor = chunk.runs;
        for (i = 0; i < run_count; i++) {
            struct slc_run run = slc_chunk_next_run(&cursor, &sequence);

            wrong += run.sequence != runs[i].sequence || run.first != runs[i].first ||
                     run.count != runs[i].count;
        }
        wrong += count_wrong(&chunk, &rows, rows.count / 3);
        bytes[slc_random_below(seed, 4, round, size)] ^= 16;
        wrong += slc_chunk_open(&chunk, bytes, size, NULL) != SLC_ERR_DAMAGED;
        free(bytes);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    free(memory);
}

/* The stream: nonzeros appended by several workers are returned, each once. */

enum { BUCKETS = 5, PUSHED = 60000, WORKERS = 3 };

/* First key, so that narrow keys wrap into the upper word. */
static const uint64_t first_lo_of_all = UINT64_C(1) << 63;

struct job {
    struct slc_scatter scatter;
    struct slc_error errors[WORKERS];
};

static void push(void *context, unsigned worker, unsigned workers)
{
    struct job *job = context;
    struct slc_key_range narrow[BUCKETS], wide[BUCKETS];
    uint32_t i;

    for (i = 0; i < BUCKETS; i++) {
        narrow[i] = (struct slc_key_range){.first_lo = first_lo_of_all, .narrow = true};
        wide[i] = (struct slc_key_range){.narrow = false};
    }

    for (i = worker; i < PUSHED; i += workers) {
        uint32_t bucket = i % BUCKETS;
        struct slc_scatter_batch batch;
        bool later = i >= PUSHED / 2;

        if (slc_scatter_frame(&job->scatter, worker, later, later ? wide : narrow,
                              &job->errors[worker]) != SLC_OK) {
            return;
        }

        if (i / workers % 100 == 0) {
            slc_scatter_piece(&job->scatter, worker, worker);
        }
        batch = (struct slc_scatter_batch){.count = 1,
                                           .ordinal = i,
                                           .buckets = &bucket,
                                           .key_lo = &(uint64_t){slc_random_u64(1, 1, i)},
                                           .key_hi = &(uint64_t){i % 3},
                                           .values = &(double){i}};
        if (slc_scatter_add(&job->scatter, worker, &batch, &job->errors[worker]) != SLC_OK) {
            return;
        }
    }
}

static enum slc_status run_stream(const struct slc_files *files,
                                  uint32_t segments,
                                  bool shrink,
                                  uint64_t *written,
                                  struct slc_error *err)
{
    static struct slc_chain chains[BUCKETS];
    char path[700];
    struct slc_spill_options options = {
        .files = files, .path = path, .segment_bytes = 16384, .segment_count = segments};
    struct slc_scatter_shape shape = slc_scatter_fit(WORKERS, BUCKETS, 200000);
    struct slc_spill *spill = NULL;
    struct job job;
    unsigned char *seen = calloc(PUSHED, 1);
    uint8_t *data = aligned_alloc(SLC_PAGE_BYTES, 1 << 20);
    void *memory = aligned_alloc(64, (slc_scatter_bytes(&shape) + 63) & ~UINT64_C(63));
    uint64_t wrong = 0, total = 0;
    enum slc_status status;
    unsigned b;

    CU_ASSERT(shape.entries >= 16);
    CU_ASSERT(slc_scatter_bytes(&shape) <= 200000);
    snprintf(path, sizeof path, "%s/spill", test_folder());
    memset(chains, 0, sizeof chains);
    memset(&job, 0, sizeof job);
    SLC_ASSERT_OK(slc_spill_create(&options, &spill, err), err);
    slc_scatter_init(&job.scatter, &shape, spill, chains, memory);
    for (b = 0; b < WORKERS; b++) {
        slc_error_clear(&job.errors[b]);
    }
    status = slc_team_run(WORKERS, push, &job, err);
    for (b = 0; b < WORKERS && status == SLC_OK; b++) {
        status = job.errors[b].status;
    }
    status = status == SLC_OK ? slc_scatter_flush_all(&job.scatter, err) : status;
    if (status == SLC_OK && shrink) {
        status = slc_spill_shrink(spill, err);
    }
    for (b = 0; b < BUCKETS && status == SLC_OK; b++) {
        struct slc_chunk_link link = chains[b].last;

        slc_spill_freeze(spill, b % 2 == 1);
        total += chains[b].entries;
        while (link.bytes > 0 && status == SLC_OK) {
            struct slc_chunk chunk;
            uint64_t lo[1024], hi[1024];
            double values[1024];
            uint32_t i;

            status = slc_spill_fetch(spill, link, true, data, &chunk, err);
            if (status != SLC_OK) {
                break;
            }
            CU_ASSERT_FATAL(chunk.count <= 1024);
            slc_chunk_entries(&chunk, 0, chunk.count, lo, hi, values);
            for (i = 0; i < chunk.count; i++) {
                uint32_t at = values[i] < PUSHED ? (uint32_t)values[i] : 0;

                /* The first half was narrow; for the wide half the upper word is kept. */
                wrong += values[i] != at || at % BUCKETS != b ||
                         lo[i] != slc_random_u64(1, 1, at) ||
                         hi[i] != (chunk.frame == 1 ? at % 3 : lo[i] < first_lo_of_all) ||
                         (chunk.frame == 1) != (at >= PUSHED / 2) || seen[at]++;
            }
            link = chunk.previous;
        }
        CU_ASSERT(chains[b].mark_count > 0 && chains[b].mark_count <= SLC_CHAIN_MARKS);
    }
    CU_ASSERT(status != SLC_OK || (total == PUSHED && wrong == 0));
    *written = slc_spill_written_bytes(spill);
    slc_spill_destroy(spill);
    free(memory);
    free(data);
    free(seen);
    return status;
}

static void test_stream(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t written;

    SLC_ASSERT_OK(run_stream(slc_files_system(), 2000, false, &written, &err), &err);
    CU_ASSERT_EQUAL(written, 0);
    SLC_ASSERT_OK(run_stream(slc_files_system(), 2000, true, &written, &err), &err);
    CU_ASSERT(written > 400000);
    SLC_ASSERT_OK(run_stream(slc_files_system(), 3, false, &written, &err), &err);
    CU_ASSERT(written > 400000);
    SLC_ASSERT_OK(run_stream(slc_files_system(), 7, true, &written, &err), &err);
}

/* Makes a chunk whose rows identify `number`. Returns its bytes. */
static uint32_t make_chunk(uint64_t number, uint8_t *chunk)
{
    enum { ROWS = 50 };
    uint64_t rows[2 * ROWS];
    struct slc_run run = {.sequence = number, .count = ROWS};
    struct slc_chunk_rows all = {.rows = rows, .count = ROWS, .range = {.narrow = true}};

    for (uint64_t i = 0; i < ROWS; i++) {
        rows[2 * i] = number * ROWS + i;
        rows[2 * i + 1] = slc_bits_f64((double)i);
        all.any |= rows[2 * i];
    }
    return slc_chunk_pack(chunk, &all, &run, 1);
}

static uint64_t chunks_in_order(struct slc_spill *spill, struct slc_chunk_link link)
{
    uint8_t *data = aligned_alloc(SLC_PAGE_BYTES, 1 << 20);
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t count = 0;

    for (uint64_t below = UINT64_MAX; link.bytes > 0; count++) {
        struct slc_chunk chunk;
        uint64_t lo[64];

        SLC_ASSERT_OK(slc_spill_fetch(spill, link, false, data, &chunk, &err), &err);
        slc_chunk_entries(&chunk, 0, 1, lo, NULL, NULL);
        CU_ASSERT(lo[0] < below);
        below = lo[0];
        link = chunk.previous;
    }
    free(data);
    return count;
}

/* Committed chunks are available to another process, whatever was appended after them. */
static void test_commits(void)
{
    struct slc_spill_options options = {
        .files = slc_quick_files(), .segment_bytes = 16384, .segment_count = 4, .keep = true};
    struct slc_chain chain = {.chunks = 0}, committed = chain;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_spill *spill = NULL;
    uint8_t chunk[16384];
    uint64_t number = 0;
    char path[700];

    snprintf(path, sizeof path, "%s/kept", test_folder());
    options.path = path;
    for (unsigned round = 0; round < 20; round++) {
        chain = committed;
        SLC_ASSERT_OK(slc_spill_create(&options, &spill, &err), &err);
        for (unsigned i = 0; i < 40 + 7 * round; i++) {
            uint32_t bytes = make_chunk(number++, chunk);

            if (i == 3 * round) {
                SLC_ASSERT_OK(slc_spill_commit(spill, &options.extent, &err), &err);
                committed = chain;
            }
            SLC_ASSERT_OK(slc_spill_append(spill, &chain, chunk, bytes, 50, 1, &err), &err);
        }
        CU_ASSERT_EQUAL(chunks_in_order(spill, chain.last), chain.chunks);
        slc_spill_destroy(spill);
    }
    CU_ASSERT(committed.chunks > 400);
    SLC_ASSERT_OK(slc_spill_create(&options, &spill, &err), &err);
    CU_ASSERT_EQUAL(chunks_in_order(spill, committed.last), committed.chunks);
    slc_spill_destroy(spill);
    for (int more = -1; more <= 1; more++) {
        struct slc_spill_options other = options;

        /* With this extent, chunks would be appended far beyond the end, or over other chunks. */
        other.extent.segments += (uint32_t)more;
        other.extent.file_bytes += more == 0 ? other.extent.end_bytes : 0;
        SLC_ASSERT_FAILS(slc_spill_create(&other, &spill, &err), SLC_ERR_DAMAGED, &err,
                         "match its size");
        slc_error_clear(&err);
    }
    CU_ASSERT_EQUAL(truncate(path, (off_t)options.extent.end_bytes - 1), 0);
    SLC_ASSERT_FAILS(slc_spill_create(&options, &spill, &err), SLC_ERR_DAMAGED, &err,
                     "shorter than");
    CU_ASSERT_EQUAL(remove(path), 0);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_spill_create(&options, &spill, &err), SLC_ERR_DAMAGED, &err,
                     "shorter than");
}

static void test_faults(void)
{
    static const enum slc_faulty_kind kinds[] = {SLC_FAULTY_OPEN, SLC_FAULTY_UNLINK,
                                                 SLC_FAULTY_WRITE, SLC_FAULTY_READ};
    size_t i;
    uint64_t k, written;

    for (i = 0; i < SLC_COUNT(kinds); i++) {
        for (k = 1;; k += 1 + k / 2) {
            struct slc_faulty faulty;
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;
            struct stat info;
            char path[700];

            slc_faulty_init(&faulty);
            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            status = run_stream(&faulty.table, 3, true, &written, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            if (!slc_faulty_fired(&faulty)) {
                SLC_ASSERT_OK(status, &err);
                break;
            }
            CU_ASSERT_EQUAL(status, SLC_ERR_IO);
            snprintf(path, sizeof path, "%s/spill", test_folder());
            if (stat(path, &info) == 0) {
                CU_ASSERT_EQUAL(kinds[i], SLC_FAULTY_UNLINK);
                remove(path);
            }
        }
    }
}

static void test_no_thread(void)
{
    uint64_t k, written;
    bool seen = true;

    for (k = 1; seen; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_THREAD, k);
        status = run_stream(slc_files_system(), 3, false, &written, &err);
        seen = slc_fault_seen(SLC_FAULT_THREAD) >= k;
        CU_ASSERT_EQUAL(status, seen ? SLC_ERR_SYSTEM : SLC_OK);
    }
    CU_ASSERT(k > 2); /* at least the threads of the writer itself failed */
    slc_fault_arm(SLC_FAULT_THREAD, 0);
}

static const struct slc_test tests[] = {
    {"chunks keep every bit", test_chunks_keep_every_bit},
    {"the stream returns everything", test_stream},
    {"committed chunks are kept", test_commits},
    {"file faults", test_faults},
    {"no thread to write with", test_no_thread},
};

SLC_SUITE(spill)
{
    return slc_test_main("spill", tests, SLC_COUNT(tests), argc, argv);
}
