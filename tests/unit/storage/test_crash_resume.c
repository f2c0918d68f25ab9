/* A block file built with a journal, through every crash: only a complete file passes as complete;
 * resuming leaves the file of an uninterrupted build and no others, and keeps the blocks that were
 * synced with their journal. */
#include "crash_try.h"
#include "make_sorted.h"
#include "slc_test.h"

#include "base/hash.h"
#include "base/memory/memory.h"
#include "storage/block/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TAG = 4711,
    JOURNAL_HEAD = 64,
    SYNC_BLOCKS = 6,      /* minimum number of blocks between two syncs */
    PARTITION_BLOCKS = 2, /* blocks per partition; syncs are at ends of partitions */
    LOSS_BLOCKS = SYNC_BLOCKS + PARTITION_BLOCKS
};

static const char path[] = "/store/sorted.part";

/* Encoded once, because creating an encoder takes longer than all these tries. */
struct tile {
    uint64_t partition;
    struct slc_tile_blob blob; /* the encoded tile, which owns its data */
};

struct build {
    struct slc_made_sorted sorted;
    struct tile *tiles;
    uint64_t tile_count;
    uint64_t record_bytes; /* bytes of a journal record; 0: not known yet */
    uint64_t kept_blocks;  /* number of blocks that the last run kept */
    uint64_t finished_hash;
};

static enum slc_status append(const struct build *made,
                              uint64_t kept_partitions,
                              struct slc_writer *writer,
                              struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    uint64_t partition = UINT64_MAX;

    for (uint64_t t = 0; t < made->tile_count && status == SLC_OK; t++) {
        const struct tile *tile = &made->tiles[t];

        if (tile->partition >= kept_partitions && tile->partition != partition) {
            partition = tile->partition;
            status = slc_writer_next_partition(writer, made->sorted.continued[partition], err);
        }
        if (tile->partition >= kept_partitions && status == SLC_OK) {
            status = slc_writer_append(writer, &tile->blob, err);
        }
    }
    return status;
}

static enum slc_status build(void *context, const struct slc_files *files, struct slc_error *err)
{
    struct build *made = context;
    const struct slc_made_tensor *tensor = &made->sorted.tensor;
    const struct slc_writer_options options = {.files = files,
                                               .path = path,
                                               .layout = SLC_LAYOUT_SORTED,
                                               .layout_mode = made->sorted.mode,
                                               .order = tensor->order,
                                               .dims = tensor->dims,
                                               .codec = SLC_CODEC_PACKED,
                                               .block_bytes = SLC_MIN_BLOCK_BYTES,
                                               .sync_bytes = SYNC_BLOCKS * SLC_MIN_BLOCK_BYTES};
    struct slc_writer *writer = NULL;
    struct slc_writer_kept kept = {.blocks = 0};
    struct slc_writer_summary summary;
    enum slc_status status = slc_writer_resume(&options, TAG, UINT64_MAX, &writer, &kept, err);

    made->kept_blocks = kept.blocks;
    if (status != SLC_OK) {
        return status;
    }
    status = append(made, kept.partitions, writer, err);
    if (status != SLC_OK) {
        slc_writer_abandon(writer);
        return status;
    }
    status = slc_writer_finish(writer, &summary, err);
    return status == SLC_OK && files->sync_folder(files->self, "/store") < 0 ? SLC_ERR_IO : status;
}

/* The blocks that must survive a crash: those named by the journal except those written between two
 * syncs; none after the removal of the journal. */
static uint64_t demand(void *context, const struct slc_change *changes, uint64_t count)
{
    const struct build *made = context;
    uint32_t journal = SLC_TREE_NONE;
    uint64_t bytes = 0, blocks;

    for (uint64_t i = 0; i < count; i++) {
        const struct slc_change *change = &changes[i];

        if (change->kind == SLC_CHANGE_CREATE && strstr(change->place.name, ".journal") != NULL) {
            journal = change->node;
        } else if (change->kind == SLC_CHANGE_REMOVE) {
            bytes = 0;
        } else if (change->kind == SLC_CHANGE_WRITE && change->node == journal) {
            bytes = change->offset + change->bytes;
        }
    }
    if (bytes <= JOURNAL_HEAD || made->record_bytes == 0) {
        return 0;
    }
    blocks = (bytes - JOURNAL_HEAD) / made->record_bytes;
    return blocks > LOSS_BLOCKS ? blocks - LOSS_BLOCKS : 0;
}

/* The hash of the file, or 0 if no file passes as complete. */
static uint64_t whole_file(const struct slc_files *files)
{
    struct slc_reader *reader = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    void *data = NULL;
    uint64_t bytes, hash;

    if (slc_reader_open(files, path, &reader, &err) != SLC_OK) {
        return 0;
    }
    slc_reader_close(reader);
    SLC_ASSERT_OK(slc_file_load(files, path, UINT64_MAX, &data, &bytes, &err), &err);
    hash = slc_hash64(data, bytes);
    slc_free(data);
    return hash;
}

static const char *
look(void *context, const struct slc_files *files, const struct slc_crash_moment *moment)
{
    const struct build *made = context;
    const uint64_t hash = whole_file(files);

    if (moment->again && made->kept_blocks < moment->demand) {
        return "more blocks are built again than are written between two syncs";
    }
    if (hash == 0) {
        return moment->done ? "no whole file" : NULL;
    }
    return hash == made->finished_hash ? NULL : "another file passes for whole";
}

