/* Opens the newest generation of a checkpoint and describes it as JSON. */
#include "report/saved_run.h"

#include "base/error/log.h"
#include "base/memory/memory.h"
#include "report/json_parts.h"
#include "storage/manifest/json_text.h"
#include "storage/manifest/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Stores the kind of the file at `path` as in slc_file_stat, or '-' if there is no file. */
static enum slc_status find_kind(const char *path, char *kind, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    struct slc_file_stat stat;
    const int rc = files->stat_path(files->self, path, &stat);

    if (rc < 0 && rc != -ENOENT && rc != -ENOTDIR) {
        return slc_fail_errno(err, -rc, path, "looking for a checkpoint");
    }
    *kind = rc < 0 ? '-' : stat.kind;
    return SLC_OK;
}

static char *generation_path(const char *folder, unsigned k, struct slc_error *err)
{
    char *path = slc_checkpoint_path(folder, k);

    if (path == NULL) {
        (void)slc_fail(err, SLC_ERR_MEMORY, "no memory for the name of a checkpoint");
    }
    return path;
}

enum slc_status slc_saved_run_find(const char *path, bool *found, struct slc_error *err)
{
    char kind = '-';
    enum slc_status status = find_kind(path, &kind, err);

    *found = status == SLC_OK && kind != '-' && kind != 'd';
    for (unsigned k = 0; k < 2 && status == SLC_OK && kind == 'd'; k++) {
        char *file = generation_path(path, k, err);
        char kind_of_file = '-';

        status = file != NULL ? find_kind(file, &kind_of_file, err) : SLC_ERR_MEMORY;
        *found = *found || kind_of_file != '-';
        slc_free(file);
    }
    return status;
}

/* Opens the newer generation in a folder, or opens a file. Does not lock the checkpoint, because a
 * run may be writing; one generation is then incomplete. */
static enum slc_status open_newest(const char *path,
                                   bool quiet,
                                   struct slc_checkpoint_reader **reader,
                                   struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    struct slc_error fault = SLC_ERROR_INIT;
    char kind = '-';
    enum slc_status status = find_kind(path, &kind, err);

    *reader = NULL;
    SLC_TRY(status);
    if (kind != 'd') {
        status = slc_checkpoint_reader_open(files, path, reader, &fault);
        if (status == SLC_ERR_FORMAT && fault.offset == 0) {
            status = slc_fail_file(err, SLC_ERR_FORMAT, path,
                                   "not a checkpoint; a store would be a folder");
        } else if (status != SLC_OK) {
            *err = fault;
        }
        return status;
    }
    for (unsigned k = 0; k < 2; k++) {
        char *file = generation_path(path, k, err);
        struct slc_checkpoint_reader *other = NULL;

        if (file == NULL) {
            slc_checkpoint_reader_close(*reader);
            *reader = NULL;
            return SLC_ERR_MEMORY;
        }
        if (slc_checkpoint_reader_open(files, file, &other, &fault) != SLC_OK && !quiet) {
            slc_log(SLC_LOG_WARNING, "%s: %s", file, fault.message);
        }
        slc_free(file);
        if (*reader == NULL ||
            (other != NULL && slc_checkpoint_reader_info(other)->generation >
                                  slc_checkpoint_reader_info(*reader)->generation)) {
            slc_checkpoint_reader_close(*reader);
            *reader = other;
        } else {
            slc_checkpoint_reader_close(other);
        }
    }
    if (*reader == NULL && fault.status != SLC_OK) {
        *err = fault;
    }
    return *reader == NULL ? fault.status : SLC_OK;
}

enum slc_status
slc_saved_run_open(const char *path, bool quiet, struct slc_saved_run *run, struct slc_error *err)
{
    run->reader = NULL;
    enum slc_status status = open_newest(path, quiet, &run->reader, err);
    if (status == SLC_OK && run->reader == NULL) {
        status = slc_fail_file(err, SLC_ERR_FORMAT, path, "there is no complete checkpoint");
    }
    SLC_THEN(status, slc_cp_saved_read(run->reader, run->identity, &run->saved, err));
    if (status != SLC_OK) {
        slc_saved_run_close(run);
    }
    return status;
}

