/* Stripes: every byte of a file has one place, modified or forged lists and headers are rejected, a
 * stripe is identified by its header and found in any listed folder, and every kind of reader reads
 * striped files like contiguous ones. */
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/memory.h"
#include "io_fixture.h"
#include "slc_test.h"
#include "storage/file/block_file.h"
#include "storage/file/stripes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct slc_stripe_shape sample = {
    .id = 0x1234,
    .file_bytes = 9 * PAGE,
    .header_hash = 77,
    .unit = 2 * PAGE,
    .owner = {.inode = 5, .file_system = UINT64_MAX, .born_ns = UINT64_C(1) << 62},
    .count = 3};

static void test_places(void)
{
    for (unsigned count = 1; count <= SLC_MAX_STRIPES; count++) {
        for (uint64_t pages = 1; pages < 60; pages += 1 + pages / 7) {
            const struct slc_stripe_shape shape = {
                .file_bytes = pages * PAGE, .unit = 3 * PAGE, .count = count};
            uint64_t next[SLC_MAX_STRIPES], sum = 0;

            for (unsigned k = 0; k < count; k++) {
                next[k] = PAGE;
                sum += slc_stripe_bytes(&shape, k);
            }
            CU_ASSERT_EQUAL(sum, shape.file_bytes);
            for (uint64_t page = 0; page < pages; page++) {
                unsigned k = count;
                uint64_t at = 0, most = slc_stripe_place(&shape, page * PAGE, &k, &at);

                CU_ASSERT_FATAL(k < count);
                CU_ASSERT_EQUAL(at, next[k]);
                CU_ASSERT(count == 1 || most == (3 - page % 3) * PAGE);
                next[k] += PAGE;
            }
            for (unsigned k = 0; k < count; k++) {
                CU_ASSERT_EQUAL(next[k] - PAGE, slc_stripe_bytes(&shape, k));
            }
        }
    }
}

static uint8_t *make_list(uint64_t *bytes)
{
    char a[] = "/mnt/a", b[] = "b", c[] = "../c";
    const struct slc_stripe_list list = {.shape = sample, .folders = {a, b, c}};
    struct slc_error err = SLC_ERROR_INIT;
    uint8_t *data = NULL;

    SLC_ASSERT_OK(slc_stripe_list_encode(&list, &data, bytes, &err), &err);
    return data;
}

static enum slc_status decode(const uint8_t *data, uint64_t bytes, uint64_t *offset)
{
    struct slc_stripe_list list = {.shape = {0}};
    struct slc_error err = SLC_ERROR_INIT;
    enum slc_status status = slc_stripe_list_decode(data, bytes, &list, &err);

    CU_ASSERT(status == err.status);
    *offset = err.offset;
    slc_stripe_list_clear(&list);
    return status;
}

static void test_list(void)
{
    struct slc_stripe_list list = {.shape = {0}};
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t bytes = 0, offset;
    uint8_t *data = make_list(&bytes);

    CU_ASSERT_EQUAL(bytes, PAGE);
    SLC_ASSERT_OK(slc_stripe_list_decode(data, bytes, &list, &err), &err);
    CU_ASSERT(memcmp(&list.shape, &sample, sizeof sample) == 0);
    CU_ASSERT_STRING_EQUAL(list.folders[0], "/mnt/a");
    CU_ASSERT_STRING_EQUAL(list.folders[1], "b");
    CU_ASSERT_STRING_EQUAL(list.folders[2], "../c");
    slc_stripe_list_clear(&list);
    for (uint64_t at = 0; at < bytes; at++) {
        data[at] ^= 1;
        CU_ASSERT(decode(data, bytes, &offset) == (at < 8 ? SLC_ERR_FORMAT : SLC_ERR_DAMAGED));
        data[at] ^= 1;
    }
    for (uint64_t cut = 0; cut < bytes; cut += 100) {
        CU_ASSERT(decode(data, cut, &offset) == (cut < 8 ? SLC_ERR_FORMAT : SLC_ERR_DAMAGED));
    }
    slc_free(data);
}

