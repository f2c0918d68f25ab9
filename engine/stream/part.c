/* Finds the keys at which parts begin, and the blocks of a part. The nonzeros of a block are taken
 * to be evenly spread over the interval of keys that its bounding box allows. */
#include "engine/stream/part.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A part may have this fraction of its bytes more or less at each end. Measured with TTV in modes
 * 1, 2 and 3 in 8 parts over 455 blocks of a tensor of 30,000 x 20,000 x 10,000: with 1/16, all
 * parts read 1.32, 1.15 and 1.06 times the blocks of one run, with 1/8 1.22, 1.11 and 1.04 times,
 * and with 1/4 1.18, 1.10 and 1.02 times. The largest part had up to 1.14, 1.15 and 1.32 times the
 * mean. */
#define TOLERANCE (1.0 / 4)

/* The interval of keys that a block may have, and its weight. */
struct span {
    slc_u128 first, last;
    double bytes;
};

uint64_t slc_part_memory_bytes(const struct slc_layout_info *info)
{
    return 2 * (info->block_count + 1) * sizeof(uint64_t);
}

/* Returns the bits of `key` that `keep` selects, as the low bits of a number. */
static slc_u128 gather_bits(slc_u128 key, slc_u128 keep)
{
    const uint64_t low = (uint64_t)keep, high = (uint64_t)(keep >> 64);

    return (slc_u128)slc_bits_gather((uint64_t)(key >> 64), high)
               << (unsigned)__builtin_popcountll(low) |
           slc_bits_gather((uint64_t)key, low);
}

/* Returns the bits of the kept modes in keys of the layout. */
static slc_u128 kept_bits(const struct slc_key_layout *keys, uint32_t kept)
{
    slc_u128 bits = 0;

    for (unsigned n = 0; n < keys->order; n++) {
        bits |= (kept >> n & 1) != 0 ? slc_key_join(keys->mask_lo[n], keys->mask_hi[n]) : 0;
    }
    return bits;
}

static slc_u128 largest_key(const struct slc_key_layout *keys)
{
    return keys->bits == 0 ? 0 : ~(slc_u128)0 >> (SLC_MAX_KEY_BITS - keys->bits);
}

/* Sets the layout of the keys of results. */
static void set_keys(struct slc_part *part, const struct slc_key_layout *source, uint32_t kept)
{
    const slc_u128 keep = kept_bits(source, kept);

    part->keys = (struct slc_key_layout){.order = source->order};
    for (unsigned n = 0; n < source->order; n++) {
        if ((kept >> n & 1) != 0) {
            const slc_u128 mask =
                gather_bits(slc_key_join(source->mask_lo[n], source->mask_hi[n]), keep);

            part->keys.mode_bits[n] = source->mode_bits[n];
            part->keys.bits += source->mode_bits[n];
            part->keys.mask_lo[n] = (uint64_t)mask;
            part->keys.mask_hi[n] = (uint64_t)(mask >> 64);
        }
    }
}

static slc_u128 key_of(const struct slc_part *part, const uint64_t *coords)
{
    uint64_t known[SLC_MAX_ORDER];

    for (unsigned n = 0; n < part->keys.order; n++) {
        known[n] = part->keys.mode_bits[n] > 0 ? coords[n] : 0;
    }
    return slc_key_encode(&part->keys, known);
}

bool slc_part_holds(const struct slc_part *part, const uint64_t *coords)
{
    const slc_u128 key = key_of(part, coords);

    return !part->empty && key >= part->first && key <= part->last;
}

/* Keys grow with every coordinate, so the corners of a box have its smallest and largest key. */
enum slc_part_overlap
slc_part_overlap(const struct slc_part *part, const uint64_t *least, const uint64_t *most)
{
    const slc_u128 first = key_of(part, least), last = key_of(part, most);

    if (part->empty || last < part->first || first > part->last) {
        return SLC_PART_NONE;
    }
    return first >= part->first && last <= part->last ? SLC_PART_ALL : SLC_PART_SOME;
}

/* Returns the bytes of nonzeros whose keys are below `key`. */
static double bytes_below(const struct span *spans, uint64_t count, slc_u128 key)
{
    double sum = 0;

    for (uint64_t b = 0; b < count; b++) {
        const struct span *span = &spans[b];

        if (span->last < key) {
            sum += span->bytes;
        } else if (span->first < key) {
            sum += span->bytes * (double)(key - span->first) /
                   ((double)(span->last - span->first) + 1);
        }
    }
    return sum;
}

/* Returns the key with the most trailing zeros below which there are `target` bytes, plus or minus
 * `tolerance`. If there is none, because one key has too many bytes, returns this key. */
static slc_u128
find_cut(const struct span *spans, uint64_t count, unsigned bits, double target, double tolerance)
{
    slc_u128 cut = 0;

    for (unsigned bit = bits; bit-- > 0;) {
        const slc_u128 tried = cut | (slc_u128)1 << bit;
        const double bytes = bytes_below(spans, count, tried);

        if (fabs(bytes - target) <= tolerance) {
            return tried;
        }
        cut = bytes < target ? tried : cut;
    }
    return cut;
}

