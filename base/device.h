/*
 * Operations of a device with its own memory that decodes blocks itself. gpu/ implements them.
 * Factors, MTTKRP outputs and some blocks stay in device memory. Only other blocks, once per pass,
 * and small matrices of the solver are transferred.
 *
 *     open -> host_register .. -> factor_write .. ->
 *         { job.begin -> { block | resident | flush } .. -> job.end -> update .. } ..
 *     -> factor_read .. -> close
 *
 * Only one thread at a time uses a device, but not always the same thread. Work is asynchronous:
 * `block` returns when the block has been enqueued, and its memory may be reused once `copied`
 * reports that the copy is complete. Faults of kernels are reported by job.end.
 *
 * A device may instead multiply tiles, fiber by fiber, by matrices in device memory and return the
 * sums:
 *
 *     product.open -> { product.tile -> product.more .. } .. -> close
 *
 * Then several threads use the device at the same time, each with its own lane.
 */
#ifndef SLC_BASE_DEVICE_H
#define SLC_BASE_DEVICE_H

#include "base/encoded.h"
#include "base/error/error.h"
#include "base/matrix.h"
#include "base/solver.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_device_info {
    char name[128];
    uint64_t total_bytes, free_bytes; /* free_bytes: within the limit of the device's options */
    unsigned multiprocessors;
    unsigned shared_bytes; /* maximum per thread block */
    bool described;        /* a description without hardware: it supports plans, but not open */
};

enum {
    SLC_DEVICE_STREAMS = 8, /* maximum: more than two or three copies and kernels never overlap */
    /* Maximum: one tile occupies a twentieth of a large device, and some lanes are transferring
     * tiles. */
    SLC_DEVICE_LANES = 64,
    /* Alignment in bytes of blocks in a slot: whole cache lines. */
    SLC_DEVICE_ALIGN = 128
};

/* The MTTKRPs that a device is opened for. Everything is borrowed until open returns. */
struct slc_device_problem {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint32_t rank;
    enum slc_value_type precision; /* type of factors; products and sums are f64 */
    bool deterministic; /* sums do not depend on the order of additions (gpu/mttkrp/exact_sum.h) */
    unsigned layout_count;
    const struct slc_encoded_layout *layouts;

    /* Batches: a slot holds as many blocks as fit, and one launch computes them. */
    unsigned streams;        /* 1 to SLC_DEVICE_STREAMS, each with its own slot */
    uint64_t slot_bytes;     /* at least the largest block */
    uint64_t expanded_bytes; /* per slot: at least the largest slc_encoded_block.expanded_bytes */
    uint32_t slot_tiles;     /* at least the tiles of the largest block */

    /* Memory for resident blocks and their expanded bytes, each rounded up to SLC_DEVICE_ALIGN; 0:
     * no resident blocks. */
    uint64_t resident_bytes;
    uint32_t resident_tiles;

    /* If several devices share a problem: the maximum number of units of update_units; the devices
     * may differ in the memory for batches and blocks. 0: a single device. */
    uint32_t unit_most;
    bool adds_host; /* job.add_host will be used; not with deterministic */
};

/* Progress of a job. */
struct slc_device_progress {
    uint64_t nnz; /* computed so far, of all blocks of the job */
    bool busy;    /* launched batches are still running */
    bool fits;    /* the block passed as `next` fits into the batch that is being collected */
    unsigned
        free_slots; /* for batches, in addition to the slot of the batch that is being collected */
};

/* Runs of rows, each of at most rows_most rows, whose sums are computed separately. Borrowed. */
struct slc_device_units {
    const struct slc_row_span *rows;
    uint32_t count;
    uint64_t rows_most;
};

struct slc_device_job {
    unsigned layout; /* index into problem.layouts */
    unsigned mode;
    /*
     * With deterministic: sqrt(nnz) ||X||, a bound on all sums of magnitudes of values. If it is
     * too small, sums wrap: a caller that has ||X|| from a file must compare it with
     * slc_device_stats.squares before using the output.
     */
    double magnitude;
    /* Blocks that are not resident are copied during the job: launches of resident blocks are
     * split, so that copied blocks are computed in between. */
    bool copies;
};

/* The number that a block has if it is not resident. */
#define SLC_NOT_RESIDENT UINT32_MAX

/* A product of tiles and matrices that a device is opened for. Everything is borrowed until
 * product.open returns. */
