/* Fills in the error record. The record keeps the first fault, and long messages are cut. */
#include "base/error/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    enum slc_status status;
    const char *name;
    int exit_code;
} statuses[] = {
    {SLC_OK, "ok", 0},
    {SLC_ERR_USAGE, "usage", 2},
    {SLC_ERR_INPUT, "input", 3},
    {SLC_ERR_FORMAT, "format", 3},
    {SLC_ERR_UNSUPPORTED, "unsupported", 3},
    {SLC_ERR_BUDGET, "budget", 4},
    {SLC_ERR_IO, "io", 5},
    {SLC_ERR_NOSPACE, "no-space", 5},
    {SLC_ERR_DAMAGED, "damaged", 5},
    {SLC_ERR_MEMORY, "memory", 1},
    {SLC_ERR_SYSTEM, "system", 1},
    {SLC_ERR_NUMERIC, "numeric", 1},
    {SLC_ERR_INTERRUPTED, "interrupted", 130},
    {SLC_ERR_TIME_LIMIT, "time-limit", 75},
};

const char *slc_status_name(enum slc_status status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (statuses[i].status == status) {
            return statuses[i].name;
        }
    }
    return "unknown";
}

int slc_status_exit_code(enum slc_status status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (statuses[i].status == status) {
            return statuses[i].exit_code;
        }
    }
    return 1;
}

void slc_error_clear(struct slc_error *err)
{
    static const struct slc_error empty = SLC_ERROR_INIT;

    if (err) {
        *err = empty;
    }
}

/* Stores a path. If the path is too long, only its end is stored, because the file name is more
 * useful than the mount point. */
static void copy_path(char *target, size_t target_bytes, const char *path)
{
    size_t length = strlen(path);

    if (length < target_bytes) {
        memcpy(target, path, length + 1);
    } else {
        memcpy(target, "..", 2);
        memcpy(target + 2, path + length - (target_bytes - 3), target_bytes - 2);
    }
}

static enum slc_status record(struct slc_error *err,
                              enum slc_status status,
                              enum slc_error_field field,
                              enum slc_error_field other,
                              const char *format,
                              va_list args) SLC_PRINTF(5, 0);

static enum slc_status record(struct slc_error *err,
                              enum slc_status status,
                              enum slc_error_field field,
                              enum slc_error_field other,
                              const char *format,
                              va_list args)
{
    if (err && err->status == SLC_OK) {
        slc_error_clear(err);
        err->status = status;
        err->field = field;
        err->other_field = other;
        (void)vsnprintf(err->message, sizeof err->message, format, args);
    }
    return status;
}

enum slc_status slc_fail(struct slc_error *err, enum slc_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)record(err, status, SLC_FIELD_NONE, SLC_FIELD_NONE, format, args);
    va_end(args);
    return status;
}

enum slc_status slc_fail_file(
    struct slc_error *err, enum slc_status status, const char *file, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)record(err, status, SLC_FIELD_NONE, SLC_FIELD_NONE, format, args);
    va_end(args);
    slc_error_locate_file(err, file);
    return status;
}

enum slc_status slc_check_memory(bool allocated, struct slc_error *err, const char *format, ...)
{
    char purpose[sizeof err->message];
    va_list args;

    if (allocated) {
        return SLC_OK;
    }
    va_start(args, format);
    (void)vsnprintf(purpose, sizeof purpose, format, args);
    va_end(args);
    return slc_fail(err, SLC_ERR_MEMORY, "no memory %s", purpose);
}

enum slc_status slc_fail_field(struct slc_error *err,
                               enum slc_status status,
                               enum slc_error_field field,
                               const char *format,
                               ...)
{
    va_list args;

    va_start(args, format);
    (void)record(err, status, field, SLC_FIELD_NONE, format, args);
    va_end(args);
    return status;
}

enum slc_status slc_fail_fields(struct slc_error *err,
                                enum slc_status status,
                                enum slc_error_field field,
                                enum slc_error_field other,
                                const char *format,
                                ...)
{
    va_list args;

    va_start(args, format);
    (void)record(err, status, field, other, format, args);
    va_end(args);
    return status;
}

static enum slc_status record_errno(struct slc_error *err,
                                    int system_errno,
                                    const char *file,
                                    const char *format,
                                    va_list args) SLC_PRINTF(4, 0);

static enum slc_status record_errno(
    struct slc_error *err, int system_errno, const char *file, const char *format, va_list args)
{
    enum slc_status status = SLC_ERR_IO;

