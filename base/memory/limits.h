/* Limits of the library and its files. docs/FORMAT.md, section "Limits", lists those of files. */
#ifndef SLC_BASE_LIMITS_H
#define SLC_BASE_LIMITS_H

enum {
    /* Maximum number of modes of a tensor. 16 modes suffice for every published sparse tensor, and
     * with more modes the 128 bits of a key would leave few bits per mode. */
    SLC_MAX_ORDER = 16,
    /* Maximum number of bits of a linearized coordinate. Published five-mode tensors need 93
     * bits. */
    SLC_MAX_KEY_BITS = 128,
    /* Maximum length in bits of a fiber run (base/key.h), except in layouts that keep whole fibers
     * together. */
    SLC_FIBER_BITS_MAX = 24,
    /* Nonzeros per group. A group is the unit of bit packing and the work of one warp or one vector
     * loop. */
    SLC_GROUP_NNZ = 128,
    /* Nonzeros per base of codec `packed`; a device can start to decode at each base. One base per
     * group would need 0.1 to 0.35 more bits per nonzero. With one base per four groups, decoding
     * of a full tile can still start at 128 positions. */
    SLC_BASE_NNZ = 512,
    /* Maximum number of nonzeros of a tile, the unit of parallel work. 65,536 decoded nonzeros need
     * about 1.5 MiB. */
    SLC_TILE_NNZ = 65536,
    /* Alignment of blocks in a file: the page size of x86, which is also the largest alignment that
     * drives require for direct I/O. */
    SLC_PAGE_BYTES = 4096,
    /* Zero bytes at the end of every block, so that a decoder may load 64 bytes from any
     * position. */
    SLC_BLOCK_SLACK_BYTES = 64,
    /* Maximum rank of a decomposition. A factor row has at most 32 KiB, the size of a first-level
     * cache. */
    SLC_MAX_RANK = 4096,
    SLC_MAX_THREADS = 1024
};

/* Maximum size of a block: the largest buffer that can be registered with io_uring. */
#define SLC_MAX_BLOCK_BYTES (UINT64_C(1) << 30)

/* Largest mode size. Coordinates then fit in a signed 64-bit integer (NumPy's int64). */
#define SLC_MAX_MODE_LENGTH (UINT64_C(1) << 62)

#endif
