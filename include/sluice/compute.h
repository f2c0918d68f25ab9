/*
 * Computing with a store: MTTKRP, products with vectors and with a matrix, and their memory plans.
 *
 * Common errors, which the descriptions do not repeat: SLUICE_ERR_USAGE for arguments out of range,
 * SLUICE_ERR_INPUT for an operand that is not finite, SLUICE_ERR_BUDGET naming the smallest budget,
 * SLUICE_ERR_IO, SLUICE_ERR_DAMAGED with file, block and offset, SLUICE_ERR_MEMORY,
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
    SLUICE_PIN_AUTO, /* on several NUMA nodes, with a thread for every core */
    SLUICE_PIN_NEVER,
    SLUICE_PIN_ALWAYS /* if there are enough processors */
};

/* Whether a decomposition keeps a replica of the tensor for each mode in memory. */
enum sluice_copies {
    SLUICE_COPIES_AUTO, /* if memory permits: after ten iterations of a run of more than twenty */
    SLUICE_COPIES_NEVER,
    SLUICE_COPIES_ALWAYS /* from the start; SLUICE_ERR_BUDGET if memory does not permit it */
};

/* Which layout a pass over a mode reads, in a store that has layouts sorted by modes. */
enum sluice_layout_choice {
    SLUICE_LAYOUTS_AUTO,  /* the one sorted by the mode, if an iteration then reads no more */
    SLUICE_LAYOUTS_BLCO,  /* the one that serves all modes */
    SLUICE_LAYOUTS_SORTED /* the one sorted by the mode; SLUICE_ERR_USAGE if one is missing */
};

/* Whether a pass of a decomposition updates two modes: it solves for rows of the first mode as soon
 * as their nonzeros are complete, and uses the rows for the second mode. */
enum sluice_passes {
    SLUICE_PASSES_AUTO, /* if an iteration then reads less; never if deterministic */
    SLUICE_PASSES_PLAIN,
    SLUICE_PASSES_FUSED /* SLUICE_ERR_USAGE if no layout completes rows early enough */
};

struct sluice_device_options; /* sluice/experimental.h */

/* How blocks are read and multiplied: a shared part. */
struct sluice_compute_options {
    enum sluice_precision precision; /* of matrices in memory; 0: f64 */
    enum sluice_io io;
    enum sluice_schedule schedule;
    enum sluice_pin pin;
    enum sluice_layout_choice layouts; /* MTTKRP and decompositions */
    enum sluice_passes passes;         /* decompositions */
    enum sluice_copies copies;         /* decompositions that are not deterministic */
    /* Nonzero: results have the same bits for any threads, I/O, codec and budget. A GPU has other
     * deterministic bits than the CPU. */
    uint32_t deterministic;
    uint32_t slots;    /* buffers of the ring; 0: chosen */
    uint32_t no_cache; /* nonzero: read every block in every pass, and keep no replicas */
    uint64_t io_limit; /* bytes read per second at most; 0: no limit */
    const struct sluice_device_options *device; /* NULL: the CPU computes */
};

/* What an operation will hold in memory and read. All sizes in bytes. */
struct sluice_plan {
    uint64_t struct_bytes;
    uint64_t budget_bytes;
    uint64_t minimum_bytes; /* the smallest budget that works */
    uint64_t total_bytes;   /* the sum of the parts below */
    uint64_t process_bytes; /* already resident */
    uint64_t index_bytes;
    uint64_t factor_bytes;
    uint64_t output_bytes;
    uint64_t dense_bytes;
    uint64_t scratch_bytes;
    uint64_t decoder_bytes;
    uint64_t label_bytes;  /* while rows of a relabelled mode are moved */
    uint64_t copies_bytes; /* of replicas for each mode; 0: none */
    uint64_t cache_bytes;
    uint64_t slot_bytes; /* of each of slot_count slots */
    uint32_t slot_count;
    uint32_t threads;
    double passes;                 /* per iteration; halves if passes update two modes */
    uint64_t iteration_bytes;      /* of the blocks of all passes of an iteration */
    uint64_t iteration_read_bytes; /* what an iteration reads of them once the cache is filled */
};

struct sluice_mttkrp_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_compute_options compute;
};

/*
 * Plans sluice_mttkrp with the same arguments and computes nothing; an iteration is one call.
 * `plan` is filled in after SLUICE_ERR_BUDGET, too, with zeros if the budget does not even hold the
 * indices of the layouts. Cost: reads the index.
 */
SLUICE_API enum sluice_status sluice_mttkrp_plan(const struct sluice_store *store,
                                                 uint32_t mode,
                                                 uint32_t rank,
                                                 const struct sluice_mttkrp_options *options,
                                                 struct sluice_plan *plan,
                                                 struct sluice_error *err);

