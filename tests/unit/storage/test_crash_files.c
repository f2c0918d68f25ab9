/* Atomic replacement of files through every crash: the complete old file exists before, the new one
 * after success; a rerun leaves only the new one. First, the crash model itself loses exactly what
 * a power cut can lose; last, it detects each omitted sync. */
#include "crash_try.h"
#include "slc_test.h"

#include "base/memory/memory.h"
#include "base/random.h"
#include "storage/file/output.h"
#include "storage/model/model.h"
#include "storage/model/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct slc_crash_try_bounds bounds_of(uint64_t all)
{
    const uint64_t more = slc_test_full() ? 64 : 1;

    return (struct slc_crash_try_bounds){.states = {.seed = slc_test_seed(),
                                                    .all = more * all,
                                                    .extremes = more * 100,
                                                    .samples = more * 20},
                                         .again = more * 4,
                                         .continued = 6};
}

/* States that a record can leave: each a bit. */
enum {
    NO_FILE = 1,
    EMPTY = 2,
    ZEROS = 4,
    FIRST_SECTOR = 8,
    LATER_SECTORS = 16,
    WHOLE = 32,
    LONGER = 64,
    AT_B = 128,
    AT_BOTH = 256
};

enum { FILE_BYTES = 1200 };

static unsigned contents_of(const struct slc_tree *tree, const char *name)
{
    const uint32_t at = slc_tree_find(tree, SLC_TREE_ROOT, name);
    const struct slc_tree_node *node = at == SLC_TREE_NONE ? NULL : &tree->nodes[at];

    if (node == NULL) {
        return NO_FILE;
    }
    if (node->bytes == 0) {
        return EMPTY;
    }
    if (node->bytes > FILE_BYTES) {
        return LONGER;
    }
    if (node->data[0] == 0) {
        return node->data[node->bytes - 1] == 0 ? ZEROS : LATER_SECTORS;
    }
    return node->bytes < FILE_BYTES || node->data[FILE_BYTES - 1] == 0 ? FIRST_SECTOR : WHOLE;
}

static bool note_state(void *context, const struct slc_crash_state *state)
{
    const unsigned at_a = contents_of(state->tree, "a");
    const unsigned at_b = contents_of(state->tree, "b");
    unsigned *seen = context;

    *seen |= at_b == NO_FILE ? at_a : at_b | AT_B | (at_a == NO_FILE ? 0 : AT_BOTH);
    return true;
}

/* Returns the set of states that a crash at the end of the record can leave. */
static unsigned left_of(const struct slc_recorded *disk)
{
    const struct slc_crash_bounds bounds = {.all = 100000};
    unsigned seen = 0;
    uint64_t count;
    bool all;

    (void)slc_recorded_changes(disk, &count);
    CU_ASSERT(slc_crash_states(disk, count, &bounds, note_state, &seen, &all));
    CU_ASSERT(all);
    return seen;
}

static void test_model(void)
{
    const unsigned any_bytes = EMPTY | ZEROS | FIRST_SECTOR | LATER_SECTORS | WHOLE;
    struct slc_recorded *disk = slc_recorded_create();
    const struct slc_files *files = slc_recorded_files(disk);
    uint8_t bytes[FILE_BYTES];
    int fd;

    memset(bytes, 1, sizeof bytes);
    slc_recorded_start(disk);
    fd = files->open(files->self, "/a", O_WRONLY | O_CREAT, 0666);
    CU_ASSERT_EQUAL(files->write_at(files->self, fd, bytes, sizeof bytes, 0), FILE_BYTES);
    CU_ASSERT_EQUAL(left_of(disk), NO_FILE | any_bytes);
    CU_ASSERT_EQUAL(files->sync(files->self, fd), 0);
    CU_ASSERT_EQUAL(left_of(disk), NO_FILE | WHOLE);
    CU_ASSERT_EQUAL(files->rename(files->self, "/a", "b"), 0);
    CU_ASSERT_EQUAL(left_of(disk), NO_FILE | WHOLE | AT_B);
    CU_ASSERT_EQUAL(files->sync_folder(files->self, "/"), 0);
    CU_ASSERT_EQUAL(left_of(disk), WHOLE | AT_B);
    CU_ASSERT_EQUAL(files->write_at(files->self, fd, bytes, 1, FILE_BYTES), 1);
    CU_ASSERT_EQUAL(left_of(disk), WHOLE | LONGER | AT_B);
    CU_ASSERT_EQUAL(files->truncate(files->self, fd, 0), 0);
    CU_ASSERT_EQUAL(left_of(disk), EMPTY | WHOLE | LONGER | AT_B);
    CU_ASSERT_EQUAL(files->unlink(files->self, "b"), 0);
    CU_ASSERT_EQUAL(left_of(disk), NO_FILE | EMPTY | WHOLE | LONGER | AT_B);
    CU_ASSERT_EQUAL(files->close(files->self, fd), 0);
    slc_recorded_destroy(disk);
}

