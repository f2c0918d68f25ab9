/*
 * Description of an encoded block for a device that decodes it: the positions of its sections and
 * the mapping from keys to coordinates. storage/ describes a block in memory
 * (storage/codec/describe.h) and checks that all positions are within the block; gpu/ copies block
 * and description and decodes from many positions in parallel.
 *
 * All offsets are bytes from the start of the block. All types have fixed widths and are read by C
 * and CUDA C++. docs/FORMAT.md, sections 6 and 7, specifies the bytes.
 */
#ifndef SLC_BASE_ENCODED_H
#define SLC_BASE_ENCODED_H

#include "base/memory/limits.h"

#include <stdint.h>

/* Encoding of the keys of a tile. Values are the codec numbers in files. */
enum slc_encoding {
    SLC_ENCODING_PACKED = 1, /* bases and patched gaps */
    SLC_ENCODING_PLANES = 2, /* byte planes of gaps and values */
    SLC_ENCODING_FIELDS =
        3 /* indices with one field per mode, in sub-blocks with common upper bits */
};

/* Encoding of the values of a tile. Values are the numbers of docs/FORMAT.md, section 7.1. */
enum slc_value_form {
    SLC_FORM_CONSTANT = 0,
    SLC_FORM_INTEGER = 1,
    SLC_FORM_DICTIONARY = 2,
    SLC_FORM_F32 = 3,
    SLC_FORM_F64 = 4,
    SLC_FORM_F32_LZ4 = 5, /* byte planes */
    SLC_FORM_F64_LZ4 = 6
};

enum {
    /* Steps to compress 32 or 64 bits (struct slc_compress). */
    SLC_COMPRESS_STEPS = 6,
    /* Nonzeros between two positions of a tile at which decoding can start, for every encoding. */
    SLC_RUN_NNZ = SLC_BASE_NNZ
};

/*
 * Gathers the bits of a word that `mask` selects into its low bits, in `steps` steps, each of which
 * moves some bits down by a power of two:
 *     x &= mask; for s in 0 .. steps - 1: t = x & move[s]; x = (x ^ t) | (t >> (1 << s))
 * Source: [Warren] section 7-4 (compress, with precomputed moves).
 */
struct slc_compress {
    uint64_t mask;
    uint64_t move[SLC_COMPRESS_STEPS];
    uint32_t bits;  /* in mask */
    uint32_t steps; /* up to the last step that moves a bit */
};

/* Mapping from keys to coordinates, for all tiles of a layout. */
struct slc_encoded_layout {
    uint32_t order;
    uint32_t key_bits;
    uint64_t dims[SLC_MAX_ORDER];
    /* A coordinate of mode n is compress(lo) | compress(hi) << lo[n].bits. `word` is `lo` for bits
     * 0 to 31 of a key only; tile->above has the contribution of the other bits. */
    struct slc_compress word[SLC_MAX_ORDER], lo[SLC_MAX_ORDER], hi[SLC_MAX_ORDER];
    /* SLC_ENCODING_FIELDS: mode n has lo[n].bits bits of an index, starting at this bit. */
    uint32_t field_shift[SLC_MAX_ORDER];
};

/*
 * Patched groups with one number per nonzero: for each group of SLC_GROUP_NNZ nonzeros, the width
 * of the low bits, the width of exceptions and the number of exceptions, one byte each; then for
 * each group the packed low bits, the positions of exceptions and their packed high bits
 * (docs/FORMAT.md, section 6).
 */
struct slc_encoded_patched {
    uint32_t widths_at, extras_at, counts_at, data_at;
};

/* A section that LZ4 compressed, and its position in the expanded bytes of the block. */
struct slc_encoded_lz4 {
    uint32_t at, bytes; /* bytes 0: the tile has no compressed section */
    uint32_t expanded_bytes;
    uint32_t unused;
    uint64_t expanded_at; /* from the start of the block's expanded bytes, which may exceed 4 GiB */
};

struct slc_encoded_tile {
    uint64_t ordinal;               /* within the layout */
    uint64_t first_lo, first_hi;    /* key */
    uint64_t last_lo, last_hi;      /* key */
    uint64_t corner[SLC_MAX_ORDER]; /* smallest coordinate per mode */
    /* If key_words is 1: the contribution of key bits 32 to 127 to a coordinate, the same for all
     * nonzeros. */
    uint64_t above[SLC_MAX_ORDER];
    uint32_t extent[SLC_MAX_ORDER]; /* largest minus smallest coordinate per mode */
    uint32_t nnz;
    uint8_t encoding;  /* enum slc_encoding */
    uint8_t form;      /* enum slc_value_form */
    uint8_t key_words; /* number of 32-bit words in which keys of the tile differ: 1, 2 or 4 */
    /* 1: keys differ in more than 32 bits of a mode, so coordinates of the mode need 64-bit
     * words. */
    uint8_t long_modes;
    uint8_t unused[4];

    /* Keys. PACKED: gaps, and a base for every SLC_RUN_NNZ nonzeros. */
    struct slc_encoded_patched gaps;
    uint32_t bases_at, base_width;
    /* PLANES: `gap_bytes` planes with a byte per nonzero, then the planes of the values, at
     * planes_at: in the expanded bytes if lz4.bytes is not 0, otherwise in the block. */
    uint64_t planes_at;
    uint32_t gap_bytes;
    /* FIELDS: (u64 upper key bits, u32 first nonzero, u32 count) per sub-block; u64 indices. */
    uint32_t sub_blocks_at, sub_block_count, indices_at;

    /*
     * Values, at values_at. CONSTANT: an f64. INTEGER: `low` plus patched numbers, described by
     * `integers`. DICTIONARY: indices of `index_width` bits; `dictionary_count` f64 are at
     * dictionary_at. F32, F64: an array. *_LZ4: planes, in the expanded bytes if lz4.bytes is not
     * 0, otherwise in the block.
     */
    uint64_t values_at;
    uint32_t dictionary_at, dictionary_count, index_width;
    int64_t low;
    struct slc_encoded_patched integers;

    struct slc_encoded_lz4 lz4; /* at most one section of a tile is compressed */
};

/* Description of a checked block. Borrows `tiles`, `data` and `expanded`. */
struct slc_encoded_block {
    uint64_t block;  /* number within its layout */
    uint64_t offset; /* of the block in its file, for messages */
    uint64_t bytes;  /* at `data`, including slack; all must be copied */
    /* Total expanded size of the block's LZ4 sections; each section starts at a multiple of 16. */
    uint64_t expanded_bytes;
    uint64_t nnz;
    uint32_t tile_count;
    const struct slc_encoded_tile *tiles;
    const void *data;
    /* The expanded bytes, if storage/ has expanded the block; NULL: the device expands `data`. */
    const void *expanded;
};

#endif