struct slc_device_product {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    const struct slc_encoded_layout *layout; /* of the tiles; NULL in plans */
    /*
     * Matrix of each contracted mode, with dims[n] rows; a vector is a matrix with one column. All
     * have the same number of columns, the type `precision` and zero padding. NULL: the mode
     * remains. At least one is not NULL. Plans use only the shapes.
     */
    const struct slc_matrix *matrix[SLC_MAX_ORDER];
    enum slc_value_type precision; /* type of matrices; products and sums are f64 */
    unsigned lanes;                /* 1 to SLC_DEVICE_LANES */
    uint64_t tile_bytes;     /* at least the bytes of the largest block passed to product.tile */
    uint64_t expanded_bytes; /* at least the expanded bytes of the largest block */
    uint32_t room;           /* fibers returned per call: 1 to SLC_TILE_NNZ */
};

/* Fibers of a tile and their sums, in memory of the lane: valid until the lane's next call. */
struct slc_device_fibers {
    uint32_t count;
    bool more; /* the tile has more fibers: call product.more */
    /*
     * Coordinates minus the tile's corner, one per fiber, for each remaining mode; otherwise NULL.
     */
    const uint32_t *offset[SLC_MAX_ORDER];
    const double *sums; /* one row per fiber, without padding */
};

/* Counters since the device was opened. */
struct slc_device_stats {
    uint64_t launches;                       /* of batches or tiles */
    uint64_t blocks, nnz;                    /* blocks or tiles */
    uint64_t block_bytes;                    /* copied to the device */
    uint64_t resident_bytes;                 /* of blocks that were computed without a copy */
    uint64_t bytes_to_device, bytes_to_host; /* all other bytes copied */
    uint64_t factor_bytes_to_host; /* part of bytes_to_host: rows of factors and outputs */
    uint64_t bytes_from_devices;   /* rows of factors and outputs of other devices */
    /*
     * Device time during which at least one block was copied, during which at least one kernel ran,
     * and during which either happened. Overlapping work of several streams counts once, so that
     * none of the times exceeds the elapsed time.
     */
    double copy_seconds, compute_seconds, busy_seconds;
    double squares; /* with deterministic: rounded sum of squares of the values of the last job */
};

struct slc_device;

/* Memory of a device that computes MTTKRPs. */
struct slc_device_memory_ops {
    /* Device memory that `open` would allocate; UINT64_MAX on overflow. problem->layouts may be
     * NULL, because plans have not described layouts yet. */
    uint64_t (*memory_bytes)(const struct slc_device *device,
                             const struct slc_device_problem *problem);

    /* As memory_bytes, for the host memory that `open` would allocate; memory of CUDA itself is not
     * included. */
    uint64_t (*host_bytes)(const struct slc_device *device,
                           const struct slc_device_problem *problem);

    /*
     * Allocates all memory: zeroed factors, an output for the largest mode, slots, resident blocks.
     * Errors: SLC_ERR_BUDGET with a sufficient --device-memory, SLC_ERR_MEMORY, SLC_ERR_USAGE,
     * SLC_ERR_SYSTEM; no memory is held then.
     */
    enum slc_status (*open)(struct slc_device *device,
                            const struct slc_device_problem *problem,
                            struct slc_error *err);

    void (*close)(struct slc_device *device); /* waits for enqueued work */

    /*
     * Registers host memory. `block` accepts only registered memory. If memory is registered with
     * several devices, the first device to register it is the last to unregister it. Unregistering
     * waits for enqueued work.
     */
    enum slc_status (*host_register)(struct slc_device *device,
                                     void *memory,
                                     uint64_t bytes,
                                     struct slc_error *err);

    void (*host_unregister)(struct slc_device *device, void *memory);

    /* Copies a whole factor, in the problem's precision, from or to any host memory. */
    enum slc_status (*factor_write)(struct slc_device *device,
                                    unsigned mode,
                                    const struct slc_matrix *from,
                                    struct slc_error *err);

    enum slc_status (*factor_read)(struct slc_device *device,
                                   unsigned mode,
                                   struct slc_matrix *to,
                                   struct slc_error *err);

    /* Copies the output of the last job as f64 or f32, the type of `to`. */
    enum slc_status (*output_read)(struct slc_device *device,
                                   struct slc_matrix *to,
                                   struct slc_error *err);
};

/* MTTKRPs ([Kolda2009] section 2.6). */
struct slc_device_job_ops {
    /* Starts a job with a zero output. Errors: SLC_ERR_USAGE if a call of an earlier job failed and
     * resident blocks may be lost: the device must be opened again. SLC_ERR_SYSTEM. */
    enum slc_status (*begin)(struct slc_device *device,
                             const struct slc_device_job *job,
                             struct slc_error *err);

