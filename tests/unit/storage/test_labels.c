/* Permutations of relabelled modes: every mode size around the unit of packing is read back,
 * inverting twice is the identity, every flipped bit is found with its file name, a non-permutation
 * is rejected even with a valid checksum, and faults leave no files. */
#include "faulty_files.h"
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/memory.h"
#include "base/random.h"
#include "storage/manifest/labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A random permutation (Fisher and Yates). */
static void shuffle(struct slc_labels *labels, uint64_t length, uint64_t seed)
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_labels_create(labels, length, &err), &err);
    for (uint64_t i = 0; i < length; i++) {
        labels->label[i] = (uint32_t)i;
    }
    for (uint64_t i = length - 1; i > 0; i--) {
        uint64_t other = slc_random_below(seed, 0, i, i + 1);
        uint32_t held = labels->label[i];

        labels->label[i] = labels->label[other];
        labels->label[other] = held;
    }
}

static bool same(const struct slc_labels *a, const struct slc_labels *b)
{
    return a->length == b->length && memcmp(a->label, b->label, a->length * 4) == 0;
}

static void
put(const char *folder, uint64_t length, uint64_t seed, struct slc_store_permutation *listed)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_labels labels;

    shuffle(&labels, length, seed);
    SLC_ASSERT_OK(slc_labels_write(&labels, slc_quick_files(), folder, 2, listed, &err), &err);
    slc_labels_destroy(&labels);
}

/* Labels found in the file equal those found in memory. */
static void check_find(const char *folder,
                       const struct slc_store_permutation *listed,
                       const struct slc_labels *labels)
{
    const uint64_t last = labels->length - 1;
    const uint64_t ranges[][2] = {
        {0, last}, {0, 0}, {last, last}, {last / 3, last / 2}, {last + 1, UINT64_MAX}};

    for (size_t r = 0; r < SLC_COUNT(ranges); r++) {
        uint64_t low = ranges[r][0], high = ranges[r][1];
        uint64_t first = UINT64_MAX, end = 0;
        struct slc_error err = SLC_ERROR_INIT;

        for (uint64_t i = 0; i <= last; i++) {
            if (labels->label[i] >= low && labels->label[i] <= high) {
                first = first == UINT64_MAX ? i : first;
                end = i;
            }
        }
        SLC_ASSERT_OK(
            slc_labels_find(slc_quick_files(), folder, listed, labels->length, &low, &high, &err),
            &err);
        CU_ASSERT(low == first && high == end);
    }
}

static void round_trip(void)
{
    static const uint64_t lengths[] = {2,   3,   4,    5,    63,   64,    65,    127,
                                       128, 129, 1000, 4096, 4097, 65535, 65537, 300001};
    const char *folder = slc_test_folder();

    for (size_t i = 0; i < SLC_COUNT(lengths); i++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_store_permutation listed;
        struct slc_labels expected, read;

        put(folder, lengths[i], i, &listed);
        shuffle(&expected, lengths[i], i);
        CU_ASSERT_EQUAL(listed.mode, 2);
        CU_ASSERT_STRING_EQUAL(listed.file, "perm-3.bin");
        CU_ASSERT_EQUAL(listed.file_bytes, slc_labels_file_bytes(lengths[i]));
        SLC_ASSERT_OK(slc_labels_read(slc_quick_files(), folder, &listed, lengths[i], &read, &err),
                      &err);
        CU_ASSERT(same(&expected, &read));
        check_find(folder, &listed, &read);
        slc_labels_invert(&read);
        for (uint64_t k = 0; k < lengths[i]; k++) {
            CU_ASSERT_FATAL(read.label[expected.label[k]] == k);
        }
        slc_labels_invert(&read);
        CU_ASSERT(same(&expected, &read));
        slc_labels_destroy(&expected);
        slc_labels_destroy(&read);
    }
}

static void limits(void)
{
    CU_ASSERT_EQUAL(slc_labels_file_bytes(1), 0);
    CU_ASSERT_EQUAL(slc_labels_memory_bytes(1), 0);
    CU_ASSERT_EQUAL(slc_labels_file_bytes(2), 72);
    CU_ASSERT_EQUAL(slc_labels_file_bytes(SLC_LABELS_MAX_LENGTH),
                    64 + SLC_LABELS_MAX_LENGTH / 8 * 31);
    CU_ASSERT_EQUAL(slc_labels_file_bytes(SLC_LABELS_MAX_LENGTH + 1), 0);
    CU_ASSERT_EQUAL(slc_labels_memory_bytes(UINT64_C(1) << 62), 0);
}

static void sound(void)
{
    struct slc_labels labels;

    shuffle(&labels, 1000, 3);
    CU_ASSERT(slc_labels_sound(&labels));
    CU_ASSERT(slc_labels_sound(&labels));
    labels.label[500] = labels.label[3];
    CU_ASSERT_FALSE(slc_labels_sound(&labels));
    labels.label[500] = 1000;
    CU_ASSERT_FALSE(slc_labels_sound(&labels));
    CU_ASSERT_EQUAL(labels.label[500], 1000);
    slc_labels_destroy(&labels);
}

