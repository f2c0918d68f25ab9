/* The verifier on stores with sorted layouts: all layouts are checked, each by its own rules, and
 * they must match. */
#include "forge_file.h"
#include "make_sorted.h"
#include "slc_test.h"

#include "base/memory/bytes.h"
#include "base/random.h"
#include "faulty_files.h"
#include "storage/block/file_layout.h"
#include "storage/verify/verify.h"

#include <stdio.h>
#include <string.h>

static char folder[256];
static char sorted_path[300];

/* Partitions of several rows, and of pieces of rows; wide enough for several blocks in each. One
 * layout has the keys of blco, one has others. */
static void write_store(struct slc_made_tensor *tensor, uint64_t nnz)
{
    const uint64_t dims[3] = {9, UINT64_C(1) << 38, 40};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor rekeyed;

    snprintf(folder, sizeof folder, "%s", slc_test_folder());
    snprintf(sorted_path, sizeof sorted_path, "%s/sorted-1.blk", folder);
    slc_made_tensor_create(tensor, 3, dims, nnz, SLC_MADE_DOUBLES, slc_test_seed());
    SLC_ASSERT_OK(slc_made_store_write(tensor, NULL, folder, SLC_CODEC_PACKED, 8192, &err), &err);
    SLC_ASSERT_OK(
        slc_made_store_add_sorted(tensor, folder, 0, nnz / 12 + 1, SLC_CODEC_PACKED, 8192, &err),
        &err);
    slc_made_tensor_rekey(tensor, (struct slc_fiber_run){1, 24}, &rekeyed);
    SLC_ASSERT_OK(
        slc_made_store_add_sorted(&rekeyed, folder, 2, nnz / 5 + 1, SLC_CODEC_LZ4, 4096, &err),
        &err);
    slc_made_tensor_destroy(&rekeyed);
}

/* Writes the hash of the forged sorted-1.blk into the manifest. */
static void relist(const struct slc_forged *forged)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest manifest;

    SLC_ASSERT_OK(slc_manifest_read(NULL, folder, &manifest, &err), &err);
    manifest.layouts[1].file_bytes = forged->size;
    manifest.layouts[1].block_count = slc_load_u64(forged->bytes + SLC_HEADER_BLOCK_COUNT);
    manifest.layouts[1].header_hash = slc_load_u64(forged->bytes + SLC_HEADER_HASH);
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
}

static enum slc_status
verify(bool decode, unsigned threads, struct slc_verify_report *report, struct slc_error *err)
{
    const struct slc_verify_options options = {.decode = decode, .threads = threads};

    slc_error_clear(err);
    return slc_verify_store(folder, &options, report, err);
}

static void sound_stores(void)
{
    const uint64_t sizes[] = {5000, 1, 0};
    struct slc_error err = SLC_ERROR_INIT;

    for (size_t i = 0; i < SLC_COUNT(sizes); i++) {
        struct slc_made_tensor tensor;
        struct slc_verify_report report;

        write_store(&tensor, sizes[i]);
        for (unsigned threads = 1; threads <= 3; threads++) {
            SLC_ASSERT_OK(verify(threads != 2, threads, &report, &err), &err);
            CU_ASSERT_EQUAL(report.files, 4);
            CU_ASSERT_EQUAL(report.layouts, 3);
            CU_ASSERT_EQUAL(report.nnz, 3 * tensor.nnz);
        }
        slc_made_tensor_destroy(&tensor);
    }
}

/* A flipped bit anywhere in a sorted file is found, and placed. */
static void flips(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor tensor;
    struct slc_forged bytes;
    uint64_t missed = 0;

    write_store(&tensor, 3000);
    slc_forged_load(&bytes, sorted_path);
    for (uint64_t i = 0; i < 300; i++) {
        uint64_t at = slc_random_below(slc_test_seed(), 50, i, bytes.size);
        struct slc_verify_report report;

        slc_forged_poke(sorted_path, at, (uint8_t)(bytes.bytes[at] ^ 1U << i % 8));
        missed += verify(false, 1, &report, &err) == SLC_OK || report.findings != 1 ||
                  strcmp(err.file, sorted_path) != 0 || err.offset == SLC_NOWHERE;
        slc_forged_poke(sorted_path, at, bytes.bytes[at]);
    }
    CU_ASSERT_EQUAL(missed, 0);
    slc_forged_release(&bytes);
    slc_made_tensor_destroy(&tensor);
}

