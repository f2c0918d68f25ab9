/* Checks a block in memory: checksum, header, tile directory, slack and padding (docs/FORMAT.md,
 * section 5). Afterwards every offset, count and coordinate range of the directory can be trusted;
 * the decoder checks the tile data.
 *
 * Cost: one xxh3 pass (none if the block was verified before), and one directory entry per tile. */
#include "storage/block/reader.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "storage/block/file_layout.h"
#include "storage/codec/block_layout.h"

#include <inttypes.h>
#include <string.h>

/* State of a check. Errors report `at`, an offset in the block. */
struct check {
    const struct slc_layout_info *info;
    const struct slc_block_view *view;
    uint64_t at;
    struct slc_error *err;
};

/* Totals of the directory, which are compared with the index. */
struct directory_totals {
    uint64_t nnz;
    uint64_t next_data;
    uint64_t content_sum;
    double sum_of_squares;
    slc_u128 last_key;
    uint64_t min[SLC_MAX_ORDER];
    uint64_t max[SLC_MAX_ORDER];
};

static enum slc_status check_hash(struct check *check)
{
    const struct slc_block_entry *entry = &check->view->entry;
    uint64_t hash = slc_hash64(check->view->data, entry->padded_bytes);

    if (hash != entry->hash) {
        return slc_fail(check->err, SLC_ERR_DAMAGED,
                        "checksum mismatch in a block: expected %016" PRIx64 ", but its %" PRIu64
                        " bytes hash to %016" PRIx64 "; restore the file or convert it again",
                        entry->hash, entry->padded_bytes, hash);
    }
    return SLC_OK;
}

/* Checks the block header. The index and the file header determine the value of every field. */
static enum slc_status check_header(struct check *check)
{
    const struct slc_block_entry *entry = &check->view->entry;
    const uint8_t *data = check->view->data;
    const struct {
        uint32_t at;
        const char *what;
        uint64_t found;
        uint64_t expected;
    } fields[] = {
        {SLC_BLOCK_AT_MAGIC, "magic number", slc_load_u32(data + SLC_BLOCK_AT_MAGIC),
         SLC_BLOCK_MAGIC},
        {SLC_BLOCK_AT_CODEC, "codec", slc_load_u16(data + SLC_BLOCK_AT_CODEC),
         (uint64_t)entry->codec},
        {SLC_BLOCK_AT_ZERO16, "reserved field", slc_load_u16(data + SLC_BLOCK_AT_ZERO16), 0},
        {SLC_BLOCK_AT_ORDINAL, "ordinal", slc_load_u64(data + SLC_BLOCK_AT_ORDINAL),
         check->view->block},
        {SLC_BLOCK_AT_NNZ, "number of nonzeros", slc_load_u64(data + SLC_BLOCK_AT_NNZ), entry->nnz},
        {SLC_BLOCK_AT_TILE_COUNT, "number of tiles", slc_load_u32(data + SLC_BLOCK_AT_TILE_COUNT),
         entry->tile_count},
        {SLC_BLOCK_AT_ENTRY_BYTES, "size of a directory entry",
         slc_load_u32(data + SLC_BLOCK_AT_ENTRY_BYTES), slc_tile_entry_bytes(check->info->order)},
        {SLC_BLOCK_AT_FIRST_TILE, "first tile", slc_load_u64(data + SLC_BLOCK_AT_FIRST_TILE),
         entry->first_tile},
    };

    for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i].found != fields[i].expected) {
            check->at = fields[i].at;
            return slc_fail(check->err, SLC_ERR_DAMAGED,
                            "the block's %s is %" PRIu64 " instead of %" PRIu64, fields[i].what,
                            fields[i].found, fields[i].expected);
        }
    }
    check->at = slc_find_nonzero(data, SLC_BLOCK_AT_ZERO, SLC_BLOCK_HEADER_BYTES);
    if (check->at != SLC_BLOCK_HEADER_BYTES) {
        return slc_fail(check->err, SLC_ERR_DAMAGED,
                        "a reserved byte of the block header is %u instead of 0", data[check->at]);
    }
    return SLC_OK;
}

