/* Scans of tiles: every requested tile is decoded once, turns are in file order for any number of
 * threads, and every early end of a scan (a step, a fault, a stop) ends all of its threads. */
#include "base/error/fault.h"
#include "faulty_files.h"
#include "make_store.h"
#include "slc_test.h"
#include "storage/scan/tile_scan.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS_MAX = 5 };

static const unsigned team_sizes[] = {1, 2, WORKERS_MAX};

/* A store with several tiles per block, because extents end them early. */
struct fixture {
    struct slc_made_tensor tensor;
    struct slc_faulty faulty;
    struct slc_store store;
};

static void open_fixture(struct fixture *f)
{
    const uint64_t dims[] = {UINT64_C(1) << 42, 50, 7};
    struct slc_error err = SLC_ERROR_INIT;
    char path[4096];

    (void)snprintf(path, sizeof path, "%s/x.slc", slc_test_folder());
    slc_made_tensor_create(&f->tensor, 3, dims, 4000, SLC_MADE_COUNTS, slc_test_seed());
    SLC_ASSERT_OK(slc_made_store_write(&f->tensor, NULL, path, SLC_CODEC_PACKED, 8192, &err), &err);
    slc_faulty_init(&f->faulty);
    SLC_ASSERT_OK(slc_store_open(&f->faulty.table, path, &f->store, &err), &err);
    CU_ASSERT_FATAL(slc_reader_info(f->store.reader)->block_count > 10);
    CU_ASSERT_FATAL(slc_reader_info(f->store.reader)->tile_count > 100);
}

static void close_fixture(struct fixture *f)
{
    slc_store_close(&f->store);
    CU_ASSERT_EQUAL(slc_faulty_open_count(&f->faulty), 0);
    slc_made_tensor_destroy(&f->tensor);
}

struct watch {
    atomic_uint_fast64_t nonzeros, decoded, delivered;
    uint64_t turns;
    uint64_t last;     /* ordinal of the tile of the last turn */
    uint64_t turns_at; /* number of turns after which the scan ends; 0: never */
    uint64_t fail_at;  /* ordinal of the tile that fails to decode; UINT64_MAX: none */
    uint64_t tile[WORKERS_MAX];
    bool disordered, below_first;
    uint64_t first_tile;
};

static enum slc_status
decode(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct watch *watch = context;
    struct slc_chunk_view chunk = {.nnz = 1};

    if (tile->ordinal == watch->fail_at) {
        return slc_fail(err, SLC_ERR_NUMERIC, "this tile is not liked");
    }
    watch->tile[worker] = tile->ordinal;
    while (chunk.nnz > 0) {
        enum slc_status status = tile->next(tile, 512, &chunk, err);

        if (status != SLC_OK) {
            return status;
        }
        watch->nonzeros += chunk.nnz;
    }
    watch->decoded++;
    return SLC_OK;
}

static bool in_turn(void *context, unsigned worker)
{
    struct watch *watch = context;

    watch->disordered =
        watch->disordered || (watch->turns > 0 && watch->tile[worker] <= watch->last);
    watch->below_first = watch->below_first || watch->tile[worker] < watch->first_tile;
    watch->last = watch->tile[worker];
    watch->turns++;
    return watch->turns_at == 0 || watch->turns < watch->turns_at;
}

static void deliver(void *context, unsigned worker)
{
    (void)worker;
    ((struct watch *)context)->delivered++;
}

static enum slc_status scan(const struct fixture *f,
                            struct slc_tile_scan_options options,
                            struct watch *watch,
                            struct slc_error *err)
{
    const struct slc_tile_steps steps = {watch, decode, in_turn, deliver};

    options.files = &f->faulty.table;
    options.reader = f->store.reader;
    watch->first_tile = options.first_tile;
    return slc_tile_scan(&options, &steps, err);
}

static void test_order(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct fixture f;

    open_fixture(&f);
    for (size_t i = 0; i < SLC_COUNT(team_sizes); i++) {
        const struct slc_layout_info *info = slc_reader_info(f.store.reader);
        struct watch watch = {.fail_at = UINT64_MAX};

        SLC_ASSERT_OK(
            scan(&f,
                 (struct slc_tile_scan_options){.workers = team_sizes[i], .last_row = UINT64_MAX},
                 &watch, &err),
            &err);
        CU_ASSERT_EQUAL(watch.nonzeros, info->nnz);
        CU_ASSERT_EQUAL(watch.turns, info->tile_count);
        CU_ASSERT_EQUAL(watch.delivered, info->tile_count);
        CU_ASSERT_FALSE(watch.disordered);
    }
    close_fixture(&f);
}

