/* Operations of a compute device that receives decoded tiles. cpu/ implements the operations with
 * threads and vector kernels; devices that decode blocks themselves use base/device.h. The engine
 * runs one operation at a time: it calls mttkrp_begin once, then mttkrp_tile for each tile, from
 * all workers, then mttkrp_end once.
 *
 * The engine does not depend on how a device avoids write conflicts. */
#ifndef SLC_BASE_BACKEND_H
#define SLC_BASE_BACKEND_H

#include "base/block.h"
#include "base/error/error.h"
#include "base/error/stop.h"
#include "base/matrix.h"

#include <stdbool.h>
#include <stdint.h>

/* Strategy that prevents conflicts between concurrent additions to the same output row. */
enum slc_conflict {
    SLC_CONFLICT_AUTO,    /* mttkrp_begin chooses by shape and number of workers */
    SLC_CONFLICT_DIRECT,  /* a single worker adds to the output directly */
    SLC_CONFLICT_PRIVATE, /* each worker adds to its own copy of the output; mttkrp_end reduces the
                             copies */
    /* a worker sums a tile in private rows (a dense window or sorted segments) and then adds these
     * rows to the output under the locks of their stripes */
    SLC_CONFLICT_LOCKED,
    /* as LOCKED, but the rows of tiles are added in tile order, so that results have the same bits
     * for any number of workers; tiles must be started in ascending order */
    SLC_CONFLICT_ORDERED,
    /* every worker processes every tile, but computes only its own columns of the output; this
     * needs no scratch, but every worker decodes all tiles */
    SLC_CONFLICT_COLUMNS,
    /* for a layout sorted by the mode: a row is in one partition, unless it is split
     * (mttkrp_split_take); the tiles of a partition are added one after another, in ascending
     * order. Results have the same bits for any number of workers and any order of partitions */
    SLC_CONFLICT_ROWS,
    SLC_CONFLICT_REPLICA /* replicas of the tensor in device memory, in which every output row has
                          * one owner; see replica_begin */
};

const char *slc_conflict_name(enum slc_conflict conflict);

/* Cost of a strategy in ns of worker time per nonzero, including decoding. */
struct slc_conflict_cost {
    enum slc_conflict conflict;
    double predicted_ns;
    double measured_ns; /* 0 means not measured */
};

enum {
    SLC_CONFLICT_CANDIDATES = 2, /* strategies of a trial */
    /* Maximum number of costs: one per strategy of a trial, and the cost of `spare`. */
    SLC_CONFLICT_COSTS = SLC_CONFLICT_CANDIDATES + 1
};

/* The choice of a strategy for a mode. */
struct slc_conflict_choice {
    enum slc_conflict chosen; /* never AUTO */
    /* Alternative that the first pass tries, which costs a few percent of the time of that pass.
     * AUTO means no alternative. */
    enum slc_conflict rival;
    unsigned cost_count; /* number of `costs`; 0 if the job forces the strategy */
    /* strategies of a trial by increasing predicted cost, then `spare` if it is used */
    struct slc_conflict_cost costs[SLC_CONFLICT_COSTS];
    /* Strategy to use if memory does not suffice for the scratch of `chosen`: COLUMNS if its
     * predicted cost is below that of LOCKED, otherwise AUTO. */
    struct slc_conflict_cost spare;
};

/* One MTTKRP: M(i, r) = sum of (x * product of A(m)(i_m, r) over m != mode) over the nonzeros x
 * with coordinate i in `mode` ([Kolda2009] section 2.6). */
struct slc_mttkrp_job {
    unsigned order;
    unsigned mode;      /* 0-based */
    uint32_t rank;      /* 1 .. SLC_MAX_RANK */
    uint64_t nnz;       /* nonzeros of the whole layout, used to choose a strategy */
    unsigned workers;   /* number of threads that call mttkrp_tile */
    bool deterministic; /* forces SLC_CONFLICT_ORDERED, or ROWS if there are partitions */
    /* Number of partitions of a layout sorted by `mode`; a number above 0 selects ROWS. 0 means
     * that the layout is not sorted by `mode`. */
    uint64_t partitions;
    enum slc_conflict conflict; /* AUTO means the strategy with the lowest predicted cost */
    /* PRIVATE or LOCKED: a trial compares this strategy with `conflict`. The two strategies
     * alternate on some tiles, and the faster strategy computes the other tiles (mttkrp_tried).
     * AUTO means no trial. */
    enum slc_conflict rival;
    /* For ORDERED: ordinal of the first tile of this job, above 0 if mttkrp_resume restores the
     * sums of earlier tiles. */
    uint64_t first_tile;
    const struct slc_matrix *factors[SLC_MAX_ORDER]; /* dims[n] x rank; factors[mode] is not read */
    struct slc_matrix *output; /* dims[mode] x rank, with the type of the factors */
};

