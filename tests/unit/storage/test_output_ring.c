/* The output ring: the file has the bytes that were filled, for any filling threads and order, with
 * the smallest ring and with a large one; after any fault the earlier file still exists, no other
 * does, and no thread waits forever. */
#include "base/error/fault.h"
#include "base/memory/limits.h"
#include "base/random.h"
#include "base/thread/team.h"
#include "faulty_files.h"
#include "slc_test.h"
#include "storage/file/output_ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 100, WORKERS_MAX = 5, PIECES = 400 };

static char path[300];
static char temporary[310];

static void new_path(void)
{
    (void)snprintf(path, sizeof path, "%s/result", slc_test_folder());
    (void)snprintf(temporary, sizeof temporary, "%s.tmp", path);
}

/* Contents of the file, and their split into pieces. */
struct content {
    uint8_t *bytes;
    uint64_t length;
    uint64_t ends[PIECES];
    struct slc_output_ring *ring;
    atomic_uint_fast32_t next; /* next piece to fill */
    atomic_int status;         /* error of the first fill that failed */
};

/* Pieces of up to `longest` bytes, a tenth of them empty. */
static void make_content(struct content *content, uint64_t longest)
{
    uint64_t end = 0;

    memset(content, 0, sizeof *content);
    for (unsigned p = 0; p < PIECES; p++) {
        const bool empty = slc_random_below(slc_test_seed(), 1, p, 10) == 0;

        end += empty ? 0 : slc_random_below(slc_test_seed(), longest, p, longest) + 1;
        content->ends[p] = end;
    }
    content->length = end;
    content->bytes = malloc(end);
    if (content->bytes == NULL) {
        abort();
    }
    for (uint64_t i = 0; i < end; i++) {
        content->bytes[i] = (uint8_t)slc_random_u64(slc_test_seed(), 2, i);
    }
}

static enum slc_status open_ring(struct content *content,
                                 const struct slc_files *files,
                                 uint32_t pages,
                                 uint32_t buffers,
                                 struct slc_error *err)
{
    const struct slc_output_ring_options options = {.files = files,
                                                    .path = path,
                                                    .buffer_bytes = pages * SLC_PAGE_BYTES,
                                                    .buffer_count = buffers};

    atomic_store(&content->next, 0);
    atomic_store(&content->status, SLC_OK);
    return slc_output_ring_create(&options, &content->ring, err);
}

/* Fills one piece after the other. */
static void fill_pieces(void *context, unsigned worker, unsigned workers)
{
    struct content *content = context;
    uint_fast32_t p;

    (void)worker;
    (void)workers;
    while ((p = atomic_fetch_add(&content->next, 1)) < PIECES) {
        const uint64_t begin = p == 0 ? 0 : content->ends[p - 1];
        struct slc_error err = SLC_ERROR_INIT;
        const enum slc_status status = slc_output_ring_fill(
            content->ring, begin, content->bytes + begin, content->ends[p] - begin, &err);

        if (status != SLC_OK) {
            CU_ASSERT_EQUAL(err.status, status);
            atomic_store(&content->status, (int)status);
            return;
        }
    }
}

/* Fills, finishes with a header of zeros, and publishes. */
static enum slc_status write_all(struct content *content, unsigned workers, struct slc_error *err)
{
    static const uint8_t head[HEAD_BYTES];
    enum slc_status status = slc_team_run(workers, fill_pieces, content, err);

    if (status == SLC_OK) {
        status = slc_output_ring_finish(content->ring, content->length, head, HEAD_BYTES, err);
    }
    return status == SLC_OK ? slc_output_ring_publish(content->ring, err) : status;
}

