/* Layouts of a store, added, dropped, moved into stripes elsewhere and back, through every crash:
 * the store is always valid, with the layouts that its manifest lists; a rerun ends with exactly
 * the files of an uninterrupted run. A finished file is never built again. */
#include "crash_try.h"
#include "make_store.h"
#include "slc_test.h"

#include "convert/layout/relayout.h"
#include "convert/layout/restripe.h"
#include "storage/file/stripes.h"
#include "storage/verify/verify.h"

#include <stdio.h>

static const char path[] = "/x.slc";

/* Changes of a layout; the changes before each are made without crashes. */
enum task { ADD, DROP, STRIPE, STRIPE_AGAIN, GATHER, DROP_STRIPED };

struct change {
    struct slc_made_tensor tensor;
    enum slc_layout_kind kind;
    unsigned mode;
    enum task task;
    bool drop; /* true: the layout is absent in the end */
};

static const char *const folders[] = {"/a", "/b"};

/* Whether a finished file of the layout exists under either name. */
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

/* Moves the layout as the task requires. */
static enum slc_status
move(const struct change *change, struct slc_relayout *layouts, struct slc_error *err)
{
    static const char *const further[] = {"/c"};
    bool changed;

    return change->task == GATHER
               ? slc_relayout_gather(layouts, change->kind, change->mode, &changed, err)
           : change->task == STRIPE
               ? slc_relayout_stripe(layouts, change->kind, change->mode, folders, 2, &changed, err)
               : slc_relayout_stripe(layouts, change->kind, change->mode, further, 1, &changed,
                                     err);
}

