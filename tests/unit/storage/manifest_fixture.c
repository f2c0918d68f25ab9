/* A complete sample manifest, and a comparison of manifests. */
#include "manifest_fixture.h"

#include "base/memory/bytes.h"
#include "slc_test.h"

#include <stdio.h>
#include <string.h>

char store_folder[256];
char manifest_file[300];

void new_store_folder(void)
{
    snprintf(store_folder, sizeof store_folder, "%s", slc_test_folder());
    snprintf(manifest_file, sizeof manifest_file, "%s/tensor.json", store_folder);
}

void sample(struct slc_manifest *manifest)
{
    memset(manifest, 0, sizeof *manifest);
    manifest->order = 3;
    manifest->dims[0] = UINT64_C(1) << 62;
    manifest->dims[1] = 1;
    manifest->dims[2] = 1000;
    manifest->nnz = UINT64_C(123456789012);
    manifest->value_type = SLC_F32;
    manifest->sum_of_squares = 0.1;
    manifest->content_sum = UINT64_C(0xfedcba9876543210);
    manifest->values = (struct slc_value_stats){
        .distinct = 3, .zeros = 7, .low = -2.5, .high = 0.1, .listed = {-2.5, 0, 0.1}};
    manifest->layout_count = 2;
    manifest->layouts[0] = (struct slc_store_layout){
        "blco.blk", SLC_LAYOUT_BLCO, 0, SLC_CODEC_LZ4, 8192000, 17, 4711, 1};
    manifest->layouts[1] = (struct slc_store_layout){
        "sorted-3.blk", SLC_LAYOUT_SORTED, 2, SLC_CODEC_PACKED, 4096000, 3, 815, UINT64_MAX};
    manifest->origin =
        (struct slc_store_origin){.source = "a \"quoted\" \\ path/\xc3\xa4.tns",
                                  .dialect = "frostt",
                                  .index_base = 1,
                                  .entries_read = 5,
                                  .duplicates = 2,
                                  .explicit_zeros = 1,
                                  .keeps_zeros = true,
                                  .duplicate_policy = "keep-first",
                                  .writer = "sluice 0.1.0",
                                  .transforms = "abs,log1p",
                                  .appended_count = 2,
                                  .appended = {{"-", 0, UINT64_MAX, 7}, {"\xc3\xa4.tns", 1, 2, 1}}};
}

void check_same(const struct slc_manifest *a, const struct slc_manifest *b)
{
    CU_ASSERT_EQUAL(a->order, b->order);
    CU_ASSERT_EQUAL(memcmp(a->dims, b->dims, sizeof a->dims), 0);
    CU_ASSERT_EQUAL(a->nnz, b->nnz);
    CU_ASSERT_EQUAL(a->value_type, b->value_type);
    CU_ASSERT_EQUAL(slc_bits_f64(a->sum_of_squares), slc_bits_f64(b->sum_of_squares));
    CU_ASSERT_EQUAL(a->content_sum, b->content_sum);
    CU_ASSERT(slc_value_stats_same(&a->values, &b->values));
    CU_ASSERT_EQUAL(a->origin.keeps_zeros, b->origin.keeps_zeros);
    CU_ASSERT_EQUAL(a->layout_count, b->layout_count);
    for (unsigned i = 0; i < a->layout_count; i++) {
        CU_ASSERT_STRING_EQUAL(a->layouts[i].file, b->layouts[i].file);
        CU_ASSERT_EQUAL(a->layouts[i].layout, b->layouts[i].layout);
        CU_ASSERT_EQUAL(a->layouts[i].layout_mode, b->layouts[i].layout_mode);
        CU_ASSERT_EQUAL(a->layouts[i].codec, b->layouts[i].codec);
        CU_ASSERT_EQUAL(a->layouts[i].file_bytes, b->layouts[i].file_bytes);
        CU_ASSERT_EQUAL(a->layouts[i].block_count, b->layouts[i].block_count);
        CU_ASSERT_EQUAL(a->layouts[i].index_bytes, b->layouts[i].index_bytes);
        CU_ASSERT_EQUAL(a->layouts[i].header_hash, b->layouts[i].header_hash);
    }
    CU_ASSERT_EQUAL(a->permutation_count, b->permutation_count);
    for (unsigned i = 0; i < a->permutation_count; i++) {
        CU_ASSERT_EQUAL(a->permutations[i].mode, b->permutations[i].mode);
        CU_ASSERT_STRING_EQUAL(a->permutations[i].file, b->permutations[i].file);
        CU_ASSERT_EQUAL(a->permutations[i].file_bytes, b->permutations[i].file_bytes);
        CU_ASSERT_EQUAL(a->permutations[i].hash, b->permutations[i].hash);
    }
    CU_ASSERT_STRING_EQUAL(a->origin.source, b->origin.source);
    CU_ASSERT_STRING_EQUAL(a->origin.dialect, b->origin.dialect);
    CU_ASSERT_EQUAL(a->origin.index_base, b->origin.index_base);
    CU_ASSERT_EQUAL(a->origin.entries_read, b->origin.entries_read);
    CU_ASSERT_EQUAL(a->origin.duplicates, b->origin.duplicates);
    CU_ASSERT_EQUAL(a->origin.explicit_zeros, b->origin.explicit_zeros);
    CU_ASSERT_STRING_EQUAL(a->origin.duplicate_policy, b->origin.duplicate_policy);
    CU_ASSERT_STRING_EQUAL(a->origin.writer, b->origin.writer);
    CU_ASSERT_STRING_EQUAL(a->origin.transforms, b->origin.transforms);
    CU_ASSERT_EQUAL(a->origin.appended_count, b->origin.appended_count);
    for (unsigned i = 0; i < a->origin.appended_count; i++) {
        const struct slc_store_appended *left = &a->origin.appended[i];
        const struct slc_store_appended *right = &b->origin.appended[i];

        CU_ASSERT_STRING_EQUAL(left->source, right->source);
        CU_ASSERT_EQUAL(left->input, right->input);
        CU_ASSERT_EQUAL(left->content, right->content);
        CU_ASSERT_EQUAL(left->entries, right->entries);
    }
}
