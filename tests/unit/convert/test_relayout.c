/* Adding and dropping layouts of a store: the manifest lists exactly the existing layouts, in an
 * order independent of the order of adding; for any fault the store stays valid, and the next run
 * succeeds; one run at a time. */
#include "base/error/fault.h"
#include "convert/layout/relayout.h"
#include "faulty_files.h"
#include "make_store.h"
#include "slc_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct fixture {
    struct slc_faulty faulty;
    char store[4096];
    uint64_t nnz;
};

static void make_fixture(struct fixture *f)
{
    static unsigned number;
    const uint64_t dims[] = {30, 40, 500};
    struct slc_made_tensor tensor;
    struct slc_error err = SLC_ERROR_INIT;

    (void)snprintf(f->store, sizeof f->store, "%s/x%u.slc", slc_test_folder(), number++);
    slc_made_tensor_create(&tensor, 3, dims, 30000, SLC_MADE_COUNTS, slc_test_seed());
    SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, f->store, SLC_CODEC_PACKED, 0, &err), &err);
    f->nnz = tensor.nnz;
    slc_made_tensor_destroy(&tensor);
    slc_faulty_init(&f->faulty);
}

static struct slc_relayout_options options_of(const struct fixture *f)
{
    return (struct slc_relayout_options){.files = &f->faulty.table,
                                         .store = f->store,
                                         .memory_bytes = UINT64_C(1) << 32,
                                         .workers = 2};
}

static enum slc_status
change(const struct fixture *f, bool add, unsigned mode, struct slc_error *err)
{
    const struct slc_relayout_options options = options_of(f);
    struct slc_relayout layouts = {.lock = -1};
    struct slc_sorted_report report;
    enum slc_status status = slc_relayout_open(&options, &layouts, err);

    if (status == SLC_OK) {
        status = add ? slc_relayout_add(&layouts, SLC_LAYOUT_SORTED, mode, &report, err)
                     : slc_relayout_drop(&layouts, SLC_LAYOUT_SORTED, mode, err);
    }
    slc_relayout_close(&layouts);
    return status;
}

static bool exists(const struct fixture *f, const char *name)
{
    char path[4200];
    struct stat info;

    (void)snprintf(path, sizeof path, "%s/%s", f->store, name);
    return stat(path, &info) == 0;
}

/* The store and each listed layout can be opened; returns a bit per sorted mode. */
static unsigned check_store(const struct fixture *f)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_store store = {0};
    unsigned modes = 0;

    SLC_ASSERT_OK(slc_store_open(NULL, f->store, &store, &err), &err);
    for (unsigned i = 0; i < store.manifest.layout_count; i++) {
        const struct slc_store_layout *layout = &store.manifest.layouts[i];
        struct slc_reader *reader = NULL;

        CU_ASSERT(exists(f, layout->file));
        CU_ASSERT(i == 0 || layout->layout > layout[-1].layout ||
                  layout->layout_mode > layout[-1].layout_mode);
        if (layout->layout == SLC_LAYOUT_SORTED) {
            SLC_ASSERT_OK(slc_store_open_layout(&store, layout->layout, layout->layout_mode,
                                                UINT64_MAX, &reader, &err),
                          &err);
            CU_ASSERT_EQUAL(slc_reader_info(reader)->nnz, f->nnz);
            slc_reader_close(reader);
            modes |= 1U << layout->layout_mode;
        }
    }
    slc_store_close(&store);
    return modes;
}

static void test_add_and_drop(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct fixture f;

    make_fixture(&f);
    SLC_ASSERT_OK(change(&f, true, 2, &err), &err);
    CU_ASSERT_EQUAL(check_store(&f), 4);
    SLC_ASSERT_OK(change(&f, true, 0, &err), &err);
    SLC_ASSERT_OK(change(&f, true, 1, &err), &err);
    CU_ASSERT_EQUAL(check_store(&f), 7);
    SLC_ASSERT_OK(change(&f, false, 1, &err), &err);
    CU_ASSERT_EQUAL(check_store(&f), 5);
    CU_ASSERT_FALSE(exists(&f, "sorted-2.blk"));
    SLC_ASSERT_FAILS(change(&f, false, 1, &err), SLC_ERR_USAGE, &err, "no layout sorted-2");
    CU_ASSERT_EQUAL(slc_faulty_open_count(&f.faulty), 0);
}