/* Fields of 4 or 8 bytes are forged, with valid checksums. */
static void test_forged_list(void)
{
    static const struct {
        uint64_t at, value;
        unsigned bytes;
        enum slc_status status;
    } forged[] = {
        {8, 2, 4, SLC_ERR_UNSUPPORTED},
        {16, 1, 8, SLC_ERR_UNSUPPORTED},
        {32, 0, 8, SLC_ERR_FORMAT},
        {32, 9 * PAGE + 1, 8, SLC_ERR_FORMAT},
        {32, UINT64_C(1) << 63, 8, SLC_ERR_FORMAT},
        {32, UINT64_MAX - PAGE + 1, 8, SLC_ERR_FORMAT},
        {48, 0, 8, SLC_ERR_FORMAT},
        {48, PAGE + 8, 8, SLC_ERR_FORMAT},
        {48, UINT64_C(1) << 31, 8, SLC_ERR_FORMAT},
        {48, UINT64_C(1) << 60, 8, SLC_ERR_FORMAT},
        {56, 0, 4, SLC_ERR_FORMAT},
        {56, 2, 4, SLC_ERR_FORMAT},
        {56, 4, 4, SLC_ERR_FORMAT},
        {56, 17, 4, SLC_ERR_FORMAT},
        {56, UINT32_MAX, 4, SLC_ERR_FORMAT},
        {60, 1, 4, SLC_ERR_FORMAT},
        {64, 0, 4, SLC_ERR_FORMAT},
        {64, 4001, 4, SLC_ERR_FORMAT},
        {64, UINT32_MAX, 4, SLC_ERR_FORMAT},
        {68, 0, 4, SLC_ERR_FORMAT},
        {2000, 1, 4, SLC_ERR_FORMAT},
        {PAGE - 36, 1, 4, SLC_ERR_FORMAT},
    };

    for (size_t i = 0; i < SLC_COUNT(forged); i++) {
        uint64_t bytes = 0, offset;
        uint8_t *data = make_list(&bytes);

        if (forged[i].bytes == 4) {
            slc_store_u32(data + forged[i].at, (uint32_t)forged[i].value);
        } else {
            slc_store_u64(data + forged[i].at, forged[i].value);
        }
        slc_store_u64(data + bytes - 8, slc_hash64(data, bytes - 8));
        CU_ASSERT(decode(data, bytes, &offset) == forged[i].status);
        CU_ASSERT(offset < bytes);
        slc_free(data);
    }
}

static void test_header(void)
{
    uint8_t page[PAGE];
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_stripe_shape other = sample;

    slc_stripe_header_encode(&sample, 1, page);
    SLC_ASSERT_OK(slc_stripe_header_check(&sample, 1, page, &err), &err);
    for (unsigned at = 0; at < PAGE; at++) {
        page[at] ^= 16;
        slc_error_clear(&err);
        CU_ASSERT(slc_stripe_header_check(&sample, 1, page, &err) == SLC_ERR_DAMAGED);
        page[at] ^= 16;
    }
    slc_error_clear(&err);
    CU_ASSERT(slc_stripe_header_check(&sample, 0, page, &err) == SLC_ERR_DAMAGED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "stripe 2 of 3"));
    other.id++;
    slc_error_clear(&err);
    CU_ASSERT(slc_stripe_header_check(&other, 1, page, &err) == SLC_ERR_DAMAGED);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "another store"));
}

/* A striped file of the pattern, in folders a, b, c next to its list. */
struct striped {
    char folder[4096];
    char list[4200];
    char *stripes[3];
    struct slc_stripe_shape shape;
};

static void make_folder(const char *folder, const char *name, char *path, size_t bytes)
{
    (void)snprintf(path, bytes, "%s/%s", folder, name);
    CU_ASSERT_FATAL(slc_files_system()->make_folder(NULL, path) == 0);
}

static void write_file(const char *path, const void *data, uint64_t bytes)
{
    FILE *file = fopen(path, "wb");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(data, 1, bytes, file), bytes);
    CU_ASSERT_EQUAL(fclose(file), 0);
}

