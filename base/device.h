/*
 * The table of operations of a device with memory of its own that takes whole encoded blocks: gpu/
 * fills it. Factors, MTTKRP outputs and a set of blocks stay in its memory; what travels is blocks,
 * once per pass, and small matrices of the solver.
 *
 *     open -> host_register .. -> factor_write .. ->
 *         { job.begin -> { block | resident | flush } .. -> job.end -> update .. } ..
 *     -> factor_read .. -> close
 *
 * One thread at a time uses a device, but not always the same one. Work is asynchronous: `block`
 * returns when the block has been enqueued, and its memory may be used again when `copied` says so.
 * Faults of kernels show in job.end.
 *
 * Or it multiplies tiles, fiber by fiber, by matrices that it keeps, and hands the sums back:
 *
 *     product.open -> { product.tile -> product.more .. } .. -> close
 *
 * Then several threads use it at the same time, each with a lane of its own.
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
    uint64_t total_bytes, free_bytes; /* free: under the cap of the device's options, too */
    unsigned multiprocessors;
    unsigned shared_bytes; /* of a thread block, at most */
    bool described;        /* there is no device: plans can be made, and it cannot be opened */
};

enum {
    SLC_DEVICE_STREAMS = 8, /* at most: more than two or three copies and kernels never overlap */
    /* At most: a tile fills a twentieth of a large device, and others are on their way. */
    SLC_DEVICE_LANES = 64,
    /* Bytes: blocks begin at such places in a slot. Whole lines of the caches. */
    SLC_DEVICE_ALIGN = 128
};

/* What a device is opened for. Everything is borrowed until open returns. */
struct slc_device_problem {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint32_t rank;
    enum slc_value_type precision; /* of factors; products and sums are f64 */
    bool deterministic;            /* sums do not depend on any order (gpu/mttkrp/exact_sum.h) */
    unsigned layout_count;
    const struct slc_encoded_layout *layouts;

    /* Batches: as many blocks as fit are copied to a slot and computed by one launch. */
    unsigned streams;        /* 1 .. SLC_DEVICE_STREAMS, each with a slot of its own */
    uint64_t slot_bytes;     /* the largest block or more */
    uint64_t expanded_bytes; /* per slot: the largest slc_encoded_block.expanded_bytes or more */
    uint32_t slot_tiles;     /* tiles of the largest block or more */

    /* For blocks that stay, with their expanded bytes, each rounded up to SLC_DEVICE_ALIGN; 0: none
     * do. */
    uint64_t resident_bytes;
    uint32_t resident_tiles;

    /*
     * Of several devices with one problem, which may differ in the memory for batches and blocks:
     * the most units that update_units is given. 0: the device is alone.
     */
    uint32_t unit_most;
    bool adds_host; /* job.add_host is going to be used; not with deterministic */
};

/* How far a job is. */
struct slc_device_progress {
    uint64_t nnz; /* that have been computed, of all blocks of the job */
    bool busy;    /* with batches that have been launched */
    bool fits;    /* the block that was asked about fits into the batch that is being gathered */
    unsigned free_slots; /* for batches, beside the one that is being gathered */
};

/* Runs of rows, each at most rows_most long, whose sums are wanted one by one. Borrowed. */
struct slc_device_units {
    const struct slc_row_span *rows;
    uint32_t count;
    uint64_t rows_most;
};

struct slc_device_job {
    unsigned layout; /* of the problem's */
    unsigned mode;
    /*
     * sqrt(nnz) ||X||, which no sum of magnitudes of values exceeds; where deterministic. Sums wrap
     * where it is too small: whoever has ||X|| from a file compares it with the squares that the
     * device has seen (slc_device_stats) before anything is made of the output.
     */
    double magnitude;
    /* Other blocks are copied during the job: launches of resident blocks are split, so that copied
     * blocks are computed in between. */
    bool copies;
};

/* Where an operation begins to name a block that stays in the device's memory. */
#define SLC_NOT_RESIDENT UINT32_MAX

/*
 * What a device is opened for that multiplies tiles. Everything is borrowed until product.open
 * returns.
 */