static enum slc_status
change_layouts(void *context, const struct slc_files *files, struct slc_error *err)
{
    const struct change *change = context;
    const struct slc_relayout_options options = {.files = files,
                                                 .store = path,
                                                 .memory_bytes = UINT64_C(1) << 32,
                                                 .workers = 2,
                                                 .stripe_unit = SLC_PAGE_BYTES};
    struct slc_relayout layouts = {.lock = -1};
    const bool finished = change->task == ADD && is_finished(change, files);
    struct slc_sorted_report report;
    enum slc_status status = slc_relayout_open(&options, &layouts, err);

    if (status == SLC_OK && change->drop) {
        status = slc_relayout_drop(&layouts, change->kind, change->mode, err);
    } else if (status == SLC_OK && change->task != ADD) {
        status = move(change, &layouts, err);
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
    for (unsigned i = 0; i < 2 && change->task >= STRIPE; i++) {
        CU_ASSERT(files->make_folder(files->self, folders[i]) == 0);
        CU_ASSERT(i > 0 || files->make_folder(files->self, "/c") == 0);
        CU_ASSERT(files->sync_folder(files->self, "/") == 0);
    }
    if (change->drop) {
        struct change add = *change;

        add.drop = false;
        add.task = ADD;
        SLC_ASSERT_OK(change_layouts(&add, files, &err), &err);
    }
    if (change->task > STRIPE) {
        struct change stripe = *change;

        stripe.drop = false;
        stripe.task = STRIPE;
        SLC_ASSERT_OK(change_layouts(&stripe, files, &err), &err);
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
        (void)slc_error_format(&err, NULL, message, sizeof message);
        return message;
    }
    if (slc_manifest_read(files, path, &manifest, &err) != SLC_OK) {
        return "no manifest";
    }
    if (moment->done && change->kind == SLC_LAYOUT_BLCO) {
        struct slc_stripe_list list = {.shape = {0}};
        bool found = false;

        if (slc_stripe_list_load(files, "/x.slc/blco.blk", &list, &found, &err) != SLC_OK ||
            found == (change->task == GATHER)) {
            return "the layout does not lie where it was said to";
        }
        slc_stripe_list_clear(&list);
    }
    if (moment->done &&
        (slc_manifest_find(&manifest, change->kind, change->mode) != NULL) == change->drop) {
        return "what was said to be done is not";
    }
    return moment->again && moment->done && report.leftovers > 0 ? "leftovers" : NULL;
}

/* The rerun of a drop may fail because the layout is already dropped. */
static bool nothing_to_drop(void *context, const struct slc_error *err)
{
    const struct change *change = context;

    return change->drop && err->status == SLC_ERR_USAGE;
}

static void sweep(const char *name, enum slc_layout_kind kind, enum task task, uint64_t needless)
{
    const bool drop = task == DROP || task == DROP_STRIPED;
    static const uint64_t dims[] = {30, 40, 500};
    const uint64_t more = slc_test_full() ? 32 : 1;
    struct slc_crash_try_bounds bounds = {.states = {.seed = slc_test_seed(),
                                                     .all = more * (slc_test_quick() ? 8 : 32),
                                                     .extremes = more * (slc_test_quick() ? 2 : 8),
                                                     .samples = more * (slc_test_quick() ? 1 : 3)},
                                          .again = more * (slc_test_quick() ? 1 : 3),
                                          .continued = slc_test_quick() ? 1 : 4};
    struct change change = {
        .kind = kind, .mode = kind == SLC_LAYOUT_BLCO ? 0 : 1, .task = task, .drop = drop};
    const struct slc_crash_operation operation = {.name = name,
                                                  .context = &change,
                                                  .prepare = prepare,
                                                  .run = change_layouts,
                                                  .look = look,
                                                  .may_refuse = nothing_to_drop};
    struct slc_crash_report report = {.bad = 0};
    struct slc_recorded *disk;

    slc_made_tensor_create(&change.tensor, 3, dims, task == ADD ? 12000 : 500, SLC_MADE_COUNTS,
                           slc_test_seed());
    disk = slc_crash_record(&operation, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(disk);
    slc_crash_try(disk, &operation, &bounds, &report);
    slc_crash_report_print(&report, name, &bounds);
    CU_ASSERT_EQUAL(report.bad, 0);
    slc_recorded_destroy(disk);
    if (kind == SLC_LAYOUT_SORTED && task <= DROP) {
        CU_ASSERT_EQUAL(slc_crash_needless(&operation, &bounds), needless);
    } else {
        CU_ASSERT(slc_crash_shows(&operation, &bounds, UINT64_MAX));
    }
    slc_made_tensor_destroy(&change.tensor);
}

static void test_sorted(void)
{
    /* Needless are sync 1, of the store's folder, because there are no leftovers of an earlier run,
     * and sync 4, of the file before its header is written, because the file has a temporary name
     * until it is complete. */
    sweep("layout sorted", SLC_LAYOUT_SORTED, ADD, 0x9);
}

static void test_fiber(void)
{
    sweep("layout fiber", SLC_LAYOUT_FIBER, ADD, 0);
}

static void test_drop(void)
{
    sweep("dropping a layout", SLC_LAYOUT_SORTED, DROP, 0x1);
}

static void test_stripe(void)
{
    sweep("striping a layout", SLC_LAYOUT_BLCO, STRIPE, 0);
}

static void test_stripe_again(void)
{
    sweep("striping a layout elsewhere", SLC_LAYOUT_BLCO, STRIPE_AGAIN, 0);
}

static void test_gather(void)
{
    sweep("gathering a layout", SLC_LAYOUT_BLCO, GATHER, 0);
}

static void test_drop_striped(void)
{
    sweep("dropping a striped layout", SLC_LAYOUT_SORTED, DROP_STRIPED, 0);
}

static const struct slc_test tests[] = {
    {"a sorted layout is added", test_sorted},
    {"a layout of fibers is added", test_fiber},
    {"a layout is dropped", test_drop},
    {"a layout is striped", test_stripe},
    {"a layout is striped elsewhere", test_stripe_again},
    {"a layout is gathered", test_gather},
    {"a striped layout is dropped", test_drop_striped},
};

SLC_SUITE(crash_store)
{
    return slc_test_main("crash_store", tests, SLC_COUNT(tests), argc, argv);
}
