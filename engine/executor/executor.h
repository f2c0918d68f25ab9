/*
 * What computes MTTKRPs and updates factors: one backend of the CPU, groups of CPU workers, a GPU,
 * a GPU together with the CPU, or several GPUs. Whoever needs one creates it once, from a plan that
 * says which, and does not ask again.
 *
 *     create -> load -> { mttkrp -> update_rows | read_output -> scale -> read_factor } .. ->
 * destroy
 *
 * The host's factors and output are the caller's. Executors with memory of their own have copies of
 * the factors, which `load` fills; `read_factor` brings one back, `read_output` an MTTKRP.
 */
#ifndef SLC_ENGINE_EXECUTOR_H
#define SLC_ENGINE_EXECUTOR_H

#include "base/device.h"
#include "cpu/dense/dense.h"
#include "engine/plan/plan.h"
#include "engine/stream/pass_cuts.h"
#include "engine/stream/stream.h"

struct slc_gpu_group; /* engine/executor/gpu_group.h */

/* What there is to compute with, as far as the plan needs it. Borrowed. */
struct slc_executor_parts {
    struct slc_backend *backend;       /* of the CPU, alone or beside a GPU */
    struct slc_backend *const *groups; /* plan->cpu_groups of them */
    struct slc_device *gpu;            /* opened for the stream (slc_gpu_executor_open) */
    struct slc_gpu_group *gpus;        /* opened for it */
    const struct slc_layouts *layouts; /* of the stream; for groups */
};

/* Everything is borrowed. */
struct slc_executor_setup {
    struct slc_executor_parts parts;
    struct slc_stream *stream;
    const struct slc_plan *plan;
    struct slc_matrix *factors;      /* of the host, one per mode */
    const struct slc_buffer *output; /* of the host, for the longest mode; empty for GPUs alone */
    struct slc_dense *dense;         /* for plan->threads; NULL where nothing is solved */
};

/* One MTTKRP. */
struct slc_executor_pass {
    unsigned mode;
    /* The strategy of the CPU; what a trial has measured comes in. */
    struct slc_conflict_choice *choice;
    bool copies;                      /* from the backend's copies per mode */
    struct slc_hybrid *hybrid;        /* of CPU and GPU in this mode; learns what both have done */
    const struct slc_pass_cuts *cuts; /* with ops->in_parts; NULL: in one part */
    const volatile int *stop;
    void (*progress)(void *context, uint64_t blocks_done, uint64_t blocks, uint64_t bytes_read);
    void *progress_context;
};

/*
 * What one member of a group has done since it was created: a group of CPU workers, or a GPU of
 * several. Seconds of threads are means over its threads.
 */
struct slc_member_stats {
    uint64_t nnz;           /* that it multiplied */
    uint64_t bytes;         /* of the blocks these lay in, encoded */
    double compute_seconds; /* of MTTKRPs, decoding included */
    double wait_seconds;    /* in passes: for blocks, opening them, and for other devices */
    double reduce_seconds;  /* adding up what the devices have of its rows (SLC_SPLIT_NNZ) */
    double solve_seconds;   /* for its rows */
    uint64_t copied_bytes;  /* factors that were copied to it at the start */
    double copy_seconds;
    uint64_t sent_bytes;          /* to the next device */
    double exchange_seconds;      /* in the ring, but for */
    double exchange_wait_seconds; /* waiting for a neighbour */
};

/* What an executor has done since it was created. */
struct slc_executor_stats {
    unsigned members; /* of several; 0: it is alone */
    struct slc_member_stats member[SLC_MAX_DEVICES];
    struct slc_device_stats gpu; /* or all of several together; zeros where there is none */
};

struct slc_executor {
    const struct slc_executor_ops *ops;
    struct slc_executor_setup setup;
};

struct slc_executor_ops {
    bool in_parts; /* passes may be made in parts, and left between two of them */

    /* Copies the host's factors to where they are used. */
    enum slc_status (*load)(struct slc_executor *executor, struct slc_error *err);
    /*
     * The MTTKRP, to wherever update_rows needs it. Order: as the plan says. Errors: those of the
     * stream and of what computes; the MTTKRP is then undefined, factors as they were.
     */
    enum slc_status (*mttkrp)(struct slc_executor *executor,
                              const struct slc_executor_pass *pass,
                              struct slc_error *err);
    /* After it: the host's output has all rows. */
    enum slc_status (*read_output)(struct slc_executor *executor,
                                   unsigned mode,
                                   struct slc_error *err);
    /*
     * Factor `mode` = MTTKRP D V^-1 E (slc_dense_update), and its sums. `mttkrp`: where the host
     * has it. Errors: those of dense algebra and of devices; the factor is then undefined.
     */
    enum slc_status (*update_rows)(struct slc_executor *executor,
                                   unsigned mode,
                                   const struct slc_matrix *mttkrp,
                                   const struct slc_solver *solver,
                                   const struct slc_update_sums *sums,
                                   struct slc_error *err);
    /* Multiplies column r of factor `mode` by scale[r]. */
    enum slc_status (*scale)(struct slc_executor *executor,
                             unsigned mode,
                             const double *scale,
                             struct slc_error *err);
    /* The host's factor `mode` is what has been computed. */
    enum slc_status (*read_factor)(struct slc_executor *executor,
                                   unsigned mode,
                                   struct slc_error *err);
    void (*stats)(const struct slc_executor *executor, struct slc_executor_stats *stats);
    void (*destroy)(struct slc_executor *executor);
};

/*
 * The executor that the plan says. Owns: slc_executor_destroy, before its parts are destroyed.
 * Errors: SLC_ERR_USAGE where the plan's parts are not there or not the stream's; SLC_ERR_MEMORY.
 */
enum slc_status slc_executor_create(const struct slc_executor_setup *setup,
                                    struct slc_executor **executor,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_executor_destroy(struct slc_executor *executor); /* takes NULL */

#endif
