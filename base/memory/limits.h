/* Limits of the library and its files. docs/FORMAT.md, section "Limits", also lists the limits of
 * files. */
#ifndef SLC_BASE_LIMITS_H
#define SLC_BASE_LIMITS_H

enum {
    /* Maximum number of modes of a tensor. 16 modes suffice for every published sparse tensor, and
     * the 128 bits of a key would not suffice for many more. */
    SLC_MAX_ORDER = 16,
    /* Maximum number of bits of a linearized coordinate. Published five-mode tensors need 93
     * bits. */
    SLC_MAX_KEY_BITS = 128,
    /* Maximum number of key bits of one mode that are below all other bits (base/key.h), except in
     * layouts with whole fibers. */
    SLC_FIBER_BITS_MAX = 24,
    /* Nonzeros of a group: the unit of bit packing, and the work of one warp or vector loop. */
    SLC_GROUP_NNZ = 128,
    /*
     * Nonzeros between two bases of codec `packed`, at which a device can start to decode. A base
     * per group would cost 0.1 to 0.35 bits per nonzero; with one base per four groups, a full tile
     * still has 128 starting points.
     */
    SLC_BASE_NNZ = 512,
    /* Maximum number of nonzeros of a tile, the unit of parallel work. 65,536 decoded nonzeros take
     * about 1.5 MiB. */
    SLC_TILE_NNZ = 65536,
    /* Alignment of blocks in a file: the page size, and the largest direct I/O alignment in use. */
    SLC_PAGE_BYTES = 4096,
    /*
     * Zero bytes at the end of every block, so that a decoder may load 64 bytes from any position.
     */
    SLC_BLOCK_SLACK_BYTES = 64,
    /* Maximum rank of a decomposition. A factor row has at most 32 KiB, the size of a first-level
     * cache. */
    SLC_MAX_RANK = 4096,
    SLC_MAX_THREADS = 1024
};

/* Size of the largest block: the limit of one registered io_uring buffer. */
#define SLC_MAX_BLOCK_BYTES (UINT64_C(1) << 30)

/* Largest mode size: coordinates are positive in a signed 64-bit integer (NumPy's int64). */
#define SLC_MAX_MODE_LENGTH (UINT64_C(1) << 62)

#endif
