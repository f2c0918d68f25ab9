/*
 * The decoder's parts, private to storage/decode*.c.
 *
 * A tile is decoded in chunks of whole groups that stay in the first-level cache. Keys are handled
 * relative to the tile's first key, by one 64-bit word where the upper 64 key bits do not change
 * within the tile, by two otherwise. Faults travel as struct slc_damage up to slc_tile_open and
 * `next`, which write the error record.
 */
#ifndef SLC_STORAGE_DECODE_INTERNAL_H
#define SLC_STORAGE_DECODE_INTERNAL_H

#include "base/block.h"
#include "base/encoded.h"
#include "base/memory/memory.h"
#include "storage/codec/bitpack.h"
#include "storage/codec/block_layout.h"
#include "storage/codec/decode_ops.h"
#include "storage/codec/decoder.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /*
     * The longest chunk. In runs 8 KiB of offsets and 16 of values; kernels that want an offset for
     * each mode ask for less, so that all of it stays within the first-level cache.
     */
    SLC_CHUNK_NNZ = SLC_CHUNK_GROUPS * SLC_GROUP_NNZ,
    /* Elements past the end of a scratch array that loops may touch. */
    SLC_CHUNK_SLACK = 16
};

/* Where the values of the open tile come from. */
struct slc_value_plan {
    enum slc_value_form form;
    const uint8_t *bytes; /* raw values, dictionary indices, or planes (LZ4 undone) */
    const uint8_t *dictionary;
    uint32_t dictionary_count;
    unsigned width; /* of dictionary indices */
    int64_t low;
    struct slc_patched_view integers;
};

/* From keys of the open tile to the offsets of one mode. */
struct slc_mode_plan {
    struct slc_gather lo, hi; /* only the key bits that vary within the tile */
    uint64_t base;            /* corner minus the coordinate bits that do not vary */
    bool wide;                /* more than 32 bits vary */
};

struct slc_packed_plan {
    const uint8_t *bases;
    unsigned base_width;
    struct slc_patched_view gaps;
};

struct slc_lz4_plan {
    const uint8_t *planes; /* one of nnz bytes per gap byte */
    unsigned gap_bytes;
};

struct slc_blco_plan {
    const uint8_t *sub_blocks, *indices;
    uint32_t sub_block_count;
    uint32_t sub_block;            /* holds the next nonzero */
    uint32_t shift[SLC_MAX_ORDER]; /* of each mode's field in a re-encoded index */
    unsigned index_bits;
};

/* Bytes that LZ4 made of the tile's planes; none: `bytes` is 0. */
struct slc_lz4_section {
    const uint8_t *at;
    uint32_t bytes, expanded_bytes;
};

struct slc_decoder {
    struct slc_key_layout keys;
    uint64_t dims[SLC_MAX_ORDER];
    enum slc_value_type value_type;
    struct slc_buffer memory;

    /* Scratch of one chunk. */
    uint64_t *key_room; /* for key_lo and key_small, where they are not with the values */
    uint32_t *small_room;
    uint64_t *key_lo, *key_hi;
    uint32_t *key_small;         /* lower halves of key_lo, where only those vary */
    uint64_t *wide_lo, *wide_hi; /* gathered fields of modes that vary in more than 32 bits */
    uint64_t *packed;            /* one group of integers */
    uint32_t *offset[SLC_MAX_ORDER];
    uint32_t *spare;
    uint32_t *run_begin; /* where runs of fibers begin, and their first keys */
    uint64_t *run_keys;
    uint32_t *run_small; /* or these, where key_small is what there is */
    void *values;
    double *exact;   /* values before they are rounded to f32 */
    uint8_t *raw;    /* values put together from planes */
    uint8_t *planes; /* one tile's sections after LZ4 */

    /* The open tile. */
    const struct slc_decode_ops *ops;
    const char *path; /* of the block file, for error messages; may be NULL */
    const uint8_t *block_data;
    uint64_t block, block_offset;
    uint32_t tile;
    enum slc_codec codec;
    struct slc_tile_entry entry;
    const uint8_t *data;
    slc_u128 span;      /* last key - first key */
    unsigned span_bits; /* its length: what bounds every gap and base */
    bool partitioned;   /* the layout is sorted by a mode */
    bool finds_runs;    /* the layout's keys have runs that the loops can find */
    bool two_words;     /* key bits 64..127 vary */
    bool small;         /* only key bits 0..31 vary, and keys are decoded to key_small */
    struct slc_mode_plan modes[SLC_MAX_ORDER];
    struct slc_fields fields; /* of modes that vary in one word and at most 32 bits */
    /* The same where the tile is cut into runs: of their own mode, and of the others. */
    struct slc_fields own_fields, run_fields;
    bool byte_runs; /* runs may be found without keys */
    struct slc_value_plan value;
    struct slc_lz4_section lz4; /* to be expanded into `planes` */
    union {
        struct slc_packed_plan packed;
        struct slc_lz4_plan lz4;
        struct slc_blco_plan blco;
    } plan;
    struct slc_encoded_tile encoded; /* of slc_tile_describe */
    uint32_t position;               /* nonzeros delivered */
    slc_u128 next;                   /* key before `position` plus 1, minus the first key */
};

/*
 * All checks of opening tile `index`: fills in what the decoder knows of the open tile, but for
 * what the loops alone need. Nothing is expanded yet. Errors: SLC_ERR_DAMAGED.
 */
