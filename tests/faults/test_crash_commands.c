/*
 * Whole commands through every crash. `cpd` with a checkpoint between all updates of modes and
 * between all parts of passes, over its results and the removal of the checkpoint: what was
 * committed outlives, the same command goes on from it, and ends with the bits of the run that was
 * left alone. Every result of every command is whole under its name, or the one that was there
 * before, or is not there; and those that belong together are of one run.
 */
#include "command_disk.h"
#include "crash_try.h"
#include "make_sorted.h"
#include "slc_test.h"

#include "base/memory.h"
#include "convert/state_file.h"
#include "engine/npy_pair.h"
#include "engine/solve/cp_als.h"
#include "storage/checkpoint.h"
#include "storage/npy.h"
#include "storage/store.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* The linker takes the program's main for the command's: see command_main.h. */
int __wrap_main(int argc, char **argv);
enum slc_status __real_slc_cp_als(const struct slc_store *store,
                                  struct slc_stream *stream,
                                  struct slc_backend *backend,
                                  const struct slc_plan *plan,
                                  const struct slc_cp_als_options *options,
                                  struct slc_cp_result *result,
                                  struct slc_error *err);
enum slc_status __wrap_slc_cp_als(const struct slc_store *store,
                                  struct slc_stream *stream,
                                  struct slc_backend *backend,
                                  const struct slc_plan *plan,
                                  const struct slc_cp_als_options *options,
                                  struct slc_cp_result *result,
                                  struct slc_error *err);

enum { ORDER = 3, LONGEST = 6, NNZ = 90, TILE_NNZ = 20, RESULTS = 4 };

/* So that a tensor of a few blocks has parts, too. */
enum slc_status __wrap_slc_cp_als(const struct slc_store *store,
                                  struct slc_stream *stream,
                                  struct slc_backend *backend,
                                  const struct slc_plan *plan,
                                  const struct slc_cp_als_options *options,
                                  struct slc_cp_result *result,
                                  struct slc_error *err)
{
    struct slc_cp_als_options in_parts = *options;

    in_parts.part_bytes = 1;
    return __real_slc_cp_als(store, stream, backend, plan, &in_parts, result, err);
}

/* A result, one of those of a command: a file, or a store. */
struct result {
    const char *path;
    uint64_t before, after; /* command_disk_hash; 0: nothing is there */
};

struct command {
    const char *name;
    const char *arguments;
    const char *before; /* a command that makes what is to be replaced; NULL: nothing */
    const char *paths[RESULTS];
    /* A file that is there only while all results beside it are of its own run; NULL: results of
     * two runs are never beside one another. */
    const char *record;
    const char *checkpoint; /* the folder of one; NULL: none */
    const char *varies;     /* slc_crash_operation; NULL: "run.json" */
    /* The two folders of a store where it may be noted that it is complete; NULL: none. */
    const char *noted[2];
    bool two_renames;  /* on a file system that cannot exchange names */
    unsigned scale;    /* how much is tried at a moment .. */
    unsigned every;    /* .. and at how many of them; 0: all */
    bool each_sync;    /* is left out in turn .. */
    uint64_t needless; /* .. and this is what slc_crash_needless says of it */
};

struct trying {
    const struct command *command;
    struct result results[RESULTS];
    double fit_before, fit_after; /* of the record; -1: none */
    uint64_t resumed;             /* runs that went on from a checkpoint */
    uint64_t named;               /* and those that found a store complete */
};

static const uint64_t dims[ORDER] = {LONGEST, 5, 4};
static const char *stores; /* the folder of them, on the system's disk */

static const char *path_of(const char *name)
{
    static char path[256];

    (void)snprintf(path, sizeof path, "%s/%s", stores, name);
    return path;
}

static void make_stores(void)
{
    struct slc_made_tensor tensor;
    struct slc_error err = SLC_ERROR_INIT;

    stores = slc_test_folder();
    slc_made_tensor_create(&tensor, ORDER, dims, NNZ, SLC_MADE_DOUBLES, 1);
    tensor.tile_nnz = TILE_NNZ;
    SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, path_of("x.slc"), SLC_CODEC_PACKED,
                                       SLC_MIN_BLOCK_BYTES, &err),
                  &err);
    for (unsigned n = 0; n < ORDER; n++) {
        SLC_ASSERT_OK(slc_made_store_add_sorted(&tensor, path_of("x.slc"), n, TILE_NNZ,
                                                SLC_CODEC_PACKED, SLC_MIN_BLOCK_BYTES, &err),
                      &err);
    }
    slc_made_tensor_destroy(&tensor);
}

