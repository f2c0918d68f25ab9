/* Names of indices: any number of any lengths are read back, one at a time and in any order; every
 * changed byte is found with its file name, forged files are rejected despite valid checksums, and
 * faults leave no files. */
#include "faulty_files.h"
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/memory.h"
#include "base/random.h"
#include "storage/manifest/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char name_of[SLC_NAME_BYTES_MAX + 1];

/* Length of the name of an index, stored in name_of: mostly some letters, often none, rarely
 * long. */
static size_t make_name(uint64_t seed, uint64_t index)
{
    const uint64_t draw = slc_random_below(seed, 0, index, 1000);
    const size_t bytes = draw < 100    ? 0
                         : draw == 999 ? SLC_NAME_BYTES_MAX
                                       : (size_t)slc_random_below(seed, 1, index, 20);

    for (size_t i = 0; i < bytes; i++) {
        name_of[i] = (char)(1 + (index * 31 + i * 7 + seed) % 255);
    }
    return bytes;
}

static enum slc_status write_names(const struct slc_files *files,
                                   const char *folder,
                                   uint64_t count,
                                   struct slc_store_names *listed,
                                   struct slc_error *err)
{
    struct slc_names_writer *writer;
    enum slc_status status = slc_names_writer_open(files, folder, 2, &writer, err);

    if (status != SLC_OK) {
        return status;
    }
    for (uint64_t i = 0; i < count && status == SLC_OK; i++) {
        const size_t bytes = make_name(count, i);

        CU_ASSERT_EQUAL(slc_names_writer_count(writer), i);
        status = slc_names_writer_add(writer, name_of, bytes, err);
    }
    if (status != SLC_OK) {
        slc_names_writer_abandon(writer);
        return status;
    }
    return slc_names_writer_finish(writer, listed, err);
}

static void expect(struct slc_names *names, uint64_t count, uint64_t index)
{
    struct slc_error err = SLC_ERROR_INIT;
    const char *name;
    size_t bytes;

    SLC_ASSERT_OK(slc_names_get(names, index, &name, &bytes, &err), &err);
    if (index >= count) {
        CU_ASSERT(name == NULL && bytes == 0);
        return;
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(name);
    CU_ASSERT_EQUAL_FATAL(bytes, make_name(count, index));
    CU_ASSERT(memcmp(name, name_of, bytes) == 0 && name[bytes] == '\0');
}

static void round_trips(void)
{
    static const uint64_t counts[] = {0, 1, 2, 1023, 1024, 1025, 2048, 5000};
    const char *folder = slc_test_folder();

    for (size_t k = 0; k < SLC_COUNT(counts); k++) {
        const uint64_t count = counts[k];
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_store_names listed;
        struct slc_names *names;

        SLC_ASSERT_OK(write_names(slc_quick_files(), folder, count, &listed, &err), &err);
        CU_ASSERT(listed.mode == 2 && listed.count == count);
        CU_ASSERT_STRING_EQUAL(listed.file, "names-3.bin");
        SLC_ASSERT_OK(slc_names_verify(slc_quick_files(), folder, &listed, &err), &err);
        SLC_ASSERT_OK(slc_names_open(slc_quick_files(), folder, &listed, &names, &err), &err);
        CU_ASSERT_EQUAL(slc_names_count(names), count);
        for (uint64_t i = 0; i < count + 2; i++) {
            expect(names, count, i);
        }
        for (uint64_t i = 0; i < 200 && count > 0; i++) {
            expect(names, count, slc_random_below(9, 0, i, count));
        }
        expect(names, count, UINT64_MAX);
        slc_names_close(names);
    }
}

static void refused_names(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_names_writer *writer;
    const char *folder = slc_test_folder();
    static char longest[SLC_NAME_BYTES_MAX + 1];
    char path[400];

    memset(longest, 'x', sizeof longest);
    SLC_ASSERT_OK(slc_names_writer_open(slc_quick_files(), folder, 0, &writer, &err), &err);
    SLC_ASSERT_FAILS(slc_names_writer_add(writer, longest, sizeof longest, &err), SLC_ERR_INPUT,
                     &err, "4096 bytes");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_names_writer_add(writer, "a\0b", 3, &err), SLC_ERR_INPUT, &err,
                     "zero byte");
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_names_writer_add(writer, longest, SLC_NAME_BYTES_MAX, &err), &err);
    CU_ASSERT_EQUAL(slc_names_writer_count(writer), 1);
    slc_names_writer_abandon(writer);
    snprintf(path, sizeof path, "%s/names-1.bin", folder);
    CU_ASSERT(access(path, F_OK) != 0);
    snprintf(path, sizeof path, "%s/names-1.bin.tmp", folder);
    CU_ASSERT(access(path, F_OK) != 0);
}

static void load_file(const char *path, uint8_t *bytes, uint64_t count)
{
    FILE *file = fopen(path, "rb");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL_FATAL(fread(bytes, 1, count, file), count);
    fclose(file);
}

