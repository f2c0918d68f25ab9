/* Functions that compute with a store: MTTKRP, products with vectors or a matrix, and memory plans.
 *
 * Common errors, to which function comments refer: SLUICE_ERR_USAGE for arguments out of range,
 * SLUICE_ERR_UNSUPPORTED for options of a newer version, SLUICE_ERR_INPUT for an operand that is
 * not finite, SLUICE_ERR_BUDGET stating the smallest sufficient budget, SLUICE_ERR_IO,
 * SLUICE_ERR_DAMAGED with file, block and offset, SLUICE_ERR_MEMORY, SLUICE_ERR_SYSTEM,
 * SLUICE_ERR_INTERRUPTED. */
#ifndef SLUICE_COMPUTE_H
#define SLUICE_COMPUTE_H

#include "sluice/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The system interface that reads blocks. */
enum sluice_io { SLUICE_IO_AUTO, SLUICE_IO_URING, SLUICE_IO_PREAD, SLUICE_IO_MMAP };

/* The order in which a pass reads blocks. */
enum sluice_schedule {
    SLUICE_SCHEDULE_AUTO,
    SLUICE_SCHEDULE_LARGEST, /* largest first */
    SLUICE_SCHEDULE_FILE     /* in the order of the file */
};

/* Selects whether each computing thread is bound to a processor during the call. */
enum sluice_pin {
    SLUICE_PIN_AUTO, /* bound if there are several NUMA nodes and a thread for every core */
    SLUICE_PIN_NEVER,
    SLUICE_PIN_ALWAYS /* bound unless there are more threads than processors */
};

/* Selects whether a decomposition keeps a replica of the tensor for each mode in memory. */
enum sluice_copies {
    /* replicas are made after ten iterations if the run has more than twenty and memory suffices */
    SLUICE_COPIES_AUTO,
    SLUICE_COPIES_NEVER,
    /* replicas are made at the start; SLUICE_ERR_BUDGET if they do not fit into memory */
    SLUICE_COPIES_ALWAYS
};

/* Selects the layout that a pass over a mode reads. */
enum sluice_layout_choice {
    /* the layout sorted by the mode; but blco if an iteration then reads fewer bytes */
    SLUICE_LAYOUTS_AUTO,
    SLUICE_LAYOUTS_BLCO,  /* the blco layout, for all modes */
    SLUICE_LAYOUTS_SORTED /* the layout sorted by the mode; SLUICE_ERR_USAGE if there is none */
};

/* Selects whether a pass of a decomposition updates two modes (a fused pass). A fused pass solves
 * for each row of the first mode once all nonzeros of the row are read, and uses the row for the
 * second mode. */
enum sluice_passes {
    /* fused if an iteration then reads fewer bytes; never with `deterministic` */
    SLUICE_PASSES_AUTO,
    SLUICE_PASSES_PLAIN,
    /* SLUICE_ERR_USAGE if the nonzeros of rows are too far apart in every layout */
    SLUICE_PASSES_FUSED
};

struct sluice_device_options; /* sluice/experimental.h */

/* Options for reading and multiplying blocks. Option structs have this struct as the member
 * `compute`. */
struct sluice_compute_options {
    enum sluice_precision precision; /* precision of matrices in memory; 0 means f64 */
    enum sluice_io io;
    enum sluice_schedule schedule;
    enum sluice_pin pin;
    enum sluice_layout_choice layouts; /* used by MTTKRP and decompositions */
    enum sluice_passes passes;         /* used by decompositions */
    enum sluice_copies copies;         /* used by decompositions that are not deterministic */
    /* If not 0, results have the same bits for any number of threads, I/O interface, codec and
     * budget. The result of a GPU differs from the result of a CPU in its last bits. */
    uint32_t deterministic;
    uint32_t slots;    /* number of buffers for blocks; 0 means that the plan chooses the number */
    uint32_t no_cache; /* if not 0, every pass reads every block, and no replicas are kept */
    uint64_t io_limit; /* maximum bytes read per second; 0 means no limit */
    const struct sluice_device_options *device; /* NULL means that the CPU computes */
};

