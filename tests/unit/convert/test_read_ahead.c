/* Chunks read ahead equal those fetched directly, in the order of the chain, for any fault. */
#include "base/error/fault.h"
#include "base/random.h"
#include "convert/build/build_memory.h"
#include "convert/build/spill/read_ahead.h"
#include "faulty_files.h"
#include "slc_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHAINS = 4, CHUNKS = 60, ROWS_MAX = 900, BUFFER_BYTES = 32768, LARGE_ROWS = 4000 };

struct made {
    struct slc_spill *spill;
    struct slc_chain chains[CHAINS];
    uint8_t *memory; /* memory of 8 buffers */
    uint8_t *data;   /* buffer for one more chunk */
};

/* Chunk `number` of a chain: its first row identifies it. */
static void append(struct made *made, unsigned chain, uint32_t number, uint32_t count)
{
    uint64_t *rows = malloc((size_t)count * 16);
    uint8_t *chunk = malloc(slc_chunk_bytes_max((uint64_t)count * 16, 1));
    struct slc_run run = {number, 0, count};
    uint32_t bytes, i;

    for (i = 0; i < count; i++) {
        double value = slc_random_normal(chain, number, i);

        rows[2 * i] = i == 0 ? number : slc_random_u64(chain, number, i);
        memcpy(&rows[2 * i + 1], &value, 8);
    }
    bytes = slc_chunk_pack(chunk,
                           &(struct slc_chunk_rows){.rows = rows,
                                                    .count = count,
                                                    .frame = chain,
                                                    .range = {.narrow = true},
                                                    .any = UINT64_MAX},
                           &run, 1);
    SLC_ASSERT_OK(slc_spill_append(made->spill, &made->chains[chain], chunk, bytes, count, 1, NULL),
                  NULL);
    free(chunk);
    free(rows);
}

/* Chains of CHUNKS chunks in the file, or in memory if `resident`; the last is empty. */
static void make(struct made *made, const struct slc_files *files, bool resident, uint32_t large)
{
    char path[700];
    struct slc_spill_options options = {
        .files = files, .path = path, .segment_bytes = 1 << 16, .segment_count = 8};
    uint32_t i;
    unsigned c;

    memset(made, 0, sizeof *made);
    snprintf(path, sizeof path, "%s/spill", slc_test_folder());
    SLC_ASSERT_OK(slc_spill_create(&options, &made->spill, NULL), NULL);
    for (i = 0; i < CHUNKS; i++) {
        for (c = 0; c + 1 < CHAINS; c++) {
            uint32_t count = 1 + (uint32_t)slc_random_below(7, c, i, ROWS_MAX);

            append(made, c, i, i == large && c == 1 ? LARGE_ROWS : count);
        }
    }
    if (!resident) {
        SLC_ASSERT_OK(slc_spill_shrink(made->spill, NULL), NULL);
    }
    slc_spill_freeze(made->spill, true);
    made->memory = aligned_alloc(SLC_PAGE_BYTES, (size_t)8 * BUFFER_BYTES);
    made->data = aligned_alloc(SLC_PAGE_BYTES, 1 << 17);
}

static void unmake(struct made *made)
{
    slc_spill_destroy(made->spill);
    free(made->memory);
    free(made->data);
}

static enum slc_status create(const struct made *made,
                              uint32_t buffers,
                              struct slc_read_ahead **ahead,
                              struct slc_error *err)
{
    return slc_read_ahead_create(&(struct slc_read_ahead_options){.spill = made->spill,
                                                                  .requests = CHAINS,
                                                                  .memory = made->memory,
                                                                  .buffers = buffers,
                                                                  .buffer_bytes = BUFFER_BYTES},
                                 ahead, err);
}

/* Reads a whole chain and ends its request. *left: chunks that the caller had to fetch. */
static enum slc_status take(struct made *made,
                            struct slc_read_ahead *ahead,
                            struct slc_read_request *request,
                            unsigned chain,
                            uint32_t *left,
                            struct slc_error *err)
{
    struct slc_chunk_link link = made->chains[chain].last;
    uint32_t number = CHUNKS;
    uint64_t wrong = 0;
    enum slc_status status = SLC_OK;

