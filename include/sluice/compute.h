/*
 * Computing with a store: MTTKRP, products with vectors and with a matrix, and their memory plans.
 *
 * Common errors, to which function comments refer: SLUICE_ERR_USAGE for arguments out of range,
 * SLUICE_ERR_UNSUPPORTED for options of a newer version, SLUICE_ERR_INPUT for an operand that is
 * not finite, SLUICE_ERR_BUDGET stating the smallest sufficient budget, SLUICE_ERR_IO,
 * SLUICE_ERR_DAMAGED with file, block and offset, SLUICE_ERR_MEMORY, SLUICE_ERR_SYSTEM,
 * SLUICE_ERR_INTERRUPTED.
 */
#ifndef SLUICE_COMPUTE_H
#define SLUICE_COMPUTE_H

#include "sluice/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How blocks are read. */
enum sluice_io { SLUICE_IO_AUTO, SLUICE_IO_URING, SLUICE_IO_PREAD, SLUICE_IO_MMAP };

/* The order in which a pass reads blocks. */
enum sluice_schedule {
    SLUICE_SCHEDULE_AUTO,
    SLUICE_SCHEDULE_LARGEST, /* largest first */
    SLUICE_SCHEDULE_FILE     /* as in the file */
};

/* Whether each computing thread is bound to a processor during the call. */
enum sluice_pin {
    SLUICE_PIN_AUTO, /* if there are several NUMA nodes and a thread for every core */
    SLUICE_PIN_NEVER,
    SLUICE_PIN_ALWAYS /* if there are enough processors */
};

/* Whether a decomposition keeps a replica of the tensor for each mode in memory. */
enum sluice_copies {
    SLUICE_COPIES_AUTO, /* after ten iterations of a run of more than twenty, if memory permits */
    SLUICE_COPIES_NEVER,
    /* from the start; SLUICE_ERR_BUDGET if the replicas do not fit into memory */
    SLUICE_COPIES_ALWAYS
};

/* Which layout a pass over a mode reads. */
enum sluice_layout_choice {
    /* the layout sorted by the mode, unless iterations then read more bytes */
    SLUICE_LAYOUTS_AUTO,
    SLUICE_LAYOUTS_BLCO,  /* the blco layout, for all modes */
    SLUICE_LAYOUTS_SORTED /* the layout sorted by the mode; SLUICE_ERR_USAGE if there is none */
};

/* Whether a pass of a decomposition updates two modes: it solves for rows of the first mode as soon
 * as their nonzeros are complete, and uses the rows for the second mode. */
enum sluice_passes {
    SLUICE_PASSES_AUTO, /* fused if iterations then read fewer bytes; never with `deterministic` */
    SLUICE_PASSES_PLAIN,
    SLUICE_PASSES_FUSED /* SLUICE_ERR_USAGE if no layout completes rows early enough */
};

struct sluice_device_options; /* sluice/experimental.h */

/* How blocks are read and multiplied. Options have this struct as the member `compute`. */
struct sluice_compute_options {
    enum sluice_precision precision; /* of matrices in memory; 0: f64 */
    enum sluice_io io;
    enum sluice_schedule schedule;
    enum sluice_pin pin;
    enum sluice_layout_choice layouts; /* for MTTKRP and decompositions */
    enum sluice_passes passes;         /* for decompositions */
    enum sluice_copies copies;         /* for decompositions that are not deterministic */
    /* Not 0: results have the same bits for any number of threads, I/O, codec and budget. The
     * deterministic bits of a GPU differ from those of a CPU. */
    uint32_t deterministic;
    uint32_t slots;    /* buffers for blocks; 0: chosen automatically */
    uint32_t no_cache; /* not 0: read every block in every pass, and keep no replicas */
    uint64_t io_limit; /* maximum bytes read per second; 0: no limit */
    const struct sluice_device_options *device; /* NULL: the CPU computes */
};

