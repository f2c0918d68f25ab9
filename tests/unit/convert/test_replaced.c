/* A store that another process replaces, or whose layouts it changes, before any file operation of
 * a reader: the reader finds one whole store, and every file it reads belongs to it. */
#include "base/random.h"
#include "convert/layout/relayout.h"
#include "convert/layout/restripe.h"
#include "faulty_files.h"
#include "make_sorted.h"
#include "slc_test.h"
#include "storage/file/block_file.h"
#include "storage/manifest/names.h"
#include "storage/model/npy.h"
#include "storage/model/run_folder.h"
#include "storage/verify/verify.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[256], store[300], part[300], stripes[2][300];
static struct slc_made_tensor tensors[2];
static uint64_t content[2];
static unsigned current; /* number of the tensor at `store` */

static void write_names(const char *path, unsigned tensor)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_names_writer *writer = NULL;
    struct slc_manifest manifest;
    char name[32];

    SLC_ASSERT_OK(slc_manifest_read(NULL, path, &manifest, &err), &err);
    SLC_ASSERT_OK(slc_names_writer_open(slc_quick_files(), path, 1, &writer, &err), &err);
    for (unsigned i = 0; i < 5; i++) {
        (void)snprintf(name, sizeof name, "name %u of tensor %u", i, tensor);
        SLC_ASSERT_OK(slc_names_writer_add(writer, name, strlen(name), &err), &err);
    }
    SLC_ASSERT_OK(slc_names_writer_finish(writer, &manifest.names[0], &err), &err);
    manifest.names_count = 1;
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), path, &manifest, &err), &err);
}

/* Makes a store with the layout sorted-1 and names. Sizes of blocks differ, so that no block of one
 * store has the place of a block of the other. */
static void make_store(const char *path, unsigned tensor)
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(
        slc_made_store_write(&tensors[tensor], NULL, path, SLC_CODEC_PACKED, 4096 << tensor, &err),
        &err);
    write_names(path, tensor);
    SLC_ASSERT_OK(slc_made_store_add_sorted(&tensors[tensor], path, 0, 300, SLC_CODEC_PACKED,
                                            4096 << tensor, &err),
                  &err);
}

/* Replaces the store like a conversion: exchanges the folders, then removes the files of the old
 * one. */
static void replace(void)
{
    const struct slc_files *files = slc_quick_files();
    struct slc_error err = SLC_ERROR_INIT;

    current = 1 - current;
    make_store(part, current);
    CU_ASSERT_EQUAL(files->exchange(files->self, part, store), 0);
    SLC_ASSERT_OK(slc_folder_remove(files, part, &err), &err);
}

static void replace_striped(void)
{
    struct slc_error err = SLC_ERROR_INIT;

    replace();
    for (unsigned s = 0; s < 2; s++) {
        SLC_ASSERT_OK(slc_folder_remove(slc_quick_files(), stripes[s], &err), &err);
    }
}

/* Moves the store away and removes it, as on a file system without exchanges. */
static void replace_in_two_steps(void)
{
    const struct slc_files *files = slc_quick_files();
    struct slc_error err = SLC_ERROR_INIT;

    CU_ASSERT_EQUAL(files->rename(files->self, store, part), 0);
    current = 1 - current;
    make_store(store, current);
    SLC_ASSERT_OK(slc_folder_remove(files, part, &err), &err);
}

static void open_layouts(struct slc_relayout *layouts)
{
    const struct slc_relayout_options options = {.files = slc_quick_files(),
                                                 .store = store,
                                                 .memory_bytes = UINT64_C(1) << 32,
                                                 .workers = 1};
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_relayout_open(&options, layouts, &err), &err);
}

static void drop(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_relayout layouts;

    open_layouts(&layouts);
    SLC_ASSERT_OK(slc_relayout_drop(&layouts, SLC_LAYOUT_SORTED, 0, &err), &err);
    slc_relayout_close(&layouts);
}

/* The new layout has the name of the dropped one, and other blocks. */
static void rebuild(void)
{
    struct slc_error err = SLC_ERROR_INIT;

    drop();
    SLC_ASSERT_OK(
        slc_made_store_add_sorted(&tensors[current], store, 0, 700, SLC_CODEC_LZ4, 8192, &err),
        &err);
}

static void add_fibers(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_relayout layouts;
    struct slc_sorted_report report;

    open_layouts(&layouts);
    SLC_ASSERT_OK(slc_relayout_add(&layouts, SLC_LAYOUT_FIBER, 2, &report, &err), &err);
    slc_relayout_close(&layouts);
}

