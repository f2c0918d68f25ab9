/* See storage/run_names.h. */
#include "storage/run_names.h"

#include "base/memory.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character at `at`, of at most `room`; 0: none, or one that controls. */
static unsigned character_bytes(const char *at, size_t room)
{
    const unsigned char *byte = (const unsigned char *)at;
    const unsigned bytes = slc_utf8_length(at, room);
    const bool controls = byte[0] < ' ' || byte[0] == 0x7f ||
                          (bytes == 2 && byte[0] == 0xc2 && byte[1] < 0xa0); /* U+0080 to U+009F */

    return controls ? 0 : bytes;
}

static void make_text(const char *name, size_t bytes, char *text)
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

/* Whether the modes of the store are those of the run, which may have grown since. */
static bool fits(const struct slc_manifest *manifest, const struct slc_run_folder *run)
{
    bool fit = manifest->order == run->order;

    for (unsigned mode = 0; mode < run->order && fit; mode++) {
        fit = manifest->dims[mode] >= run->dims[mode];
    }
    return fit;
}

static enum slc_status open_all(const struct slc_files *files,
                                const char *store,
                                const struct slc_manifest *manifest,
                                struct slc_run_names *names,
                                struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned mode = 0; mode < manifest->order; mode++) {
        memcpy(names->titles[mode], manifest->titles[mode], SLC_TITLE_BYTES);
    }
    for (unsigned i = 0; i < manifest->names_count && status == SLC_OK; i++) {
        status = slc_names_open(files, store, &manifest->names[i],
                                &names->names[manifest->names[i].mode], err);
    }
    if (status != SLC_OK) {
        slc_run_names_close(names);
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
    const char *path = store != NULL ? store : run->recorded ? run->record.store : NULL;
    struct slc_error untold = SLC_ERROR_INIT;
    enum slc_status status = SLC_OK;

    memset(names, 0, sizeof *names);
    if (manifest == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a manifest");
    }
    files = slc_files_or_system(files);
    if (path != NULL) {
        status = slc_manifest_read(files, path, manifest, store != NULL ? err : &untold);
        if (status == SLC_OK && fits(manifest, run)) {
            status = open_all(files, path, manifest, names, err);
        } else if (status == SLC_OK && store != NULL) {
            status = slc_fail(err, SLC_ERR_INPUT,
                              "the run was made of a tensor with other modes than this store's");
            slc_error_locate_file(err, store);
        } else if (store == NULL && status != SLC_ERR_MEMORY) {
            status = SLC_OK;
        } else if (store == NULL) {
            *err = untold;
        }
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
    make_text(name, status == SLC_OK ? bytes : 0, text);
    return status;
}
