/* State and functions of the decoder, private to storage/codec/.
 * A tile is decoded in chunks of whole groups that stay in the L1 cache. Keys are decoded to one
 * 64-bit word if the upper 64 key bits are constant within the tile, otherwise to two; `span` and
 * `next` are relative to the tile's first key. Faults are passed as struct slc_damage to
 * slc_tile_open and `next`, which write the error record. */
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
    /* Nonzeros of the largest chunk. A chunk with runs has 8 KiB of offsets and 16 KiB of values.
     * Kernels that need offsets of every mode request smaller chunks, which stay in the L1
     * cache. */
    SLC_CHUNK_NNZ = SLC_CHUNK_GROUPS * SLC_GROUP_NNZ,
    /* Number of elements past the end of a scratch array that loops may access. */
    SLC_CHUNK_SLACK = 16
};

/* Source of the values of the open tile. */
struct slc_value_plan {
    enum slc_value_form form;
    const uint8_t *bytes; /* raw values, dictionary indices, or planes (expanded from LZ4) */
    const uint8_t *dictionary;
    uint32_t dictionary_count;
    unsigned width; /* bits of a dictionary index */
    int64_t low;
    struct slc_patched_view integers;
};

/* Converts keys of the open tile to offsets of one mode. */
struct slc_mode_plan {
    struct slc_gather lo, hi; /* gather the mode's key bits that vary within the tile */
    uint64_t base;            /* corner minus the coordinate bits that do not vary */
    bool wide;                /* more than 32 bits vary */
};

struct slc_packed_plan {
    const uint8_t *bases;
    unsigned base_width;
    struct slc_patched_view gaps;
};

struct slc_lz4_plan {
    const uint8_t *planes; /* one plane of nnz bytes per gap byte */
    unsigned gap_bytes;
};

struct slc_blco_plan {
    const uint8_t *sub_blocks, *indices;
    uint32_t sub_block_count;
    uint32_t sub_block;            /* the sub-block that holds the next nonzero */
    uint32_t shift[SLC_MAX_ORDER]; /* position of each mode's field in a re-encoded index */
    unsigned index_bits;
};

/* The tile's planes, compressed by LZ4; `bytes` is 0 if the tile has none. */
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
    /* Memory of key_lo and key_small if they do not share memory with the values. */
    uint64_t *key_scratch;
    uint32_t *small_scratch;
    uint64_t *key_lo, *key_hi;
    uint32_t *key_small;         /* lower halves of key_lo, used if only the lower halves vary */
    uint64_t *wide_lo, *wide_hi; /* gathered fields of modes that vary in more than 32 bits */
    uint64_t *packed;            /* one group of integers */
    uint32_t *offset[SLC_MAX_ORDER];
    uint32_t *spare;
    uint32_t *run_begin; /* starts of fiber runs */
    uint64_t *run_keys;  /* first keys of fiber runs */
    uint32_t *run_small; /* first keys of runs, if keys are in key_small */
    void *values;
    double *exact;   /* values before rounding to f32 */
    uint8_t *raw;    /* values reassembled from planes */
    uint8_t *planes; /* a tile's section after LZ4 expansion */

    /* The open tile. */
    const struct slc_decode_ops *ops;
    const char *path; /* path of the block file, for error messages; may be NULL */
    const uint8_t *block_data;
    uint64_t block, block_offset;
    uint32_t tile;
    enum slc_codec codec;
    struct slc_tile_entry entry;
    const uint8_t *data;
    slc_u128 span;      /* last key - first key */
    unsigned span_bits; /* bit length of `span`, which bounds every gap and base */
    bool partitioned;   /* the layout is sorted by a mode */
    bool has_zeros;     /* values may be 0 */
    bool finds_runs;    /* the layout's keys have fiber runs that the loops can find */
    bool two_words;     /* key bits 64..127 vary */
    bool small;         /* only key bits 0..31 vary; keys are decoded to key_small */
    struct slc_mode_plan modes[SLC_MAX_ORDER];
    struct slc_fields fields; /* fields of modes of which at most 32 bits vary, all in one word */
    /* For tiles with runs: own_fields has the field of the run mode, run_fields the fields of all
     * other modes. */
    struct slc_fields own_fields, run_fields;
    bool byte_runs; /* runs can be found without decoding keys */
    struct slc_value_plan value;
    struct slc_lz4_section lz4; /* section that slc_planes_expand expands into `planes` */
    union {
        struct slc_packed_plan packed;
        struct slc_lz4_plan lz4;
        struct slc_blco_plan blco;
    } plan;
    struct slc_encoded_tile encoded; /* result of slc_tile_describe */
    uint32_t position;               /* nonzeros delivered so far */
    slc_u128 next;                   /* last delivered key + 1 - first key; initially 0 */
};

/* Performs all checks for opening tile `index` and sets the decoder's state of the open tile,
 * except for members that only the loops need. Does not expand planes. Errors: SLC_ERR_DAMAGED. */
enum slc_status slc_tile_check(struct slc_decoder *decoder,
                               const struct slc_block_view *block,
                               uint32_t index,
                               struct slc_error *err) SLC_NODISCARD;

/* Writes the error record for damage found in the open tile. */
enum slc_status slc_decoder_fail(const struct slc_decoder *decoder,
                                 const struct slc_damage *damage,
                                 struct slc_error *err);

