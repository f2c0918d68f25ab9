/*
 * libsluice: sparse tensors larger than memory, factorized while they stream from disk.
 *
 *     struct slc_error err = SLC_ERROR_INIT;
 *     struct sluice_store *store = NULL;
 *     struct sluice_cpd *model = NULL;
 *
 *     if (sluice_convert("in.tns", "in.slc", NULL, NULL, &err) == SLC_OK &&
 *         sluice_store_open("in.slc", &store, &err) == SLC_OK &&
 *         sluice_cpd(store, 16, NULL, &model, &err) == SLC_OK) {
 *         printf("fit %.6f\n", sluice_cpd_fit(model));
 *     }
 *     sluice_cpd_destroy(model);
 *     sluice_store_close(store);
 *
 * Conventions. Every fallible function returns an enum slc_status and takes, last, a caller-owned
 * struct slc_error that may be NULL (sluice/status.h); on failure the objects it would have
 * returned are left as they were. Modes and indices count from 0. Matrices are dense, row-major,
 * f64, without padding: rows x rank. Options may be NULL for the defaults; otherwise fill the
 * struct by its sluice_.._options_init(&options, sizeof options) first and change what you need:
 * the size recorded there keeps programs working with later versions of the library, whose structs
 * only grow at the end. Nothing is printed and the process is never ended.
 *
 * Threads: different objects may be used by different threads at the same time; one object by one
 * thread at a time. Work inside a call is spread over `threads` of its options.
 *
 * Relabelling: a store may number the indices of a mode by frequency (sluice_convert_options). It
 * shows nowhere else: arrays, files and text, in and out, are in the numbering of the input.
 *
 * Memory: a `memory_bytes` option bounds the resident memory of the whole process, arrays of the
 * caller included, and 0 stands for 80 % of the smaller of physical memory and the cgroup limit.
 */
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

#include "sluice/status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SLC_API
#define SLC_API __attribute__((visibility("default")))
#endif

enum { SLUICE_MAX_ORDER = 16 };

/* Version of the library that is running, e.g. "0.1.0". Never NULL. */
SLC_API const char *sluice_version(void);

/* Short lower-case name of a status, "ok" to "time-limit". Never NULL. */
SLC_API const char *sluice_status_name(enum slc_status status);

/*
 * Writes "FILE:LINE:COLUMN: MESSAGE" or "FILE: block B, offset O: MESSAGE" (the parts that apply)
 * into `text` (text_bytes, always terminated). Returns the length it wanted, like snprintf.
 */
SLC_API int sluice_error_format(const struct slc_error *err, char *text, uint64_t text_bytes);

/*
 * Parses a size as the command does: "512MiB", "4G" (= GiB), "200MB" (decimal), "50%" (of memory),
 * plain bytes. Errors: SLC_ERR_USAGE.
 */
SLC_API enum slc_status
sluice_parse_size(const char *text, uint64_t *ret_bytes, struct slc_error *err);