static void stripe(void)
{
    const char *const folders[] = {stripes[0], "../stripes-1"};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_relayout layouts;
    bool changed;

    open_layouts(&layouts);
    SLC_ASSERT_OK(slc_relayout_stripe(&layouts, SLC_LAYOUT_BLCO, 0, folders, 2, &changed, &err),
                  &err);
    CU_ASSERT(changed);
    slc_relayout_close(&layouts);
}

static void gather(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_relayout layouts;
    bool changed;

    open_layouts(&layouts);
    SLC_ASSERT_OK(slc_relayout_gather(&layouts, SLC_LAYOUT_BLCO, 0, &changed, &err), &err);
    CU_ASSERT(changed);
    slc_relayout_close(&layouts);
}

/* Reads all blocks of a layout, which checks their checksums against the index. */
static enum slc_status read_blocks(const struct slc_reader *reader, struct slc_error *err)
{
    static char data[1 << 20];
    struct slc_block_file file = SLC_BLOCK_FILE_INIT;
    enum slc_status status = slc_block_file_open(slc_reader_files(reader), slc_reader_path(reader),
                                                 "opening the blocks", &file, err);

    for (uint64_t b = 0; b < slc_reader_info(reader)->block_count && status == SLC_OK; b++) {
        struct slc_block_entry entry;
        struct slc_block_view view;

        slc_reader_entry(reader, b, &entry);
        CU_ASSERT_FATAL(entry.padded_bytes <= sizeof data);
        status = slc_block_file_read(&file, data, entry.padded_bytes, entry.offset, err);
        SLC_THEN(status, slc_block_open(reader, b, data, false, &view, err));
    }
    slc_block_file_close(&file);
    return status;
}

static enum slc_status
read_names(const struct slc_store *opened, unsigned tensor, struct slc_error *err)
{
    struct slc_names *names = NULL;
    const char *name = "";
    char expected[32];
    size_t bytes;
    enum slc_status status =
        slc_names_open(opened->files, opened->path, &opened->manifest.names[0], &names, err);

    SLC_THEN(status, slc_names_get(names, 4, &name, &bytes, err));
    (void)snprintf(expected, sizeof expected, "name 4 of tensor %u", tensor);
    if (status == SLC_OK && strcmp(name, expected) != 0) {
        status = slc_fail(err, SLC_ERR_DAMAGED, "%s, expected %s", name, expected);
    }
    slc_names_close(names);
    return status;
}

/* Opens the store, then each layout when it is needed, and reads everything. */
static enum slc_status read_store(const struct slc_files *files, struct slc_error *err)
{
    struct slc_store opened = {.path = NULL};
    struct slc_reader *sorted = NULL;
    enum slc_status status = slc_store_open(files, store, &opened, err);

    SLC_THEN(status, read_blocks(opened.reader, err));
    for (unsigned i = 0; status == SLC_OK && i < opened.manifest.layout_count; i++) {
        const struct slc_store_layout *listed = &opened.manifest.layouts[i];

        sorted = NULL;
        status = slc_store_open_layout(&opened, listed->layout, listed->layout_mode, UINT64_MAX,
                                       &sorted, err);
        SLC_THEN(status, read_blocks(sorted, err));
        slc_reader_close(sorted);
    }
    if (status == SLC_OK) {
        const unsigned tensor = opened.manifest.content_sum != content[0];

        CU_ASSERT_EQUAL(opened.manifest.content_sum, content[tensor]);
        status = read_names(&opened, tensor, err);
    }
    slc_store_close(&opened);
    return status;
}

static enum slc_status verify_store(const struct slc_files *files, struct slc_error *err)
{
    const struct slc_verify_options options = {.files = files, .decode = true, .threads = 1};
    struct slc_verify_report report;

    return slc_verify_store(store, &options, &report, err);
}

static void start_anew(void (*prepare)(void))
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_folder_remove(slc_quick_files(), store, &err), &err);
    for (unsigned s = 0; s < 2; s++) {
        SLC_ASSERT_OK(slc_folder_remove(slc_quick_files(), stripes[s], &err), &err);
        CU_ASSERT_EQUAL(mkdir(stripes[s], 0777), 0);
    }
    current = 0;
    make_store(store, 0);
    if (prepare != NULL) {
        prepare();
    }
}

/* Calls `change` before the k-th operation of `read`, for every k, or for one in STEP. */
enum { STEP = 5 };