/* Renamed before it was synced: the name may be on the drive before the bytes. */
static void test_model_rename(void)
{
    struct slc_recorded *disk = slc_recorded_create();
    const struct slc_files *files = slc_recorded_files(disk);
    uint8_t bytes[FILE_BYTES];
    int fd;

    memset(bytes, 1, sizeof bytes);
    slc_recorded_start(disk);
    fd = files->open(files->self, "a", O_WRONLY | O_CREAT, 0666);
    CU_ASSERT_EQUAL(files->write(files->self, fd, bytes, sizeof bytes), FILE_BYTES);
    CU_ASSERT_EQUAL(files->close(files->self, fd), 0);
    CU_ASSERT_EQUAL(files->rename(files->self, "a", "b"), 0);
    CU_ASSERT_EQUAL(files->sync_folder(files->self, "."), 0);
    CU_ASSERT_EQUAL(left_of(disk), EMPTY | ZEROS | FIRST_SECTOR | LATER_SECTORS | WHOLE | AT_B);
    /* A second name: either, both or none, because nothing orders them. */
    slc_recorded_start(disk);
    fd = files->open(files->self, "a", O_WRONLY | O_CREAT, 0666);
    CU_ASSERT_EQUAL(files->close(files->self, fd), 0);
    CU_ASSERT_EQUAL(files->unlink(files->self, "b"), 0);
    CU_ASSERT_EQUAL(left_of(disk), NO_FILE | EMPTY | WHOLE | AT_B | AT_BOTH);
    slc_recorded_destroy(disk);
}

/* After a crash, two exchanged names are both as before the exchange, or both as after it. */
static void test_model_exchange(void)
{
    struct slc_recorded *disk = slc_recorded_create();
    const struct slc_files *files = slc_recorded_files(disk);
    uint8_t bytes[FILE_BYTES];
    int fd;

    memset(bytes, 1, sizeof bytes);
    CU_ASSERT_EQUAL(files->exchange(files->self, "a", "b"), -ENOENT);
    fd = files->open(files->self, "a", O_WRONLY | O_CREAT, 0666);
    CU_ASSERT_EQUAL(files->close(files->self, fd), 0);
    fd = files->open(files->self, "b", O_WRONLY | O_CREAT, 0666);
    CU_ASSERT_EQUAL(files->write(files->self, fd, bytes, sizeof bytes), FILE_BYTES);
    CU_ASSERT_EQUAL(files->close(files->self, fd), 0);
    slc_recorded_start(disk);
    CU_ASSERT_EQUAL(files->exchange(files->self, "a", "b"), 0);
    CU_ASSERT_EQUAL(left_of(disk), WHOLE | EMPTY | AT_B | AT_BOTH);
    CU_ASSERT_EQUAL(files->sync_folder(files->self, "/"), 0);
    CU_ASSERT_EQUAL(left_of(disk), EMPTY | AT_B | AT_BOTH);
    /* The removal of an exchanged name is durable only if the exchange is. */
    slc_recorded_start(disk);
    CU_ASSERT_EQUAL(files->exchange(files->self, "b", "a"), 0);
    CU_ASSERT_EQUAL(files->unlink(files->self, "a"), 0);
    CU_ASSERT_EQUAL(left_of(disk), WHOLE | EMPTY | AT_B | AT_BOTH);
    CU_ASSERT_EQUAL(files->sync_folder(files->self, "/"), 0);
    CU_ASSERT_EQUAL(left_of(disk), WHOLE | AT_B);
    slc_recorded_destroy(disk);
}