enum sluice_precision { SLUICE_F32 = 1, SLUICE_F64 = 2 };
enum sluice_io { SLUICE_IO_AUTO, SLUICE_IO_URING, SLUICE_IO_PREAD, SLUICE_IO_MMAP };
enum sluice_schedule { SLUICE_SCHEDULE_AUTO, SLUICE_SCHEDULE_LARGEST, SLUICE_SCHEDULE_FILE };
enum sluice_codec { SLUICE_CODEC_PACKED = 1, SLUICE_CODEC_LZ4 = 2, SLUICE_CODEC_BLCO = 3 };
enum sluice_value { SLUICE_VALUE_AUTO, SLUICE_VALUE_F32, SLUICE_VALUE_F64 };
enum sluice_relabel {
    SLUICE_RELABEL_NONE,
    SLUICE_RELABEL_FREQUENCY /* number indices by frequency where that makes the store smaller */
};
enum sluice_duplicates {
    SLUICE_DUPLICATES_SUM,
    SLUICE_DUPLICATES_ERROR,
    SLUICE_DUPLICATES_KEEP_FIRST,
    SLUICE_DUPLICATES_KEEP_LAST
};
enum sluice_dialect {
    SLUICE_DIALECT_AUTO,          /* recognized from the first bytes and lines */
    SLUICE_DIALECT_TNS,           /* FROSTT and SPLATT: rows only */
    SLUICE_DIALECT_PARTI,         /* N, dims, rows */
    SLUICE_DIALECT_FROSTT_EXT,    /* "# extended FROSTT format" */
    SLUICE_DIALECT_GENTEN,        /* sptensor, 0-based unless stated */
    SLUICE_DIALECT_TENSORTOOLBOX, /* sptensor, 1-based */
    SLUICE_DIALECT_TACO,          /* %%MatrixMarket tensor coordinate */
    SLUICE_DIALECT_MATRIXMARKET,  /* %%MatrixMarket matrix coordinate */
    SLUICE_DIALECT_SPLATT_BIN,    /* binary: SPLATT's */
    SLUICE_DIALECT_GENTEN_BIN,    /* GenTen's */
    SLUICE_DIALECT_ALTO_BIN       /* ALTO's, which has to be said */
};
enum sluice_distribution { SLUICE_DIST_UNIFORM, SLUICE_DIST_ZIPF, SLUICE_DIST_ZIPF_SHUFFLED };
enum sluice_model_form {
    SLUICE_MODEL_NPY,    /* a folder with mode-1.npy, mode-2.npy, .. and lambda.npy */
    SLUICE_MODEL_SPLATT, /* STEMmode1.mat, .. and STEMlambda.mat */
    SLUICE_MODEL_KTENSOR /* one text file, Tensor Toolbox */
};
/* Whether a decomposition holds a copy of the tensor per mode where memory allows. */
enum sluice_copies {
    SLUICE_COPIES_AUTO, /* after ten iterations of a run that may have more than twenty */
    SLUICE_COPIES_NEVER,
    SLUICE_COPIES_ALWAYS /* from the start; SLC_ERR_BUDGET where memory does not allow it */
};
/* Where a mode is read from, in a store that has layouts sorted by modes. */
enum sluice_layouts {
    SLUICE_LAYOUTS_AUTO,  /* from the one sorted by it, where an iteration reads no more by that */
    SLUICE_LAYOUTS_BLCO,  /* from the one that serves all modes */
    SLUICE_LAYOUTS_SORTED /* from the one sorted by it; SLC_ERR_USAGE where one is missing */
};
/*
 * Whether a pass of a decomposition updates two modes: rows of the first are solved for as soon as
 * their nonzeros have been computed, and these serve the next mode while they are in memory.
 */
enum sluice_passes {
    SLUICE_PASSES_AUTO, /* where an iteration then reads less; never when deterministic */
    SLUICE_PASSES_PLAIN,
    SLUICE_PASSES_FUSED /* SLC_ERR_USAGE where no layout closes rows early enough */
};
/* Whether each thread that computes is bound to a processor, while it does. */
enum sluice_pin {
    SLUICE_PIN_AUTO, /* on several NUMA nodes, with a thread for every core */
    SLUICE_PIN_NEVER,
    SLUICE_PIN_ALWAYS /* where there are enough processors */
};
enum sluice_stop {
    SLUICE_STOP_TOLERANCE,
    SLUICE_STOP_ITERATIONS,
    SLUICE_STOP_TIME,
    SLUICE_STOP_SIGNAL
};

struct sluice_convert_options {
    uint64_t struct_bytes; /* set by the init function */
    enum sluice_dialect dialect;
    int32_t index_base;  /* -1 found out, 0 or 1 */
    uint32_t dims_order; /* 0: dims from the header or the data */
    uint64_t dims[SLUICE_MAX_ORDER];
    enum sluice_duplicates duplicates;
    enum sluice_codec codec;
    enum sluice_value value; /* SLUICE_VALUE_F32 rounds */
    uint32_t threads;        /* 0: all */
    uint64_t block_bytes;    /* target size of a block; 0: 4 MiB */
    uint64_t memory_bytes;   /* 0: 80 % of memory */
    const char *temp_folder; /* for spilled data; NULL: beside the output */
    uint64_t max_temp_bytes; /* of spilled data; 0: no limit */
    uint32_t overwrite;      /* non-zero: replace an existing store, at the very end */
    enum sluice_relabel relabel;
};

