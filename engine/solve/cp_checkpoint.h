/*
 * What a checkpoint of CP-ALS holds, for whoever looks into one; cp_als.h says how a run keeps one.
 *
 * Sections (storage/checkpoint/checkpoint.h):
 *     identity   text, a line `name=value` for all that decides the result
 *     state      numbers: struct slc_cp_saved
 *     matrices   per mode Gram matrix, scale and norm; lambda
 *     factor-K   rows of mode K of the store, without pitch
 *     pending    the MTTKRP of the next mode, where a pass for two modes has left one; the same
 *     sums-J-R   where a pass had begun: what its J-th MTTKRP has summed up, region R of its memory
 *                (mttkrp_state of base/backend.h)
 *     past       the iterations so far
 * A section that this program does not know makes no difference to it.
 */
#ifndef SLC_ENGINE_SOLVE_CP_CHECKPOINT_H
#define SLC_ENGINE_SOLVE_CP_CHECKPOINT_H

#include "engine/solve/cp_als.h"
#include "storage/checkpoint/checkpoint.h"

enum {
    /* Of the identity: names and numbers, the longest of them dims and layouts of 16 modes. */
    SLC_CP_IDENTITY_BYTES = 4096
};

/* Where a pass stands that has been left between two parts of it (cp_parts.c). */
struct slc_cp_part {
    uint64_t position; /* in the order of blocks, or of ranges of rows; 0: no pass has begun */
    uint64_t hash;     /* of what lies before it */
    bool fused;        /* a pass for two modes */
    enum slc_conflict conflict[2], rival[2]; /* of its MTTKRPs */
};

/* The state of a run between two updates, or two parts of a pass, but for its matrices. */
struct slc_cp_saved {
    unsigned order;
    unsigned iterations; /* completed */
    unsigned place;      /* updates of the next one that are done */
    unsigned mode_order[SLC_MAX_ORDER];
    unsigned pending; /* the mode whose MTTKRP is in the section `pending`; SLC_MAX_ORDER: none */
    uint32_t settled; /* as in struct cp_state */
    double fit;       /* of the last iteration that was completed */
    double inner;     /* inner product of tensor and model after the last update */
    unsigned copies_after; /* as in struct slc_cp_result */
    unsigned threads;
    struct slc_cp_times times;
    struct slc_cp_checkpoints checkpoints;
    uint64_t written; /* when, in seconds since 1970 */
    unsigned past_count;
    struct slc_cp_part part;
    struct slc_conflict_choice choices[SLC_MAX_ORDER], second_choices[SLC_MAX_ORDER];
};

/*
 * Bytes that the disk keeps for each of the two generations of a run of the plan, of `iterations`
 * at most; UINT64_MAX on overflow.
 */
uint64_t slc_cp_checkpoint_bytes(const struct slc_plan *plan,
                                 unsigned order,
                                 const uint64_t *dims,
                                 unsigned iterations);

/*
 * Reads identity (SLC_CP_IDENTITY_BYTES of room, text) and state of a generation. Errors: those of
 * reading it; SLC_ERR_UNSUPPORTED for a newer one, SLC_ERR_FORMAT for what no run writes.
 */
enum slc_status slc_cp_saved_read(struct slc_checkpoint_reader *reader,
                                  char *identity,
                                  struct slc_cp_saved *saved,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * The order of modes, `order` of them, that a checkpoint found in its folder was begun with. An
 * order that nobody asked for is the plan's, which depends on memory, threads and layouts: a run
 * that goes on keeps that of its beginning. False where there is none, or one that cannot be read:
 * that is refused where the run would go on from it.
 */
bool slc_cp_saved_order(const struct slc_checkpoint *checkpoint, unsigned order, unsigned *modes);

#endif
