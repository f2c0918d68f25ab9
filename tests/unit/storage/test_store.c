/* Opening a store: manifest and blocks that match, those that do not, and errors on the way. */
#include "faulty_files.h"
#include "forge_file.h"
#include "make_sorted.h"
#include "manifest_fixture.h"
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/memory/bytes.h"
#include "storage/block/file_layout.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static void write_store(struct slc_made_tensor *tensor)
{
    const uint64_t dims[3] = {50, 60, 70};
    struct slc_error err = SLC_ERROR_INIT;

    new_store_folder();
    slc_made_tensor_create(tensor, 3, dims, 900, SLC_MADE_COUNTS, slc_test_seed());
    SLC_ASSERT_OK(slc_made_store_write(tensor, NULL, store_folder, SLC_CODEC_PACKED, 0, &err),
                  &err);
}

static void open_store(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_store store = {.path = NULL};
    struct slc_made_tensor tensor;

    slc_store_close(&store);
    write_store(&tensor);
    SLC_ASSERT_OK(slc_store_open(NULL, store_folder, &store, &err), &err);
    CU_ASSERT_STRING_EQUAL(store.path, store_folder);
    CU_ASSERT_EQUAL(store.manifest.nnz, tensor.nnz);
    CU_ASSERT_EQUAL(slc_reader_info(store.reader)->nnz, tensor.nnz);
    slc_store_close(&store);
    slc_made_tensor_destroy(&tensor);
}

/* This store has whole fibers only of the mode of size 1, of which every layout has them. */
static void fibers_open(void)
{
    const uint64_t dims[3] = {50, 1, 70};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor tensor;
    struct slc_reader *reader;
    struct slc_store store;

    new_store_folder();
    slc_made_tensor_create(&tensor, 3, dims, 900, SLC_MADE_COUNTS, slc_test_seed());
    SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, store_folder, SLC_CODEC_PACKED, 0, &err),
                  &err);
    SLC_ASSERT_OK(slc_store_open(NULL, store_folder, &store, &err), &err);
    SLC_ASSERT_OK(slc_store_open_fibers(&store, 1, UINT64_MAX, &reader, &err), &err);
    CU_ASSERT_PTR_EQUAL(reader, store.reader);
    slc_store_close_layout(&store, reader);
    SLC_ASSERT_OK(slc_store_open_fibers(&store, 0, UINT64_MAX, &reader, &err), &err);
    CU_ASSERT_PTR_NULL(reader);
    slc_store_close_layout(&store, reader);
    slc_store_close(&store);
    slc_made_tensor_destroy(&tensor);
}

/* Manifest and block file that are each valid but do not match. */
static void mixed_up(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest sound;
    struct slc_made_tensor tensor;
    struct slc_store store;
    char blocks[300];

    write_store(&tensor);
    SLC_ASSERT_OK(slc_manifest_read(NULL, store_folder, &sound, &err), &err);
    for (unsigned i = 0; i < 8; i++) {
        struct slc_manifest other = sound;

        other.nnz += i == 0;
        other.value_type = i == 1 ? SLC_F64 : other.value_type;
        other.sum_of_squares += i == 2;
        other.content_sum ^= i == 3;
        other.dims[1] += i == 4;
        other.layouts[0].block_count += i == 5;
        other.layouts[0].header_hash ^= i == 6;
        other.layouts[0].codec = i == 7 ? SLC_CODEC_LZ4 : other.layouts[0].codec;
        slc_error_clear(&err);
        SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), store_folder, &other, &err), &err);
        SLC_ASSERT_FAILS(slc_store_open(NULL, store_folder, &store, &err), SLC_ERR_DAMAGED, &err,
                         "do not belong together");
    }
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), store_folder, &sound, &err), &err);
    /* A listed file that is foreign counts as damaged, a missing one as an I/O error. */
    snprintf(blocks, sizeof blocks, "%s/blco.blk", store_folder);
    slc_forged_save(&(struct slc_forged){(uint8_t[]){'h', 'i'}, 2}, blocks);
    SLC_ASSERT_FAILS(slc_store_open(NULL, store_folder, &store, &err), SLC_ERR_DAMAGED, &err,
                     "not a sluice");
    CU_ASSERT_EQUAL(err.status, SLC_ERR_DAMAGED);
    slc_error_clear(&err);
    CU_ASSERT_EQUAL(unlink(blocks), 0);
    SLC_ASSERT_FAILS(slc_store_open(NULL, store_folder, &store, &err), SLC_ERR_IO, &err, "opening");
    slc_error_clear(&err);
    /* A store without blco cannot be opened. */
    sound.layouts[0] = (struct slc_store_layout){
        "sorted-1.blk", SLC_LAYOUT_SORTED, 0, SLC_CODEC_PACKED, 8192, 0, 0, 0};
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), store_folder, &sound, &err), &err);
    SLC_ASSERT_FAILS(slc_store_open(NULL, store_folder, &store, &err), SLC_ERR_UNSUPPORTED, &err,
                     "blco");
    slc_made_tensor_destroy(&tensor);
}

