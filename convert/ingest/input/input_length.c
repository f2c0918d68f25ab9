/* Reads the length of the text that a compressed file records: xz in the index at the end ([XZ]
 * sections 2.1.2 and 4), gzip in the last member ([RFC1952] section 2.3.1), zstd in the first frame
 * ([RFC8878] section 3.1.1.1.4). bzip2 and lz4 files usually do not record the length. */
#include "convert/ingest/input/input_source.h"

#include "base/memory/bytes.h"
#include "base/memory/memory.h"

#include <lzma.h>
#include <zstd.h>

enum {
    GZIP_LENGTH_BYTES = 4,
    /* Maximum size of an index that is read. An index has a few bytes per block, and blocks have
     * several MiB. */
    INDEX_BYTES_MAX = 16 << 20,
    STREAMS_MAX = 4096
};

/* Reads the `bytes` bytes of the file before offset `end`. Returns false on failure. */
static bool
read_before(const struct slc_input_source *source, uint64_t end, void *data, uint64_t bytes)
{
    return end >= bytes && slc_file_read_at(source->files, source->fd, source->name, data, bytes,
                                            end - bytes, NULL) == SLC_OK;
}

/* Reads the index of the stream that ends at `end`; returns false if there is no valid index. */
static bool
xz_index(const struct slc_input_source *source, uint64_t end, uint64_t *stored, uint64_t *text)
{
    uint8_t footer[LZMA_STREAM_HEADER_SIZE];
    lzma_stream_flags flags;
    lzma_index *index = NULL;
    uint64_t memory_most = UINT64_C(4) * INDEX_BYTES_MAX;
    size_t at = 0;
    bool sound = false;

    if (!read_before(source, end, footer, sizeof footer) ||
        lzma_stream_footer_decode(&flags, footer) != LZMA_OK ||
        flags.backward_size > INDEX_BYTES_MAX) {
        return false;
    }
    uint8_t *bytes = slc_malloc(flags.backward_size);
    if (bytes != NULL && read_before(source, end - sizeof footer, bytes, flags.backward_size)) {
        sound = lzma_index_buffer_decode(&index, &memory_most, NULL, bytes, &at,
                                         flags.backward_size) == LZMA_OK;
    }
    if (sound) {
        *stored = lzma_index_stream_size(index);
        *text = lzma_index_uncompressed_size(index);
    }
    lzma_index_end(index, NULL);
    slc_free(bytes);
    return sound;
}

/* Returns the sum of the lengths of all streams, which are found from the last to the first. */
static uint64_t xz_length(const struct slc_input_source *source, uint64_t stored_bytes)
{
    uint64_t end = stored_bytes, total = 0;

    for (unsigned stream = 0; stream < STREAMS_MAX; stream++) {
        uint64_t stored, text;
        uint8_t padding[4];

        /* Skip zeros, which are allowed between streams. */
        while (read_before(source, end, padding, sizeof padding) && slc_load_u32(padding) == 0) {
            end -= sizeof padding;
        }
        if (!xz_index(source, end, &stored, &text) || stored > end || text > UINT64_MAX - total) {
            return 0;
        }
        total += text;
        end -= stored;
        if (end == 0) {
            return total;
        }
    }
    return 0;
}

uint64_t slc_compression_length(const struct slc_input_source *source,
                                enum slc_compression compression,
                                uint64_t stored_bytes)
{
    unsigned long long frame;
    uint8_t length[GZIP_LENGTH_BYTES];

    switch (compression) {
    case SLC_COMPRESSION_XZ:
        return xz_length(source, stored_bytes);
    case SLC_COMPRESSION_GZIP:
        return read_before(source, stored_bytes, length, sizeof length) ? slc_load_u32(length) : 0;
    case SLC_COMPRESSION_ZSTD:
        frame = ZSTD_getFrameContentSize(source->head, source->head_bytes);
        return frame == ZSTD_CONTENTSIZE_UNKNOWN || frame == ZSTD_CONTENTSIZE_ERROR ? 0 : frame;
    default:
        return 0;
    }
}