static void make_striped(struct striped *s, uint64_t pages, unsigned count)
{
    static unsigned number;
    static const char *const names[] = {"a", "b", "c"};
    struct slc_stripe_list list = {.shape = {0}};
    struct slc_error err = SLC_ERROR_INIT;
    char name[32], path[4200];
    const char *whole;
    uint8_t *data = NULL, *bytes = malloc(pages * PAGE);
    uint64_t list_bytes = 0;
    FILE *file;

    (void)snprintf(name, sizeof name, "s%u", number++);
    make_folder(slc_test_folder(), name, s->folder, sizeof s->folder);
    (void)snprintf(s->list, sizeof s->list, "%s/x.blk", s->folder);
    whole = make_file(s->folder, "whole", pages * PAGE);
    file = fopen(whole, "rb");
    CU_ASSERT_FATAL(file != NULL && bytes != NULL);
    CU_ASSERT_EQUAL(fread(bytes, 1, pages * PAGE, file), pages * PAGE);
    CU_ASSERT_EQUAL(fclose(file), 0);
    s->shape = (struct slc_stripe_shape){
        .id = number, .file_bytes = pages * PAGE, .unit = 4 * PAGE, .count = count};
    list.shape = s->shape;
    for (unsigned k = 0; k < count; k++) {
        uint8_t *stripe = calloc(1, PAGE + slc_stripe_bytes(&s->shape, k));

        CU_ASSERT_PTR_NOT_NULL_FATAL(stripe);
        make_folder(s->folder, names[k], path, sizeof path);
        list.folders[k] = slc_strdup(k == 0 ? path : names[k]);
        s->stripes[k] = slc_stripe_path(&s->shape, s->list, list.folders[k], k);
        slc_stripe_header_encode(&s->shape, k, stripe);
        for (uint64_t page = 0; page < pages; page++) {
            unsigned which;
            uint64_t at;

            (void)slc_stripe_place(&s->shape, page * PAGE, &which, &at);
            if (which == k) {
                memcpy(stripe + at, bytes + page * PAGE, PAGE);
            }
        }
        write_file(s->stripes[k], stripe, PAGE + slc_stripe_bytes(&s->shape, k));
        free(stripe);
    }
    SLC_ASSERT_OK(slc_stripe_list_encode(&list, &data, &list_bytes, &err), &err);
    write_file(s->list, data, list_bytes);
    slc_free(data);
    slc_stripe_list_clear(&list);
    free(bytes);
}

static void release(struct striped *s)
{
    for (unsigned k = 0; k < s->shape.count; k++) {
        slc_free(s->stripes[k]);
    }
}

static void test_reads(void)
{
    for (unsigned count = 1; count <= 3; count++) {
        struct striped s;

        make_striped(&s, FILE_PAGES, count);
        for (size_t v = 0; v < VARIANTS; v++) {
            struct slc_io *io;
            struct outcome outcome;

            if (variants[v].kind == SLC_IO_MMAP && count > 1) {
                const char *path = s.list;
                const struct slc_io_options options = {NULL, &path, 1, 4, PAGE, 0, false};
                struct slc_error err = SLC_ERROR_INIT;

                CU_ASSERT(slc_io_open(SLC_IO_MMAP, &options, &io, &err) == SLC_ERR_UNSUPPORTED);
                CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "use uring or pread"));
                continue;
            }
            io = open_variant(&variants[v], NULL, s.list, 5, 9);
            if (io == NULL) {
                continue;
            }
            outcome = read_file(io, FILE_PAGES, 5, 9);
            check_all_read(&outcome);
            slc_io_close(io);
        }
        release(&s);
    }
}

/* Errors name the stripe when a read fails or a stripe is truncated. */
static void test_failing_reads(void)
{
    for (size_t v = 0; v < VARIANTS; v++) {
        struct striped s;
        struct slc_io *io;
        struct outcome outcome;

        if (variants[v].kind == SLC_IO_MMAP) {
            continue;
        }
        make_striped(&s, FEW_PAGES, 3);
        io = open_variant(&variants[v], NULL, s.list, 5, 6);
        if (io != NULL) {
            CU_ASSERT_EQUAL(truncate(s.stripes[1], 3 * PAGE), 0);
            outcome = read_file(io, FEW_PAGES, 5, 6);
            CU_ASSERT_EQUAL(outcome.wrong, 0);
            CU_ASSERT(outcome.failed > 0);
            CU_ASSERT(outcome.first.status == SLC_ERR_DAMAGED);
            CU_ASSERT_STRING_EQUAL(outcome.first.file, s.stripes[1]);
            CU_ASSERT(outcome.first.offset >= 3 * (uint64_t)PAGE);
            slc_io_close(io);
        }
        release(&s);
    }
}

static enum slc_status open_list(const struct striped *s, struct slc_error *err)
{
    struct slc_block_file file = SLC_BLOCK_FILE_INIT;
    struct slc_faulty faulty;
    enum slc_status status;

