/* Opens the names of a run's store and formats names as printable text. */
#include "storage/model/run_names.h"

#include "base/error/log.h"
#include "base/memory/memory.h"
#include "base/text/plain_text.h"
#include "base/text/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Returns the number of bytes of the UTF-8 character at `at` (at most `bytes_left`), or 0 if the
 * character is invalid or a control character. */
static unsigned character_bytes(const char *at, size_t bytes_left)
{
    const unsigned char *byte = (const unsigned char *)at;
    const unsigned bytes = slc_utf8_length(at, bytes_left);
    const bool controls = byte[0] < ' ' || byte[0] == 0x7f ||
                          (bytes == 2 && byte[0] == 0xc2 && byte[1] < 0xa0); /* U+0080 to U+009F */

    return controls ? 0 : bytes;
}

static void format_name(const char *name, size_t bytes, char *text)
{
    while (bytes > 0) {
        const unsigned length = character_bytes(name, bytes);

        if (length > 0) {
            memcpy(text, name, length);
            text += length;
        } else {
            text += snprintf(text, 5, "\\x%02x", (unsigned char)*name);
        }
        name += length > 0 ? length : 1;
        bytes -= length > 0 ? length : 1;
    }
    *text = '\0';
}

/* True if the modes of the store match the modes of the run. Mode sizes of the store may have grown
 * since the run. */
static bool matches_run(const struct slc_manifest *manifest, const struct slc_run_folder *run)
{
    bool fit = manifest->order == run->order;

    for (unsigned mode = 0; mode < run->order && fit; mode++) {
        fit = manifest->dims[mode] >= run->dims[mode];
    }
    return fit;
}

static enum slc_status open_all(const char *store,
                                const struct slc_manifest *manifest,
                                struct slc_run_names *names,
                                struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned mode = 0; mode < manifest->order; mode++) {
        memcpy(names->titles[mode], manifest->titles[mode], SLC_TITLE_BYTES);
    }
    for (unsigned i = 0; i < manifest->names_count && status == SLC_OK; i++) {
        status = slc_names_open(slc_held_folder_files(names->held), store, &manifest->names[i],
                                &names->names[manifest->names[i].mode], err);
    }
    if (status != SLC_OK) {
        slc_run_names_close(names);
    }
    return status;
}

/* Opens the names of the store that the user specified; any fault is an error. */
static enum slc_status open_named(const struct slc_files *files,
                                  const struct slc_run_folder *run,
                                  const char *store,
                                  struct slc_manifest *manifest,
                                  struct slc_run_names *names,
                                  struct slc_error *err)
{
    enum slc_status status = slc_store_hold(files, store, &names->held, manifest, err);

    if (status == SLC_OK && !matches_run(manifest, run)) {
        status = slc_fail_file(
            err, SLC_ERR_INPUT, store,
            "the run was made from a tensor whose modes differ from the modes of this store");
    }
    if (status != SLC_OK) {
        slc_run_names_close(names);
        return status;
    }
    return open_all(store, manifest, names, err);
}

/* Opens the names of the store at `path`, if it exists and matches the run. */
static enum slc_status open_if_present(const struct slc_files *files,
                                       const struct slc_run_folder *run,
                                       const char *path,
                                       struct slc_manifest *manifest,
                                       struct slc_run_names *names,
                                       struct slc_error *err)
{
    struct slc_error ignored = SLC_ERROR_INIT;
    const enum slc_status status = slc_store_hold(files, path, &names->held, manifest, &ignored);

    if (status != SLC_OK || !matches_run(manifest, run)) {
        slc_run_names_close(names);
        return status == SLC_ERR_MEMORY ? slc_fail(err, SLC_ERR_MEMORY, "no memory for a manifest")
                                        : SLC_OK;
    }
    names->store = manifest->content_sum == run->record.content_sum ? SLC_RUN_STORE_SAME
                                                                    : SLC_RUN_STORE_CHANGED;
    return open_all(path, manifest, names, err);
}

/* Logs that indices are shown without their names, or with names that may have changed. */
static void note_store(const struct slc_run_folder *run, const struct slc_run_names *names)
{
    char store[sizeof run->record.store];
    bool named = false;

    for (unsigned mode = 0; mode < run->order; mode++) {
        named = named || names->names[mode] != NULL;
    }
    (void)snprintf(store, sizeof store, "%s", run->record.store);
    slc_text_make_plain(store);
    if (names->store == SLC_RUN_STORE_ABSENT && run->record.named) {
        slc_log(SLC_LOG_NOTE,
                "indices are shown without their names: %s, the store of the run, was not found",
                store);
    } else if (names->store == SLC_RUN_STORE_CHANGED && named) {
        slc_log(SLC_LOG_NOTE,
                "%s has changed since the run was made: its current names of indices are shown",
                store);
    }
}

/* Sets *path to a place where the store of a run may be: 0, the folder where the run was made; 1,
 * the current folder. *path is NULL if the record has no such place. */
static enum slc_status
store_place(const struct slc_run_folder *run, unsigned place, char **path, struct slc_error *err)
{
    const struct slc_run_record *record = &run->record;

    *path = NULL;
    if (!run->recorded || *record->store == '\0' ||
        (place == 0 && (*record->store == '/' || *record->directory == '\0'))) {
        return SLC_OK;
    }
    *path =
        place == 0 ? slc_path_join(record->directory, record->store) : slc_strdup(record->store);
    return slc_check_memory(*path != NULL, err, "for a path");
}