/* Within a partition tiles must end as the format requires; the last may end early. */
static void short_tiles(void)
{
    const uint64_t dims[2] = {10, 1000};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor tensor;
    struct slc_made_sorted sorted;
    struct slc_writer_summary summary;
    struct slc_verify_report report;
    struct slc_forged forged;
    struct slc_writer *writer;

    snprintf(folder, sizeof folder, "%s", slc_test_folder());
    snprintf(sorted_path, sizeof sorted_path, "%s/sorted-1.blk", folder);
    slc_made_tensor_create(&tensor, 2, dims, 2000, SLC_MADE_ONES, 3);
    SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, folder, SLC_CODEC_PACKED, 8192, &err), &err);
    SLC_ASSERT_OK(slc_made_store_add_sorted(&tensor, folder, 0, 500, SLC_CODEC_PACKED, 8192, &err),
                  &err);
    SLC_ASSERT_OK(verify(true, 1, &report, &err), &err);
    CU_ASSERT_EQUAL(remove(sorted_path), 0);
    slc_made_sorted_create(&sorted, &tensor, 0, 10000);
    CU_ASSERT_EQUAL(sorted.partition_count, 1);
    SLC_ASSERT_OK(slc_writer_open(&(struct slc_writer_options){.files = slc_quick_files(),
                                                               .path = sorted_path,
                                                               .layout = SLC_LAYOUT_SORTED,
                                                               .order = 2,
                                                               .dims = dims,
                                                               .codec = SLC_CODEC_PACKED},
                                  &writer, &err),
                  &err);
    for (uint64_t begin = 0; begin < tensor.nnz; begin += 700) {
        struct slc_made_tensor piece = sorted.tensor;

        piece.key_lo += begin;
        piece.key_hi += begin;
        piece.values += begin;
        piece.nnz = tensor.nnz - begin < 700 ? tensor.nnz - begin : 700;
        SLC_ASSERT_OK(slc_made_tiles_append(&piece, SLC_CODEC_PACKED, writer, &err), &err);
    }
    SLC_ASSERT_OK(slc_writer_finish(writer, &summary, &err), &err);
    slc_forged_load(&forged, sorted_path);
    relist(&forged);
    slc_forged_release(&forged);
    SLC_ASSERT_FAILS(verify(false, 1, &report, &err), SLC_ERR_DAMAGED, &err, "would fit");
    slc_made_sorted_destroy(&sorted);
    slc_made_tensor_destroy(&tensor);
}

/* Leftovers of an interrupted change of layouts are neither a fault nor part of the store. */
static void leftovers(void)
{
    static const struct {
        const char *name;
        bool leftover;
    } cases[] = {{"sorted-1.blk.tmp", true},
                 {"sorted-3.blk.tmp.journal", true},
                 {"fiber-2.blk", true},
                 {"fiber-1.blk", true},
                 {"tensor.json.tmp", true},
                 {"fiber-4.blk", false},
                 {"sorted-4.blk.tmp", false},
                 {"sorted-0.blk.tmp", false},
                 {"sorted-01.blk.tmp", false},
                 {"sorted-1.blk.tmp.journals", false},
                 {"sorted-1.blk.tmp.journal~", false},
                 {"sorted-1.blk.tm", false},
                 {"sorted-1.blk.journal", false},
                 {"blco.blk.tmp", false}};
    struct slc_made_tensor tensor;

    write_store(&tensor, 10);
    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_verify_report report;
        char path[400];

        snprintf(path, sizeof path, "%s/%s", folder, cases[i].name);
        slc_forged_save(&(struct slc_forged){(uint8_t[]){'x'}, 1}, path);
        CU_ASSERT_EQUAL(verify(true, 1, &report, &err),
                        cases[i].leftover ? SLC_OK : SLC_ERR_FORMAT);
        CU_ASSERT_EQUAL(report.leftovers, cases[i].leftover);
        CU_ASSERT_EQUAL(remove(path), 0);
    }
    slc_made_tensor_destroy(&tensor);
}

/* Without nonzeros only the order of keys shows that a layout is another store's. */
static void other_keys(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor tensor;
    struct slc_verify_report report;
    struct slc_forged forged;

    write_store(&tensor, 0);
    slc_forged_load(&forged, sorted_path);
    forged.bytes[SLC_HEADER_RUN_BITS] = 2;
    slc_forged_seal_frame(&forged);
    slc_forged_save(&forged, sorted_path);
    relist(&forged);
    slc_forged_release(&forged);
    SLC_ASSERT_FAILS(verify(true, 1, &report, &err), SLC_ERR_DAMAGED, &err, "fiber runs of 2 bits");
    CU_ASSERT_STRING_EQUAL(err.file, sorted_path);
    slc_made_tensor_destroy(&tensor);
}

