/* Decompositions that were interrupted at any moment, with arbitrary changes to their checkpoints:
 * a rerun resumes, restarts or fails with an error. With unmodified checkpoints, the result is
 * bitwise that of an uninterrupted run. */
#include "fuzz_disk.h"
#include "fuzz_mutate.h"
#include "fuzz_store.h"
#include "make_sorted.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "cpu/cpu.h"
#include "engine/planning/planning.h"
#include "engine/solve/cp.h"
#include "storage/checkpoint/checkpoint_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "/run.ckpt"

/* Passes for one mode over `blco`, in parts of a block, and for two modes over sorted layouts. */
enum { ORDER = 3, RANK = 2, ITERATIONS = 3, WAYS = 2, ENTRY_BYTES = 40 };

/* Store and plan of a run, opened once. */
struct way {
    struct slc_store store;
    struct slc_layouts layouts;
    struct slc_plan plan;
    /* the disk of the complete run, with all checkpoints that the run wrote */
    struct slc_recorded *done;
    double fit;
};

/* Recomputes the checksums of a generation: sections inside the file, table, header. */
static void seal(const struct slc_files *disk, uint8_t *data, uint64_t bytes)
{
    (void)disk;
    if (bytes < SLC_CHECKPOINT_BODY_OFFSET) {
        return;
    }
    for (size_t s = 0; s < SLC_CHECKPOINT_SECTIONS; s++) {
        uint8_t *entry = data + SLC_CHECKPOINT_TABLE_OFFSET + s * ENTRY_BYTES;
        const uint64_t offset = slc_load_u64(entry + 16), length = slc_load_u64(entry + 24);
        const uint64_t padded =
            length <= bytes ? (length + SLC_PAGE_BYTES - 1) / SLC_PAGE_BYTES * SLC_PAGE_BYTES
                            : UINT64_MAX;

        if (offset >= SLC_CHECKPOINT_BODY_OFFSET && padded <= bytes && offset <= bytes - padded) {
            slc_store_u64(entry + 32, slc_hash64(data + offset, padded));
        }
    }
    slc_store_u64(data + 40, slc_hash64(data + SLC_CHECKPOINT_TABLE_OFFSET, SLC_PAGE_BYTES));
    slc_store_u64(data + 504, slc_hash64(data, 504));
}

static const struct fuzz_file files[] = {{FOLDER "/checkpoint-1.ckpt", seal},
                                         {FOLDER "/checkpoint-2.ckpt", seal}};

static enum slc_status
solve(struct way *way, const struct slc_files *disk, struct slc_cp_result *result)
{
    struct slc_cp_options options = {.rank = RANK,
                                     .iterations = ITERATIONS,
                                     .seed = 3,
                                     .deterministic = true,
                                     .parts = {.layouts = &way->layouts},
                                     .part_bytes = 1};
    struct slc_checkpoint *checkpoint = NULL;
    struct slc_stream *stream = NULL;
    struct slc_backend *backend = NULL;
    enum slc_status status = slc_stream_open(NULL, &way->layouts, &way->plan, &stream, NULL);

    memset(result, 0, sizeof *result);
    fuzz_must(status == SLC_OK && slc_cpu_backend_create(&backend, NULL) == SLC_OK,
              "the run cannot begin");
    status = slc_checkpoint_open(disk, FOLDER, false, &checkpoint, NULL);
    if (status == SLC_OK) {
        options.checkpoint = checkpoint;
        status = slc_cp_run(&way->store, stream, backend, &way->plan, &options, result, NULL);
    }
    slc_checkpoint_close(checkpoint);
    slc_stream_close(stream);
    backend->ops->destroy(backend);
    return status;
}

static void open_way(struct way *way, unsigned which)
{
    static const uint64_t dims[ORDER] = {6, 5, 4};
    const struct slc_plan_request request = {
        .operation = SLC_OP_CPD,
        .rank = RANK,
        .precision = SLC_F64,
        .threads = 1,
        .deterministic = true,
        .io = SLC_IO_PREAD,
        .memory_bytes = UINT64_C(8) << 30,
        .cache = true,
        .layouts = which == 0 ? SLC_LAYOUTS_BLCO : SLC_LAYOUTS_SORTED,
        .passes = which == 0 ? SLC_PASSES_PLAIN : SLC_PASSES_FUSED};
    const char *name = which == 0 ? "blco.slc" : "sorted.slc";
    struct slc_made_tensor tensor;
    struct slc_cp_result result;

    slc_made_tensor_create(&tensor, ORDER, dims, 90, SLC_MADE_DOUBLES, 1);
    /* Tiles are so small that the small tensor has several tiles and blocks. */
    tensor.tile_nnz = 20;
    fuzz_must(slc_made_store_write(&tensor, NULL, fuzz_path(name), SLC_CODEC_PACKED,
                                   SLC_MIN_BLOCK_BYTES, NULL) == SLC_OK,
              "the store cannot be made");
    for (unsigned n = 0; n < ORDER && which == 1; n++) {
        fuzz_must(slc_made_store_add_sorted(&tensor, fuzz_path(name), n, 20, SLC_CODEC_PACKED,
                                            SLC_MIN_BLOCK_BYTES, NULL) == SLC_OK,
                  "a sorted layout cannot be made");
    }
    slc_made_tensor_destroy(&tensor);
    fuzz_must(slc_store_open(NULL, fuzz_path(name), &way->store, NULL) == SLC_OK &&
                  slc_layouts_open(&way->store, request.layouts, UINT32_MAX, UINT64_MAX,
                                   &way->layouts, NULL) == SLC_OK &&
                  slc_plan_choose(&way->layouts, &request, &way->plan, NULL) == SLC_OK,
              "the run cannot be planned");
    way->done = slc_recorded_create();
    slc_recorded_start(way->done);
    fuzz_must(solve(way, slc_recorded_files(way->done), &result) == SLC_OK, "the run fails");
    way->fit = result.fit;
    slc_cp_result_destroy(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct way ways[WAYS];
    const unsigned which = bytes > 0 ? data[0] % WAYS : 0;
    struct way *way = &ways[which];
    struct slc_cp_result result;
    struct slc_recorded *disk;
    enum slc_status status;

    if (way->done == NULL) {
        open_way(way, which);
    }
    disk = fuzz_disk_at(way->done, files, sizeof files / sizeof files[0], data + (bytes > 0),
                        bytes - (bytes > 0));
    status = solve(way, slc_recorded_files(disk), &result);
    fuzz_must(slc_recorded_open_count(disk) == 0, "a file is left open");
    if (bytes < 3 + FUZZ_CHANGE_BYTES) {
        fuzz_must(status == SLC_OK && slc_bits_f64(result.fit) == slc_bits_f64(way->fit),
                  "a run that goes on has another fit");
    }
    slc_cp_result_destroy(&result);
    slc_recorded_destroy(disk);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
    static const struct fuzz_changes form = {3, FUZZ_CHANGE_BYTES, 1};

    return fuzz_mutate_changes(data, bytes, room, seed, &form);
}