/* What a conversion decided and counted. */
struct sluice_convert_report {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    enum sluice_dialect dialect;
    uint32_t order;
    uint64_t dims[SLUICE_MAX_ORDER];
    uint32_t index_base;
    uint32_t reserved;
    uint64_t entries;        /* rows read */
    uint64_t duplicates;     /* merged into an earlier entry */
    uint64_t explicit_zeros; /* dropped */
    uint64_t nnz;            /* stored */
    uint64_t text_bytes;     /* read, decompressed */
    uint64_t store_bytes;    /* of the block file */
    double seconds;
    uint32_t relabelled_modes; /* bit n: mode n is numbered by frequency in the store */
    uint32_t reserved2;
};

SLC_API void sluice_convert_options_init(struct sluice_convert_options *options, uint64_t bytes);

/*
 * Converts the tensor `input` (text or binary, plain or compressed; "-": standard input) to the
 * store `output`. Needs: `output` does not exist, unless options->overwrite. `report` may be NULL.
 * Order: the store depends on the entries and their order alone, not on threads or memory. Errors:
 * SLC_ERR_INPUT with file, line and column for bad text; SLC_ERR_BUDGET naming the smallest budget;
 * SLC_ERR_IO, SLC_ERR_NOSPACE. Nothing is left on disk after an error.
 */
SLC_API enum slc_status sluice_convert(const char *input,
                                       const char *output,
                                       const struct sluice_convert_options *options,
                                       struct sluice_convert_report *report,
                                       struct slc_error *err);

struct sluice_generate_options {
    uint64_t struct_bytes;
    enum sluice_distribution distribution;
    enum sluice_codec codec;
    double zipf_exponent;
    uint32_t rank; /* > 0: values of a planted low-rank model; 0: integers 1 to 9 */
    uint32_t threads;
    double noise; /* standard deviation relative to the root mean square of the model's values */
    uint64_t seed;
    uint64_t block_bytes;
    uint64_t memory_bytes;
    uint32_t overwrite;
    enum sluice_relabel relabel; /* of a store */
};

SLC_API void sluice_generate_options_init(struct sluice_generate_options *options, uint64_t bytes);

/*
 * Writes a random tensor of `order` modes with `nnz` entries: a store when `output` ends in ".slc",
 * text otherwise. Order: a function of options, shape and seed alone.
 * Errors: SLC_ERR_USAGE for shapes that cannot hold nnz entries, those of writing.
 */
SLC_API enum slc_status sluice_generate(const char *output,
                                        uint32_t order,
                                        const uint64_t *dims,
                                        uint64_t nnz,
                                        const struct sluice_generate_options *options,
                                        struct slc_error *err);

struct sluice_store;

struct sluice_store_info {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    uint32_t order;
    enum sluice_precision value_type; /* SLUICE_F32 when every value is exactly a float */
    uint64_t dims[SLUICE_MAX_ORDER];
    uint64_t nnz;
    double norm; /* 2-norm of all values */
    uint64_t block_count;
    uint64_t store_bytes; /* of the block file */
    uint64_t content_sum; /* identifies the nonzeros as the store numbers them, in any order */
    enum sluice_codec codec;
    uint32_t relabelled_modes; /* bit n: the store numbers the indices of mode n its own way */
};

/*
 * Opens a finished store and validates manifest, header and index.
 * Owns: the caller closes *ret_store with sluice_store_close, which takes NULL.
 * Errors: SLC_ERR_FORMAT (not a store), SLC_ERR_UNSUPPORTED, SLC_ERR_DAMAGED, SLC_ERR_IO.
 */