static void must_run(const struct slc_files *files, const char *arguments)
{
    struct command_words said;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(command_on_disk(files, arguments, &said, &err), &err);
}

static void prepare(void *context, const struct slc_files *files)
{
    static const double vector[LONGEST] = {1, 2, 3, 4, 5, 6};
    static const char text[] = "3 1 2 5\n1 1 1 2.5\n2 2 2 -1\n3 1 2 1\n1 2 1 7\n";
    const struct trying *trying = context;
    struct slc_error err = SLC_ERROR_INIT;

    command_disk_put(files, path_of("x.slc"), "x.slc");
    SLC_ASSERT_OK(slc_file_replace(files, "in.tns", text, sizeof text - 1, &err), &err);
    SLC_ASSERT_OK(slc_npy_write_vector(files, "v.npy", vector, dims[0], &err), &err);
    SLC_ASSERT_OK(slc_npy_write_vector(files, "w.npy", vector, dims[1], &err), &err);
    if (trying->command->before != NULL) {
        must_run(files, trying->command->before);
    }
}

/* The newest generation that is whole in the command's checkpoint; 0: none. */
static uint64_t newest(const struct command *command, const struct slc_files *files)
{
    uint64_t found = 0;

    for (unsigned which = 0; which < 2 && command->checkpoint != NULL; which++) {
        char *path = slc_checkpoint_path(command->checkpoint, which);
        struct slc_checkpoint_reader *reader = NULL;
        struct slc_error err = SLC_ERROR_INIT;

        if (slc_checkpoint_reader_open(files, path, &reader, &err) == SLC_OK && reader != NULL) {
            const uint64_t generation = slc_checkpoint_reader_info(reader)->generation;

            found = generation > found ? generation : found;
        }
        slc_checkpoint_reader_close(reader);
        slc_free(path);
    }
    return found;
}

/* Whether it has been noted of the command's store that it is complete. */
static bool is_noted(const struct command *command, const struct slc_files *files)
{
    bool noted = false;

    for (unsigned i = 0; i < 2 && command->noted[i] != NULL; i++) {
        struct slc_state state = {.bytes = NULL};
        struct slc_error err = SLC_ERROR_INIT;
        bool sound = false;

        SLC_ASSERT_OK(
            slc_state_load(&state, files, command->noted[i], SLC_COMPLETE_STATE_NAME, &sound, &err),
            &err);
        slc_state_destroy(&state);
        noted = noted || sound;
    }
    return noted;
}

/* Whether a sweep found that the run with the checkpoint is through. */
static bool is_recorded(const char *said)
{
    const char *line = strstr(said, "rank    2, seed 0: ");
    const char *told = line != NULL ? strstr(line, "from an earlier part") : NULL;

    return told != NULL && told < line + strcspn(line, "\n");
}

static int cannot_exchange(void *self, const char *a, const char *b)
{
    (void)self;
    (void)a;
    (void)b;
    return -EOPNOTSUPP;
}

static enum slc_status run(void *context, const struct slc_files *disk, struct slc_error *err)
{
    struct trying *trying = context;
    struct slc_files here = *disk;
    const struct slc_files *files = &here;
    const bool noted = is_noted(trying->command, files);
    const bool left = newest(trying->command, files) > 0;
    struct command_words said;
    enum slc_status status;
    bool resumed, named;

    if (trying->command->two_renames) {
        here.exchange = cannot_exchange;
    }
    status = command_on_disk(files, trying->command->arguments, &said, err);
    resumed = strstr(said.text, "  resumed at iteration ") != NULL;
    named = strstr(said.text, "an interrupted run left: the whole store") != NULL;

    trying->resumed += resumed;
    trying->named += named;
    if (status == SLC_OK && noted != named) {
        return slc_fail(err, SLC_ERR_IO,
                        noted ? "builds a store anew that was complete"
                              : "takes a store for complete that is not");
    }
    if (status == SLC_OK && left != resumed && !is_recorded(said.text)) {
        return slc_fail(err, SLC_ERR_IO,
                        left ? "does not go on from the checkpoint that is there"
                             : "goes on from a checkpoint that is not whole");
    }
    return status;
}

/* The output is there already: what may be done to it only the user knows. */
static bool output_exists(void *context, const struct slc_error *err)
{
    const struct trying *trying = context;

    return trying->command->before == NULL && strstr(err->message, "the output exists") != NULL;
}