/* Whether the file at `path` has the content after its header. */
static bool file_is(const struct content *content)
{
    uint8_t *found = malloc(content->length + 1);
    FILE *file = fopen(path, "rb");
    bool same =
        found != NULL && file != NULL &&
        fread(found, 1, content->length + 1, file) == content->length &&
        memcmp(found + HEAD_BYTES, content->bytes + HEAD_BYTES, content->length - HEAD_BYTES) == 0;

    for (unsigned i = 0; same && i < HEAD_BYTES; i++) {
        same = found[i] == 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    free(found);
    return same;
}

static void write_old(void)
{
    FILE *file = fopen(path, "wb");

    CU_ASSERT_FATAL(file != NULL && fputs("old", file) >= 0 && fclose(file) == 0);
}

static bool old_is_there(void)
{
    char text[8] = "";
    FILE *file = fopen(path, "rb");
    const bool same =
        file != NULL && fread(text, 1, sizeof text, file) == 3 && memcmp(text, "old", 3) == 0;

    if (file != NULL) {
        (void)fclose(file);
    }
    return same;
}

static void writes_the_filled_bytes(void)
{
    static const struct {
        uint64_t longest;
        uint32_t pages, buffers;
    } shapes[] = {{3, 1, 2}, {700, 1, 2}, {9000, 1, 2}, {9000, 2, 3}, {30000, 1, 16}, {100, 64, 4}};

    for (size_t s = 0; s < SLC_COUNT(shapes); s++) {
        struct content content;

        make_content(&content, shapes[s].longest);
        for (unsigned workers = 1; workers <= WORKERS_MAX; workers += 2) {
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_output_ring_stats stats;

            new_path();
            SLC_ASSERT_OK(open_ring(&content, NULL, shapes[s].pages, shapes[s].buffers, &err),
                          &err);
            SLC_ASSERT_OK(write_all(&content, workers, &err), &err);
            slc_output_ring_stats(content.ring, &stats);
            CU_ASSERT_EQUAL(stats.bytes, content.length);
            CU_ASSERT(stats.write_seconds > 0 && stats.wait_seconds >= 0);
            slc_output_ring_destroy(content.ring);
            CU_ASSERT(file_is(&content));
            CU_ASSERT_EQUAL(access(temporary, F_OK), -1);
        }
        free(content.bytes);
    }
    CU_ASSERT_EQUAL(slc_output_ring_memory_bytes(SLC_PAGE_BYTES, 3), 3 * SLC_PAGE_BYTES);
    slc_output_ring_destroy(NULL);
}

/* Rows with gaps in memory are contiguous in the file, across ends of buffers. */
static void packs_rows(void)
{
    enum { ROWS = 3000, STRIDE = 48, ROW = 40 };
    struct content content = {.length = (uint64_t)ROWS * ROW};
    uint8_t *memory = malloc((size_t)ROWS * STRIDE);
    struct slc_error err = SLC_ERROR_INIT;
    static const uint8_t head[HEAD_BYTES];

    content.bytes = malloc(content.length);
    CU_ASSERT_FATAL(memory != NULL && content.bytes != NULL);
    for (uint64_t i = 0; i < (uint64_t)ROWS * STRIDE; i++) {
        memory[i] = (uint8_t)slc_random_u64(slc_test_seed(), 3, i);
    }
    for (uint64_t row = 0; row < ROWS; row++) {
        memcpy(content.bytes + row * ROW, memory + row * STRIDE, ROW);
    }
    new_path();
    SLC_ASSERT_OK(open_ring(&content, NULL, 1, 2, &err), &err);
    for (uint64_t row = 0; row < ROWS; row += 500) {
        const struct slc_output_rows rows = {
            .first = memory + row * STRIDE, .count = 500, .row_bytes = ROW, .stride_bytes = STRIDE};
        const struct slc_output_rows none = {.first = memory, .count = 5};

        SLC_ASSERT_OK(slc_output_ring_fill_rows(content.ring, row * ROW, &rows, &err), &err);
        SLC_ASSERT_OK(slc_output_ring_fill_rows(content.ring, row * ROW, &none, &err), &err);
    }
    SLC_ASSERT_OK(slc_output_ring_finish(content.ring, content.length, head, HEAD_BYTES, &err),
                  &err);
    SLC_ASSERT_OK(slc_output_ring_publish(content.ring, &err), &err);
    slc_output_ring_destroy(content.ring);
    CU_ASSERT(file_is(&content));
    free(content.bytes);
    free(memory);
}

static int stat_without_direct(void *self, int fd, struct slc_file_stat *stat)
{
    const int rc = slc_quick_files()->stat_fd(self, fd, stat);

    stat->direct_known = false;
    return rc;
}

static void works_through_the_page_cache(void)
{
    struct slc_files files = *slc_quick_files();
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_output_ring_stats stats;
    struct content content;

    files.stat_fd = stat_without_direct;
    make_content(&content, 2000);
    new_path();
    SLC_ASSERT_OK(open_ring(&content, &files, 1, 3, &err), &err);
    SLC_ASSERT_OK(write_all(&content, 2, &err), &err);
    slc_output_ring_stats(content.ring, &stats);
    CU_ASSERT(!stats.direct);
    slc_output_ring_destroy(content.ring);
    CU_ASSERT(file_is(&content));
    free(content.bytes);
}

/* Makes a run with a failing table; returns true if it succeeded. */
static bool run_faulty(struct content *content, struct slc_faulty *faulty, struct slc_error *err)
{
    enum slc_status status = open_ring(content, &faulty->table, 1, 2, err);
    const bool opened = status == SLC_OK;

    if (opened) {
        status = write_all(content, 3, err);
        slc_output_ring_destroy(content->ring);
    }
    CU_ASSERT_EQUAL(err->status, status);
    CU_ASSERT_EQUAL(slc_faulty_open_count(faulty), 0);
    CU_ASSERT_EQUAL(access(temporary, F_OK), -1);
    CU_ASSERT(status == SLC_OK ? file_is(content) : old_is_there());
    return status == SLC_OK;
}

static void every_operation_fails(void)
{
    static const enum slc_faulty_kind kinds[] = {SLC_FAULTY_OPEN,  SLC_FAULTY_WRITE,
                                                 SLC_FAULTY_SYNC,  SLC_FAULTY_STAT,
                                                 SLC_FAULTY_CLOSE, SLC_FAULTY_RENAME};
    struct slc_faulty faulty;
    struct content content;

    make_content(&content, slc_test_quick() ? 100 : 700);
    slc_faulty_init(&faulty);
    new_path();
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        for (uint64_t k = 1;; k++) {
            struct slc_error err = SLC_ERROR_INIT;

            write_old();
            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            if (run_faulty(&content, &faulty, &err)) {
                CU_ASSERT(!slc_faulty_fired(&faulty));
                break;
            }
            CU_ASSERT_EQUAL(err.status, SLC_ERR_IO);
        }
    }
    slc_faulty_shorten(&faulty, SLC_FAULTY_WRITE, 1, 1000);
    {
        struct slc_error err = SLC_ERROR_INIT;

        CU_ASSERT(run_faulty(&content, &faulty, &err));
    }
    free(content.bytes);
}

