/*
 * Layouts of a store, added and dropped, through every crash: the store is whole at any time, with
 * the layouts that its manifest lists; asking again ends with the very files of an uninterrupted
 * run, and nothing beside them. A file that is finished is not built again, whatever it lacks.
 */
#include "crash_try.h"
#include "make_store.h"
#include "slc_test.h"

#include "convert/relayout.h"
#include "storage/verify.h"

#include <stdio.h>

static const char path[] = "/x.slc";

struct change {
    struct slc_made_tensor tensor;
    enum slc_layout_kind kind;
    unsigned mode;
    bool drop;
};

/* Whether a finished file of the layout is there, under either name. */
static bool is_finished(const struct change *change, const struct slc_files *files)
{
    bool found = false;

    for (unsigned i = 0; i < 2 && !found; i++) {
        struct slc_reader *reader = NULL;
        struct slc_error err = SLC_ERROR_INIT;
        char name[64];

        (void)snprintf(name, sizeof name, "%s/%s-%u.blk%s", path, slc_layout_name(change->kind),
                       change->mode + 1, i == 0 ? "" : ".tmp");
        found = slc_reader_open(files, name, &reader, &err) == SLC_OK;
        slc_reader_close(reader);
    }
    return found;
}

static enum slc_status
change_layouts(void *context, const struct slc_files *files, struct slc_error *err)
{
    const struct change *change = context;
    const struct slc_relayout_options options = {
        .files = files, .store = path, .memory_bytes = UINT64_C(1) << 32, .workers = 2};
    struct slc_relayout layouts = {.lock = -1};
    const bool finished = !change->drop && is_finished(change, files);
    struct slc_sorted_report report;
    enum slc_status status = slc_relayout_open(&options, &layouts, err);

    if (status == SLC_OK && change->drop) {
        status = slc_relayout_drop(&layouts, change->kind, change->mode, err);
    } else if (status == SLC_OK &&
               slc_manifest_find(&layouts.store.manifest, change->kind, change->mode) == NULL) {
        status = slc_relayout_add(&layouts, change->kind, change->mode, &report, err);
        if (status == SLC_OK && finished && report.count_scans + report.gather_scans > 0) {
            status = slc_fail(err, SLC_ERR_SYSTEM, "a finished layout is built again");
        }
    }
    slc_relayout_close(&layouts);
    return status;
}

static void prepare(void *context, const struct slc_files *files)
{
    struct change *change = context;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_made_store_write(&change->tensor, files, path, SLC_CODEC_PACKED, 0, &err),
                  &err);
    if (change->drop) {
        struct change add = *change;

        add.drop = false;
        SLC_ASSERT_OK(change_layouts(&add, files, &err), &err);
    }
}

static const char *
look(void *context, const struct slc_files *files, const struct slc_crash_moment *moment)
{
    const struct change *change = context;
    const struct slc_verify_options options = {.files = files, .threads = 1};
    struct slc_verify_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest manifest;
    static char message[1200];

    if (slc_verify_store(path, &options, &report, &err) != SLC_OK) {
        (void)slc_error_format(&err, message, sizeof message);
        return message;
    }
    if (slc_manifest_read(files, path, &manifest, &err) != SLC_OK) {
        return "no manifest";
    }
    if (moment->done &&
        (slc_manifest_find(&manifest, change->kind, change->mode) != NULL) == change->drop) {
        return "what was said to be done is not";
    }
    return moment->again && moment->done && report.leftovers > 0 ? "leftovers" : NULL;
}

/* There is nothing left to drop. */
static bool nothing_to_drop(void *context, const struct slc_error *err)
{
    const struct change *change = context;

    return change->drop && err->status == SLC_ERR_USAGE;
}

static void sweep(const char *name, enum slc_layout_kind kind, bool drop, uint64_t needless)
{
    static const uint64_t dims[] = {30, 40, 500};
    const uint64_t more = slc_test_full() ? 32 : 1;
    struct slc_crash_try_bounds bounds = {.states = {.seed = slc_test_seed(),
                                                     .all = more * (slc_test_quick() ? 8 : 32),
                                                     .extremes = more * (slc_test_quick() ? 2 : 8),
                                                     .samples = more * (slc_test_quick() ? 1 : 3)},
                                          .again = more * (slc_test_quick() ? 1 : 3),
                                          .continued = slc_test_quick() ? 1 : 4};
    struct change change = {.kind = kind, .mode = 1, .drop = drop};
    const struct slc_crash_operation operation = {.name = name,
                                                  .context = &change,
                                                  .prepare = prepare,
                                                  .run = change_layouts,
                                                  .look = look,
                                                  .may_refuse = nothing_to_drop};
    struct slc_crash_report report = {.bad = 0};
    struct slc_recorded *disk;

    slc_made_tensor_create(&change.tensor, 3, dims, drop ? 500 : 12000, SLC_MADE_COUNTS,
                           slc_test_seed());
    disk = slc_crash_record(&operation, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(disk);
    slc_crash_try(disk, &operation, &bounds, &report);
    slc_crash_report_print(&report, name, &bounds);
    CU_ASSERT_EQUAL(report.bad, 0);
    slc_recorded_destroy(disk);
    if (kind == SLC_LAYOUT_SORTED) {
        CU_ASSERT_EQUAL(slc_crash_needless(&operation, &bounds), needless);
    } else {
        CU_ASSERT(slc_crash_shows(&operation, &bounds, UINT64_MAX));
    }
    slc_made_tensor_destroy(&change.tensor);
}

static void test_sorted(void)
{
    /*
     * The store's folder is synced for what an earlier run left (1), the file before its header
     * (4), though it has another name until it is whole.
     */
    sweep("layout sorted", SLC_LAYOUT_SORTED, false, 0x9);
}

static void test_fiber(void)
{
    sweep("layout fiber", SLC_LAYOUT_FIBER, false, 0);
}

static void test_drop(void)
{
    sweep("dropping a layout", SLC_LAYOUT_SORTED, true, 0x1);
}

static const struct slc_test tests[] = {
    {"a sorted layout is added", test_sorted},
    {"a layout of fibers is added", test_fiber},
    {"a layout is dropped", test_drop},
};

int main(int argc, char **argv)
{
    return slc_test_main("crash_store", tests, SLC_COUNT(tests), argc, argv);
}