/* A file replaced by an operation. */
struct replacement {
    bool streamed; /* the file is written through slc_output */
    uint64_t bytes;
    uint8_t *old;
    uint8_t *new;
};

static const char path[] = "/folder/file";

static enum slc_status replace(void *context, const struct slc_files *files, struct slc_error *err)
{
    const struct replacement *replacement = context;
    struct slc_output output;
    enum slc_status status;
    uint64_t done = 0;

    if (!replacement->streamed) {
        return slc_file_replace(files, path, replacement->new, replacement->bytes, err);
    }
    status = slc_output_open(&output, files, path, err);
    if (status != SLC_OK) {
        return status;
    }
    while (done < replacement->bytes && status == SLC_OK) {
        const uint64_t piece =
            replacement->bytes - done < 100000 ? replacement->bytes - done : 100000;
        uint8_t *room;

        status = slc_output_reserve(&output, piece, &room, err);
        if (status == SLC_OK) {
            memcpy(room, replacement->new + done, piece);
            output.used += piece;
            done += piece;
        }
    }
    if (status == SLC_OK) {
        return slc_output_commit(&output, err);
    }
    slc_output_abandon(&output);
    return status;
}

static const char *look_at_replaced(void *context,
                                    const struct slc_files *files,
                                    const struct slc_crash_moment *moment)
{
    const struct replacement *replacement = context;
    struct slc_error err = SLC_ERROR_INIT;
    void *data = NULL;
    uint64_t bytes = 0;
    bool is_old, is_new;

    if (slc_file_load(files, path, UINT64_MAX, &data, &bytes, &err) != SLC_OK) {
        is_old = replacement->old == NULL && err.system_errno == ENOENT;
        return is_old && !moment->done ? NULL : "the file is not there";
    }
    is_new = bytes == replacement->bytes && memcmp(data, replacement->new, bytes) == 0;
    is_old = replacement->old != NULL && bytes == replacement->bytes &&
             memcmp(data, replacement->old, bytes) == 0;
    slc_free(data);
    return is_new || (is_old && !moment->done) ? NULL : "neither the old file nor the new one";
}

static void put_old(void *context, const struct slc_files *files)
{
    const struct replacement *replacement = context;
    struct slc_error err = SLC_ERROR_INIT;

    CU_ASSERT_EQUAL(files->make_folder(files->self, "/folder"), 0);
    if (replacement->old != NULL) {
        SLC_ASSERT_OK(slc_file_replace(files, path, replacement->old, replacement->bytes, &err),
                      &err);
    }
}

static void fill(struct replacement *replacement, bool old, uint64_t bytes)
{
    replacement->bytes = bytes;
    replacement->new = slc_tree_memory(NULL, bytes);
    replacement->old = old ? slc_tree_memory(NULL, bytes) : NULL;
    for (uint64_t i = 0; i < bytes; i++) {
        replacement->new[i] = (uint8_t)slc_random_u64(1, 0, i);
        if (old) {
            replacement->old[i] = (uint8_t)slc_random_u64(2, 0, i);
        }
    }
}

/* Tries the operation; `needless`: syncs that can be omitted. */
static void sweep(const struct slc_crash_operation *operation,
                  const struct slc_crash_try_bounds *bounds,
                  uint64_t needless)
{
    struct slc_crash_report report = {.bad = 0};
    struct slc_recorded *disk = slc_crash_record(operation, 0);

    CU_ASSERT_PTR_NOT_NULL_FATAL(disk);
    slc_crash_try(disk, operation, bounds, &report);
    slc_crash_report_print(&report, operation->name, bounds);
    slc_recorded_destroy(disk);
    CU_ASSERT_EQUAL(report.bad, 0);
    CU_ASSERT(report.distinct > 4);
    CU_ASSERT_EQUAL(slc_crash_needless(operation, bounds), needless);
}

static void try_replacing(bool streamed, bool old, uint64_t bytes)
{
    const struct slc_crash_try_bounds bounds = bounds_of(20000);
    struct replacement replacement = {.streamed = streamed};
    const struct slc_crash_operation operation = {.name = streamed ? "a streamed file" : "a file",
                                                  .context = &replacement,
                                                  .prepare = put_old,
                                                  .run = replace,
                                                  .look = look_at_replaced};

    fill(&replacement, old, bytes);
    sweep(&operation, &bounds, 0);
    free(replacement.old);
    free(replacement.new);
}