/* Memory regions that hold the sums of a job after some of its tiles. */
enum { SLC_MTTKRP_REGIONS = 3 };
struct slc_mttkrp_state {
    unsigned count;
    struct {
        void *data;
        uint64_t bytes;
        unsigned word_bytes; /* 4 or 8: size of a word of the region, in machine byte order */
    } region[SLC_MTTKRP_REGIONS];
};

/* Shape of a tensor of which replicas are made. */
struct slc_tensor_shape {
    unsigned order;
    uint64_t nnz;
    uint64_t dims[SLC_MAX_ORDER];
    uint32_t tile_nnz; /* nonzeros per tile; the last tile may have fewer */
};

/* Sort order of the replica of a mode. The order is plain (by output row only) or forms runs, whose
 * nonzeros also agree in some other modes. */
struct slc_replica_form {
    uint32_t varying;   /* bit m is set if mode m varies within a run; 0 means plain */
    double nnz_per_run; /* average number of nonzeros per run; 1 for a plain replica */
    /* number of orders that were timed; 0 means that the order was chosen by estimated costs */
    unsigned tried;
};

/* Returns the bytes from the start of a row to the start of the next row, for rows_read and
 * rows_write. */
static inline uint64_t slc_matrix_row_bytes(const struct slc_matrix *m)
{
    return (uint64_t)m->pitch * slc_value_bytes(m->type);
}

struct slc_backend;

struct slc_backend_ops {
    const char *name;

    /* Returns the size in bytes of the scratch that a job needs in addition to factors and output.
     * If job->output is NULL, returns the maximum of the sizes for f32 and f64 output. */
    uint64_t (*mttkrp_scratch_bytes)(const struct slc_mttkrp_job *job, uint64_t output_rows);

    /* Chooses the strategy that mttkrp_begin uses and an alternative for a trial. Depends only on
     * the shape of the job. */
    void (*mttkrp_choose)(const struct slc_mttkrp_job *job,
                          uint64_t output_rows,
                          struct slc_conflict_choice *choice);

    /* Starts a job: sets the output to zero and prepares scratch. The job is copied; matrices are
     * borrowed until mttkrp_end. Errors: SLC_ERR_USAGE if the shapes of matrices do not match the
     * job, SLC_ERR_MEMORY. */
    enum slc_status (*mttkrp_begin)(struct slc_backend *backend,
                                    const struct slc_mttkrp_job *job,
                                    struct slc_error *err);

    /* Adds the products of one tile to the output. Workers 0 to job->workers - 1 call this
     * concurrently, each with its own tile view. Under SLC_CONFLICT_ORDERED every tile of the
     * layout is passed exactly once, and a worker starts a tile only after all earlier tiles were
     * started; the call may wait for these tiles. Under SLC_CONFLICT_COLUMNS every worker is passed
     * every tile once. Under SLC_CONFLICT_ROWS any worker may add the tiles of a partition, but
     * the tiles must be added one after another, in ascending order. After an error in any tile the
     * engine calls mttkrp_abort before it joins the workers. */
    enum slc_status (*mttkrp_tile)(struct slc_backend *backend,
                                   unsigned worker,
                                   struct slc_tile_view *tile,
                                   struct slc_error *err);

    /* Completes the output rows [begin, end) under SLC_CONFLICT_ROWS, after all tiles of the
     * partitions that contain these rows were added. No other partition contains one of these rows.
     * Any worker may call this, and several workers may call it at the same time for different
     * rows. */
    void (*mttkrp_rows)(struct slc_backend *backend, uint64_t begin, uint64_t end);

    /* Completes all sums of the job so far and describes the memory that holds them. Called between
     * two tiles, while no worker is in mttkrp_tile. If the sums of the strategy do not depend on
     * the number of workers, neither do the bytes in this memory. To continue a job from saved
     * bytes, in this process or another: begin the same job, call mttkrp_state, copy the saved
     * bytes to the described memory if the sizes agree, and call mttkrp_resume before the first
     * tile. The memory belongs to the device until mttkrp_end. Errors: SLC_ERR_USAGE if no job was
     * begun, SLC_ERR_SYSTEM if threads fail. */
    enum slc_status (*mttkrp_state)(struct slc_backend *backend,
                                    struct slc_mttkrp_state *state,
                                    struct slc_error *err);
    /* Continues the job from the bytes that the caller copied to the memory of mttkrp_state.
     * Errors: SLC_ERR_DAMAGED if no job can have produced these bytes; the job then ignores
     * them. */
    enum slc_status (*mttkrp_resume)(struct slc_backend *backend, struct slc_error *err);

    /* Wakes all workers that wait in mttkrp_tile; the waiting calls return SLC_ERR_INTERRUPTED. */
    void (*mttkrp_abort)(struct slc_backend *backend);

