/* The manifest: everything is read back, in the documented form, text with arbitrary bytes becomes
 * UTF-8, and faults keep the old one. */
#include "faulty_files.h"
#include "forge_file.h"
#include "manifest_fixture.h"
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/hash.h"
#include "base/memory/memory.h"
#include "base/random.h"
#include "storage/manifest/json_text.h"
#include "storage/manifest/labels.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void round_trip(void)
{
    static const double sums[] = {0.0, 1.0, 0.1, 5e-324, 1.7976931348623157e308, INFINITY};
    struct slc_manifest manifest;
    struct slc_manifest read;

    new_store_folder();
    sample(&manifest);
    for (size_t i = 0; i < SLC_COUNT(sums); i++) {
        struct slc_error err = SLC_ERROR_INIT;

        manifest.sum_of_squares = sums[i];
        SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), store_folder, &manifest, &err), &err);
        SLC_ASSERT_OK(slc_manifest_read(NULL, store_folder, &read, &err), &err);
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

    new_store_folder();
    sample(&manifest);
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), store_folder, &manifest, &err), &err);
    slc_forged_load(&text, manifest_file);
    CU_ASSERT_EQUAL(memcmp(text.bytes, prefix, strlen(prefix)), 0);
    memcpy(digits, text.bytes + strlen(prefix), 16);
    digits[16] = '\0';
    memset(text.bytes + strlen(prefix), '0', 16);
    CU_ASSERT_EQUAL(strtoull(digits, NULL, 16), slc_hash64(text.bytes, text.size));
    slc_forged_release(&text);
}

/* The largest possible manifest: 33 layouts, the longest texts, each byte to be replaced. */
static void largest(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest manifest;
    struct slc_manifest read;

    new_store_folder();
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
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), store_folder, &manifest, &err), &err);
    SLC_ASSERT_OK(slc_manifest_read(NULL, store_folder, &read, &err), &err);
    check_same(&manifest, &read);
    memset(manifest.origin.source, 0xff, sizeof manifest.origin.source - 1);
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), store_folder, &manifest, &err), &err);
    SLC_ASSERT_OK(slc_manifest_read(NULL, store_folder, &read, &err), &err);
    /* Each byte becomes three, and the text is truncated after 170 characters. */
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
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong */
        {"\xe0\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* overlong, too */
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* too large */
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\xe2\x82\xac\xc3\xa4", "\xe2\x82\xac\xc3\xa4"},
        {"\x01\x1f\t\n\"\\/", "\x01\x1f\t\n\"\\/"},
    };
    uint64_t seed = slc_test_seed();
    struct slc_manifest manifest;
    struct slc_manifest read;

    new_store_folder();
    sample(&manifest);
    for (size_t i = 0; i < SLC_COUNT(texts); i++) {
        struct slc_error err = SLC_ERROR_INIT;

        snprintf(manifest.origin.source, sizeof manifest.origin.source, "%s", texts[i].given);
        SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), store_folder, &manifest, &err), &err);
        SLC_ASSERT_OK(slc_manifest_read(NULL, store_folder, &read, &err), &err);
        CU_ASSERT_STRING_EQUAL(read.origin.source, texts[i].kept);
    }
    for (uint64_t round = 0; round < 40; round++) {
        struct slc_error err = SLC_ERROR_INIT;

        memset(manifest.origin.source, 0, sizeof manifest.origin.source);
        for (uint64_t i = 0; i < 12 * round; i++) {
            manifest.origin.source[i] = (char)(1 + slc_random_below(seed, round, i, 255));
        }
        SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), store_folder, &manifest, &err), &err);
        SLC_ASSERT_OK(slc_manifest_read(NULL, store_folder, &read, &err), &err);
    }
}

/* A failing write keeps the existing manifest, or leaves none. */
static void write_faults(void)
{
    static const enum slc_faulty_kind kinds[] = {SLC_FAULTY_OPEN, SLC_FAULTY_WRITE, SLC_FAULTY_SYNC,
                                                 SLC_FAULTY_CLOSE, SLC_FAULTY_RENAME};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest manifest;
    struct slc_manifest changed;
    struct slc_manifest read;
    struct slc_faulty faulty;

    new_store_folder();
    sample(&manifest);
    changed = manifest;
    changed.nnz = 7;
    slc_faulty_init(&faulty);
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), store_folder, &manifest, &err), &err);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        for (uint64_t k = 1;; k++) {
            enum slc_status status;
            char temporary[320];

            slc_error_clear(&err);
            SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), store_folder, &manifest, &err),
                          &err);
            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            status = slc_manifest_write(&faulty.table, store_folder, &changed, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            if (!slc_faulty_fired(&faulty)) {
                SLC_ASSERT_OK(status, &err);
                CU_ASSERT(k > 1);
                break;
            }
            /* The second close is of the descriptor used only for the lock. */
            CU_ASSERT_EQUAL(status, kinds[i] == SLC_FAULTY_CLOSE && k == 2 ? SLC_OK : SLC_ERR_IO);
            slc_error_clear(&err);
            SLC_ASSERT_OK(slc_manifest_read(NULL, store_folder, &read, &err), &err);
            CU_ASSERT((read.nnz == manifest.nnz) != (status == SLC_OK) ||
                      kinds[i] == SLC_FAULTY_SYNC);
            snprintf(temporary, sizeof temporary, "%s.tmp", manifest_file);
            CU_ASSERT_NOT_EQUAL(access(temporary, F_OK), 0);
        }
    }
}

