/*
 * The manifest and opening a store: everything comes back, every flipped bit is found, forged
 * members get the documented status, text of any bytes becomes UTF-8, and faults leave the old
 * manifest.
 */
#include "faulty_files.h"
#include "forge_file.h"
#include "make_store.h"
#include "slc_test.h"

#include "base/bytes.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"
#include "storage/labels.h"
#include "storage/store.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[256];
static char file[300];

static void new_folder(void)
{
    snprintf(folder, sizeof folder, "%s", slc_test_folder());
    snprintf(file, sizeof file, "%s/tensor.json", folder);
}

static void sample(struct slc_manifest *manifest)
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
    manifest->layout_count = 2;
    manifest->layouts[0] = (struct slc_store_layout){
        "blco.blk", SLC_LAYOUT_BLCO, 0, SLC_CODEC_LZ4, 8192000, 17, 4711, 1};
    manifest->layouts[1] = (struct slc_store_layout){
        "sorted-3.blk", SLC_LAYOUT_SORTED, 2, SLC_CODEC_PACKED, 4096000, 3, 815, UINT64_MAX};
    manifest->origin = (struct slc_store_origin){.source = "a \"quoted\" \\ path/\xc3\xa4.tns",
                                                 .dialect = "frostt",
                                                 .index_base = 1,
                                                 .entries_read = 5,
                                                 .duplicates = 2,
                                                 .explicit_zeros = 1,
                                                 .duplicate_policy = "keep-first",
                                                 .writer = "sluice 0.1.0"};
}

static void check_same(const struct slc_manifest *a, const struct slc_manifest *b)
{
    CU_ASSERT_EQUAL(a->order, b->order);
    CU_ASSERT_EQUAL(memcmp(a->dims, b->dims, sizeof a->dims), 0);
    CU_ASSERT_EQUAL(a->nnz, b->nnz);
    CU_ASSERT_EQUAL(a->value_type, b->value_type);
    CU_ASSERT_EQUAL(slc_bits_f64(a->sum_of_squares), slc_bits_f64(b->sum_of_squares));
    CU_ASSERT_EQUAL(a->content_sum, b->content_sum);
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
}

static void round_trip(void)
{
    static const double sums[] = {0.0, 1.0, 0.1, 5e-324, 1.7976931348623157e308, INFINITY};
    struct slc_manifest manifest;
    struct slc_manifest read;

    new_folder();
    sample(&manifest);
    for (size_t i = 0; i < SLC_COUNT(sums); i++) {
        struct slc_error err = SLC_ERROR_INIT;

        manifest.sum_of_squares = sums[i];
        SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
        SLC_ASSERT_OK(slc_manifest_read(NULL, folder, &read, &err), &err);
        check_same(&manifest, &read);
    }
}

static void relabel_mode(struct slc_manifest *manifest, unsigned mode)
{
    struct slc_store_permutation *listed = &manifest->permutations[manifest->permutation_count++];

    *listed = (struct slc_store_permutation){
        .mode = mode, .file_bytes = slc_labels_file_bytes(manifest->dims[mode]), .hash = mode + 7};
    snprintf(listed->file, sizeof listed->file, "perm-%u.bin", mode + 1);
}

/* The documented form, checked without the code that wrote it. */
static void checksum_form(void)
{
    const char *prefix = "{\"checksum\":\"xxh3-64:";
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest manifest;
    struct slc_forged text;
    char digits[17];

    new_folder();
    sample(&manifest);
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
    slc_forged_load(&text, file);
    CU_ASSERT_EQUAL(memcmp(text.bytes, prefix, strlen(prefix)), 0);
    memcpy(digits, text.bytes + strlen(prefix), 16);
    digits[16] = '\0';
    memset(text.bytes + strlen(prefix), '0', 16);
    CU_ASSERT_EQUAL(strtoull(digits, NULL, 16), slc_hash64(text.bytes, text.size));
    slc_forged_release(&text);
}

