/* Reads, writes and inverts permutations of modes. A file is a header of 64 bytes and the labels,
 * packed with the bit length of the largest label. Packing and unpacking work in place. Packed
 * labels are shorter, so packing to the front never overwrites labels that are still unread, and
 * unpacking to the front never overwrites unread bytes of a packed string at the end of the
 * memory. */
#include "storage/manifest/labels.h"

#include "base/hash.h"
#include "base/key.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "storage/codec/bitpack.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LABELS_MAGIC "\x89SLCPRM\n"

enum {
    HEADER_MAGIC = 0,
    HEADER_LENGTH = 8,
    HEADER_MODE = 16,
    HEADER_WIDTH = 20,
    HEADER_ZERO = 24,
    HEADER_BYTES = 64,
    /* Space after the labels for the header of the file, and for the bytes that slc_bits_get may
     * read past the end. */
    SLACK_BYTES = 256,
    HUGE_BYTES = 4 << 20,
    /* Number of labels searched at a time. When packed, they fill whole bytes. */
    PIECE_LABELS = 128 << 10
};

static bool is_possible(uint64_t length)
{
    return length >= 2 && length <= SLC_LABELS_MAX_LENGTH;
}

static uint64_t memory_bytes(uint64_t length)
{
    return HEADER_BYTES + 4 * length + SLACK_BYTES;
}

/* Labels are accessed at random, so large permutations use huge pages. Small permutations do not
 * need a whole huge page each. */
static enum slc_pages pages_for(uint64_t length)
{
    return memory_bytes(length) >= HUGE_BYTES ? SLC_PAGES_HUGE : SLC_PAGES_SMALL;
}

static uint64_t payload_bytes(uint64_t length)
{
    uint64_t packed = slc_packed_bytes(length, slc_bits_for_length(length));

    return slc_div_up_u64(packed, 8) * 8;
}

uint64_t slc_labels_memory_bytes(uint64_t length)
{
    return is_possible(length) ? slc_buffer_footprint(memory_bytes(length), pages_for(length)) : 0;
}

void slc_labels_file(unsigned mode, char file[SLC_STORE_FILE_BYTES])
{
    (void)snprintf(file, SLC_STORE_FILE_BYTES, "perm-%u.bin", mode + 1);
}

uint64_t slc_labels_file_bytes(uint64_t length)
{
    return is_possible(length) ? HEADER_BYTES + payload_bytes(length) : 0;
}

enum slc_status slc_labels_create(struct slc_labels *labels, uint64_t length, struct slc_error *err)
{
    assert(is_possible(length));
    *labels = (struct slc_labels){.length = length};
    SLC_TRY(slc_buffer_create(&labels->buffer, memory_bytes(length), pages_for(length), err));
    labels->label = (uint32_t *)((char *)labels->buffer.data + HEADER_BYTES);
    return SLC_OK;
}

void slc_labels_destroy(struct slc_labels *labels)
{
    slc_buffer_destroy(&labels->buffer);
    *labels = (struct slc_labels){0};
}

static void clear_marks(struct slc_labels *labels)
{
    for (uint64_t i = 0; i < labels->length; i++) {
        labels->label[i] &= ~SLC_LABEL_MARK;
    }
}

void slc_labels_invert(struct slc_labels *labels)
{
    uint32_t *label = labels->label;

    for (uint64_t i = 0; i < labels->length; i++) {
        uint32_t before = (uint32_t)i;
        uint32_t at = label[i];

        if ((at & SLC_LABEL_MARK) != 0) {
            continue; /* the cycle of this label has already been inverted */
        }
        while (at != i) {
            uint32_t next = label[at];

            label[at] = before | SLC_LABEL_MARK;
            before = at;
            at = next;
        }
        label[i] = before | SLC_LABEL_MARK;
    }
    clear_marks(labels);
}

bool slc_labels_sound(struct slc_labels *labels)
{
    uint32_t *label = labels->label;
    bool sound = true;

    for (uint64_t i = 0; i < labels->length && sound; i++) {
        uint32_t number = label[i] & ~SLC_LABEL_MARK;

        sound = number < labels->length && (label[number] & SLC_LABEL_MARK) == 0;
        if (sound) {
            label[number] |= SLC_LABEL_MARK;
        }
    }
    clear_marks(labels);
    return sound;
}

static void encode_header(uint8_t *header, uint64_t length, unsigned mode)
{
    memset(header, 0, HEADER_BYTES);
    memcpy(header + HEADER_MAGIC, LABELS_MAGIC, sizeof LABELS_MAGIC - 1);
    slc_store_u64(header + HEADER_LENGTH, length);
    slc_store_u32(header + HEADER_MODE, mode);
    slc_store_u32(header + HEADER_WIDTH, slc_bits_for_length(length));
}

