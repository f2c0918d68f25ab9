/* Encodes and decodes header, index entries and closing page of a block file (docs/FORMAT.md,
 * section 4). Encoder and decoder share this file so that they cannot diverge. */
#include "storage/block/file_layout.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"

#include <inttypes.h>
#include <string.h>

/* The reserved bits for relabelled modes: bit n for mode n. */
#define RELABELLED_BITS UINT64_C(0xffff)

uint64_t slc_find_nonzero(const uint8_t *bytes, uint64_t from, uint64_t to)
{
    while (from + 8 <= to && slc_load_u64(bytes + from) == 0) {
        from += 8;
    }
    while (from < to && bytes[from] == 0) {
        from++;
    }
    return from;
}

void slc_header_encode(struct slc_file_header *header, uint8_t *page)
{
    struct slc_layout_info *info = &header->info;
    const bool own_sum = slc_fiber_run_same(info->keys.run, info->content_keys.run);

    memset(page, 0, SLC_HEADER_BYTES);
    memcpy(page, SLC_FILE_MAGIC, SLC_MAGIC_BYTES);
    slc_store_u16(page + SLC_HEADER_MAJOR, SLC_FORMAT_MAJOR);
    slc_store_u16(page + SLC_HEADER_MINOR, SLC_FORMAT_MINOR);
    slc_store_u32(page + SLC_HEADER_OWN_BYTES, SLC_HEADER_BYTES);
    slc_store_u64(page + SLC_HEADER_RESERVED_BITS, info->relabelled_modes |
                                                       (own_sum ? 0 : SLC_CONTENT_RUN_BIT) |
                                                       (info->has_zeros ? SLC_ZEROS_BIT : 0));
    page[SLC_HEADER_LAYOUT] = (uint8_t)info->layout;
    page[SLC_HEADER_LAYOUT_MODE] = (uint8_t)info->layout_mode;
    page[SLC_HEADER_VALUE_TYPE] = (uint8_t)info->value_type;
    page[SLC_HEADER_ORDER] = (uint8_t)info->order;
    slc_store_u32(page + SLC_HEADER_CODEC, (uint32_t)info->codec);
    slc_store_u64(page + SLC_HEADER_NNZ, info->nnz);
    slc_store_f64(page + SLC_HEADER_SUM_OF_SQUARES, info->sum_of_squares);
    slc_store_u64(page + SLC_HEADER_BLOCK_COUNT, info->block_count);
    slc_store_u64(page + SLC_HEADER_TILE_COUNT, info->tile_count);
    slc_store_u64(page + SLC_HEADER_INDEX_OFFSET, header->index_offset);
    slc_store_u64(page + SLC_HEADER_INDEX_BYTES, header->index_bytes);
    slc_store_u64(page + SLC_HEADER_INDEX_HASH, header->index_hash);
    slc_store_u64(page + SLC_HEADER_FILE_BYTES, info->file_bytes);
    slc_store_u64(page + SLC_HEADER_CONTENT_SUM, info->content_sum);
    page[SLC_HEADER_RUN_MODE] = (uint8_t)info->keys.run.mode;
    page[SLC_HEADER_RUN_BITS] = (uint8_t)info->keys.run.bits;
    if (!own_sum) {
        page[SLC_HEADER_CONTENT_MODE] = (uint8_t)info->content_keys.run.mode;
        page[SLC_HEADER_CONTENT_BITS] = (uint8_t)info->content_keys.run.bits;
    }
    for (unsigned mode = 0; mode < info->order; mode++) {
        slc_store_u64(page + SLC_HEADER_DIMS + 8 * mode, info->dims[mode]);
    }
    info->header_hash = slc_hash64(page, SLC_HEADER_HASH);
    slc_store_u64(page + SLC_HEADER_HASH, info->header_hash);
}