struct slc_device_product {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    const struct slc_encoded_layout *layout; /* of the tiles; plans may have none */
    /*
     * Of each mode that is summed over, what it is multiplied by: dims[n] rows; a vector is a
     * matrix of one column. All have the same number of columns, the type `precision` and padding
     * of zeros. NULL: the mode stays. One at least is there. Of plans the shapes alone are looked
     * at.
     */
    const struct slc_matrix *matrix[SLC_MAX_ORDER];
    enum slc_value_type precision; /* of matrices; products and sums are f64 */
    unsigned lanes;                /* 1 .. SLC_DEVICE_LANES */
    uint64_t tile_bytes;           /* of the largest block that product.tile is given, or more */
    uint64_t expanded_bytes;       /* the same, of expanded bytes */
    uint32_t room;                 /* fibers delivered at a time: 1 .. SLC_TILE_NNZ */
};

/* Some fibers of a tile and their sums, in the lane's memory: until the lane's next call. */
struct slc_device_fibers {
    uint32_t count;
    bool more; /* the tile has others: product.more */
    /* Coordinates minus the tile's corner, one per fiber, of each mode that stays; else NULL. */
    const uint32_t *offset[SLC_MAX_ORDER];
    const double *sums; /* a row per fiber, without padding */
};

/* Since the device was opened. */
struct slc_device_stats {
    uint64_t launches;                       /* of batches, or of tiles to be multiplied */
    uint64_t blocks, nnz;                    /* or tiles */
    uint64_t block_bytes;                    /* copied to the device */
    uint64_t resident_bytes;                 /* of blocks computed without a copy */
    uint64_t bytes_to_device, bytes_to_host; /* of all else */
    uint64_t factor_bytes_to_host;           /* of the latter: rows of factors and outputs */
    uint64_t bytes_from_devices;             /* rows of factors and outputs of others */
    /*
     * Of the device's clock: how long at least one block was copied, at least one kernel computed,
     * and at least one of the two took place. Work of several streams that overlaps counts once, so
     * that none of them exceeds the time that passed.
     */
    double copy_seconds, compute_seconds, busy_seconds;
    double squares; /* sum over the values of the last job, rounded; where deterministic */
};

struct slc_device;

/* Memory: of a device that computes MTTKRPs. */
struct slc_device_memory_ops {
    /*
     * Memory that `open` would take; UINT64_MAX on overflow. For plans, which have described no
     * layouts yet: problem->layouts may be NULL.
     */
    uint64_t (*memory_bytes)(const struct slc_device *device,
                             const struct slc_device_problem *problem);

    /* Memory of the host that `open` would take, likewise; what CUDA takes itself is not known. */
    uint64_t (*host_bytes)(const struct slc_device *device,
                           const struct slc_device_problem *problem);

    /*
     * Takes all memory: factors (zero), an output for the longest mode, slots, resident blocks.
     * Errors: SLC_ERR_BUDGET naming what --device-memory would be enough, SLC_ERR_MEMORY,
     * SLC_ERR_USAGE, SLC_ERR_SYSTEM; nothing is held then.
     */
    enum slc_status (*open)(struct slc_device *device,
                            const struct slc_device_problem *problem,
                            struct slc_error *err);

    void (*close)(struct slc_device *device); /* waits for what is under way */

    /*
     * Makes pages of the host known to the device; copies of blocks from others are refused. Memory
     * may be registered with several devices: who does so first unregisters it last. Unregistering
     * waits for what is under way.
     */
    enum slc_status (*host_register)(struct slc_device *device,
                                     void *memory,
                                     uint64_t bytes,
                                     struct slc_error *err);

    void (*host_unregister)(struct slc_device *device, void *memory);

    /* A whole factor, of the problem's precision; any memory of the host. */
    enum slc_status (*factor_write)(struct slc_device *device,
                                    unsigned mode,
                                    const struct slc_matrix *from,
                                    struct slc_error *err);

    enum slc_status (*factor_read)(struct slc_device *device,
                                   unsigned mode,
                                   struct slc_matrix *to,
                                   struct slc_error *err);

    /* The output of the last job, f64 or f32 as `to` is. */
    enum slc_status (*output_read)(struct slc_device *device,
                                   struct slc_matrix *to,
                                   struct slc_error *err);
};