    *left = 0;
    while (link.bytes > 0) {
        struct slc_chunk chunk;
        uint64_t lo[1];
        bool found;

        status = slc_read_ahead_next(ahead, request, &chunk, &found, err);
        if (status == SLC_OK && !found) {
            ++*left;
            status = slc_spill_fetch(made->spill, link, true, made->data, &chunk, err);
        }
        if (status != SLC_OK) {
            break;
        }
        slc_chunk_entries(&chunk, 0, 1, lo, NULL, NULL);
        wrong += chunk.frame != chain || lo[0] != --number;
        link = chunk.previous;
    }
    slc_read_ahead_end(ahead, request);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT(status != SLC_OK || number == (chain + 1 < CHAINS ? 0 : CHUNKS));
    return status;
}

/* All chains, each requested before the previous one is read. */
static enum slc_status
take_all(struct made *made, uint32_t buffers, uint32_t *left, struct slc_error *err)
{
    struct slc_read_ahead *ahead = NULL;
    struct slc_read_request *next;
    enum slc_status status = create(made, buffers, &ahead, err);
    unsigned c;

    if (status != SLC_OK) {
        return status;
    }
    next = slc_read_ahead_request(ahead, made->chains[0].last);
    *left = 0;
    for (c = 0; c < CHAINS && status == SLC_OK; c++) {
        struct slc_read_request *request = next;
        uint32_t more;

        if (c + 1 < CHAINS) {
            next = slc_read_ahead_request(ahead, made->chains[c + 1].last);
        }
        status = take(made, ahead, request, c, &more, err);
        *left += more;
    }
    slc_read_ahead_destroy(ahead); /* a request is still open if reading failed */
    return status;
}

static void test_order(void)
{
    static const uint32_t buffers[] = {2, 3, 8};
    struct slc_error err = SLC_ERROR_INIT;
    struct made made;
    uint32_t left;
    size_t i;

    for (i = 0; i < 2 * SLC_COUNT(buffers); i++) {
        make(&made, slc_quick_files(), i % 2 == 0, UINT32_MAX);
        CU_ASSERT(slc_spill_written_bytes(made.spill) > 0);
        SLC_ASSERT_OK(take_all(&made, buffers[i / 2], &left, &err), &err);
        unmake(&made);
    }
}

/* A chunk larger than a buffer, and all before it, are left to the caller. */
static void test_large_chunk(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct made made;
    uint32_t left;

    make(&made, slc_quick_files(), false, CHUNKS / 2);
    CU_ASSERT(slc_spill_chunk_bytes(made.spill) > BUFFER_BYTES);
    SLC_ASSERT_OK(take_all(&made, 4, &left, &err), &err);
    CU_ASSERT(left >= CHUNKS / 2 + 1);
    unmake(&made);
}

/* Chunks that the thread has not reached are the caller's at once, so that no chain waits for
 * another's buffers. */
static void test_overtaking(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_read_ahead *ahead = NULL;
    struct slc_read_request *first, *second;
    struct made made;
    uint32_t left;

    make(&made, slc_quick_files(), false, UINT32_MAX);
    SLC_ASSERT_OK(create(&made, 2, &ahead, &err), &err);
    first = slc_read_ahead_request(ahead, made.chains[0].last);
    second = slc_read_ahead_request(ahead, made.chains[1].last);
    SLC_ASSERT_OK(take(&made, ahead, second, 1, &left, &err), &err);
    CU_ASSERT_EQUAL(left, CHUNKS);
    SLC_ASSERT_OK(take(&made, ahead, first, 0, &left, &err), &err);
    slc_read_ahead_destroy(ahead);
    unmake(&made);
}

/* If a chain is abandoned after any chunk, its buffers are available for the next chain. */
static void test_given_up(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_read_ahead *ahead = NULL;
    struct made made;
    uint32_t left;

    make(&made, slc_quick_files(), false, UINT32_MAX);
    SLC_ASSERT_OK(create(&made, 4, &ahead, &err), &err);
    for (uint32_t taken = 0; taken < CHUNKS; taken += 1 + taken / 4) {
        struct slc_read_request *request = slc_read_ahead_request(ahead, made.chains[0].last);
        bool found = true;

        for (uint32_t i = 0; i < taken && found; i++) {
            struct slc_chunk chunk;

            SLC_ASSERT_OK(slc_read_ahead_next(ahead, request, &chunk, &found, &err), &err);
        }
        slc_read_ahead_end(ahead, request);
    }
    /* Read the chain until the thread fetches a chunk before the caller does. */
    left = CHUNKS;
    for (unsigned tries = 0; tries < 10000 && left == CHUNKS; tries++) {
        struct slc_read_request *request = slc_read_ahead_request(ahead, made.chains[1].last);

        usleep(100);
        SLC_ASSERT_OK(take(&made, ahead, request, 1, &left, &err), &err);
    }
    CU_ASSERT(left < CHUNKS);
    slc_read_ahead_destroy(ahead);
    unmake(&made);
}

