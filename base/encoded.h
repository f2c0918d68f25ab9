/*
 * An encoded block as a device sees it that decodes by itself: where in its bytes what lies, and
 * how coordinates come out of keys. storage/ fills these in for a block that lies in memory
 * (storage/codec/describe.h) and has checked that everything they name lies within the block; gpu/
 * copies block and description and decodes from many places at a time.
 *
 * All offsets are bytes from the start of the block. Everything here has fixed widths and is read
 * by C and by CUDA C++ alike. docs/FORMAT.md, sections 6 and 7, says what the bytes mean.
 */
#ifndef SLC_BASE_ENCODED_H
#define SLC_BASE_ENCODED_H

#include "base/memory/limits.h"

#include <stdint.h>

/* How the keys of a tile are held: the codecs' numbers in files. */
enum slc_encoding {
    SLC_ENCODING_PACKED = 1, /* bases and patched gaps */
    SLC_ENCODING_PLANES = 2, /* byte planes of gaps and values */
    SLC_ENCODING_FIELDS = 3  /* indices of one field per mode, sub-blocks with common upper bits */
};

/* How the values of a tile are stored: the numbers of docs/FORMAT.md, section 7.1. */
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
    /* Steps of a compression of 32 and of 64 bits (struct slc_compress). */
    SLC_COMPRESS_STEPS = 6,
    /* Nonzeros of a tile between two places where decoding can start, whatever the encoding. */
    SLC_RUN_NNZ = SLC_BASE_NNZ
};

/*
 * Gathers the bits of a word that `mask` selects into its low bits, in `steps` steps, each of which
 * moves some of them down by a power of two:
 *     x &= mask; for s in 0 .. steps - 1: t = x & move[s]; x = (x ^ t) | (t >> (1 << s))
 * Source: Warren, "Hacker's Delight", section 7-4 (compress, with the moves found in advance).
 */
struct slc_compress {
    uint64_t mask;
    uint64_t move[SLC_COMPRESS_STEPS];
    uint32_t bits;  /* in mask */
    uint32_t steps; /* that move anything, and those before them */
};

/* How coordinates come out of the keys of a layout, in every tile of it. */
struct slc_encoded_layout {
    uint32_t order;
    uint32_t key_bits;
    uint64_t dims[SLC_MAX_ORDER];
    /*
     * A coordinate of mode n is compress(lo) | compress(hi) << lo[n].bits. `word` is what `lo` is
     * for a key's bits 0..31 alone; tile->above has what the other bits add.
     */
    struct slc_compress word[SLC_MAX_ORDER], lo[SLC_MAX_ORDER], hi[SLC_MAX_ORDER];
    /* SLC_ENCODING_FIELDS: mode n has lo[n].bits bits of an index from this one on. */
    uint32_t field_shift[SLC_MAX_ORDER];
};

/*
 * Patched groups of one number per nonzero: for each group of SLC_GROUP_NNZ its width, exceptions'
 * width and count, a byte each; then, group by group, the packed low bits, the exceptions'
 * positions and their packed high bits (docs/FORMAT.md, section 6).
 */
struct slc_encoded_patched {
    uint32_t widths_at, extras_at, counts_at, data_at;
};

/* Bytes that LZ4 made of others; the latter have a place in the block's expanded bytes. */
struct slc_encoded_lz4 {
    uint32_t at, bytes; /* bytes 0: nothing of the tile is compressed */
    uint32_t expanded_bytes;
    uint32_t unused;
    uint64_t expanded_at; /* from the start of the expanded bytes: a block's may pass 4 GiB */
};

struct slc_encoded_tile {
    uint64_t ordinal;               /* within the layout */
    uint64_t first_lo, first_hi;    /* key */
    uint64_t last_lo, last_hi;      /* key */
    uint64_t corner[SLC_MAX_ORDER]; /* smallest coordinate per mode */
    /* What key bits 32..127 of every nonzero add to a coordinate, where key_words is 1. */
    uint64_t above[SLC_MAX_ORDER];
    uint32_t extent[SLC_MAX_ORDER]; /* largest minus smallest coordinate per mode */
    uint32_t nnz;
    uint8_t encoding;  /* enum slc_encoding */
    uint8_t form;      /* enum slc_value_form */
    uint8_t key_words; /* of 32 bits, in which keys of the tile differ: 1, 2 or 4 */
    /* 1: they differ in more than 32 bits of a mode, whose coordinates words of 32 bits confuse. */
    uint8_t long_modes;
    uint8_t unused[4];

    /* Keys. PACKED: gaps, a base for every SLC_RUN_NNZ nonzeros. */
    struct slc_encoded_patched gaps;
    uint32_t bases_at, base_width;
    /*
     * PLANES: `gap_bytes` planes of a byte per nonzero, then those of the values, at planes_at: in
     * the expanded bytes where lz4.bytes is not 0, else in the block.
     */
    uint64_t planes_at;
    uint32_t gap_bytes;
    /* FIELDS: (u64 upper key bits, u32 first nonzero, u32 count) per sub-block; u64 indices. */
    uint32_t sub_blocks_at, sub_block_count, indices_at;

    /*
     * Values, at values_at. CONSTANT: an f64. INTEGER: `low` plus patched, in `integers` alone.
     * DICTIONARY: indices of `index_width` bits; `dictionary_count` f64 are at dictionary_at. F32,
     * F64: an array. *_LZ4: planes, in the expanded bytes where lz4.bytes is not 0, else in the
     * block.
     */
    uint64_t values_at;
    uint32_t dictionary_at, dictionary_count, index_width;
    int64_t low;
    struct slc_encoded_patched integers;

    struct slc_encoded_lz4 lz4; /* at most one section of a tile is compressed */
};

/* A block that was checked, described. Borrows `tiles`, `data` and `expanded`. */
struct slc_encoded_block {
    uint64_t block;  /* number within its layout */
    uint64_t offset; /* of the block in its file, for messages */
    uint64_t bytes;  /* at `data`, slack included: what has to be copied */
    /* What its LZ4 sections take, expanded; each begins at a multiple of 16. */
    uint64_t expanded_bytes;
    uint64_t nnz;
    uint32_t tile_count;
    const struct slc_encoded_tile *tiles;
    const void *data;
    /* The expanded bytes, where whoever described the block has expanded it; NULL: the device has
     * to, from `data`. */
    const void *expanded;
};

#endif