/* Checks data offset, nonzero count and keys of a tile. */
static enum slc_status check_tile(struct check *check,
                                  uint32_t index,
                                  const struct slc_tile_entry *tile,
                                  const struct directory_totals *totals)
{
    const struct slc_block_entry *entry = &check->view->entry;
    const struct slc_key_layout *keys = &check->info->keys;
    uint64_t data_limit = entry->bytes - SLC_BLOCK_SLACK_BYTES;
    slc_u128 first = slc_key_join(tile->first_lo, tile->first_hi);
    slc_u128 last = slc_key_join(tile->last_lo, tile->last_hi);

    if (tile->data_offset != totals->next_data || tile->data_bytes == 0 ||
        tile->data_bytes % 8 != 0 || tile->data_bytes > data_limit - totals->next_data) {
        return slc_fail(check->err, SLC_ERR_DAMAGED,
                        "tile %" PRIu32 " has %" PRIu32 " bytes at offset %" PRIu64
                        "; its size must be a positive multiple of 8, its offset %" PRIu64
                        " and its end at most %" PRIu64,
                        index, tile->data_bytes, tile->data_offset, totals->next_data, data_limit);
    }
    if (tile->nnz < 1 || tile->nnz > SLC_TILE_NNZ) {
        return slc_fail(check->err, SLC_ERR_DAMAGED,
                        "tile %" PRIu32 " has %" PRIu32 " nonzeros; 1 to %d are possible", index,
                        tile->nnz, SLC_TILE_NNZ);
    }
    if (last < first || last - first < tile->nnz - 1U || (tile->nnz == 1 && last != first) ||
        (keys->bits < SLC_MAX_KEY_BITS && last >> keys->bits != 0)) {
        return slc_fail(check->err, SLC_ERR_DAMAGED,
                        "the first and last key of tile %" PRIu32
                        " are not possible for its %" PRIu32 " nonzeros",
                        index, tile->nnz);
    }
    if (index == 0 ? first != slc_key_join(entry->first_key_lo, entry->first_key_hi)
                   : first <= totals->last_key) {
        return slc_fail(
            check->err, SLC_ERR_DAMAGED, "the first key of tile %" PRIu32 " is not %s", index,
            index == 0 ? "the first key in the index" : "above the last key of the previous tile");
    }
    return SLC_OK;
}

/* Checks the coordinate ranges of a tile and extends the directory's ranges to include them. */
static enum slc_status check_tile_ranges(struct check *check,
                                         uint32_t index,
                                         const struct slc_tile_entry *tile,
                                         struct directory_totals *totals)
{
    const struct slc_block_entry *entry = &check->view->entry;

    for (unsigned mode = 0; mode < check->info->order; mode++) {
        uint64_t low = tile->corner[mode];

        /* The block's range was checked against the mode size when the file was opened, so nothing
         * overflows. */
        if (low < entry->min[mode] || low > entry->max[mode] ||
            tile->extent[mode] > entry->max[mode] - low || tile->extent[mode] == UINT32_MAX) {
            return slc_fail(check->err, SLC_ERR_DAMAGED,
                            "tile %" PRIu32 " covers %" PRIu32 " coordinates from %" PRIu64
                            " in mode %u, but the block only covers %" PRIu64 " to %" PRIu64,
                            index, tile->extent[mode], low, mode + 1, entry->min[mode],
                            entry->max[mode]);
        }
        totals->min[mode] = index == 0 ? low : slc_min_u64(totals->min[mode], low);
        totals->max[mode] = slc_max_u64(totals->max[mode], low + tile->extent[mode]);
    }
    return SLC_OK;
}

/* Compares the totals of the directory with the index entry of the block. */
static enum slc_status check_directory_totals(struct check *check,
                                              const struct directory_totals *totals)
{
    const struct slc_block_entry *entry = &check->view->entry;

    if (totals->next_data != entry->bytes - SLC_BLOCK_SLACK_BYTES) {
        return slc_fail(check->err, SLC_ERR_DAMAGED,
                        "the tiles end at byte %" PRIu64 " of the block instead of %" PRIu64,
                        totals->next_data, entry->bytes - SLC_BLOCK_SLACK_BYTES);
    }
    if (totals->nnz != entry->nnz) {
        return slc_fail(check->err, SLC_ERR_DAMAGED,
                        "the tiles have %" PRIu64 " nonzeros, but the index has %" PRIu64,
                        totals->nnz, entry->nnz);
    }
    if (slc_bits_f64(totals->sum_of_squares) != slc_bits_f64(entry->sum_of_squares)) {
        return slc_fail(check->err, SLC_ERR_DAMAGED,
                        "the tiles have a sum of squares of %.17g, but the index has %.17g",
                        totals->sum_of_squares, entry->sum_of_squares);
    }
    if (totals->content_sum != entry->content_sum) {
        return slc_fail(check->err, SLC_ERR_DAMAGED,
                        "the tiles have the content sum %016" PRIx64
                        ", but the index has %016" PRIx64,
                        totals->content_sum, entry->content_sum);
    }
    for (unsigned mode = 0; mode < check->info->order; mode++) {
        if (totals->min[mode] != entry->min[mode] || totals->max[mode] != entry->max[mode]) {
            return slc_fail(check->err, SLC_ERR_DAMAGED,
                            "the tiles cover coordinates %" PRIu64 " to %" PRIu64
                            " in mode %u, but the index has %" PRIu64 " to %" PRIu64,
                            totals->min[mode], totals->max[mode], mode + 1, entry->min[mode],
                            entry->max[mode]);
        }
    }
    return SLC_OK;
}

