/*
 * The table of operations that a compute device offers to the engine.
 *
 * cpu/ fills it with threads and vector kernels; gpu/ with streams and CUDA kernels (it then takes
 * whole encoded blocks and ignores the tile interface). The engine drives one operation at a time:
 *
 *     mttkrp_begin -> mttkrp_tile (from all workers, any order or tile order) -> mttkrp_end
 *
 * and never learns how a device avoids write conflicts.
 */
#ifndef SLC_BASE_BACKEND_H
#define SLC_BASE_BACKEND_H

#include "base/block.h"
#include "base/error/error.h"
#include "base/error/stop.h"
#include "base/matrix.h"

#include <stdbool.h>
#include <stdint.h>

/* How concurrent additions to one output row are kept apart (DESIGN: "Output conflicts"). */
enum slc_conflict {
    SLC_CONFLICT_AUTO,    /* chosen by slc_backend_ops.mttkrp_begin from shape and workers */
    SLC_CONFLICT_DIRECT,  /* one worker: add straight into the output */
    SLC_CONFLICT_PRIVATE, /* each worker owns a copy of the output, reduced in mttkrp_end */
    SLC_CONFLICT_LOCKED, /* tile-local rows (dense window or sorted segments), then striped locks */
    SLC_CONFLICT_ORDERED, /* tile-local rows, committed in tile order: the same bits for any number
                             of workers; needs tiles to be started in ascending order */
    SLC_CONFLICT_COLUMNS, /* every worker takes every tile and adds its own columns of the output:
                             no scratch, but each tile is decoded by all workers */
    SLC_CONFLICT_ROWS, /* from a layout sorted by the mode: the rows of a partition are in no other,
                          and its tiles come one by one, in order; the same bits for any number of
                          workers and order of partitions */
    SLC_CONFLICT_REPLICA /* from copies of the tensor in the device's memory, sorted such that every
                          output row has one owner; see replica_begin */
};

const char *slc_conflict_name(enum slc_conflict conflict);

/* What a strategy takes, in ns of a worker's time per nonzero, decoding included. */
struct slc_conflict_cost {
    enum slc_conflict conflict;
    double predicted_ns;
    double measured_ns; /* 0: it was not tried */
};

enum {
    SLC_CONFLICT_CANDIDATES = 2,                     /* of a trial */
    SLC_CONFLICT_COSTS = SLC_CONFLICT_CANDIDATES + 1 /* and what a plan takes for want of memory */
};

/* How one mode's strategy was chosen. */
struct slc_conflict_choice {
    enum slc_conflict chosen; /* never AUTO */
    /* What a first pass should try against it: that costs a few percent. AUTO: nothing. */
    enum slc_conflict rival;
    unsigned cost_count; /* 0 where the strategy was given, or is the only one that may be used */
    struct slc_conflict_cost costs[SLC_CONFLICT_COSTS]; /* candidates: cheapest prediction first */
    /* COLUMNS, where that is expected to be faster than LOCKED: the next best where there is no
     * memory for the scratch of `chosen`. AUTO: it is not. */
    struct slc_conflict_cost spare;
};

/*
 * One MTTKRP: M(i, r) = sum over nonzeros x with coordinate i in `mode` of
 * x * product over m != mode of A(m)(i_m, r)   (KB section 2.6).
 */
struct slc_mttkrp_job {
    unsigned order;
    unsigned mode;      /* 0-based */
    uint32_t rank;      /* 1 .. SLC_MAX_RANK */
    uint64_t nnz;       /* of the whole layout, for the choice of strategy */
    unsigned workers;   /* threads that will call mttkrp_tile */
    bool deterministic; /* forces SLC_CONFLICT_ORDERED, or ROWS where there are partitions */
    /* Of a layout sorted by `mode`: its partitions, which make the strategy ROWS. 0: another
     * layout. */
    uint64_t partitions;
    enum slc_conflict conflict; /* AUTO: the cheapest prediction */
    /*
     * The other of PRIVATE and LOCKED: the two take turns on some tiles, and the faster one gets
     * the rest (mttkrp_tried). AUTO: nothing is tried.
     */
    enum slc_conflict rival;
    /* ORDERED: the first tile that will come, where those before it were added by a job whose sums
     * this one is given (mttkrp_resume). */
    uint64_t first_tile;
    const struct slc_matrix *factors[SLC_MAX_ORDER]; /* dims[n] x rank; entry `mode` is not read */
    struct slc_matrix *output; /* dims[mode] x rank, same type as the factors */
};