static void make_store_folder(void *context, const struct slc_files *files)
{
    (void)context;
    CU_ASSERT_EQUAL(files->make_folder(files->self, "/store"), 0);
}

/* Encodes a partition. */
static void encode(struct build *made, uint64_t partition, struct slc_encoder *encoder)
{
    struct slc_made_tensor piece = made->sorted.tensor;
    struct slc_error err = SLC_ERROR_INIT;

    piece.nnz = made->sorted.begin[partition + 1] - made->sorted.begin[partition];
    piece.key_lo += made->sorted.begin[partition];
    piece.values += made->sorted.begin[partition];
    for (uint64_t begin = 0; begin < piece.nnz;) {
        const uint64_t end = slc_made_tile_end(&piece, begin);
        const struct slc_tile_source source = {.nnz = (uint32_t)(end - begin),
                                               .key_lo = piece.key_lo + begin,
                                               .values = piece.values + begin};
        struct tile tile = {.partition = partition};
        void *data;

        SLC_ASSERT_OK(slc_tile_encode(encoder, &source, &tile.blob, &err), &err);
        data = slc_tree_memory(NULL, tile.blob.data_bytes);
        memcpy(data, tile.blob.data, tile.blob.data_bytes);
        tile.blob.data = data;
        made->tiles = slc_tree_memory(made->tiles, (made->tile_count + 1) * sizeof *made->tiles);
        made->tiles[made->tile_count++] = tile;
        begin = end;
    }
}

static void create(struct build *made)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_encoder *encoder = NULL;
    const uint64_t dims[2] = {5, UINT64_C(1) << 38};
    struct slc_made_tensor tensor;

    memset(made, 0, sizeof *made);
    slc_made_tensor_create(&tensor, 2, dims, 1600, SLC_MADE_DOUBLES, 7);
    slc_made_sorted_create(&made->sorted, &tensor, 0, 200);
    slc_made_tensor_destroy(&tensor);
    SLC_ASSERT_OK(slc_encoder_create(&made->sorted.tensor.keys, SLC_CODEC_PACKED, &encoder, &err),
                  &err);
    for (uint64_t p = 0; p < made->sorted.partition_count; p++) {
        encode(made, p, encoder);
    }
    slc_encoder_destroy(encoder);
}

static void destroy(struct build *made)
{
    for (uint64_t t = 0; t < made->tile_count; t++) {
        free((void *)(uintptr_t)made->tiles[t].blob.data);
    }
    free(made->tiles);
    slc_made_sorted_destroy(&made->sorted);
}

/* The bytes of a journal record: a partition with all its blocks is written at once. */
static void find_record_bytes(struct build *made, const struct slc_recorded *disk)
{
    uint64_t count;
    const struct slc_change *changes = slc_recorded_changes(disk, &count);
    uint64_t smallest = UINT64_MAX;
    uint32_t journal = SLC_TREE_NONE;

    for (uint64_t i = 0; i < count; i++) {
        if (changes[i].kind == SLC_CHANGE_CREATE &&
            strstr(changes[i].place.name, ".journal") != NULL) {
            journal = changes[i].node;
        } else if (changes[i].kind == SLC_CHANGE_WRITE && changes[i].node == journal &&
                   changes[i].offset > 0 && changes[i].bytes < smallest) {
            smallest = changes[i].bytes;
        }
    }
    made->record_bytes = smallest / PARTITION_BLOCKS;
}

static void test_build(void)
{
    const uint64_t more = slc_test_full() ? 16 : 1;
    struct slc_crash_try_bounds bounds = {.states = {.seed = slc_test_seed(),
                                                     .all = more * 64,
                                                     .extremes = more * (slc_test_quick() ? 6 : 24),
                                                     .samples = more * (slc_test_quick() ? 2 : 12)},
                                          .again = more * (slc_test_quick() ? 1 : 10),
                                          .continued = slc_test_quick() ? 2 : 10};
    struct build made;
    const struct slc_crash_operation operation = {.name = "a block file with a journal",
                                                  .context = &made,
                                                  .prepare = make_store_folder,
                                                  .run = build,
                                                  .look = look,
                                                  .demand = demand};
    struct slc_crash_report report = {.bad = 0};
    struct slc_recorded *disk;

    create(&made);
    disk = slc_crash_record(&operation, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(disk);
    made.finished_hash = whole_file(slc_recorded_files(disk));
    find_record_bytes(&made, disk);
    slc_crash_try(disk, &operation, &bounds, &report);
    slc_crash_report_print(&report, operation.name, &bounds);
    CU_ASSERT_EQUAL(report.bad, 0);
    slc_recorded_destroy(disk);
    /* Needless are syncs 6 and 7, the last pair before the end, because they save no more work than
     * may be lost, and sync 10, of the folder. */
    CU_ASSERT_EQUAL(slc_crash_needless(&operation, &bounds), 0x260);
    destroy(&made);
}

static const struct slc_test tests[] = {
    {"a block file with its journal", test_build},
};

SLC_SUITE(crash_resume)
{
    return slc_test_main("crash_resume", tests, SLC_COUNT(tests), argc, argv);
}