SLC_API enum slc_status
sluice_store_open(const char *path, struct sluice_store **ret_store, struct slc_error *err);
SLC_API void sluice_store_close(struct sluice_store *store);

SLC_API enum slc_status sluice_store_info(const struct sluice_store *store,
                                          struct sluice_store_info *info,
                                          struct slc_error *err);

struct sluice_check_options {
    uint64_t struct_bytes;
    uint32_t fast;    /* non-zero: checksums only, nothing is decoded */
    uint32_t threads; /* 0: all */
    uint64_t memory_bytes;
    uint32_t max_findings; /* stop after so many; 0: 64 */
    uint32_t reserved;
    /* Called for each fault found, from one thread at a time; NULL to count only. */
    void (*found)(void *context, const struct slc_error *fault);
    void *context;
};

SLC_API void sluice_check_options_init(struct sluice_check_options *options, uint64_t bytes);

/*
 * Verifies a store. *ret_findings (may be NULL): faults found.
 * Errors: the status of the first fault; SLC_OK when there is none.
 */
SLC_API enum slc_status sluice_check(const char *path,
                                     const struct sluice_check_options *options,
                                     uint64_t *ret_findings,
                                     struct slc_error *err);

struct sluice_export_options {
    uint64_t struct_bytes;
    uint32_t index_base; /* of the text, 0 or 1 */
    uint32_t threads;
    uint64_t memory_bytes;
    uint32_t overwrite;
    uint32_t reserved;
};

SLC_API void sluice_export_options_init(struct sluice_export_options *options, uint64_t bytes);

/*
 * Writes a store as FROSTT text (`output` "-": standard output), values with the fewest digits that
 * read back to the same bits. *ret_lines (may be NULL): rows written.
 */
SLC_API enum slc_status sluice_export(const char *path,
                                      const char *output,
                                      const struct sluice_export_options *options,
                                      uint64_t *ret_lines,
                                      struct slc_error *err);

/* How to compute: common to plan, MTTKRP and CPD. */
struct sluice_compute_options {
    uint64_t struct_bytes;
    uint64_t memory_bytes;           /* 0: 80 % of memory */
    uint32_t threads;                /* 0: all */
    enum sluice_precision precision; /* of factors and kernels; sums of fits are f64 always */
    enum sluice_io io;
    enum sluice_schedule schedule;
    uint32_t deterministic;    /* non-zero: the same bits for any threads, I/O, codec and budget */
    uint32_t slots;            /* of the ring; 0: chosen */
    uint32_t no_cache;         /* non-zero: read every block in every pass, and hold no copies */
    enum sluice_copies copies; /* of CPD; a deterministic one has none */
    /*
     * A non-zero value stops the call: MTTKRP returns SLC_ERR_INTERRUPTED, CPD a model with
     * SLUICE_STOP_SIGNAL. May be set by a signal handler. NULL: none.
     */
    const volatile int *stop;
    enum sluice_pin pin; /* the calling thread runs where it did before when the call returns */
    enum sluice_layouts layouts;
    enum sluice_passes passes; /* of CPD */
    uint64_t io_limit;         /* bytes read a second at most; 0: no limit */
};

SLC_API void sluice_compute_options_init(struct sluice_compute_options *options, uint64_t bytes);

/* What an operation will hold in memory and read from the drive. All in bytes. */
struct sluice_plan {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    uint64_t budget_bytes;
    uint64_t minimum_bytes; /* the smallest budget that works */
    uint64_t total_bytes;   /* the sum of the parts below */
    uint64_t process_bytes;
    uint64_t index_bytes;
    uint64_t factor_bytes;
    uint64_t output_bytes;
    uint64_t dense_bytes;
    uint64_t scratch_bytes;
    uint64_t decoder_bytes;
    uint64_t slot_bytes; /* of each of slot_count slots */
    uint64_t cache_bytes;
    uint64_t iteration_bytes;      /* of the blocks of all passes of an iteration */
    uint64_t iteration_read_bytes; /* what is read of them once the cache is filled */
    uint32_t slot_count;
    uint32_t threads;
    uint32_t passes; /* per iteration, rounded up */
    uint32_t reserved;
    uint64_t label_bytes;  /* while rows of a relabelled mode are moved */
    uint64_t copies_bytes; /* of copies per mode, 0: none */
    double mean_passes;    /* per iteration: halves where passes update two modes */
};

