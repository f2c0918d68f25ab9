#include "engine/product/join/join.h"

#include "base/memory/memory.h"
#include "engine/product/join/join_internal.h"
#include "storage/manifest/path_guard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum slc_status
fail_twice(const char *path, const char *other, const struct slc_part *part, struct slc_error *err)
{
    return slc_fail_file(err, SLC_ERR_INPUT, path, "this and %s are both part %u of %u", other,
                         part->choice.number + 1, part->choice.count);
}

/* Reads the record of a part, compares it with the record of the first part, and puts the part in
 * its place. */
static enum slc_status
add_part(struct slc_joining *joining, const char *path, struct slc_error *err)
{
    const bool is_first = joining->paths == NULL;
    struct slc_part_record record;
    struct slc_part part;

    SLC_TRY(slc_part_record_read(&record, joining->options->files, path, err));
    SLC_TRY(slc_part_record_range(&record, path, &part, err));
    if (is_first) {
        joining->record = record;
        joining->count = part.choice.count;
        joining->paths = slc_calloc(joining->count, sizeof *joining->paths);
        joining->parts = slc_calloc(joining->count, sizeof *joining->parts);
        SLC_TRY(slc_check_memory(joining->paths != NULL && joining->parts != NULL, err,
                                 "for %u parts", joining->count));
    }
    SLC_TRY(
        slc_part_record_match(&record, path, &joining->record, joining->options->parts[0], err));
    if (joining->paths[part.choice.number] != NULL) {
        return fail_twice(path, joining->paths[part.choice.number], &part, err);
    }
    joining->paths[part.choice.number] = path;
    joining->parts[part.choice.number] = part;
    return SLC_OK;
}

/* Checks that no part is missing, and that the keys of each part follow those of the previous
 * one. */
static enum slc_status check_complete(const struct slc_joining *joining, struct slc_error *err)
{
    slc_u128 next = 0;

    for (unsigned i = 0; i < joining->count; i++) {
        const struct slc_part *part = &joining->parts[i];

        if (joining->paths[i] == NULL) {
            return slc_fail(err, SLC_ERR_INPUT,
                            "part %u of %u is missing: compute it, and name all parts", i + 1,
                            joining->count);
        }
        if (!part->empty && part->first != next) {
            return slc_fail_file(err, SLC_ERR_INPUT, joining->paths[i],
                                 "part %u does not begin where the parts before it end: compute "
                                 "all parts with one version of sluice",
                                 i + 1);
        }
        next = part->empty ? next : part->last + 1;
    }
    return SLC_OK;
}

enum slc_status slc_join_number(const struct slc_joining *joining,
                                const char *name,
                                uint64_t most,
                                uint64_t *value,
                                struct slc_error *err)
{
    const char *text = slc_part_record_find(&joining->record, name);
    char *end = NULL;

    errno = 0;
    *value = text != NULL ? strtoull(text, &end, 10) : 0;
    if (text == NULL || end == text || *end != '\n' || errno != 0 || *value > most) {
        return slc_fail_file(err, SLC_ERR_FORMAT, joining->paths[0],
                             "the record of the part has no valid line '%s'", name);
    }
    return SLC_OK;
}

static bool is_operation(const struct slc_joining *joining, const char *name)
{
    const char *operation = slc_part_record_find(&joining->record, "operation");
    const size_t length = strlen(name);

    return operation != NULL && strncmp(operation, name, length) == 0 && operation[length] == '\n';
}

static enum slc_status join_parts(struct slc_joining *joining, struct slc_error *err)
{
    if (is_operation(joining, "ttv")) {
        joining->report->kind = SLC_JOIN_STORES;
        return slc_join_stores(joining, err);
    }
    SLC_TRY(slc_check_outside_stores(slc_files_or_system(joining->options->files),
                                     joining->options->output, err));
    if (is_operation(joining, "ttm")) {
        joining->report->kind = SLC_JOIN_FIBERS;
        return slc_join_fibers(joining, err);
    }
    if (is_operation(joining, "mttkrp")) {
        joining->report->kind = SLC_JOIN_ROWS;
        return slc_join_rows(joining, err);
    }
    return slc_fail_file(err, SLC_ERR_FORMAT, joining->paths[0],
                         "this is a part of an unknown product");
}

enum slc_status slc_join(const struct slc_join_options *options,
                         struct slc_join_report *report,
                         struct slc_error *err)
{
    struct slc_joining joining = {.options = options, .report = report};
    enum slc_status status = SLC_OK;

    memset(report, 0, sizeof *report);
    if (options->count == 0) {
        return slc_fail(err, SLC_ERR_USAGE, "no part to join");
    }
    for (unsigned i = 0; i < options->count && status == SLC_OK; i++) {
        status = add_part(&joining, options->parts[i], err);
    }
    SLC_THEN(status, check_complete(&joining, err));
    SLC_THEN(status, join_parts(&joining, err));
    slc_free(joining.paths);
    slc_free(joining.parts);
    return status;
}
