/*
 * Status codes and the error record of libsluice.
 *
 * Every function that can fail returns an enum sluice_status and accepts, as its last argument, a
 * struct sluice_error of the caller, which may be NULL. The library fills the record once, where
 * the fault arose. A record that already holds a fault is not overwritten: start every operation
 * with SLUICE_ERROR_INIT. After an error, objects that the function would have returned are
 * unchanged.
 */
#ifndef SLUICE_STATUS_H
#define SLUICE_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_API __attribute__((visibility("default")))

/* What went wrong, by what the user has to do about it. The command maps each to an exit code. */
enum sluice_status {
    SLUICE_OK = 0,
    SLUICE_ERR_USAGE,       /* an argument or option is out of range or contradicts another */
    SLUICE_ERR_INPUT,       /* the input is malformed; line and column say where */
    SLUICE_ERR_FORMAT,      /* not a sluice file, or one that no version of sluice writes */
    SLUICE_ERR_UNSUPPORTED, /* valid, but beyond this version or a documented limit */
    SLUICE_ERR_BUDGET,  /* the memory or disk budget is too small; the message names the least */
    SLUICE_ERR_IO,      /* the operating system refused or failed a file operation */
    SLUICE_ERR_NOSPACE, /* the disk, or the permitted part of it, is full */
    SLUICE_ERR_DAMAGED, /* a checksum or a count does not match: the file was altered */
    SLUICE_ERR_MEMORY,  /* an allocation failed */
    SLUICE_ERR_SYSTEM,  /* the system refused a thread, a clock or another resource */
    SLUICE_ERR_NUMERIC, /* the numbers do not permit the operation */
    SLUICE_ERR_INTERRUPTED, /* stopped on request: by `stop` or by a callback */
    SLUICE_ERR_TIME_LIMIT   /* stopped by the time limit */
};

/* The value of a location in struct sluice_error that does not apply. */
#define SLUICE_NOWHERE UINT64_MAX

/*
 * One fault. `message` is a whole sentence with the expected and the actual value, in UTF-8,
 * without a newline. Locations that do not apply are SLUICE_NOWHERE, or "" for `file`. `field`
 * names the member of options, the argument or the function that is wrong or has to change, such as
 * "memory_bytes"; the message does not. It and `other_field`, a second one, are "" if none applies,
 * and belong to the library.
 */
struct sluice_error {
    enum sluice_status status;
    int system_errno; /* errno of the failed system call, or 0 */
    uint64_t line;    /* line of a text input, from 1 */
    uint64_t column;  /* byte within that line, from 1 */
    uint64_t block;   /* block of a block file, from 0 */
    uint64_t offset;  /* byte offset in the file */
    const char *field, *other_field;
    char file[512]; /* path as the caller gave it; a longer one is cut at its beginning */
    char message[1024];
};

#define SLUICE_ERROR_INIT                                                                          \
    {                                                                                              \
        SLUICE_OK, 0, SLUICE_NOWHERE, SLUICE_NOWHERE, SLUICE_NOWHERE, SLUICE_NOWHERE, "", "", "",  \
            ""                                                                                     \
    }

/* Returns the short lower-case name of a status, "ok" to "time-limit"; "unknown" for any other
 * number. Never NULL. */
SLUICE_API const char *sluice_status_name(enum sluice_status status);

/*
 * Writes "FILE:LINE:COLUMN: MESSAGE (FIELD)" or "FILE: block B, offset O: MESSAGE", with the parts
 * that apply, into `text`. Writes at most `text_bytes` bytes and always terminates the text.
 * Returns the length that the whole text has, as snprintf does.
 */
SLUICE_API int sluice_error_format(const struct sluice_error *err, char *text, uint64_t text_bytes);

#ifdef __cplusplus
}
#endif
#endif