/* Every read fails once, or is short; open requests are dropped. */
static void test_faults(void)
{
    struct slc_faulty faulty;
    struct made made;
    uint32_t left;
    uint64_t k;
    unsigned kind;

    slc_faulty_init(&faulty);
    make(&made, &faulty.table, false, UINT32_MAX);
    for (kind = 0; kind < 3; kind++) {
        for (k = 1;; k += 1 + k / 8) {
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;

            if (kind == 0) {
                slc_faulty_fail(&faulty, SLC_FAULTY_READ, k, EIO);
            } else if (kind == 1) {
                slc_faulty_shorten(&faulty, SLC_FAULTY_READ, k, 0);
            } else {
                slc_faulty_shorten(&faulty, SLC_FAULTY_READ, k, 5000);
            }
            status = take_all(&made, 3, &left, &err);
            if (!slc_faulty_fired(&faulty) || kind == 2) {
                SLC_ASSERT_OK(status, &err);
                break;
            }
            CU_ASSERT_EQUAL(status, kind == 0 ? SLC_ERR_IO : SLC_ERR_DAMAGED);
            CU_ASSERT(strstr(err.file, "spill") != NULL);
        }
        CU_ASSERT(kind == 2 || k > 3);
    }
    unmake(&made);
    CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
}

static void test_refused(void)
{
    static const enum slc_fault_kind kinds[] = {SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD};
    struct made made;
    uint32_t left;
    uint64_t k;
    size_t i;

    make(&made, slc_quick_files(), false, UINT32_MAX);
    for (i = 0; i < SLC_COUNT(kinds); i++) {
        bool seen = true;

        for (k = 1; seen; k++) {
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;

            slc_fault_arm(kinds[i], k);
            status = take_all(&made, 3, &left, &err);
            seen = slc_fault_seen(kinds[i]) >= k;
            slc_fault_arm(kinds[i], 0);
            CU_ASSERT_EQUAL(status, !seen ? SLC_OK : (i == 0 ? SLC_ERR_MEMORY : SLC_ERR_SYSTEM));
        }
        CU_ASSERT(k > 2);
    }
    unmake(&made);
}

/* Buffers use only the rest of a budget that the sort leaves, and nothing if it is small. */
static void test_memory(void)
{
    struct slc_builder_options options = {.workers = 2};
    uint64_t least = slc_builder_memory_min(&options, 4);
    unsigned with = 0, without = 0;
    uint64_t extra;

    for (extra = 0; extra < UINT64_C(400) << 20; extra += extra / 3 + 100000) {
        uint64_t resident = extra / 2;
        struct slc_sort_memory sort;
        struct slc_ahead_memory ahead;
        uint64_t taken;

        options.memory_bytes = least + extra;
        sort = slc_sort_memory_plan(&options, 3, resident, UINT64_C(24) << 20);
        CU_ASSERT_FATAL(sort.workers > 0);
        ahead = slc_ahead_memory_plan(&options, &sort, resident, 150000);
        taken = (uint64_t)ahead.buffers * ahead.buffer_bytes + sort.workers * sort.area_bytes;
        CU_ASSERT(taken + resident <= options.memory_bytes);
        CU_ASSERT(ahead.buffers == 0 || ahead.buffer_bytes >= 150000 + SLC_SPILL_FETCH_EXTRA_BYTES);
        CU_ASSERT(ahead.buffer_bytes % SLC_PAGE_BYTES == 0);
        with += ahead.buffers > 0;
        without += ahead.buffers == 0;
    }
    CU_ASSERT(with > 0 && without > 0);
}

static const struct slc_test tests[] = {
    {"chains come in order", test_order},
    {"a chunk larger than a buffer", test_large_chunk},
    {"a request that is not begun", test_overtaking},
    {"an abandoned chain", test_given_up},
    {"failing and short reads", test_faults},
    {"no memory, no thread", test_refused},
    {"within the budget", test_memory},
};

SLC_SUITE(read_ahead)
{
    return slc_test_main("read_ahead", tests, SLC_COUNT(tests), argc, argv);
}