/* Generations whose headers have been synced. */
static uint64_t demand(void *context, const struct slc_change *changes, uint64_t count)
{
    uint64_t generations = 0;

    (void)context;
    for (uint64_t i = 0; i < count; i++) {
        const struct slc_change *header = &changes[i];
        bool synced = false;

        if (header->kind == SLC_CHANGE_WRITE && header->offset == 0 && header->bytes >= 8 &&
            memcmp(header->data, "\x89SLCKPT\n", 8) == 0) {
            for (uint64_t s = i + 1; s < count && !synced; s++) {
                synced = changes[s].kind == SLC_CHANGE_SYNC && changes[s].node == header->node;
            }
        }
        generations += synced;
    }
    return generations;
}

/* The fit that the record tells; -1 where there is none, -2 where it is not whole. */
static double recorded_fit(const struct slc_files *files, const char *path)
{
    struct slc_error err = SLC_ERROR_INIT;
    double fit = -2;
    void *data = NULL;
    uint64_t bytes;
    json_t *record;

    if (path == NULL || command_disk_hash(files, path) == 0) {
        return -1;
    }
    if (slc_file_load(files, path, 1 << 20, &data, &bytes, &err) == SLC_OK) {
        record = json_loadb(data, bytes, 0, NULL);
        fit = record != NULL ? json_real_value(json_object_get(record, "fit")) : -2;
        json_decref(record);
        slc_free(data);
    }
    return fit;
}

/* What is wrong with one result, or NULL; counts those of the run before and of this one. */
static const char *judge_result(const struct slc_files *files,
                                const struct result *result,
                                bool done,
                                bool moved_aside,
                                unsigned *before,
                                unsigned *after)
{
    const uint64_t now = command_disk_hash(files, result->path);

    if (now == result->after) {
        (*after)++;
        return NULL;
    }
    if (done) {
        return "what was said to be done is not there";
    }
    if (now != 0) {
        (*before)++;
        return now == result->before ? NULL : "a result is not whole";
    }
    /* A store gives its place to the one that replaces it at one stroke. */
    return strstr(result->path, ".slc") == NULL || result->before == 0 || moved_aside
               ? NULL
               : "no store is there";
}

static const char *
look(void *context, const struct slc_files *files, const struct slc_crash_moment *moment)
{
    const struct trying *trying = context;
    const struct command *command = trying->command;
    const double fit = recorded_fit(files, command->record);
    unsigned before = 0, after = 0, count = 0;
    const char *wrong = NULL;

    if (trying->results[0].after == 0) {
        return NULL; /* the run that tells what is right */
    }
    for (; count < RESULTS && command->paths[count] != NULL && wrong == NULL; count++) {
        wrong = judge_result(files, &trying->results[count], moment->done, command->two_renames,
                             &before, &after);
    }
    if (wrong != NULL) {
        return wrong;
    }
    if (before > 0 && after > 0 && command->record == NULL) {
        return "results of two runs";
    }
    if (fit != -1 && (fit == trying->fit_after ? after : before) != count) {
        return "the record is not that of the results";
    }
    if (fit != -1 && fit != trying->fit_after && fit != trying->fit_before) {
        return "half a record";
    }
    if (moment->done && command->record != NULL && fit != trying->fit_after) {
        return "the record is not there";
    }
    return after < count && newest(command, files) < moment->demand ? "a generation is lost" : NULL;
}

static void note_results(struct trying *trying, const struct slc_recorded *disk)
{
    struct slc_recorded *base = slc_recorded_create_with(slc_recorded_base(disk));

    for (unsigned i = 0; i < RESULTS && trying->command->paths[i] != NULL; i++) {
        struct result *result = &trying->results[i];

        result->path = trying->command->paths[i];
        result->before = command_disk_hash(slc_recorded_files(base), result->path);
        result->after = command_disk_hash(slc_recorded_files(disk), result->path);
        CU_ASSERT(result->after != 0 && result->after != result->before);
    }
    trying->fit_before = recorded_fit(slc_recorded_files(base), trying->command->record);
    trying->fit_after = recorded_fit(slc_recorded_files(disk), trying->command->record);
    slc_recorded_destroy(base);
}

