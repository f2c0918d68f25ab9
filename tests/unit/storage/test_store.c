/*
 * Opening a store: manifest and blocks together, those that do not belong together, and what fails
 * on the way.
 */
#include "faulty_files.h"
#include "forge_file.h"
#include "make_store.h"
#include "manifest_fixture.h"
#include "slc_test.h"

#include "base/fault.h"

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

/* Manifest and block file that are each sound but do not belong together. */
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
    /* A listed file that is foreign counts as damaged, one that is missing as an I/O error. */
    snprintf(blocks, sizeof blocks, "%s/blco.blk", store_folder);
    slc_forged_save(&(struct slc_forged){(uint8_t[]){'h', 'i'}, 2}, blocks);
    SLC_ASSERT_FAILS(slc_store_open(NULL, store_folder, &store, &err), SLC_ERR_DAMAGED, &err,
                     "not a sluice");
    CU_ASSERT_EQUAL(err.status, SLC_ERR_DAMAGED);
    slc_error_clear(&err);
    CU_ASSERT_EQUAL(unlink(blocks), 0);
    SLC_ASSERT_FAILS(slc_store_open(NULL, store_folder, &store, &err), SLC_ERR_IO, &err, "opening");
    slc_error_clear(&err);
    /* Without blco there is nothing this version can compute with. */
    sound.layouts[0] = (struct slc_store_layout){
        "sorted-1.blk", SLC_LAYOUT_SORTED, 0, SLC_CODEC_PACKED, 8192, 0, 0, 0};
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), store_folder, &sound, &err), &err);
    SLC_ASSERT_FAILS(slc_store_open(NULL, store_folder, &store, &err), SLC_ERR_UNSUPPORTED, &err,
                     "blco");
    slc_made_tensor_destroy(&tensor);
}

static void open_faults(void)
{
    struct slc_made_tensor tensor;
    struct slc_faulty faulty;

    write_store(&tensor);
    slc_faulty_init(&faulty);
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_store store = {.path = NULL};
        enum slc_status status;

        slc_faulty_fail(&faulty, SLC_FAULTY_ANY, k, EIO);
        status = slc_store_open(&faulty.table, store_folder, &store, &err);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
        /* A close that fails after reading is of no consequence. */
        CU_ASSERT(status == SLC_OK || status == SLC_ERR_IO);
        slc_store_close(&store);
        if (!slc_faulty_fired(&faulty)) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
    }
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_store store = {.path = NULL};
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_store_open(NULL, store_folder, &store, &err);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            SLC_ASSERT_OK(status, &err);
            slc_store_close(&store);
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
    {"every failing operation of opening a store", open_faults},
};

int main(int argc, char **argv)
{
    return slc_test_main("store", tests, SLC_COUNT(tests), argc, argv);
}