/*
 * Plans sluice_cpd with this rank. `plan` is filled in after SLC_ERR_BUDGET, too; with
 * zeros where the indices of its layouts alone are more than the budget.
 * Cost: one look at the index. Errors: SLC_ERR_BUDGET naming the smallest budget, SLC_ERR_USAGE.
 */
SLC_API enum slc_status sluice_cpd_plan(const struct sluice_store *store,
                                        uint32_t rank,
                                        const struct sluice_compute_options *options,
                                        struct sluice_plan *plan,
                                        struct slc_error *err);

/*
 * Matricized tensor times Khatri-Rao product.
 * Math: output(i, r) = sum over nonzeros x with index i in `mode` of x * product over m != mode of
 * factors[m](i_m, r) (Kolda and Bader, SIAM Review 2009, section 2.6).
 * Shapes: factors[m] is dims[m] x rank (factors[mode] may be NULL), output dims[mode] x rank.
 * Owns: all arrays are the caller's; they are copied in and out.
 * Order: as options->deterministic says; otherwise to rounding of reordered sums.
 * Cost: one pass over the store, nnz * rank * order multiply-adds.
 * Errors: SLC_ERR_USAGE, SLC_ERR_INPUT (a number that is not finite), SLC_ERR_BUDGET, SLC_ERR_IO,
 * SLC_ERR_DAMAGED with file, block and offset, SLC_ERR_INTERRUPTED; `output` is unchanged then.
 */
SLC_API enum slc_status sluice_mttkrp(const struct sluice_store *store,
                                      uint32_t mode,
                                      uint32_t rank,
                                      const double *const *factors,
                                      double *output,
                                      const struct sluice_compute_options *options,
                                      struct slc_error *err);

struct sluice_ttv_options {
    uint64_t struct_bytes;
    enum sluice_codec codec; /* of the store that is written */
    uint32_t overwrite;      /* non-zero: replace an existing store, at the very end */
    uint64_t block_bytes;    /* target size of a block; 0: 4 MiB */
    const char *temp_folder; /* for what is sorted beyond memory; NULL: beside the output */
    uint64_t max_temp_bytes; /* of that; 0: no limit */
    uint32_t sort;           /* non-zero: sort sums that come in the order of the result, too */
    enum sluice_relabel relabel;
    /*
     * memory_bytes, threads, io, schedule, io_limit and stop; NULL: the defaults. Sums that come
     * largest block first are sorted. `stop` is looked at while blocks are read.
     */
    const struct sluice_compute_options *compute;
};

SLC_API void sluice_ttv_options_init(struct sluice_ttv_options *options, uint64_t bytes);

/* What a product with vectors came to. */
struct sluice_ttv_report {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    uint32_t order;        /* of the result; 0: a number */
    uint32_t sorted;       /* sums were sorted, for want of a layout with whole fibers or memory */
    uint64_t dims[SLUICE_MAX_ORDER];
    double number;
    uint64_t nnz;         /* of the store that was written */
    uint64_t store_bytes; /* of its block file */
    uint64_t bytes_read;  /* from the drive */
    uint64_t fibers;      /* of the layout with whole fibers that was read, not empty; 0: another */
};