/* Further layouts: existing ones, missing ones, and the tolerance of sums of squares. */
static void open_layouts(void)
{
    const uint64_t dims[3] = {50, 60, 70};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor tensor, rekeyed;
    struct slc_store store;
    struct slc_reader *reader = NULL;

    new_store_folder();
    slc_made_tensor_create(&tensor, 3, dims, 30000, SLC_MADE_DOUBLES, slc_test_seed());
    SLC_ASSERT_OK(slc_made_store_write(&tensor, NULL, store_folder, SLC_CODEC_PACKED, 0, &err),
                  &err);
    slc_made_tensor_rekey(&tensor, (struct slc_fiber_run){2, 5}, &rekeyed);
    for (unsigned mode = 0; mode < 2; mode++) {
        SLC_ASSERT_OK(slc_made_store_add_sorted(mode == 0 ? &tensor : &rekeyed, store_folder, mode,
                                                1000, SLC_CODEC_LZ4, 0, &err),
                      &err);
    }
    slc_made_tensor_destroy(&rekeyed);
    SLC_ASSERT_OK(slc_store_open(NULL, store_folder, &store, &err), &err);
    for (unsigned mode = 0; mode < 2; mode++) {
        SLC_ASSERT_OK(
            slc_store_open_layout(&store, SLC_LAYOUT_SORTED, mode, UINT64_MAX, &reader, &err),
            &err);
        CU_ASSERT_EQUAL(slc_reader_info(reader)->layout_mode, mode);
        CU_ASSERT_EQUAL(slc_reader_info(reader)->keys.run.bits, 5 * mode);
        CU_ASSERT_EQUAL(slc_reader_info(reader)->content_sum, store.manifest.content_sum);
        CU_ASSERT(slc_reader_info(reader)->sum_of_squares != store.manifest.sum_of_squares);
        slc_reader_close(reader);
    }
    SLC_ASSERT_FAILS(slc_store_open_layout(&store, SLC_LAYOUT_SORTED, 2, UINT64_MAX, &reader, &err),
                     SLC_ERR_USAGE, &err, "\"sorted\" of mode 3");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_store_open_layout(&store, SLC_LAYOUT_FIBER, 0, UINT64_MAX, &reader, &err),
                     SLC_ERR_USAGE, &err, "\"fiber\" of mode 1");
    slc_store_close(&store);
    slc_made_tensor_destroy(&tensor);
}

/* A store with the layout sorted-1 in one block, if it has any. */
static void write_sorted_store(struct slc_made_tensor *tensor, uint64_t nnz)
{
    const uint64_t dims[3] = {50, 60, 70};
    struct slc_error err = SLC_ERROR_INIT;

    new_store_folder();
    slc_made_tensor_create(tensor, 3, dims, nnz, SLC_MADE_DOUBLES, slc_test_seed());
    SLC_ASSERT_OK(slc_made_store_write(tensor, NULL, store_folder, SLC_CODEC_PACKED, 0, &err),
                  &err);
    SLC_ASSERT_OK(
        slc_made_store_add_sorted(tensor, store_folder, 0, nnz + 1, SLC_CODEC_PACKED, 0, &err),
        &err);
}

/* Replaces sorted-1.blk of the store by a forged one, and updates the manifest. */
static void replace_sorted(struct slc_forged *forged, const char *path)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest manifest;

    slc_forged_seal(forged);
    slc_forged_save(forged, path);
    SLC_ASSERT_OK(slc_manifest_read(NULL, store_folder, &manifest, &err), &err);
    manifest.layouts[1].header_hash = slc_load_u64(forged->bytes + SLC_HEADER_HASH);
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), store_folder, &manifest, &err), &err);
    slc_forged_release(forged);
}