/* Flips every bit of the file; each flip must be found. */
static void every_bit(void)
{
    const char *folder = slc_test_folder();
    struct slc_store_permutation listed;
    struct slc_faulty faulty;
    uint64_t low = 0, high = 36;

    put(folder, 37, 1, &listed);
    slc_faulty_init(&faulty);
    for (uint64_t bit = 0; bit < 8 * listed.file_bytes; bit++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_labels labels;

        slc_faulty_flip(&faulty, 1, bit);
        SLC_ASSERT_FAILS(slc_labels_read(&faulty.table, folder, &listed, 37, &labels, &err),
                         SLC_ERR_DAMAGED, &err, "checksum");
        CU_ASSERT_PTR_NOT_NULL(strstr(err.file, "perm-3.bin"));
        CU_ASSERT_PTR_NULL(labels.label);
        /* The file is read in two pieces. */
        slc_error_clear(&err);
        slc_faulty_flip(&faulty, bit < 8 * 64 ? 1 : 2, bit < 8 * 64 ? bit : bit - 8 * 64);
        SLC_ASSERT_FAILS(slc_labels_find(&faulty.table, folder, &listed, 37, &low, &high, &err),
                         SLC_ERR_DAMAGED, &err, "checksum");
        CU_ASSERT(low == 0 && high == 36 && strstr(err.file, "perm-3.bin") != NULL);
    }
    CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
}

static void refuse(const char *folder, const struct slc_store_permutation *listed, const char *part)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_labels labels;

    SLC_ASSERT_FAILS(slc_labels_read(slc_quick_files(), folder, listed, 37, &labels, &err),
                     SLC_ERR_DAMAGED, &err, part);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.file, "perm-3.bin"));
}

/* Changes the file, recomputes the checksum and expects the error. */
static void forge(const char *folder,
                  const char *path,
                  struct slc_store_permutation listed,
                  uint64_t offset,
                  unsigned byte,
                  const char *part)
{
    uint8_t bytes[256];
    FILE *file = fopen(path, "r+b");
    uint8_t old;

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fread(bytes, 1, sizeof bytes, file), listed.file_bytes);
    old = bytes[offset];
    bytes[offset] = (uint8_t)byte;
    listed.hash = slc_hash64(bytes, listed.file_bytes);
    rewind(file);
    CU_ASSERT_EQUAL(fwrite(bytes, 1, listed.file_bytes, file), listed.file_bytes);
    fclose(file);
    refuse(folder, &listed, part);
    bytes[offset] = old;
    file = fopen(path, "r+b");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(bytes, 1, listed.file_bytes, file), listed.file_bytes);
    fclose(file);
}

static void forged(void)
{
    const char *folder = slc_test_folder();
    struct slc_store_permutation listed;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_labels labels;
    char path[400];

    /* 37 labels of 6 bits: 222 bits in 28 bytes, 4 bytes of padding. */
    put(folder, 37, 1, &listed);
    CU_ASSERT_EQUAL(listed.file_bytes, 96);
    snprintf(path, sizeof path, "%s/perm-3.bin", folder);
    forge(folder, path, listed, 0, 0x88, "header");
    forge(folder, path, listed, 8, 36, "header");
    forge(folder, path, listed, 16, 1, "header");
    forge(folder, path, listed, 20, 7, "header");
    forge(folder, path, listed, 63, 1, "header");
    forge(folder, path, listed, 95, 1, "not zero");
    forge(folder, path, listed, 64 + 27, 0xff, "not zero");
    forge(folder, path, listed, 64 + 9, 0xff, "not a permutation");
    forge(folder, path, listed, 64 + 10, 0, "not a permutation");
    SLC_ASSERT_OK(slc_labels_read(slc_quick_files(), folder, &listed, 37, &labels, &err), &err);
    slc_labels_destroy(&labels);
    CU_ASSERT_EQUAL(truncate(path, 95), 0);
    refuse(folder, &listed, "96 bytes");
    CU_ASSERT_EQUAL(unlink(path), 0);
    refuse(folder, &listed, "missing");
}

/* The k-th operation of every kind fails, when reading and writing. */
static void failing_files(void)
{
    static const enum slc_faulty_kind kinds[] = {SLC_FAULTY_OPEN,  SLC_FAULTY_READ,
                                                 SLC_FAULTY_WRITE, SLC_FAULTY_SYNC,
                                                 SLC_FAULTY_STAT,  SLC_FAULTY_RENAME};
    const char *folder = slc_test_folder();
    struct slc_store_permutation good;

    put(folder, 1000, 1, &good);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        for (uint64_t k = 1; k < 10; k++) {
            struct slc_store_permutation listed;
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_faulty faulty;
            struct slc_labels labels;
            enum slc_status status;

            slc_faulty_init(&faulty);
            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            shuffle(&labels, 1000, 1);
            status = slc_labels_write(&labels, &faulty.table, folder, 2, &listed, &err);
            slc_labels_destroy(&labels);
            if (status == SLC_OK) {
                status = slc_labels_read(&faulty.table, folder, &listed, 1000, &labels, &err);
                slc_labels_destroy(&labels);
            }
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            if (!slc_faulty_fired(&faulty)) {
                SLC_ASSERT_OK(status, &err);
                break;
            }
            CU_ASSERT_EQUAL(status, SLC_ERR_IO);
        }
    }
}