static enum slc_status check_directory(struct check *check, struct directory_totals *totals)
{
    const struct slc_block_entry *entry = &check->view->entry;
    unsigned order = check->info->order;
    uint64_t entry_end = SLC_TILE_AT_CORNER + 12 * (uint64_t)order;

    totals->next_data = slc_tile_entry_offset(order, entry->tile_count);
    for (uint32_t index = 0; index < entry->tile_count; index++) {
        const uint8_t *bytes = check->view->data + slc_tile_entry_offset(order, index);
        struct slc_tile_entry tile;

        check->at = slc_tile_entry_offset(order, index);
        slc_tile_entry_load(bytes, order, &tile);
        SLC_TRY(check_tile(check, index, &tile, totals));
        SLC_TRY(check_tile_ranges(check, index, &tile, totals));
        if (slc_find_nonzero(bytes, entry_end, slc_tile_entry_bytes(order)) !=
            slc_tile_entry_bytes(order)) {
            return slc_fail(check->err, SLC_ERR_DAMAGED,
                            "the padding of the directory entry of tile %" PRIu32 " is not zero",
                            index);
        }
        totals->nnz += tile.nnz;
        totals->next_data += tile.data_bytes;
        totals->content_sum += tile.content_sum;
        totals->sum_of_squares += tile.sum_of_squares;
        totals->last_key = slc_key_join(tile.last_lo, tile.last_hi);
    }
    check->at = SLC_BLOCK_HEADER_BYTES;
    return check_directory_totals(check, totals);
}

/* Checks the bytes after the block's data, and that the next block starts above `last_key`. */
static enum slc_status check_end(struct check *check, slc_u128 last_key)
{
    const struct slc_block_view *view = check->view;
    const struct slc_block_entry *entry = &view->entry;

    check->at =
        slc_find_nonzero(view->data, entry->bytes - SLC_BLOCK_SLACK_BYTES, entry->padded_bytes);
    if (check->at != entry->padded_bytes) {
        return slc_fail(check->err, SLC_ERR_DAMAGED,
                        "a byte after the block's data is %u instead of 0", view->data[check->at]);
    }
    check->at = SLC_BLOCK_HEADER_BYTES;
    if (view->block + 1 < check->info->block_count) {
        struct slc_block_entry next;

        slc_reader_entry(view->reader, view->block + 1, &next);
        if (slc_keys_ascend_across(check->info, entry->partition, &next) &&
            last_key >= slc_key_join(next.first_key_lo, next.first_key_hi)) {
            return slc_fail(check->err, SLC_ERR_DAMAGED,
                            "the block's last key is not below the first key of the next block");
        }
    }
    return SLC_OK;
}

enum slc_status slc_block_check(const struct slc_layout_info *info,
                                const struct slc_block_view *view,
                                bool verified,
                                struct slc_error *err)
{
    struct directory_totals totals = {0};
    struct check check = {.info = info, .view = view, .err = err};
    enum slc_status status = verified ? SLC_OK : check_hash(&check);
    SLC_THEN(status, check_header(&check));
    SLC_THEN(status, check_directory(&check, &totals));
    SLC_THEN(status, check_end(&check, totals.last_key));
    if (status != SLC_OK) {
        slc_error_locate_block(err, view->path, view->block, view->entry.offset + check.at);
    }
    return status;
}

/* True if all values of `entry` that check_header and check_directory rely on are valid. */
static bool entry_possible(const struct slc_layout_info *info, const struct slc_block_entry *entry)
{
    uint64_t least = slc_tile_entry_offset(info->order, entry->tile_count) +
                     8 * (uint64_t)entry->tile_count + SLC_BLOCK_SLACK_BYTES;

    for (unsigned mode = 0; mode < info->order; mode++) {
        if (entry->min[mode] > entry->max[mode] || entry->max[mode] >= info->dims[mode]) {
            return false;
        }
    }
    return entry->tile_count > 0 && entry->bytes >= least && entry->bytes <= entry->padded_bytes &&
           entry->codec >= SLC_CODEC_PACKED && entry->codec <= SLC_CODEC_BLCO;
}

bool slc_block_agrees(const struct slc_layout_info *info,
                      uint64_t block,
                      const struct slc_block_entry *entry,
                      const void *data,
                      slc_u128 *last_key)
{
    const struct slc_block_view view = {.block = block, .entry = *entry, .data = data};
    struct check check = {.info = info, .view = &view};
    struct directory_totals totals = {0};

    if (!entry_possible(info, entry) || check_hash(&check) != SLC_OK ||
        check_header(&check) != SLC_OK || check_directory(&check, &totals) != SLC_OK) {
        return false;
    }
    *last_key = totals.last_key;
    return true;
}