static void test_lock(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_relayout layouts = {.lock = -1};
    struct slc_relayout_options options;
    struct fixture f;

    make_fixture(&f);
    options = options_of(&f);
    SLC_ASSERT_OK(slc_relayout_open(&options, &layouts, &err), &err);
    SLC_ASSERT_FAILS(change(&f, true, 0, &err), SLC_ERR_IO, &err, "another run is changing");
    slc_error_clear(&err);
    slc_relayout_close(&layouts);
    SLC_ASSERT_OK(change(&f, true, 0, &err), &err);
    options.store = "not-there.slc";
    SLC_ASSERT_FAILS(slc_relayout_open(&options, &layouts, &err), SLC_ERR_IO, &err, "");
}

static void test_budget(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_relayout layouts = {.lock = -1};
    struct slc_sorted_plan plan = {.ranges = NULL};
    struct slc_relayout_options options;
    struct fixture f;

    make_fixture(&f);
    options = options_of(&f);
    options.memory_bytes = UINT64_C(2) << 20;
    SLC_ASSERT_OK(slc_relayout_open(&options, &layouts, &err), &err);
    SLC_ASSERT_FAILS(slc_relayout_plan(&layouts, SLC_LAYOUT_SORTED, 0, &plan, &err), SLC_ERR_BUDGET,
                     &err, "the budget is 2");
    slc_relayout_close(&layouts);
}

/* Fails the k-th operation of a kind, and all later ones, while a layout is added or dropped. */
static void fail_each(struct fixture *f, enum slc_faulty_kind kind, bool add, bool from_then)
{
    bool fired = true;

    for (uint64_t k = 1; fired; k += slc_test_quick() ? 3 : 1) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;
        unsigned modes;

        if (from_then) {
            slc_faulty_fail_from(&f->faulty, kind, k, EIO);
        } else {
            slc_faulty_fail(&f->faulty, kind, k, EIO);
        }
        status = change(f, add, 1, &err);
        fired = slc_faulty_fired(&f->faulty);
        slc_faulty_fail(&f->faulty, SLC_FAULTY_READ, 0, 0);
        CU_ASSERT(fired || status == SLC_OK);
        CU_ASSERT_EQUAL(err.status, status);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&f->faulty), 0);
        /* A failing sync of the folder comes after the change. */
        modes = check_store(f);
        CU_ASSERT(modes == (add ? 1U : 3U) || modes == (add ? 3U : 1U));
        CU_ASSERT(status != SLC_OK || modes == (add ? 3U : 1U));
        slc_error_clear(&err);
        if (modes == (add ? 1U : 3U)) {
            SLC_ASSERT_OK(change(f, add, 1, &err), &err);
        }
        CU_ASSERT_EQUAL(check_store(f), add ? 3 : 1);
        slc_error_clear(&err);
        SLC_ASSERT_OK(change(f, !add, 1, &err), &err);
    }
}

static void test_faults(void)
{
    static const enum slc_faulty_kind kinds[] = {
        SLC_FAULTY_OPEN, SLC_FAULTY_READ,   SLC_FAULTY_WRITE,  SLC_FAULTY_SYNC,
        SLC_FAULTY_STAT, SLC_FAULTY_RENAME, SLC_FAULTY_UNLINK, SLC_FAULTY_TRUNCATE};
    struct slc_error err = SLC_ERROR_INIT;
    struct fixture f;

    make_fixture(&f);
    SLC_ASSERT_OK(change(&f, true, 0, &err), &err);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        fail_each(&f, kinds[i], true, i % 2 == 0);
    }
    SLC_ASSERT_OK(change(&f, true, 1, &err), &err);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        fail_each(&f, kinds[i], false, i % 2 == 0);
    }
}

/* Every allocation of a change fails once, from a store with `before` layouts to one with
 * `after`. */
static void fail_allocations(const struct fixture *f, bool add, int before, int after)
{
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = change(f, add, 1, &err);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
            SLC_ASSERT_OK(status, &err);
            break;
        }
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        CU_ASSERT_EQUAL(check_store(f), before);
    }
    CU_ASSERT_EQUAL(check_store(f), after);
}

static void test_memory(void)
{
    struct fixture f;

    make_fixture(&f);
    fail_allocations(&f, true, 0, 2);
    fail_allocations(&f, false, 2, 0);
}

static const struct slc_test tests[] = {
    {"layouts are added, listed and dropped", test_add_and_drop},
    {"one run at a time", test_lock},
    {"a budget that is too small", test_budget},
    {"the store survives every fault of files", test_faults},
    {"the store survives failing memory", test_memory},
};

SLC_SUITE(relayout)
{
    return slc_test_main("relayout", tests, SLC_COUNT(tests), argc, argv);
}