void slc_saved_run_close(struct slc_saved_run *run)
{
    slc_checkpoint_reader_close(run->reader);
    run->reader = NULL;
}

const char *slc_saved_run_written(uint64_t seconds, char *text, size_t bytes)
{
    const time_t when = seconds < INT32_MAX * UINT64_C(100) ? (time_t)seconds : 0;
    struct tm utc;

    text[0] = '\0';
    if (gmtime_r(&when, &utc) != NULL) {
        (void)strftime(text, bytes, "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    return text;
}

static json_t *identity_json(const char *identity)
{
    json_t *object = json_object();

    for (const char *line = identity; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        const char *equals = memchr(line, '=', length);

        if (equals != NULL) {
            char name[64];

            (void)snprintf(name, sizeof name, "%.*s", (int)(equals - line), line);
            slc_json_set(object, name,
                         json_stringn(equals + 1, length - (size_t)(equals + 1 - line)));
        }
        line += length + (line[length] == '\n');
    }
    return object;
}

static json_t *sections_json(const struct slc_checkpoint_info *info)
{
    json_t *list = json_array();

    for (unsigned s = 0; s < info->section_count; s++) {
        const struct slc_checkpoint_section *section = &info->sections[s];

        (void)json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:o}", "name", section->name,
                                                    "offset", (json_int_t)section->offset, "bytes",
                                                    (json_int_t)section->bytes, "hash",
                                                    slc_json_hex(section->hash)));
    }
    return list;
}

static json_t *part_json(const struct slc_cp_part *part)
{
    return part->position == 0 ? json_null()
                               : json_pack("{s:I, s:s}", "position", (json_int_t)part->position,
                                           "of", part->fused ? "ranges" : "blocks");
}

static json_t *make_json(const struct slc_saved_run *run)
{
    const struct slc_checkpoint_reader *reader = run->reader;
    const struct slc_cp_saved *saved = &run->saved;
    const struct slc_checkpoint_info *info = slc_checkpoint_reader_info(reader);
    const bool pending = saved->pending != SLC_MAX_ORDER;
    char written[32];

    return json_pack(
        "{s:s, s:o, s:I, s:I, s:s, s:I, s:I, s:o, s:o, s:I, s:f, s:f, s:{s:I, s:I, s:f}, s:o, s:o}",
        "schema", "sluice-checkpoint-1", "path",
        slc_json_string(slc_checkpoint_reader_path(reader)), "generation",
        (json_int_t)info->generation, "file_bytes", (json_int_t)info->file_bytes, "written",
        slc_saved_run_written(saved->written, written, sizeof written), "iteration",
        (json_int_t)saved->iterations + 1, "mode", (json_int_t)saved->mode_order[saved->place] + 1,
        "pending_mode", pending ? json_integer((json_int_t)saved->pending + 1) : json_null(),
        "part", part_json(&saved->part), "iterations_done", (json_int_t)saved->iterations, "fit",
        saved->fit, "seconds", saved->times.total, "checkpoints", "resumes",
        (json_int_t)saved->checkpoints.resumes, "count", (json_int_t)saved->checkpoints.count,
        "seconds", saved->checkpoints.seconds, "identity", identity_json(run->identity), "sections",
        sections_json(info));
}

enum slc_status
slc_saved_run_json(const struct slc_saved_run *run, json_t **ret_object, struct slc_error *err)
{
    slc_json_begin();
    json_t *object = make_json(run);
    enum slc_status status = slc_json_whole("the description of a checkpoint", err);
    if (status != SLC_OK) {
        json_decref(object);
        return status;
    }
    *ret_object = object;
    return SLC_OK;
}

enum slc_status
slc_saved_run_read(const char *path, bool quiet, json_t **ret_object, struct slc_error *err)
{
    struct slc_saved_run run;
    enum slc_status status = slc_saved_run_open(path, quiet, &run, err);

    if (status == SLC_OK) {
        status = slc_saved_run_json(&run, ret_object, err);
        slc_saved_run_close(&run);
    }
    return status;
}
