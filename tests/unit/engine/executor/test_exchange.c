/* The ring exchange: all copies are equal afterwards wherever rows have owners, for any number of
 * devices, ownership and shape of the matrix; a failing device ends it for all. Under
 * ThreadSanitizer: no row is accessed by two threads at once. */
#include "engine/executor/exchange.h"

#include "base/error/fault.h"
#include "base/random.h"
#include "cpu/cpu.h"
#include "slc_test.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 5, NOBODY = DEVICES_MAX };

/* A device that fails at the `fail_at`-th access (from 1) to its rows. */
struct device {
    struct slc_backend backend; /* first member: the ring has a pointer to it */
    struct slc_backend_ops ops;
    uint64_t calls, fail_at;
};

/* Copies of one matrix, and the owner of each row. */
struct ring {
    unsigned devices;
    struct device device[DEVICES_MAX];
    struct slc_backend *backends[DEVICES_MAX];
    struct slc_matrix matrix[DEVICES_MAX];
    struct slc_matrix *copies[DEVICES_MAX];
    struct slc_device_rows pieces[DEVICES_MAX];
    struct slc_row_span *ranges[DEVICES_MAX];
    uint8_t *owner; /* owner of each row, or NOBODY */
    struct slc_exchange_job job;
    struct slc_exchange_stats stats[DEVICES_MAX];
};

static enum slc_status count_call(struct slc_backend *backend, struct slc_error *err)
{
    struct device *device = (struct device *)(void *)backend;

    return ++device->calls == device->fail_at ? slc_fail(err, SLC_ERR_SYSTEM, "the device is gone")
                                              : SLC_OK;
}

static enum slc_status read_rows(struct slc_backend *backend,
                                 const struct slc_matrix *matrix,
                                 uint64_t first,
                                 uint64_t count,
                                 void *to,
                                 struct slc_error *err)
{
    const enum slc_status status = count_call(backend, err);

    return status != SLC_OK
               ? status
               : slc_cpu_backend_ops()->rows_read(backend, matrix, first, count, to, err);
}

static enum slc_status write_rows(struct slc_backend *backend,
                                  struct slc_matrix *matrix,
                                  uint64_t first,
                                  uint64_t count,
                                  const void *from,
                                  struct slc_error *err)
{
    const enum slc_status status = count_call(backend, err);

    return status != SLC_OK
               ? status
               : slc_cpu_backend_ops()->rows_write(backend, matrix, first, count, from, err);
}

/* The owner's value, and the value in the other copies. */
static double written(uint64_t row, uint32_t col)
{
    return (double)(row * 7 + col + 1);
}

static double stale(unsigned device)
{
    return -1.0 - device;
}

/* Runs of rows of random lengths, each owned by a random device or, with `gaps`, by none. */
static void draw_owners(struct ring *ring, uint64_t rows, uint64_t longest, bool gaps)
{
    uint64_t draw = rows * 100;

    for (uint64_t row = 0; row < rows;) {
        const uint64_t end = row + 1 + slc_random_below(slc_test_seed(), 31, draw, longest);
        const unsigned owner =
            (unsigned)slc_random_below(slc_test_seed(), 32, draw++, ring->devices + (gaps ? 1 : 0));
        struct slc_row_span *range;

        for (uint64_t i = row; i < end && i < rows; i++) {
            ring->owner[i] = (uint8_t)(owner == ring->devices ? (unsigned)NOBODY : owner);
        }
        if (owner < ring->devices) {
            range = &ring->ranges[owner][ring->pieces[owner].count++];
            *range = (struct slc_row_span){row, end < rows ? end : rows};
        }
        row = end;
    }
}

static void fill_copies(struct ring *ring)
{
    for (unsigned d = 0; d < ring->devices; d++) {
        for (uint64_t i = 0; i < ring->matrix[d].rows; i++) {
            for (uint32_t c = 0; c < ring->matrix[d].cols; c++) {
                slc_matrix_set(&ring->matrix[d], i, c,
                               ring->owner[i] == d ? written(i, c) : stale(d));
            }
        }
    }
}

