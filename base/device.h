/* Operations of a device that has its own memory and decodes blocks itself. gpu/ implements them.
 * Factors, MTTKRP outputs and some blocks stay in device memory. The remaining blocks are
 * transferred once per pass, and so are small matrices of the solver.
 *
 * The calls are, in this order:
 *
 *  1. memory.open, host_register for each registered memory, factor_write for each factor.
 *  2. For every MTTKRP: job.begin; then job.block, job.resident and job.flush, any number of times
 *     and in any order; then job.end; then the operations on the output and the factors, such as
 *     output_read, or update and scale.
 *  3. factor_read for each factor that is needed, and memory.close.
 *
 * Only one thread at a time uses a device, but not always the same thread. Work is asynchronous:
 * `block` returns when the block has been enqueued. The host memory of the block may be reused once
 * `copied` reports that the copy is complete. job.end reports errors that occurred in kernels.
 *
 * Instead of MTTKRPs a device may compute products: it multiplies the fibers of tiles by matrices
 * in device memory and returns one row of sums per fiber:
 *
 *  1. product.open.
 *  2. For every tile: product.tile, and product.more as long as the tile has more fibers.
 *  3. memory.close.
 *
 * During products several threads may use the device at the same time, each with its own lane. */
#ifndef SLC_BASE_DEVICE_H
#define SLC_BASE_DEVICE_H

#include "base/encoded.h"
#include "base/error/error.h"
#include "base/matrix.h"
#include "base/solver.h"
#include "base/used.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_device_info {
    char name[128];
    uint64_t total_bytes, free_bytes; /* free_bytes: at most the memory limit set for the device */
    unsigned multiprocessors;
    unsigned shared_bytes; /* maximum bytes of shared memory of a thread block */
    /* true for a description without hardware, which supports plans, but not `open` */
    bool described;
};

enum {
    /* maximum number of streams; at most three operations (copies or kernels) ever overlap */
    SLC_DEVICE_STREAMS = 8,
    /* Maximum number of lanes. One tile occupies about a twentieth of the multiprocessors of a
     * large GPU, and some lanes transfer tiles at the same time. */
    SLC_DEVICE_LANES = 64,
    /* Alignment in bytes of blocks in a slot, one cache line. */
    SLC_DEVICE_ALIGN = 128
};

/* The shapes and layouts of the MTTKRPs for which a device is opened. Arrays are borrowed until
 * `open` returns. */
struct slc_device_problem {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint32_t rank;
    enum slc_value_type precision; /* type of factors; products and sums are f64 */
    /* true if sums must not depend on the order of additions (gpu/mttkrp/exact_sum.h) */
    bool deterministic;
    unsigned layout_count;
    const struct slc_encoded_layout *layouts;

    /* Sizes of batches. A batch is the blocks in one slot, as many as fit; one kernel launch
     * computes a batch. */
    /* number of streams, 1 to SLC_DEVICE_STREAMS; each stream has one slot */
    unsigned streams;
    uint64_t slot_bytes; /* bytes per slot, at least the size of the largest block */
    /* bytes per slot for expanded sections, at least the largest
     * slc_encoded_block.expanded_bytes */
    uint64_t expanded_bytes;
    uint32_t slot_tiles; /* tiles per slot, at least the number of tiles of any block */

    /* Memory for resident blocks and their expanded bytes. The size of each block is rounded up to
     * a multiple of SLC_DEVICE_ALIGN. 0 means no resident blocks. */
    uint64_t resident_bytes;
    uint32_t resident_tiles;
    /* Additional memory that the device may use for copies of resident blocks in a form that needs
     * no decoding. 0 means that no copies are made. */
    uint64_t transcoded_bytes;

    /* If several devices share a problem: the maximum number of units that one call of update_units
     * computes. 0 means a single device. Devices that share a problem may differ in the memory for
     * batches and blocks. */
    uint32_t unit_most;
    bool adds_host; /* true if job.add_host will be called; not allowed with `deterministic` */
};

/* Progress of a job. */
struct slc_device_progress {
    uint64_t nnz; /* nonzeros computed so far in this job */
    bool busy;    /* true if launched batches are still running */
    /* true if the block passed as `next` fits into the batch that is being collected */
    bool fits;
    unsigned
        /* number of free slots, without the slot of the batch that is being collected */
        free_slots;
};

/* Units of an update: spans of at most rows_most rows, whose sums are computed separately. `rows`
 * is borrowed. */
struct slc_device_units {
    const struct slc_row_span *rows;
    uint32_t count;
    uint64_t rows_most;
};

