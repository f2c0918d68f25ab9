/* TTM over a stream with faults: no files of the new result are left, the earlier one is unchanged,
 * and no thread waits forever. */
#include "faulty_files.h"
#include "slc_test.h"
#include "ttm_fixture.h"

#include "base/error/fault.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t dims[3] = {200, 30, 150};
static const struct ttm_shape shape = {.form = SLC_TTM_FIBERS, .threads = 3, .least = true};

/* A problem whose folder holds a result; *hash is its hash. */
static void create(struct ttm_problem *problem, uint64_t *hash)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_ttm_report report;
    struct ttm_result result;
    struct ttm_run run;

    ttm_problem_create(problem, 3, dims, 1, 20000, 700, 20, SLC_F64, true);
    SLC_ASSERT_OK(ttm_run_open(&run, problem, &shape, &err), &err);
    run.options.job.form = SLC_TTM_NONZEROS;
    SLC_ASSERT_OK(ttm_run_multiply(&run, &report, &err), &err);
    ttm_run_close(&run);
    CU_ASSERT_FATAL(ttm_result_read(problem->folder, &result));
    *hash = result.hash;
    ttm_result_destroy(&result);
}

/* Whether the folder holds exactly one complete result, with this hash. */
static bool result_is(const struct ttm_problem *problem, uint64_t hash)
{
    struct ttm_result result;
    bool same = ttm_result_read(problem->folder, &result);

    if (same) {
        same = result.hash == hash && ttm_folder_names(problem->folder) == 2;
        ttm_result_destroy(&result);
    }
    return same;
}

/* Multiplies by another matrix, with a table of file operations. */
static enum slc_status
again(struct ttm_problem *problem, const struct slc_files *files, struct slc_error *err)
{
    struct slc_ttm_report report;
    struct ttm_run run;
    enum slc_status status = ttm_run_open(&run, problem, &shape, err);

    if (status == SLC_OK) {
        run.options.files = files;
        status = ttm_run_multiply(&run, &report, err);
    }
    ttm_run_close(&run);
    return status;
}

static void every_operation_fails(void)
{
    static const enum slc_faulty_kind kinds[] = {SLC_FAULTY_OPEN,  SLC_FAULTY_CLOSE,
                                                 SLC_FAULTY_STAT,  SLC_FAULTY_RENAME,
                                                 SLC_FAULTY_WRITE, SLC_FAULTY_FOLDER};
    struct slc_faulty faulty;
    struct ttm_problem problem;
    uint64_t old;

    create(&problem, &old);
    slc_matrix_set(&problem.matrix, 3, 3, 77.0);
    slc_faulty_init(&faulty);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        for (uint64_t k = 1;; k++) {
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;

            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            status = again(&problem, &faulty.table, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            if (status == SLC_OK) {
                /* Only a failed close of the locked folder, the last close, is no error. */
                CU_ASSERT(!slc_faulty_fired(&faulty) || kinds[i] == SLC_FAULTY_CLOSE);
                CU_ASSERT(!result_is(&problem, old));
                break;
            }
            CU_ASSERT_EQUAL(err.status, SLC_ERR_IO);
            CU_ASSERT(result_is(&problem, old));
        }
        ttm_problem_destroy(&problem);
        create(&problem, &old);
        slc_matrix_set(&problem.matrix, 3, 3, 77.0);
    }
    ttm_problem_destroy(&problem);
}

/* Each sync fails: of the folder's name, of both files, and of their names before and after. */
static void syncs_fail(void)
{
    struct slc_faulty faulty;
    struct ttm_problem problem;
    uint64_t old;

    create(&problem, &old);
    slc_matrix_set(&problem.matrix, 3, 3, 77.0);
    slc_faulty_init(&faulty);
    for (uint64_t k = 1; k <= 5; k++) {
        struct slc_error err = SLC_ERROR_INIT;

        slc_faulty_fail(&faulty, SLC_FAULTY_SYNC, k, EIO);
        SLC_ASSERT_FAILS(again(&problem, &faulty.table, &err), SLC_ERR_IO, &err, "syncing");
        CU_ASSERT(result_is(&problem, old));
    }
    ttm_problem_destroy(&problem);
}

static void the_disk_is_full(void)
{
    struct slc_faulty faulty;
    struct ttm_problem problem;
    uint64_t old;

    create(&problem, &old);
    slc_faulty_init(&faulty);
    for (uint64_t room = 0; room < 2000000; room += 300000) {
        struct slc_error err = SLC_ERROR_INIT;

        slc_faulty_limit_room(&faulty, room);
        SLC_ASSERT_FAILS(again(&problem, &faulty.table, &err), SLC_ERR_NOSPACE, &err, "writing");
        CU_ASSERT(result_is(&problem, old));
    }
    ttm_problem_destroy(&problem);
}