void slc_closing_encode(const struct slc_file_header *header, uint8_t *page)
{
    memset(page, 0, SLC_CLOSING_BYTES);
    memcpy(page, SLC_CLOSING_MAGIC, SLC_MAGIC_BYTES);
    slc_store_u64(page + SLC_CLOSING_HEADER_HASH, header->info.header_hash);
    slc_store_u64(page + SLC_CLOSING_INDEX_OFFSET, header->index_offset);
    slc_store_u64(page + SLC_CLOSING_INDEX_BYTES, header->index_bytes);
    slc_store_u64(page + SLC_CLOSING_INDEX_HASH, header->index_hash);
    slc_store_u64(page + SLC_CLOSING_FILE_BYTES, header->info.file_bytes);
    slc_store_u64(page + SLC_CLOSING_HASH, slc_hash64(page, SLC_CLOSING_HASH));
}

void slc_index_entry_encode(const struct slc_block_entry *entry, unsigned order, uint8_t *bytes)
{
    slc_store_u64(bytes + SLC_INDEX_OFFSET, entry->offset);
    slc_store_u64(bytes + SLC_INDEX_BYTES, entry->bytes);
    slc_store_u64(bytes + SLC_INDEX_NNZ, entry->nnz);
    slc_store_u64(bytes + SLC_INDEX_HASH, entry->hash);
    slc_store_u64(bytes + SLC_INDEX_FIRST_TILE, entry->first_tile);
    slc_store_u32(bytes + SLC_INDEX_TILE_COUNT, entry->tile_count);
    slc_store_u32(bytes + SLC_INDEX_CODEC, (uint32_t)entry->codec);
    slc_store_u64(bytes + SLC_INDEX_FIRST_KEY, entry->first_key_lo);
    slc_store_u64(bytes + SLC_INDEX_FIRST_KEY + 8, entry->first_key_hi);
    slc_store_f64(bytes + SLC_INDEX_SUM_OF_SQUARES, entry->sum_of_squares);
    slc_store_u64(bytes + SLC_INDEX_CONTENT_SUM, entry->content_sum);
    slc_store_u32(bytes + SLC_INDEX_PARTITION, entry->partition);
    slc_store_u32(bytes + SLC_INDEX_PARTITION_FLAGS,
                  entry->continued ? SLC_PARTITION_CONTINUED : 0);
    for (unsigned mode = 0; mode < order; mode++) {
        slc_store_u64(bytes + SLC_INDEX_RANGES + 8 * mode, entry->min[mode]);
        slc_store_u64(bytes + SLC_INDEX_RANGES + 8 * (order + mode), entry->max[mode]);
    }
}

void slc_index_entry_decode(const uint8_t *bytes, unsigned order, struct slc_block_entry *entry)
{
    memset(entry, 0, sizeof *entry);
    entry->offset = slc_load_u64(bytes + SLC_INDEX_OFFSET);
    entry->bytes = slc_load_u64(bytes + SLC_INDEX_BYTES);
    if (!slc_round_up_u64(entry->bytes, SLC_PAGE_BYTES, &entry->padded_bytes)) {
        entry->padded_bytes = UINT64_MAX;
    }
    entry->nnz = slc_load_u64(bytes + SLC_INDEX_NNZ);
    entry->hash = slc_load_u64(bytes + SLC_INDEX_HASH);
    entry->first_tile = slc_load_u64(bytes + SLC_INDEX_FIRST_TILE);
    entry->tile_count = slc_load_u32(bytes + SLC_INDEX_TILE_COUNT);
    entry->codec = (enum slc_codec)slc_load_u32(bytes + SLC_INDEX_CODEC);
    entry->first_key_lo = slc_load_u64(bytes + SLC_INDEX_FIRST_KEY);
    entry->first_key_hi = slc_load_u64(bytes + SLC_INDEX_FIRST_KEY + 8);
    entry->sum_of_squares = slc_load_f64(bytes + SLC_INDEX_SUM_OF_SQUARES);
    entry->content_sum = slc_load_u64(bytes + SLC_INDEX_CONTENT_SUM);
    entry->partition = slc_load_u32(bytes + SLC_INDEX_PARTITION);
    entry->continued =
        (slc_load_u32(bytes + SLC_INDEX_PARTITION_FLAGS) & SLC_PARTITION_CONTINUED) != 0;
    for (unsigned mode = 0; mode < order; mode++) {
        entry->min[mode] = slc_load_u64(bytes + SLC_INDEX_RANGES + 8 * mode);
        entry->max[mode] = slc_load_u64(bytes + SLC_INDEX_RANGES + 8 * (order + mode));
    }
}

