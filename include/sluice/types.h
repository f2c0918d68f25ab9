/* Types that the other headers share: versions, limits, enumerations, and parts of option structs.
 *
 * Versioned structs. Every struct of options, and every struct that a function fills in, begins
 * with `struct_bytes`. Before the call, set the whole struct to zero and `struct_bytes` to the size
 * of the struct:
 *
 *     struct sluice_cpd_options options = {.struct_bytes = sizeof options};
 *
 * Zero selects the default of every option, and a NULL pointer to options selects all defaults.
 * Later versions add members at the end, so a program runs with any library of the same soname: the
 * library treats missing members as zero, fills in only the members that the caller's struct has,
 * and returns SLUICE_ERR_UNSUPPORTED if an unknown member is not zero. If struct_bytes
 * is not set, the library returns SLUICE_ERR_USAGE. A struct without struct_bytes never changes,
 * including the shared parts (sluice_run_options, sluice_output_options, ..). Structs that the
 * library passes to a callback may grow at the end. */
#ifndef SLUICE_TYPES_H
#define SLUICE_TYPES_H

#include "sluice/status.h"

#ifdef __cplusplus
#include <atomic>
typedef std::atomic<int> sluice_atomic_int;
extern "C" {
#else
#include <stdatomic.h>
typedef atomic_int sluice_atomic_int;
#endif

/* Version of these headers. sluice_version() returns the version of the library at run time. */
#define SLUICE_VERSION_MAJOR 0
#define SLUICE_VERSION_MINOR 1
#define SLUICE_VERSION_PATCH 0
#define SLUICE_VERSION       "0.1.0"

enum { SLUICE_MAX_ORDER = 16 };

/* Returns the version of the library, such as "0.1.0". Never NULL. Ownership: the text is
 * static. Cost: constant. */
SLUICE_API const char *sluice_version(void);

enum sluice_log_level { SLUICE_LOG_WARNING, SLUICE_LOG_NOTE, SLUICE_LOG_DETAIL };

/* Sets the process-wide callback for messages that are not errors, such as warnings. `message` is
 * one line without a newline. NULL, the default, discards messages.
 * Threads: call this function while no other function of the library runs. Messages come from any
 * thread, but the library calls the callback from one thread at a time.
 * Ownership: `message` is valid during the callback; `context` must be valid as long as the
 * callback is set.
 * Cost: constant. */
SLUICE_API void
sluice_log_to(void (*message)(void *context, enum sluice_log_level level, const char *message),
              void *context);

/* Parses a size in bytes as the command does. Accepts "512MiB", "4G" (GiB), "200MB" (decimal),
 * "50%" (of physical memory) and plain numbers.
 * Errors: SLUICE_ERR_USAGE. On error, *ret_bytes is unchanged. Cost: constant. */
SLUICE_API enum sluice_status
sluice_parse_size(const char *text, uint64_t *ret_bytes, struct sluice_error *err);

/* Progress of a call. The struct is valid during the callback. */
struct sluice_progress {
    const char *phase;  /* short name of the current phase, such as "sort" */
    uint64_t done;      /* bytes, nonzeros or blocks, depending on the phase */
    uint64_t total;     /* final value of `done`; 0 if unknown */
    uint32_t iteration; /* iteration of a decomposition, from 1; 0 for other calls */
    uint32_t mode;      /* mode that a decomposition updates, from 0 */
};

/* Options of most calls: memory, threads, stop, progress. Most option structs have this
 * struct as the member `run`. */
struct sluice_run_options {
    /* Limit of the resident memory of the process, including arrays of the caller. 0 means 80 % of
     * physical memory or of the cgroup limit, whichever is smaller. A budget above that limit is
     * reduced to the limit, with a warning (sluice_log_to); plan functions only warn. */
    uint64_t memory_bytes;
    uint32_t threads; /* 0 means one thread per processor */
    /* A signal handler or another thread may set this flag to a value other than 0 to stop the
     * call, which then soon returns SLUICE_ERR_INTERRUPTED (sluice_cpd: SLUICE_OK). The library
     * sets the flag to 1 if a callback stops the call. NULL means no flag. */
    sluice_atomic_int *stop;
    /* Called from time to time, by one thread at a time. A return value other than 0 stops the
     * call. NULL means no callback. */
    int (*progress)(void *context, const struct sluice_progress *progress);
    void *context; /* passed to every callback of the options */
};

/* Type of factor matrices and values. Sums are always f64. In options, 0 means f64. */
enum sluice_precision { SLUICE_F32 = 1, SLUICE_F64 = 2 };

/* Encoding of blocks. */
enum sluice_codec {
    SLUICE_CODEC_DEFAULT, /* packed, or the codec of the source store for a slice or permutation */
    SLUICE_CODEC_PACKED,
    SLUICE_CODEC_LZ4,
    SLUICE_CODEC_BLCO
};

/* Selects whether a store numbers indices by frequency. The numbering changes only the size of the
 * store: arrays, files and text use the numbering of the input. */
enum sluice_relabel {
    /* no numbering by frequency; for a slice or permutation, as in the source store */
    SLUICE_RELABEL_DEFAULT,
    SLUICE_RELABEL_NONE,
    SLUICE_RELABEL_FREQUENCY /* number by frequency if the numbering makes the store smaller */
};

/* The mode whose fibers the order of nonzeros keeps together. */
enum sluice_fibers {
    SLUICE_FIBERS_AUTO, /* the mode with the fewest fiber runs, or none if the runs are short */
    SLUICE_FIBERS_NONE,
    SLUICE_FIBERS_MODE /* the mode fiber_mode */
};

/* Options for writing a store. Option structs have this struct as the member `output`. */
struct sluice_output_options {
    enum sluice_codec codec;
    enum sluice_relabel relabel;
    enum sluice_fibers fibers;
    uint32_t fiber_mode; /* mode for SLUICE_FIBERS_MODE, from 0 */
    /* With SLUICE_FIBERS_MODE, fibers are kept together in runs of 2^fiber_bits indices; fiber_bits
     * is 1 to 24, and 0 means 12. */
    uint32_t fiber_bits;
    uint32_t overwrite;   /* if not 0, a complete new store replaces an existing store */
    uint64_t block_bytes; /* target size of a block; 0 means 4 MiB */
    /* folder for data that exceeds memory; NULL means the folder of the output */
    const char *temp_folder;
    uint64_t max_temp_bytes; /* limit of temporary data; 0 means no limit */
};

/* The first index of a text or binary input or output. */
enum sluice_index_base {
    SLUICE_BASE_AUTO, /* detected for an input; one for an output */
    SLUICE_BASE_ZERO,
    SLUICE_BASE_ONE
};

/* Format of an input. */
enum sluice_dialect {
    SLUICE_DIALECT_AUTO,       /* detected from the first bytes and lines */
    SLUICE_DIALECT_TNS,        /* FROSTT and SPLATT: rows without a header */
    SLUICE_DIALECT_PARTI,      /* order, dimensions, rows */
    SLUICE_DIALECT_FROSTT_EXT, /* "# extended FROSTT format" */
    /* sptensor, with indices from 0 unless the header states another base */
    SLUICE_DIALECT_GENTEN,
    SLUICE_DIALECT_TENSORTOOLBOX, /* sptensor, with indices from 1 */
    SLUICE_DIALECT_TACO,          /* %%MatrixMarket tensor coordinate */
    SLUICE_DIALECT_MATRIXMARKET,  /* %%MatrixMarket matrix coordinate */
    SLUICE_DIALECT_SPLATT_BIN,    /* SPLATT binary */
    SLUICE_DIALECT_GENTEN_BIN,    /* GenTen binary */
    SLUICE_DIALECT_ALTO_BIN,      /* ALTO binary; never detected */
    SLUICE_DIALECT_NPZ,           /* pydata/sparse (COO) or scipy.sparse (COO, CSR, CSC) */
    SLUICE_DIALECT_NPY,           /* coordinates; the values are in another file */
    SLUICE_DIALECT_NPY_ROWS,      /* coordinates with one row per nonzero */
    SLUICE_DIALECT_NPY_COLUMNS,   /* coordinates with one column per nonzero */
    SLUICE_DIALECT_NPY_DENSE,     /* a dense array */
    SLUICE_DIALECT_TENSOR,        /* text of a dense tensor (Tensor Toolbox) */
    SLUICE_DIALECT_CSV            /* a table; in reports only */
};

/* Order of the nonzeros on disk. */
enum sluice_layout_kind { SLUICE_LAYOUT_BLCO = 1, SLUICE_LAYOUT_SORTED, SLUICE_LAYOUT_FIBER };

#ifdef __cplusplus
}
#endif
#endif
