/* The path guard rejects outputs in stores: the folder itself, paths below it, through links and
 * "..", whether they exist or not; every file system query fails once. */
#include "faulty_files.h"
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/memory/memory.h"
#include "storage/manifest/path_guard.h"
#include "storage/manifest/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[400];

/* A path below the root, valid until the next call. */
static const char *below(const char *name)
{
    static char path[600];

    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void make_file(const char *name)
{
    FILE *file = fopen(below(name), "w");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    (void)fclose(file);
}

static void make_folders(void)
{
    (void)snprintf(root, sizeof root, "%s/outside", slc_test_folder());
    CU_ASSERT_EQUAL(mkdir(root, 0700), 0);
    CU_ASSERT_EQUAL(mkdir(below("x.slc"), 0700), 0);
    CU_ASSERT_EQUAL(mkdir(below("x.slc/sub"), 0700), 0);
    CU_ASSERT_EQUAL(mkdir(below("plain"), 0700), 0);
    CU_ASSERT_EQUAL(mkdir(below("half"), 0700), 0);
    make_file("x.slc/" SLC_MANIFEST_NAME);
    make_file("x.slc/" SLC_BLCO_NAME);
    make_file("half/" SLC_MANIFEST_NAME);
    CU_ASSERT_EQUAL(mkdir(below("run"), 0700), 0);
    CU_ASSERT_EQUAL(mkdir(below("factors"), 0700), 0);
    CU_ASSERT_EQUAL(mkdir(below("sweep"), 0700), 0);
    make_file("run/run.json");
    make_file("factors/mode-1.npy");
    make_file("sweep/sweep.json");
    CU_ASSERT_EQUAL(symlink("x.slc/sub", below("link")), 0);
}

static const struct {
    const char *path;
    const char *refusal;        /* error for an output at the path; NULL: accepted */
    const char *parent_refusal; /* expected error for outputs in the parent folder */
} cases[] = {
    {"x.slc", "it is a store", NULL},
    {"x.slc/", "it is a store", NULL},
    {"x.slc/.", "it is a store", "is inside the folder of a store"},
    {"x.slc/m.npy", "is inside the folder of a store", "is inside the folder of a store"},
    {"x.slc/new/", "is inside the folder of a store", "is inside the folder of a store"},
    {"x.slc/" SLC_BLCO_NAME, "is inside the folder of a store", "is inside the folder of a store"},
    {"x.slc/sub", "is inside the folder of a store", "is inside the folder of a store"},
    {"x.slc/sub/deep.npy", "is inside the folder of a store", "is inside the folder of a store"},
    {"link/deep.npy", "is inside the folder of a store", "is inside the folder of a store"},
    {"link", "is inside the folder of a store", NULL},
    {"plain/../x.slc/m.npy", "is inside the folder of a store", "is inside the folder of a store"},
    {"x.slc/../m.npy", NULL, NULL},
    {"x.slc.r16", NULL, NULL},
    {"plain", NULL, NULL},
    {"plain/m.npy", NULL, NULL},
    {"half/m.npy", NULL, NULL},
    {"none/none/m.npy", NULL, NULL},
    {"half/" SLC_MANIFEST_NAME "/m.npy", NULL, NULL},
    {"run/run.json", "file of the results", "file of the results"},
    {"run/mode-1.npy", "file of the results", "file of the results"},
    {"run/mode-12.npy", "file of the results", "file of the results"},
    {"plain/../run/lambda.npy", "file of the results", "file of the results"},
    {"run/mode-1.csv", NULL, NULL},
    {"run/mode-x.npy", NULL, NULL},
    {"run/m.npy", NULL, NULL},
    {"run", NULL, NULL},
    {"factors/mode-2.npy", "file of the results", "file of the results"},
    {"sweep/sweep.json", "file of the results", "file of the results"},
    {"plain/run.json", NULL, NULL},
    {"plain/mode-1.npy", NULL, NULL},
};

static void refuse(enum slc_status status, const char *part, struct slc_error *err)
{
    if (part == NULL) {
        SLC_ASSERT_OK(status, err);
    } else {
        SLC_ASSERT_FAILS(status, SLC_ERR_USAGE, err, part);
    }
    slc_error_clear(err);
}

static void places(void)
{
    struct slc_error err = SLC_ERROR_INIT;

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        refuse(slc_check_outside_stores(NULL, below(cases[i].path), &err), cases[i].refusal, &err);
        refuse(slc_check_parent_outside_stores(NULL, below(cases[i].path), &err),
               cases[i].parent_refusal, &err);
    }
    refuse(slc_check_outside_stores(NULL, "name-alone", &err), NULL, &err);
    refuse(slc_check_outside_stores(NULL, "/name-alone", &err), NULL, &err);
    refuse(slc_check_outside_stores(NULL, "/", &err), NULL, &err);
}

static void faults(void)
{
    const char *path = below("plain/m.npy");
    struct slc_faulty faulty;
    uint64_t k;

    slc_faulty_init(&faulty);
    for (k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        slc_faulty_fail(&faulty, SLC_FAULTY_STAT, k, EIO);
        status = slc_check_outside_stores(&faulty.table, path, &err);
        if (!slc_faulty_fired(&faulty)) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
        SLC_ASSERT_FAILS(status, SLC_ERR_IO, &err, "checking whether the output");
    }
    CU_ASSERT(k > 4);
    slc_faulty_fail_from(&faulty, SLC_FAULTY_STAT, 2, EACCES);
    SLC_ASSERT_OK(slc_check_outside_stores(&faulty.table, path, NULL), NULL);
    for (k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_check_outside_stores(NULL, path, &err);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
            SLC_ASSERT_OK(status, &err);
            break;
        }
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        SLC_ASSERT_FAILS(status, SLC_ERR_MEMORY, &err, "no memory");
    }
}

static void parents(void)
{
    static const char *const pairs[][2] = {{"A/B", "A"},  {"A/B//", "A"}, {"B", "."}, {"/B", "/"},
                                           {"//B/", "/"}, {"A//B", "A"},  {"/", "."}, {"", "."}};

    for (size_t i = 0; i < SLC_COUNT(pairs); i++) {
        char *parent = slc_path_parent(pairs[i][0]);

        CU_ASSERT_STRING_EQUAL(parent, pairs[i][1]);
        slc_free(parent);
    }
}

static void all(void)
{
    make_folders();
    places();
    faults();
}

static const struct slc_test tests[] = {
    {"folders of paths", parents},
    {"places in and outside of stores", all},
};

SLC_SUITE(path_guard)
{
    return slc_test_main("path_guard", tests, SLC_COUNT(tests), argc, argv);
}