/* The memory that an operation will use and the bytes that it will read. All sizes in bytes. */
struct sluice_plan {
    uint64_t struct_bytes;
    uint64_t budget_bytes;
    uint64_t minimum_bytes; /* the smallest budget that works */
    uint64_t total_bytes;   /* the sum of the parts below */
    uint64_t process_bytes; /* already resident in the process */
    uint64_t index_bytes;
    uint64_t factor_bytes;
    uint64_t output_bytes;
    uint64_t dense_bytes;
    uint64_t scratch_bytes;
    uint64_t decoder_bytes;
    uint64_t label_bytes;  /* for moving rows of a relabelled mode */
    uint64_t copies_bytes; /* of all replicas; 0: none */
    uint64_t cache_bytes;
    uint64_t slot_bytes; /* size of each of the slot_count slots */
    uint32_t slot_count;
    uint32_t threads;
    double passes;                 /* per iteration; multiples of 1/2 if passes update two modes */
    uint64_t iteration_bytes;      /* size of the blocks that all passes of an iteration process */
    uint64_t iteration_read_bytes; /* read from the drive per iteration once the cache is full */
};

struct sluice_mttkrp_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_compute_options compute;
};

/*
 * Plans the memory and reads of sluice_mttkrp with the same arguments. Nothing is computed. In the
 * plan, an iteration is one call.
 * Errors: the common errors. On error, `plan` is unchanged, with one exception: after
 * SLUICE_ERR_BUDGET, `plan` describes the plan that exceeds the budget, or is all zero if the
 * indices of the layouts alone exceed it.
 * Cost: reads the index.
 */
SLUICE_API enum sluice_status sluice_mttkrp_plan(const struct sluice_store *store,
                                                 uint32_t mode,
                                                 uint32_t rank,
                                                 const struct sluice_mttkrp_options *options,
                                                 struct sluice_plan *plan,
                                                 struct sluice_error *err);

/*
 * Computes a matricized tensor times Khatri-Rao product.
 * Math: output(i, r) = sum over nonzeros x with index i in `mode` of x * product over m != mode of
 * factors[m](i_m, r) (Kolda and Bader, SIAM Review 2009, section 2.6).
 * Shapes: factors[m] is dims[m] x rank; factors[mode] may be NULL. `output` is dims[mode] x rank
 * and has space for `output_count` doubles.
 * Ownership: all arrays are the caller's and are copied.
 * Order: with compute.deterministic, the same bits for any number of threads; otherwise the order
 * of additions varies, and results differ by rounding.
 * Errors: the common errors; SLUICE_ERR_USAGE if the result does not fit into `output`. On error,
 * `output` is unchanged.
 * Cost: one pass over the store, and nnz * rank * order multiply-adds.
 */
SLUICE_API enum sluice_status sluice_mttkrp(const struct sluice_store *store,
                                            uint32_t mode,
                                            uint32_t rank,
                                            const double *const *factors,
                                            double *output,
                                            uint64_t output_count,
                                            const struct sluice_mttkrp_options *options,
                                            struct sluice_error *err);

struct sluice_ttv_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_output_options output;
    struct sluice_compute_options compute; /* uses io, schedule, io_limit and device */
    /* Not 0: sort the sums even if the layout yields them in the order of the result.
     * SLUICE_SCHEDULE_LARGEST has the same effect. */
    uint64_t sort;
};

struct sluice_ttv_report {
    uint64_t struct_bytes;
    uint32_t order; /* order of the result; 0: the result is a number */
    /* not 0: the sums were sorted, because no layout was suitable or memory was short */
    uint32_t sorted;
    uint64_t dims[SLUICE_MAX_ORDER];
    double number;        /* the result if every mode has a vector */
    uint64_t nnz;         /* nonzeros of the store that was written */
    uint64_t store_bytes; /* size of the block file that was written */
    uint64_t bytes_read;  /* from the drive */
    uint64_t fibers;      /* nonempty fibers of the fiber layout that was read; 0: other layout */
    uint64_t device_nnz;  /* nonzeros that a GPU multiplied */
};