/* The largest manifest there is: 33 layouts, the longest texts, each byte to be replaced. */
static void largest(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest manifest;
    struct slc_manifest read;

    new_folder();
    sample(&manifest);
    manifest.order = 16;
    for (unsigned mode = 0; mode < 16; mode++) {
        manifest.dims[mode] = 256;
    }
    manifest.layout_count = SLC_MAX_LAYOUTS;
    for (unsigned i = 0; i < SLC_MAX_LAYOUTS; i++) {
        struct slc_store_layout *layout = &manifest.layouts[i];

        memset(layout, 0, sizeof *layout);
        memset(layout->file, 'x', sizeof layout->file - 3);
        layout->file[sizeof layout->file - 3] = (char)('0' + i / 10);
        layout->file[sizeof layout->file - 2] = (char)('0' + i % 10);
        layout->layout = i == 0 ? SLC_LAYOUT_BLCO : i <= 16 ? SLC_LAYOUT_SORTED : SLC_LAYOUT_FIBER;
        layout->layout_mode = i == 0 ? 0 : (i - 1) % 16;
        layout->codec = SLC_CODEC_BLCO;
        layout->file_bytes = INT64_MAX;
    }
    for (unsigned mode = 0; mode < 16; mode++) {
        relabel_mode(&manifest, mode);
    }
    memset(manifest.origin.source, 'y', sizeof manifest.origin.source - 1);
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
    SLC_ASSERT_OK(slc_manifest_read(NULL, folder, &read, &err), &err);
    check_same(&manifest, &read);
    memset(manifest.origin.source, 0xff, sizeof manifest.origin.source - 1);
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
    SLC_ASSERT_OK(slc_manifest_read(NULL, folder, &read, &err), &err);
    /* Three bytes for one: cut between characters, 170 of them. */
    CU_ASSERT_EQUAL(strlen(read.origin.source), 510);
}