static void ring_create(struct ring *ring,
                        unsigned devices,
                        enum slc_value_type type,
                        uint64_t rows,
                        uint32_t cols,
                        uint64_t longest,
                        bool gaps)
{
    struct slc_error err = SLC_ERROR_INIT;

    memset(ring, 0, sizeof *ring);
    ring->devices = devices;
    ring->owner = calloc(rows + 1, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(ring->owner);
    for (unsigned d = 0; d < devices; d++) {
        ring->device[d].ops = *slc_cpu_backend_ops();
        ring->device[d].ops.rows_read = read_rows;
        ring->device[d].ops.rows_write = write_rows;
        ring->device[d].backend.ops = &ring->device[d].ops;
        ring->backends[d] = &ring->device[d].backend;
        SLC_ASSERT_OK(slc_matrix_create(&ring->matrix[d], type, rows, cols, &err), &err);
        ring->copies[d] = &ring->matrix[d];
        ring->ranges[d] = calloc(rows + 1, sizeof *ring->ranges[d]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(ring->ranges[d]);
        ring->pieces[d].ranges = ring->ranges[d];
    }
    draw_owners(ring, rows, longest, gaps);
    fill_copies(ring);
    ring->job = (struct slc_exchange_job){ring->backends, ring->copies, ring->pieces};
}

static void ring_destroy(struct ring *ring)
{
    for (unsigned d = 0; d < ring->devices; d++) {
        slc_matrix_destroy(&ring->matrix[d]);
        free(ring->ranges[d]);
    }
    free(ring->owner);
}

/* Elements with a wrong value; with `own_only` only in rows of their owner. */
static uint64_t count_wrong(const struct ring *ring, bool own_only)
{
    uint64_t wrong = 0;

    for (unsigned d = 0; d < ring->devices; d++) {
        for (uint64_t i = 0; i < ring->matrix[d].rows; i++) {
            for (uint32_t c = 0; c < ring->matrix[d].cols; c++) {
                const double want = ring->owner[i] == NOBODY ? stale(d) : written(i, c);

                wrong += (!own_only || ring->owner[i] == d) &&
                         slc_matrix_get(&ring->matrix[d], i, c) != want;
            }
        }
    }
    return wrong;
}

static uint64_t rows_of(const struct ring *ring, unsigned device)
{
    uint64_t rows = 0;

    for (uint64_t i = 0; i < ring->matrix[0].rows; i++) {
        rows += ring->owner[i] == device;
    }
    return rows;
}

static void check_ring(struct ring *ring)
{
    const uint64_t row_bytes = slc_matrix_row_bytes(&ring->matrix[0]);
    struct slc_exchange *exchange = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t all = 0;

    SLC_ASSERT_OK(slc_exchange_create(ring->devices, row_bytes, &exchange, &err), &err);
    for (unsigned round = 0; round < 2; round++) {
        fill_copies(ring);
        SLC_ASSERT_OK(slc_exchange_run(exchange, &ring->job, ring->stats, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(ring, false), 0);
    }
    for (unsigned d = 0; d < ring->devices; d++) {
        all += rows_of(ring, d);
    }
    for (unsigned d = 0; d < ring->devices; d++) {
        const uint64_t passed_on = all - rows_of(ring, (d + 1) % ring->devices);

        CU_ASSERT_EQUAL(ring->stats[d].bytes_sent, ring->devices > 1 ? passed_on * row_bytes : 0);
    }
    slc_exchange_destroy(exchange);
}

/* Exchanges no row, one row, or many chunks, of rows shorter and longer than a cache line. */
static void all_copies_are_equal(void)
{
    static const struct {
        uint64_t rows;
        uint32_t cols;
        uint64_t longest; /* longest run of rows of one owner */
    } shapes[] = {{0, 3, 1}, {1, 16, 1}, {7, 1, 2}, {300, 5, 9}, {20000, 16, 700}, {900, 1000, 1}};
    const unsigned most = slc_test_quick() ? 5 : 6;

    for (unsigned devices = 1; devices <= DEVICES_MAX; devices++) {
        for (unsigned s = 0; s < most; s++) {
            struct ring ring;

            ring_create(&ring, devices, (s + devices) % 2 == 0 ? SLC_F64 : SLC_F32, shapes[s].rows,
                        shapes[s].cols, shapes[s].longest, s % 2 == 0);
            check_ring(&ring);
            ring_destroy(&ring);
        }
    }
}

/* Devices without rows forward the rows they receive; ranges may be empty. */
static void devices_may_own_nothing(void)
{
    for (unsigned owner = 0; owner < 4; owner++) {
        struct ring ring;

        ring_create(&ring, 4, SLC_F64, 5000, 16, 5000, false);
        for (unsigned d = 0; d < 4; d++) {
            ring.pieces[d].count = d == owner ? 3 : d % 2;
            ring.ranges[d][0] = (struct slc_row_span){0, 0};
        }
        ring.ranges[owner][1] = (struct slc_row_span){0, 5000};
        ring.ranges[owner][2] = (struct slc_row_span){5000, 5000};
        memset(ring.owner, (int)owner, 5000);
        check_ring(&ring);
        ring_destroy(&ring);
    }
}

/* Wherever a device fails, all devices stop, its message is kept, and own rows are unchanged. */
static void a_failure_ends_it_for_all(void)
{
    struct slc_exchange *exchange = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    struct ring ring;
    bool failed = true;

    ring_create(&ring, 3, SLC_F64, 9000, 16, 1500, false);
    SLC_ASSERT_OK(slc_exchange_create(3, 128, &exchange, &err), &err);
    for (uint64_t k = 1; failed; k += slc_test_quick() ? 5 : 1) {
        CU_ASSERT_FATAL(k < 200);
        failed = false;
        for (unsigned d = 0; d < 3; d++) {
            fill_copies(&ring);
            ring.device[d].calls = 0;
            ring.device[d].fail_at = k;
            if (slc_exchange_run(exchange, &ring.job, ring.stats, &err) == SLC_OK) {
                CU_ASSERT_EQUAL(count_wrong(&ring, false), 0);
            } else {
                failed = true;
                CU_ASSERT_EQUAL(err.status, SLC_ERR_SYSTEM);
                CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "the device is gone"));
                CU_ASSERT_EQUAL(count_wrong(&ring, true), 0);
                slc_error_clear(&err);
            }
            ring.device[d].fail_at = 0;
        }
    }
    /* The ring can be used again. */
    fill_copies(&ring);
    SLC_ASSERT_OK(slc_exchange_run(exchange, &ring.job, ring.stats, &err), &err);
    CU_ASSERT_EQUAL(count_wrong(&ring, false), 0);
    slc_exchange_destroy(exchange);
    ring_destroy(&ring);
}

static void refuses_and_runs_out(void)
{
    struct slc_exchange *exchange = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    struct ring ring;
    uint64_t k;

    for (k = 1;; k++) {
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        if (slc_exchange_create(3, 1024, &exchange, &err) == SLC_OK) {
            break;
        }
        CU_ASSERT_EQUAL(err.status, SLC_ERR_MEMORY);
        slc_error_clear(&err);
    }
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    CU_ASSERT_EQUAL(k, 5);
    slc_exchange_destroy(NULL);

    ring_create(&ring, 3, SLC_F64, 100, 16, 10, false);
    slc_fault_arm(SLC_FAULT_THREAD, 1);
    SLC_ASSERT_FAILS(slc_exchange_run(exchange, &ring.job, ring.stats, &err), SLC_ERR_SYSTEM, &err,
                     "thread");
    slc_fault_arm(SLC_FAULT_THREAD, 0);
    CU_ASSERT_EQUAL(count_wrong(&ring, true), 0);
    slc_error_clear(&err);
    ring_destroy(&ring);
    slc_exchange_destroy(exchange);

    /* Rows longer than planned are rejected. */
    ring_create(&ring, 2, SLC_F64, 2, 40000, 1, false);
    SLC_ASSERT_OK(slc_exchange_create(2, 128, &exchange, &err), &err);
    SLC_ASSERT_FAILS(slc_exchange_run(exchange, &ring.job, ring.stats, &err), SLC_ERR_USAGE, &err,
                     "exceed the row size");
    slc_exchange_destroy(exchange);
    ring_destroy(&ring);
    CU_ASSERT(slc_exchange_memory_bytes(4, 128) > 3 * slc_exchange_memory_bytes(1, 128));
    CU_ASSERT_EQUAL(slc_exchange_memory_bytes(2, UINT64_MAX), UINT64_MAX);
}

static const struct slc_test tests[] = {
    {"all copies are equal", all_copies_are_equal},
    {"devices may own nothing", devices_may_own_nothing},
    {"a failure ends it for all", a_failure_ends_it_for_all},
    {"refusals, no memory, no threads", refuses_and_runs_out},
};

SLC_SUITE(exchange)
{
    return slc_test_main("engine exchange", tests, SLC_COUNT(tests), argc, argv);
}
