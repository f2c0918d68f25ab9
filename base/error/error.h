/* Fills in the error record (base/error/status.h).
 *
 * A record keeps its first fault: if it already holds a fault, these functions leave it unchanged
 * and only return the new status. Clean-up code may therefore fail without hiding the cause. */
#ifndef SLC_BASE_ERROR_H
#define SLC_BASE_ERROR_H

#include "base/error/status.h"

#include <stdbool.h>

#define SLC_NODISCARD                       __attribute__((warn_unused_result))
#define SLC_PRINTF(format_index, first_arg) __attribute__((format(printf, format_index, first_arg)))

/* If a call fails, returns its status from the calling function. Used where nothing must be
 * released before returning. */
#define SLC_TRY(...)                                                                               \
    do {                                                                                           \
        enum slc_status slc_try_status = (__VA_ARGS__);                                            \
                                                                                                   \
        if (slc_try_status != SLC_OK) {                                                            \
            return slc_try_status;                                                                 \
        }                                                                                          \
    } while (0)

/* If `status` is SLC_OK, makes a call and assigns its status to `status`. Used in functions that
 * release resources at the end and then return `status`. */
#define SLC_THEN(status, ...)                                                                      \
    do {                                                                                           \
        if ((status) == SLC_OK) {                                                                  \
            (status) = (__VA_ARGS__);                                                              \
        }                                                                                          \
    } while (0)

/* Returns the short lower-case name of a status, such as "ok" or "time-limit"; never NULL. */
const char *slc_status_name(enum slc_status status);

/* Returns the name that an interface uses for a field, such as "--memory"; "" for SLC_FIELD_NONE
 * and unknown fields. */
typedef const char *slc_field_name_fn(enum slc_error_field field);

/* Writes "FILE:LINE:COLUMN: MESSAGE (FIELD)" or "FILE: block B, offset O: MESSAGE", to `text`,
 * without the parts that `err` does not have. If `name` is NULL, fields are omitted. The text
 * always ends with 0. Returns the length of the whole line, even if `text` holds only its start
 * (like snprintf). */
int slc_error_format(const struct slc_error *err,
                     slc_field_name_fn *name,
                     char *text,
                     uint64_t text_bytes);

/* Records `status` with a printf-style message. `err` may be NULL. Returns `status`. */
enum slc_status slc_fail(struct slc_error *err, enum slc_status status, const char *format, ...)
    SLC_PRINTF(3, 4);

/* Does the same as slc_fail for a fault that concerns `file`. */
enum slc_status slc_fail_file(struct slc_error *err,
                              enum slc_status status,
                              const char *file,
                              const char *format,
                              ...) SLC_PRINTF(4, 5);

/* Returns SLC_OK if memory was allocated, otherwise SLC_ERR_MEMORY with the message "no memory
 * PURPOSE". `format` and its arguments are the purpose, such as "for %u buckets". `err` may be
 * NULL. */
enum slc_status slc_check_memory(bool allocated, struct slc_error *err, const char *format, ...)
    SLC_PRINTF(3, 4) SLC_NODISCARD;

/* Does the same as slc_fail for a fault that an option or argument caused or can resolve. The
 * message states the action without naming the field. Each interface appends its own name of the
 * field: the command turns "cannot start 8 threads: use fewer" into "cannot start 8 threads: use
 * fewer (-t)". */
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

/* Records a failed system call on `file`: SLC_ERR_NOSPACE for ENOSPC, EDQUOT and EFBIG,
 * SLC_ERR_MEMORY for ENOMEM, SLC_ERR_IO otherwise. The message is "ACTION: strerror text". `file`
 * may be NULL. */
enum slc_status
slc_fail_errno(struct slc_error *err, int system_errno, const char *file, const char *format, ...)
    SLC_PRINTF(4, 5);

/* Checks the result of a system call. Returns SLC_OK if `result` is not negative, otherwise calls
 * slc_fail_errno with the errno value -result. */
enum slc_status
slc_check_call(int result, struct slc_error *err, const char *file, const char *format, ...)
    SLC_PRINTF(4, 5) SLC_NODISCARD;

/* Records SLC_ERR_BUDGET and SLC_FIELD_MEMORY with the message "WHAT needs N MiB of memory or more;
 * the budget is M". N is need_bytes rounded up to MiB. `format` and its arguments are WHAT: the
 * operation and its main uses of memory. */
enum slc_status slc_fail_budget(struct slc_error *err,
                                uint64_t budget_bytes,
                                uint64_t need_bytes,
                                const char *format,
                                ...) SLC_PRINTF(4, 5);

/* Copies `fault` from another record to `err` if `fault` holds a fault. Returns fault->status. */
enum slc_status slc_error_pass(struct slc_error *err, const struct slc_error *fault);

/* These functions add a location to a recorded fault; locations that are already set do not change.
 * `file` may be NULL. */
void slc_error_locate_file(struct slc_error *err, const char *file);
void slc_error_locate_text(struct slc_error *err, const char *file, uint64_t line, uint64_t column);
void slc_error_locate_block(struct slc_error *err,
                            const char *file,
                            uint64_t block,
                            uint64_t offset);

/* Sets the field of a recorded fault, unless it is already set. */
void slc_error_set_field(struct slc_error *err, enum slc_error_field field);

/* Makes `err` an empty record. `err` may be NULL. */
void slc_error_clear(struct slc_error *err);

/* Returns the exit code of the command for a status. */
int slc_status_exit_code(enum slc_status status);

#endif