    slc_faulty_init(&faulty);
    slc_error_clear(err);
    status = slc_block_file_open(&faulty.table, s->list, "opening it", &file, err);
    if (status == SLC_OK) {
        uint8_t *data = malloc(s->shape.file_bytes);

        CU_ASSERT_PTR_NOT_NULL_FATAL(data);
        CU_ASSERT_EQUAL(file.bytes, s->shape.file_bytes);
        SLC_ASSERT_OK(slc_block_file_read(&file, data, file.bytes - 16, 16, err), err);
        CU_ASSERT(has_pattern(data, file.bytes - 16, 16));
        free(data);
        slc_block_file_close(&file);
    }
    CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
    return status;
}

/* Stripes that are elsewhere, missing, swapped, truncated, or have a wrong name. */
static void test_search(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct striped s;
    char moved[4900], folder[4400];
    uint8_t page[PAGE];
    FILE *file;

    make_striped(&s, FEW_PAGES, 3);
    SLC_ASSERT_OK(open_list(&s, &err), &err);

    /* The stripe is in another folder of the list, as after drives were mounted in another
     * order. */
    (void)snprintf(moved, sizeof moved, "%s/a/%s", s.folder, strrchr(s.stripes[1], '/') + 1);
    CU_ASSERT_EQUAL(rename(s.stripes[1], moved), 0);
    SLC_ASSERT_OK(open_list(&s, &err), &err);

    /* The stripe is in a folder that only the environment variable names. */
    make_folder(s.folder, "elsewhere", folder, sizeof folder);
    (void)snprintf(folder + strlen(folder), 200, "/%s", strrchr(s.stripes[1], '/') + 1);
    CU_ASSERT_EQUAL(rename(moved, folder), 0);
    CU_ASSERT(open_list(&s, &err) == SLC_ERR_IO);
    CU_ASSERT_STRING_EQUAL(err.file, s.stripes[1]);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, SLC_STRIPES_VARIABLE));
    *strrchr(folder, '/') = '\0';
    (void)snprintf(moved, sizeof moved, "/nonexistent:%s:", folder);
    CU_ASSERT_EQUAL(setenv(SLC_STRIPES_VARIABLE, moved, 1), 0);
    SLC_ASSERT_OK(open_list(&s, &err), &err);
    CU_ASSERT_EQUAL(unsetenv(SLC_STRIPES_VARIABLE), 0);
    (void)snprintf(moved, sizeof moved, "%s/%s", folder, strrchr(s.stripes[1], '/') + 1);
    CU_ASSERT_EQUAL(rename(moved, s.stripes[1]), 0);

    /* The file with the name of this stripe is another stripe. */
    slc_stripe_header_encode(&s.shape, 2, page);
    file = fopen(s.stripes[1], "r+b");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(page, 1, PAGE, file), PAGE);
    CU_ASSERT_EQUAL(fclose(file), 0);
    CU_ASSERT(open_list(&s, &err) == SLC_ERR_DAMAGED);
    CU_ASSERT_STRING_EQUAL(err.file, s.stripes[1]);

    /* The file with the name of this stripe is not a stripe and has any length. */
    for (off_t bytes = 0; bytes < 3 * PAGE; bytes += PAGE - 1) {
        CU_ASSERT_EQUAL(unlink(s.stripes[1]), 0);
        write_file(s.stripes[1], "", 0);
        CU_ASSERT_EQUAL(truncate(s.stripes[1], bytes), 0);
        CU_ASSERT(open_list(&s, &err) == SLC_ERR_DAMAGED);
    }
    CU_ASSERT_EQUAL(unlink(s.stripes[1]), 0);
    CU_ASSERT_EQUAL(mkfifo(s.stripes[1], 0600), 0);
    CU_ASSERT(open_list(&s, &err) == SLC_ERR_DAMAGED);
    release(&s);
}

SLC_SUITE(stripes)
{
    static const struct slc_test tests[] = {
        {"every byte of a file has one place", test_places},
        {"a list is read as written, and any change found", test_list},
        {"forged lists are refused", test_forged_list},
        {"the header of a stripe identifies it", test_header},
        {"a file in stripes reads as one", test_reads},
        {"faults name the stripe", test_failing_reads},
        {"stripes are searched and identified", test_search},
    };

    return slc_test_main("stripes", tests, SLC_COUNT(tests), argc, argv);
}