/* Checks magic number and version, without which the rest of the page has no meaning. */
static enum slc_status check_identity(const uint8_t *page, uint64_t *at, struct slc_error *err)
{
    uint64_t hash = slc_hash64(page, SLC_HEADER_HASH);

    *at = 0;
    if (memcmp(page, SLC_FILE_MAGIC, SLC_MAGIC_BYTES) != 0) {
        return slc_fail(err, SLC_ERR_FORMAT,
                        "not a sluice block file: the magic number is missing");
    }
    *at = SLC_HEADER_HASH;
    if (slc_load_u64(page + SLC_HEADER_HASH) != hash) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "checksum mismatch in the header: expected %016" PRIx64
                        ", but its bytes hash to %016" PRIx64
                        "; restore the file or convert it again",
                        slc_load_u64(page + SLC_HEADER_HASH), hash);
    }
    *at = SLC_HEADER_MAJOR;
    if (slc_load_u16(page + SLC_HEADER_MAJOR) != SLC_FORMAT_MAJOR) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "format version %u.%u is not supported; this program reads version %d: use "
                        "a newer program",
                        slc_load_u16(page + SLC_HEADER_MAJOR),
                        slc_load_u16(page + SLC_HEADER_MINOR), SLC_FORMAT_MAJOR);
    }
    *at = SLC_HEADER_OWN_BYTES;
    if (slc_load_u32(page + SLC_HEADER_OWN_BYTES) != SLC_HEADER_BYTES) {
        return slc_fail(err, SLC_ERR_FORMAT, "the size field of the header is %u instead of %d",
                        slc_load_u32(page + SLC_HEADER_OWN_BYTES), SLC_HEADER_BYTES);
    }
    *at = SLC_HEADER_RESERVED_BITS;
    if ((slc_load_u64(page + SLC_HEADER_RESERVED_BITS) &
         ~(RELABELLED_BITS | SLC_CONTENT_RUN_BIT | SLC_ZEROS_BIT)) != 0) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "the file uses unknown features (reserved bits %016" PRIx64
                        "): use a newer version of this program",
                        slc_load_u64(page + SLC_HEADER_RESERVED_BITS));
    }
    return SLC_OK;
}

/* Checks the fiber run in `page`: its mode, at byte `mode_at`, and its number of bits, which is at
 * most `most`, at the next byte. Sets *at to the byte that is checked. */
static enum slc_status check_run(const uint8_t *page,
                                 const struct slc_layout_info *info,
                                 uint64_t mode_at,
                                 unsigned most,
                                 uint64_t *at,
                                 struct slc_error *err)
{
    const unsigned mode = page[mode_at];
    const unsigned bits = page[mode_at + 1];

    *at = mode_at;
    if (mode >= info->order || (bits == 0 && mode != 0)) {
        return slc_fail(
            err, SLC_ERR_FORMAT,
            "the header has a fiber run of %u bits in mode %u of %u, which is not valid", bits,
            mode + 1, info->order);
    }
    *at = mode_at + 1;
    unsigned bits_max = (unsigned)slc_min_u64(slc_bits_for_length(info->dims[mode]), most);
    if (bits > bits_max) {
        return slc_fail(
            err, SLC_ERR_FORMAT,
            "the header has a fiber run of %u bits in mode %u, but at most %u bits are possible",
            bits, mode + 1, bits_max);
    }
    return SLC_OK;
}

/* Checks the fiber run of the content sum. If SLC_CONTENT_RUN_BIT is set, the header states this
 * run separately; otherwise the content sum has the fiber run of the file. */
static enum slc_status check_content_run(const uint8_t *page,
                                         struct slc_layout_info *info,
                                         uint64_t *at,
                                         struct slc_error *err)
{
    const struct slc_fiber_run run = {page[SLC_HEADER_CONTENT_MODE], page[SLC_HEADER_CONTENT_BITS]};