/*
 * Matricized tensor times Khatri-Rao product.
 * Math: output(i, r) = sum over nonzeros x with index i in `mode` of x * product over m != mode of
 * factors[m](i_m, r) (Kolda and Bader, SIAM Review 2009, section 2.6).
 * Shapes: factors[m] is dims[m] x rank, factors[mode] may be NULL; output is dims[mode] x rank.
 * Owns: all arrays are the caller's and are copied. `output_count` is the number of doubles that
 * `output` has space for; SLUICE_ERR_USAGE if it is smaller than the result.
 * Order: as compute.deterministic says; otherwise to rounding of reordered sums.
 * Errors: `output` is then unchanged. Cost: one pass over the store, nnz * rank * order
 * multiply-adds.
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
    struct sluice_compute_options compute; /* io, schedule, io_limit and device */
    /* Nonzero: sort sums even if they come in the order of the result. Always so with
     * SLUICE_SCHEDULE_LARGEST. */
    uint64_t sort;
};

struct sluice_ttv_report {
    uint64_t struct_bytes;
    uint32_t order;  /* of the result; 0: a number */
    uint32_t sorted; /* nonzero: sums were sorted, for lack of a suitable layout or memory */
    uint64_t dims[SLUICE_MAX_ORDER];
    double number;        /* the result if every mode has a vector */
    uint64_t nnz;         /* of the store that was written */
    uint64_t store_bytes; /* of its block file */
    uint64_t bytes_read;  /* from the drive */
    uint64_t fibers;      /* nonempty fibers of the fiber layout that was read; 0: another layout */
    uint64_t device_nnz;  /* nonzeros that a GPU multiplied */
};

/*
 * Tensor times vectors, in one mode or more.
 * Math: Y = X x_n v, y(f) = sum over the nonzeros x of mode-n fiber f of x * v(i_n), for each mode
 * that has a vector (Kolda and Bader, SIAM Review 2009, section 2.5).
 * Shapes: vectors[n] has dims[n] finite numbers, or is NULL for a mode that remains. `output` is a
 * store of the remaining modes, in their order and with their names. If every mode has a vector,
 * `output` is NULL and the result is report->number; otherwise `report` may be NULL.
 * Owns: the vectors are the caller's and are copied.
 * Order: sums in f64, in the order of the layout that is read: the same bits for any threads,
 * memory, I/O and schedule. The call reads the fiber layout of the first contracted mode that has
 * one; its sums need no sorting.
 * Errors: SLUICE_ERR_USAGE without any vector, or if `output` does not fit the result;
 * SLUICE_ERR_INPUT for a sum beyond f64; SLUICE_ERR_NOSPACE. Nothing is left on disk. Cost: one
 * pass over the store, a multiply-add for each nonzero and contracted mode, writing the result.
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
    struct sluice_compute_options compute; /* precision, io, pin, io_limit and device */
    const char *temp_folder;               /* for sorting beyond memory; NULL: next to the output */
    uint64_t elements;                     /* nonzero: add each nonzero to its row in memory */
};

struct sluice_ttm_report {
    uint64_t struct_bytes;
    uint64_t fibers;        /* rows of the result: fibers that have nonzeros */
    uint64_t bytes_read;    /* from the drive */
    uint64_t bytes_written; /* of both files */
    uint64_t sorted;        /* nonzero: a temporary store was made, for lack of a fiber layout */
    uint64_t device_nnz;    /* nonzeros that a GPU multiplied */
};

/*
 * Tensor times matrix, written to files that may be larger than memory.
 * Math: y(f, r) = sum over the nonzeros x of mode-n fiber f of x * matrix(i_n, r), for the fibers
 * of `mode` that have nonzeros (Kolda and Bader, SIAM Review 2009, section 2.5).
 * Shapes: matrix is dims[mode] x columns. The folder `output` gets coords.npy, int64, fibers x
 * (order - 1), with the indices of each fiber in the other modes, and rows.npy, fibers x columns,
 * in compute.precision. Both files replace those of an earlier result when both are complete.
 * `report` may be NULL.
 * Owns: the matrix is the caller's and is copied.
 * Order: fibers come in the order of the layout that is read; the same layout gives the same bytes
 * for any threads, memory and I/O.
 * Errors: SLUICE_ERR_NOSPACE; SLUICE_ERR_UNSUPPORTED for a mode too long to sort. An earlier result
 * is then unchanged. Cost: one pass over the store, nnz * columns multiply-adds, writing the
 * result; without a fiber layout of the mode also a sort into OUTPUT.fibers.tmp, which is removed.
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