/* Memory that holds what a job has summed up so far. */
enum { SLC_MTTKRP_REGIONS = 3 };
struct slc_mttkrp_state {
    unsigned count;
    struct {
        void *data;
        uint64_t bytes;
        unsigned word_bytes; /* 4 or 8: words of that size, in the machine's order */
    } region[SLC_MTTKRP_REGIONS];
};

/* What copies of a tensor are made for. */
struct slc_tensor_shape {
    unsigned order;
    uint64_t nnz;
    uint64_t dims[SLC_MAX_ORDER];
    uint32_t tile_nnz; /* of every tile but the last */
};

/* How the copy of one mode is sorted: plain, or in runs that agree in some modes. */
struct slc_replica_form {
    uint32_t varying;   /* bit m: mode m varies within a run; 0: the copy is plain */
    double nnz_per_run; /* on average; 1 where nothing runs */
    unsigned tried;     /* forms that it was chosen from by computing; 0: by what each would cost */
};

/* Bytes from one row to the next, of rows_read and rows_write below. */
static inline uint64_t slc_matrix_row_bytes(const struct slc_matrix *m)
{
    return (uint64_t)m->pitch * slc_value_bytes(m->type);
}

struct slc_backend;

struct slc_backend_ops {
    const char *name;

    /*
     * Bytes of scratch that a job of this shape needs beyond factors and output, for the plan.
     * Without an output (NULL) the larger of f32 and f64.
     */
    uint64_t (*mttkrp_scratch_bytes)(const struct slc_mttkrp_job *job, uint64_t output_rows);

    /*
     * The strategy that mttkrp_begin will use for this job, and what else it may be worth trying.
     * Follows from the shape of the job alone.
     */
    void (*mttkrp_choose)(const struct slc_mttkrp_job *job,
                          uint64_t output_rows,
                          struct slc_conflict_choice *choice);

    /*
     * Starts a job: sets the output to zero, prepares scratch. The job is copied; matrices stay the
     * caller's and must live until mttkrp_end.
     * Errors: SLC_ERR_USAGE for shapes that do not fit, SLC_ERR_MEMORY.
     */
    enum slc_status (*mttkrp_begin)(struct slc_backend *backend,
                                    const struct slc_mttkrp_job *job,
                                    struct slc_error *err);

    /*
     * Adds one tile. Called by workers 0 .. workers-1 concurrently, each with its own tile view.
     * Under SLC_CONFLICT_ORDERED tiles 0, 1, 2 .. of the layout are each given exactly once, and a
     * worker only takes a tile when all before it have been taken; the call may wait for them.
     * Under SLC_CONFLICT_COLUMNS every worker is given every tile once. Under SLC_CONFLICT_ROWS
     * the tiles of a partition come one after the other, in ascending order, from any worker.
     * After an error in any tile the engine calls mttkrp_abort before it joins the workers.
     */
    enum slc_status (*mttkrp_tile)(struct slc_backend *backend,
                                   unsigned worker,
                                   struct slc_tile_view *tile,
                                   struct slc_error *err);

    /*
     * Under SLC_CONFLICT_ROWS, once all tiles of some partitions have been added: the output's rows
     * [begin, end), which belong to these alone, are complete when this returns. None of them is
     * one that a partition continues. Called by any worker, also for different rows at a time.
     */
    void (*mttkrp_rows)(struct slc_backend *backend, uint64_t begin, uint64_t end);

    /*
     * Between two tiles, while no worker is in mttkrp_tile: says in which memory all lies that the
     * job has summed up, and puts there what does not yet. Its bytes are the same for any workers
     * where the strategy's sums are. To go on from such bytes later, in this process or another:
     * begin the same job, have it say the memory, put the bytes there if the sizes agree, and call
     * mttkrp_resume before the first tile. The memory is the device's until mttkrp_end.
     * Errors: SLC_ERR_USAGE where no job was begun, SLC_ERR_SYSTEM (threads).
     */
    enum slc_status (*mttkrp_state)(struct slc_backend *backend,
                                    struct slc_mttkrp_state *state,
                                    struct slc_error *err);
    /* Errors: SLC_ERR_DAMAGED where no job can have left such bytes; then they are not used. */
    enum slc_status (*mttkrp_resume)(struct slc_backend *backend, struct slc_error *err);

    /* Wakes every worker that waits inside mttkrp_tile; their calls return SLC_ERR_INTERRUPTED. */
    void (*mttkrp_abort)(struct slc_backend *backend);

    /*
     * Under SLC_CONFLICT_ROWS a row that is split over partitions may have several owners, one per
     * device. After the last tile and before mttkrp_end the sums of the partitions that continue it
     * are taken, in their order, and added to the row of whoever has its first partition:
     * output->pitch numbers, those behind the rank zero. False, and no change, where this device
     * had no tile of `partition` or it continues no row. What is not taken mttkrp_end adds to this
     * device's own output.
     */
    bool (*mttkrp_split_take)(struct slc_backend *backend,
                              uint64_t partition,
                              uint64_t *row,
                              double *sums);
    void (*mttkrp_split_add)(struct slc_backend *backend, uint64_t row, const double *sums);