enum slc_status slc_tile_check(struct slc_decoder *decoder,
                               const struct slc_block_view *block,
                               uint32_t index,
                               struct slc_error *err) SLC_NODISCARD;

/* The error of a damage that was found in the open tile. */
enum slc_status slc_decoder_fail(const struct slc_decoder *decoder,
                                 const struct slc_damage *damage,
                                 struct slc_error *err);

/* What slc_tile_view.describe is of an open tile: describe.c. */
enum slc_status slc_tile_describe(struct slc_tile_view *tile,
                                  struct slc_encoded_block *described,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Checks the data of the tile in decoder->entry for its codec, and decodes `count` nonzeros from
 * `start` into key_lo (and key_hi), or, for blco, straight into the offsets.
 */
bool slc_packed_open(struct slc_decoder *decoder, struct slc_damage *damage);
bool slc_packed_keys(struct slc_decoder *decoder,
                     uint32_t start,
                     uint32_t count,
                     struct slc_damage *damage);
/* Into key_small, of a tile that is small. */
bool slc_packed_small_keys(struct slc_decoder *decoder,
                           uint32_t start,
                           uint32_t count,
                           struct slc_damage *damage);
/*
 * Runs of the next `count` nonzeros, their heads in run_small and the offsets of their own mode, of
 * a tile that says byte_runs. False where keys have to be asked.
 */
bool slc_packed_byte_runs(struct slc_decoder *decoder, uint32_t count, uint32_t *runs);
bool slc_lz4_open(struct slc_decoder *decoder, struct slc_damage *damage);
bool slc_lz4_keys(struct slc_decoder *decoder,
                  uint32_t start,
                  uint32_t count,
                  struct slc_damage *damage);
bool slc_blco_open(struct slc_decoder *decoder, struct slc_damage *damage);
/* Where each mode's field of a re-encoded index begins; returns the bits of all. */
unsigned slc_blco_shifts(const struct slc_key_layout *keys, uint32_t shift[SLC_MAX_ORDER]);
bool slc_blco_offsets(struct slc_decoder *decoder,
                      uint32_t start,
                      uint32_t count,
                      struct slc_damage *damage);
/*
 * Cuts `count` nonzeros with offsets of all modes into the runs that keys would give, so that
 * results do not depend on the codec; of the modes a run shares, one offset a run is left.
 */
uint32_t slc_blco_runs(struct slc_decoder *decoder, uint32_t count);

/*
 * Turns the `count` gaps at index `at` of key_lo (key_hi) into keys, continuing from
 * decoder->next. The keys are then strictly ascending and at most the last key. `where`: the bytes
 * to blame otherwise.
 */
bool slc_decoder_sum(struct slc_decoder *decoder,
                     uint32_t at,
                     uint32_t count,
                     const uint8_t *where,
                     struct slc_damage *damage);

/* The same checks of keys that are summed already, where the tile varies in one word. */
bool slc_decoder_pass_keys(struct slc_decoder *decoder,
                           uint32_t at,
                           uint32_t count,
                           const uint8_t *where,
                           struct slc_damage *damage);

/* A mode whose offsets come out of the lower words of keys alone, by the plans of fields. */
static inline bool slc_mode_is_plain(const struct slc_mode_plan *mode)
{
    return !mode->wide && mode->hi.bits == 0 && mode->lo.bits > 0;
}

/* Finds the offsets of `count` nonzeros whose keys are decoded. */
bool slc_decoder_offsets(struct slc_decoder *decoder, uint32_t count, struct slc_damage *damage);
/* Cuts them into runs, and finds the offsets that a run shares once for each run. */
bool slc_decoder_runs(struct slc_decoder *decoder,
                      uint32_t count,
                      uint32_t *runs,
                      struct slc_damage *damage);

/* The latter where run_small holds the keys of `runs` heads. */
bool slc_decoder_run_offsets(struct slc_decoder *decoder, uint32_t runs, struct slc_damage *damage);

/* Checks a values section of exactly `bytes` bytes at `section`, and decodes from it. */
bool slc_values_open(struct slc_decoder *decoder,
                     unsigned form,
                     const uint8_t *section,
                     uint64_t bytes,
                     struct slc_damage *damage);
/* Between the two: where all values are equal, fills a chunk with them. */
void slc_values_fill(struct slc_decoder *decoder);
bool slc_values_chunk(struct slc_decoder *decoder,
                      uint32_t start,
                      uint32_t count,
                      struct slc_damage *damage);

/*
 * Notes a section of `bytes` bytes under LZ4 that has to expand to exactly `expanded_bytes`. None
 * is that short: no bytes expand to none.
 */
bool slc_planes_note(struct slc_decoder *decoder,
                     const uint8_t *section,
                     uint64_t bytes,
                     uint64_t expanded_bytes,
                     struct slc_damage *damage);
/* Undoes LZ4 of the section that was noted, if any, into decoder->planes. */
bool slc_planes_expand(struct slc_decoder *decoder, struct slc_damage *damage);

/*
 * Puts elements of 8 (or 4) little-endian bytes together: out element i is byte i of each plane.
 * Loads up to 16 bytes past `count` in each plane, stores up to 15 elements past it.
 */
void slc_unshuffle8(const uint8_t *const planes[8], uint32_t count, uint8_t *out);
void slc_unshuffle4(const uint8_t *const planes[4], uint32_t count, uint8_t *out);

#endif