    if ((slc_load_u64(page + SLC_HEADER_RESERVED_BITS) & SLC_CONTENT_RUN_BIT) == 0) {
        info->content_keys = info->keys;
        *at = SLC_HEADER_CONTENT_MODE;
        return run.mode == 0 && run.bits == 0
                   ? SLC_OK
                   : slc_fail(err, SLC_ERR_FORMAT,
                              "the content sum has a fiber run of %u bits in mode %u, but the "
                              "reserved bit for this fiber run is not set",
                              run.bits, run.mode + 1);
    }
    SLC_TRY(check_run(page, info, SLC_HEADER_CONTENT_MODE, SLC_FIBER_BITS_MAX, at, err));
    *at = SLC_HEADER_CONTENT_MODE;
    if (slc_fiber_run_same(run, info->keys.run)) {
        return slc_fail(err, SLC_ERR_FORMAT,
                        "the content sum has a separate fiber run of %u bits in mode %u, which "
                        "equals the fiber run of the file",
                        run.bits, run.mode + 1);
    }
    return slc_key_layout_init_run(&info->content_keys, info->order, info->dims, run, err);
}

/* Checks the fiber runs of the file and of the content sum, and sets the key layouts. */
static enum slc_status
check_keys(const uint8_t *page, struct slc_layout_info *info, uint64_t *at, struct slc_error *err)
{
    const struct slc_fiber_run run = {page[SLC_HEADER_RUN_MODE], page[SLC_HEADER_RUN_BITS]};
    const bool whole = info->layout == SLC_LAYOUT_FIBER;

    SLC_TRY(check_run(page, info, SLC_HEADER_RUN_MODE,
                      whole ? SLC_MAX_KEY_BITS : SLC_FIBER_BITS_MAX, at, err));
    *at = SLC_HEADER_DIMS;
    SLC_TRY(slc_key_layout_init_run(&info->keys, info->order, info->dims, run, err));
    *at = SLC_HEADER_RUN_MODE;
    if (whole && !slc_key_layout_fibers(&info->keys, info->layout_mode)) {
        return slc_fail(err, SLC_ERR_FORMAT,
                        "the header has a fiber run of %u bits in mode %u, but the file holds "
                        "whole fibers of mode %u",
                        run.bits, run.mode + 1, info->layout_mode + 1);
    }
    return check_content_run(page, info, at, err);
}

/* Checks layout, types and mode sizes. */
static enum slc_status
check_shape(const uint8_t *page, struct slc_layout_info *info, uint64_t *at, struct slc_error *err)
{
    unsigned layout = page[SLC_HEADER_LAYOUT];
    unsigned layout_mode = page[SLC_HEADER_LAYOUT_MODE];
    unsigned value_type = page[SLC_HEADER_VALUE_TYPE];
    uint32_t codec = slc_load_u32(page + SLC_HEADER_CODEC);

    info->order = page[SLC_HEADER_ORDER];
    *at = SLC_HEADER_ORDER;
    if (info->order < 1 || info->order > SLC_MAX_ORDER) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED, "the header has %u modes; 1 to %d are supported",
                        info->order, SLC_MAX_ORDER);
    }
    info->relabelled_modes = slc_load_u64(page + SLC_HEADER_RESERVED_BITS) & RELABELLED_BITS;
    *at = SLC_HEADER_RESERVED_BITS;
    if (info->relabelled_modes >> info->order != 0) {
        return slc_fail(err, SLC_ERR_FORMAT,
                        "bit mask %04" PRIx64
                        " of relabelled modes has a bit above the %u modes of the tensor",
                        info->relabelled_modes, info->order);
    }
    *at = SLC_HEADER_LAYOUT;
    if (layout < SLC_LAYOUT_BLCO || layout > SLC_LAYOUT_FIBER) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "unknown layout %u: use a newer version of this program", layout);
    }
    *at = SLC_HEADER_LAYOUT_MODE;
    if (layout_mode >= info->order || (layout == SLC_LAYOUT_BLCO && layout_mode != 0)) {
        return slc_fail(err, SLC_ERR_FORMAT, "layout %u with mode %u of %u is not valid", layout,
                        layout_mode, info->order);
    }
    *at = SLC_HEADER_VALUE_TYPE;
    if (value_type != SLC_F32 && value_type != SLC_F64) {
        return slc_fail(err, SLC_ERR_FORMAT, "value type %u is neither f32 (1) nor f64 (2)",
                        value_type);
    }
    *at = SLC_HEADER_CODEC;
    if (codec < SLC_CODEC_PACKED || codec > SLC_CODEC_BLCO) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "unknown codec %" PRIu32 ": use a newer version of this program", codec);
    }
    info->layout = (enum slc_layout_kind)layout;
    info->layout_mode = layout_mode;
    info->value_type = (enum slc_value_type)value_type;
    info->has_zeros = (slc_load_u64(page + SLC_HEADER_RESERVED_BITS) & SLC_ZEROS_BIT) != 0;
    info->codec = (enum slc_codec)codec;
    for (unsigned mode = 0; mode < SLC_MAX_ORDER; mode++) {
        uint64_t length = slc_load_u64(page + SLC_HEADER_DIMS + 8 * mode);
        bool used = mode < info->order;

        *at = SLC_HEADER_DIMS + 8 * mode;
        if (used ? length < 1 || length > SLC_MAX_MODE_LENGTH : length != 0) {
            return slc_fail(err, SLC_ERR_FORMAT, "size %" PRIu64 " of mode %u of %u is not valid",
                            length, mode + 1, info->order);
        }
        info->dims[mode] = length;
    }
    return check_keys(page, info, at, err);
}

