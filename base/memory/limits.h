/* Limits of the whole system. Each is also in docs/FORMAT.md, section "Limits". */
#ifndef SLC_BASE_LIMITS_H
#define SLC_BASE_LIMITS_H

enum {
    /* Modes of a tensor. 16 covers every published sparse tensor; keys end at 128 bits anyway. */
    SLC_MAX_ORDER = 16,
    /* Bits of a linearized coordinate. Real five-mode tensors need 93. */
    SLC_MAX_KEY_BITS = 128,
    /* Key bits of one mode that may stand below all others (base/key.h), but where the layout is
       one of whole fibers. */
    SLC_FIBER_BITS_MAX = 24,
    /* Nonzeros of a group: the unit of bit packing, one warp's or one vector loop's work. */
    SLC_GROUP_NNZ = 128,
    /* Nonzeros between two bases of codec `packed`: where a device can start to decode. One per
     * group cost 0.1 to 0.35 bit a nonzero; four groups still are 128 starts in a full tile. */
    SLC_BASE_NNZ = 512,
    /* Nonzeros of a tile at most: the unit of parallel work. 64 Ki decode to about 1.5 MiB. */
    SLC_TILE_NNZ = 65536,
    /* Alignment of blocks in a file: the page, and the largest direct-I/O alignment in use. */
    SLC_PAGE_BYTES = 4096,
    /* Zero bytes that end every block, so that a decoder may load 64 bytes from any position. */
    SLC_BLOCK_SLACK_BYTES = 64,
    /* Rank of a decomposition. Factor rows stay below 32 KiB, a level-1 cache. */
    SLC_MAX_RANK = 4096,
    SLC_MAX_THREADS = 1024
};

/* Largest block: the limit of one registered io_uring buffer. */
#define SLC_MAX_BLOCK_BYTES (UINT64_C(1) << 30)

/* Largest mode length: coordinates stay positive in a signed 64-bit integer (NumPy's int64). */
#define SLC_MAX_MODE_LENGTH (UINT64_C(1) << 62)

#endif
