/* A run that keeps checkpoints, writes its result and removes them, through every crash: the last
 * generation reported as written is found unchanged until the result exists; resuming from it ends
 * with only the result. */
#include "crash_try.h"
#include "slc_test.h"

#include "base/hash.h"
#include "base/memory/memory.h"
#include "storage/checkpoint/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GENERATIONS = 4, LONGEST = 9000 };

static const char folder[] = "/run/output";
static const char result[] = "/run/output/result";
/* Syncing it changes nothing, so the record shows when a generation was reported as written. */
static const char said[] = "/said";

static const uint64_t lengths[] = {100, 5000, LONGEST};

static void fill(uint8_t *bytes, uint64_t generation, unsigned section)
{
    for (uint64_t at = 0; at < lengths[section]; at++) {
        bytes[at] = (uint8_t)slc_mix64(generation * 1000 + section + at * 64);
    }
}

static enum slc_status
write_one(struct slc_checkpoint *checkpoint, uint64_t generation, struct slc_error *err)
{
    uint8_t bytes[LONGEST];

    slc_checkpoint_begin(checkpoint);
    for (unsigned s = 0; s < SLC_COUNT(lengths); s++) {
        char name[16];

        (void)snprintf(name, sizeof name, "part-%u", s + 1);
        fill(bytes, generation, s);
        slc_checkpoint_section(checkpoint, name);
        slc_checkpoint_put(checkpoint, bytes, lengths[s]);
    }
    slc_checkpoint_section(checkpoint, "number");
    slc_checkpoint_put_u64(checkpoint, generation);
    return slc_checkpoint_commit(checkpoint, err);
}

/* The generation, or 0 if it differs from what was written. */
static uint64_t read_one(struct slc_checkpoint_reader *reader)
{
    struct slc_error err = SLC_ERROR_INIT;
    uint8_t bytes[LONGEST], want[LONGEST];
    uint64_t generation;
    bool same;

    slc_checkpoint_seek(reader, "number");
    generation = slc_checkpoint_get_u64(reader);
    same = slc_checkpoint_end(reader, &err) == SLC_OK;
    for (unsigned s = 0; s < SLC_COUNT(lengths); s++) {
        char name[16];

        (void)snprintf(name, sizeof name, "part-%u", s + 1);
        slc_checkpoint_seek(reader, name);
        slc_checkpoint_get(reader, bytes, lengths[s]);
        fill(want, generation, s);
        same = slc_checkpoint_end(reader, &err) == SLC_OK && same &&
               memcmp(bytes, want, lengths[s]) == 0;
    }
    return same ? generation : 0;
}

static enum slc_status run(void *context, const struct slc_files *files, struct slc_error *err)
{
    struct slc_checkpoint *checkpoint = NULL;
    enum slc_status status = slc_checkpoint_open(files, folder, false, &checkpoint, err);
    uint64_t generation = 0;

    (void)context;
    if (status != SLC_OK) {
        return status;
    }
    if (slc_checkpoint_found(checkpoint) != NULL) {
        generation = read_one(slc_checkpoint_found(checkpoint));
    }
    status = slc_checkpoint_reserve(
        checkpoint, slc_checkpoint_file_bytes(lengths, SLC_COUNT(lengths)) + 8192, err);
    while (status == SLC_OK && generation < GENERATIONS) {
        status = write_one(checkpoint, ++generation, err);
        (void)files->sync_folder(files->self, said);
    }
    if (status == SLC_OK) {
        status = slc_file_replace(files, result, "through", 7, err);
    }
    if (status == SLC_OK) {
        status = slc_checkpoint_remove(checkpoint, err);
    }
    slc_checkpoint_close(checkpoint);
    return status;
}

static void prepare(void *context, const struct slc_files *files)
{
    (void)context;
    CU_ASSERT_EQUAL(files->make_folder(files->self, "/run"), 0);
    CU_ASSERT_EQUAL(files->make_folder(files->self, said), 0);
}