/* The memory that an operation will use and the bytes that the operation will read. */
struct sluice_plan {
    uint64_t struct_bytes;
    uint64_t budget_bytes;
    uint64_t minimum_bytes; /* the smallest budget that works */
    /* all memory: the parts below, slot_count slots, host memory for GPUs */
    uint64_t total_bytes;
    uint64_t process_bytes; /* memory of the process that was resident before the call */
    uint64_t index_bytes;   /* indices of the block files */
    uint64_t factor_bytes;  /* factor matrices */
    uint64_t output_bytes;  /* output of an MTTKRP */
    uint64_t dense_bytes;   /* dense algebra, which updates the factors */
    uint64_t scratch_bytes; /* kernels that multiply blocks */
    uint64_t decoder_bytes; /* decoders of all threads */
    uint64_t label_bytes;   /* buffer for reordering the rows of a relabelled mode */
    uint64_t copies_bytes;  /* size of all replicas; 0 means no replicas */
    uint64_t cache_bytes;   /* blocks that are kept in memory between passes */
    uint64_t slot_bytes;    /* bytes of each of the slot_count slots */
    uint32_t slot_count;
    uint32_t threads;
    double passes;            /* passes per iteration; half a pass for each mode of a fused pass */
    uint64_t iteration_bytes; /* bytes of all blocks that the passes of an iteration process */
    /* bytes read from the drive per iteration once the cache is full */
    uint64_t iteration_read_bytes;
};

struct sluice_mttkrp_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_compute_options compute;
    /* Part of the rows to compute, from 0, and the number of parts; 0 parts mean all rows. A part
     * reads only the blocks that its rows need. Its result is deterministic, and all other rows are
     * 0, so the whole result is the sum of the results of all parts. */
    uint32_t part, parts;
    /* `rank` numbers of the caller, by which the columns of the output are multiplied; NULL: none
     */
    const double *weights;
};

/* Plans the memory and reads of sluice_mttkrp with the same arguments, and computes nothing. In the
 * plan, an iteration is one call of sluice_mttkrp.
 * Errors: the common errors. On error, `plan` is unchanged, with one exception: after
 * SLUICE_ERR_BUDGET, `plan` describes the plan that exceeds the budget, or is all zero if the
 * indices of the block files alone exceed the budget.
 * Cost: reads the index of each layout. */
SLUICE_API enum sluice_status sluice_mttkrp_plan(const struct sluice_store *store,
                                                 uint32_t mode,
                                                 uint32_t rank,
                                                 const struct sluice_mttkrp_options *options,
                                                 struct sluice_plan *plan,
                                                 struct sluice_error *err);

/* Computes a matricized tensor times Khatri-Rao product.
 * Math: output(i, r) is the sum of x * P(x, r) over all nonzeros x with index i in `mode`; P(x, r)
 * is the product of factors[m](i_m, r) over all m != mode (Kolda and Bader, SIAM Review 2009,
 * section 2.6). With weights, each sum is multiplied by weights[r] (Phipps and Kolda, SISC 2019,
 * equation 2).
 * Shapes: factors[m] is dims[m] x rank; factors[mode] may be NULL. `output` is dims[mode] x rank
 * and has space for `output_count` doubles.
 * Ownership: all arrays are the caller's and are copied.
 * Order: with compute.deterministic, the result has the same bits for any number of threads;
 * otherwise the order of additions varies, and results differ by rounding.
 * Errors: the common errors; SLUICE_ERR_USAGE if the result does not fit into `output`. On error,
 * `output` is unchanged.
 * Cost: one pass over the store, and nnz * rank * order multiply-adds. */
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
    struct sluice_compute_options compute; /* only io, schedule, io_limit and device are used */
    /* If not 0, the sums are sorted even if the layout yields the sums in the order of the result.
     * SLUICE_SCHEDULE_LARGEST has the same effect. */
    uint64_t sort;
    /* Part of the result to compute, from 0, and the number of parts; 0 parts mean the whole
     * result. A part reads only the blocks that it needs; sluice_join joins all parts. */
    uint32_t part, parts;
};

struct sluice_ttv_report {
    uint64_t struct_bytes;
    uint32_t order; /* order of the result; 0 if the result is a number */
    /* not 0 if the sums were sorted: on request, for lack of a layout, or for lack of memory */
    uint32_t sorted;
    uint64_t dims[SLUICE_MAX_ORDER];
    double number;        /* the result if every mode has a vector */
    uint64_t nnz;         /* nonzeros of the store that was written */
    uint64_t store_bytes; /* size of the block file that was written */
    uint64_t bytes_read;  /* bytes read from the drive */
    uint64_t fibers; /* nonempty fibers of the fiber layout that was read; 0 for another layout */
    uint64_t device_nnz; /* nonzeros that a GPU multiplied */
};