/* A folder created for a failed result is removed. */
static void leaves_no_folder(void)
{
    const struct slc_files *files = slc_files_system();
    struct slc_faulty faulty;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_file_stat stat;
    struct ttm_problem problem;

    ttm_problem_create(&problem, 3, dims, 1, 20000, 700, 20, SLC_F64, true);
    slc_faulty_init(&faulty);
    slc_faulty_fail(&faulty, SLC_FAULTY_WRITE, 2, ENOSPC);
    SLC_ASSERT_FAILS(again(&problem, &faulty.table, &err), SLC_ERR_NOSPACE, &err, "writing");
    CU_ASSERT_EQUAL(files->stat_path(files->self, problem.folder, &stat), -ENOENT);
    ttm_problem_destroy(&problem);
}

static void a_signal_stops(void)
{
    static const volatile int stop = 2;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_ttm_report report;
    struct ttm_problem problem;
    struct ttm_run run;
    uint64_t old;

    create(&problem, &old);
    SLC_ASSERT_OK(ttm_run_open(&run, &problem, &shape, &err), &err);
    run.options.stop = &stop;
    SLC_ASSERT_FAILS(ttm_run_multiply(&run, &report, &err), SLC_ERR_INTERRUPTED, &err, "stopped");
    ttm_run_close(&run);
    CU_ASSERT(result_is(&problem, old));
    ttm_problem_destroy(&problem);
}

/* A byte in the middle of the file is inverted: the pass detects it, and waiting threads are
 * woken. */
static void a_damaged_block_is_named(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct ttm_problem problem;
    char path[600];
    uint64_t old;
    FILE *file;
    long end;
    int byte;

    create(&problem, &old);
    (void)snprintf(path, sizeof path, "%s/blco.blk", problem.store);
    file = fopen(path, "r+b");
    CU_ASSERT_FATAL(file != NULL && fseek(file, 0, SEEK_END) == 0);
    end = ftell(file);
    CU_ASSERT(fseek(file, end / 3, SEEK_SET) == 0);
    byte = fgetc(file);
    CU_ASSERT(fseek(file, end / 3, SEEK_SET) == 0 && fputc(byte ^ 255, file) >= 0);
    CU_ASSERT(fclose(file) == 0);
    SLC_ASSERT_FAILS(again(&problem, NULL, &err), SLC_ERR_DAMAGED, &err, "checksum");
    CU_ASSERT_PTR_NOT_NULL(strstr(err.file, "blco.blk"));
    CU_ASSERT(result_is(&problem, old));
    ttm_problem_destroy(&problem);
}

static void memory_and_threads_fail(void)
{
    struct ttm_problem problem;
    uint64_t old;

    create(&problem, &old);
    for (enum slc_fault_kind kind = SLC_FAULT_ALLOCATION; kind < SLC_FAULT_KINDS; kind++) {
        struct ttm_run run;
        struct slc_error opened = SLC_ERROR_INIT;
        enum slc_status status = SLC_ERR_MEMORY;

        SLC_ASSERT_OK(ttm_run_open(&run, &problem, &shape, &opened), &opened);
        for (uint64_t k = 1; status != SLC_OK && k < 200; k++) {
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_ttm_report report;

            slc_fault_arm(kind, k);
            status = ttm_run_multiply(&run, &report, &err);
            slc_fault_arm(kind, 0);
            CU_ASSERT_EQUAL(err.status, status);
        }
        SLC_ASSERT_OK(status, NULL);
        CU_ASSERT_EQUAL(ttm_folder_names(problem.folder), 2);
        ttm_run_close(&run);
    }
    ttm_problem_destroy(&problem);
}

static const struct slc_test tests[] = {
    {"every operation fails once", every_operation_fails},
    {"syncs fail", syncs_fail},
    {"the disk is full", the_disk_is_full},
    {"no folder is left for nothing", leaves_no_folder},
    {"a signal stops", a_signal_stops},
    {"a damaged block is named", a_damaged_block_is_named},
    {"memory and threads fail", memory_and_threads_fail},
};

SLC_SUITE(ttm_faults)
{
    return slc_test_main("ttm_faults", tests, SLC_COUNT(tests), argc, argv);
}