/* Every allocation fails once, including those inside jansson (which uses the fault points in this
 * test only): jansson itself reports some of them as invalid text, and others not at all. */
static void memory_faults(void)
{
    struct slc_manifest manifest;
    struct slc_manifest read;
    uint64_t tried = 0;

    new_store_folder();
    sample(&manifest);
    json_set_alloc_funcs(slc_malloc, slc_free);
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_manifest_write(slc_quick_files(), store_folder, &manifest, &err);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
        tried++;
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        CU_ASSERT_NOT_EQUAL(access(manifest_file, F_OK), 0);
    }
    slc_json_record_failures();
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_manifest_read(NULL, store_folder, &read, &err);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
        tried++;
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
    }
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    json_set_alloc_funcs(malloc, free);
    CU_ASSERT(tried > 50);
}

/* Some members, including a text with arbitrary bytes. */
static json_t *document(void)
{
    json_t *object = json_object();
    json_t *list = json_array();

    for (json_int_t i = 0; i < 20; i++) {
        (void)json_array_append_new(list, json_integer(i));
    }
    (void)json_object_set_new(object, "list", list);
    (void)json_object_set_new(object, "real", json_real(0.1));
    (void)json_object_set_new(object, "text", slc_json_string("a\xff\xc3\xa9"));
    return object;
}

/* Documents are read and written completely: a failed allocation that loses a member is an error,
 * and errors of invalid text have the line. */
static void json_documents(void)
{
    static const char *const unsound[] = {"", "{", "{\"a\": 1, \"a\": 2}", "[1,\n2,]", "\xff"};
    struct slc_error err = SLC_ERROR_INIT;
    json_t *root = NULL;
    char *text = NULL;
    uint64_t tried = 0;

    for (size_t i = 0; i < SLC_COUNT(unsound); i++) {
        err = (struct slc_error)SLC_ERROR_INIT;
        SLC_ASSERT_FAILS(
            slc_json_read(unsound[i], strlen(unsound[i]), "it", SLC_ERR_INPUT, &root, &err),
            SLC_ERR_INPUT, &err, "it is not valid JSON: line");
        CU_ASSERT_PTR_NULL(root);
    }
    err = (struct slc_error)SLC_ERROR_INIT;
    SLC_ASSERT_FAILS(slc_json_write(NULL, "it", &text, &err), SLC_ERR_INPUT, &err, "UTF-8");
    json_set_alloc_funcs(slc_malloc, slc_free);
    for (uint64_t k = 1;; k++) {
        enum slc_status status;
        json_t *made;
        bool through;

        err = (struct slc_error)SLC_ERROR_INIT;
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        slc_json_begin();
        made = document();
        status = slc_json_whole("it", NULL);
        CU_ASSERT(status == SLC_OK || status == SLC_ERR_MEMORY);
        status = slc_json_write(made, "it", &text, &err);
        through = slc_fault_seen(SLC_FAULT_ALLOCATION) < k;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        json_decref(made);
        if (through) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
        tried++;
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        CU_ASSERT_PTR_NULL(text);
    }
    CU_ASSERT(tried > 20);
    SLC_ASSERT_OK(slc_json_read(text, strlen(text), "it", SLC_ERR_INPUT, &root, &err), &err);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(root, "list")), 20);
    CU_ASSERT_EQUAL(json_real_value(json_object_get(root, "real")), 0.1);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(root, "text")),
                           "a\xef\xbf\xbd\xc3\xa9");
    json_decref(root);
    free(text);
    json_set_alloc_funcs(malloc, free);
}

static const struct slc_test tests[] = {
    {"a manifest comes back, sums of squares bit for bit", round_trip},
    {"the checksum has the documented place and value", checksum_form},
    {"the largest manifest", largest},
    {"any bytes become UTF-8", any_bytes_become_utf8},
    {"every failing operation of writing", write_faults},
    {"every failing allocation, jansson's included", memory_faults},
    {"JSON is whole, or none", json_documents},
};

SLC_SUITE(manifest)
{
    return slc_test_main("manifest", tests, SLC_COUNT(tests), argc, argv);
}