/* Allowed difference between the sum of squares of a sorted layout and the manifest's. */
static void sums_of_squares(void)
{
    static const struct {
        double factor;
        enum slc_status want;
    } cases[] = {{1 + 1e-13, SLC_OK},
                 {1 - 1e-13, SLC_OK},
                 {1 + 1e-9, SLC_ERR_DAMAGED},
                 {0, SLC_ERR_DAMAGED}};

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_made_tensor tensor;
        struct slc_forged forged;
        struct slc_store store;
        struct slc_reader *reader = NULL;
        enum slc_status status;
        char path[300];
        double squares;

        write_sorted_store(&tensor, 900);
        snprintf(path, sizeof path, "%s/sorted-1.blk", store_folder);
        slc_forged_load(&forged, path);
        squares = slc_load_f64(forged.bytes + SLC_HEADER_SUM_OF_SQUARES) * cases[i].factor;
        slc_store_f64(forged.bytes + SLC_HEADER_SUM_OF_SQUARES, squares);
        slc_store_f64(forged.bytes + slc_forged_entry(&forged, 0) + SLC_INDEX_SUM_OF_SQUARES,
                      squares);
        replace_sorted(&forged, path);
        SLC_ASSERT_OK(slc_store_open(NULL, store_folder, &store, &err), &err);
        status = slc_store_open_layout(&store, SLC_LAYOUT_SORTED, 0, UINT64_MAX, &reader, &err);
        CU_ASSERT_EQUAL(status, cases[i].want);
        slc_reader_close(reader);
        slc_store_close(&store);
        slc_made_tensor_destroy(&tensor);
    }
}

/* If files have no nonzeros, only the orders of their keys show that the files do not belong to the
 * same store. */
static void other_keys(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor tensor;
    struct slc_forged forged;
    struct slc_store store;
    struct slc_reader *reader = NULL;
    char path[300];

    write_sorted_store(&tensor, 0);
    snprintf(path, sizeof path, "%s/sorted-1.blk", store_folder);
    slc_forged_load(&forged, path);
    forged.bytes[SLC_HEADER_RUN_BITS] = 2;
    replace_sorted(&forged, path);
    SLC_ASSERT_OK(slc_store_open(NULL, store_folder, &store, &err), &err);
    SLC_ASSERT_FAILS(slc_store_open_layout(&store, SLC_LAYOUT_SORTED, 0, UINT64_MAX, &reader, &err),
                     SLC_ERR_DAMAGED, &err, "fiber runs of 2 bits in mode 1");
    slc_store_close(&store);
    slc_made_tensor_destroy(&tensor);
}

/* Opens the store and its layout sorted-1. */
static enum slc_status open_both(const struct slc_files *files,
                                 struct slc_store *store,
                                 struct slc_reader **reader,
                                 struct slc_error *err)
{
    enum slc_status status = slc_store_open(files, store_folder, store, err);

    return status == SLC_OK
               ? slc_store_open_layout(store, SLC_LAYOUT_SORTED, 0, UINT64_MAX, reader, err)
               : status;
}

static void open_faults(void)
{
    struct slc_made_tensor tensor;
    struct slc_faulty faulty;

    write_sorted_store(&tensor, 900);
    slc_faulty_init(&faulty);
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_store store = {.path = NULL};
        struct slc_reader *reader = NULL;
        enum slc_status status;

        slc_faulty_fail(&faulty, SLC_FAULTY_ANY, k, EIO);
        status = open_both(&faulty.table, &store, &reader, &err);
        slc_reader_close(reader);
        slc_store_close(&store);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
        /* A close that fails after reading does no harm. */
        CU_ASSERT(status == SLC_OK || status == SLC_ERR_IO);
        if (!slc_faulty_fired(&faulty)) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
    }
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_store store = {.path = NULL};
        struct slc_reader *reader = NULL;
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = open_both(NULL, &store, &reader, &err);
        slc_reader_close(reader);
        slc_store_close(&store);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
    }
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    slc_made_tensor_destroy(&tensor);
}

static const struct slc_test tests[] = {
    {"a store opens", open_store},
    {"manifest and blocks that do not belong together", mixed_up},
    {"further layouts open", open_layouts},
    {"layouts with whole fibers open", fibers_open},
    {"sums of squares of a further layout", sums_of_squares},
    {"keys of a further layout", other_keys},
    {"every failing operation of opening a store", open_faults},
};

SLC_SUITE(store)
{
    return slc_test_main("store", tests, SLC_COUNT(tests), argc, argv);
}
