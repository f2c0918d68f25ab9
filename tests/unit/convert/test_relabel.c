/* Relabelling by frequency: permutations agree with a naive sort; relabelled stores have the same
 * nonzeros after undoing the permutations, are never larger than plain ones, and do not depend on
 * threads or memory; errors name the missing resource; faults leave no files and an old store
 * intact. */
#include "base/error/fault.h"
#include "base/random.h"
#include "builder_fixture.h"
#include "convert/publish/frequency.h"
#include "faulty_files.h"
#include "slc_test.h"
#include "storage/manifest/labels.h"
#include "storage/scan/store_scan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const uint32_t *naive_counts;

static int compare_naive(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    if (naive_counts[x] != naive_counts[y]) {
        return naive_counts[x] > naive_counts[y] ? -1 : 1;
    }
    return x < y ? -1 : 1;
}

static void check_numbers(const uint32_t *counts, uint32_t length, bool want_identity)
{
    uint32_t *order = malloc(length * sizeof *order);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_labels labels;
    bool identity = false;

    SLC_ASSERT_OK(slc_labels_create(&labels, length, &err), &err);
    memcpy(labels.label, counts, length * sizeof *counts);
    SLC_ASSERT_OK(slc_frequency_labels(&labels, &identity, &err), &err);
    for (uint32_t i = 0; i < length; i++) {
        order[i] = i;
    }
    naive_counts = counts;
    qsort(order, length, sizeof *order, compare_naive);
    for (uint32_t place = 0; place < length; place++) {
        CU_ASSERT_FATAL(labels.label[order[place]] == place);
    }
    CU_ASSERT_EQUAL(identity, want_identity);
    slc_labels_destroy(&labels);
    free(order);
}

static void test_numbers(void)
{
    enum { LENGTH = 5000 };
    static uint32_t counts[LENGTH];
    /* Bounds of the counts, around the size of the table and above it. */
    static const uint32_t bounds[] = {2, 5, 65535, 65537, 70000, UINT32_MAX};

    check_numbers((const uint32_t[]){3, 3}, 2, true);
    check_numbers((const uint32_t[]){0, 1}, 2, false);
    check_numbers((const uint32_t[]){UINT32_MAX, UINT32_MAX, 65536, 65535, 0}, 5, true);
    check_numbers((const uint32_t[]){65535, 65536, UINT32_MAX, 0, UINT32_MAX}, 5, false);
    for (size_t b = 0; b < SLC_COUNT(bounds); b++) {
        for (uint32_t i = 0; i < LENGTH; i++) {
            counts[i] = (uint32_t)slc_random_below(slc_test_seed(), b, i, bounds[b]);
        }
        check_numbers(counts, LENGTH, false);
    }
}

/* Replaces the coordinates by frequent and rare ones that are scattered over each mode. */
static void scatter_skewed(struct input *input, double skew, uint64_t seed)
{
    for (unsigned m = 0; m < input->order; m++) {
        for (uint64_t i = 0; i < input->count; i++) {
            double share = pow(slc_random_f64(seed, m, i), skew);
            uint64_t rank = (uint64_t)(share * (double)input->dims[m]) % input->dims[m];

            /* 7919 is coprime to every mode size used here. */
            input->coords[m][i] =
                (uint64_t)(((slc_u128)rank * 7919 + 13) % input->dims[m]) + input->base;
        }
    }
}

struct nonzero {
    slc_u128 key;
    double value;
};

struct collected {
    const struct expected *expected;
    struct slc_labels labels[SLC_MAX_ORDER];
    unsigned order;
    uint64_t count;
    struct nonzero *nonzeros;
};

static enum slc_status
collect(void *context, unsigned worker, struct slc_scan_rows *rows, struct slc_error *err)
{
    struct collected *c = context;

    (void)worker;
    (void)err;
    for (uint32_t i = 0; i < rows->count && c->count < c->expected->count; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        for (unsigned m = 0; m < c->order; m++) {
            const uint32_t *label = c->labels[m].label;

            coords[m] = label != NULL ? label[rows->coords[m][i]] : rows->coords[m][i];
        }
        c->nonzeros[c->count++] =
            (struct nonzero){slc_key_encode(&c->expected->layout, coords), rows->values[i]};
    }
    return SLC_OK;
}