/* Multiplies a tensor by a vector in one or more modes.
 * Math: for each mode n that has a vector v, Y = X x_n v: y(f) is the sum of x * v(i_n) over all
 * nonzeros x in the mode-n fiber f (Kolda and Bader, SIAM Review 2009, section 2.5).
 * Shapes: vectors[n] has dims[n] finite numbers, or is NULL for a mode that remains. `output`
 * becomes a store of the modes that remain, in the same order and with their names. If every mode
 * has a vector, `output` must be NULL and the result is report->number; otherwise `report` may be
 * NULL. Ownership: the vectors are the caller's and are copied.
 * Order: sums are f64, in the order of the layout that is read, so the result has the same bits for
 * any number of threads, memory, I/O and schedule. The call reads the fiber layout of the
 * first contracted mode that has a fiber layout; the sums then need no sorting.
 * Errors: the common errors; SLUICE_ERR_USAGE if no mode has a vector, if `output` is NULL although
 * a mode remains, or not NULL although none remains; SLUICE_ERR_INPUT for a sum that exceeds the
 * range of f64; SLUICE_ERR_NOSPACE. On error, `report` is unchanged and nothing is left on disk.
 * Cost: one pass over the store, one multiply-add for each nonzero and contracted mode, and writing
 * the result. */
SLUICE_API enum sluice_status sluice_ttv(const struct sluice_store *store,
                                         const double *const *vectors,
                                         const char *output,
                                         const struct sluice_ttv_options *options,
                                         struct sluice_ttv_report *report,
                                         struct sluice_error *err);

/* A mode of a tensor in memory, for products with many vectors: the sparse matrix that has a row
 * for each nonempty fiber of the mode and a column for each index. For use by one thread at a time.
 */
struct sluice_ttv_operator;

struct sluice_ttv_operator_options {
    uint64_t struct_bytes;
    struct sluice_run_options run; /* run.threads is also the number of threads of each product */
};

struct sluice_ttv_operator_info {
    uint64_t struct_bytes;
    uint32_t order;                  /* order of the tensor */
    uint32_t mode;                   /* the mode that products multiply */
    uint64_t dims[SLUICE_MAX_ORDER]; /* sizes of all modes of the tensor */
    uint64_t fibers;                 /* fibers that have nonzeros; a product has a sum for each */
    uint64_t nnz;
    uint64_t used;         /* indices of the mode that have nonzeros */
    uint64_t memory_bytes; /* memory of the operator */
};

/* Reads a tensor into memory, for products of `mode` with vectors.
 * Ownership: the caller destroys *ret_ttv with sluice_ttv_destroy; `store` may be closed before.
 * Errors: the common errors; SLUICE_ERR_USAGE for a mode that does not exist;
 * SLUICE_ERR_UNSUPPORTED for a mode of more than 2^31 indices. On error, *ret_ttv is unchanged.
 * Cost: one pass over the store and a sort, with up to 56 bytes of memory per nonzero, or 80 if the
 * sizes of all modes together need more than 64 bits. The operator keeps about a third of this. */
SLUICE_API enum sluice_status sluice_ttv_create(const struct sluice_store *store,
                                                uint32_t mode,
                                                const struct sluice_ttv_operator_options *options,
                                                struct sluice_ttv_operator **ret_ttv,
                                                struct sluice_error *err);

/* Frees an operator. Accepts NULL. Ownership: frees all memory of the operator. Cost: constant. */
SLUICE_API void sluice_ttv_destroy(struct sluice_ttv_operator *ttv);

/* Describes an operator.
 * Errors: SLUICE_ERR_USAGE. On error, `info` is unchanged.
 * Cost: constant. */
SLUICE_API enum sluice_status sluice_ttv_get_info(const struct sluice_ttv_operator *ttv,
                                                  struct sluice_ttv_operator_info *info,
                                                  struct sluice_error *err);

/* Stores the index that each fiber has in `mode`, a mode other than that of the operator.
 * Shapes: `indices` has one number per fiber, in the order of the sums of sluice_ttv_multiply;
 * `count` is the number of fibers. Indices count from 0 and are those of the input.
 * Ownership: the array is the caller's.
 * Errors: SLUICE_ERR_USAGE if `mode` is not a remaining mode, or for a wrong count. On error,
 * `indices` is unchanged.
 * Cost: about 10 ns per fiber. */
SLUICE_API enum sluice_status sluice_ttv_get_indices(const struct sluice_ttv_operator *ttv,
                                                     uint32_t mode,
                                                     uint64_t *indices,
                                                     uint64_t count,
                                                     struct sluice_error *err);