/* A layout of six fibers, each in several tiles, which are blocks: counted, and split at their
 * ends. */
static void whole_fibers(void)
{
    const uint64_t dims[3] = {3, 2, 300000};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor tensor;
    struct slc_writer_summary summary;
    struct slc_verify_report report;
    struct slc_manifest manifest;
    struct slc_reader *reader;
    struct slc_forged forged;
    uint8_t *at;

    snprintf(folder, sizeof folder, "%s", slc_test_folder());
    snprintf(sorted_path, sizeof sorted_path, "%s/fiber-3.blk", folder);
    slc_made_tensor_create(&tensor, 3, dims, 500000, SLC_MADE_COUNTS, slc_test_seed());
    SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, folder, SLC_CODEC_PACKED, 0, &err), &err);
    SLC_ASSERT_OK(
        slc_made_fibers_write(&tensor, 2, sorted_path, SLC_CODEC_PACKED, 4096, &summary, &err),
        &err);
    CU_ASSERT_EQUAL(summary.fiber_count, 6);
    SLC_ASSERT_OK(slc_manifest_read(NULL, folder, &manifest, &err), &err);
    manifest.layouts[manifest.layout_count++] =
        (struct slc_store_layout){.file = "fiber-3.blk",
                                  .layout = SLC_LAYOUT_FIBER,
                                  .layout_mode = 2,
                                  .codec = SLC_CODEC_PACKED,
                                  .file_bytes = summary.file_bytes,
                                  .block_count = summary.block_count,
                                  .index_bytes = summary.index_bytes,
                                  .header_hash = summary.header_hash};
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
    SLC_ASSERT_OK(verify(true, 2, &report, &err), &err);
    CU_ASSERT_EQUAL(report.nnz, 2 * tensor.nnz);

    /* The total number of fibers is right, but one fiber is counted in another block. */
    slc_forged_load(&forged, sorted_path);
    at = forged.bytes + slc_forged_entry(&forged, 0) + SLC_INDEX_PARTITION;
    slc_store_u32(at, slc_load_u32(at) + 1);
    slc_forged_seal(&forged);
    slc_forged_save(&forged, sorted_path);
    relist(&forged);
    slc_forged_release(&forged);
    SLC_ASSERT_OK(slc_reader_open(NULL, sorted_path, &reader, &err), &err);
    CU_ASSERT_EQUAL(slc_reader_info(reader)->fiber_count, 7);
    slc_reader_close(reader);
    SLC_ASSERT_OK(verify(false, 1, &report, &err), &err); /* only decoding finds this */
    SLC_ASSERT_FAILS(verify(true, 1, &report, &err), SLC_ERR_DAMAGED, &err, "fibers end in the");
    CU_ASSERT_EQUAL(err.block, 0);

    /* The tiles of this layout ignore ends of fibers. */
    CU_ASSERT_EQUAL(remove(sorted_path), 0);
    {
        struct slc_made_tensor rekeyed;
        struct slc_writer *writer;

        slc_made_tensor_rekey(&tensor, (struct slc_fiber_run){2, 19}, &rekeyed);
        SLC_ASSERT_OK(
            slc_writer_open(&(struct slc_writer_options){.files = slc_quick_files(),
                                                         .path = sorted_path,
                                                         .layout = SLC_LAYOUT_FIBER,
                                                         .layout_mode = 2,
                                                         .order = 3,
                                                         .dims = dims,
                                                         .run = rekeyed.keys.run,
                                                         .content_run = &rekeyed.content_keys.run,
                                                         .codec = SLC_CODEC_PACKED},
                            &writer, &err),
            &err);
        SLC_ASSERT_OK(slc_made_tiles_append(&rekeyed, SLC_CODEC_PACKED, writer, &err), &err);
        SLC_ASSERT_OK(slc_writer_finish(writer, &summary, &err), &err);
        slc_made_tensor_destroy(&rekeyed);
    }
    slc_forged_load(&forged, sorted_path);
    relist(&forged);
    slc_forged_release(&forged);
    SLC_ASSERT_FAILS(verify(true, 1, &report, &err), SLC_ERR_DAMAGED, &err, "ends within a fiber");
    slc_made_tensor_destroy(&tensor);
}

static const struct slc_test tests[] = {
    {"sound stores", sound_stores},
    {"flipped bits", flips},
    {"tiles that end early", short_tiles},
    {"keys of another store", other_keys},
    {"leftovers of interrupted changes", leftovers},
    {"whole fibers", whole_fibers},
};

SLC_SUITE(verify_sorted)
{
    return slc_test_main("verify sorted", tests, SLC_COUNT(tests), argc, argv);
}