struct slc_device_job {
    unsigned layout; /* index into problem.layouts */
    unsigned mode;
    /* Used with `deterministic`: sqrt(nnz) ||X||, an upper bound on the sum of the magnitudes of
     * any set of values. If the bound is too small, sums overflow and wrap around. A caller that
     * read ||X|| from a file must therefore compare ||X||^2 with slc_device_stats.squares before it
     * uses the output. */
    double magnitude;
    /* True if the job also copies blocks that are not resident. Resident blocks are then computed
     * in several launches, and copied blocks are computed between these launches. */
    bool copies;
};

/* Value of *keep for a block that is not resident (job.block). */
#define SLC_NOT_RESIDENT UINT32_MAX

/* The product of tiles and matrices for which a device is opened. Arrays and matrices are borrowed
 * until product.open returns. */
struct slc_device_product {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    const struct slc_encoded_layout *layout; /* layout of the tiles; NULL in plans */
    /* Matrix of each contracted mode, with slc_used_elements(&used[n], dims[n]) rows: a row for
     * each index, or only for used indices. A vector is a matrix with one column. All matrices have
     * the same number of columns, the type `precision` and zero padding. NULL means that the mode
     * is not contracted (it remains). At least one pointer is not NULL. Plans use only the shapes
     * of the matrices. */
    const struct slc_matrix *matrix[SLC_MAX_ORDER];
    struct slc_used used[SLC_MAX_ORDER];
    enum slc_value_type precision; /* type of matrices; products and sums are f64 */
    unsigned lanes;                /* 1 to SLC_DEVICE_LANES */
    /* upper bound of the bytes of a block that is passed to product.tile */
    uint64_t tile_bytes;
    uint64_t expanded_bytes; /* upper bound of the expanded bytes of such a block */
    uint32_t room;           /* maximum number of fibers returned per call, 1 to SLC_TILE_NNZ */
};

/* Fibers of a tile and their sums. The arrays are in memory of the lane and valid until the next
 * call for that lane. */
struct slc_device_fibers {
    uint32_t count;
    bool more; /* true if the tile has more fibers, which product.more returns */
    /* Coordinates minus the tile's corner, one per fiber, for each remaining mode; NULL for
     * contracted modes. */
    const uint32_t *offset[SLC_MAX_ORDER];
    const double *sums; /* one row per fiber, without padding */
};

/* Counters since the device was opened. */
struct slc_device_stats {
    uint64_t launches;    /* launches of batches or tiles */
    uint64_t blocks, nnz; /* blocks (of products: tiles) and nonzeros that were computed */
    uint64_t block_bytes; /* bytes of blocks copied to the device */
    /* bytes of resident blocks, counted each time that a block was computed */
    uint64_t resident_bytes;
    uint64_t transcoded_bytes; /* memory of the transcoded copies of resident blocks */
    uint64_t bytes_to_device, bytes_to_host; /* bytes of all other copies */
    uint64_t factor_bytes_to_host; /* bytes of rows of factors and outputs in bytes_to_host */
    /* bytes of matrices in bytes_to_device and bytes_to_host that were copied from or to registered
     * memory of the caller */
    uint64_t direct_bytes;
    uint64_t bytes_from_devices; /* rows of factors and outputs read from other devices */
    /* Seconds during which the device copied at least one block (copy), ran at least one kernel
     * (compute), or did either (busy). Overlapping work of several streams counts once, so that
     * none of the times exceeds the elapsed time. */
    double copy_seconds, compute_seconds, busy_seconds;
    double squares; /* with `deterministic`: rounded sum of squares of the values of the last job */
};

struct slc_device;

/* Operations on the memory of a device that computes MTTKRPs. */
struct slc_device_memory_ops {
    /* Returns the bytes of device memory that `open` would allocate; UINT64_MAX on overflow.
     * problem->layouts may be NULL, because plans have not described layouts yet. */
    uint64_t (*memory_bytes)(const struct slc_device *device,
                             const struct slc_device_problem *problem);

    /* Returns the bytes of host memory that `open` would allocate, without the memory that CUDA
     * itself uses; UINT64_MAX on overflow. */
    uint64_t (*host_bytes)(const struct slc_device *device,
                           const struct slc_device_problem *problem);

    /* Allocates all memory: zeroed factors, an output for the largest mode, slots, resident blocks.
     * Errors: SLC_ERR_BUDGET (the message states a sufficient --device-memory), SLC_ERR_MEMORY,
     * SLC_ERR_USAGE, SLC_ERR_SYSTEM. After an error the device holds no memory. */
    enum slc_status (*open)(struct slc_device *device,
                            const struct slc_device_problem *problem,
                            struct slc_error *err);

    void (*close)(struct slc_device *device); /* waits for enqueued work and frees all memory */

    /* Registers host memory for copies by the device. `block` accepts only registered memory. If
     * memory is registered with several devices, the first device that registered it must be the
     * last to unregister it. Unregistering waits for enqueued work. */
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