static int compare_nonzeros(const void *a, const void *b)
{
    const struct nonzero *x = a;
    const struct nonzero *y = b;

    return x->key < y->key ? -1 : x->key > y->key;
}

/* Undoes the permutations and compares every nonzero, bit for bit. They are read from a store that
 * was moved after it was opened, like a replaced store. */
static void check_undone(const char *path, const struct expected *e)
{
    struct collected c = {.expected = e};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_store store = {0};
    uint64_t wrong = 0;
    char moved[600];

    SLC_ASSERT_OK(slc_store_open(NULL, path, &store, &err), &err);
    (void)snprintf(moved, sizeof moved, "%s.moved", path);
    CU_ASSERT_EQUAL(rename(path, moved), 0);
    c.order = store.manifest.order;
    c.nonzeros = malloc((e->count + 1) * sizeof *c.nonzeros);
    for (unsigned m = 0; m < c.order; m++) {
        const struct slc_store_permutation *listed = slc_manifest_permutation(&store.manifest, m);

        if (listed != NULL) {
            SLC_ASSERT_OK(slc_store_labels(&store, listed, &c.labels[m], &err), &err);
            slc_labels_invert(&c.labels[m]);
        }
    }
    CU_ASSERT_EQUAL(rename(moved, path), 0);
    CU_ASSERT_EQUAL(store.manifest.nnz, e->count);
    SLC_ASSERT_OK(slc_store_scan(&store, 1, NULL, collect, &c, &err), &err);
    CU_ASSERT_EQUAL_FATAL(c.count, e->count);
    qsort(c.nonzeros, c.count, sizeof *c.nonzeros, compare_nonzeros);
    for (uint64_t i = 0; i < c.count; i++) {
        wrong += c.nonzeros[i].key != e->keys[i] || c.nonzeros[i].value != e->values[i];
    }
    CU_ASSERT_EQUAL(wrong, 0);
    for (unsigned m = 0; m < c.order; m++) {
        slc_labels_destroy(&c.labels[m]);
    }
    free(c.nonzeros);
    slc_store_close(&store);
}

static uint64_t bytes_of(const char *folder)
{
    static const char *const names[] = {"blco.blk",   "tensor.json", "perm-1.bin", "perm-2.bin",
                                        "perm-3.bin", "perm-4.bin",  "perm-5.bin", "perm-6.bin"};
    uint64_t bytes = 0;

    for (size_t i = 0; i < SLC_COUNT(names); i++) {
        struct stat info;

        bytes += stat(path_in(folder, names[i]), &info) == 0 ? (uint64_t)info.st_size : 0;
    }
    return bytes;
}

/* Order of the expected nonzeros: stores are compared in it after the relabelling is undone. */
static const struct slc_fiber_run plain_order = {0, 0};

/* Builds plain and relabelled stores, compares them with the specification and in size; returns
 * the number of relabelled modes. */
static unsigned compare_builds(const struct input *input, struct build build)
{
    const char *path = store_in_folder("relabel.slc");
    struct slc_builder_report plain, report;
    struct slc_error err = SLC_ERROR_INIT;
    struct expected e;
    unsigned relabelled = 0;
    uint64_t plain_bytes;

    expected_create(&e, input, plain_order, SLC_DUPLICATES_SUM, false);
    SLC_ASSERT_OK(run_build(input, &build, path, false, &plain, &err), &err);
    plain_bytes = bytes_of(path);
    build.relabel = SLC_RELABEL_FREQUENCY;
    SLC_ASSERT_OK(run_build(input, &build, path, true, &report, &err), &err);
    check_undone(path, &e);
    CU_ASSERT(bytes_of(path) <= plain_bytes);
    CU_ASSERT_EQUAL(report.entries, plain.entries);
    CU_ASSERT_EQUAL(report.duplicates, plain.duplicates);
    CU_ASSERT_EQUAL(report.summary.nnz, plain.summary.nnz);
    CU_ASSERT_EQUAL(report.relabel.plain_bytes, plain.summary.file_bytes);
    for (unsigned m = 0; m < input->order; m++) {
        CU_ASSERT_NOT_EQUAL(report.relabel.verdict[m], SLC_RELABEL_UNASKED);
        relabelled += report.relabel.verdict[m] == SLC_RELABELLED;
    }
    CU_ASSERT_FALSE(exists(path_in(path, "relabelled.slc")));
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "relabel.slc.part")));
    remove_store(path);
    expected_destroy(&e);
    return relabelled;
}