static void disturb(void (*prepare)(void),
                    void (*change)(void),
                    enum slc_status (*read)(const struct slc_files *files, struct slc_error *err))
{
    static uint64_t draws;
    const uint64_t step = slc_test_full() ? 1 : STEP;
    uint64_t k = slc_random_below(slc_test_seed(), draws++, 0, step);
    unsigned failed = 0;
    bool fired = true;

    while (fired) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_faulty faulty;

        start_anew(prepare);
        slc_faulty_init(&faulty);
        slc_faulty_fail(&faulty, SLC_FAULTY_ANY, k + 1, 0);
        faulty.action = SLC_FAULTY_CALL;
        faulty.call = change;
        if (read(&faulty.table, &err) != SLC_OK && failed++ < 5) {
            printf("# before operation %ju: %s: %s\n", (uintmax_t)k + 1, err.file, err.message);
        }
        k += step;
        fired = slc_faulty_fired(&faulty);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
    }
    CU_ASSERT(k > 15);
    CU_ASSERT_EQUAL(failed, 0);
}

static void run_path(const char *name, char path[400])
{
    (void)snprintf(path, 400, "%s/run/%s", folder, name);
}

/* Writes factors and weights that all have the value `value`, and run.json last, like a run. */
static void write_run(double value)
{
    static const char record[] =
        "{\"schema\": \"sluice-run-1\", \"tensor\": {\"path\": \"x.slc\", \"dims\": [3, 2], "
        "\"content_sum\": \"0123456789abcdef\"}}";
    const double values[] = {value, value, value};
    const struct slc_files *files = slc_quick_files();
    struct slc_error err = SLC_ERROR_INIT;
    char path[400], name[32];

    run_path("run.json", path);
    (void)files->unlink(files->self, path);
    run_path("lambda.npy", path);
    SLC_ASSERT_OK(slc_npy_write_vector(files, path, values, 1, &err), &err);
    for (unsigned mode = 0; mode < 2; mode++) {
        (void)snprintf(name, sizeof name, "mode-%u.npy", mode + 1);
        run_path(name, path);
        SLC_ASSERT_OK(slc_npy_write_vector(files, path, values, 3 - mode, &err), &err);
    }
    run_path("run.json", path);
    SLC_ASSERT_OK(slc_file_replace(files, path, record, sizeof record - 1, &err), &err);
}

static void first_run(void)
{
    char path[400];

    run_path("", path);
    (void)mkdir(path, 0777);
    write_run(1);
}

static void second_run(void)
{
    write_run(2);
}

/* Changes the folder like a run that removes run.json and then stops. */
static void unfinished_run(void)
{
    char path[400];

    second_run();
    run_path("run.json", path);
    (void)unlink(path);
}

static enum slc_status read_factors(const struct slc_files *files,
                                    const char *path,
                                    const uint64_t dims[2],
                                    double *value,
                                    struct slc_error *err)
{
    struct slc_matrix factors[2];
    uint32_t rank = 0;
    enum slc_status status =
        slc_model_read(files, path, SLC_F64, 2, dims, SLC_MAX_ORDER, &rank, factors, err);

    if (status == SLC_OK) {
        *value = slc_matrix_get(&factors[0], 2, 0);
        CU_ASSERT_EQUAL(slc_matrix_get(&factors[1], 1, 0), *value);
    }
    slc_matrix_destroy(&factors[0]);
    slc_matrix_destroy(&factors[1]);
    return status;
}

/* Reads a run as `top` and `predict` do: its shape, and later its factors. */
static enum slc_status read_run(const struct slc_files *files, struct slc_error *err)
{
    static struct slc_run_folder run;
    double value = 0;
    char path[400];

    (void)snprintf(path, sizeof path, "%s/run", folder);
    enum slc_status status = slc_run_folder_read(files, path, &run, err);
    SLC_THEN(status, read_factors(run.files, path, run.dims, &value, err));
    if (status == SLC_OK) {
        CU_ASSERT_EQUAL(run.lambda[0], value);
    }
    slc_run_folder_close(&run);
    return status;
}

/* Reads only the factors, as `mttkrp --factors` does. */
static enum slc_status read_model(const struct slc_files *files, struct slc_error *err)
{
    static const uint64_t dims[2] = {3, 2};
    double value = 0;
    char path[400];

    (void)snprintf(path, sizeof path, "%s/run", folder);
    return read_factors(files, path, dims, &value, err);
}