    /* Under SLC_CONFLICT_ROWS several devices may compute sums of the same row, if the row is split
     * over partitions. After the last tile and before mttkrp_end, mttkrp_split_take removes the
     * sums of each partition that continues a row, in the order of partitions, and mttkrp_split_add
     * adds these sums to the row on the device that owns the first partition of the row. `sums` has
     * output->pitch numbers; the numbers after the first `rank` are zero. mttkrp_split_take returns
     * false, without changes, if this device had no tile of `partition` or the partition continues
     * no row. mttkrp_end adds the remaining sums to the output of this device. */
    bool (*mttkrp_split_take)(struct slc_backend *backend,
                              uint64_t partition,
                              uint64_t *row,
                              double *sums);
    void (*mttkrp_split_add)(struct slc_backend *backend, uint64_t row, const double *sums);

    /* Ends the job: the output is complete on SLC_OK. Called by one thread. */
    enum slc_status (*mttkrp_end)(struct slc_backend *backend, struct slc_error *err);

    /* Called after mttkrp_end. Stores the times of the job's trial in `choice`, which mttkrp_choose
     * filled in for this job, and the faster strategy in choice->chosen, for later jobs. Returns
     * false, without changes, if there was no trial or too few tiles for a result. */
    bool (*mttkrp_tried)(const struct slc_backend *backend, struct slc_conflict_choice *choice);

    /* Replicas: decoded copies of a whole tensor, one per mode, sorted, in device memory. Replicas
     * serve solvers that compute many MTTKRPs of a tensor that fits into this memory. After
     * replica_begin, the workers together call replica_tile once for every tile, in any order.
     * After replica_end, mttkrp_replica computes MTTKRPs without reading blocks. Replicas stay
     * until replica_drop, the next replica_begin, or destroy. */

    /* Returns the peak memory in bytes that replicas and their MTTKRPs need for ranks up to `rank`;
     * UINT64_MAX if the device does not support replicas. */
    uint64_t (*replica_bytes)(const struct slc_tensor_shape *shape,
                              uint32_t rank,
                              enum slc_value_type type,
                              unsigned workers);
    /* Allocates memory for replicas. Errors: SLC_ERR_USAGE if the shape or the number of workers
     * exceeds the limits, SLC_ERR_MEMORY; after an error the device holds no replicas. */
    enum slc_status (*replica_begin)(struct slc_backend *backend,
                                     const struct slc_tensor_shape *shape,
                                     enum slc_value_type type,
                                     unsigned workers,
                                     struct slc_error *err);
    /* Decodes one tile and stores its nonzeros for the replicas. Errors: those of decoding;
     * SLC_ERR_DAMAGED if the number of decoded nonzeros differs from tile->nnz; SLC_ERR_USAGE for a
     * tile of another tensor, or without replica_begin. */
    enum slc_status (*replica_tile)(struct slc_backend *backend,
                                    unsigned worker,
                                    struct slc_tile_view *tile,
                                    struct slc_error *err);
    /* Sorts the nonzeros of all tiles. `factors` has one matrix per mode, with values like those in
     * later MTTKRPs. With these factors the function may choose the order of a replica by timing;
     * the last bits of results depend on that order. If `factors` is NULL, the order depends only
     * on the tensor, so that results for equal tensors have equal bits. `stop` (may be NULL) is
     * checked before each replica. Errors: SLC_ERR_USAGE without replica_begin, if tiles are
     * missing or were passed twice, and for factors of another shape; SLC_ERR_INTERRUPTED by
     * `stop`; SLC_ERR_MEMORY, SLC_ERR_SYSTEM. After an error the device holds no replicas. */
    enum slc_status (*replica_end)(struct slc_backend *backend,
                                   const struct slc_matrix *factors,
                                   const struct slc_stop *stop,
                                   struct slc_error *err);
    void (*replica_drop)(struct slc_backend *backend);
    /* Describes the order of the replica of `mode`. Returns false, and leaves `form` unchanged, if
     * the device holds no replicas or the tensor has no such mode. Threads: must not run during
     * replica_begin to replica_end. Cost: reads the head of every chunk of a few thousand
     * nonzeros. */
    bool (*replica_form)(const struct slc_backend *backend,
                         unsigned mode,
                         struct slc_replica_form *form);
    /* Computes a whole MTTKRP with job->workers threads. Errors: SLC_ERR_USAGE if the device holds
     * no replicas of this tensor, type and number of workers; SLC_ERR_MEMORY, SLC_ERR_SYSTEM. */
    enum slc_status (*mttkrp_replica)(struct slc_backend *backend,
                                      const struct slc_mttkrp_job *job,
                                      struct slc_error *err);

    /* rows_read copies `count` whole rows, including padding, from a matrix in device memory to the
     * host; rows_write copies them back. Threads: any thread may call them for rows that no other
     * thread writes. Errors: those of the device. */
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