enum slc_status slc_labels_write(struct slc_labels *labels,
                                 const struct slc_files *files,
                                 const char *folder,
                                 unsigned mode,
                                 struct slc_store_permutation *listed,
                                 struct slc_error *err)
{
    uint8_t *bytes = labels->buffer.data;
    unsigned width = slc_bits_for_length(labels->length);
    struct slc_bit_writer writer = {.at = bytes + HEADER_BYTES};
    uint64_t file_bytes = slc_labels_file_bytes(labels->length);

    for (uint64_t i = 0; i < labels->length; i++) {
        slc_bits_put(&writer, labels->label[i], width);
    }
    uint8_t *end = slc_bits_finish(&writer);
    memset(end, 0, (size_t)(bytes + file_bytes - end));
    encode_header(bytes, labels->length, mode);
    *listed = (struct slc_store_permutation){
        .mode = mode, .file_bytes = file_bytes, .hash = slc_hash64(bytes, file_bytes)};
    slc_labels_file(mode, listed->file);
    char *path = slc_path_join(folder, listed->file);
    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    enum slc_status status = slc_file_replace(files, path, bytes, file_bytes, err);
    slc_free(path);
    return status;
}

/* Checks that the open file has the size in the manifest. */
static enum slc_status check_size(const struct slc_files *files,
                                  int fd,
                                  const char *path,
                                  uint64_t file_bytes,
                                  struct slc_error *err)
{
    struct slc_file_stat stat;
    int code = files->stat_fd(files->self, fd, &stat);

    if (code < 0) {
        return slc_fail_errno(err, -code, path, "getting the size of the file");
    } else if (stat.kind != 'f' || stat.bytes != file_bytes) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the permutation should have %" PRIu64 " bytes, but the file has %" PRIu64
                        ": restore it or convert the store again",
                        file_bytes, stat.bytes);
    }
    return SLC_OK;
}

/* Opens the file at `path`. */
static enum slc_status
open_file(const struct slc_files *files, const char *path, int *opened, struct slc_error *err)
{
    const int fd = slc_file_open(files, path, SLC_OPEN_PLAIN);

    *opened = fd;
    if (fd == -ENOENT) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the file is missing: the indices of this mode cannot be mapped without "
                        "it; restore it or convert the store again");
    }
    return slc_check_call(fd, err, path, "opening the permutation of a mode");
}

/* Reads the whole file at `path` into `bytes`. */
static enum slc_status load_file(const struct slc_files *files,
                                 const char *path,
                                 void *bytes,
                                 uint64_t file_bytes,
                                 struct slc_error *err)
{
    int fd;

    SLC_TRY(open_file(files, path, &fd, err));
    enum slc_status status = check_size(files, fd, path, file_bytes, err);
    SLC_THEN(status, slc_file_read_at(files, fd, path, bytes, file_bytes, 0, err));
    (void)files->close(files->self, fd);
    return status;
}

/* Checks the hash of the file and its header. */
static enum slc_status check_head(const uint8_t *bytes,
                                  uint64_t hash,
                                  const struct slc_store_permutation *listed,
                                  uint64_t length,
                                  struct slc_error *err)
{
    uint8_t header[HEADER_BYTES];

    if (hash != listed->hash) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "checksum mismatch in the permutation: expected %016" PRIx64
                        ", but its bytes hash to %016" PRIx64
                        "; restore it or convert the store again",
                        listed->hash, hash);
    }
    encode_header(header, length, listed->mode);
    if (memcmp(bytes, header, sizeof header) != 0) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the header does not describe a permutation of %" PRIu64
                        " indices of mode %u",
                        length, listed->mode + 1);
    }
    return SLC_OK;
}

/* Checks everything in the file except the labels. */
static enum slc_status check_bytes(const uint8_t *bytes,
                                   const struct slc_store_permutation *listed,
                                   uint64_t length,
                                   struct slc_error *err)
{
    const uint64_t used_bits = length * slc_bits_for_length(length);
    const uint64_t hash = slc_hash64(bytes, listed->file_bytes);

    SLC_TRY(check_head(bytes, hash, listed, length, err));
    if (!slc_bits_zero_from(bytes + HEADER_BYTES, used_bits, payload_bytes(length))) {
        return slc_fail(err, SLC_ERR_DAMAGED, "a bit after the last label is not zero");
    }
    return SLC_OK;
}

/* Unpacks the labels of the file, which is at the end of the memory, to the front. */
static void unpack_labels(struct slc_labels *labels, const uint8_t *packed)
{
    unsigned width = slc_bits_for_length(labels->length);

    for (uint64_t i = 0; i < labels->length; i++) {
        labels->label[i] = (uint32_t)slc_bits_get(packed, i * width, width);
    }
}