/*
 * Multiplies a tensor by a vector in one or more modes.
 * Math: Y = X x_n v, y(f) = sum over the nonzeros x of mode-n fiber f of x * v(i_n), for each mode
 * that has a vector (Kolda and Bader, SIAM Review 2009, section 2.5).
 * Shapes: vectors[n] has dims[n] finite numbers, or is NULL for a mode that remains. `output`
 * becomes a store of the remaining modes, with their order and names. If every mode has a vector,
 * `output` must be NULL and the result is report->number; otherwise `report` may be NULL.
 * Ownership: the vectors are the caller's and are copied.
 * Order: sums are f64, in the order of the layout that is read: the same bits for any number of
 * threads, memory, I/O and schedule. The call reads the fiber layout of the first contracted mode
 * that has a fiber layout; the sums then need no sorting.
 * Errors: the common errors; SLUICE_ERR_USAGE if no mode has a vector or if `output` does not fit
 * the result; SLUICE_ERR_INPUT for a sum that exceeds the range of f64; SLUICE_ERR_NOSPACE. On
 * error, `report` is unchanged and nothing is left on disk.
 * Cost: one pass over the store, one multiply-add for each nonzero and contracted mode, and writing
 * the result.
 */
SLUICE_API enum sluice_status sluice_ttv(const struct sluice_store *store,
                                         const double *const *vectors,
                                         const char *output,
                                         const struct sluice_ttv_options *options,
                                         struct sluice_ttv_report *report,
                                         struct sluice_error *err);

struct sluice_ttm_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_compute_options compute; /* uses precision, io, pin, io_limit and device */
    const char *temp_folder;               /* for sorting beyond memory; NULL: next to the output */
    uint64_t elements;                     /* not 0: add each nonzero to its row in memory */
};

struct sluice_ttm_report {
    uint64_t struct_bytes;
    uint64_t fibers;        /* rows of the result: fibers that have nonzeros */
    uint64_t bytes_read;    /* from the drive */
    uint64_t bytes_written; /* size of both files */
    uint64_t sorted;        /* not 0: there was no fiber layout, so nonzeros were sorted on disk */
    uint64_t device_nnz;    /* nonzeros that a GPU multiplied */
};

/*
 * Multiplies a tensor by a matrix and writes the result to files. The result may be larger than
 * memory.
 * Math: y(f, r) = sum over the nonzeros x of mode-n fiber f of x * matrix(i_n, r), for the fibers
 * of `mode` that have nonzeros (Kolda and Bader, SIAM Review 2009, section 2.5).
 * Shapes: `matrix` is dims[mode] x columns. The folder `output` receives two files: coords.npy,
 * int64, fibers x (order - 1), with the indices of each fiber in the other modes; and rows.npy,
 * fibers x columns, in compute.precision. They replace an earlier result once both are complete.
 * `report` may be NULL.
 * Ownership: the matrix is the caller's and is copied.
 * Order: fibers have the order of the layout that is read; the same layout gives the same bytes for
 * any number of threads, memory and I/O.
 * Errors: the common errors; SLUICE_ERR_NOSPACE; SLUICE_ERR_UNSUPPORTED for a mode too large to
 * sort. On error, `report` and an earlier result are unchanged.
 * Cost: one pass over the store, nnz * columns multiply-adds, and writing the result; without a
 * fiber layout of the mode also a sort into OUTPUT.fibers.tmp, which is removed.
 */
SLUICE_API enum sluice_status sluice_ttm(const struct sluice_store *store,
                                         uint32_t mode,
                                         uint32_t columns,
                                         const double *matrix,
                                         const char *output,
                                         const struct sluice_ttm_options *options,
                                         struct sluice_ttm_report *report,
                                         struct sluice_error *err);

#ifdef __cplusplus
}
#endif
#endif
