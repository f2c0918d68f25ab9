/* Files with known contents, and a reader of whole files in random order. */
#include "io_fixture.h"

#include "slc_test.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/random.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

const struct variant variants[VARIANTS] = {
    {SLC_IO_URING, true},  {SLC_IO_URING, false}, {SLC_IO_PREAD, true},
    {SLC_IO_PREAD, false}, {SLC_IO_MMAP, false},
};

uint64_t next_draw(void)
{
    static uint64_t drawn;

    return slc_random_u64(slc_test_seed(), 7, drawn++);
}

static void fill_pattern(void *data, uint64_t bytes, uint64_t offset)
{
    for (uint64_t i = 0; i < bytes; i += 8) {
        slc_store_u64((char *)data + i, slc_mix64(offset + i));
    }
}

bool has_pattern(const void *data, uint64_t bytes, uint64_t offset)
{
    for (uint64_t i = 0; i < bytes; i += 8) {
        if (slc_load_u64((const char *)data + i) != slc_mix64(offset + i)) {
            return false;
        }
    }
    return true;
}

const char *make_file(const char *folder, const char *name, uint64_t bytes)
{
    static char path[512];
    const struct slc_files *files = slc_files_system();
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t padded = (bytes + 7) / 8 * 8;
    char *data = malloc(padded);
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    fill_pattern(data, padded, 0);
    fd = files->open(files->self, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    CU_ASSERT_FATAL(fd >= 0);
    SLC_ASSERT_OK(slc_file_write_at(files, fd, path, data, bytes, 0, &err), &err);
    /* Direct reads bypass the page cache and would first flush a dirty page. */
    CU_ASSERT(files->sync(files->self, fd) == 0);
    CU_ASSERT(files->close(files->self, fd) == 0);
    free(data);
    return path;
}

struct slc_io *open_variant(const struct variant *variant,
                            const struct slc_files *files,
                            const char *path,
                            unsigned slots,
                            uint64_t slot_pages)
{
    struct slc_io_options options = {files, &path, 1, slots, slot_pages * PAGE, 0, variant->direct};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_io *io = NULL;
    uint64_t bytes;
    enum slc_status status = slc_io_open(variant->kind, &options, &io, &err);

    if (status == SLC_ERR_UNSUPPORTED && variant->kind == SLC_IO_URING) {
        return NULL;
    }
    SLC_ASSERT_OK(status, &err);
    CU_ASSERT_FATAL(io != NULL);
    CU_ASSERT(slc_io_kind(io) == variant->kind);
    if (variant->kind == SLC_IO_MMAP) {
        CU_ASSERT(slc_io_slots(io, &bytes) == NULL && bytes == 0);
    } else {
        CU_ASSERT(slc_io_slots(io, &bytes) != NULL && bytes >= slots * slot_pages * PAGE);
    }
    return io;
}

struct outcome read_file(struct slc_io *io, uint64_t pages, unsigned slots, uint64_t slot_pages)
{
    static struct slc_io_request requests[MAX_REQUESTS];
    static uint64_t starts[FILE_PAGES + 1];
    struct outcome outcome = {0, 0, 0, SLC_ERROR_INIT};
    struct slc_error err = SLC_ERROR_INIT;
    unsigned free_slots[MAX_REQUESTS];
    unsigned free_count = slots;
    uint64_t order[FILE_PAGES];
    uint64_t blocks = 0;
    uint64_t next = 0;

    for (uint64_t page = 0; page < pages; blocks++) {
        order[blocks] = blocks;
        starts[blocks] = page;
        page += 1 + next_draw() % slot_pages;
        if (page > pages) {
            page = pages;
        }
        starts[blocks + 1] = page;
    }
    for (uint64_t i = blocks; i > 1; i--) {
        uint64_t j = next_draw() % i;
        uint64_t other = order[i - 1];

        order[i - 1] = order[j];
        order[j] = other;
    }
    for (unsigned s = 0; s < slots; s++) {
        free_slots[s] = s;
    }
    while (next < blocks || free_count < slots) {
        struct slc_io_request *done;

        while (next < blocks && free_count > 0) {
            unsigned slot = free_slots[--free_count];
            uint64_t block = order[next++];

            requests[slot].slot = slot;
            requests[slot].offset = starts[block] * PAGE;
            requests[slot].bytes = (starts[block + 1] - starts[block]) * PAGE;
            requests[slot].user = &requests[slot];
            SLC_ASSERT_OK(slc_io_submit(io, &requests[slot], &err), &err);
        }
        SLC_ASSERT_OK(slc_io_wait(io, &done, &err), &err);
        CU_ASSERT(done->user == done);
        outcome.reads++;
        if (done->status != SLC_OK) {
            CU_ASSERT(done->data == NULL);
            CU_ASSERT(done->error.status == done->status);
            if (outcome.failed++ == 0) {
                outcome.first = done->error;
            }
        } else {
            CU_ASSERT_FATAL(done->data != NULL);
            outcome.wrong += !has_pattern(done->data, done->bytes, done->offset);
        }
        slc_io_release(io, done);
        free_slots[free_count++] = done->slot;
    }
    return outcome;
}

void check_all_read(const struct outcome *outcome)
{
    CU_ASSERT(outcome->reads > 0);
    CU_ASSERT_EQUAL(outcome->failed, 0);
    CU_ASSERT_EQUAL(outcome->wrong, 0);
    if (outcome->failed > 0) {
        printf("# %s\n", outcome->first.message);
    }
}

enum slc_faulty_kind read_operation(enum slc_io_kind kind)
{
    return kind == SLC_IO_PREAD ? SLC_FAULTY_READ : SLC_FAULTY_COMPLETED;
}