static const struct build plenty = {
    .workers = 2, .cut = 3000, .memory = 100 << 20, .sample = 500, .block_bytes = 64 << 10};

static void test_shapes(void)
{
    static const struct {
        unsigned order;
        uint64_t dims[6];
        uint64_t count;
        bool pays;
    } shapes[] = {
        {1, {100003}, 30000, false},
        {1, {1}, 1, false},
        {2, {2003, 3001}, 60000, true},
        {3, {1009, 1, 2003}, 60000, true},
        {3, {1009, 2003, 3001}, 0, false},
        {3, {1009, 2003, 3001}, 1, false},
        {3, {UINT64_C(1) << 31, UINT64_C(1) << 31, UINT64_C(1) << 31}, 3000, false}, /* 93 bits */
        {3, {UINT64_C(1) << 45, UINT64_C(1) << 46, 503}, 30000, false},
        {4, {503, 509, 1, 521}, 80000, true},
        {5, {101, 103, 107, 109, 113}, 80000, true},
        {6, {53, 59, 61, 67, 71, 73}, 80000, true},
    };

    for (size_t s = 0; s < SLC_COUNT(shapes); s++) {
        struct build build = plenty;
        struct input input;
        unsigned relabelled;

        input_create(&input, shapes[s].order, shapes[s].dims, shapes[s].count, s % 2, UNIFORM, s);
        scatter_skewed(&input, 4, s + slc_test_seed());
        (void)compare_builds(&input, build);
        /* If fibers are kept together, the gain may be smaller than the permutations. */
        build.fibers = SLC_FIBERS_NONE;
        relabelled = compare_builds(&input, build);
        CU_ASSERT(!shapes[s].pays || relabelled > 0);
        input_destroy(&input);
    }
}

/* A permutation that costs more than it gains is dropped; those of the other modes are kept. */
static void test_heavy_mode(void)
{
    static const uint64_t dims[] = {503, 40009, 521};
    const char *path = store_in_folder("heavy.slc");
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct build build = plenty;
    struct input input;

    input_create(&input, 3, dims, 60000, 0, UNIFORM, 3);
    scatter_skewed(&input, 4, 5);
    for (uint64_t i = 0; i < input.count; i++) {
        input.coords[1][i] = slc_random_below(9, 1, i, dims[1]); /* uniform: nothing to gain */
    }
    CU_ASSERT_EQUAL(compare_builds(&input, build), 2);
    build.relabel = SLC_RELABEL_FREQUENCY;
    SLC_ASSERT_OK(run_build(&input, &build, path, false, &report, &err), &err);
    CU_ASSERT_EQUAL(report.relabel.verdict[0], SLC_RELABELLED);
    CU_ASSERT_EQUAL(report.relabel.verdict[1], SLC_RELABEL_TOO_LARGE);
    CU_ASSERT_EQUAL(report.relabel.verdict[2], SLC_RELABELLED);
    remove_store(path);
    input_destroy(&input);
}

/* A mode that is already in the best order, or gains nothing, is not relabelled. */
static void test_nothing_to_gain(void)
{
    static const uint64_t dims[] = {701, 709, 719};
    static const enum shape kinds[] = {UNIFORM, SORTED, EQUAL, SKEWED};

    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        struct input input;

        input_create(&input, 3, dims, 20000, 0, kinds[k], 3);
        (void)compare_builds(&input, plenty);
        input_destroy(&input);
    }
}