    /* Ends the job: the output is complete when this returns SLC_OK. Called by one thread. */
    enum slc_status (*mttkrp_end)(struct slc_backend *backend, struct slc_error *err);

    /*
     * After mttkrp_end: puts what the job's trial measured into `choice` (made for this job by
     * mttkrp_choose) and the winner into choice->chosen; later jobs are best given that. False,
     * and no change, where nothing was tried or the tiles were too few to tell.
     */
    bool (*mttkrp_tried)(const struct slc_backend *backend, struct slc_conflict_choice *choice);

    /*
     * Copies of a whole tensor, one per mode, decoded and sorted in the device's memory, for
     * solvers that compute many MTTKRPs of a tensor that fits:
     *
     *     replica_begin -> replica_tile (every tile once, from all workers) -> replica_end
     *
     * tiles in any order, after which mttkrp_replica computes without a stream. They hold until
     * replica_drop, the next replica_begin, or destroy.
     */

    /*
     * What all of this takes at its peak, for MTTKRPs up to `rank`; UINT64_MAX where the device
     * cannot hold such copies.
     */
    uint64_t (*replica_bytes)(const struct slc_tensor_shape *shape,
                              uint32_t rank,
                              enum slc_value_type type,
                              unsigned workers);
    /* Errors: SLC_ERR_USAGE for a shape or number of workers out of the limits, SLC_ERR_MEMORY; no
     * copies are held then. */
    enum slc_status (*replica_begin)(struct slc_backend *backend,
                                     const struct slc_tensor_shape *shape,
                                     enum slc_value_type type,
                                     unsigned workers,
                                     struct slc_error *err);
    /* Errors: those of decoding; SLC_ERR_DAMAGED where that gives another number of nonzeros than
     * the tile declares; SLC_ERR_USAGE for a tile of another tensor, or without replica_begin. */
    enum slc_status (*replica_tile)(struct slc_backend *backend,
                                    unsigned worker,
                                    struct slc_tile_view *tile,
                                    struct slc_error *err);
    /*
     * Sorts what came in. `factors`, one per mode, are such as MTTKRPs will have: the order of a
     * copy may then be chosen by timing some, and the last bits of what is computed from it with
     * that; NULL: by the tensor alone, so that equal tensors give equal bits. `stop` (may be NULL)
     * is looked at before each copy. Errors: SLC_ERR_USAGE when tiles are missing or came twice,
     * without replica_begin, and for factors of another shape; SLC_ERR_INTERRUPTED when it says so;
     * SLC_ERR_MEMORY, SLC_ERR_SYSTEM; no copies are held then.
     */
    enum slc_status (*replica_end)(struct slc_backend *backend,
                                   const struct slc_matrix *factors,
                                   const struct slc_stop *stop,
                                   struct slc_error *err);
    void (*replica_drop)(struct slc_backend *backend);
    /*
     * Says how the copy of `mode` is sorted. False, and no change, where copies are not held or the
     * tensor has no such mode. Threads: not while copies are made. Cost: a look at the head of
     * every chunk, of some thousands of nonzeros each.
     */
    bool (*replica_form)(const struct slc_backend *backend,
                         unsigned mode,
                         struct slc_replica_form *form);
    /*
     * The whole of an MTTKRP, by job->workers threads of its own. Errors: SLC_ERR_USAGE where
     * copies of this tensor, type and number of workers are not held, SLC_ERR_MEMORY,
     * SLC_ERR_SYSTEM.
     */
    enum slc_status (*mttkrp_replica)(struct slc_backend *backend,
                                      const struct slc_mttkrp_job *job,
                                      struct slc_error *err);

    /*
     * Copies `count` whole rows, padding included, from a matrix in the device's memory to the
     * host's, and back. Threads: any, on rows that nobody writes. Errors: those of the device.
     */
    enum slc_status (*rows_read)(struct slc_backend *backend,
                                 const struct slc_matrix *matrix,
                                 uint64_t first,
                                 uint64_t count,
                                 void *to,
                                 struct slc_error *err);
    enum slc_status (*rows_write)(struct slc_backend *backend,
                                  struct slc_matrix *matrix,
                                  uint64_t first,
                                  uint64_t count,
                                  const void *from,
                                  struct slc_error *err);

    void (*destroy)(struct slc_backend *backend); /* takes NULL */
};

struct slc_backend {
    const struct slc_backend_ops *ops;
};

#endif