    /*
     * Enqueues a block. Its data must be registered and stay valid until `copied`; its description
     * is copied during the call. Waits for a slot if none is free. *ticket identifies the copy. If
     * `keep` is not NULL and memory for resident blocks is left, the block becomes resident and
     * *keep is its number for this and all later jobs; otherwise *keep becomes SLC_NOT_RESIDENT.
     * Errors: SLC_ERR_USAGE for a block that is not registered or larger than the problem states,
     * SLC_ERR_SYSTEM; the block is not being copied then.
     */
    enum slc_status (*block)(struct slc_device *device,
                             const struct slc_encoded_block *block,
                             uint32_t *keep,
                             uint64_t *ticket,
                             struct slc_error *err);

    /* Enqueues a resident block, without a copy. */
    enum slc_status (*resident)(struct slc_device *device, uint32_t keep, struct slc_error *err);

    /* Launches the collected batch. To be called if the next block is not available yet. */
    enum slc_status (*flush)(struct slc_device *device, struct slc_error *err);

    /* Stores whether the copy is complete in *done; with `wait`, waits until it is. */
    enum slc_status (*copied)(
        struct slc_device *device, uint64_t ticket, bool wait, bool *done, struct slc_error *err);

    /*
     * Reports the progress of the job without waiting. If `next` is not NULL, only its bytes,
     * expanded_bytes and tile_count are used, which may be upper bounds: `block` and `resident`
     * wait for a slot only if the block does not fit and no slot is free. If the collected batch
     * has no space for that block and no slot is free, the batch is launched. Errors:
     * SLC_ERR_SYSTEM.
     */
    enum slc_status (*poll)(struct slc_device *device,
                            const struct slc_encoded_block *next,
                            struct slc_device_progress *progress,
                            struct slc_error *err);

    /* Waits for the whole job. To be called even if the pass failed. Errors: SLC_ERR_DAMAGED with
     * block and offset if bytes contradict their description, SLC_ERR_SYSTEM. */
    enum slc_status (*end)(struct slc_device *device, struct slc_error *err);

    /*
     * After job.end, if problem.adds_host: adds the result that the host computed for other blocks
     * to the output. `from` has the output's shape and is f64 or f32. Errors: SLC_ERR_USAGE,
     * SLC_ERR_SYSTEM; the output is then undefined.
     */
    enum slc_status (*add_host)(struct slc_device *device,
                                const struct slc_matrix *from,
                                struct slc_error *err);
};

/* Dense algebra of factors and outputs. */
struct slc_device_algebra_ops {
    /* After job.end: computes factor `mode` = output D V^-1 E and copies the sums of the update to
     * the host. Order: always the same bits. Errors: SLC_ERR_SYSTEM. */
    enum slc_status (*update)(struct slc_device *device,
                              unsigned mode,
                              const struct slc_solver *solver,
                              const struct slc_update_sums *sums,
                              struct slc_error *err);

    /* Computes gram = A^T A of a factor, R x R, on the host. */
    enum slc_status (*gram)(struct slc_device *device,
                            unsigned mode,
                            double *gram,
                            struct slc_error *err);

    /* Multiplies column r of factor `mode` by scale[r]. */
    enum slc_status (*scale)(struct slc_device *device,
                             unsigned mode,
                             const double *scale,
                             struct slc_error *err);

    /*
     * The operations below are for several devices that share a problem (unit_most), each used by
     * its own thread. `from` is another of these devices; nothing may change the rows that are
     * read. Rows are `count` spans; the operation is complete on return. Errors: SLC_ERR_USAGE for
     * a device of another kind or problem, SLC_ERR_SYSTEM.
     */

    /* Copies rows of factor `mode` from `from`. */
    enum slc_status (*factor_copy)(struct slc_device *device,
                                   unsigned mode,
                                   const struct slc_device *from,
                                   const struct slc_row_span *rows,
                                   uint64_t count,
                                   struct slc_error *err);

    /*
     * After job.end of the same mode on both devices, and before any other use of the outputs: adds
     * rows of the output of `from` to the output of this device. With deterministic the result does
     * not depend on the distribution of nonzeros among devices, if each device adds all others,
     * even if no rows are added: a column to which a number could not be added is NaN on all
     * devices. After an error the output is undefined.
     */
    enum slc_status (*output_add)(struct slc_device *device,
                                  const struct slc_device *from,
                                  const struct slc_row_span *rows,
                                  uint64_t count,
                                  struct slc_error *err);