/* MTTKRPs. */
struct slc_device_job_ops {
    /*
     * MTTKRP (KB section 2.6): begins with an output of zeros. Errors: SLC_ERR_USAGE where a call
     * of an earlier job failed while blocks were to stay: they may be lost, and the device has to
     * be opened again. SLC_ERR_SYSTEM.
     */
    enum slc_status (*begin)(struct slc_device *device,
                             const struct slc_device_job *job,
                             struct slc_error *err);

    /*
     * Enqueues a block. Its data has to be registered and stay until `copied`; its description is
     * copied here. Waits for a slot where none is free. *ticket names the copy. With `keep` not
     * NULL the block goes to the memory for residents if there is room, and *keep names it there,
     * for this and all later jobs; else *keep becomes SLC_NOT_RESIDENT. Errors: SLC_ERR_USAGE for a
     * block that is larger than the problem said or not registered, SLC_ERR_SYSTEM; no copy of the
     * block is under way then.
     */
    enum slc_status (*block)(struct slc_device *device,
                             const struct slc_encoded_block *block,
                             uint32_t *keep,
                             uint64_t *ticket,
                             struct slc_error *err);

    /* Enqueues a block that stays in the device's memory, without a copy. */
    enum slc_status (*resident)(struct slc_device *device, uint32_t keep, struct slc_error *err);

    /* Launches what has been gathered: to be called where the next block is not there yet. */
    enum slc_status (*flush)(struct slc_device *device, struct slc_error *err);

    /* Whether the copy has been made; with `wait` it is when this returns SLC_OK. */
    enum slc_status (*copied)(
        struct slc_device *device, uint64_t ticket, bool wait, bool *done, struct slc_error *err);

    /*
     * How far the job is, without waiting. With `next` not NULL, of which bytes, expanded_bytes and
     * tile_count are looked at and may be more than a block will have: `block` and `resident` wait
     * for a slot only where it does not fit and none is free. What has been gathered is launched
     * where it leaves no room for that block and no slot is free. Errors: SLC_ERR_SYSTEM.
     */
    enum slc_status (*poll)(struct slc_device *device,
                            const struct slc_encoded_block *next,
                            struct slc_device_progress *progress,
                            struct slc_error *err);

    /*
     * Waits for all of the job. Errors: SLC_ERR_DAMAGED naming block and offset where bytes
     * contradict their description, SLC_ERR_SYSTEM. To be called also where the pass failed.
     */
    enum slc_status (*end)(struct slc_device *device, struct slc_error *err);

    /*
     * After job.end, where the problem says adds_host: adds what the host has computed from
     * other blocks to the output. `from` has the output's shape and is f64 or f32. Errors:
     * SLC_ERR_USAGE, SLC_ERR_SYSTEM; the output is then undefined.
     */
    enum slc_status (*add_host)(struct slc_device *device,
                                const struct slc_matrix *from,
                                struct slc_error *err);
};

/* Dense algebra of factors and outputs. */
struct slc_device_algebra_ops {
    /*
     * After job.end: factor `mode` = output D V^-1 E, and its sums, to the host. Order: the same
     * bits every time. Errors: SLC_ERR_SYSTEM.
     */
    enum slc_status (*update)(struct slc_device *device,
                              unsigned mode,
                              const struct slc_solver *solver,
                              const struct slc_update_sums *sums,
                              struct slc_error *err);

    /* gram = A^T A of a factor, to the host: R x R. */
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
     * What follows is of several devices with one problem (unit_most), each used by a thread of its
     * own. `from` is another of them; what is read there nobody may change meanwhile. Rows are
     * given in `count` spans; they have arrived, and been added, when these return.
     * Errors: SLC_ERR_USAGE for a device of another kind or problem, SLC_ERR_SYSTEM.
     */

    /* Rows of factor `mode` become those that `from` has. */
    enum slc_status (*factor_copy)(struct slc_device *device,
                                   unsigned mode,
                                   const struct slc_device *from,
                                   const struct slc_row_span *rows,
                                   uint64_t count,
                                   struct slc_error *err);