/* Generations reported as written, without those of an earlier run. */
static uint64_t demand(void *context, const struct slc_change *changes, uint64_t count)
{
    const uint32_t *node = context;
    uint64_t generations = 0;

    for (uint64_t i = 0; i < count; i++) {
        generations += changes[i].kind == SLC_CHANGE_SYNC_FOLDER && changes[i].node == *node;
    }
    return generations;
}

/* Returns the newest complete generation; 0: none. */
static uint64_t newest(const struct slc_files *files, const char **wrong)
{
    uint64_t found = 0;

    for (unsigned which = 0; which < 2; which++) {
        char *path = slc_checkpoint_path(folder, which);
        struct slc_checkpoint_reader *reader = NULL;
        struct slc_error err = SLC_ERROR_INIT;

        if (slc_checkpoint_reader_open(files, path, &reader, &err) == SLC_OK && reader != NULL) {
            const uint64_t generation = read_one(reader);

            *wrong = generation == 0 ? "a generation with other bytes passes for whole" : *wrong;
            found = generation > found ? generation : found;
        }
        slc_checkpoint_reader_close(reader);
        slc_free(path);
    }
    return found;
}

static const char *
look(void *context, const struct slc_files *files, const struct slc_crash_moment *moment)
{
    const char *wrong = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    void *data = NULL;
    uint64_t bytes;
    const uint64_t found = newest(files, &wrong);

    (void)context;
    if (slc_file_load(files, result, 100, &data, &bytes, &err) == SLC_OK) {
        const bool whole = bytes == 7 && memcmp(data, "through", 7) == 0;

        slc_free(data);
        return whole ? wrong : "half a result";
    }
    if (moment->done) {
        return "no result";
    }
    return wrong != NULL ? wrong : found < moment->demand ? "a generation is lost" : NULL;
}

static void test_checkpoints(void)
{
    const uint64_t more = slc_test_full() ? 16 : 1;
    const struct slc_crash_try_bounds bounds = {
        .states = {.seed = slc_test_seed(),
                   .all = more * (slc_test_quick() ? 16 : 128),
                   .extremes = more * (slc_test_quick() ? 4 : 16),
                   .samples = more * (slc_test_quick() ? 1 : 8)},
        .again = more * (slc_test_quick() ? 1 : 6),
        .continued = slc_test_quick() ? 2 : 8};
    struct slc_crash_report report = {.bad = 0};
    uint32_t said_node = SLC_TREE_NONE;
    const struct slc_crash_operation operation = {.name = "checkpoints",
                                                  .context = &said_node,
                                                  .prepare = prepare,
                                                  .run = run,
                                                  .look = look,
                                                  .demand = demand};
    struct slc_recorded *disk = slc_crash_record(&operation, 0);

    CU_ASSERT_PTR_NOT_NULL_FATAL(disk);
    said_node = slc_tree_find(slc_recorded_tree(disk), SLC_TREE_ROOT, "said");
    slc_crash_try(disk, &operation, &bounds, &report);
    slc_crash_report_print(&report, operation.name, &bounds);
    slc_recorded_destroy(disk);
    CU_ASSERT_EQUAL(report.bad, 0);
    /* Syncs 1, 6, 9 and 12 sync the sections of a generation. They are needless, because the next
     * sync of the file (4, 7, 10, 13), which syncs the header, also syncs the sections, and hashes
     * reveal a header whose sections are missing. Syncs 5, 8, 11 and 14 are needless, because
     * nothing has changed. Syncs 2 and 3 sync names. */
    CU_ASSERT_EQUAL(slc_crash_needless(&operation, &bounds), 0x2db1);
}

static const struct slc_test tests[] = {
    {"checkpoints of a run", test_checkpoints},
};

SLC_SUITE(crash_checkpoint)
{
    return slc_test_main("crash_checkpoint", tests, SLC_COUNT(tests), argc, argv);
}
