/*
 * Operations of a compute device that receives decoded tiles. cpu/ implements them with threads and
 * vector kernels; devices that decode blocks themselves use base/device.h. The engine runs one
 * operation at a time:
 *
 *     mttkrp_begin -> mttkrp_tile (from all workers, any order or tile order) -> mttkrp_end
 *
 * The engine does not depend on how a device avoids write conflicts.
 */
#ifndef SLC_BASE_BACKEND_H
#define SLC_BASE_BACKEND_H

#include "base/block.h"
#include "base/error/error.h"
#include "base/error/stop.h"
#include "base/matrix.h"

#include <stdbool.h>
#include <stdint.h>

/* How concurrent additions to an output row are kept apart. */
enum slc_conflict {
    SLC_CONFLICT_AUTO,    /* chosen by mttkrp_begin from shape and workers */
    SLC_CONFLICT_DIRECT,  /* a single worker adds to the output directly */
    SLC_CONFLICT_PRIVATE, /* each worker adds to its own copy of the output; mttkrp_end reduces the
                             copies */
    SLC_CONFLICT_LOCKED, /* tile-local rows (dense window or sorted segments), then striped locks */
    SLC_CONFLICT_ORDERED, /* tile-local rows, added in tile order, so results have the same bits for
                           * any number of workers; tiles must be started in ascending order */
    SLC_CONFLICT_COLUMNS, /* every worker processes every tile for its own columns of the output: no
                             scratch, but all workers decode all tiles */
    SLC_CONFLICT_ROWS,    /* for a layout sorted by the mode: no row is in two partitions, and the
                           * tiles of a partition come one after another, in order. Results have the
                           * same bits for any number of workers and any order of partitions */
    SLC_CONFLICT_REPLICA  /* replicas of the tensor in device memory, in which every output row has
                           * one owner; see replica_begin */
};

const char *slc_conflict_name(enum slc_conflict conflict);

/* Cost of a strategy in ns of worker time per nonzero, including decoding. */
struct slc_conflict_cost {
    enum slc_conflict conflict;
    double predicted_ns;
    double measured_ns; /* 0: not measured */
};

enum {
    SLC_CONFLICT_CANDIDATES = 2, /* strategies of a trial */
    /* Candidates, and the strategy that a plan without memory for scratch uses. */
    SLC_CONFLICT_COSTS = SLC_CONFLICT_CANDIDATES + 1
};

/* The choice of a strategy for a mode. */
struct slc_conflict_choice {
    enum slc_conflict chosen; /* never AUTO */
    /* Alternative that a first pass tries, at a cost of a few percent of its time. AUTO: none. */
    enum slc_conflict rival;
    unsigned cost_count; /* 0 if the strategy was given or is the only possible one */
    struct slc_conflict_cost costs[SLC_CONFLICT_COSTS]; /* candidates, cheapest prediction first */
    /* COLUMNS if it is expected to be faster than LOCKED: the alternative if memory does not
     * suffice for the scratch of `chosen`. Otherwise AUTO. */
    struct slc_conflict_cost spare;
};

/* One MTTKRP: M(i, r) = sum over nonzeros x with coordinate i in `mode` of x * product over m !=
 * mode of A(m)(i_m, r) ([Kolda2009] section 2.6). */
struct slc_mttkrp_job {
    unsigned order;
    unsigned mode;      /* 0-based */
    uint32_t rank;      /* 1 .. SLC_MAX_RANK */
    uint64_t nnz;       /* nonzeros of the whole layout, to choose a strategy */
    unsigned workers;   /* number of threads that call mttkrp_tile */
    bool deterministic; /* forces SLC_CONFLICT_ORDERED, or ROWS if there are partitions */
    /* Number of partitions of a layout sorted by `mode`, which selects ROWS. 0: another layout. */
    uint64_t partitions;
    enum slc_conflict conflict; /* AUTO: the cheapest prediction */
    /* PRIVATE or LOCKED, to be compared with `conflict`: the two strategies alternate on some
     * tiles, and the faster strategy computes the other tiles (mttkrp_tried). AUTO: no trial. */
    enum slc_conflict rival;
    /*
     * ORDERED: the first tile of this job, if mttkrp_resume restores the sums of earlier tiles.
     */
    uint64_t first_tile;
    const struct slc_matrix *factors[SLC_MAX_ORDER]; /* dims[n] x rank; factors[mode] is not read */
    struct slc_matrix *output; /* dims[mode] x rank, with the type of the factors */
};