enum slc_status slc_run_store_find(const struct slc_files *files,
                                   const struct slc_run_folder *run,
                                   char **ret_path,
                                   struct slc_error *err)
{
    struct slc_manifest *manifest = slc_malloc(sizeof *manifest);
    enum slc_status status = slc_check_memory(manifest != NULL, err, "for a manifest");
    struct slc_error first = SLC_ERROR_INIT; /* preferably of a place where something exists */
    bool found = false;

    *ret_path = NULL;
    for (unsigned place = 0; place < 2 && status == SLC_OK && !found; place++) {
        struct slc_error fault = SLC_ERROR_INIT;

        slc_free(*ret_path);
        status = store_place(run, place, ret_path, err);
        if (status != SLC_OK || *ret_path == NULL) {
            continue;
        }
        found =
            slc_manifest_read(slc_files_or_system(files), *ret_path, manifest, &fault) == SLC_OK;
        if (!found && (first.status == SLC_OK || first.system_errno == ENOENT)) {
            first = fault;
        }
        if (fault.status == SLC_ERR_MEMORY) {
            status = slc_error_pass(err, &fault);
        }
    }
    if (status == SLC_OK && !found) {
        status =
            first.status != SLC_OK
                ? slc_error_pass(err, &first)
                : slc_fail(err, SLC_ERR_INPUT,
                           "the record of the run does not state its store: specify the store");
    }
    if (status != SLC_OK) {
        slc_free(*ret_path);
        *ret_path = NULL;
    }
    slc_free(manifest);
    return status;
}

/* Opens the names of the store recorded in run.json. */
static enum slc_status open_recorded(const struct slc_files *files,
                                     const struct slc_run_folder *run,
                                     struct slc_manifest *manifest,
                                     struct slc_run_names *names,
                                     struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    names->store = SLC_RUN_STORE_ABSENT;
    for (unsigned place = 0; place < 2 && status == SLC_OK && names->store == SLC_RUN_STORE_ABSENT;
         place++) {
        char *path;

        status = store_place(run, place, &path, err);
        if (path != NULL) {
            status = open_if_present(files, run, path, manifest, names, err);
        }
        slc_free(path);
    }
    return status;
}

enum slc_status slc_run_names_open(const struct slc_files *files,
                                   const struct slc_run_folder *run,
                                   const char *store,
                                   struct slc_run_names *names,
                                   struct slc_error *err)
{
    struct slc_manifest *manifest = slc_malloc(sizeof *manifest);
    enum slc_status status = SLC_OK;

    memset(names, 0, sizeof *names);
    SLC_TRY(slc_check_memory(manifest != NULL, err, "for a manifest"));
    files = slc_files_or_system(files);
    if (store != NULL) {
        status = open_named(files, run, store, manifest, names, err);
    } else if (run->recorded) {
        status = open_recorded(files, run, manifest, names, err);
        if (status == SLC_OK) {
            note_store(run, names);
        }
    }
    slc_free(manifest);
    return status;
}

enum slc_status slc_run_names_open_unchanged(const struct slc_files *files,
                                             const struct slc_run_folder *run,
                                             struct slc_run_names *names,
                                             struct slc_error *err)
{
    struct slc_manifest *manifest = slc_malloc(sizeof *manifest);
    enum slc_status status = SLC_OK;

    memset(names, 0, sizeof *names);
    SLC_TRY(slc_check_memory(manifest != NULL, err, "for a manifest"));
    if (run->recorded) {
        status = open_recorded(slc_files_or_system(files), run, manifest, names, err);
    }
    if (names->store != SLC_RUN_STORE_SAME) {
        slc_run_names_close(names);
    }
    slc_free(manifest);
    return status;
}

void slc_run_names_close(struct slc_run_names *names)
{
    for (unsigned mode = 0; mode < SLC_MAX_ORDER; mode++) {
        slc_names_close(names->names[mode]);
        names->names[mode] = NULL;
    }
    slc_held_folder_close(names->held);
    names->held = NULL;
}

uint64_t slc_run_names_bytes(const struct slc_run_names *names)
{
    uint64_t bytes = 0;

    for (unsigned mode = 0; mode < SLC_MAX_ORDER; mode++) {
        bytes += names->names[mode] != NULL ? slc_names_held_bytes(names->names[mode]) : 0;
    }
    return bytes;
}

enum slc_status slc_run_names_text(
    struct slc_run_names *names, unsigned mode, uint64_t index, char *text, struct slc_error *err)
{
    const char *name = NULL;
    size_t bytes = 0;
    enum slc_status status = SLC_OK;

    if (names->names[mode] != NULL) {
        status = slc_names_get(names->names[mode], index, &name, &bytes, err);
    }
    format_name(name, status == SLC_OK ? bytes : 0, text);
    return status;
}

enum slc_status slc_run_names_json(struct slc_run_names *names,
                                   unsigned mode,
                                   uint64_t index,
                                   json_t **ret_name,
                                   struct slc_error *err)
{
    char text[SLC_NAME_TEXT_BYTES];
    const char *name = NULL;
    size_t bytes = 0;

    if (names->names[mode] == NULL) {
        *ret_name = json_null();
        return SLC_OK;
    }
    SLC_TRY(slc_names_get(names->names[mode], index, &name, &bytes, err));
    *ret_name = json_stringn(name != NULL ? name : "", bytes);
    if (*ret_name == NULL) {
        format_name(name, bytes, text);
        *ret_name = json_string(text);
    }
    return slc_check_memory(*ret_name != NULL, err, "for a name");
}