    if (system_errno == ENOSPC || system_errno == EDQUOT || system_errno == EFBIG) {
        status = SLC_ERR_NOSPACE;
    } else if (system_errno == ENOMEM) {
        status = SLC_ERR_MEMORY;
    }
    if (err && err->status == SLC_OK) {
        char reason[128];

        (void)record(err, status, SLC_FIELD_NONE, SLC_FIELD_NONE, format, args);
        err->system_errno = system_errno;
        size_t length = strlen(err->message);
        /* This is the GNU strerror_r, which returns the text; the text may or may not be in
         * `reason`. */
        (void)snprintf(err->message + length, sizeof err->message - length, ": %s",
                       strerror_r(system_errno, reason, sizeof reason));
        slc_error_locate_file(err, file);
    }
    return status;
}

enum slc_status
slc_fail_errno(struct slc_error *err, int system_errno, const char *file, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    enum slc_status status = record_errno(err, system_errno, file, format, args);
    va_end(args);
    return status;
}

enum slc_status
slc_check_call(int result, struct slc_error *err, const char *file, const char *format, ...)
{
    enum slc_status status = SLC_OK;
    va_list args;

    va_start(args, format);
    if (result < 0) {
        status = record_errno(err, -result, file, format, args);
    }
    va_end(args);
    return status;
}

enum slc_status slc_error_pass(struct slc_error *err, const struct slc_error *fault)
{
    if (fault->status != SLC_OK && err && err->status == SLC_OK) {
        *err = *fault;
    }
    return fault->status;
}

enum slc_status slc_fail_budget(
    struct slc_error *err, uint64_t budget_bytes, uint64_t need_bytes, const char *format, ...)
{
    const uint64_t mib = UINT64_C(1) << 20;
    char what[512], budget[48];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (budget_bytes >= mib) {
        (void)snprintf(budget, sizeof budget, "%" PRIu64 ".%" PRIu64 " MiB", budget_bytes / mib,
                       budget_bytes % mib * 10 / mib);
    } else {
        /* Print bytes: the user probably forgot the unit MiB or GiB of such a small budget. */
        (void)snprintf(budget, sizeof budget, "%" PRIu64 " bytes", budget_bytes);
    }
    return slc_fail_field(err, SLC_ERR_BUDGET, SLC_FIELD_MEMORY,
                          "%s needs %" PRIu64 " MiB of memory or more; the budget is %s", what,
                          need_bytes / mib + (need_bytes % mib != 0), budget);
}

void slc_error_locate_file(struct slc_error *err, const char *file)
{
    if (err && file && err->file[0] == '\0') {
        copy_path(err->file, sizeof err->file, file);
    }
}

void slc_error_locate_text(struct slc_error *err, const char *file, uint64_t line, uint64_t column)
{
    if (!err) {
        return;
    }
    slc_error_locate_file(err, file);
    if (err->line == SLC_NOWHERE) {
        err->line = line;
    }
    if (err->column == SLC_NOWHERE) {
        err->column = column;
    }
}

void slc_error_locate_block(struct slc_error *err,
                            const char *file,
                            uint64_t block,
                            uint64_t offset)
{
    if (!err) {
        return;
    }
    slc_error_locate_file(err, file);
    if (err->block == SLC_NOWHERE) {
        err->block = block;
    }
    if (err->offset == SLC_NOWHERE) {
        err->offset = offset;
    }
}

void slc_error_set_field(struct slc_error *err, enum slc_error_field field)
{
    if (err && err->field == SLC_FIELD_NONE) {
        err->field = field;
    }
}

int slc_error_format(const struct slc_error *err,
                     slc_field_name_fn *name,
                     char *text,
                     uint64_t text_bytes)
{
    const char *field = name != NULL ? name(err->field) : "";
    const char *other = name != NULL ? name(err->other_field) : "";
    const bool named = field[0] != '\0' || other[0] != '\0';
    char where[160] = "";
    int used = 0;
    const char *separator = err->file[0] != '\0' ? ": " : "";

    if (err->line != SLC_NOWHERE && err->column != SLC_NOWHERE) {
        used = snprintf(where, sizeof where, ":%" PRIu64 ":%" PRIu64, err->line, err->column);
    } else if (err->line != SLC_NOWHERE) {
        used = snprintf(where, sizeof where, ":%" PRIu64, err->line);
    } else if (err->block != SLC_NOWHERE && err->offset != SLC_NOWHERE) {
        used = snprintf(where, sizeof where, ": block %" PRIu64 ", offset %" PRIu64, err->block,
                        err->offset);
    } else if (err->offset != SLC_NOWHERE) {
        used = snprintf(where, sizeof where, ": offset %" PRIu64, err->offset);
    } else if (err->block != SLC_NOWHERE) {
        used = snprintf(where, sizeof where, ": block %" PRIu64, err->block);
    }
    if (used > 0 && separator[0] == '\0') {
        separator = ": ";
    }
    return snprintf(text, text_bytes, "%s%s%s%s%s%s%s%s%s", err->file, where, separator,
                    err->message, named ? " (" : "", field,
                    field[0] != '\0' && other[0] != '\0' ? ", " : "", other, named ? ")" : "");
}
