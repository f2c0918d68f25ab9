/* Invalid manifests: every flipped bit is found, forged members get the documented status, and
 * folders that are no stores are distinguished. */
#include "faulty_files.h"
#include "forge_file.h"
#include "manifest_fixture.h"
#include "slc_test.h"

#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Flips every bit of the file, and tries every shorter length. */
static void every_bit(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest manifest;
    struct slc_manifest read;
    struct slc_forged text;
    uint64_t missed = 0;
    uint64_t whole;

    new_store_folder();
    sample(&manifest);
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), store_folder, &manifest, &err), &err);
    slc_forged_load(&text, manifest_file);
    whole = text.size;
    for (uint64_t bit = 0; bit < whole * 8; bit++) {
        slc_forged_poke(manifest_file, bit / 8, (uint8_t)(text.bytes[bit / 8] ^ 1U << bit % 8));
        slc_error_clear(&err);
        missed += slc_manifest_read(NULL, store_folder, &read, &err) != SLC_ERR_DAMAGED ||
                  strcmp(err.file, manifest_file) != 0;
        slc_forged_poke(manifest_file, bit / 8, text.bytes[bit / 8]);
    }
    CU_ASSERT_EQUAL(missed, 0);
    /* One more byte, of any value: white space keeps it valid JSON, but it is another file. */
    for (unsigned byte = 0; byte < 256; byte++) {
        slc_forged_poke(manifest_file, whole, (uint8_t)byte);
        slc_error_clear(&err);
        missed += slc_manifest_read(NULL, store_folder, &read, &err) != SLC_ERR_DAMAGED;
    }
    CU_ASSERT_EQUAL(missed, 0);
    for (uint64_t size = whole; size > 0; size--) {
        slc_forged_resize(manifest_file, size);
        slc_error_clear(&err);
        missed += slc_manifest_read(NULL, store_folder, &read, &err) !=
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

    slc_forged_load(&text, manifest_file);
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
    slc_forged_save(&altered, manifest_file);
    slc_forged_release(&altered);
    slc_forged_release(&text);
    return slc_manifest_read(NULL, store_folder, read, err);
}

/* Each case replaces a text of the manifest. */
static const struct {
    const char *from;
    const char *to;
    enum slc_status want;
} forged_cases[] = {
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
    {"4611686018427387904", "4611686018427387904, 4611686018427387904, 1024", SLC_ERR_UNSUPPORTED},
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
    {"\"values\": {", "\"values\": 5, \"x\": {", SLC_ERR_FORMAT},
    {"\"minimum\": -2.5", "\"minimum\": 0.0", SLC_ERR_FORMAT},
    {"\"minimum\": -2.5", "\"minimum\": -3.5", SLC_ERR_FORMAT},
    {"\"minimum\": -2.5", "\"minimum\": null", SLC_ERR_FORMAT},
    {"\"integers\": false", "\"integers\": 0", SLC_ERR_FORMAT},
    {"\"zeros\": 7", "\"zeros\": -7", SLC_ERR_FORMAT},
    {"\"zeros\": 7", "\"zeros\": 123456789013", SLC_ERR_FORMAT},
    {"\"distinct\": [", "\"distinct\": [], \"x\": [", SLC_ERR_FORMAT},
    {"\"distinct\": [", "\"distinct\": [-2.5, ", SLC_ERR_FORMAT},
    {"\"distinct\": [", "\"distinct\": [\"a\", ", SLC_ERR_FORMAT},
    {"\"distinct\": [",
     "\"distinct\": [-2.5,-2.4,-2.3,-2.2,-2.1,-2,-1.9,-1.8,-1.7,-1.6,-1.5,"
     "-1.4,-1.3,-1.2,-1.1,0,0.1], \"x\": [",
     SLC_ERR_FORMAT},
    {"\"keep_zeros\": true", "\"keep_zeros\": 1", SLC_ERR_FORMAT},
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
    {"\"appended\": [", "\"appended\": [], \"x\": [", SLC_ERR_FORMAT},
    {"\"appended\": [", "\"appended\": [3, ", SLC_ERR_FORMAT},
    {"\"appended\": [", "\"appended\": {}, \"x\": [", SLC_ERR_FORMAT},
    {"\"transforms\": \"", "\"transforms\": 3, \"x\": \"", SLC_ERR_FORMAT},
    {"\"content\": \"f", "\"content\": \"g", SLC_ERR_FORMAT},
    {"\"entries\": 7", "\"entries\": -7", SLC_ERR_FORMAT},
    {"\"origin\": {", "\"origin\": 3, \"x\": {", SLC_ERR_FORMAT},
    {"\"index_base\": 1", "\"index_base\": 2", SLC_ERR_FORMAT},
    {"\"dialect\": \"frostt\"", "\"dialect\": 7", SLC_ERR_FORMAT},
    {"\"nnz\"", "\"nnz\": 5, \"nnz\"", SLC_ERR_FORMAT},
    {"\"nnz\"", "nnz", SLC_ERR_FORMAT},
    {"\"nnz\"", "\"later\": {\"than\": [\"this\", 1.5e300]}, \"nnz\"", SLC_OK},
};

static void forged_members(void)
{
    struct slc_manifest manifest;
    struct slc_manifest read;

    new_store_folder();
    sample(&manifest);
    for (size_t i = 0; i < SLC_COUNT(forged_cases); i++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), store_folder, &manifest, &err), &err);
        memset(&read, 0x5a, sizeof read);
        status = read_forged(forged_cases[i].from, forged_cases[i].to, &read, &err);
        if (status != forged_cases[i].want) {
            printf("# %s -> %s: status %d (%s)\n", forged_cases[i].from, forged_cases[i].to, status,
                   err.message);
            CU_FAIL("a forged manifest does not get the documented status");
        }
        if (status != SLC_OK) {
            CU_ASSERT_STRING_EQUAL(err.file, manifest_file);
            CU_ASSERT_EQUAL(read.order, 0x5a5a5a5aU); /* an error leaves the manifest unchanged */
        }
    }
}

static void not_a_store(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest read;
    struct slc_forged large = {NULL, 0};

    new_store_folder();
    SLC_ASSERT_FAILS(slc_manifest_read(NULL, store_folder, &read, &err), SLC_ERR_FORMAT, &err,
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
    slc_forged_save(&large, manifest_file);
    SLC_ASSERT_FAILS(slc_manifest_read(NULL, store_folder, &read, &err), SLC_ERR_UNSUPPORTED, &err,
                     "1048577");
    slc_forged_release(&large);
}

static const struct slc_test tests[] = {
    {"every flipped bit, every length is found", every_bit},
    {"forged members get the documented status", forged_members},
    {"folders that are no stores are distinguished", not_a_store},
};

SLC_SUITE(manifest_forged)
{
    return slc_test_main("manifest_forged", tests, SLC_COUNT(tests), argc, argv);
}
