/*
 * Fills in the error record (base/error/status.h).
 *
 * The first fault is kept: if a record already holds a fault, these functions change nothing and
 * return their status, so clean-up code may fail without hiding the cause.
 */
#ifndef SLC_BASE_ERROR_H
#define SLC_BASE_ERROR_H

#include "base/error/status.h"

#include <stdbool.h>

#define SLC_NODISCARD                       __attribute__((warn_unused_result))
#define SLC_PRINTF(format_index, first_arg) __attribute__((format(printf, format_index, first_arg)))

/* If a call fails, returns its status from the calling function. For functions that have nothing to
 * release at that point. */
#define SLC_TRY(...)                                                                               \
    do {                                                                                           \
        enum slc_status slc_try_status = (__VA_ARGS__);                                            \
                                                                                                   \
        if (slc_try_status != SLC_OK) {                                                            \
            return slc_try_status;                                                                 \
        }                                                                                          \
    } while (0)

/* If no earlier step failed, makes a call and assigns its status to `status`. For functions that
 * release something at the end and then return `status`. */
#define SLC_THEN(status, ...)                                                                      \
    do {                                                                                           \
        if ((status) == SLC_OK) {                                                                  \
            (status) = (__VA_ARGS__);                                                              \
        }                                                                                          \
    } while (0)

/* Returns the short lower-case name of a status, "ok" to "time-limit". Never NULL. */
const char *slc_status_name(enum slc_status status);

/* Returns the name of a field in an interface, such as "--memory"; "" for SLC_FIELD_NONE and
 * unknown fields. */
typedef const char *slc_field_name_fn(enum slc_error_field field);

/*
 * Writes "FILE:LINE:COLUMN: MESSAGE (FIELD)" or "FILE: block B, offset O: MESSAGE", with the parts
 * that apply, to `text`, always with a terminating zero. `name` NULL: without fields. Returns the
 * length of the whole line, as snprintf does.
 */
int slc_error_format(const struct slc_error *err,
                     slc_field_name_fn *name,
                     char *text,
                     uint64_t text_bytes);

/* Records `status` with a printf-style message. `err` may be NULL. Returns `status`. */
enum slc_status slc_fail(struct slc_error *err, enum slc_status status, const char *format, ...)
    SLC_PRINTF(3, 4);

/* As slc_fail, for a fault in `file`. */
enum slc_status slc_fail_file(struct slc_error *err,
                              enum slc_status status,
                              const char *file,
                              const char *format,
                              ...) SLC_PRINTF(4, 5);

/* Returns SLC_OK if memory was allocated, otherwise SLC_ERR_MEMORY with the message "no memory
 * PURPOSE"; `format` is the purpose, such as "for %u buckets". `err` may be NULL. */
enum slc_status slc_check_memory(bool allocated, struct slc_error *err, const char *format, ...)
    SLC_PRINTF(3, 4) SLC_NODISCARD;

/*
 * As slc_fail, for a fault that an option or argument caused or can resolve. The message states the
 * action without naming the field. Each interface appends its own name of the field: the command
 * turns "cannot start 8 threads: use fewer" into "cannot start 8 threads: use fewer (-t)".
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

/*
 * Returns SLC_OK if `result` of a system call is not negative, otherwise slc_fail_errno of -result.
 */
enum slc_status
slc_check_call(int result, struct slc_error *err, const char *file, const char *format, ...)
    SLC_PRINTF(4, 5) SLC_NODISCARD;

/*
 * Records SLC_ERR_BUDGET: "WHAT needs N MiB of memory or more; the budget is M" and
 * SLC_FIELD_MEMORY, with N rounded up to a sufficient number of MiB. `format` names the operation
 * and its main uses of memory.
 */
enum slc_status slc_fail_budget(struct slc_error *err,
                                uint64_t budget_bytes,
                                uint64_t need_bytes,
                                const char *format,
                                ...) SLC_PRINTF(4, 5);

/* Copies `fault`, which was recorded elsewhere, if it is a fault. Returns the status of `fault`. */
enum slc_status slc_error_pass(struct slc_error *err, const struct slc_error *fault);

/* Add a location to a recorded fault; members that are already set do not change. `file` may be
 * NULL. */
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
