/* Description of an encoded block for a device that decodes the block: the positions of its
 * sections and the mapping from keys to coordinates. storage/ describes a block in memory
 * (storage/codec/describe.h) and checks that all positions are within the block. gpu/ copies the
 * block and its description to the device and starts to decode at many positions in parallel.
 *
 * All offsets are bytes from the start of the block. All types have fixed widths and are read by C
 * and CUDA C++. docs/FORMAT.md, sections 6 and 7, specifies the bytes. */
#ifndef SLC_BASE_ENCODED_H
#define SLC_BASE_ENCODED_H

#include "base/memory/limits.h"

#include <stdint.h>

/* Encoding of the keys of a tile. The enumerators equal the codec numbers in files. */
enum slc_encoding {
    SLC_ENCODING_PACKED = 1, /* bases, and patched gaps between consecutive keys */
    /* byte planes (all first bytes, then all second bytes and so on) of the gaps between keys and
     * of the values */
    SLC_ENCODING_PLANES = 2,
    SLC_ENCODING_FIELDS =
        /* per nonzero one index with a bit field per mode; the keys of a sub-block agree in the
         * upper bits */
    3
};

/* Encoding of the values of a tile. The enumerators equal the numbers in docs/FORMAT.md, section
 * 7.1. */
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
    /* Maximum number of steps that gather the bits of a 64-bit word (struct slc_compress). */
    SLC_COMPRESS_STEPS = 6,
    /* For every encoding, decoding can start at each nonzero whose number within its tile is a
     * multiple of this number. */
    SLC_RUN_NNZ = SLC_BASE_NNZ
};

/* Gathers the bits of a word x that `mask` selects into the low bits of x. Each of the `steps`
 * steps moves some bits down by a power of two:
 *     x &= mask; for s in 0 .. steps - 1: t = x & move[s]; x = (x ^ t) | (t >> (1 << s))
 * Source: [Warren] section 7-4 (compress, with precomputed moves). */
struct slc_compress {
    uint64_t mask;
    uint64_t move[SLC_COMPRESS_STEPS];
    uint32_t bits;  /* number of bits in mask */
    uint32_t steps; /* number of steps up to the last step that moves a bit */
};

/* Mapping from keys to coordinates, for all tiles of a layout. */
struct slc_encoded_layout {
    uint32_t order;
    uint32_t key_bits;
    uint64_t dims[SLC_MAX_ORDER];
    /* `lo` gathers from key bits 0 to 63, `hi` from key bits 64 to 127, and `word` from key bits 0
     * to 31. A coordinate of mode n is compress(lo) | compress(hi) << lo[n].bits or, if key_words
     * of the tile is 1, compress(word) plus `above` of the tile. */
    struct slc_compress word[SLC_MAX_ORDER], lo[SLC_MAX_ORDER], hi[SLC_MAX_ORDER];
    /* For SLC_ENCODING_FIELDS: first bit of the field of mode n in an index; the field has
     * lo[n].bits bits. */
    uint32_t field_shift[SLC_MAX_ORDER];
};

/* Positions of the sections of patched groups, which encode one number per nonzero (docs/FORMAT.md,
 * section 6). Most numbers of a group fit in its low bits; the other numbers are exceptions, which
 * also have high bits. For each group of SLC_GROUP_NNZ nonzeros, three sections have one byte each:
 * the width of the low bits, the width of the high bits of exceptions, and the number of
 * exceptions. The data section has, for each group, the packed low bits, the positions of
 * exceptions and their packed high bits. */
struct slc_encoded_patched {
    uint32_t widths_at, extras_at, counts_at, data_at;
};

/* A section that is compressed by LZ4, and the position of its expanded bytes. */
struct slc_encoded_lz4 {
    uint32_t at, bytes; /* bytes is 0 if the tile has no compressed section */
    uint32_t expanded_bytes;
    uint32_t unused;
    /* offset from the start of the block's expanded bytes, which may exceed 4 GiB */
    uint64_t expanded_at;
};

struct slc_encoded_tile {
    uint64_t ordinal;               /* number of the tile within the layout */
    uint64_t first_lo, first_hi;    /* key */
    uint64_t last_lo, last_hi;      /* key */
    uint64_t corner[SLC_MAX_ORDER]; /* smallest coordinate per mode */
    /* If key_words is 1: the part of a coordinate that key bits 32 to 127 determine, which is the
     * same for all nonzeros of the tile. */
    uint64_t above[SLC_MAX_ORDER];
    uint32_t extent[SLC_MAX_ORDER]; /* largest minus smallest coordinate per mode */
    uint32_t nnz;
    uint8_t encoding; /* enum slc_encoding */
    uint8_t form;     /* enum slc_value_form */
    /* 1, 2 or 4: keys of the tile differ only in this number of low 32-bit words */
    uint8_t key_words;
    /* 1 if keys differ in more than 32 bits of some mode, so that coordinates of the mode need
     * 64-bit words; otherwise 0. */
    uint8_t long_modes;
    uint8_t has_zeros; /* 1 if values may be 0; otherwise 0 */
    uint8_t unused[3];

    /* Keys. For PACKED: the gaps, and one base per SLC_RUN_NNZ nonzeros. */
    struct slc_encoded_patched gaps;
    uint32_t bases_at, base_width;
    /* For PLANES: at planes_at are `gap_bytes` planes with one byte per nonzero, then the planes of
     * the values. planes_at is a position in the expanded bytes if lz4.bytes is not 0, otherwise in
     * the block. */
    uint64_t planes_at;
    uint32_t gap_bytes;
    /* For FIELDS: at sub_blocks_at are (u64 upper key bits, u32 first nonzero, u32 count) per
     * sub-block; at indices_at is one u64 index per nonzero. */
    uint32_t sub_blocks_at, sub_block_count, indices_at;

    /* Values at values_at, by `form`. CONSTANT has one f64 for all nonzeros. INTEGER adds `low` to
     * patched numbers, which `integers` describes. DICTIONARY has indices of `index_width` bits,
     * and a dictionary of dictionary_count f64 at dictionary_at. F32 and F64 have an array. *_LZ4
     * have byte planes, in the expanded bytes if lz4.bytes is not 0, otherwise in the block. */
    uint64_t values_at;
    uint32_t dictionary_at, dictionary_count, index_width;
    int64_t low;
    struct slc_encoded_patched integers;

    struct slc_encoded_lz4 lz4; /* at most one section of a tile is compressed */
};

/* Description of a block whose bytes were checked. Borrows `tiles`, `data` and `expanded`. */
struct slc_encoded_block {
    uint64_t block;  /* number within its layout */
    uint64_t offset; /* offset of the block in its file, for messages */
    /* bytes at `data`, including the slack at the end; the device must copy all of them */
    uint64_t bytes;
    /* Total expanded size of the block's LZ4 sections; each section starts at a multiple of 16. */
    uint64_t expanded_bytes;
    uint64_t nnz;
    uint32_t tile_count;
    const struct slc_encoded_tile *tiles;
    const void *data;
    /* The expanded bytes if storage/ has expanded the block; NULL if the device must expand
     * `data`. */
    const void *expanded;
};

#endif
