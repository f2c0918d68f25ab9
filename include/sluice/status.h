/* Status codes and the error record of libsluice.
 *
 * Every function that can fail returns an enum sluice_status. Its last argument is a struct
 * sluice_error of the caller, or NULL. A record that already has a fault is not overwritten:
 * initialize the record with SLUICE_ERROR_INIT before every operation. The comment of each function
 * lists its statuses and the state of its outputs on error. */
#ifndef SLUICE_STATUS_H
#define SLUICE_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_API __attribute__((visibility("default")))

/* Classes of errors, by the action that they require. The command sluice maps each class to an exit
 * code. */
enum sluice_status {
    SLUICE_OK = 0,
    SLUICE_ERR_USAGE,  /* an argument or option is out of range or contradicts another */
    SLUICE_ERR_INPUT,  /* the input is malformed; `line` and `column` locate the fault */
    SLUICE_ERR_FORMAT, /* not a sluice file, or contents that no version of sluice writes */
    /* valid, but not supported by this version or beyond a documented limit */
    SLUICE_ERR_UNSUPPORTED,
    SLUICE_ERR_BUDGET,  /* the memory or disk budget is too small; the message states the minimum */
    SLUICE_ERR_IO,      /* the operating system refused or failed a file operation */
    SLUICE_ERR_NOSPACE, /* the disk is full or a quota is exceeded */
    SLUICE_ERR_DAMAGED, /* a checksum or a count does not match: the file was altered */
    SLUICE_ERR_MEMORY,  /* an allocation failed */
    SLUICE_ERR_SYSTEM,  /* the system refused a thread, a clock or another resource */
    SLUICE_ERR_NUMERIC, /* the operation is not defined for these numbers */
    SLUICE_ERR_INTERRUPTED, /* stopped on request: by `stop` or by a callback */
    SLUICE_ERR_TIME_LIMIT   /* stopped by the time limit */
};

/* Value of a number in struct sluice_error (line, column, block, offset) that does not apply. */
#define SLUICE_NOWHERE UINT64_MAX

/* One fault. `message` is a sentence with the expected and the actual value, in UTF-8, without a
 * newline. Locations that do not apply are SLUICE_NOWHERE, or "" for `file`. `field` names the
 * option, argument or function that is wrong or must change, such as "memory_bytes"; `message` does
 * not repeat this name. `other_field` names a second option, argument or function. `field` and
 * `other_field` are static texts, or "" if they do not apply. */
struct sluice_error {
    enum sluice_status status;
    int system_errno; /* errno of the failed system call, or 0 */
    uint64_t line;    /* line of a text input, from 1 */
    uint64_t column;  /* byte within the line, from 1 */
    uint64_t block;   /* block of a block file, from 0 */
    uint64_t offset;  /* byte offset in the file */
    const char *field, *other_field;
    char file[512]; /* path as passed by the caller; a path that is too long loses its beginning */
    char message[1024];
};

#define SLUICE_ERROR_INIT                                                                          \
    {                                                                                              \
        SLUICE_OK, 0, SLUICE_NOWHERE, SLUICE_NOWHERE, SLUICE_NOWHERE, SLUICE_NOWHERE, "", "", "",  \
            ""                                                                                     \
    }

/* Returns the short lower-case name of a status, such as "ok" or "time-limit". Returns "unknown"
 * for a number that is not a status. Never NULL.
 * Ownership: the text is static. Cost: constant. */
SLUICE_API const char *sluice_status_name(enum sluice_status status);

/* Formats a fault as one line of text. Writes "FILE:LINE:COLUMN: MESSAGE (FIELD)" or "FILE: block
 * B, offset O: MESSAGE (FIELD)", with the parts that apply, to `text`. Writes at most `text_bytes`
 * bytes, including the terminating zero. Returns the length of the whole line in bytes, without the
 * terminating zero, as snprintf does.
 * Ownership: the caller owns `text`, which may be NULL if `text_bytes` is 0. Cost: constant. */
SLUICE_API int sluice_error_format(const struct sluice_error *err, char *text, uint64_t text_bytes);

#ifdef __cplusplus
}
#endif
#endif