    /* Copies the output of the last job to `to`, as f64 or f32 according to the type of `to`. */
    enum slc_status (*output_read)(struct slc_device *device,
                                   struct slc_matrix *to,
                                   struct slc_error *err);
};

/* Operations that compute an MTTKRP ([Kolda2009] section 2.6). */
struct slc_device_job_ops {
    /* Starts a job and zeroes its output. Errors: SLC_ERR_SYSTEM; SLC_ERR_USAGE if a call of an
     * earlier job failed and resident blocks may be lost. The caller must then open the device
     * again. */
    enum slc_status (*begin)(struct slc_device *device,
                             const struct slc_device_job *job,
                             struct slc_error *err);

    /* Enqueues a block. The data of the block must be in registered memory and stay valid until
     * `copied` reports the end of the copy. The description is copied during the call. Waits for a
     * slot if none is free. *ticket identifies the copy. If `keep` is not NULL and memory for
     * resident blocks is left, the block becomes resident and *keep is its number for this and all
     * later jobs; otherwise *keep becomes SLC_NOT_RESIDENT. Errors: SLC_ERR_USAGE for a block that
     * is not in registered memory or exceeds the sizes in the problem; SLC_ERR_SYSTEM. After an
     * error no copy of the block is under way. */
    enum slc_status (*block)(struct slc_device *device,
                             const struct slc_encoded_block *block,
                             uint32_t *keep,
                             uint64_t *ticket,
                             struct slc_error *err);

    /* Enqueues a resident block, without a copy. */
    enum slc_status (*resident)(struct slc_device *device, uint32_t keep, struct slc_error *err);

    /* Launches the collected batch. The caller uses it when the next block is not available yet. */
    enum slc_status (*flush)(struct slc_device *device, struct slc_error *err);

    /* Sets *done to true if the copy with this ticket is complete, otherwise to false. If `wait` is
     * true, waits until the copy is complete. */
    enum slc_status (*copied)(
        struct slc_device *device, uint64_t ticket, bool wait, bool *done, struct slc_error *err);

    /* Reports the progress of the job without waiting. `next` (may be NULL) is the block that the
     * caller will enqueue next; only its bytes, expanded_bytes and tile_count are used, which may
     * be upper bounds. `block` and `resident` wait for a slot only if progress->fits is false and
     * no slot is free; in that case `poll` launches the collected batch. Errors: SLC_ERR_SYSTEM. */
    enum slc_status (*poll)(struct slc_device *device,
                            const struct slc_encoded_block *next,
                            struct slc_device_progress *progress,
                            struct slc_error *err);

    /* Waits for the whole job. The caller must call it even if the pass failed. Errors:
     * SLC_ERR_DAMAGED, with block and offset, if the bytes of a block contradict its description;
     * SLC_ERR_SYSTEM. */
    enum slc_status (*end)(struct slc_device *device, struct slc_error *err);

    /* Adds to the output the MTTKRP of the blocks that the host computed instead of this device.
     * Called after job.end; needs problem.adds_host. `from` has the output's shape and is f64 or
     * f32. Errors: SLC_ERR_USAGE, SLC_ERR_SYSTEM; after an error the output is undefined. */
    enum slc_status (*add_host)(struct slc_device *device,
                                const struct slc_matrix *from,
                                struct slc_error *err);
};

/* Operations of dense algebra on factors and outputs. */
struct slc_device_algebra_ops {
    /* Computes factor `mode` = output D V^-1 E (base/solver.h) and copies the sums of the update to
     * the host. Called after job.end. Order: equal inputs give the same bits in every run. Errors:
     * SLC_ERR_SYSTEM. */
    enum slc_status (*update)(struct slc_device *device,
                              unsigned mode,
                              const struct slc_solver *solver,
                              const struct slc_update_sums *sums,
                              struct slc_error *err);

    /* Computes the Gram matrix A^T A (R x R) of factor `mode` and stores it in `gram`, in host
     * memory. */
    enum slc_status (*gram)(struct slc_device *device,
                            unsigned mode,
                            double *gram,
                            struct slc_error *err);

    /* Multiplies column r of factor `mode` by scale[r]. */
    enum slc_status (*scale)(struct slc_device *device,
                             unsigned mode,
                             const double *scale,
                             struct slc_error *err);

    /* The operations below are for several devices that share a problem (unit_most > 0), each used
     * by its own thread. `from` is another of these devices; no thread may change the rows that are
     * read from it. `rows` has `count` spans of rows. Every operation is complete on return.
     * Errors: SLC_ERR_USAGE if `from` differs in its kind or its problem; SLC_ERR_SYSTEM. */

    /* Copies rows of factor `mode` from device `from` to this device. */
    enum slc_status (*factor_copy)(struct slc_device *device,
                                   unsigned mode,
                                   const struct slc_device *from,
                                   const struct slc_row_span *rows,
                                   uint64_t count,
                                   struct slc_error *err);

