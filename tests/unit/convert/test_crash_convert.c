/* Conversion, random tensors and text through every crash: the output is missing, or the store to
 * be replaced, or the complete new store; a rerun ends with exactly the files of an uninterrupted
 * run, or reports that the output exists if it does. Once the store is marked complete, no crash
 * loses it: a rerun only renames it. */
#include "crash_try.h"
#include "slc_test.h"

#include "base/random.h"
#include "convert/build/resume/build_folder.h"
#include "convert/generate/generate.h"
#include "convert/ingest/convert.h"
#include "storage/verify/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char input[] = "/in.tns";
static const char store[] = "/out.slc";
static const char part[] = "/out.slc.part";

struct making {
    bool overwrite;
    bool generate;
    bool two_renames; /* the file system cannot exchange names */
    bool temp_folder; /* temporary files are elsewhere: there are no commits */
    bool commits;     /* makes as many commits as possible, so that there is something to resume */
    enum slc_relabel relabel;
    char *rows; /* rows of the input */
    size_t row_bytes;
    uint64_t old_sum; /* content sum of the old store; 0: none */
    uint64_t new_sum; /* content sum of the new store */
};

/* Whether that state file is in the folder and complete. */
static bool is_there(const struct slc_files *files, const char *folder, const char *name)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_state state = {.bytes = NULL};
    bool sound = false;

    CU_ASSERT_EQUAL(slc_state_load(&state, files, folder, name, &sound, &err), SLC_OK);
    slc_state_destroy(&state);
    return sound;
}

/* Whether the unfinished store has all of its blocks, index and header. */
static bool is_sorted(const struct slc_files *files)
{
    struct slc_reader *reader = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    const bool found =
        slc_reader_open(files, "/out.slc.part/" SLC_BLCO_NAME, &reader, &err) == SLC_OK;

    slc_reader_close(reader);
    return found;
}

static enum slc_status
convert(const struct making *making, const struct slc_files *files, bool old, struct slc_error *err)
{
    static struct slc_convert_report report;
    const bool complete = is_there(files, part, SLC_COMPLETE_STATE_NAME) ||
                          is_there(files, store, SLC_COMPLETE_STATE_NAME);
    const bool sorted = is_there(files, part, SLC_PUSHED_STATE_NAME) && is_sorted(files);
    enum slc_status status;
    const struct slc_convert_options options = {.files = files,
                                                .input = input,
                                                .output = store,
                                                .dialect = SLC_DIALECT_TNS,
                                                .index_base = old ? 0 : 1,
                                                .codec = SLC_CODEC_PACKED,
                                                .relabel = making->relabel,
                                                .block_bytes = 4096,
                                                .memory_bytes = UINT64_C(1) << 30,
                                                .threads = 2,
                                                .temp_folder = making->temp_folder ? "/temp" : NULL,
                                                .overwrite = making->overwrite && !old,
                                                .commit_seconds = making->commits ? 1e-9 : 0};

    status = slc_convert(&options, &report, err);
    if (status == SLC_OK && report.build.completed != complete) {
        return slc_fail(err, SLC_ERR_SYSTEM,
                        complete ? "a store that is complete is built anew"
                                 : "takes for complete what is not");
    }
    if (status == SLC_OK && sorted && report.build.kept_nnz < report.build.summary.nnz) {
        return slc_fail(err, SLC_ERR_SYSTEM, "sorts again what was sorted");
    }
    return status;
}

static enum slc_status generate(const struct making *making,
                                const struct slc_files *files,
                                const char *output,
                                uint64_t seed,
                                struct slc_error *err)
{
    struct slc_generate_report report;
    const struct slc_generate_options options = {.files = files,
                                                 .output = output,
                                                 .order = 3,
                                                 .dims = {40, 50, 60},
                                                 .nnz = 3000,
                                                 .seed = seed,
                                                 .codec = SLC_CODEC_PACKED,
                                                 .block_bytes = 4096,
                                                 .memory_bytes = UINT64_C(1) << 30,
                                                 .threads = 2,
                                                 .overwrite = making->overwrite};

    return slc_generate(&options, &report, err);
}

static int cannot_exchange(void *self, const char *a, const char *b)
{
    (void)self;
    (void)a;
    (void)b;
    return -EOPNOTSUPP;
}

static enum slc_status run(void *context, const struct slc_files *files, struct slc_error *err)
{
    const struct making *making = context;
    struct slc_files here = *files;

    if (making->two_renames) {
        here.exchange = cannot_exchange;
    }
    return making->generate ? generate(making, &here, store, 7, err)
                            : convert(making, &here, false, err);
}

/* The content sum in the manifest at `path`; 0 if there is no store. */
static uint64_t content_of(const struct slc_files *files, const char *path)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest manifest;

    return slc_manifest_read(files, path, &manifest, &err) == SLC_OK ? manifest.content_sum : 0;
}