static void store_file(const char *path, const uint8_t *bytes, uint64_t count)
{
    FILE *file = fopen(path, "wb");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL_FATAL(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

/* Every changed byte of a file is found. */
static void every_byte(void)
{
    enum { NAMES = 30 };
    const char *folder = slc_test_folder();
    struct slc_store_names listed;
    struct slc_error err = SLC_ERROR_INIT;
    static uint8_t bytes[1 << 16];
    char path[400];

    snprintf(path, sizeof path, "%s/names-3.bin", folder);
    SLC_ASSERT_OK(write_names(slc_quick_files(), folder, NAMES, &listed, &err), &err);
    CU_ASSERT_FATAL(listed.file_bytes <= sizeof bytes);
    load_file(path, bytes, listed.file_bytes);
    for (uint64_t i = 0; i < listed.file_bytes; i++) {
        bytes[i] ^= (uint8_t)(1u << i % 8);
        store_file(path, bytes, listed.file_bytes);
        slc_error_clear(&err);
        CU_ASSERT_EQUAL(slc_names_verify(slc_quick_files(), folder, &listed, &err),
                        SLC_ERR_DAMAGED);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.file, "names-3.bin"));
        bytes[i] ^= (uint8_t)(1u << i % 8);
    }
    store_file(path, bytes, listed.file_bytes - 1);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_names_verify(slc_quick_files(), folder, &listed, &err), SLC_ERR_DAMAGED,
                     &err, "the size in the manifest");
    CU_ASSERT_EQUAL(unlink(path), 0);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_names_verify(slc_quick_files(), folder, &listed, &err), SLC_ERR_DAMAGED,
                     &err, "missing");
}

/* Recomputes all checksums of a changed file. */
static void make_right(uint8_t *bytes, struct slc_store_names *listed)
{
    uint8_t *tail = bytes + listed->file_bytes - SLC_NAMES_TAIL_BYTES;
    const uint64_t table = slc_load_u64(tail + SLC_NAMES_TAIL_TABLE);

    if (table >= SLC_NAMES_HEAD_BYTES && table <= listed->file_bytes - SLC_NAMES_TAIL_BYTES - 16) {
        const uint64_t begin = slc_load_u64(bytes + table);

        if (begin <= table) {
            slc_store_u64(bytes + table + SLC_NAMES_ENTRY_HASH,
                          slc_hash64(bytes + begin, table - begin));
        }
    }
    listed->hash = slc_hash64(bytes, listed->file_bytes);
}

/* Files that no writer writes, with valid checksums, are rejected, or read without harm. */
static void forged(void)
{
    enum { NAMES = 12 };
    static const uint64_t values[] = {0,         1,         63, 64, 65, 4096, UINT64_C(1) << 32,
                                      INT64_MAX, UINT64_MAX};
    const char *folder = slc_test_folder();
    struct slc_store_names sound;
    struct slc_error err = SLC_ERROR_INIT;
    static uint8_t bytes[1 << 16], altered[1 << 16];
    unsigned refused = 0;
    char path[400];

    snprintf(path, sizeof path, "%s/names-3.bin", folder);
    SLC_ASSERT_OK(write_names(slc_quick_files(), folder, NAMES, &sound, &err), &err);
    CU_ASSERT_FATAL(sound.file_bytes <= sizeof bytes);
    load_file(path, bytes, sound.file_bytes);
    for (uint64_t at = 0; at + 8 <= sound.file_bytes; at += 4) {
        for (size_t v = 0; v < SLC_COUNT(values); v++) {
            struct slc_store_names listed = sound;

            memcpy(altered, bytes, sound.file_bytes);
            slc_store_u64(altered + at, values[v]);
            make_right(altered, &listed);
            store_file(path, altered, listed.file_bytes);
            slc_error_clear(&err);
            refused += slc_names_verify(slc_quick_files(), folder, &listed, &err) != SLC_OK;
            CU_ASSERT(err.status == SLC_OK || err.status == SLC_ERR_DAMAGED);
        }
    }
    CU_ASSERT(refused > 100);
    /* A zero byte in place of each byte of a name: found by the check and by every reader. */
    for (uint64_t at = SLC_NAMES_HEAD_BYTES + 4 * NAMES;
         at < sound.file_bytes - SLC_NAMES_TAIL_BYTES - SLC_NAMES_ENTRY_BYTES; at++) {
        struct slc_store_names listed = sound;
        struct slc_names *names = NULL;
        const char *name;
        size_t length;

        memcpy(altered, bytes, sound.file_bytes);
        altered[at] = 0;
        make_right(altered, &listed);
        store_file(path, altered, listed.file_bytes);
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(slc_names_verify(slc_quick_files(), folder, &listed, &err),
                         SLC_ERR_DAMAGED, &err, "zero byte");
        SLC_ASSERT_OK(slc_names_open(slc_quick_files(), folder, &listed, &names, &err), &err);
        SLC_ASSERT_FAILS(slc_names_get(names, 0, &name, &length, &err), SLC_ERR_DAMAGED, &err,
                         "zero byte");
        slc_names_close(names);
    }
    for (uint64_t count = 0; count < 3; count++) {
        struct slc_store_names listed = sound;

        store_file(path, bytes, sound.file_bytes);
        listed.count = count == 2 ? UINT64_C(1) << 60 : count;
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(slc_names_verify(slc_quick_files(), folder, &listed, &err),
                         SLC_ERR_DAMAGED, &err, "agree");
    }
}