static void prepare(void)
{
    static const uint64_t dims[] = {30, 40, 50};

    if (folder[0] != '\0') {
        return;
    }
    (void)snprintf(folder, sizeof folder, "%s", slc_test_folder());
    (void)snprintf(store, sizeof store, "%s/x.slc", folder);
    (void)snprintf(part, sizeof part, "%s/x.slc.part", folder);
    for (unsigned s = 0; s < 2; s++) {
        (void)snprintf(stripes[s], sizeof stripes[s], "%s/stripes-%u", folder, s);
    }
    for (unsigned t = 0; t < 2; t++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_manifest manifest;

        slc_made_tensor_create(&tensors[t], 3, dims, 3000, SLC_MADE_COUNTS, slc_test_seed() + t);
        make_store(part, t);
        SLC_ASSERT_OK(slc_manifest_read(NULL, part, &manifest, &err), &err);
        content[t] = manifest.content_sum;
        SLC_ASSERT_OK(slc_folder_remove(slc_quick_files(), part, &err), &err);
    }
    CU_ASSERT_NOT_EQUAL(content[0], content[1]);
}

static void test_replaced(void)
{
    prepare();
    disturb(NULL, replace, read_store);
    disturb(NULL, replace_in_two_steps, read_store);
    disturb(stripe, replace_striped, read_store);
}

static void test_layouts(void)
{
    prepare();
    disturb(NULL, drop, read_store);
    disturb(NULL, rebuild, read_store);
    disturb(NULL, add_fibers, read_store);
    disturb(NULL, stripe, read_store);
    disturb(stripe, gather, read_store);
}

static void test_check(void)
{
    prepare();
    disturb(NULL, replace, verify_store);
    disturb(NULL, drop, verify_store);
    disturb(NULL, rebuild, verify_store);
    disturb(NULL, add_fibers, verify_store);
    disturb(NULL, stripe, verify_store);
    disturb(stripe, gather, verify_store);
}

static void test_runs(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_faulty faulty;

    prepare();
    disturb(first_run, second_run, read_run);
    disturb(first_run, second_run, read_model);
    /* The first opens are of the folder and of run.json. */
    start_anew(first_run);
    slc_faulty_init(&faulty);
    slc_faulty_fail(&faulty, SLC_FAULTY_OPEN, 4, 0);
    faulty.action = SLC_FAULTY_CALL;
    faulty.call = unfinished_run;
    SLC_ASSERT_FAILS(read_run(&faulty.table, &err), SLC_ERR_IO, &err, "is writing its results");
    CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
}

/* A store that stays altered or incomplete is an error, also after attempts to read it again. */
static void test_altered(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    char path[400];

    prepare();
    start_anew(NULL);
    (void)snprintf(path, sizeof path, "%s/sorted-1.blk", store);
    CU_ASSERT_EQUAL(unlink(path), 0);
    SLC_ASSERT_FAILS(read_store(slc_quick_files(), &err), SLC_ERR_IO, &err,
                     "opening the block file");
    CU_ASSERT_STRING_EQUAL(err.file, path);
    slc_error_clear(&err);
    (void)snprintf(path, sizeof path, "%s/%s", store, SLC_BLCO_NAME);
    CU_ASSERT_EQUAL(truncate(path, 8192), 0);
    SLC_ASSERT_FAILS(read_store(slc_quick_files(), &err), SLC_ERR_DAMAGED, &err, "truncated");
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_folder_remove(slc_quick_files(), store, &err), &err);
    SLC_ASSERT_FAILS(read_store(slc_quick_files(), &err), SLC_ERR_IO, &err, "opening the store");
}

static void replace_always(void)
{
    const struct slc_files *files = slc_quick_files();

    CU_ASSERT_EQUAL(files->exchange(files->self, part, store), 0);
}

/* A store that is replaced before every operation is read after a bounded number of attempts. */
static void test_always(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_faulty faulty;

    prepare();
    start_anew(NULL);
    make_store(part, 1);
    slc_faulty_init(&faulty);
    slc_faulty_fail_from(&faulty, SLC_FAULTY_ANY, 1, 0);
    faulty.action = SLC_FAULTY_CALL;
    faulty.call = replace_always;
    SLC_ASSERT_OK(read_store(&faulty.table, &err), &err);
    CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
    SLC_ASSERT_OK(slc_folder_remove(slc_quick_files(), part, &err), &err);
}

static const struct slc_test tests[] = {
    {"a store that is replaced", test_replaced},
    {"a store whose layouts change", test_layouts},
    {"a check of such stores", test_check},
    {"a run that is replaced", test_runs},
    {"a store that is altered", test_altered},
    {"a store that is replaced before every operation", test_always},
};

SLC_SUITE(replaced)
{
    return slc_test_main("replaced", tests, SLC_COUNT(tests), argc, argv);
}
