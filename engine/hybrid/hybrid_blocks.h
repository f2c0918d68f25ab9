/* Divides the blocks of a pass between the CPU and the device (engine/hybrid/hybrid.h). The module
 * has no threads, clocks or I/O, so that it can be tested alone. Callers with several threads call
 * it under one mutex.
 *
 * Blocks are in the order of a schedule, by default the largest first. The device takes blocks from
 * the front of this order and the CPU from the back. A block is either reserved for one side, or
 * free for the side that takes it first. Each side first takes the blocks that are reserved for it.
 * A side with much work is ahead (AHEAD_SHARE in hybrid_blocks.c). If both sides have blocks to be
 * read, a side that is not ahead comes first, then the side with fewer blocks in progress. The CPU
 * takes held blocks (blocks in memory) when it is idle; the device takes them when it is not
 * ahead. */
#ifndef SLC_ENGINE_HYBRID_BLOCKS_H
#define SLC_ENGINE_HYBRID_BLOCKS_H

#include "engine/hybrid/hybrid.h"

#include <stdbool.h>
#include <stdint.h>

/* Bits of a block's state. The caller sets SLC_HYBRID_HELD and SLC_HYBRID_OF_GPU. */
enum {
    SLC_HYBRID_HELD = 1,       /* the block is in memory and need not be read */
    SLC_HYBRID_OF_GPU = 2,     /* reserved for the device: resident in its memory, now or later */
    SLC_HYBRID_OF_CPU = 4,     /* reserved for the CPU */
    SLC_HYBRID_BLOCK_TAKEN = 8 /* one of the sides, given by the bits above, has taken the block */
};

/* The blocks of a pass. Borrowed. During the pass only `state` changes. */
struct slc_hybrid_block_list {
    uint64_t count;
    const uint64_t *order; /* order of the schedule, with every block once */
    const uint64_t *nnz;   /* nonzeros per block */
    uint8_t *state;        /* state per block */
};

struct slc_hybrid_blocks {
    struct slc_hybrid *hybrid; /* borrowed */
    struct slc_hybrid_block_list blocks;
    uint64_t nnz;
    uint64_t to_read; /* number of blocks that are neither taken nor held */
    /* Position, counted from the side's end of the order, at which the next search starts. The
     * first index is the side. The second index is 1 for held blocks, 0 for blocks to be read.
     * The third index is 1 if only reserved blocks are searched, 0 if free blocks are searched,
     * too. */
    uint64_t passed[SLC_HYBRID_PARTS][2][2];
    uint64_t assigned[SLC_HYBRID_PARTS], done[SLC_HYBRID_PARTS]; /* numbers of nonzeros */
    uint64_t own_left[SLC_HYBRID_PARTS];     /* nonzeros of reserved blocks not yet taken */
    uint64_t own_nnz[SLC_HYBRID_PARTS];      /* nonzeros of reserved blocks that are not held */
    uint64_t own_nnz_read[SLC_HYBRID_PARTS]; /* the part of own_nnz in blocks taken to be read */
    unsigned in_progress[SLC_HYBRID_PARTS];  /* blocks read and not yet released */
    /* times of the start of the pass, and of the last progress of each side */
    uint64_t start_ns, last_ns[SLC_HYBRID_PARTS];
    bool measuring; /* true until free blocks are divided by measured rates */
};

/* Starts a pass over `blocks`. All times must come from one monotonic clock. */
void slc_hybrid_blocks_begin(struct slc_hybrid_blocks *pass,
                             struct slc_hybrid *hybrid,
                             const struct slc_hybrid_block_list *blocks,
                             uint64_t now_ns);
/* Takes the block to be read next. Returns false if no block is to be read now. */
bool slc_hybrid_blocks_read(struct slc_hybrid_blocks *pass, uint64_t *block);
/* Finds the next held block for a side. slc_hybrid_blocks_claim then takes this block. */
bool slc_hybrid_blocks_next_held(struct slc_hybrid_blocks *pass,
                                 enum slc_hybrid_side side,
                                 uint64_t *block);
void slc_hybrid_blocks_claim(struct slc_hybrid_blocks *pass,
                             enum slc_hybrid_side side,
                             uint64_t block);
/* Returns the side that has taken a block. */
enum slc_hybrid_side slc_hybrid_blocks_side(const struct slc_hybrid_blocks *pass, uint64_t block);
/* Releases the buffer of a block that was read. */
void slc_hybrid_blocks_release(struct slc_hybrid_blocks *pass, uint64_t block);
/* Records the number of nonzeros that a side has computed since the pass began. */
void slc_hybrid_blocks_done(struct slc_hybrid_blocks *pass,
                            enum slc_hybrid_side side,
                            uint64_t nnz,
                            uint64_t now_ns);
/* Ends the pass and records the work of both sides in `hybrid`. Needs: all blocks are done. */
void slc_hybrid_blocks_end(struct slc_hybrid_blocks *pass, uint64_t now_ns);

#endif