    /* Adds rows of the output of `from` to the output of this device. Called after job.end of the
     * same mode on both devices and before any other use of the outputs. With `deterministic` the
     * result does not depend on how nonzeros are distributed among devices. Each device must
     * therefore call output_add for every other device, even without rows: only then is a column
     * that is NaN on one device NaN on all devices. After an error the output is undefined. */
    enum slc_status (*output_add)(struct slc_device *device,
                                  const struct slc_device *from,
                                  const struct slc_row_span *rows,
                                  uint64_t count,
                                  struct slc_error *err);

    /* Copies the given rows of the output to the same rows of `to` (compare output_read). Other
     * rows of `to` do not change. */
    enum slc_status (*output_rows)(struct slc_device *device,
                                   const struct slc_row_span *rows,
                                   uint64_t count,
                                   struct slc_matrix *to,
                                   struct slc_error *err);

    /* Does the same as `update`, but only for the rows in `units`. The sums of unit u are 2 * rank
     * numbers at columns + u * 2 * rank: per column the largest magnitude, then per column the
     * inner product. Order: the bits of a unit do not depend on the other units. */
    enum slc_status (*update_units)(struct slc_device *device,
                                    unsigned mode,
                                    const struct slc_solver *solver,
                                    const struct slc_device_units *units,
                                    double *columns,
                                    struct slc_error *err);
};

/* Operations that multiply tiles by matrices. */
struct slc_device_product_ops {
    /* memory_bytes and host_bytes return the device and host memory, in bytes, that product.open
     * would allocate; UINT64_MAX on overflow. */
    uint64_t (*memory_bytes)(const struct slc_device *device,
                             const struct slc_device_product *product);

    uint64_t (*host_bytes)(const struct slc_device *device,
                           const struct slc_device_product *product);

    /* Allocates all memory and copies the matrices. Used instead of memory.open; memory.close frees
     * the memory. Errors: those of memory.open; after an error the device holds no memory. */
    enum slc_status (*open)(struct slc_device *device,
                            const struct slc_device_product *product,
                            struct slc_error *err);

    /* Multiplies a tile. `block` contains only this tile, with expanded sections
     * (slc_tile_view.describe). The block may be in any host memory and is borrowed until the call
     * returns with the sums.
     *
     * Math: y(f, r) = sum of (x * product of U_n(i_n, r) over the modes n with a matrix) over the
     * nonzeros x of fiber f ([Kolda2009] section 2.5, with transposed matrices). A fiber is a run
     * of consecutive nonzeros of the tile that agree in all remaining modes (if no mode remains,
     * the whole tile). Fibers are returned in the order of the tile. If the layout keeps fibers
     * whole, each fiber occurs once, except that the last fiber of a tile may continue in the next
     * tile. Order: the sum of a fiber depends only on the tile; its bits are the same for any lane
     * and any number of fibers per call. Values are rounded to the type of the matrices; products
     * and sums are f64. Threads: several threads may use different lanes at the same time; only one
     * thread at a time may use a lane. Errors: SLC_ERR_DAMAGED, with block and offset, if the bytes
     * of the tile contradict its description; SLC_ERR_USAGE for a lane that does not exist or a
     * tile whose size or order does not match the product; SLC_ERR_SYSTEM. After an error the lane
     * has no fibers and can be used again. */
    enum slc_status (*tile)(struct slc_device *device,
                            unsigned lane,
                            const struct slc_encoded_block *block,
                            struct slc_device_fibers *fibers,
                            struct slc_error *err);

    /* Returns the next fibers of the lane's last tile, without reading `block` again. Needs:
     * fibers->more was true after the last call for this lane. Errors: those of product.tile. */
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
    /* Stores the counters. Must not be called while lanes are in use. */
    void (*stats)(const struct slc_device *device, struct slc_device_stats *stats);
    void (*destroy)(struct slc_device *device); /* accepts NULL */
};

struct slc_device {
    const struct slc_device_ops *ops;
};

/* Functions that create devices, for layers that must not depend on gpu/. */
struct slc_device_maker {
    /* Creates the device with number `ordinal` of this machine. memory_bytes limits its memory; 0
     * means most of the free device memory. */
    enum slc_status (*create)(unsigned ordinal,
                              uint64_t memory_bytes,
                              struct slc_device **device,
                              struct slc_error *err);
    /* Frees the resources that the process holds for device `ordinal`. Needs: every slc_device of
     * this ordinal is destroyed. */
    void (*release)(unsigned ordinal);
    /* Creates a description of a device from the name of a chip, for plans on any machine.
     * Ownership: the caller destroys the device; `release` is only for real devices. */
    enum slc_status (*describe)(const char *name,
                                uint64_t memory_bytes,
                                struct slc_device **device,
                                struct slc_error *err);
};

#endif