/*
 * Tensor times vectors, in one mode or more.
 * Math: Y = X x_n v, y(f) = sum over the nonzeros x of mode-n fiber f of x * v(i_n) (Kolda and
 * Bader, SIAM Review 2009, section 2.5: the contracted product), for each mode that has a vector.
 * Shapes: vectors[n] is NULL, for a mode that is left, or has dims[n] finite numbers.
 * `output` is a store of the modes that are left, in their order; NULL where every mode has a
 * vector: the result is then report->number. Else `report` may be NULL.
 * Needs: `output` does not exist, unless options->overwrite.
 * Owns: vectors are the caller's, and copied.
 * Order: sums in f64 in the order of the layout that is read: the same bits for any threads,
 * memory, I/O and schedule. That is the layout with whole fibers of the first mode with a vector
 * that has one (sluice layout --fiber), from which nothing has to be sorted.
 * Cost: one pass over the store, a multiply-add per nonzero and mode, writing the result.
 * Errors: SLC_ERR_USAGE (no vector at all; no output for a store, or one for a number),
 * SLC_ERR_INPUT (a number that is not finite, or a sum beyond f64), SLC_ERR_BUDGET naming the
 * smallest budget, SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_DAMAGED with file, block and offset,
 * SLC_ERR_INTERRUPTED. Nothing is left on disk then.
 */
SLC_API enum slc_status sluice_ttv(const struct sluice_store *store,
                                   const double *const *vectors,
                                   const char *output,
                                   const struct sluice_ttv_options *options,
                                   struct sluice_ttv_report *report,
                                   struct slc_error *err);

struct sluice_ttm_options {
    uint64_t struct_bytes;
    const char *temp_folder; /* for what is sorted beyond memory; NULL: beside the output */
    uint32_t elements;       /* non-zero: add each nonzero to its row in memory */
    uint32_t reserved;
    /*
     * memory_bytes, threads, precision, io, pin, io_limit and stop; NULL: the defaults. Blocks are
     * read in the order of the file.
     */
    const struct sluice_compute_options *compute;
};

SLC_API void sluice_ttm_options_init(struct sluice_ttm_options *options, uint64_t bytes);

/* What a product with a matrix came to. */
struct sluice_ttm_report {
    uint64_t struct_bytes;  /* set by the caller to sizeof of the struct before the call */
    uint64_t fibers;        /* that have nonzeros: rows of the result */
    uint64_t bytes_read;    /* from the drive */
    uint64_t bytes_written; /* of both files */
    uint32_t sorted;        /* a temporary store was made, for want of a layout with whole fibers */
    uint32_t reserved;
};

/*
 * Tensor times matrix, as files that may be larger than memory.
 * Math: y(f, r) = sum over the nonzeros x of mode-n fiber f of x * matrix(i_n, r), for the fibers
 * of `mode` that have nonzeros.
 * Shapes: matrix is dims[mode] x columns. The folder `output` gets coords.npy, int64, fibers x
 * (order - 1): the indices of each fiber in the other modes; and rows.npy, fibers x columns, of
 * the precision of the options. Files of an earlier result are replaced when both are complete.
 * Owns: the matrix is the caller's, and copied.
 * Order: fibers come in the order of the layout that is read, and the same layout gives the same
 * bytes for any threads, memory and I/O.
 * Cost: one pass over the store, nnz * columns multiply-adds, writing the result; where the store
 * has no layout with whole fibers of the mode (sluice layout --fiber), a sort of it into
 * OUTPUT.fibers.tmp, which is removed at the end.
 * Errors: SLC_ERR_USAGE, SLC_ERR_INPUT (a number that is not finite), SLC_ERR_BUDGET, SLC_ERR_IO,
 * SLC_ERR_NOSPACE, SLC_ERR_DAMAGED with file, block and offset, SLC_ERR_UNSUPPORTED (a mode too
 * long to be sorted for), SLC_ERR_INTERRUPTED; an earlier result is as it was then.
 */
SLC_API enum slc_status sluice_ttm(const struct sluice_store *store,
                                   uint32_t mode,
                                   uint32_t columns,
                                   const double *matrix,
                                   const char *output,
                                   const struct sluice_ttm_options *options,
                                   struct sluice_ttm_report *report,
                                   struct slc_error *err);