/* Checks the bytes that are zero in version 1. */
static enum slc_status check_zeros(const uint8_t *page, uint64_t *at, struct slc_error *err)
{
    *at = slc_find_nonzero(page, SLC_HEADER_ZERO_A, SLC_HEADER_DIMS);
    if (*at == SLC_HEADER_DIMS) {
        *at = slc_find_nonzero(page, SLC_HEADER_ZERO_B, SLC_HEADER_HASH);
    }
    if (*at != SLC_HEADER_HASH) {
        return slc_fail(err, SLC_ERR_FORMAT,
                        "reserved byte %" PRIu64 " of the header is %u instead of 0", *at,
                        page[*at]);
    }
    return SLC_OK;
}

/* Compares the counts with each other and with the file size. Afterwards, no size exceeds the file
 * size, so memory allocated for these sizes is bounded by the actual bytes on disk. */
static enum slc_status check_sizes(const struct slc_file_header *header,
                                   uint64_t file_bytes,
                                   uint64_t *at,
                                   struct slc_error *err)
{
    const struct slc_layout_info *info = &header->info;
    uint64_t blocks = info->block_count;
    uint64_t expected_index;
    uint64_t expected_file;

    *at = SLC_HEADER_FILE_BYTES;
    if (info->file_bytes != file_bytes) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the file has %" PRIu64 " bytes instead of %" PRIu64
                        ": it was truncated or extended; restore the file or convert it again",
                        file_bytes, info->file_bytes);
    }
    *at = SLC_HEADER_INDEX_BYTES;
    if (!slc_mul_u64(blocks, slc_index_entry_bytes(info->order), &expected_index) ||
        !slc_round_up_u64(expected_index, SLC_PAGE_BYTES, &expected_index) ||
        expected_index != header->index_bytes) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "an index of %" PRIu64 " bytes does not match %" PRIu64 " blocks",
                        header->index_bytes, blocks);
    }
    *at = SLC_HEADER_INDEX_OFFSET;
    if (!slc_add_u64(header->index_offset, header->index_bytes, &expected_file) ||
        !slc_add_u64(expected_file, SLC_CLOSING_BYTES, &expected_file) ||
        expected_file != file_bytes || header->index_offset < SLC_HEADER_BYTES ||
        header->index_offset % SLC_PAGE_BYTES != 0) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the index of %" PRIu64 " bytes at %" PRIu64
                        " does not end where the closing page of the file of %" PRIu64
                        " bytes starts",
                        header->index_bytes, header->index_offset, file_bytes);
    }
    *at = SLC_HEADER_BLOCK_COUNT;
    if (blocks > (header->index_offset - SLC_HEADER_BYTES) / SLC_PAGE_BYTES) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "%" PRIu64 " blocks do not fit into the bytes before the index", blocks);
    }
    *at = SLC_HEADER_TILE_COUNT;
    if (info->tile_count < blocks || info->tile_count > info->nnz ||
        (blocks == 0 && info->nnz != 0)) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the counts contradict each other: %" PRIu64 " nonzeros in %" PRIu64
                        " tiles in %" PRIu64 " blocks",
                        info->nnz, info->tile_count, blocks);
    }
    return SLC_OK;
}