static void prepare(void *context, const struct slc_files *files)
{
    struct making *making = context;
    struct slc_error err = SLC_ERROR_INIT;
    const int fd = files->open(files->self, input, O_WRONLY | O_CREAT, 0666);

    CU_ASSERT_EQUAL(files->write(files->self, fd, making->rows, making->row_bytes),
                    (int64_t)making->row_bytes);
    CU_ASSERT_EQUAL(files->close(files->self, fd), 0);
    if (making->temp_folder) {
        CU_ASSERT_EQUAL(files->make_folder(files->self, "/temp"), 0);
    }
    if (making->overwrite) {
        SLC_ASSERT_OK(making->generate ? generate(making, files, store, 6, &err)
                                       : convert(making, files, true, &err),
                      &err);
        making->old_sum = content_of(files, store);
    }
}

/* A complete store at `path`, or nothing. Returns NULL, or the fault. */
static const char *look_at_store(const struct slc_files *files, const char *path, uint64_t *sum)
{
    const struct slc_verify_options options = {.files = files, .threads = 1};
    static char message[1200];
    struct slc_verify_report report;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_file_stat stat;

    *sum = 0;
    if (files->stat_path(files->self, path, &stat) < 0) {
        return NULL;
    }
    if (slc_verify_store(path, &options, &report, &err) != SLC_OK) {
        (void)slc_error_format(&err, NULL, message, sizeof message);
        return message;
    }
    *sum = content_of(files, path);
    return NULL;
}

static const char *
look(void *context, const struct slc_files *files, const struct slc_crash_moment *moment)
{
    const struct making *making = context;
    uint64_t sum, aside;
    const char *wrong = look_at_store(files, store, &sum);

    if (wrong != NULL) {
        return wrong;
    }
    if (sum != 0 && making->new_sum != 0 && sum != making->new_sum && sum != making->old_sum) {
        return "a store of other content";
    }
    if (moment->demand > 0 && sum != making->new_sum &&
        !is_there(files, part, SLC_COMPLETE_STATE_NAME) &&
        !is_there(files, part, SLC_PUSHED_STATE_NAME)) {
        return "a store that was complete is lost";
    }
    if (moment->done && sum != making->new_sum && making->new_sum != 0) {
        return "what was said to be done is not there";
    }
    if (sum == 0 && making->overwrite && !making->two_renames) {
        return "no store is there";
    }
    if (sum == 0 && making->overwrite) {
        wrong = look_at_store(files, "/out.slc.old", &aside);
        return wrong != NULL ? wrong
               : aside != 0 && (aside == making->old_sum || aside == making->new_sum)
                   ? NULL
                   : "the old store is lost";
    }
    return NULL;
}

static bool is_named(const struct slc_tree_place *place, const char *name)
{
    return place->name != NULL && strcmp(place->name, name) == 0;
}

/* Whether the whole store is written, and either removal of the resumable files or the move of the
 * store has begun; or the mark of completeness is durable, with its name and the name of the
 * folder. */
static uint64_t demand(void *context, const struct slc_change *changes, uint64_t count)
{
    uint32_t written = SLC_TREE_NONE; /* folder of the store that is completely written */
    uint64_t noted = count, synced = count;

    (void)context;
    for (uint64_t i = 0; i < count; i++) {
        const struct slc_change *change = &changes[i];

        const bool of_folder = change->kind == SLC_CHANGE_SYNC_FOLDER;
        const bool moves = change->kind == SLC_CHANGE_RENAME || change->kind == SLC_CHANGE_EXCHANGE;

        if ((change->kind == SLC_CHANGE_REMOVE && change->place.folder == written &&
             is_named(&change->place, SLC_PUSHED_STATE_NAME)) ||
            (noted < i && moves && is_named(&change->place, "out.slc.part")) ||
            (synced < i && of_folder && change->node == SLC_TREE_ROOT)) {
            return 1;
        }
        if (moves && is_named(&change->to, SLC_MANIFEST_NAME)) {
            written = change->to.folder;
        } else if (noted == count && is_named(&change->to, SLC_COMPLETE_STATE_NAME)) {
            noted = i;
        } else if (noted < i && synced == count && of_folder &&
                   change->node == changes[noted].to.folder) {
            synced = i;
        }
    }
    return 0;
}

/* The store already exists: only the user can decide about it. */
static bool output_exists(void *context, const struct slc_error *err)
{
    const struct making *making = context;

    return !making->overwrite && strstr(err->message, "the output exists") != NULL;
}

static void make_rows(struct making *making, bool skewed)
{
    enum { ROWS = 400, ROW_BYTES = 64 };
    char *at = malloc(ROWS * ROW_BYTES);

    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    making->rows = at;
    for (uint64_t row = 0; row < ROWS; row++) {
        const uint64_t longest = skewed ? 1000 : UINT64_C(1) << 38;
        const uint64_t a = slc_random_below(1, 0, row, skewed ? 7 : 5);
        const uint64_t b = slc_random_below(1, 1, row, longest);

        at += snprintf(at, ROW_BYTES, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", a + 1,
                       skewed ? (b * b / longest * 77 % longest) + 1 : b + 1, row % 9 + 1);
    }
    making->row_bytes = (size_t)(at - making->rows);
}

/* Killed each time before the name of a mark was synced, and run again: the rerun syncs it
 * first. */