static void any_bytes_become_utf8(void)
{
    static const struct {
        const char *given;
        const char *kept;
    } texts[] = {
        {"\xff", "\xef\xbf\xbd"},
        {"a\x80z", "a\xef\xbf\xbdz"},
        {"\xc3", "\xef\xbf\xbd"},
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                                 /* a long form */
        {"\xe0\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                 /* another */
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                 /* a surrogate */
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* too large */
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\xe2\x82\xac\xc3\xa4", "\xe2\x82\xac\xc3\xa4"},
        {"\x01\x1f\t\n\"\\/", "\x01\x1f\t\n\"\\/"},
    };
    uint64_t seed = slc_test_seed();
    struct slc_manifest manifest;
    struct slc_manifest read;

    new_folder();
    sample(&manifest);
    for (size_t i = 0; i < SLC_COUNT(texts); i++) {
        struct slc_error err = SLC_ERROR_INIT;

        snprintf(manifest.origin.source, sizeof manifest.origin.source, "%s", texts[i].given);
        SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
        SLC_ASSERT_OK(slc_manifest_read(NULL, folder, &read, &err), &err);
        CU_ASSERT_STRING_EQUAL(read.origin.source, texts[i].kept);
    }
    for (uint64_t round = 0; round < 40; round++) {
        struct slc_error err = SLC_ERROR_INIT;

        memset(manifest.origin.source, 0, sizeof manifest.origin.source);
        for (uint64_t i = 0; i < 12 * round; i++) {
            manifest.origin.source[i] = (char)(1 + slc_random_below(seed, round, i, 255));
        }
        SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
        SLC_ASSERT_OK(slc_manifest_read(NULL, folder, &read, &err), &err);
    }
}

/* Every bit of the file, and every length of it. */
static void every_bit(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest manifest;
    struct slc_manifest read;
    struct slc_forged text;
    uint64_t missed = 0;
    uint64_t whole;

    new_folder();
    sample(&manifest);
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
    slc_forged_load(&text, file);
    whole = text.size;
    for (uint64_t bit = 0; bit < whole * 8; bit++) {
        slc_forged_poke(file, bit / 8, (uint8_t)(text.bytes[bit / 8] ^ 1U << bit % 8));
        slc_error_clear(&err);
        missed += slc_manifest_read(NULL, folder, &read, &err) != SLC_ERR_DAMAGED ||
                  strcmp(err.file, file) != 0;
        slc_forged_poke(file, bit / 8, text.bytes[bit / 8]);
    }
    CU_ASSERT_EQUAL(missed, 0);
    /* One more byte, whatever it is: still JSON for white space, but another file. */
    for (unsigned byte = 0; byte < 256; byte++) {
        slc_forged_poke(file, whole, (uint8_t)byte);
        slc_error_clear(&err);
        missed += slc_manifest_read(NULL, folder, &read, &err) != SLC_ERR_DAMAGED;
    }
    CU_ASSERT_EQUAL(missed, 0);
    for (uint64_t size = whole; size > 0; size--) {
        slc_forged_resize(file, size);
        slc_error_clear(&err);
        missed += slc_manifest_read(NULL, folder, &read, &err) !=
                  (size == whole ? SLC_OK : SLC_ERR_DAMAGED);
    }
    CU_ASSERT_EQUAL(missed, 0);
    slc_forged_release(&text);
}

/* Replaces `from` by `to` in the manifest, seals it and reads it. */
static enum slc_status
read_forged(const char *from, const char *to, struct slc_manifest *read, struct slc_error *err)
{
    static const size_t digits_at = sizeof "{\"checksum\":\"xxh3-64:" - 1;
    struct slc_forged text;
    struct slc_forged altered = {NULL, 0};
    char digits[17];
    char *found;

    slc_forged_load(&text, file);
    text.bytes[text.size] = '\0';
    found = strstr((char *)text.bytes, from);
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    altered.bytes = malloc(text.size + strlen(to) + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(altered.bytes);
    altered.size = (uint64_t)snprintf((char *)altered.bytes, text.size + strlen(to) + 1, "%.*s%s%s",
                                      (int)(found - (char *)text.bytes), (char *)text.bytes, to,
                                      found + strlen(from));
    memset(altered.bytes + digits_at, '0', 16);
    snprintf(digits, sizeof digits, "%016llx",
             (unsigned long long)slc_hash64(altered.bytes, altered.size));
    memcpy(altered.bytes + digits_at, digits, 16);
    slc_forged_save(&altered, file);
    slc_forged_release(&altered);
    slc_forged_release(&text);
    return slc_manifest_read(NULL, folder, read, err);
}

static void forged_members(void)
{
    static const struct {
        const char *from;
        const char *to;
        enum slc_status want;
    } cases[] = {
        {"\"sluice-store\"", "\"other\"", SLC_ERR_FORMAT},
        {"\"version\": 1", "\"version\": 3", SLC_ERR_UNSUPPORTED},
        {"\"version\": 1", "\"version\": 0", SLC_ERR_FORMAT},
        {"\"version\": 1", "\"version\": 1.0", SLC_ERR_FORMAT},
        {"\"dims\"", "\"dimz\"", SLC_ERR_FORMAT},
        {"4611686018427387904", "4611686018427387905", SLC_ERR_FORMAT},
        {"4611686018427387904", "0", SLC_ERR_FORMAT},
        {"4611686018427387904", "-1", SLC_ERR_FORMAT},
        {"4611686018427387904", "\"1\"", SLC_ERR_FORMAT},
        {"4611686018427387904", "99999999999999999999", SLC_ERR_FORMAT},
        {"4611686018427387904", "4611686018427387904, 4611686018427387904, 1024",
         SLC_ERR_UNSUPPORTED},
        {"4611686018427387904", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", SLC_ERR_UNSUPPORTED},
        {"\"nnz\": 123456789012", "\"nnz\": -3", SLC_ERR_FORMAT},
        {"\"nnz\": 123456789012", "\"nnz\": null", SLC_ERR_FORMAT},
        {"\"f32\"", "\"f16\"", SLC_ERR_FORMAT},
        {"3fb999999999999a", "3FB999999999999A", SLC_ERR_FORMAT},
        {"3fb999999999999a", "3fb999999999999", SLC_ERR_FORMAT},
        {"3fb999999999999a", "7ff8000000000000", SLC_ERR_FORMAT},
        {"3fb999999999999a", "bfb999999999999a", SLC_ERR_FORMAT},
        {"\"norm\": 0", "\"norm\": false, \"x\": 0", SLC_ERR_FORMAT},
        {"fedcba9876543210", "fedcba987654321g", SLC_ERR_FORMAT},
        {"\"blco.blk\"", "\"../blco.blk\"", SLC_ERR_FORMAT},
        {"\"blco.blk\"", "\"..\"", SLC_ERR_FORMAT},
        {"\"blco.blk\"", "\"\"", SLC_ERR_FORMAT},
        {"\"blco.blk\"", "\"tensor.json\"", SLC_ERR_FORMAT},
        {"\"blco.blk\"", "\"sorted-3.blk\"", SLC_ERR_FORMAT},
        {"\"blco.blk\"", "\"0123456789012345678901234567890123456789012345678901234567890123\"",
         SLC_ERR_FORMAT},
        {"\"blco.blk\"", "\"a\\u0000b\"", SLC_ERR_FORMAT},
        {"\"layout\": \"blco\"", "\"layout\": \"?\"", SLC_ERR_FORMAT},
        {"\"layout\": \"blco\"", "\"layout\": \"sorted\"", SLC_ERR_FORMAT},
        {"\"mode\": 3", "\"mode\": 0", SLC_ERR_FORMAT},
        {"\"mode\": 3", "\"mode\": 4", SLC_ERR_FORMAT},
        {"\"lz4\"", "\"zstd\"", SLC_ERR_FORMAT},
        {"\"index_bytes\": 4711", "\"index_bytes\": 8192001", SLC_ERR_FORMAT},
        {"\"header_hash\": \"0000000000000001\"", "\"header_hash\": 1", SLC_ERR_FORMAT},
        {"\"origin\": {", "\"origin\": 3, \"x\": {", SLC_ERR_FORMAT},
        {"\"index_base\": 1", "\"index_base\": 2", SLC_ERR_FORMAT},
        {"\"dialect\": \"frostt\"", "\"dialect\": 7", SLC_ERR_FORMAT},
        {"\"nnz\"", "\"nnz\": 5, \"nnz\"", SLC_ERR_FORMAT},
        {"\"nnz\"", "nnz", SLC_ERR_FORMAT},
        {"\"nnz\"", "\"later\": {\"than\": [\"this\", 1.5e300]}, \"nnz\"", SLC_OK},
    };
    struct slc_manifest manifest;
    struct slc_manifest read;

    new_folder();
    sample(&manifest);
    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
        memset(&read, 0x5a, sizeof read);
        status = read_forged(cases[i].from, cases[i].to, &read, &err);
        if (status != cases[i].want) {
            printf("# %s -> %s: status %d (%s)\n", cases[i].from, cases[i].to, status, err.message);
            CU_FAIL("a forged manifest does not get the documented status");
        }
        if (status != SLC_OK) {
            CU_ASSERT_STRING_EQUAL(err.file, file);
            CU_ASSERT_EQUAL(read.order, 0x5a5a5a5aU); /* untouched */
        }
    }
}

static void not_a_store(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest read;
    struct slc_forged large = {NULL, 0};

    new_folder();
    SLC_ASSERT_FAILS(slc_manifest_read(NULL, folder, &read, &err), SLC_ERR_FORMAT, &err,
                     "has not finished");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_manifest_read(NULL, "/nonexistent.slc", &read, &err), SLC_ERR_IO, &err,
                     "opening");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_manifest_read(NULL, "/dev/null", &read, &err), SLC_ERR_FORMAT, &err,
                     "folder");
    slc_error_clear(&err);
    large.size = SLC_MANIFEST_MAX_BYTES + 1;
    large.bytes = calloc(large.size, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(large.bytes);
    slc_forged_save(&large, file);
    SLC_ASSERT_FAILS(slc_manifest_read(NULL, folder, &read, &err), SLC_ERR_UNSUPPORTED, &err,
                     "1048577");
    slc_forged_release(&large);
}

/* A failing write leaves the manifest that was there, or none. */
static void write_faults(void)
{
    static const enum slc_faulty_kind kinds[] = {SLC_FAULTY_OPEN, SLC_FAULTY_WRITE, SLC_FAULTY_SYNC,
                                                 SLC_FAULTY_CLOSE, SLC_FAULTY_RENAME};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest manifest;
    struct slc_manifest changed;
    struct slc_manifest read;
    struct slc_faulty faulty;

    new_folder();
    sample(&manifest);
    changed = manifest;
    changed.nnz = 7;
    slc_faulty_init(&faulty);
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        for (uint64_t k = 1;; k++) {
            enum slc_status status;
            char temporary[320];

            slc_error_clear(&err);
            SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            status = slc_manifest_write(&faulty.table, folder, &changed, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            if (!slc_faulty_fired(&faulty)) {
                SLC_ASSERT_OK(status, &err);
                CU_ASSERT(k > 1);
                break;
            }
            CU_ASSERT_EQUAL(status, SLC_ERR_IO);
            slc_error_clear(&err);
            SLC_ASSERT_OK(slc_manifest_read(NULL, folder, &read, &err), &err);
            CU_ASSERT(read.nnz == manifest.nnz || kinds[i] == SLC_FAULTY_SYNC);
            snprintf(temporary, sizeof temporary, "%s.tmp", file);
            CU_ASSERT_NOT_EQUAL(access(temporary, F_OK), 0);
        }
    }
}

/*
 * Every allocation fails once, those inside jansson included (it is pointed at the fault points for
 * this test only). jansson reports some of its own failures as bad text, so any error will do.
 */
static void memory_faults(void)
{
    struct slc_manifest manifest;
    struct slc_manifest read;
    uint64_t tried = 0;

    new_folder();
    sample(&manifest);
    json_set_alloc_funcs(slc_malloc, slc_free);
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_manifest_write(slc_quick_files(), folder, &manifest, &err);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
        tried++;
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        CU_ASSERT_NOT_EQUAL(access(file, F_OK), 0);
    }
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_manifest_read(NULL, folder, &read, &err);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
        tried++;
        CU_ASSERT_EQUAL(status, err.status);
        if (status == SLC_OK) {
            check_same(&manifest, &read); /* jansson could do without */
        }
    }
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    json_set_alloc_funcs(malloc, free);
    CU_ASSERT(tried > 50);
}