    /* As output_read, for some rows. Other rows of `to` do not change. */
    enum slc_status (*output_rows)(struct slc_device *device,
                                   const struct slc_row_span *rows,
                                   uint64_t count,
                                   struct slc_matrix *to,
                                   struct slc_error *err);

    /* As `update`, for the rows in units only. Unit u has 2 * rank numbers at columns + u * 2 *
     * rank: largest magnitudes, then inner products. Order: the bits do not depend on the other
     * units. */
    enum slc_status (*update_units)(struct slc_device *device,
                                    unsigned mode,
                                    const struct slc_solver *solver,
                                    const struct slc_device_units *units,
                                    double *columns,
                                    struct slc_error *err);
};

/* Products of tiles and matrices. */
struct slc_device_product_ops {
    /* As memory_bytes and host_bytes, for the memory that product.open would allocate. */
    uint64_t (*memory_bytes)(const struct slc_device *device,
                             const struct slc_device_product *product);

    uint64_t (*host_bytes)(const struct slc_device *device,
                           const struct slc_device_product *product);

    /* Allocates all memory and copies the matrices. Replaces `open` for products; `close` frees the
     * memory. Errors: as open; no memory is held then. */
    enum slc_status (*open)(struct slc_device *device,
                            const struct slc_device_product *product,
                            struct slc_error *err);

    /*
     * Multiplies a tile. `block` has only this tile, expanded (slc_tile_view.describe), in any
     * memory, and is borrowed until the call returns with the sums.
     *
     * Math: y(f, r) = sum over the nonzeros x of fiber f of x * product of U_n(i_n, r) over the
     * modes n with a matrix ([Kolda2009] section 2.5, with transposed matrices).
     * A fiber is a run of consecutive nonzeros of the tile that agree in all remaining modes
     * (without remaining modes, the whole tile). Fibers have the order of the tile. If the layout
     * keeps fibers whole, each occurs once, except that the last fiber of a tile may continue in
     * the next.
     * Order: the sum of a fiber depends only on the tile: the same bits for any lane and number of
     * fibers per call. Values are rounded to the type of the matrices; products and sums have the
     * type of the sums.
     * Threads: different lanes at the same time; a lane by one thread at a time.
     * Errors: SLC_ERR_DAMAGED with block and offset if bytes contradict their description,
     * SLC_ERR_USAGE for a lane that does not exist or a tile that does not fit the product,
     * SLC_ERR_SYSTEM. The lane then has no fibers and can be used again.
     */
    enum slc_status (*tile)(struct slc_device *device,
                            unsigned lane,
                            const struct slc_encoded_block *block,
                            struct slc_device_fibers *fibers,
                            struct slc_error *err);

    /* Returns the next fibers of the lane's last tile, without reading `block` again. Needs:
     * fibers->more of the last call. Errors: as product.tile. */
    enum slc_status (*more)(struct slc_device *device,
                            unsigned lane,
                            struct slc_device_fibers *fibers,
                            struct slc_error *err);
};

struct slc_device_ops {
    const char *name; /* "cuda" */
    void (*info)(const struct slc_device *device, struct slc_device_info *info);
    struct slc_device_memory_ops memory;
    struct slc_device_job_ops job;
    struct slc_device_algebra_ops algebra;
    struct slc_device_product_ops product;
    /* Not to be called while lanes are in use. */
    void (*stats)(const struct slc_device *device, struct slc_device_stats *stats);
    void (*destroy)(struct slc_device *device); /* accepts NULL */
};

struct slc_device {
    const struct slc_device_ops *ops;
};

/* Creates devices for layers that do not depend on kinds of devices. */
struct slc_device_maker {
    /* Creates a device of this machine with a memory limit; memory_bytes 0: most of the free
     * memory. */
    enum slc_status (*create)(unsigned ordinal,
                              uint64_t memory_bytes,
                              struct slc_device **device,
                              struct slc_error *err);
    /* Frees the resources of the process for the device. Needs: every slc_device of this ordinal is
     * destroyed. */
    void (*release)(unsigned ordinal);
    /* Creates a description of a device from the name of a chip, for plans on any machine.
     * Ownership: the caller destroys the device; release does not apply. */
    enum slc_status (*describe)(const char *name,
                                uint64_t memory_bytes,
                                struct slc_device **device,
                                struct slc_error *err);
};

#endif