/* Sets the interval of the part. */
static void set_interval(struct slc_part *part, const struct span *spans, uint64_t count)
{
    const unsigned number = part->choice.number, parts = part->choice.count;
    double total = 0;

    for (uint64_t b = 0; b < count; b++) {
        total += spans[b].bytes;
    }
    const double each = total / parts;
    part->last = largest_key(&part->keys);
    if (number > 0) {
        part->first = find_cut(spans, count, part->keys.bits, each * number, each * TOLERANCE);
    }
    if (number + 1 < parts) {
        const slc_u128 next =
            find_cut(spans, count, part->keys.bits, each * (number + 1), each * TOLERANCE);

        part->empty = next <= part->first;
        part->last = next - 1;
    }
}

/* Returns true if a key from `first` to `last` of the layout may belong to the part. Divides the
 * keys into ranges in which some low bits have all values; without the bits of modes that are not
 * kept, each range is an interval. */
static bool range_meets(const struct slc_part *part, slc_u128 keep, slc_u128 first, slc_u128 last)
{
    for (;;) {
        slc_u128 below = 0; /* ones in the low bits that vary */

        while (below != ~(slc_u128)0 && (first & (below << 1 | 1)) == 0 &&
               last - first >= (below << 1 | 1)) {
            below = below << 1 | 1;
        }
        if (gather_bits(first | below, keep) >= part->first &&
            gather_bits(first, keep) <= part->last) {
            return true;
        }
        if (last - first == below) {
            return false;
        }
        first += below + 1;
    }
}

static slc_u128 first_key(const struct slc_reader *reader, uint64_t block)
{
    struct slc_block_entry entry;

    slc_reader_entry(reader, block, &entry);
    return slc_key_join(entry.first_key_lo, entry.first_key_hi);
}

/* Returns true if block `b` may have nonzeros of the part. */
static bool block_meets(const struct slc_part *part,
                        const struct slc_reader *reader,
                        slc_u128 keep,
                        const struct span *spans,
                        uint64_t b)
{
    const struct slc_layout_info *info = slc_reader_info(reader);

    if (part->empty || spans[b].last < part->first || spans[b].first > part->last) {
        return false;
    }
    if (info->layout == SLC_LAYOUT_SORTED ||
        (spans[b].first >= part->first && spans[b].last <= part->last)) {
        return true;
    }
    return range_meets(part, keep, first_key(reader, b),
                       b + 1 < info->block_count ? first_key(reader, b + 1) - 1
                                                 : largest_key(&info->keys));
}

/* Lists the blocks of the part. `spans` has the intervals of all blocks. */
static void list_blocks(struct slc_part *part,
                        const struct slc_reader *reader,
                        slc_u128 keep,
                        const struct span *spans)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    uint64_t first = info->block_count, end = 0, skipped = 0;

    for (uint64_t b = 0; b < info->block_count; b++) {
        if (block_meets(part, reader, keep, spans, b)) {
            first = slc_min_u64(first, b);
            end = b + 1;
        }
    }
    for (uint64_t b = 0; b < info->block_count; b++) {
        const bool listed =
            b >= first && b < end &&
            (info->layout == SLC_LAYOUT_SORTED || block_meets(part, reader, keep, spans, b));
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        part->skipped[b] = skipped;
        if (listed) {
            part->blocks[part->block_count++] = b;
            part->tile_count += entry.tile_count;
            part->bytes += entry.padded_bytes;
        } else {
            skipped += entry.tile_count;
        }
    }
}

enum slc_status slc_part_open(struct slc_part *part,
                              const struct slc_reader *reader,
                              uint32_t kept,
                              struct slc_part_choice choice,
                              struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    const uint64_t count = info->block_count;

    memset(part, 0, sizeof *part);
    if (choice.number >= choice.count || choice.count > SLC_PARTS_MAX) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "there is no part %u of %u: parts are numbered from 1, and there "
                        "are at most %d",
                        choice.number + 1, choice.count, SLC_PARTS_MAX);
    }
    part->choice = choice;
    set_keys(part, &info->keys, kept);
    struct span *spans = slc_calloc(count + 1, sizeof *spans);
    part->blocks = slc_calloc(count + 1, sizeof *part->blocks);
    part->skipped = slc_calloc(count + 1, sizeof *part->skipped);
    enum slc_status status =
        slc_check_memory(spans != NULL && part->blocks != NULL && part->skipped != NULL, err,
                         "for a part of %" PRIu64 " blocks", count);
    for (uint64_t b = 0; b < count && status == SLC_OK; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        spans[b] = (struct span){key_of(part, entry.min), key_of(part, entry.max),
                                 (double)entry.padded_bytes};
    }
    if (status == SLC_OK) {
        set_interval(part, spans, count);
        list_blocks(part, reader, kept_bits(&info->keys, kept), spans);
    } else {
        slc_part_close(part);
    }
    slc_free(spans);
    return status;
}

void slc_part_close(struct slc_part *part)
{
    slc_free(part->blocks);
    slc_free(part->skipped);
    memset(part, 0, sizeof *part);
}