/* The same bytes for any number of threads and the smallest sufficient memory. */
static void test_independence(void)
{
    static const uint64_t dims[] = {1009, 2003, 3001};
    const char *path = store_in_folder("same.slc");
    struct build build = plenty;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_builder_report report;
    struct input input;
    uint64_t hashes[2] = {0, 0};

    input_create(&input, 3, dims, 150000, 1, UNIFORM, 3);
    scatter_skewed(&input, 3, 5);
    build.relabel = SLC_RELABEL_FREQUENCY;
    for (build.workers = 1; build.workers <= 3; build.workers++) {
        for (unsigned tight = 0; tight <= 1; tight++) {
            uint64_t blocks, numbers;

            build.memory = tight ? 24 << 20 : 200 << 20;
            build.sample = tight ? 0 : 1000;
            SLC_ASSERT_OK(run_build(&input, &build, path, true, &report, &err), &err);
            CU_ASSERT_EQUAL(report.relabel.verdict[1], SLC_RELABELLED);
            blocks = hash_of(path_in(path, "blco.blk"));
            numbers = hash_of(path_in(path, "perm-2.bin"));
            CU_ASSERT(hashes[0] == 0 || (hashes[0] == blocks && hashes[1] == numbers));
            hashes[0] = blocks;
            hashes[1] = numbers;
        }
    }
    remove_store(path);
    input_destroy(&input);
}

static void test_limits(void)
{
    static const uint64_t dims[] = {1009, 2003, 400009};
    const char *path = store_in_folder("limits.slc");
    struct build build = plenty;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_builder_report report;
    struct input input;

    input_create(&input, 3, dims, 600000, 1, UNIFORM, 3);
    scatter_skewed(&input, 3, 5);
    build.relabel = SLC_RELABEL_FREQUENCY;
    build.workers = 1;
    build.memory = 0;
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_BUDGET, &err,
                     "relabelling modes by frequency");
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "limits.slc.part")));
    build.memory = 100 << 20;
    build.max_temp = 1 << 20;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(run_build(&input, &build, path, false, &report, &err), SLC_ERR_BUDGET, &err,
                     "allow more, or increase the memory");
    CU_ASSERT_FALSE(exists(path_in(test_folder(), "limits.slc.part")));
    CU_ASSERT_FALSE(exists(path));
    input_destroy(&input);
}

/* The input is small enough for hundreds of builds, but large enough that each build spills and
 * splits its bucket, and that relabelling makes the store smaller. Few coordinates are sampled, so
 * there are few buckets and few chunks. */
static const struct build hundreds = {
    .workers = 2, .cut = 3000, .memory = 100 << 20, .sample = 40, .block_bytes = 64 << 10};

static void create_for_hundreds(struct input *input)
{
    static const uint64_t dims[] = {503, 509, 521};

    input_create(input, 3, dims, 12000, 1, UNIFORM, 1);
    scatter_skewed(input, 4, 5);
}

static void check_whole_way(const struct slc_builder_report *report)
{
    CU_ASSERT_EQUAL(report->relabel.verdict[0], SLC_RELABELLED);
    CU_ASSERT(report->spill_bytes > 0 && report->recursions > 0);
}

static bool is_whole(const char *path, const struct expected *small, const struct expected *large)
{
    struct slc_store store = {0};
    uint64_t nnz = UINT64_MAX;

    if (slc_store_open(NULL, path, &store, NULL) == SLC_OK) {
        nnz = store.manifest.nnz;
        slc_store_close(&store);
    }
    return nnz == small->count || nnz == large->count;
}

