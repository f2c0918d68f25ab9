/* Describes the contents of a checkpoint, for code that inspects checkpoints; cp.h describes when a
 * run writes and resumes checkpoints.
 *
 * Sections (storage/checkpoint/checkpoint.h):
 *  - identity: lines of text `name=value` for everything that affects the result
 *  - state: numbers, struct slc_cp_saved
 *  - matrices: per mode the Gram matrix, scales and norms; then lambda
 *  - factor-K: rows of mode K in the order of the store, without pitch
 *  - pending: the pending MTTKRP of the next mode, if a pass for two modes has left it; in the
 *    format of factor-K
 *  - sums-J-M: if a pass has begun, the partial sums of its J-th MTTKRP in memory region M
 *    (mttkrp_state of base/backend.h)
 *  - past: records of the completed iterations
 *  - objectives: objective of each completed iteration; only methods with constraints
 *  - rows, past-rows: numbers (cp_rows.c); only methods that update rows from their nonzeros
 *  - zeros-K: flags of inadmissible zeros of mode K; only method mu
 *  - best-K: factor K of the model with the least held-out error; only completion
 *
 * Unknown sections are ignored. */
#ifndef SLC_ENGINE_SOLVE_CP_CHECKPOINT_H
#define SLC_ENGINE_SOLVE_CP_CHECKPOINT_H

#include "engine/solve/cp.h"
#include "storage/checkpoint/checkpoint.h"

enum {
    /* Maximum bytes of the identity text. Its longest lines are the mode sizes and the layouts of
     * 16 modes. */
    SLC_CP_IDENTITY_BYTES = 4096
};

/* Position of a pass that was stopped between two of its parts (cp_parts.c). */
struct slc_cp_part {
    uint64_t position; /* number of blocks or row ranges that are done; 0: no pass has begun */
    uint64_t hash;     /* hash of the blocks or row ranges before the position */
    bool fused;        /* true if the pass is for two modes */
    enum slc_conflict conflict[2], rival[2]; /* strategies and rivals of the pass's MTTKRPs */
};

/* State of a run between two updates, or between two parts of a pass, without matrices. */
struct slc_cp_saved {
    unsigned order;
    unsigned iterations; /* number of completed iterations */
    unsigned place;      /* number of completed updates of the next iteration */
    unsigned mode_order[SLC_MAX_ORDER];
    unsigned pending;      /* mode whose MTTKRP is in the section `pending`; SLC_MAX_ORDER: none */
    uint32_t settled;      /* see struct cp_state */
    double fit;            /* fit of the last completed iteration */
    double inner;          /* inner product of tensor and model after the last update */
    unsigned copies_after; /* see struct slc_cp_result */
    unsigned threads;
    struct slc_cp_times times;
    struct slc_cp_checkpoints checkpoints;
    uint64_t written; /* time of writing, in seconds since 1970 */
    unsigned past_count;
    struct slc_cp_part part;
    struct slc_conflict_choice choices[SLC_MAX_ORDER], second_choices[SLC_MAX_ORDER];
};

/* Returns the disk space in bytes that a run of at most `iterations` iterations reserves for each
 * of the two generations of a checkpoint; UINT64_MAX on overflow. */
uint64_t slc_cp_checkpoint_bytes(const struct slc_plan *plan,
                                 unsigned order,
                                 const uint64_t *dims,
                                 unsigned iterations);

/* Reads the identity (text, SLC_CP_IDENTITY_BYTES) and the state of a generation. Errors: those of
 * reading; SLC_ERR_UNSUPPORTED if a newer version wrote the state; SLC_ERR_FORMAT if no run could
 * have written the state. */
enum slc_status slc_cp_saved_read(struct slc_checkpoint_reader *reader,
                                  char *identity,
                                  struct slc_cp_saved *saved,
                                  struct slc_error *err) SLC_NODISCARD;

/* Reads the mode order, a permutation of `order` modes, from the checkpoint that was found. If the
 * user did not set the order, the plan chose it, depending on memory, threads and layouts; a
 * resumed run must keep the order of the first run. Returns false if there is no checkpoint or if
 * it cannot be read; slc_cp_run then reports the error. */
bool slc_cp_saved_order(const struct slc_checkpoint *checkpoint, unsigned order, unsigned *modes);

#endif