    /*
     * After job.end of the same mode on both, and before anything else is done with the outputs:
     * adds rows of the output of `from` to this one's. Where deterministic it does not matter which
     * device had which nonzeros, if each is given all others, be it without rows: a column to which
     * something could not be added is NaN with all of them. After an error the output is undefined.
     */
    enum slc_status (*output_add)(struct slc_device *device,
                                  const struct slc_device *from,
                                  const struct slc_row_span *rows,
                                  uint64_t count,
                                  struct slc_error *err);

    /* output_read of some rows: those of `to` that are in none stay as they are. */
    enum slc_status (*output_rows)(struct slc_device *device,
                                   const struct slc_row_span *rows,
                                   uint64_t count,
                                   struct slc_matrix *to,
                                   struct slc_error *err);

    /*
     * `update` of the rows in units alone. Unit u has 2 * rank numbers at columns + u * 2 * rank:
     * largest magnitudes, then inner products. Order: the same bits, whatever the other units are.
     */
    enum slc_status (*update_units)(struct slc_device *device,
                                    unsigned mode,
                                    const struct slc_solver *solver,
                                    const struct slc_device_units *units,
                                    double *columns,
                                    struct slc_error *err);
};

/* Of a device that multiplies tiles. */
struct slc_device_product_ops {
    /*
     * What follows is of a device that multiplies tiles. Memory and memory of the host that
     * `product.open` would take, as memory_bytes and host_bytes.
     */
    uint64_t (*memory_bytes)(const struct slc_device *device,
                             const struct slc_device_product *product);

    uint64_t (*host_bytes)(const struct slc_device *device,
                           const struct slc_device_product *product);

    /*
     * Takes all memory and copies the matrices: in the place of `open`, and `close` ends it.
     * Errors: those of open; nothing is held then.
     */
    enum slc_status (*open)(struct slc_device *device,
                            const struct slc_device_product *product,
                            struct slc_error *err);

    /*
     * Multiplies a tile: `block` has that one alone, expanded (slc_tile_view.describe), in any
     * memory, and is borrowed until this returns, which is when the sums are there.
     *
     * Math: y(f, r) = sum over the nonzeros x of fiber f of x * product of U_n(i_n, r) over the
     * modes n with a matrix (KB section 2.5, its matrices transposed).
     * A fiber is a run of neighbours in the tile that agree in all modes that stay (where none
     * does, the tile): fibers come in the order of the tile, and where that keeps them whole each
     * comes once, but the last of a tile may go on in the next one.
     * Order: a fiber's sum depends on the tile alone: the same bits in any lane, whatever the room.
     * Values are rounded to the matrices' type, products and sums are of the sums' type.
     * Threads: different lanes at the same time; a lane by one thread at a time.
     * Errors: SLC_ERR_DAMAGED naming block and offset where bytes contradict their description,
     * SLC_ERR_USAGE for a lane that is not there and a tile that does not fit the product,
     * SLC_ERR_SYSTEM. The lane has no fibers then, and may be used again.
     */
    enum slc_status (*tile)(struct slc_device *device,
                            unsigned lane,
                            const struct slc_encoded_block *block,
                            struct slc_device_fibers *fibers,
                            struct slc_error *err);

    /*
     * The next fibers of the lane's last tile, of which `block` is not read again. Needs: the last
     * fibers said that there are more. Errors: as product.tile.
     */
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
    /* Not while lanes are used. */
    void (*stats)(const struct slc_device *device, struct slc_device_stats *stats);
    void (*destroy)(struct slc_device *device); /* takes NULL */
};

struct slc_device {
    const struct slc_device_ops *ops;
};

/* What makes devices, for who knows no kind of them. */
struct slc_device_maker {
    /* One of the machine's, of whose memory so much may be used; 0: most of what is free. */
    enum slc_status (*create)(unsigned ordinal,
                              uint64_t memory_bytes,
                              struct slc_device **device,
                              struct slc_error *err);
    /* Gives back what the process holds for it. Needs: none of its slc_device is left. */
    void (*release)(unsigned ordinal);
    /* Describes a device by the name of its chip, for plans on any machine. Owns: the device's
     * destroy; release does not apply. */
    enum slc_status (*describe)(const char *name,
                                uint64_t memory_bytes,
                                struct slc_device **device,
                                struct slc_error *err);
};

#endif
