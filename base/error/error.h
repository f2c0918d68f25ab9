/*
 * Filling in the error record. See base/error/status.h for the record itself.
 *
 * The first fault wins: on a record that already holds one, these functions change nothing and
 * return the status they were given, so clean-up code may fail without hiding the cause.
 */
#ifndef SLC_BASE_ERROR_H
#define SLC_BASE_ERROR_H

#include "base/error/status.h"

#include <stdbool.h>

#define SLC_NODISCARD                       __attribute__((warn_unused_result))
#define SLC_PRINTF(format_index, first_arg) __attribute__((format(printf, format_index, first_arg)))

/* Returns from the calling function with the status of a call that failed. For functions that have
   nothing to release at that point. */
#define SLC_TRY(...)                                                                               \
    do {                                                                                           \
        enum slc_status slc_try_status = (__VA_ARGS__);                                            \
                                                                                                   \
        if (slc_try_status != SLC_OK) {                                                            \
            return slc_try_status;                                                                 \
        }                                                                                          \
    } while (0)

/* Assigns the status of a call to `status` unless an earlier step failed: then nothing is called.
   For functions that have something to release, which return `status` at their end. */
#define SLC_THEN(status, ...)                                                                      \
    do {                                                                                           \
        if ((status) == SLC_OK) {                                                                  \
            (status) = (__VA_ARGS__);                                                              \
        }                                                                                          \
    } while (0)

/* Short lower-case name of a status, "ok" to "time-limit". Never NULL. */
const char *slc_status_name(enum slc_status status);

/* How an interface spells a field, such as "--memory"; "" for SLC_FIELD_NONE and unknown ones. */
typedef const char *slc_field_name_fn(enum slc_error_field field);

/*
 * Writes "FILE:LINE:COLUMN: MESSAGE (FIELD)" or "FILE: block B, offset O: MESSAGE" (the parts that
 * apply) into `text`, always terminated. `name` NULL: without fields. Returns the length it wanted,
 * like snprintf.
 */
int slc_error_format(const struct slc_error *err,
                     slc_field_name_fn *name,
                     char *text,
                     uint64_t text_bytes);

/* Records `status` with a printf-style message. `err` may be NULL. Returns `status`. */
enum slc_status slc_fail(struct slc_error *err, enum slc_status status, const char *format, ...)
    SLC_PRINTF(3, 4);

/* As slc_fail, for a fault of `file`. */
enum slc_status slc_fail_file(struct slc_error *err,
                              enum slc_status status,
                              const char *file,
                              const char *format,
                              ...) SLC_PRINTF(4, 5);

/*
 * SLC_OK where memory was allocated, else SLC_ERR_MEMORY and "no memory PURPOSE"; `format` spells
 * the purpose, such as "for %u buckets". `err` may be NULL.
 */
enum slc_status slc_check_memory(bool allocated, struct slc_error *err, const char *format, ...)
    SLC_PRINTF(3, 4) SLC_NODISCARD;

/*
 * As slc_fail, for a fault that an option or argument caused or can cure. The message says what to
 * do in words that suit every interface, each of which adds the name of the field: "cannot start 8
 * threads: use fewer" becomes "cannot start 8 threads: use fewer (-t)".
 */
enum slc_status slc_fail_field(struct slc_error *err,
                               enum slc_status status,
                               enum slc_error_field field,
                               const char *format,
                               ...) SLC_PRINTF(4, 5);
enum slc_status slc_fail_fields(struct slc_error *err,
                                enum slc_status status,
                                enum slc_error_field field,
                                enum slc_error_field other,
                                const char *format,
                                ...) SLC_PRINTF(5, 6);

/*
 * Records a failed system call on `file`: SLC_ERR_NOSPACE for ENOSPC and EDQUOT, SLC_ERR_MEMORY for
 * ENOMEM, SLC_ERR_IO otherwise. The message is "ACTION: strerror text". `file` may be NULL.
 */
enum slc_status
slc_fail_errno(struct slc_error *err, int system_errno, const char *file, const char *format, ...)
    SLC_PRINTF(4, 5);

/* SLC_OK where `result` of a system call is not negative, else slc_fail_errno of -result. */
enum slc_status
slc_check_call(int result, struct slc_error *err, const char *file, const char *format, ...)
    SLC_PRINTF(4, 5) SLC_NODISCARD;

/*
 * Records SLC_ERR_BUDGET: "WHAT needs N MiB of memory or more; the budget is M" and
 * SLC_FIELD_MEMORY, the need rounded up to a MiB that is enough. `format` says what needs it and
 * where the memory goes.
 */
enum slc_status slc_fail_budget(struct slc_error *err,
                                uint64_t budget_bytes,
                                uint64_t need_bytes,
                                const char *format,
                                ...) SLC_PRINTF(4, 5);

/* Hands on a fault that was recorded elsewhere, if there is one. Returns its status. */
enum slc_status slc_error_pass(struct slc_error *err, const struct slc_error *fault);

/* Adds a location to a recorded fault; fields that are already set stay. `file` may be NULL. */
void slc_error_locate_file(struct slc_error *err, const char *file);
void slc_error_locate_text(struct slc_error *err, const char *file, uint64_t line, uint64_t column);
void slc_error_locate_block(struct slc_error *err,
                            const char *file,
                            uint64_t block,
                            uint64_t offset);

/* The same for the field that the fault is about. */
void slc_error_set_field(struct slc_error *err, enum slc_error_field field);

/* Makes `err` (may be NULL) an empty record again. */
void slc_error_clear(struct slc_error *err);

/* The exit code of docs and man pages for a status. */
int slc_status_exit_code(enum slc_status status);

#endif