static void failing_files(void)
{
    static const enum slc_faulty_kind kinds[] = {SLC_FAULTY_OPEN,  SLC_FAULTY_READ,
                                                 SLC_FAULTY_WRITE, SLC_FAULTY_SYNC,
                                                 SLC_FAULTY_STAT,  SLC_FAULTY_RENAME};
    const char *folder = slc_test_folder();

    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        for (uint64_t k = 1; k < 20; k++) {
            struct slc_store_names listed;
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_faulty faulty;
            enum slc_status status;

            slc_faulty_init(&faulty);
            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            status = write_names(&faulty.table, folder, 1500, &listed, &err);
            if (status == SLC_OK) {
                status = slc_names_verify(&faulty.table, folder, &listed, &err);
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
        struct slc_store_names listed;
        enum slc_status status;
        bool fired;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = write_names(slc_quick_files(), folder, 1500, &listed, &err);
        if (status == SLC_OK) {
            status = slc_names_verify(slc_quick_files(), folder, &listed, &err);
        }
        fired = slc_fault_seen(SLC_FAULT_ALLOCATION) >= k;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        if (!fired) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
    }
}

/* Names and titles listed in a manifest are read back, and forged lists are rejected. */
static void listed_in_manifest(void)
{
    const char *folder = slc_test_folder();
    struct slc_error err = SLC_ERROR_INIT;
    static struct slc_manifest manifest, read;

    manifest = (struct slc_manifest){
        .order = 3, .dims = {UINT64_C(1) << 40, 1, 1000}, .value_type = SLC_F32, .layout_count = 1};
    manifest.layouts[0] =
        (struct slc_store_layout){.file = "blco.blk", .layout = SLC_LAYOUT_BLCO, .codec = 1};
    manifest.names_count = 2;
    manifest.names[0] = (struct slc_store_names){
        .mode = 0, .file = "names-1.bin", .count = 77, .file_bytes = 5000, .hash = 3};
    manifest.names[1] = (struct slc_store_names){
        .mode = 2, .file = "names-3.bin", .count = 1000, .file_bytes = 128, .hash = UINT64_MAX};
    snprintf(manifest.titles[1], sizeof manifest.titles[1], "d\xc3\xa9part");
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
    SLC_ASSERT_OK(slc_manifest_read(slc_quick_files(), folder, &read, &err), &err);
    CU_ASSERT(read.names_count == 2 && slc_manifest_names(&read, 1) == NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(slc_manifest_names(&read, 2));
    CU_ASSERT_EQUAL(slc_manifest_names(&read, 2)->hash, UINT64_MAX);
    CU_ASSERT_EQUAL(slc_manifest_names(&read, 0)->count, 77);
    CU_ASSERT(strcmp(read.titles[1], manifest.titles[1]) == 0 && read.titles[0][0] == '\0');
    /* A title that is not UTF-8 is written with three bytes for each byte, and truncated when
     * read. */
    memset(manifest.titles[2], 0xe9, SLC_TITLE_BYTES - 1);
    SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
    SLC_ASSERT_OK(slc_manifest_read(slc_quick_files(), folder, &read, &err), &err);
    CU_ASSERT_EQUAL(strlen(read.titles[2]), (SLC_TITLE_BYTES - 1) / 3 * 3);
    CU_ASSERT(strncmp(read.titles[2], "\xef\xbf\xbd\xef", 4) == 0);
    CU_ASSERT(strcmp(read.titles[1], manifest.titles[1]) == 0);
    for (unsigned wrong = 0; wrong < 5; wrong++) {
        struct slc_store_names *names = &manifest.names[1];
        const struct slc_store_names sound = *names;

        names->count += wrong == 0;
        names->mode = wrong == 1 ? 0 : wrong == 2 ? 3 : names->mode;
        snprintf(names->file, sizeof names->file, "%s",
                 wrong == 3   ? "names-1.bin"
                 : wrong == 4 ? "../names-3.bin"
                              : sound.file);
        SLC_ASSERT_OK(slc_manifest_write(slc_quick_files(), folder, &manifest, &err), &err);
        SLC_ASSERT_FAILS(slc_manifest_read(slc_quick_files(), folder, &read, &err), SLC_ERR_FORMAT,
                         &err, "should be");
        slc_error_clear(&err);
        *names = sound;
    }
}

SLC_SUITE(names)
{
    static const struct slc_test tests[] = {
        {"round trips", round_trips},
        {"refused names", refused_names},
        {"every byte", every_byte},
        {"forged", forged},
        {"failing files", failing_files},
        {"failing memory", failing_memory},
        {"listed in the manifest", listed_in_manifest},
    };

    return slc_test_main("names", tests, SLC_COUNT(tests), argc, argv);
}