/* One completed iteration. */
struct sluice_cpd_iteration {
    uint32_t iteration; /* from 1 */
    uint32_t singular;  /* bit n: the Gram matrix of mode n was singular, a pseudo-inverse served */
    double fit;
    double delta; /* change of fit; the fit itself in the first iteration */
    double seconds;
    uint64_t bytes_read; /* from the drive */
};

struct sluice_cpd_options {
    uint64_t struct_bytes;
    uint32_t iterations; /* at most; default 50 */
    uint32_t mode_order_set;
    double tolerance;        /* on |change of fit|; default 1e-5; 0: none */
    double max_seconds;      /* looked at between passes and while copies are made; 0: none */
    double regularization;   /* added to the diagonal of the Gram matrices; default 0 */
    uint64_t seed;           /* of the uniform random start; default 0 */
    const char *init_folder; /* start from mode-1.npy, .. in this folder instead; NULL: random */
    /* Order of updates, where mode_order_set; else that of the modes, or one by which passes that
     * update two modes read less. */
    uint32_t mode_order[SLUICE_MAX_ORDER];
    /* Called after every iteration by the calling thread; may be NULL. */
    void (*iteration)(void *context, const struct sluice_cpd_iteration *iteration);
    void *context;
    const struct sluice_compute_options *compute; /* NULL: the defaults */
};

SLC_API void sluice_cpd_options_init(struct sluice_cpd_options *options, uint64_t bytes);

/* A finished decomposition: sum over r of lambda[r] times the outer product of columns r. */
struct sluice_cpd;

/*
 * CP decomposition by alternating least squares.
 * Math: A(n) = X_(n) (Khatri-Rao of the others) V(n)^-1 for each mode in turn; fit =
 * 1 - ||X - M|| / ||X||. Columns come with 2-norm 1, weights in lambda, descending, signs fixed.
 * Needs: 1 <= rank <= 4096.
 * Owns: the caller destroys *ret_model with sluice_cpd_destroy, which takes NULL.
 * Order: as options->compute->deterministic says; the same seed gives the same result to rounding.
 * Cost: N passes over the store per iteration, or down to N/2 where passes update two modes.
 * Errors: SLC_ERR_NUMERIC for a tensor without nonzeros; SLC_ERR_BUDGET, SLC_ERR_IO, ..
 */
SLC_API enum slc_status sluice_cpd(const struct sluice_store *store,
                                   uint32_t rank,
                                   const struct sluice_cpd_options *options,
                                   struct sluice_cpd **ret_model,
                                   struct slc_error *err);
SLC_API void sluice_cpd_destroy(struct sluice_cpd *model);

SLC_API uint32_t sluice_cpd_order(const struct sluice_cpd *model);
SLC_API uint32_t sluice_cpd_rank(const struct sluice_cpd *model);
SLC_API double sluice_cpd_fit(const struct sluice_cpd *model);
SLC_API uint32_t sluice_cpd_iterations(const struct sluice_cpd *model);
SLC_API enum sluice_stop sluice_cpd_stop(const struct sluice_cpd *model);
/* Copies the weights into lambda[rank]. */
SLC_API void sluice_cpd_lambda(const struct sluice_cpd *model, double *lambda);
/* Rows of the factor of `mode` (below the order): dims[mode]. */
SLC_API uint64_t sluice_cpd_rows(const struct sluice_cpd *model, uint32_t mode);
/* Copies the factor of `mode` (below the order) into factor[rows * rank]. */
SLC_API void sluice_cpd_factor(const struct sluice_cpd *model, uint32_t mode, double *factor);
/* Writes the model; each file is replaced atomically. Errors: SLC_ERR_IO, SLC_ERR_NOSPACE. */
SLC_API enum slc_status sluice_cpd_save(const struct sluice_cpd *model,
                                        enum sluice_model_form form,
                                        const char *path,
                                        struct slc_error *err);

#ifdef __cplusplus
}
#endif
#endif
