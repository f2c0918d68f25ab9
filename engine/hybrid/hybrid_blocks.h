/*
 * Division of the blocks of a pass between the CPU and the device (engine/hybrid/hybrid.h). Pure
 * state, without threads, clocks or I/O, so that it can be tested in isolation; callers with
 * several threads use one mutex.
 *
 * Blocks are kept in the order of a schedule, by default the largest first. The device takes blocks
 * from its front and the CPU from its back, each starting with blocks that only it may compute.
 * Every block either has an owner from the start or is free for the side that comes first. Blocks
 * are read so that the side with fewer blocks in progress gets the next one; blocks in host memory
 * are used when a side has no other work.
 */
#ifndef SLC_ENGINE_HYBRID_BLOCKS_H
#define SLC_ENGINE_HYBRID_BLOCKS_H

#include "engine/hybrid/hybrid.h"

#include <stdbool.h>
#include <stdint.h>

/* Bits of a block's state. The caller sets the first two. */
enum {
    SLC_HYBRID_HELD = 1,       /* the block is in memory and need not be read */
    SLC_HYBRID_OF_GPU = 2,     /* reserved for the device: resident in its memory, now or later */
    SLC_HYBRID_OF_CPU = 4,     /* reserved for the CPU */
    SLC_HYBRID_BLOCK_TAKEN = 8 /* taken by its owner */
};

/* Borrowed, and unchanged during the pass except `state`. */
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
    uint64_t to_read; /* blocks that are neither taken nor held */
    /* Indexed by side, by held (1) or to be read (0), and by own (1) or any (0) blocks: number of
     * positions of the order, counted from the side's end, that have no such blocks left. */
    uint64_t passed[SLC_HYBRID_PARTS][2][2];
    uint64_t assigned[SLC_HYBRID_PARTS], done[SLC_HYBRID_PARTS]; /* numbers of nonzeros */
    uint64_t own_left[SLC_HYBRID_PARTS];     /* nonzeros of untaken blocks with this owner */
    uint64_t own_nnz[SLC_HYBRID_PARTS];      /* nonzeros of blocks with this owner to be read */
    uint64_t own_nnz_read[SLC_HYBRID_PARTS]; /* nonzeros of these blocks that have been taken */
    unsigned in_progress[SLC_HYBRID_PARTS];  /* blocks read and not yet released */
    uint64_t start_ns, last_ns[SLC_HYBRID_PARTS]; /* last progress of each side */
    bool measuring; /* free blocks will be divided by measured rates */
};

/* Starts a pass over these blocks. Times may come from any monotonic clock. */
void slc_hybrid_blocks_begin(struct slc_hybrid_blocks *pass,
                             struct slc_hybrid *hybrid,
                             const struct slc_hybrid_block_list *blocks,
                             uint64_t now_ns);
/* Takes the block to be read next; returns false if there is none. */
bool slc_hybrid_blocks_read(struct slc_hybrid_blocks *pass, uint64_t *block);
/* Finds the next held block of a side; slc_hybrid_blocks_claim takes it. */
bool slc_hybrid_blocks_next_held(struct slc_hybrid_blocks *pass,
                                 enum slc_hybrid_side side,
                                 uint64_t *block);
void slc_hybrid_blocks_claim(struct slc_hybrid_blocks *pass,
                             enum slc_hybrid_side side,
                             uint64_t block);
/* Returns the side of a block that has been taken. */
enum slc_hybrid_side slc_hybrid_blocks_side(const struct slc_hybrid_blocks *pass, uint64_t block);
/* Releases the buffer of a block that was read. */
void slc_hybrid_blocks_release(struct slc_hybrid_blocks *pass, uint64_t block);
/* Records how many nonzeros a side has done since the pass began. */
void slc_hybrid_blocks_done(struct slc_hybrid_blocks *pass,
                            enum slc_hybrid_side side,
                            uint64_t nnz,
                            uint64_t now_ns);
/* Ends the pass, when all blocks are done, and records the work of both sides in `hybrid`. */
void slc_hybrid_blocks_end(struct slc_hybrid_blocks *pass, uint64_t now_ns);

#endif