/* Multiplies the tensor by a vector.
 * Math: sums[f] is the sum of x * vector(i_n) over the nonzeros x of fiber f, where n is the mode
 * of the operator (Kolda and Bader, SIAM Review 2009, section 2.5). Shapes: `vector` has
 * vector_count finite numbers, one per index of the mode; `sums` has sum_count numbers, one per
 * fiber. The two arrays must not overlap. Ownership: both arrays are the caller's. Order: sums are
 * f64; a sum depends only on its fiber, so it has the same bits for any number of threads. Errors:
 * SLUICE_ERR_USAGE for a wrong count; SLUICE_ERR_INPUT if a number or a sum is not finite;
 * SLUICE_ERR_SYSTEM. On error, the contents of `sums` are unspecified.
 * Cost: one multiply-add per nonzero; no memory is allocated. */
SLUICE_API enum sluice_status sluice_ttv_multiply(struct sluice_ttv_operator *ttv,
                                                  const double *vector,
                                                  uint64_t vector_count,
                                                  double *sums,
                                                  uint64_t sum_count,
                                                  struct sluice_error *err);

struct sluice_ttm_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    /* only precision, io, pin, io_limit and device are used */
    struct sluice_compute_options compute;
    /* folder for data that exceeds memory; NULL means the folder of the output */
    const char *temp_folder;
    /* 0: the row of a fiber is summed in registers; else each nonzero is added to its row in
     * memory */
    uint64_t nonzeros;
    /* Part of the fibers to compute, as in sluice_ttv_options. The mode needs a fiber layout. */
    uint32_t part, parts;
};

struct sluice_ttm_report {
    uint64_t struct_bytes;
    uint64_t fibers;        /* rows of the result, one for each fiber that has nonzeros */
    uint64_t bytes_read;    /* bytes read from the drive */
    uint64_t bytes_written; /* size of the two files of the result */
    uint64_t sorted; /* not 0 if nonzeros were sorted on disk, because there was no fiber layout */
    uint64_t device_nnz; /* nonzeros that a GPU multiplied */
};

/* Multiplies a tensor by a matrix and writes the result to files. The result may be larger than
 * memory.
 * Math: y(f, r) is the sum of x * matrix(i_n, r) over all nonzeros x in the mode-n fiber f, for
 * each fiber of `mode` that has nonzeros (Kolda and Bader, SIAM Review 2009, section 2.5).
 * Shapes: `matrix` is dims[mode] x columns. The folder `output` receives two files: coords.npy,
 * int64, fibers x (order - 1), with the indices of each fiber in the other modes; and rows.npy,
 * fibers x columns, in compute.precision. The two files replace an earlier result once both are
 * complete. `report` may be NULL.
 * Ownership: the matrix is the caller's and is copied.
 * Order: fibers have the order of the layout that is read; the same layout gives the same bytes for
 * any number of threads, memory and I/O.
 * Errors: the common errors; SLUICE_ERR_NOSPACE; SLUICE_ERR_UNSUPPORTED if a sort is needed (see
 * Cost) and the mode has more than 2^24 indices. On error, `report` and an earlier result are
 * unchanged.
 * Cost: one pass over the store, nnz * columns multiply-adds, and writing the result. If the mode
 * has no fiber layout, also a sort into the folder OUTPUT.fibers.tmp, which is removed at the
 * end. */
SLUICE_API enum sluice_status sluice_ttm(const struct sluice_store *store,
                                         uint32_t mode,
                                         uint32_t columns,
                                         const double *matrix,
                                         const char *output,
                                         const struct sluice_ttm_options *options,
                                         struct sluice_ttm_report *report,
                                         struct sluice_error *err);

struct sluice_join_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    /* folder for data that exceeds memory; NULL means the folder of the output */
    const char *temp_folder;
    uint64_t max_temp_bytes; /* limit of temporary data; 0 means no limit */
    uint64_t overwrite;      /* if not 0, a complete new store replaces an existing store */
};

/* Joins the parts of a product.
 * The parts were computed by sluice_ttv or sluice_ttm, with `parts` in their options, or by the
 * command sluice mttkrp. `output` gets the bytes that the call without parts would have written.
 * Shapes: `paths` has the paths of all `count` parts of one result, in any order.
 * Ownership: `paths` is the caller's and is copied.
 * Errors: the common errors; SLUICE_ERR_INPUT, naming the part, if a part is missing, given twice
 * or of another result; SLUICE_ERR_FORMAT if a path is no part. On error, nothing is left on disk.
 * Cost: reads and writes the result once; the parts of sluice_ttv are also sorted. */
SLUICE_API enum sluice_status sluice_join(uint32_t count,
                                          const char *const *paths,
                                          const char *output,
                                          const struct sluice_join_options *options,
                                          struct sluice_error *err);

#ifdef __cplusplus
}
#endif
#endif
