/* What the parts of libsluice share: enumerations, sizes in text, names of statuses. */
#ifndef SLUICE_TYPES_H
#define SLUICE_TYPES_H

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
 * The member of an options struct, argument or function that a field of an error stands for, such
 * as "memory_bytes". "" for SLC_FIELD_NONE and unknown numbers; never NULL.
 */
SLC_API const char *sluice_field_name(enum slc_error_field field);

/*
 * Writes "FILE:LINE:COLUMN: MESSAGE (FIELD)" or "FILE: block B, offset O: MESSAGE" (the parts that
 * apply) into `text` (text_bytes, always terminated). Returns the length it wanted, like snprintf.
 */
SLC_API int sluice_error_format(const struct slc_error *err, char *text, uint64_t text_bytes);

enum sluice_log_level { SLUICE_LOG_WARNING, SLUICE_LOG_NOTE, SLUICE_LOG_DETAIL };

/*
 * Where messages go that are no errors, such as of a checkpoint that is damaged beside one that is
 * whole: `message` is one line without its end. For the whole process; NULL, the default, drops
 * them. Called by any thread, one call at a time. Needs: no other call of the library meanwhile.
 */
SLC_API void
sluice_log_to(void (*message)(void *context, enum sluice_log_level level, const char *message),
              void *context);

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
/* Whether nonzeros of a fiber are kept together in the order of a store. */
enum sluice_fibers {
    SLUICE_FIBERS_AUTO, /* of the mode that the nonzeros suggest, or of none */
    SLUICE_FIBERS_NONE,
    SLUICE_FIBERS_MODE /* of the mode that is said */
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
    SLUICE_DIALECT_ALTO_BIN,      /* ALTO's, which has to be said */
    SLUICE_DIALECT_NPZ,           /* of pydata/sparse (COO) or scipy.sparse (COO, CSR, CSC) */
    SLUICE_DIALECT_NPY,           /* coordinates; values are in another file */
    SLUICE_DIALECT_NPY_ROWS,      /* the same, with a row of coordinates per nonzero .. */
    SLUICE_DIALECT_NPY_COLUMNS,   /* .. or a column */
    SLUICE_DIALECT_CSV            /* of reports: a table, which options say what to make of */
};
/* What becomes of rows of a table with an empty field in a column that is used. */
enum sluice_missing {
    SLUICE_MISSING_ERROR,
    SLUICE_MISSING_SKIP,
    SLUICE_MISSING_NAME /* the empty string is a name like others */
};
enum sluice_layout { SLUICE_LAYOUT_BLCO = 1, SLUICE_LAYOUT_SORTED, SLUICE_LAYOUT_FIBER };
enum sluice_distribution {
    SLUICE_DIST_UNIFORM,
    SLUICE_DIST_ZIPF,          /* low indices are frequent */
    SLUICE_DIST_ZIPF_SHUFFLED, /* the same with indices permuted */
    SLUICE_DIST_BEST,          /* a full box: as few rows as so many nonzeros can touch */
    SLUICE_DIST_WORST          /* no index of any mode twice */
};
enum sluice_model_form {
    SLUICE_MODEL_NPY,     /* a folder with mode-1.npy, mode-2.npy, .. and lambda.npy */
    SLUICE_MODEL_SPLATT,  /* STEMmode1.mat, .. and STEMlambda.mat */
    SLUICE_MODEL_KTENSOR, /* one text file, Tensor Toolbox */
    SLUICE_MODEL_CSV,     /* a folder with mode-1.csv, .. and lambda.csv, with names of indices */
    SLUICE_MODEL_MATLAB,  /* one .mat file of version 5: a struct `model` of lambda and U */
    SLUICE_MODEL_AUTO     /* of exports: as the output ends, .mat or .ktensor */
};
/* What a tensor is written as. */
enum sluice_export_form {
    SLUICE_EXPORT_AUTO,       /* as the output ends: .bin, .npz, .mat; text by any other name */
    SLUICE_EXPORT_TNS,        /* FROSTT text */
    SLUICE_EXPORT_SPLATT_BIN, /* SPLATT's .bin */
    SLUICE_EXPORT_NPZ,        /* pydata/sparse's .npz, whose rows ascend */
    SLUICE_EXPORT_SCIPY,      /* scipy.sparse's COO in an .npz, of two modes */
    SLUICE_EXPORT_MATLAB      /* .mat of version 5: a struct `tensor` of subs, vals, size */
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
/* What computes. */
enum sluice_device {
    SLUICE_DEVICE_CPU,
    SLUICE_DEVICE_AUTO, /* a GPU, where there is one that can do what is asked; sluice_log_to tells
                           why it is the CPU */
    SLUICE_DEVICE_GPU
};
enum { SLUICE_MAX_DEVICES = 16 };
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

#ifdef __cplusplus
}
#endif
#endif