/* A scan delivers exactly the tiles from a given tile on, or the blocks with rows of a range. */
static void test_parts(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    const struct slc_layout_info *info;
    struct fixture f;

    open_fixture(&f);
    info = slc_reader_info(f.store.reader);
    for (uint64_t first = 0; first <= info->tile_count; first += 7) {
        struct watch watch = {.fail_at = UINT64_MAX};

        SLC_ASSERT_OK(scan(&f,
                           (struct slc_tile_scan_options){
                               .workers = 2, .last_row = UINT64_MAX, .first_tile = first},
                           &watch, &err),
                      &err);
        CU_ASSERT_EQUAL(watch.turns, info->tile_count - first);
        CU_ASSERT_FALSE(watch.disordered || watch.below_first);
    }
    for (uint64_t part = 0; part < 8; part++) {
        uint64_t rows = info->dims[0] / 8, expected = 0;
        struct watch watch = {.fail_at = UINT64_MAX};

        for (uint64_t b = 0; b < info->block_count; b++) {
            struct slc_block_entry entry;

            slc_reader_entry(f.store.reader, b, &entry);
            expected += entry.max[0] >= part * rows && entry.min[0] < (part + 1) * rows
                            ? entry.tile_count
                            : 0;
        }
        SLC_ASSERT_OK(scan(&f,
                           (struct slc_tile_scan_options){.workers = 2,
                                                          .first_row = part * rows,
                                                          .last_row = (part + 1) * rows - 1},
                           &watch, &err),
                      &err);
        CU_ASSERT_EQUAL(watch.turns, expected);
        CU_ASSERT(expected > 0 && expected < info->tile_count);
    }
    close_fixture(&f);
}

static void test_early_ends(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    const volatile int raised = 2;
    const struct slc_stop stop = {.flag = &raised};
    struct fixture f;

    open_fixture(&f);
    for (size_t i = 0; i < SLC_COUNT(team_sizes); i++) {
        struct slc_tile_scan_options options = {.workers = team_sizes[i], .last_row = UINT64_MAX};
        struct watch enough = {.fail_at = UINT64_MAX, .turns_at = 20};
        struct watch disliked = {.fail_at = 33};
        struct watch stopped = {.fail_at = UINT64_MAX};

        SLC_ASSERT_OK(scan(&f, options, &enough, &err), &err);
        /* Each other worker may have been processing a tile. */
        CU_ASSERT(enough.turns >= 20 && enough.turns < 20 + team_sizes[i]);
        SLC_ASSERT_FAILS(scan(&f, options, &disliked, &err), SLC_ERR_NUMERIC, &err, "not liked");
        CU_ASSERT(disliked.turns <= 33);
        slc_error_clear(&err);
        options.stop = &stop;
        SLC_ASSERT_FAILS(scan(&f, options, &stopped, &err), SLC_ERR_INTERRUPTED, &err,
                         "stopped before");
        CU_ASSERT_EQUAL(stopped.turns, 0);
        slc_error_clear(&err);
    }
    close_fixture(&f);
}

/* Every open, read, close, allocation and thread fails in turn. */
static void test_faults(void)
{
    static const struct slc_tile_scan_options options = {.workers = 3, .last_row = UINT64_MAX};
    static const enum slc_faulty_kind kinds[] = {SLC_FAULTY_OPEN, SLC_FAULTY_READ};
    struct fixture f;
    bool fired = true;

    open_fixture(&f);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        fired = true;
        for (uint64_t k = 1; fired; k++) {
            struct slc_error err = SLC_ERROR_INIT;
            struct watch watch = {.fail_at = UINT64_MAX};
            enum slc_status status;

            slc_faulty_fail(&f.faulty, kinds[i], k, EIO);
            status = scan(&f, options, &watch, &err);
            fired = slc_faulty_fired(&f.faulty);
            CU_ASSERT_EQUAL(status, fired ? SLC_ERR_IO : SLC_OK);
            CU_ASSERT_EQUAL(err.status, status);
        }
    }
    slc_faulty_fail(&f.faulty, SLC_FAULTY_READ, 0, 0);
    for (enum slc_fault_kind kind = 0; kind < SLC_FAULT_KINDS; kind++) {
        fired = true;
        for (uint64_t k = 1; fired; k++) {
            struct slc_error err = SLC_ERROR_INIT;
            struct watch watch = {.fail_at = UINT64_MAX};
            enum slc_status status;

            slc_fault_arm(kind, k);
            status = scan(&f, options, &watch, &err);
            fired = slc_fault_seen(kind) >= k;
            slc_fault_arm(kind, 0);
            CU_ASSERT_EQUAL(status == SLC_OK, !fired);
            CU_ASSERT_EQUAL(err.status, status);
        }
    }
    for (uint64_t k = 1; k <= 5; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct watch watch = {.fail_at = UINT64_MAX};

        slc_faulty_flip(&f.faulty, k, 12345 * k);
        SLC_ASSERT_FAILS(scan(&f, options, &watch, &err), SLC_ERR_DAMAGED, &err, "");
        CU_ASSERT(err.block != SLC_NOWHERE);
    }
    close_fixture(&f);
}

static const struct slc_test tests[] = {
    {"tiles come once, turns in the order of the file", test_order},
    {"parts of a file by tile and by row", test_parts},
    {"steps and stops end all threads", test_early_ends},
    {"every fault of files, memory and threads is reported", test_faults},
};

SLC_SUITE(tile_scan)
{
    return slc_test_main("tile_scan", tests, SLC_COUNT(tests), argc, argv);
}