/* Implements slc_tile_view.describe for an open tile (describe.c). */
enum slc_status slc_tile_describe(struct slc_tile_view *tile,
                                  struct slc_encoded_block *described,
                                  struct slc_error *err) SLC_NODISCARD;

/* Functions of each codec. `open` checks the data of the tile in decoder->entry. `keys` decodes
 * `count` nonzeros, starting at nonzero `start`, into key_lo (and key_hi); slc_blco_offsets decodes
 * them directly into the offsets. */
bool slc_packed_open(struct slc_decoder *decoder, struct slc_damage *damage);
bool slc_packed_keys(struct slc_decoder *decoder,
                     uint32_t start,
                     uint32_t count,
                     struct slc_damage *damage);
/* Like slc_packed_keys, but stores keys in key_small. Needs a tile with `small` set. */
bool slc_packed_small_keys(struct slc_decoder *decoder,
                           uint32_t start,
                           uint32_t count,
                           struct slc_damage *damage);
/* Finds the fiber runs of the next `count` nonzeros of a tile with byte_runs set: stores their
 * first keys in run_small, and computes the offsets of the run mode. Returns false if keys have to
 * be decoded instead. */
bool slc_packed_byte_runs(struct slc_decoder *decoder, uint32_t count, uint32_t *runs);
bool slc_lz4_open(struct slc_decoder *decoder, struct slc_damage *damage);
bool slc_lz4_keys(struct slc_decoder *decoder,
                  uint32_t start,
                  uint32_t count,
                  struct slc_damage *damage);
bool slc_blco_open(struct slc_decoder *decoder, struct slc_damage *damage);
/* Computes the position of each mode's field in a re-encoded index; returns the total bits. */
unsigned slc_blco_shifts(const struct slc_key_layout *keys, uint32_t shift[SLC_MAX_ORDER]);
bool slc_blco_offsets(struct slc_decoder *decoder,
                      uint32_t start,
                      uint32_t count,
                      struct slc_damage *damage);
/* Divides `count` nonzeros, given by their offsets in all modes, into the same runs that other
 * codecs find from keys, so that results do not depend on the codec. Keeps one offset per run for
 * all modes except the run mode. */
uint32_t slc_blco_runs(struct slc_decoder *decoder, uint32_t count);

/* Turns `count` gaps in key_lo (key_hi), starting at index `at`, into keys that continue from
 * decoder->next. On success, the keys strictly ascend and are at most the last key of the tile. An
 * error reports the position `where`. */
bool slc_decoder_sum(struct slc_decoder *decoder,
                     uint32_t at,
                     uint32_t count,
                     const uint8_t *where,
                     struct slc_damage *damage);

/* Performs the checks of slc_decoder_sum on keys that are summed already and vary in one word. */
bool slc_decoder_check_keys(struct slc_decoder *decoder,
                            uint32_t at,
                            uint32_t count,
                            const uint8_t *where,
                            struct slc_damage *damage);

/* True if a mode is plain: the field plans compute its offsets from the lower words of keys. */
static inline bool slc_mode_is_plain(const struct slc_mode_plan *mode)
{
    return !mode->wide && mode->hi.bits == 0 && mode->lo.bits > 0;
}

/* Computes the offsets of `count` nonzeros whose keys are decoded. */
bool slc_decoder_offsets(struct slc_decoder *decoder, uint32_t count, struct slc_damage *damage);
/* Divides `count` decoded nonzeros into fiber runs. Computes, once per run, the offsets that the
 * run's nonzeros share. */
bool slc_decoder_runs(struct slc_decoder *decoder,
                      uint32_t count,
                      uint32_t *runs,
                      struct slc_damage *damage);

/* Computes the shared offsets of `runs` runs whose first keys are in run_small. */
bool slc_decoder_run_offsets(struct slc_decoder *decoder, uint32_t runs, struct slc_damage *damage);

/* Checks a values section of exactly `bytes` bytes at `section` and prepares decoding it. */
bool slc_values_open(struct slc_decoder *decoder,
                     unsigned form,
                     const uint8_t *section,
                     uint64_t bytes,
                     struct slc_damage *damage);
/* If all values are equal, fills a chunk with the value. Call it before slc_values_chunk. */
void slc_values_fill(struct slc_decoder *decoder);
bool slc_values_chunk(struct slc_decoder *decoder,
                      uint32_t start,
                      uint32_t count,
                      struct slc_damage *damage);

/* Records an LZ4 section of `bytes` bytes that must expand to exactly `expanded_bytes`. Returns
 * false if the section is empty. */
bool slc_planes_note(struct slc_decoder *decoder,
                     const uint8_t *section,
                     uint64_t bytes,
                     uint64_t expanded_bytes,
                     struct slc_damage *damage);
/* Expands the recorded LZ4 section, if any, into decoder->planes. */
bool slc_planes_expand(struct slc_decoder *decoder, struct slc_damage *damage);

/* Assembles elements of 8 (or 4) little-endian bytes: element i of `out` has byte i of each plane.
 * Loads up to 16 bytes past `count` in each plane, and stores up to 15 elements past `count`. */
void slc_unshuffle8(const uint8_t *const planes[8], uint32_t count, uint8_t *out);
void slc_unshuffle4(const uint8_t *const planes[4], uint32_t count, uint8_t *out);

#endif
