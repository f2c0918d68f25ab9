/* Tries one command on every crash state. */
#include "crash_command.h"

#include "command_disk.h"
#include "crash_try.h"
#include "make_sorted.h"
#include "slc_test.h"

#include "base/memory/memory.h"
#include "convert/build/resume/state_file.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/manifest/store.h"
#include "storage/model/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { ORDER = 3, LONGEST = 6, NNZ = 90, TILE_NNZ = 20 };

/* A result of a command: a file or a store. */
struct result {
    const char *path;
    uint64_t before, after; /* command_disk_hash; 0: does not exist */
};

struct trying {
    const struct crash_command *command;
    struct result results[CRASH_COMMAND_RESULTS];
    double fit_before, fit_after; /* in the record; -1: no record */
    uint64_t resumed;             /* runs that resumed from a checkpoint */
    uint64_t named;               /* runs that found a complete store */
};

static const uint64_t dims[ORDER] = {LONGEST, 5, 4};
static const char *stores; /* folder of the input stores, on the system's disk */

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

/* Returns the newest complete generation of the command's checkpoint; 0: none. */
static uint64_t newest(const struct crash_command *command, const struct slc_files *files)
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

/* Whether the command's store is marked as complete. */
static bool is_noted(const struct crash_command *command, const struct slc_files *files)
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

/* Whether a sweep found the run with the checkpoint completed. */
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
    named = strstr(said.text, "an interrupted run: the store is complete") != NULL;

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

/* The output already exists: only the user can decide about it. */
static bool output_exists(void *context, const struct slc_error *err)
{
    const struct trying *trying = context;

    return trying->command->before == NULL && strstr(err->message, "the output exists") != NULL;
}

/* Number of generations whose headers are synced. */
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

/* The fit in the record; -1 without a record, -2 if it is incomplete. */
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

/* Returns the fault of one result, or NULL; counts results of the earlier run and of this run. */
static const char *check_result(const struct slc_files *files,
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
    /* A store is replaced atomically. */
    return strstr(result->path, ".slc") == NULL || result->before == 0 || moved_aside
               ? NULL
               : "no store is there";
}

static const char *
look(void *context, const struct slc_files *files, const struct slc_crash_moment *moment)
{
    const struct trying *trying = context;
    const struct crash_command *command = trying->command;
    const double fit = recorded_fit(files, command->record);
    unsigned before = 0, after = 0, count = 0;
    const char *wrong = NULL;

    if (trying->results[0].after == 0) {
        return NULL; /* the reference run */
    }
    for (; count < CRASH_COMMAND_RESULTS && command->paths[count] != NULL && wrong == NULL;
         count++) {
        wrong = check_result(files, &trying->results[count], moment->done, command->two_renames,
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

    for (unsigned i = 0; i < CRASH_COMMAND_RESULTS && trying->command->paths[i] != NULL; i++) {
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

void crash_command_sweep(const struct crash_command *command)
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
    /* If no sync has an effect, the checks must find a fault: this shows that they can fail. */
    CU_ASSERT(slc_crash_shows(&operation, &bounds, UINT64_MAX));
    if (slc_test_full() && command->each_sync) {
        const uint64_t needless = slc_crash_needless(&operation, &bounds);

        printf("# %s: needless syncs 0x%" PRIx64 "\n", command->name, needless);
        CU_ASSERT_EQUAL(needless, command->needless);
    }
}