static void test_replace(void)
{
    try_replacing(false, false, 5000);
    try_replacing(false, true, 5000);
    try_replacing(false, true, 300);
}

static void test_output(void)
{
    try_replacing(true, true, SLC_OUTPUT_BUFFER_BYTES + 10000);
}

/* A model in a new folder: each file is complete or absent, all exist after success. */
enum { ROWS = 40, RANK = 3 };

struct written_model {
    struct slc_matrix factors[2];
    double lambda[RANK];
};

static enum slc_status
write_model(void *context, const struct slc_files *files, struct slc_error *err)
{
    const struct written_model *written = context;
    const struct slc_model_view view = {.order = 2,
                                        .rank = RANK,
                                        .factors = {&written->factors[0], &written->factors[1]},
                                        .lambda = written->lambda};

    return slc_model_write(files, SLC_MODEL_NPY, "/run/factors", &view, err);
}

static const char *
look_at_model(void *context, const struct slc_files *files, const struct slc_crash_moment *moment)
{
    static const char *const names[] = {"/run/factors/mode-1.npy", "/run/factors/mode-2.npy"};
    const struct written_model *written = context;
    struct slc_error none = SLC_ERROR_INIT;
    double lambda[RANK];
    bool found;

    if (slc_model_read_lambda(files, "/run/factors", RANK, lambda, &found, &none) != SLC_OK ||
        (found ? memcmp(lambda, written->lambda, sizeof lambda) != 0 : moment->done)) {
        return "lambda is missing, or half there";
    }
    for (unsigned mode = 0; mode < SLC_COUNT(names); mode++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_matrix matrix;

        if (slc_npy_read(files, names[mode], SLC_F64, ROWS, RANK, &matrix, &err) == SLC_OK) {
            bool same = true;

            for (uint64_t row = 0; row < ROWS; row++) {
                for (uint32_t col = 0; col < RANK; col++) {
                    same = same && slc_matrix_get(&matrix, row, col) ==
                                       slc_matrix_get(&written->factors[mode], row, col);
                }
            }
            slc_matrix_destroy(&matrix);
            if (!same) {
                return "a factor has other numbers";
            }
        } else if (moment->done || err.system_errno != ENOENT) {
            return "a factor is missing, or half there";
        }
    }
    return NULL;
}

static void make_run_folder(void *context, const struct slc_files *files)
{
    (void)context;
    CU_ASSERT_EQUAL(files->make_folder(files->self, "/run"), 0);
}

static void test_model_files(void)
{
    const struct slc_crash_try_bounds bounds = bounds_of(64);
    struct written_model written = {.lambda = {3, 2, 1}};
    const struct slc_crash_operation operation = {.name = "factors in a folder",
                                                  .context = &written,
                                                  .prepare = make_run_folder,
                                                  .run = write_model,
                                                  .look = look_at_model};
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned mode = 0; mode < 2; mode++) {
        SLC_ASSERT_OK(slc_matrix_create(&written.factors[mode], SLC_F64, ROWS, RANK, &err), &err);
        for (uint64_t row = 0; row < ROWS; row++) {
            for (uint32_t col = 0; col < RANK; col++) {
                slc_matrix_set(&written.factors[mode], row, col, (double)(row * RANK + col));
            }
        }
    }
    /* Syncs 3 and 5 are of the folder, which the last one covers as well. */
    sweep(&operation, &bounds, 0x14);
    for (unsigned mode = 0; mode < 2; mode++) {
        slc_matrix_destroy(&written.factors[mode]);
    }
}

static const struct slc_test tests[] = {
    {"the crash model loses unsynced changes", test_model},
    {"the model may see a name before its bytes", test_model_rename},
    {"the model exchanges two names at one stroke", test_model_exchange},
    {"a file replaced in one piece", test_replace},
    {"a file replaced by a stream", test_output},
    {"factors in a folder of their own", test_model_files},
};

SLC_SUITE(crash_files)
{
    return slc_test_main("crash_files", tests, SLC_COUNT(tests), argc, argv);
}
