/* Like fuzz_resume.c, but for builders alone: several buckets, every form of values, coordinates
 * that need wide keys, relabelling, and an index base that changes late. */
#include "fuzz_disk.h"
#include "fuzz_mutate.h"
#include "fuzz_store.h"

#include "base/random.h"
#include "convert/build/build_memory.h"
#include "convert/build/builder.h"
#include "convert/build/resume/build_folder.h"
#include "convert/publish/build_complete.h"

#define OUTPUT "/out.slc"
#define PART   OUTPUT ".part/"

enum { ORDER = 3, PIECES = 12, PIECE = 60, COUNT = PIECES * PIECE, SAMPLE = 40, WAYS = 3 };

/* Selected by the first byte of the input. */
static const struct way {
    uint64_t dims[ORDER];
    unsigned assumed_base;
    enum slc_fibers fibers;
    enum slc_relabel relabel;
    enum slc_codec codec;
} ways[WAYS] = {
    {{5, UINT64_C(1) << 37, 1 << 20}, 1, SLC_FIBERS_AUTO, SLC_RELABEL_NONE, SLC_CODEC_PACKED},
    /* Buckets are merged and split again. */
    {{9, 300, 70}, 0, SLC_FIBERS_NONE, SLC_RELABEL_FREQUENCY, SLC_CODEC_LZ4},
    {{UINT64_C(1) << 40, UINT64_C(1) << 35, 7},
     1,
     SLC_FIBERS_NONE,
     SLC_RELABEL_NONE,
     SLC_CODEC_BLCO},
};

struct nonzeros {
    uint64_t coords[ORDER][COUNT];
    double values[COUNT];
};

/* Makes nonzeros with duplicates and zeros. The values of a piece are integers, floats or
 * doubles. */
static void make(const struct way *way, struct nonzeros *made)
{
    for (uint64_t i = 0; i < COUNT; i++) {
        const uint64_t of = i % 10 == 9 ? i - 5 : i;
        const double value = (double)slc_random_below(2, 3, i, 100);

        for (unsigned m = 0; m < ORDER; m++) {
            made->coords[m][i] = slc_random_below(2, m, of, way->dims[m]) + 1;
        }
        made->values[i] = i / PIECE % 3 == 0 ? value : i / PIECE % 3 == 1 ? value / 8 : value / 7;
    }
}

static struct slc_entries entries_of(const struct nonzeros *made, uint64_t piece, uint32_t count)
{
    struct slc_entries entries = {.order = ORDER, .count = count, .sequence = piece};

    for (unsigned m = 0; m < ORDER; m++) {
        entries.coords[m] = made->coords[m] + piece * PIECE;
    }
    entries.values = made->values + piece * PIECE;
    return entries;
}

/* Pushes the missing pieces, with a commit after every other piece. */
static enum slc_status
push(struct slc_builder *builder, const struct nonzeros *made, struct slc_error *err)
{
    struct slc_state *note = slc_builder_resumed(builder);
    enum slc_status status = SLC_OK;
    uint64_t piece = 0;

    if (note != NULL) {
        piece = slc_state_get(note, PIECES);
        status = note->bad ? SLC_ERR_DAMAGED : SLC_OK;
    } else {
        const struct slc_entries sample = entries_of(made, 0, SAMPLE);

        /* Without the number of nonzeros, the sample alone determines the number of buckets. */
        status = slc_builder_sample(builder, &sample, SAMPLE, 0, err);
    }
    while (status == SLC_OK && piece < PIECES) {
        const struct slc_entries entries = entries_of(made, piece, PIECE);

        status = slc_builder_push(builder, 0, &entries, err);
        piece++;
        if (status == SLC_OK && piece % 2 == 0) {
            struct slc_state state = {.bytes = NULL};

            slc_state_put(&state, piece);
            status = slc_builder_commit(builder, &state, err);
            slc_state_destroy(&state);
        }
    }
    return status;
}

static enum slc_status build(const struct slc_files *files, unsigned which, struct slc_error *err)
{
    static struct nonzeros made[WAYS];
    const struct way *way = &ways[which];
    struct slc_store_origin origin = {.source = "fuzz", .dialect = "tns", .writer = "fuzz"};
    struct slc_builder_options options = {.files = files,
                                          .output = OUTPUT,
                                          .codec = way->codec,
                                          .fibers = way->fibers,
                                          .relabel = way->relabel,
                                          .block_bytes = SLC_MIN_BLOCK_BYTES,
                                          .workers = 1,
                                          .assumed_base = way->assumed_base,
                                          .resumable = true,
                                          .identity = {11, 22},
                                          .commit_seconds = 1e-9};
    struct slc_builder_report report;
    struct slc_builder *builder = NULL;
    struct slc_complete_left complete;
    enum slc_status status;
    bool found = false;

    if (made[which].coords[0][0] == 0) {
        make(way, &made[which]);
    }
    options.memory_bytes = slc_builder_memory_min(&options, ORDER) + (4 << 20);
    status = slc_complete_find(&options, &complete, &found, err);
    if (status == SLC_OK && found) {
        return slc_complete_left_finish(&complete, err);
    }
    if (status == SLC_OK) {
        status = slc_builder_create(&options, ORDER, &builder, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    status = push(builder, &made[which], err);
    if (status != SLC_OK) {
        slc_builder_end(builder, status);
        return status;
    }
    return slc_builder_finish(builder, 1, way->dims, &origin, &report, err);
}

static void seal_journal(const struct slc_files *disk, uint8_t *data, uint64_t bytes)
{
    fuzz_seal_journal(disk, PART SLC_BLCO_NAME, ORDER, data, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct fuzz_file files[] = {{PART SLC_PUSHED_STATE_NAME, fuzz_seal_state},
                                             {PART SLC_SORTED_STATE_NAME, fuzz_seal_state},
                                             {PART SLC_SPILL_NAME, fuzz_seal_chunks},
                                             {PART SLC_BLCO_NAME, NULL},
                                             {PART SLC_BLCO_NAME ".journal", seal_journal},
                                             {PART SLC_COMPLETE_STATE_NAME, fuzz_seal_state},
                                             {OUTPUT "/" SLC_COMPLETE_STATE_NAME, fuzz_seal_state}};
    static struct slc_recorded *done[WAYS];
    const unsigned which = bytes > 0 ? data[0] % WAYS : 0;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_recorded *disk;
    enum slc_status status;

    if (done[which] == NULL) {
        fuzz_disk_quiet();
        done[which] = slc_recorded_create();
        slc_recorded_start(done[which]);
        fuzz_must(build(slc_recorded_files(done[which]), which, &err) == SLC_OK, err.message);
    }
    disk = fuzz_disk_at(done[which], files, sizeof files / sizeof files[0], data + (bytes > 0),
                        bytes - (bytes > 0));
    status = build(slc_recorded_files(disk), which, &err);
    fuzz_must(slc_recorded_open_count(disk) == 0, "a file is left open");
    fuzz_disk_check(slc_recorded_files(disk), OUTPUT, status, bytes >= 3 + FUZZ_CHANGE_BYTES);
    slc_recorded_destroy(disk);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
    static const struct fuzz_changes form = {3, FUZZ_CHANGE_BYTES, 1};

    return fuzz_mutate_changes(data, bytes, room, seed, &form);
}