static void resume_from_marks(const struct slc_recorded *disk,
                              const struct slc_crash_operation *operation)
{
    const struct slc_crash_try_bounds bounds = {
        .states = {.seed = slc_test_seed(), .all = 64, .extremes = 200, .samples = 4},
        .look_only = true};
    uint64_t count;
    const struct slc_change *changes = slc_recorded_changes(disk, &count);

    for (uint64_t i = 0; i < count; i++) {
        struct slc_crash_report report = {.bad = 0};
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_recorded *next;

        if (!is_named(&changes[i].to, SLC_COMPLETE_STATE_NAME)) {
            continue;
        }
        next = slc_recorded_continue(disk, i + 1);
        SLC_ASSERT_OK(operation->run(operation->context, slc_recorded_files(next), &err), &err);
        slc_crash_try(next, operation, &bounds, &report);
        CU_ASSERT_EQUAL(report.bad, 0);
        slc_recorded_destroy(next);
    }
}

static void sweep(const char *name, struct making *making, unsigned scale, bool each_sync)
{
    const uint64_t more = slc_test_full() ? 32 : 1;
    struct slc_crash_try_bounds bounds = {
        .states = {.seed = slc_test_seed(),
                   .all = more * (slc_test_quick() ? 8 : 8 * scale),
                   .extremes = more * (slc_test_quick() ? 2 : 4 * scale),
                   .samples = more * (slc_test_quick() ? 1 : scale)},
        .again = more * (slc_test_quick() ? 0 : 1),
        .continued = slc_test_quick() ? 1 : 3};
    const struct slc_crash_operation operation = {.name = name,
                                                  .context = making,
                                                  .prepare = prepare,
                                                  .run = run,
                                                  .look = look,
                                                  .may_refuse = output_exists,
                                                  .demand = demand};
    struct slc_crash_report report = {.bad = 0};
    const struct slc_change *changes;
    struct slc_recorded *disk;
    uint64_t count;

    disk = slc_crash_record(&operation, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(disk);
    making->new_sum = content_of(slc_recorded_files(disk), store);
    CU_ASSERT(making->new_sum != 0 && making->new_sum != making->old_sum);
    changes = slc_recorded_changes(disk, &count);
    CU_ASSERT_EQUAL(demand(making, changes, count), making->commits || making->temp_folder);
    slc_crash_try(disk, &operation, &bounds, &report);
    slc_crash_report_print(&report, name, &bounds);
    CU_ASSERT_EQUAL(report.bad, 0);
    resume_from_marks(disk, &operation);
    slc_recorded_destroy(disk);
    if (each_sync) {
        /* Needless are sync 1, because the header of the block file is synced separately, and syncs
         * 4 and 5, because the names in the folder are synced again. */
        CU_ASSERT_EQUAL(slc_crash_needless(&operation, &bounds), 0x19);
    } else {
        CU_ASSERT(slc_crash_shows(&operation, &bounds, UINT64_MAX));
    }
    free(making->rows);
}

static void test_convert(void)
{
    struct making making = {.overwrite = false};

    make_rows(&making, false);
    sweep("convert", &making, 4, true);
}

/* With commits, the files are the same whether a run resumes or begins anew. */
static void test_commits(void)
{
    struct making making = {.commits = true};

    make_rows(&making, false);
    sweep("convert with commits", &making, 2, false);
    making.relabel = SLC_RELABEL_FREQUENCY;
    make_rows(&making, true);
    sweep("convert with commits, --relabel", &making, 1, false);
    making.relabel = SLC_RELABEL_NONE;
    making.temp_folder = true;
    make_rows(&making, false);
    sweep("convert --temp-dir", &making, 1, false);
    making.temp_folder = false;
    making.overwrite = true;
    make_rows(&making, false);
    sweep("convert with commits, --overwrite", &making, 2, false);
    making.two_renames = true;
    make_rows(&making, false);
    sweep("convert with commits, --overwrite by two renames", &making, 1, false);
}

static void test_overwrite(void)
{
    struct making making = {.overwrite = true};

    make_rows(&making, false);
    sweep("convert --overwrite", &making, 4, !slc_test_quick());
    making.two_renames = true;
    make_rows(&making, false);
    sweep("convert --overwrite by two renames", &making, 2, false);
}

static void test_relabel(void)
{
    struct making making = {.relabel = SLC_RELABEL_FREQUENCY};

    make_rows(&making, true);
    sweep("convert --relabel", &making, 2, false);
}

static void test_generate(void)
{
    struct making making = {.overwrite = true, .generate = true};

    make_rows(&making, false);
    sweep("generate --overwrite", &making, 2, false);
}

static const struct slc_test tests[] = {
    {"a conversion", test_convert},
    {"a conversion that commits", test_commits},
    {"a conversion that replaces a store", test_overwrite},
    {"a conversion with new numbers", test_relabel},
    {"a random tensor that replaces a store", test_generate},
};

SLC_SUITE(crash_convert)
{
    return slc_test_main("crash_convert", tests, SLC_COUNT(tests), argc, argv);
}