/* A memory region with sums of a job so far. */
enum { SLC_MTTKRP_REGIONS = 3 };
struct slc_mttkrp_state {
    unsigned count;
    struct {
        void *data;
        uint64_t bytes;
        unsigned word_bytes; /* 4 or 8: size of a word of the region, in machine byte order */
    } region[SLC_MTTKRP_REGIONS];
};

/* Shape of a tensor for replicas. */
struct slc_tensor_shape {
    unsigned order;
    uint64_t nnz;
    uint64_t dims[SLC_MAX_ORDER];
    uint32_t tile_nnz; /* nonzeros of every tile except the last */
};

/* Sort order of the replica of a mode: plain, or in runs whose nonzeros agree in some modes. */
struct slc_replica_form {
    uint32_t varying;   /* bit m: mode m varies within a run; 0: plain */
    double nnz_per_run; /* average; 1 for a plain replica */
    unsigned tried;     /* number of orders that were timed; 0: chosen by estimated costs */
};

/* Bytes from one row to the next, for rows_read and rows_write. */
static inline uint64_t slc_matrix_row_bytes(const struct slc_matrix *m)
{
    return (uint64_t)m->pitch * slc_value_bytes(m->type);
}

struct slc_backend;

struct slc_backend_ops {
    const char *name;

    /* Returns the size in bytes of the scratch that a job needs in addition to factors and output.
     * If job->output is NULL, returns the larger of the values for f32 and f64. */
    uint64_t (*mttkrp_scratch_bytes)(const struct slc_mttkrp_job *job, uint64_t output_rows);

    /* Chooses the strategy of mttkrp_begin and an alternative to try. Depends only on the shape of
     * the job. */
    void (*mttkrp_choose)(const struct slc_mttkrp_job *job,
                          uint64_t output_rows,
                          struct slc_conflict_choice *choice);

    /*
     * Starts a job: sets the output to zero and prepares scratch. The job is copied; matrices are
     * borrowed until mttkrp_end. Errors: SLC_ERR_USAGE for shapes that do not fit, SLC_ERR_MEMORY.
     */
    enum slc_status (*mttkrp_begin)(struct slc_backend *backend,
                                    const struct slc_mttkrp_job *job,
                                    struct slc_error *err);

    /*
     * Adds one tile. Called by workers 0 to workers - 1 concurrently, each with its own tile view.
     * Under SLC_CONFLICT_ORDERED each tile 0, 1, 2, .. of the layout is passed exactly once, and a
     * worker starts a tile only after all earlier tiles were started; the call may wait for them.
     * Under SLC_CONFLICT_COLUMNS every worker is passed every tile once. Under SLC_CONFLICT_ROWS
     * the tiles of a partition come one after another, in ascending order, from any worker. After
     * an error in any tile the engine calls mttkrp_abort before it joins the workers.
     */
    enum slc_status (*mttkrp_tile)(struct slc_backend *backend,
                                   unsigned worker,
                                   struct slc_tile_view *tile,
                                   struct slc_error *err);

    /*
     * Completes the output rows [begin, end) under SLC_CONFLICT_ROWS, after all tiles of the
     * partitions that contain these rows were added. No other partition continues one of these
     * rows. Called by any worker, also for different rows at the same time.
     */
    void (*mttkrp_rows)(struct slc_backend *backend, uint64_t begin, uint64_t end);

    /*
     * Describes the memory with all sums of the job, after completing these sums. Called between
     * two tiles, while no worker is in mttkrp_tile. The bytes do not depend on the number of
     * workers if the strategy's sums do not. To continue from such bytes later, in this process or
     * another: begin the same job, call mttkrp_state, copy the bytes to the memory if the sizes
     * agree, and call mttkrp_resume before the first tile. The memory belongs to the device until
     * mttkrp_end. Errors: SLC_ERR_USAGE without a job, SLC_ERR_SYSTEM (threads).
     */
    enum slc_status (*mttkrp_state)(struct slc_backend *backend,
                                    struct slc_mttkrp_state *state,
                                    struct slc_error *err);
    /* Continues from the bytes in the memory of mttkrp_state. Errors: SLC_ERR_DAMAGED if no job can
     * have left such bytes; the bytes are then not used. */
    enum slc_status (*mttkrp_resume)(struct slc_backend *backend, struct slc_error *err);

    /* Wakes all workers that wait in mttkrp_tile; the waiting calls return SLC_ERR_INTERRUPTED. */
    void (*mttkrp_abort)(struct slc_backend *backend);