/* Every file operation fails once while a relabelled store replaces another store. */
static void test_failing_files(void)
{
    static const enum slc_faulty_kind kinds[] = {
        SLC_FAULTY_OPEN, SLC_FAULTY_READ,   SLC_FAULTY_WRITE,  SLC_FAULTY_SYNC,
        SLC_FAULTY_STAT, SLC_FAULTY_RENAME, SLC_FAULTY_UNLINK, SLC_FAULTY_FOLDER};
    static const uint64_t dims[] = {503, 509, 521};
    const char *path = store_in_folder("faulty.slc");
    struct build build = hundreds;
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct input small, large;
    struct expected e_small, e_large;

    input_create(&small, 3, dims, 10, 0, UNIFORM, 1);
    create_for_hundreds(&large);
    expected_create(&e_small, &small, plain_order, SLC_DUPLICATES_SUM, false);
    expected_create(&e_large, &large, plain_order, SLC_DUPLICATES_SUM, false);
    build.relabel = SLC_RELABEL_FREQUENCY;
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        SLC_ASSERT_OK(run_build(&small, &build, path, true, &report, &err), &err);
        for (uint64_t k = 1, step = 1;; k += step, step += k / (slc_test_full()    ? 8
                                                                : slc_test_quick() ? 2
                                                                                   : 4)) {
            struct slc_faulty faulty;
            enum slc_status status;

            slc_faulty_init(&faulty);
            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            build.files = &faulty.table;
            slc_error_clear(&err);
            status = run_build(&large, &build, path, true, &report, &err);
            build.files = NULL;
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            CU_ASSERT_EQUAL(status, err.status);
            CU_ASSERT(is_whole(path, &e_small, &e_large));
            if (!slc_faulty_fired(&faulty)) {
                SLC_ASSERT_OK(status, &err);
                check_whole_way(&report);
                check_undone(path, &e_large);
                break;
            }
            /* The only leftovers are those that the failing operation itself should have
             * removed. */
            if (kinds[i] != SLC_FAULTY_UNLINK && kinds[i] != SLC_FAULTY_FOLDER) {
                CU_ASSERT_FALSE(exists(path_in(test_folder(), "faulty.slc.part")));
            }
            /* The next run removes the leftovers. */
            slc_error_clear(&err);
            SLC_ASSERT_OK(run_build(&small, &build, path, true, &report, &err), &err);
            CU_ASSERT_FALSE(exists(path_in(test_folder(), "faulty.slc.part")));
        }
    }
    remove_store(path);
    expected_destroy(&e_small);
    expected_destroy(&e_large);
    input_destroy(&small);
    input_destroy(&large);
}

static void test_failing_memory_and_threads(void)
{
    static const enum slc_fault_kind kinds[] = {SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD};
    const char *path = store_in_folder("memory.slc");
    struct build build = hundreds;
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct input input;

    create_for_hundreds(&input);
    build.relabel = SLC_RELABEL_FREQUENCY;
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        for (uint64_t k = 1;; k += slc_test_full() ? 1 : 1 + k / (slc_test_quick() ? 3 : 16)) {
            enum slc_status status;

            slc_error_clear(&err);
            slc_fault_arm(kinds[i], k);
            status = run_build(&input, &build, path, false, &report, &err);
            if (slc_fault_seen(kinds[i]) < k) {
                slc_fault_arm(kinds[i], 0);
                SLC_ASSERT_OK(status, &err);
                check_whole_way(&report);
                break;
            }
            slc_fault_arm(kinds[i], 0);
            CU_ASSERT(status == (i == 0 ? SLC_ERR_MEMORY : SLC_ERR_SYSTEM));
            CU_ASSERT_FALSE(exists(path_in(test_folder(), "memory.slc.part")));
            CU_ASSERT_FALSE(exists(path));
        }
        remove_store(path);
    }
    input_destroy(&input);
}

static const struct slc_test tests[] = {
    {"numbers by frequency", test_numbers},
    {"shapes, undone and compared in size", test_shapes},
    {"a mode that costs more than it gains", test_heavy_mode},
    {"nothing to gain", test_nothing_to_gain},
    {"threads and memory change nothing", test_independence},
    {"limits of memory and disk", test_limits},
    {"failing file operations", test_failing_files},
    {"failing memory and threads", test_failing_memory_and_threads},
};

SLC_SUITE(relabel)
{
    return slc_test_main("relabel", tests, SLC_COUNT(tests), argc, argv);
}
