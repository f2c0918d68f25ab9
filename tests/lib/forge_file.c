/* Loads, changes, seals and saves block files. */
#include "forge_file.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "storage/block/file_layout.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void give_up(const char *path)
{
    perror(path);
    abort();
}

void slc_forged_load(struct slc_forged *forged, const char *path)
{
    FILE *file = fopen(path, "rb");
    long size;

    if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0 ||
        fseek(file, 0, SEEK_SET) != 0) {
        give_up(path);
        return;
    }
    forged->size = (uint64_t)size;
    forged->bytes = malloc(forged->size + 1);
    if (forged->bytes == NULL || fread(forged->bytes, 1, forged->size, file) != forged->size) {
        give_up(path);
    }
    (void)fclose(file);
}

void slc_forged_save(const struct slc_forged *forged, const char *path)
{
    FILE *file = fopen(path, "wb");

    if (file == NULL || fwrite(forged->bytes, 1, forged->size, file) != forged->size ||
        fclose(file) != 0) {
        give_up(path);
    }
}

void slc_forged_poke(const char *path, uint64_t offset, uint8_t byte)
{
    int fd = open(path, O_WRONLY);

    if (fd < 0 || pwrite(fd, &byte, 1, (off_t)offset) != 1 || close(fd) != 0) {
        give_up(path);
    }
}

void slc_forged_poke_unseen(const char *path, uint64_t offset, uint8_t byte)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
    struct stat before;

    if (stat(path, &before) != 0) {
        give_up(path);
    }
    slc_forged_poke(path, offset, byte);
    times[1] = before.st_mtim;
    if (utimensat(AT_FDCWD, path, times, 0) != 0) {
        give_up(path);
    }
}

void slc_forged_resize(const char *path, uint64_t size)
{
    if (truncate(path, (off_t)size) != 0) {
        give_up(path);
    }
}

void slc_forged_release(struct slc_forged *forged)
{
    free(forged->bytes);
    memset(forged, 0, sizeof *forged);
}

uint64_t slc_forged_index(const struct slc_forged *forged)
{
    return slc_load_u64(forged->bytes + SLC_HEADER_INDEX_OFFSET);
}

uint64_t slc_forged_entry(const struct slc_forged *forged, uint64_t block)
{
    return slc_forged_index(forged) +
           block * slc_index_entry_bytes(forged->bytes[SLC_HEADER_ORDER]);
}

uint64_t slc_forged_block(const struct slc_forged *forged, uint64_t block)
{
    return slc_load_u64(forged->bytes + slc_forged_entry(forged, block) + SLC_INDEX_OFFSET);
}

void slc_forged_seal_frame(struct slc_forged *forged)
{
    uint8_t *header = forged->bytes;
    uint8_t *closing = forged->bytes + forged->size - SLC_CLOSING_BYTES;
    uint64_t hash = slc_hash64(header, SLC_HEADER_HASH);

    slc_store_u64(header + SLC_HEADER_HASH, hash);
    slc_store_u64(closing + SLC_CLOSING_HEADER_HASH, hash);
    memcpy(closing + SLC_CLOSING_INDEX_OFFSET, header + SLC_HEADER_INDEX_OFFSET, 8);
    memcpy(closing + SLC_CLOSING_INDEX_BYTES, header + SLC_HEADER_INDEX_BYTES, 8);
    memcpy(closing + SLC_CLOSING_INDEX_HASH, header + SLC_HEADER_INDEX_HASH, 8);
    memcpy(closing + SLC_CLOSING_FILE_BYTES, header + SLC_HEADER_FILE_BYTES, 8);
    slc_store_u64(closing + SLC_CLOSING_HASH, slc_hash64(closing, SLC_CLOSING_HASH));
}

void slc_forged_seal(struct slc_forged *forged)
{
    uint8_t *bytes = forged->bytes;
    uint64_t blocks = slc_load_u64(bytes + SLC_HEADER_BLOCK_COUNT);
    uint64_t index = slc_forged_index(forged);
    uint64_t index_bytes = slc_load_u64(bytes + SLC_HEADER_INDEX_BYTES);

    for (uint64_t block = 0; block < blocks; block++) {
        uint8_t *entry = bytes + slc_forged_entry(forged, block);
        uint64_t at = slc_load_u64(entry + SLC_INDEX_OFFSET);
        uint64_t payload = slc_load_u64(entry + SLC_INDEX_BYTES);
        uint64_t padded = (payload + SLC_PAGE_BYTES - 1) / SLC_PAGE_BYTES * SLC_PAGE_BYTES;

        if (at <= forged->size && padded <= forged->size - at) {
            slc_store_u64(entry + SLC_INDEX_HASH, slc_hash64(bytes + at, padded));
        }
    }
    slc_store_u64(bytes + SLC_HEADER_INDEX_HASH, slc_hash64(bytes + index, index_bytes));
    slc_forged_seal_frame(forged);
}
