/*
 * Conversion, random tensors and text through every crash: at the output's name is nothing, or the
 * store that is to be replaced, or the new one, whole; running again ends with the very files of an
 * uninterrupted run and nothing beside them, or says that the output exists where it does.
 */
#include "crash_try.h"
#include "slc_test.h"

#include "base/random.h"
#include "convert/convert.h"
#include "convert/generate.h"
#include "storage/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char input[] = "/in.tns";
static const char store[] = "/out.slc";

struct making {
    bool overwrite;
    bool generate;
    bool two_renames; /* the file system cannot exchange names */
    bool commits;     /* all that can be made, so that there is something to go on with */
    enum slc_relabel relabel;
    char *rows; /* of the input */
    size_t row_bytes;
    uint64_t old_sum; /* the content of the old store; 0: none .. */
    uint64_t new_sum; /* .. and of the new one */
};

static enum slc_status
convert(const struct making *making, const struct slc_files *files, bool old, struct slc_error *err)
{
    struct slc_convert_report report;
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
                                                .overwrite = making->overwrite && !old,
                                                .commit_seconds = making->commits ? 1e-9 : 0};

    return slc_convert(&options, &report, err);
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

/* What the manifest at `path` says the content is; 0 where there is no store. */
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
    if (making->overwrite) {
        SLC_ASSERT_OK(making->generate ? generate(making, files, store, 6, &err)
                                       : convert(making, files, true, &err),
                      &err);
        making->old_sum = content_of(files, store);
    }
}

/* A whole store at `path`, or nothing. Returns NULL, or what is wrong with it. */
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
        (void)slc_error_format(&err, message, sizeof message);
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

/* The store is there already: what may be done to it only the user knows. */
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
                                                  .may_refuse = output_exists};
    struct slc_crash_report report = {.bad = 0};
    struct slc_recorded *disk;

    disk = slc_crash_record(&operation, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(disk);
    making->new_sum = content_of(slc_recorded_files(disk), store);
    CU_ASSERT(making->new_sum != 0 && making->new_sum != making->old_sum);
    slc_crash_try(disk, &operation, &bounds, &report);
    slc_crash_report_print(&report, name, &bounds);
    CU_ASSERT_EQUAL(report.bad, 0);
    slc_recorded_destroy(disk);
    if (each_sync) {
        /* The block file's header is synced on its own (1); the folder's names are once more (4,
         * 5). */
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

/* With commits: the same files, whether a run goes on with what is left or begins anew. */
static void test_commits(void)
{
    struct making making = {.commits = true};

    make_rows(&making, false);
    sweep("convert with commits", &making, 2, false);
    making.relabel = SLC_RELABEL_FREQUENCY;
    make_rows(&making, true);
    sweep("convert with commits, --relabel", &making, 1, false);
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

int main(int argc, char **argv)
{
    return slc_test_main("crash_convert", tests, SLC_COUNT(tests), argc, argv);
}
