/* Internal status codes and error record. include/sluice/status.h declares the public status codes
 * and error record.
 *
 * Every function that can fail returns an enum slc_status and accepts, as its last argument, a
 * struct slc_error * of the caller, which may be NULL. The function in which a fault occurs fills
 * in the record, and later failures do not overwrite it. The caller must therefore initialize the
 * record with SLC_ERROR_INIT before every operation. */
#ifndef SLC_BASE_STATUS_H
#define SLC_BASE_STATUS_H

#include <stdint.h>

/* Classes of errors, distinguished by the action that they require. The command maps each class to
 * an exit code. */
enum slc_status {
    SLC_OK = 0,
    SLC_ERR_USAGE, /* an argument or option is out of range or contradicts another (exit 2) */
    SLC_ERR_INPUT, /* the user's data is malformed; `line` and `column` locate the fault (exit 3) */
    SLC_ERR_FORMAT, /* not a sluice file, or a file that no version of sluice writes (exit 3) */
    /* valid data that this version does not support or that exceeds a limit (exit 3) */
    SLC_ERR_UNSUPPORTED,
    SLC_ERR_BUDGET,  /* the memory or disk budget is too small; the message states a sufficient
                      * budget (exit 4) */
    SLC_ERR_IO,      /* the operating system refused or failed a file operation (exit 5) */
    SLC_ERR_NOSPACE, /* the disk is full, or a quota or file size limit is exceeded (exit 5) */
    SLC_ERR_DAMAGED, /* a checksum or a count does not match: the store was altered (exit 5) */
    SLC_ERR_MEMORY,  /* an allocation failed (exit 1) */
    SLC_ERR_SYSTEM,  /* the system refused a thread, a clock or another resource (exit 1) */
    /* the operation is not defined for the given numbers, such as a tensor of norm 0 (exit 1) */
    SLC_ERR_NUMERIC,
    SLC_ERR_INTERRUPTED, /* stopped on request (exit 130 or 143) */
    SLC_ERR_TIME_LIMIT   /* stopped by the time limit (exit 75) */
};

/* Options and arguments that an error may concern. The message does not name the field, because
 * each interface has its own name for it (slc_field_name_fn). */
enum slc_error_field {
    SLC_FIELD_NONE = 0,
    SLC_FIELD_MEMORY,
    SLC_FIELD_THREADS,
    SLC_FIELD_OVERWRITE,
    SLC_FIELD_RESTART,
    SLC_FIELD_MAX_TEMP,
    SLC_FIELD_DUPLICATES,
    SLC_FIELD_INDEX_BASE,
    SLC_FIELD_DIMS,
    SLC_FIELD_NNZ,
    SLC_FIELD_VALUE,
    SLC_FIELD_VALUE_COLUMN,
    SLC_FIELD_TRANSFORM,
    SLC_FIELD_COLUMNS,
    SLC_FIELD_DELIMITER,
    SLC_FIELD_MISSING,
    SLC_FIELD_NULL,
    SLC_FIELD_DIALECT,
    SLC_FIELD_FORM,
    SLC_FIELD_FIXED_MODES,
    SLC_FIELD_IO,
    SLC_FIELD_SLOTS,
    SLC_FIELD_LAYOUTS,
    SLC_FIELD_COPIES,
    SLC_FIELD_PASSES,
    SLC_FIELD_DETERMINISTIC,
    SLC_FIELD_DEVICE,
    SLC_FIELD_DEVICES,
    SLC_FIELD_DEVICE_MEMORY,
    SLC_FIELD_DEVICE_NAME,
    SLC_FIELD_STREAMS,
    SLC_FIELD_SPLIT,
    SLC_FIELD_CHECKPOINT,
    SLC_FIELD_HOLDOUT,
    SLC_FIELD_HOLDOUT_SEED,
    SLC_FIELD_RANKS,
    SLC_FIELD_SEED,
    SLC_FIELD_SWEEP_FOLDER,
    SLC_FIELD_SORTED_LAYOUT,
    SLC_FIELD_FIBER_LAYOUT,
    SLC_FIELD_GATHER_LAYOUT,
    SLC_FIELD_VALUES_FILE
};

/* Value of a location in struct slc_error that is not set. */
#define SLC_NOWHERE UINT64_MAX

/* One fault. `message` is one line of UTF-8 without a newline; it states the expected and the
 * actual value. Locations that are not set are SLC_NOWHERE, or "" for `file`. */
struct slc_error {
    enum slc_status status;
    int system_errno;                 /* errno value of the failed system call, or 0 */
    uint64_t line;                    /* 1-based line of a text input */
    uint64_t column;                  /* 1-based byte column within that line */
    uint64_t block;                   /* 0-based block of a block file */
    uint64_t offset;                  /* byte offset in the file */
    enum slc_error_field field;       /* option or argument that the fault concerns */
    enum slc_error_field other_field; /* second option or argument */
    /* path as the user passed it; if the path is too long, ".." and its end */
    char file[512];
    char message[1024];
};

#define SLC_ERROR_INIT                                                                             \
    {                                                                                              \
        SLC_OK, 0, SLC_NOWHERE, SLC_NOWHERE, SLC_NOWHERE, SLC_NOWHERE, SLC_FIELD_NONE,             \
            SLC_FIELD_NONE, "", ""                                                                 \
    }

#endif