static void sweep(const struct command *command)
{
    const uint64_t more = (slc_test_full() ? 32 : 1) * (slc_test_quick() ? 1 : command->scale);
    const struct slc_crash_try_bounds bounds = {
        .states = {.seed = slc_test_seed(), .all = 4 * more, .extremes = more, .samples = more},
        .every = slc_test_full() ? 1 : command->every * (slc_test_quick() ? 4 : 1),
        .again = slc_test_full()    ? 16
                 : slc_test_quick() ? 0
                                    : 1,
        .continued = slc_test_full() ? 16 : 1};
    struct trying trying = {.command = command};
    const struct slc_crash_operation operation = {
        .name = command->name,
        .context = &trying,
        .prepare = prepare,
        .run = run,
        .look = look,
        .may_refuse = output_exists,
        .varies = command->varies != NULL ? command->varies : "run.json",
        .demand = demand};
    struct slc_crash_report report = {.bad = 0};
    struct slc_recorded *disk;

    if (stores == NULL) {
        make_stores();
    }
    disk = slc_crash_record(&operation, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(disk);
    note_results(&trying, disk);
    slc_crash_try(disk, &operation, &bounds, &report);
    slc_crash_report_print(&report, operation.name, &bounds);
    slc_recorded_destroy(disk);
    CU_ASSERT_EQUAL(report.bad, 0);
    CU_ASSERT((trying.resumed > 0) == (command->checkpoint != NULL));
    CU_ASSERT((trying.named > 0) == (command->noted[0] != NULL));
    /* A check that cannot fail is none. */
    CU_ASSERT(slc_crash_shows(&operation, &bounds, UINT64_MAX));
    if (slc_test_full() && command->each_sync) {
        const uint64_t needless = slc_crash_needless(&operation, &bounds);

        printf("# %s: needless syncs 0x%" PRIx64 "\n", command->name, needless);
        CU_ASSERT_EQUAL(needless, command->needless);
    }
}

#define CPD_PATHS                                                                                  \
    .paths = {"r/mode-1.npy", "r/mode-2.npy", "r/mode-3.npy", "r/lambda.npy"},                     \
    .record = "r/run.json"
#define CPD "cpd x.slc -r 2 --tol 0 --deterministic -t 2 --io pread --progress never -o r "

static void test_cpd(void)
{
    sweep(&(struct command){.name = "cpd",
                            .arguments = CPD "-i 2 --checkpoint-interval 0 --layouts blco",
                            CPD_PATHS,
                            .checkpoint = "r",
                            .scale = 1,
                            .every = 5});
}

static void test_fused(void)
{
    sweep(&(struct command){.name = "cpd, two modes in a pass",
                            .arguments = CPD "-i 2 --checkpoint-interval 0 --passes fused",
                            CPD_PATHS,
                            .checkpoint = "r",
                            .scale = 1,
                            .every = 10});
}

#define RANKS                                                                                      \
    "cpd x.slc --tol 0 --deterministic -t 2 --io pread --progress never -o s -i 2 -v "             \
    "--checkpoint-interval 0 --layouts blco "

/* A sweep that another rank is added to: its run goes on, and what is recorded is there. */
static void test_ranks(void)
{
    sweep(&(struct command){.name = "cpd, a sweep",
                            .arguments = RANKS "-r 1,2",
                            .before = RANKS "-r 1 --runs 2",
                            .paths = {"s/r2-seed0/mode-1.npy", "s/r2-seed0/mode-2.npy",
                                      "s/r2-seed0/mode-3.npy", "s/r2-seed0/lambda.npy"},
                            .record = "s/r2-seed0/run.json",
                            .checkpoint = "s/r2-seed0",
                            .varies = ".json",
                            .scale = 1,
                            .every = 5});
}

static void test_replaced(void)
{
    sweep(&(struct command){.name = "cpd over the results of another",
                            .arguments = CPD "-i 1",
                            .before = CPD "-i 1 --seed 5",
                            CPD_PATHS,
                            .scale = 8,
                            /* 2 is of a name that was there, 4, 6 and 8 of names that 10 covers. */
                            .each_sync = true,
                            .needless = 0xaa});
}

static void test_products(void)
{
    static const struct command commands[] = {
        {.name = "mttkrp",
         .arguments = "mttkrp x.slc --mode 1 --factors r -o m.npy -t 2 --io pread -q",
         .before = CPD "-i 1",
         .paths = {"m.npy"},
         .scale = 8,
         .each_sync = true},
        {.name = "ttv",
         .arguments = "ttv x.slc --mode 1 --vector v.npy y.slc -t 2 --io pread -q",
         .paths = {"y.slc"},
         .scale = 4,
         /* As of a conversion (test_crash_convert.c). */
         .each_sync = true,
         .needless = 0x19},
        {.name = "ttm",
         .arguments = "ttm x.slc p --mode 1 --matrix v.npy -t 2 --io pread -q",
         .before = "ttm x.slc p --mode 2 --matrix w.npy -t 2 --io pread -q",
         .paths = {"p/" SLC_PAIR_COORDS, "p/" SLC_PAIR_ROWS},
         .scale = 4,
         /* Of the store that is sorted first and thrown away. */
         .each_sync = true,
         .needless = 0x7f},
    };

    for (size_t i = 0; i < SLC_COUNT(commands); i++) {
        sweep(&commands[i]);
    }
}

static void test_texts(void)
{
    static const struct command commands[] = {
        {.name = "export",
         .arguments = "export x.slc t.tns -f -t 2 -q",
         .before = "generate t.tns --dims 5x4x3 --nnz 20 -q",
         .paths = {"t.tns"},
         .scale = 8,
         .each_sync = true},
        {.name = "export lists",
         .arguments = "export x.slc t.bin -f -t 1 -q",
         .before = "export x.slc t.bin --format tns -q",
         .paths = {"t.bin"},
         .scale = 8,
         .each_sync = true},
        {.name = "export factors",
         .arguments = "export r m.mat -f -q",
         .before = CPD "-i 1",
         .paths = {"m.mat"},
         .scale = 8,
         .each_sync = true},
        {.name = "generate a text",
         .arguments = "generate t.tns --dims 5x4x3 --nnz 30 -q -f",
         .before = "generate t.tns --dims 5x4x3 --nnz 20 -q",
         .paths = {"t.tns"},
         .scale = 8,
         .each_sync = true},
        {.name = "generate over a store",
         .arguments = "generate y.slc --dims 5x4x3 --nnz 30 -q -f",
         .before = "generate y.slc --dims 5x4x3 --nnz 20 -q",
         .paths = {"y.slc"},
         .scale = 4},
        {.name = "generate a store",
         .arguments = "generate y.slc --dims 5x4x3 --nnz 30 -q",
         .paths = {"y.slc"},
         .scale = 4,
         .each_sync = true,
         .needless = 0x19},
    };

    for (size_t i = 0; i < SLC_COUNT(commands); i++) {
        sweep(&commands[i]);
    }
}

#define CONVERT                                                                                    \
    "convert in.tns y.slc -t 2 --memory 2GiB --checkpoint-interval 1e-9 --progress never "

static void test_convert(void)
{
    static const struct command commands[] = {
        {.name = "convert", .arguments = CONVERT},
        {.name = "convert over a store",
         .arguments = CONVERT "-f",
         .before = "generate y.slc --dims 5x4x3 --nnz 20 -q"},
        {.name = "convert with new numbers", .arguments = CONVERT "--relabel frequency"},
    };

    for (size_t i = 0; i < SLC_COUNT(commands); i++) {
        struct command command = commands[i];

        command.paths[0] = "y.slc";
        command.noted[0] = "y.slc";
        command.noted[1] = "y.slc.part";
        command.scale = 2;
        sweep(&command);
    }
}

/* Nothing is appended twice, and nothing half: all layouts of the store are of one and the same. */
static void test_grow(void)
{
    static const struct command commands[] = {
        {.name = "append",
         .arguments = "append x.slc in.tns -t 2 --memory 2GiB -q",
         .before = "generate y.slc --dims 5x4x3 --nnz 20 -q",
         .paths = {"x.slc"},
         .scale = 2,
         .every = 4},
        {.name = "append to a store without layouts",
         .arguments = "append y.slc in.tns -t 2 --memory 2GiB -q",
         .before = "generate y.slc --dims 5x4x3 --nnz 20 -q",
         .paths = {"y.slc"},
         .scale = 4},
        {.name = "append by two renames",
         .arguments = "append y.slc in.tns -t 2 --memory 2GiB -q",
         .before = "generate y.slc --dims 5x4x3 --nnz 20 -q",
         .paths = {"y.slc"},
         .two_renames = true,
         .scale = 4},
        {.name = "slice over a store",
         .arguments = "slice x.slc y.slc --mode 1=2..4 -t 2 --memory 2GiB -q -f",
         .before = "generate y.slc --dims 5x4x3 --nnz 20 -q",
         .paths = {"y.slc"},
         .scale = 2},
        {.name = "permute",
         .arguments = "permute x.slc y.slc --order 2,3,1 -t 2 --memory 2GiB -q",
         .paths = {"y.slc"},
         .scale = 2},
    };

    for (size_t i = 0; i < SLC_COUNT(commands); i++) {
        sweep(&commands[i]);
    }
}

static const struct slc_test tests[] = {
    {"convert", test_convert},
    {"append, slice and permute", test_grow},
    {"cpd", test_cpd},
    {"cpd with two modes in a pass", test_fused},
    {"cpd over several ranks", test_ranks},
    {"cpd over the results of another run", test_replaced},
    {"products", test_products},
    {"texts and stores", test_texts},
};

int __wrap_main(int argc, char **argv)
{
    return slc_test_main("crash_commands", tests, SLC_COUNT(tests), argc, argv);
}