    /*
     * Under SLC_CONFLICT_ROWS several devices may own parts of a row that is split over partitions.
     * After the last tile and before mttkrp_end, mttkrp_split_take removes the sums of each
     * continuing partition, in order, and mttkrp_split_add adds these sums to the row on the device
     * that owns the first partition of the row. `sums` has output->pitch numbers; those after the
     * rank are zero. Returns false, without changes, if this device had no tile of `partition` or
     * the partition continues no row. mttkrp_end adds sums that were not removed to this device's
     * own output.
     */
    bool (*mttkrp_split_take)(struct slc_backend *backend,
                              uint64_t partition,
                              uint64_t *row,
                              double *sums);
    void (*mttkrp_split_add)(struct slc_backend *backend, uint64_t row, const double *sums);

    /* Ends the job: the output is complete on SLC_OK. Called by one thread. */
    enum slc_status (*mttkrp_end)(struct slc_backend *backend, struct slc_error *err);

    /*
     * After mttkrp_end: stores the measurements of the job's trial in `choice`, which mttkrp_choose
     * made for this job, and the winner in choice->chosen, for later jobs. Returns false, without
     * changes, if there was no trial or too few tiles for a result.
     */
    bool (*mttkrp_tried)(const struct slc_backend *backend, struct slc_conflict_choice *choice);

    /*
     * Replicas: decoded copies of a whole tensor, one per mode, sorted in the device's memory, for
     * solvers that compute many MTTKRPs of a tensor that fits into it:
     *
     *     replica_begin -> replica_tile .. -> replica_end
     *
     * All workers call replica_tile, for every tile once, in any order. Then mttkrp_replica
     * computes without a stream. Replicas stay until replica_drop, the next replica_begin, or
     * destroy.
     */

    /* Returns the peak memory of replicas and their MTTKRPs up to `rank`; UINT64_MAX if the device
     * does not support replicas. */
    uint64_t (*replica_bytes)(const struct slc_tensor_shape *shape,
                              uint32_t rank,
                              enum slc_value_type type,
                              unsigned workers);
    /* Errors: SLC_ERR_USAGE for a shape or number of workers beyond the limits, SLC_ERR_MEMORY;
     * after an error, no replicas are held. */
    enum slc_status (*replica_begin)(struct slc_backend *backend,
                                     const struct slc_tensor_shape *shape,
                                     enum slc_value_type type,
                                     unsigned workers,
                                     struct slc_error *err);
    /* Errors: those of decoding; SLC_ERR_DAMAGED if the number of decoded nonzeros differs from the
     * tile's declaration; SLC_ERR_USAGE for a tile of another tensor, or without replica_begin. */
    enum slc_status (*replica_tile)(struct slc_backend *backend,
                                    unsigned worker,
                                    struct slc_tile_view *tile,
                                    struct slc_error *err);
    /*
     * Sorts the nonzeros of all tiles. `factors`, one per mode, resemble those of later MTTKRPs:
     * the order of a replica may then be chosen by timing, and the last bits of results depend on
     * it. NULL: the order depends only on the tensor, so that equal tensors have equal bits. `stop`
     * (may be NULL) is checked before each replica. Errors: SLC_ERR_USAGE if tiles are missing or
     * were passed twice, without replica_begin, and for factors of another shape;
     * SLC_ERR_INTERRUPTED by `stop`; SLC_ERR_MEMORY, SLC_ERR_SYSTEM; no replicas are held then.
     */
    enum slc_status (*replica_end)(struct slc_backend *backend,
                                   const struct slc_matrix *factors,
                                   const struct slc_stop *stop,
                                   struct slc_error *err);
    void (*replica_drop)(struct slc_backend *backend);
    /*
     * Describes the order of the replica of `mode`. Returns false, without changes, without
     * replicas or such a mode. Threads: not while replicas are made. Cost: reads the head of every
     * chunk of a few thousand nonzeros.
     */
    bool (*replica_form)(const struct slc_backend *backend,
                         unsigned mode,
                         struct slc_replica_form *form);
    /* Computes a whole MTTKRP with job->workers threads. Errors: SLC_ERR_USAGE without replicas of
     * this tensor, type and number of workers, SLC_ERR_MEMORY, SLC_ERR_SYSTEM. */
    enum slc_status (*mttkrp_replica)(struct slc_backend *backend,
                                      const struct slc_mttkrp_job *job,
                                      struct slc_error *err);

    /* Copy `count` whole rows, including padding, from a matrix in the device's memory to the host
     * and back. Threads: any, on rows that no thread writes. Errors: those of the device. */
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

    void (*destroy)(struct slc_backend *backend); /* accepts NULL */
};

struct slc_backend {
    const struct slc_backend_ops *ops;
};

#endif