static void failing_memory(void)
{
    const char *folder = slc_test_folder();

    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_store_permutation listed;
        struct slc_labels labels;
        enum slc_status status;

        shuffle(&labels, 1000, 1);
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_labels_write(&labels, slc_quick_files(), folder, 2, &listed, &err);
        slc_labels_destroy(&labels);
        if (status == SLC_OK) {
            status = slc_labels_read(slc_quick_files(), folder, &listed, 1000, &labels, &err);
            if (status == SLC_OK) {
                slc_labels_destroy(&labels);
            }
        }
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
            SLC_ASSERT_OK(status, &err);
            break;
        }
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
    }
}

static void list(struct slc_manifest *manifest, unsigned mode)
{
    struct slc_store_permutation *listed = &manifest->permutations[manifest->permutation_count++];

    *listed = (struct slc_store_permutation){
        .mode = mode, .file_bytes = slc_labels_file_bytes(manifest->dims[mode]), .hash = mode + 7};
    snprintf(listed->file, sizeof listed->file, "perm-%u.bin", mode + 1);
}

static void sample(struct slc_manifest *manifest)
{
    *manifest = (struct slc_manifest){
        .order = 3, .dims = {UINT64_C(1) << 40, 1, 1000}, .value_type = SLC_F32, .layout_count = 1};
    manifest->layouts[0] =
        (struct slc_store_layout){.file = "blco.blk", .layout = SLC_LAYOUT_BLCO, .codec = 1};
}

/* Relabelled modes are read back, and make a store of version 2, which older programs reject. */
static void listed_modes(void)
{
    const char *folder = slc_test_folder();
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_manifest manifest, read;

    sample(&manifest);
    manifest.dims[1] = 2;
    for (unsigned relabelled = 0; relabelled < 2; relabelled++) {
        char *path = slc_path_join(folder, SLC_MANIFEST_NAME);
        void *text = NULL;
        uint64_t bytes;

        SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
        SLC_ASSERT_OK(slc_manifest_read(NULL, folder, &read, &err), &err);
        CU_ASSERT_EQUAL(read.permutation_count, relabelled * 2);
        SLC_ASSERT_OK(slc_file_load(slc_quick_files(), path, 1 << 20, &text, &bytes, &err), &err);
        CU_ASSERT_PTR_NOT_NULL(strstr(text, relabelled ? "\"version\": 2" : "\"version\": 1"));
        slc_free(text);
        slc_free(path);
        CU_ASSERT_EQUAL(slc_manifest_permutation(&read, 2) != NULL, relabelled == 1);
        CU_ASSERT_PTR_NULL(slc_manifest_permutation(&read, 0));
        list(&manifest, 1);
        list(&manifest, 2);
    }
}

/* Lists of permutations that no writer writes, each with a valid checksum. */
static void forged_lists(void)
{
    for (unsigned wrong = 0; wrong < 7; wrong++) {
        const char *folder = slc_test_folder();
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_manifest manifest, read;

        sample(&manifest);
        list(&manifest, wrong == 0 ? 1 : 2);
        switch (wrong) {
        case 0: /* a mode of size 1 */
            break;
        case 1:
            manifest.permutations[0].mode = 3;
            break;
        case 2:
            manifest.permutations[0].file_bytes++;
            break;
        case 3:
            snprintf(manifest.permutations[0].file, 64, "../perm-3.bin");
            break;
        case 4:
            snprintf(manifest.permutations[0].file, 64, "blco.blk");
            break;
        case 5: /* a mode twice */
            list(&manifest, 2);
            snprintf(manifest.permutations[1].file, 64, "other.bin");
            break;
        default: /* a permutation longer than possible */
            manifest.permutations[0].mode = 0;
            break;
        }
        SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
        SLC_ASSERT_FAILS(slc_manifest_read(NULL, folder, &read, &err), SLC_ERR_FORMAT, &err,
                         "the manifest's member");
    }
}

static const struct slc_test tests[] = {
    {"write, read, invert", round_trip},
    {"lengths that are possible", limits},
    {"recognizing permutations", sound},
    {"every altered bit is found", every_bit},
    {"forged files", forged},
    {"failing file operations", failing_files},
    {"failing allocations", failing_memory},
    {"relabelled modes in the manifest", listed_modes},
    {"forged lists of permutations", forged_lists},
};

SLC_SUITE(labels)
{
    return slc_test_main("labels", tests, SLC_COUNT(tests), argc, argv);
}
