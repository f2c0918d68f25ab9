/* Executors compute MTTKRPs and update factors. There are five executors: one backend of the CPU,
 * groups of CPU workers, one GPU, one GPU together with the CPU, and several GPUs. The plan selects
 * the executor that slc_executor_create returns; all executors have the same interface.
 *
 * The calls are, in this order:
 *
 *  1. slc_executor_create, then `load`.
 *  2. For every mode of every iteration: `mttkrp`, then one of these:
 *      - `update_rows`, which updates the factor in the memory of the executor;
 *      - `read_output`, if the caller only needs the MTTKRP, or if the factors of the executor are
 *        the factors in host memory, and the caller updates them there;
 *      - `read_output`, and `write_factor` after the caller has updated the factor in host memory.
 *     After an update, `scale` multiplies the columns of the factor, if that is needed.
 *  3. `read_factor` for each factor, whenever the caller needs factors in host memory.
 *  4. slc_executor_destroy.
 *
 * The caller owns the factors and the output in host memory. Executors with memory of their own
 * hold copies of the factors: `load` fills them, `read_factor` copies one factor back to host
 * memory, and `read_output` copies the result of an MTTKRP. */
#ifndef SLC_ENGINE_EXECUTOR_H
#define SLC_ENGINE_EXECUTOR_H

#include "base/device.h"
#include "cpu/dense/dense.h"
#include "engine/plan/plan.h"
#include "engine/stream/part.h"
#include "engine/stream/pass_cuts.h"
#include "engine/stream/stream.h"

struct slc_gpu_group; /* engine/executor/gpu_group.h */

/* Backends and devices of an executor. Only the members that the plan needs must be set.
 * Borrowed. */
struct slc_executor_parts {
    struct slc_backend *backend;       /* backend of the CPU, used alone or together with a GPU */
    struct slc_backend *const *groups; /* array of plan->cpu_groups backends */
    struct slc_device *gpu;            /* opened for the stream (slc_gpu_executor_open) */
    struct slc_gpu_group *gpus;        /* opened for the stream (slc_gpu_group_open) */
    const struct slc_layouts *layouts; /* layouts of the stream; only for groups */
};

/* Arguments of slc_executor_create. Everything is borrowed. */
struct slc_executor_setup {
    struct slc_executor_parts parts;
    struct slc_stream *stream;
    const struct slc_plan *plan;
    struct slc_matrix *factors; /* factors in host memory, one per mode */
    /* output in host memory, large enough for every mode; empty if only GPUs compute */
    const struct slc_buffer *output;
    /* Dense algebra for plan->threads threads; NULL if no factor is updated. */
    struct slc_dense *dense;
};

/* Arguments of one MTTKRP. */
struct slc_executor_pass {
    unsigned mode;
    /* Conflict strategy of the CPU. If the pass tries two strategies, their measurements are stored
     * here. */
    struct slc_conflict_choice *choice;
    bool copies; /* true: use the backend's replicas */
    /* Division of this mode between CPU and GPU. The pass records their work here. */
    struct slc_hybrid *hybrid;
    /* Divides the pass into parts; only if ops->in_parts is set. NULL: the pass is not divided. */
    const struct slc_pass_cuts *cuts;
    const struct slc_part *part; /* computes only these rows; only if ops->in_parts is set */
    const volatile int *stop;
    void (*progress)(void *context, uint64_t blocks_done, uint64_t blocks, uint64_t bytes_read);
    void *progress_context;
};

/* Totals of one member since its creation. A member is a group of CPU workers, or one of several
 * GPUs. Thread times are means over the member's threads. */
struct slc_member_stats {
    uint64_t nnz;           /* nonzeros multiplied */
    uint64_t bytes;         /* encoded bytes of the blocks that were multiplied */
    double compute_seconds; /* time of MTTKRPs, including decoding */
    /* Time in passes spent opening blocks, and waiting for blocks and for other members. */
    double wait_seconds;
    double reduce_seconds; /* time to add partial sums of its rows (SLC_SPLIT_NNZ) */
    double solve_seconds;  /* time to solve its rows */
    uint64_t copied_bytes; /* bytes of factors copied to it at the start */
    double copy_seconds;
    uint64_t sent_bytes;          /* bytes sent to the next device */
    double exchange_seconds;      /* time of exchanges in the ring, without exchange_wait_seconds */
    double exchange_wait_seconds; /* time waiting for a neighbour in the ring */
};

/* Totals of an executor since it was created. */
struct slc_executor_stats {
    unsigned members; /* 0 if the work is not divided */
    struct slc_member_stats member[SLC_MAX_DEVICES];
    struct slc_device_stats gpu; /* summed over all GPUs; zeros without a GPU */
};

struct slc_executor {
    const struct slc_executor_ops *ops;
    struct slc_executor_setup setup;
};

struct slc_executor_ops {
    bool in_parts; /* true if a pass can be made in parts and can stop between two parts */

    /* Copies the factors from host memory to the executor's memory. */
    enum slc_status (*load)(struct slc_executor *executor, struct slc_error *err);
    /* Computes the MTTKRP and leaves it in the memory from which update_rows reads. Order:
     * reproducible if the plan is deterministic. Errors: those of the stream and of the devices;
     * the MTTKRP is then undefined and the factors are unchanged. */
    enum slc_status (*mttkrp)(struct slc_executor *executor,
                              const struct slc_executor_pass *pass,
                              struct slc_error *err);
    /* Called after mttkrp: copies all rows of the result to the output in host memory. */
    enum slc_status (*read_output)(struct slc_executor *executor,
                                   unsigned mode,
                                   struct slc_error *err);
    /* Computes factor `mode` = MTTKRP D V^-1 E, with the diagonal scales D and E
     * (slc_dense_update), and the sums of the factor. `mttkrp` is the output in host memory.
     * Errors: those of dense algebra and of devices; the factor is then undefined. */
    enum slc_status (*update_rows)(struct slc_executor *executor,
                                   unsigned mode,
                                   const struct slc_matrix *mttkrp,
                                   const struct slc_solver *solver,
                                   const struct slc_update_sums *sums,
                                   struct slc_error *err);
    /* Copies factor `mode` from host memory, where the caller has changed it, to the executor's
     * memory. NULL if the executor uses the factors in host memory. */
    enum slc_status (*write_factor)(struct slc_executor *executor,
                                    unsigned mode,
                                    struct slc_error *err);
    /* Multiplies column r of factor `mode` by scale[r]. */
    enum slc_status (*scale)(struct slc_executor *executor,
                             unsigned mode,
                             const double *scale,
                             struct slc_error *err);
    /* Copies the computed factor `mode` to the factor in host memory. */
    enum slc_status (*read_factor)(struct slc_executor *executor,
                                   unsigned mode,
                                   struct slc_error *err);
    void (*stats)(const struct slc_executor *executor, struct slc_executor_stats *stats);
    void (*destroy)(struct slc_executor *executor);
};

/* Creates the executor that the plan selects. Ownership: release with slc_executor_destroy before
 * the setup's parts are destroyed. Errors: SLC_ERR_USAGE if parts that the plan needs are missing
 * or do not belong to the stream; SLC_ERR_MEMORY. */
enum slc_status slc_executor_create(const struct slc_executor_setup *setup,
                                    struct slc_executor **executor,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_executor_destroy(struct slc_executor *executor); /* accepts NULL */

#endif