static void write_store(struct slc_made_tensor *tensor)
{
    const uint64_t dims[3] = {50, 60, 70};
    struct slc_error err = SLC_ERROR_INIT;

    new_folder();
    slc_made_tensor_create(tensor, 3, dims, 900, SLC_MADE_COUNTS, slc_test_seed());
    SLC_ASSERT_OK(slc_made_store_write(tensor, NULL, folder, SLC_CODEC_PACKED, 0, &err), &err);
}

static void open_store(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_store store = {.path = NULL};
    struct slc_made_tensor tensor;

    slc_store_close(&store);
    write_store(&tensor);
    SLC_ASSERT_OK(slc_store_open(NULL, folder, &store, &err), &err);
    CU_ASSERT_STRING_EQUAL(store.path, folder);
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
    SLC_ASSERT_OK(slc_manifest_read(NULL, folder, &sound, &err), &err);
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
        SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &other, &err), &err);
        SLC_ASSERT_FAILS(slc_store_open(NULL, folder, &store, &err), SLC_ERR_DAMAGED, &err,
                         "do not belong together");
    }
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &sound, &err), &err);
    /* A listed file that is foreign counts as damaged, one that is missing as an I/O error. */
    snprintf(blocks, sizeof blocks, "%s/blco.blk", folder);
    slc_forged_save(&(struct slc_forged){(uint8_t[]){'h', 'i'}, 2}, blocks);
    SLC_ASSERT_FAILS(slc_store_open(NULL, folder, &store, &err), SLC_ERR_DAMAGED, &err,
                     "not a sluice");
    CU_ASSERT_EQUAL(err.status, SLC_ERR_DAMAGED);
    slc_error_clear(&err);
    CU_ASSERT_EQUAL(unlink(blocks), 0);
    SLC_ASSERT_FAILS(slc_store_open(NULL, folder, &store, &err), SLC_ERR_IO, &err, "opening");
    slc_error_clear(&err);
    /* Without blco there is nothing this version can compute with. */
    sound.layouts[0] = (struct slc_store_layout){
        "sorted-1.blk", SLC_LAYOUT_SORTED, 0, SLC_CODEC_PACKED, 8192, 0, 0, 0};
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &sound, &err), &err);
    SLC_ASSERT_FAILS(slc_store_open(NULL, folder, &store, &err), SLC_ERR_UNSUPPORTED, &err, "blco");
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
        status = slc_store_open(&faulty.table, folder, &store, &err);
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
        status = slc_store_open(NULL, folder, &store, &err);
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
    {"a manifest comes back, sums of squares bit for bit", round_trip},
    {"the checksum has the documented place and value", checksum_form},
    {"the largest manifest", largest},
    {"any bytes become UTF-8", any_bytes_become_utf8},
    {"every flipped bit, every length is found", every_bit},
    {"forged members get the documented status", forged_members},
    {"what is not a store is told apart", not_a_store},
    {"every failing operation of writing", write_faults},
    {"every failing allocation, jansson's included", memory_faults},
    {"a store opens", open_store},
    {"manifest and blocks that do not belong together", mixed_up},
    {"every failing operation of opening a store", open_faults},
};

int main(int argc, char **argv)
{
    return slc_test_main("store", tests, SLC_COUNT(tests), argc, argv);
}
