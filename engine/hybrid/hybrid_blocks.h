/*
 * Which block of a pass goes to the CPU and which to the device that shares it
 * (engine/hybrid/hybrid.h). Pure state, without threads, clocks or I/O, so that it can be tested by
 * itself; whoever has several threads calls it under one mutex.
 *
 * Blocks stand in the order of a schedule, the largest first unless that is another one. The device
 * takes from its front, the CPU from its back, but first what nobody else may have. Every block has
 * an owner from the beginning, or is free for whoever comes first. Those that have to be read are
 * read in an order that gives the side with fewer of them in hand the next one; those that the host
 * holds are taken when a side has nothing else.
 */
#ifndef SLC_ENGINE_HYBRID_BLOCKS_H
#define SLC_ENGINE_HYBRID_BLOCKS_H

#include "engine/hybrid/hybrid.h"

#include <stdbool.h>
#include <stdint.h>

/* Of a block, together. The first two are the caller's to say. */
enum {
    SLC_HYBRID_HELD = 1,   /* it need not be read */
    SLC_HYBRID_OF_GPU = 2, /* nobody else may have it: it stays in the device's memory, or will */
    SLC_HYBRID_OF_CPU = 4, /* the same of the CPU */
    SLC_HYBRID_BLOCK_TAKEN = 8 /* by its owner */
};

/* Borrowed, and unchanged while the pass goes on; `state` is written. */
struct slc_hybrid_block_list {
    uint64_t count;
    const uint64_t *order; /* of the schedule: every block once */
    const uint64_t *nnz;   /* per block */
    uint8_t *state;        /* per block */
};

struct slc_hybrid_blocks {
    struct slc_hybrid *hybrid; /* borrowed */
    struct slc_hybrid_block_list blocks;
    uint64_t nnz;
    uint64_t to_read; /* blocks that have not been taken and are not held */
    /* Of each side, for blocks to be read and for such that are held, of all and of its own: how
     * many places of the order, from its end of it, have nothing left for it. */
    uint64_t passed[SLC_HYBRID_PARTS][2][2];
    uint64_t given[SLC_HYBRID_PARTS], done[SLC_HYBRID_PARTS]; /* nonzeros */
    uint64_t own_left[SLC_HYBRID_PARTS]; /* of blocks that have this owner and were not taken */
    uint64_t own_nnz[SLC_HYBRID_PARTS];  /* nonzeros of blocks to be read that have this owner */
    uint64_t own_nnz_read[SLC_HYBRID_PARTS];      /* of these, those that have been taken */
    unsigned in_hand[SLC_HYBRID_PARTS];           /* blocks that were to be read, until let go */
    uint64_t start_ns, last_ns[SLC_HYBRID_PARTS]; /* when a side was last seen to have done more */
    bool measuring; /* free blocks are to be divided by what the sides are seen to do */
};

/* Begins a pass over these blocks. Times are of any clock that goes on. */
void slc_hybrid_blocks_begin(struct slc_hybrid_blocks *pass,
                             struct slc_hybrid *hybrid,
                             const struct slc_hybrid_block_list *blocks,
                             uint64_t now_ns);
/* Takes the block to be read next; false where there is none. */
bool slc_hybrid_blocks_read(struct slc_hybrid_blocks *pass, uint64_t *block);
/* The block that a side would take next of those that are held; and takes it. */
bool slc_hybrid_blocks_next_held(struct slc_hybrid_blocks *pass,
                                 enum slc_hybrid_side side,
                                 uint64_t *block);
void slc_hybrid_blocks_take(struct slc_hybrid_blocks *pass,
                            enum slc_hybrid_side side,
                            uint64_t block);
/* Whose a block is that has been taken. */
enum slc_hybrid_side slc_hybrid_blocks_side(const struct slc_hybrid_blocks *pass, uint64_t block);
/* The buffer of a block that was read is free. */
void slc_hybrid_blocks_let_go(struct slc_hybrid_blocks *pass, uint64_t block);
/* A side has done so many nonzeros since the pass began. */
void slc_hybrid_blocks_done(struct slc_hybrid_blocks *pass,
                            enum slc_hybrid_side side,
                            uint64_t nnz,
                            uint64_t now_ns);
/* All blocks are done: the share learns what both sides did. */
void slc_hybrid_blocks_end(struct slc_hybrid_blocks *pass, uint64_t now_ns);

#endif