enum slc_status slc_labels_read(const struct slc_files *files,
                                const char *folder,
                                const struct slc_store_permutation *listed,
                                uint64_t length,
                                struct slc_labels *labels,
                                struct slc_error *err)
{
    char *path = slc_path_join(folder, listed->file);
    uint8_t *bytes;

    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    assert(listed->file_bytes == slc_labels_file_bytes(length));
    enum slc_status status = slc_labels_create(labels, length, err);
    if (status == SLC_OK) {
        bytes = (uint8_t *)labels->buffer.data + memory_bytes(length) - SLACK_BYTES / 2 -
                listed->file_bytes;
        status = load_file(files, path, bytes, listed->file_bytes, err);
        SLC_THEN(status, check_bytes(bytes, listed, length, err));
        if (status == SLC_OK) {
            unpack_labels(labels, bytes + HEADER_BYTES);
            if (!slc_labels_sound(labels)) {
                status = slc_fail(err, SLC_ERR_DAMAGED,
                                  "its labels are not a permutation of the %" PRIu64
                                  " indices of mode %u",
                                  length, listed->mode + 1);
            }
        }
    }
    if (status != SLC_OK) {
        slc_error_locate_file(err, path);
        slc_labels_destroy(labels);
    }
    slc_free(path);
    return status;
}

enum slc_status slc_store_labels(const struct slc_store *store,
                                 const struct slc_store_permutation *listed,
                                 struct slc_labels *labels,
                                 struct slc_error *err)
{
    return slc_labels_read(store->files, store->path, listed, store->manifest.dims[listed->mode],
                           labels, err);
}

/* State of slc_labels_find. */
struct find {
    uint64_t low, high;     /* range of labels to find */
    uint64_t *first, *last; /* range of indices with these labels */
};

/* Searches `count` labels, of which the first belongs to index `begin`, and extends *find->first ..
 * *find->last. */
static void find_in_piece(
    const struct find *find, const uint8_t *packed, uint64_t begin, uint64_t count, unsigned width)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t label = slc_bits_get(packed, i * width, width);

        if (label >= find->low && label <= find->high) {
            *find->first = slc_min_u64(*find->first, begin + i);
            *find->last = begin + i;
        }
    }
}

/* Searches the open file piece by piece. `piece` has memory for one piece and slack. */
static enum slc_status find_in_file(const struct slc_files *files,
                                    int fd,
                                    const char *path,
                                    const struct slc_store_permutation *listed,
                                    uint64_t length,
                                    const struct find *find,
                                    uint8_t *piece,
                                    struct slc_error *err)
{
    const unsigned width = slc_bits_for_length(length);
    struct slc_hash_stream stream;
    uint8_t header[HEADER_BYTES];
    uint64_t at = HEADER_BYTES;
    enum slc_status status = slc_file_read_at(files, fd, path, header, HEADER_BYTES, 0, err);

    slc_hash_stream_begin(&stream);
    slc_hash_stream_add(&stream, header, HEADER_BYTES);
    for (uint64_t i = 0, count; i < length && status == SLC_OK; i += count) {
        /* Pieces fill whole bytes; the file may have padding after the last piece. */
        count = slc_min_u64(length - i, PIECE_LABELS);
        uint64_t bytes = i + count < length ? count * width / 8 : listed->file_bytes - at;
        status = slc_file_read_at(files, fd, path, piece, bytes, at, err);
        slc_hash_stream_add(&stream, piece, status == SLC_OK ? bytes : 0);
        if (status == SLC_OK) {
            find_in_piece(find, piece, i, count, width);
        }
        at += bytes;
    }
    return status == SLC_OK ? check_head(header, slc_hash_stream_end(&stream), listed, length, err)
                            : status;
}

enum slc_status slc_labels_find(const struct slc_files *files,
                                const char *folder,
                                const struct slc_store_permutation *listed,
                                uint64_t length,
                                uint64_t *low,
                                uint64_t *high,
                                struct slc_error *err)
{
    uint64_t first = UINT64_MAX, last = 0;
    const struct find find = {*low, *high, &first, &last};
    char *path = slc_path_join(folder, listed->file);
    uint8_t *piece = slc_malloc(PIECE_LABELS * sizeof(uint32_t) + SLACK_BYTES);
    enum slc_status status = slc_check_memory(path != NULL && piece != NULL, err, "for a path");
    int fd = -1;

    assert(listed->file_bytes == slc_labels_file_bytes(length));
    if (status == SLC_OK) {
        memset(piece, 0, PIECE_LABELS * sizeof(uint32_t) + SLACK_BYTES);
        status = open_file(files, path, &fd, err);
    }
    if (status == SLC_OK) {
        status = check_size(files, fd, path, listed->file_bytes, err);
        SLC_THEN(status, find_in_file(files, fd, path, listed, length, &find, piece, err));
        (void)files->close(files->self, fd);
    }
    if (status == SLC_OK) {
        *low = first;
        *high = last;
    } else {
        slc_error_locate_file(err, path);
    }
    slc_free(piece);
    slc_free(path);
    return status;
}