static void a_full_disk_is_named(void)
{
    struct slc_faulty faulty;
    struct content content;

    make_content(&content, 2000);
    slc_faulty_init(&faulty);
    new_path();
    for (uint64_t room = 0; room < content.length; room += content.length / 7) {
        struct slc_error err = SLC_ERROR_INIT;

        write_old();
        slc_faulty_limit_room(&faulty, room);
        CU_ASSERT(!run_faulty(&content, &faulty, &err));
        CU_ASSERT_EQUAL(err.status, SLC_ERR_NOSPACE);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.file, "result.tmp"));
    }
    free(content.bytes);
}

static void memory_and_threads_fail(void)
{
    /* No SLC_FAULT_URING, because an output ring writes without io_uring. */
    static const enum slc_fault_kind kinds[] = {SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD};

    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        const enum slc_fault_kind kind = kinds[i];
        struct content content = {.length = 0};
        uint64_t k = 0;
        enum slc_status status;

        new_path();
        do {
            struct slc_error err = SLC_ERROR_INIT;

            slc_fault_arm(kind, ++k);
            status = open_ring(&content, NULL, 1, 2, &err);
            slc_fault_arm(kind, 0);
            CU_ASSERT_EQUAL(err.status, status);
            CU_ASSERT(status == SLC_OK || access(temporary, F_OK) != 0);
        } while (status != SLC_OK && k < 100);
        SLC_ASSERT_OK(status, NULL);
        slc_output_ring_destroy(content.ring);
        CU_ASSERT_EQUAL(access(temporary, F_OK), -1);
        CU_ASSERT(k > 1);
    }
}

/* Worker 0 fails while the others wait for a window that never comes. */
static void fill_ahead(void *context, unsigned worker, unsigned workers)
{
    struct content *content = context;
    struct slc_error err = SLC_ERROR_INIT;

    (void)workers;
    if (worker == 0) {
        while (atomic_load(&content->next) < workers - 1) {
            (void)usleep(1000);
        }
        slc_output_ring_abort(content->ring);
        return;
    }
    atomic_fetch_add(&content->next, 1);
    SLC_ASSERT_FAILS(slc_output_ring_fill(content->ring, (uint64_t)(worker + 1) * SLC_PAGE_BYTES,
                                          content->bytes, 10, &err),
                     SLC_ERR_INTERRUPTED, &err, "was aborted");
}

static void an_abort_wakes_everybody(void)
{
    struct content content;
    struct slc_error err = SLC_ERROR_INIT;

    make_content(&content, 100);
    new_path();
    SLC_ASSERT_OK(open_ring(&content, NULL, 1, 2, &err), &err);
    SLC_ASSERT_OK(slc_team_run(4, fill_ahead, &content, &err), &err);
    SLC_ASSERT_FAILS(slc_output_ring_finish(content.ring, 10, content.bytes, 0, &err),
                     SLC_ERR_INTERRUPTED, &err, "was aborted");
    slc_output_ring_destroy(content.ring);
    CU_ASSERT_EQUAL(access(temporary, F_OK), -1);
    free(content.bytes);
}

static const struct slc_test tests[] = {
    {"the file has the filled bytes", writes_the_filled_bytes},
    {"rows with gaps become contiguous", packs_rows},
    {"works through the page cache", works_through_the_page_cache},
    {"every operation fails once", every_operation_fails},
    {"a full disk is named", a_full_disk_is_named},
    {"memory and threads fail", memory_and_threads_fail},
    {"an abort wakes everybody", an_abort_wakes_everybody},
};

SLC_SUITE(output_ring)
{
    return slc_test_main("output_ring", tests, SLC_COUNT(tests), argc, argv);
}