enum slc_status slc_header_decode(const uint8_t *page,
                                  uint64_t file_bytes,
                                  struct slc_file_header *header,
                                  struct slc_error *err)
{
    struct slc_layout_info *info = &header->info;
    uint64_t at = 0;

    memset(header, 0, sizeof *header);
    enum slc_status status = check_identity(page, &at, err);
    SLC_THEN(status, check_shape(page, info, &at, err));
    SLC_THEN(status, check_zeros(page, &at, err));
    if (status == SLC_OK) {
        info->nnz = slc_load_u64(page + SLC_HEADER_NNZ);
        info->sum_of_squares = slc_load_f64(page + SLC_HEADER_SUM_OF_SQUARES);
        info->content_sum = slc_load_u64(page + SLC_HEADER_CONTENT_SUM);
        info->block_count = slc_load_u64(page + SLC_HEADER_BLOCK_COUNT);
        info->tile_count = slc_load_u64(page + SLC_HEADER_TILE_COUNT);
        info->file_bytes = slc_load_u64(page + SLC_HEADER_FILE_BYTES);
        info->header_hash = slc_load_u64(page + SLC_HEADER_HASH);
        header->index_offset = slc_load_u64(page + SLC_HEADER_INDEX_OFFSET);
        header->index_bytes = slc_load_u64(page + SLC_HEADER_INDEX_BYTES);
        header->index_hash = slc_load_u64(page + SLC_HEADER_INDEX_HASH);
        status = check_sizes(header, file_bytes, &at, err);
    }
    if (status != SLC_OK) {
        slc_error_locate_block(err, NULL, SLC_NOWHERE, at);
    }
    return status;
}

enum slc_status
slc_closing_check(const uint8_t *page, const struct slc_file_header *header, struct slc_error *err)
{
    const struct {
        uint32_t at;
        const char *what;
        uint64_t expected;
    } fields[] = {
        {SLC_CLOSING_HASH, "checksum", slc_hash64(page, SLC_CLOSING_HASH)},
        {0, "magic number", slc_load_u64(SLC_CLOSING_MAGIC)},
        {SLC_CLOSING_HEADER_HASH, "checksum of the header", header->info.header_hash},
        {SLC_CLOSING_INDEX_OFFSET, "offset of the index", header->index_offset},
        {SLC_CLOSING_INDEX_BYTES, "size of the index", header->index_bytes},
        {SLC_CLOSING_INDEX_HASH, "checksum of the index", header->index_hash},
        {SLC_CLOSING_FILE_BYTES, "size of the file", header->info.file_bytes},
    };
    uint64_t base = header->info.file_bytes - SLC_CLOSING_BYTES;
    uint64_t nonzero = slc_find_nonzero(page, SLC_CLOSING_ZERO, SLC_CLOSING_HASH);
    enum slc_status status;

    for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        uint64_t found = slc_load_u64(page + fields[i].at);

        if (found != fields[i].expected) {
            status = slc_fail(err, SLC_ERR_DAMAGED,
                              "the closing page's %s is %016" PRIx64 " instead of %016" PRIx64
                              ": restore the file or convert it again",
                              fields[i].what, found, fields[i].expected);
            slc_error_locate_block(err, NULL, SLC_NOWHERE, base + fields[i].at);
            return status;
        }
    }
    if (nonzero != SLC_CLOSING_HASH) {
        status = slc_fail(err, SLC_ERR_DAMAGED,
                          "a reserved byte of the closing page is %u instead of 0", page[nonzero]);
        slc_error_locate_block(err, NULL, SLC_NOWHERE, base + nonzero);
        return status;
    }
    return SLC_OK;
}
