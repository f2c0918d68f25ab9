/*
 * Types that the other headers share: versions, limits, enumerations, and the parts that option
 * structs are composed of.
 *
 * Versioned structs. Every struct of options, and every struct that a function fills in, begins
 * with `struct_bytes`. Set all of the struct to zero and struct_bytes to its size before the call:
 *
 *     struct sluice_cpd_options options = {.struct_bytes = sizeof options};
 *
 * Zero is the default of every option, and a NULL pointer to options means all defaults. Later
 * versions add members at the end, so a program runs with any library of the same soname: the
 * library treats members that it does not receive as zero, fills in only the members that the
 * caller has, and returns SLUICE_ERR_UNSUPPORTED if a member that it does not know is not zero. A
 * struct without struct_bytes never changes; this includes the shared parts (sluice_run_options,
 * sluice_output_options, ..). Structs that the library passes to a callback may grow at the end.
 */
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

/* The version of these headers; sluice_version() is that of the library at run time. */
#define SLUICE_VERSION_MAJOR 0
#define SLUICE_VERSION_MINOR 1
#define SLUICE_VERSION_PATCH 0
#define SLUICE_VERSION       "0.1.0"

enum { SLUICE_MAX_ORDER = 16 };

/* Returns the version of the library, such as "0.1.0". Never NULL. */
SLUICE_API const char *sluice_version(void);

enum sluice_log_level { SLUICE_LOG_WARNING, SLUICE_LOG_NOTE, SLUICE_LOG_DETAIL };

/*
 * Sets the callback for messages that are not errors, for example that a damaged checkpoint was
 * skipped. `message` is one line without a newline. The callback serves the whole process, because
 * messages come from any thread; the library calls it from one thread at a time. NULL, the default,
 * drops messages. Call it while no other function of the library runs.
 */
SLUICE_API void
sluice_log_to(void (*message)(void *context, enum sluice_log_level level, const char *message),
              void *context);

/*
 * Parses a size as the command does, in bytes: "512MiB", "4G" (GiB), "200MB" (decimal), "50%" (of
 * physical memory) or a plain number. Errors: SLUICE_ERR_USAGE; *ret_bytes is then unchanged.
 */
SLUICE_API enum sluice_status
sluice_parse_size(const char *text, uint64_t *ret_bytes, struct sluice_error *err);

/* Progress of a call, lent for the duration of the callback. */
struct sluice_progress {
    const char *phase;  /* short name of the current phase, such as "sort" */
    uint64_t done;      /* bytes, nonzeros or blocks, as the phase counts */
    uint64_t total;     /* in the same unit; 0: unknown */
    uint32_t iteration; /* of a decomposition, from 1; otherwise 0 */
    uint32_t mode;      /* the mode that a decomposition updates */
};

/* How a call runs: the member `run` of most option structs. */
struct sluice_run_options {
    /* Bound on the resident memory of the process, arrays of the caller included, in bytes.
     * 0: 80 % of the smaller of physical memory and the cgroup limit. */
    uint64_t memory_bytes;
    uint32_t threads; /* 0: one for each processor */
    /* A signal handler or another thread may set it to a nonzero value to stop the call, which then
     * returns SLUICE_ERR_INTERRUPTED soon. The library sets it to 1 if a callback stops the call.
     * NULL: no flag. */
    sluice_atomic_int *stop;
    /* Called now and then, from one thread at a time. A nonzero return value stops
     * the call as `stop` does. NULL: no callback. */
    int (*progress)(void *context, const struct sluice_progress *progress);
    void *context; /* passed to every callback of the options */
};

/* Type of factor matrices and of values. Sums are always f64. Default of options: f64. */
enum sluice_precision { SLUICE_F32 = 1, SLUICE_F64 = 2 };

/* Encoding of blocks. */
enum sluice_codec {
    SLUICE_CODEC_DEFAULT, /* packed; in a slice or permutation, that of its source */
    SLUICE_CODEC_PACKED,
    SLUICE_CODEC_LZ4,
    SLUICE_CODEC_BLCO
};

/* Whether a store numbers indices by frequency. Only the size of the store shows it: arrays, files
 * and text always use the numbering of the input. */
enum sluice_relabel {
    SLUICE_RELABEL_DEFAULT, /* none; in a slice or permutation, as its source */
    SLUICE_RELABEL_NONE,
    SLUICE_RELABEL_FREQUENCY /* if that makes the store smaller */
};

/* Which mode's fibers a store keeps together in its order of nonzeros. */
enum sluice_fibers {
    SLUICE_FIBERS_AUTO, /* those of the mode with the fewest pieces of fibers, or none */
    SLUICE_FIBERS_NONE,
    SLUICE_FIBERS_MODE /* those of fiber_mode */
};

/* How a store is written: the member `output` of options of functions that write one. */
struct sluice_output_options {
    enum sluice_codec codec;
    enum sluice_relabel relabel;
    enum sluice_fibers fibers;
    uint32_t fiber_mode; /* with SLUICE_FIBERS_MODE, from 0 */
    /* With SLUICE_FIBERS_MODE: fibers are kept together in pieces of 2^fiber_bits indices, 1 to 24
     * bits; 0: 12. */
    uint32_t fiber_bits;
    uint32_t overwrite;      /* nonzero: replace an existing store, as the very last step */
    uint64_t block_bytes;    /* target size of a block; 0: 4 MiB */
    const char *temp_folder; /* for data that does not fit into memory; NULL: next to the output */
    uint64_t max_temp_bytes; /* limit on that data; 0: no limit */
};

/* The first index of a text or binary input or output. */
enum sluice_index_base {
    SLUICE_BASE_AUTO, /* of input: detected; of output: one */
    SLUICE_BASE_ZERO,
    SLUICE_BASE_ONE
};

enum sluice_dialect {
    SLUICE_DIALECT_AUTO,          /* detected from the first bytes and lines */
    SLUICE_DIALECT_TNS,           /* FROSTT and SPLATT: rows only */
    SLUICE_DIALECT_PARTI,         /* order, dimensions, rows */
    SLUICE_DIALECT_FROSTT_EXT,    /* "# extended FROSTT format" */
    SLUICE_DIALECT_GENTEN,        /* sptensor, from 0 unless it says otherwise */
    SLUICE_DIALECT_TENSORTOOLBOX, /* sptensor, from 1 */
    SLUICE_DIALECT_TACO,          /* %%MatrixMarket tensor coordinate */
    SLUICE_DIALECT_MATRIXMARKET,  /* %%MatrixMarket matrix coordinate */
    SLUICE_DIALECT_SPLATT_BIN,    /* binary, SPLATT's */
    SLUICE_DIALECT_GENTEN_BIN,    /* binary, GenTen's */
    SLUICE_DIALECT_ALTO_BIN,      /* binary, ALTO's; never detected */
    SLUICE_DIALECT_NPZ,           /* pydata/sparse (COO) or scipy.sparse (COO, CSR, CSC) */
    SLUICE_DIALECT_NPY,           /* coordinates; the values are in another file */
    SLUICE_DIALECT_NPY_ROWS,      /* the same, with a row of coordinates for each nonzero */
    SLUICE_DIALECT_NPY_COLUMNS,   /* the same, with a column of coordinates for each nonzero */
    SLUICE_DIALECT_CSV            /* in reports only: a table */
};

/* Order of the nonzeros on disk. */
enum sluice_layout_kind { SLUICE_LAYOUT_BLCO = 1, SLUICE_LAYOUT_SORTED, SLUICE_LAYOUT_FIBER };

#ifdef __cplusplus
}
#endif
#endif
