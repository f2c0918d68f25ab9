/* Opens block files and searches the folders of their stripes. */
#include "storage/file/block_file.h"

#include "base/error/log.h"
#include "base/hash.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* State of the search for one stripe. `fault` is the error to report; a file with wrong contents
 * has precedence over a missing file. */
struct search {
    const struct slc_files *files;
    const struct slc_stripe_list *list;
    const char *list_path;
    unsigned ordinal;
    struct slc_block_part *part;
    struct slc_error fault;
};

/* Searches one folder; returns false and sets *status when the search is over. */
static bool search_folder(struct search *search, const char *folder, enum slc_status *status)
{
    struct slc_error fault = SLC_ERROR_INIT;
    char *path = slc_stripe_path(&search->list->shape, search->list_path, folder, search->ordinal);
    int fd = -1;

    if (path == NULL) {
        *status = slc_fail(&search->fault, SLC_ERR_MEMORY, "no memory for a path");
        return false;
    }
    *status =
        slc_stripe_open(search->files, &search->list->shape, search->ordinal, path, &fd, &fault);
    if (*status == SLC_OK) {
        *search->part = (struct slc_block_part){path, fd};
        return false;
    }
    slc_free(path);
    /* Report the first folder that failed, but prefer a folder in which the file exists. */
    if (search->fault.status == SLC_OK ||
        (search->fault.system_errno == ENOENT && fault.system_errno != ENOENT)) {
        search->fault = fault;
    }
    return true;
}

/* Searches the folders of SLUICE_STRIPES; returns true if the search continues. */
static bool search_variable_folders(struct search *search, enum slc_status *status)
{
    const char *text = getenv(SLC_STRIPES_VARIABLE);
    char folder[SLC_MAX_STRIPE_FOLDER + 1];

    while (text != NULL && *text != '\0') {
        const size_t length = strcspn(text, ":");

        if (length > 0 && length < sizeof folder) {
            struct slc_error kept = search->fault;

            memcpy(folder, text, length);
            folder[length] = '\0';
            if (!search_folder(search, folder, status)) {
                return false;
            }
            /* A missing stripe is reported with its listed folder, not with a folder of
             * SLUICE_STRIPES. */
            if (search->fault.system_errno == ENOENT) {
                search->fault = kept;
            }
        }
        text += length + (text[length] == ':');
    }
    return true;
}

static enum slc_status find_stripe(const struct slc_files *files,
                                   const char *path,
                                   const struct slc_stripe_list *list,
                                   unsigned ordinal,
                                   struct slc_block_part *part,
                                   struct slc_error *err)
{
    struct search search = {.files = files,
                            .list = list,
                            .list_path = path,
                            .ordinal = ordinal,
                            .part = part,
                            .fault = SLC_ERROR_INIT};
    enum slc_status status = SLC_OK;
    bool more = search_variable_folders(&search, &status);

    for (unsigned k = 0; more && k < list->shape.count; k++) {
        more = search_folder(&search, list->folders[(ordinal + k) % list->shape.count], &status);
    }
    if (status == SLC_OK) {
        return SLC_OK;
    }
    if (search.fault.status != SLC_ERR_MEMORY && search.fault.system_errno == ENOENT) {
        return slc_fail_file(
            err, SLC_ERR_IO, search.fault.file,
            "stripe %u of %u of %s is neither in this folder nor in other listed folders: "
            "mount its drive, or add its folder to " SLC_STRIPES_VARIABLE,
            ordinal + 1, list->shape.count, path);
    }
    return slc_error_pass(err, &search.fault);
}

/* Sets file->borrowed, and logs a note unless the last note was about the same folder. */
static void note_borrowed(struct slc_block_file *file, const char *path)
{
    static _Atomic uint64_t noted;
    struct slc_error ignored = SLC_ERROR_INIT;
    char *folder = slc_path_parent(path);
    bool own = false;

    file->borrowed =
        slc_stripe_is_own(file->files, path, &file->shape, &own, &ignored) != SLC_OK || !own;
    if (file->borrowed && folder != NULL) {
        const uint64_t hash = slc_hash64(folder, strlen(folder));

        if (atomic_exchange(&noted, hash) != hash) {
            slc_log(SLC_LOG_NOTE,
                    "%s: another store folder owns the stripes of this store, which is a copy or "
                    "was moved to another file system: they are read, but not changed or removed",
                    folder);
        }
    }
    slc_free(folder);
}

/* Reads the list of stripes at `path`, closes its file, and opens the stripes instead. */
static enum slc_status
open_stripes(struct slc_block_file *file, const char *path, struct slc_error *err)
{
    struct slc_stripe_list list = {.shape = {0}};
    bool found = false;
    enum slc_status status = slc_stripe_list_load(file->files, path, &list, &found, err);

    if (status == SLC_OK && !found) {
        status = slc_fail_file(err, SLC_ERR_IO, path,
                               "the file was replaced while it was being opened; try "
                               "again");
    }
    SLC_TRY(status);
    slc_block_file_close(file);
    file->shape = list.shape;
    file->bytes = list.shape.file_bytes;
    note_borrowed(file, path);
    for (unsigned k = 0; k < list.shape.count && status == SLC_OK; k++) {
        status = find_stripe(file->files, path, &list, k, &file->parts[k], err);
        file->part_count += status == SLC_OK;
    }
    slc_stripe_list_clear(&list);
    return status;
}

enum slc_status slc_block_file_open(const struct slc_files *files,
                                    const char *path,
                                    const char *what,
                                    struct slc_block_file *file,
                                    struct slc_error *err)
{
    struct slc_block_file opened = {.files = slc_files_or_system(files)};
    uint8_t magic[8] = {0};
    struct slc_file_stat stat;
    enum slc_status status = SLC_OK;
    int rc, fd = slc_file_open(opened.files, path, SLC_OPEN_PLAIN);

    SLC_TRY(slc_check_call(fd, err, path, "%s", what));
    opened.parts[0] = (struct slc_block_part){slc_strdup(path), fd};
    opened.part_count = 1;
    rc = opened.files->stat_fd(opened.files->self, fd, &stat);
    if (opened.parts[0].path == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory for a path");
    } else if (rc < 0) {
        status = slc_fail_errno(err, -rc, path, "getting the size of the file");
    } else if (stat.kind != 'f') {
        status = slc_fail_file(err, SLC_ERR_FORMAT, path, "not a plain file");
    } else if (stat.bytes > 0 && stat.bytes <= SLC_MAX_STRIPE_LIST) {
        /* Only a file of at most SLC_MAX_STRIPE_LIST bytes can be a list. */
        status = slc_file_read_at(opened.files, fd, path, magic,
                                  slc_min_u64(stat.bytes, sizeof magic), 0, err);
    }
    if (status == SLC_OK) {
        opened.bytes = stat.bytes;
        if (slc_stripe_list_is(magic, sizeof magic)) {
            status = open_stripes(&opened, path, err);
        }
    }
    if (status != SLC_OK) {
        slc_block_file_close(&opened);
        return status;
    }
    *file = opened;
    return SLC_OK;
}

void slc_block_file_close(struct slc_block_file *file)
{
    for (unsigned k = 0; k < file->part_count; k++) {
        (void)file->files->close(file->files->self, file->parts[k].fd);
        slc_free(file->parts[k].path);
    }
    file->part_count = 0;
}

uint64_t slc_block_file_place(const struct slc_block_file *file,
                              uint64_t offset,
                              unsigned *part,
                              uint64_t *at)
{
    if (file->shape.count > 0) {
        return slc_stripe_place(&file->shape, offset, part, at);
    }
    *part = 0;
    *at = offset;
    return UINT64_MAX;
}

enum slc_status slc_block_file_read(const struct slc_block_file *file,
                                    void *data,
                                    uint64_t bytes,
                                    uint64_t offset,
                                    struct slc_error *err)
{
    for (uint64_t done = 0, now; done < bytes; done += now) {
        unsigned number;
        uint64_t at;

        now = slc_min_u64(slc_block_file_place(file, offset + done, &number, &at), bytes - done);
        const struct slc_block_part *part = &file->parts[number];
        SLC_TRY(
            slc_file_read_at(file->files, part->fd, part->path, (char *)data + done, now, at, err));
    }
    return SLC_OK;
}

void slc_block_file_advise(const struct slc_block_file *file,
                           uint64_t offset,
                           uint64_t bytes,
                           int advice)
{
    for (uint64_t done = 0, now; done < bytes; done += now) {
        unsigned number;
        uint64_t at;

        now = slc_min_u64(slc_block_file_place(file, offset + done, &number, &at), bytes - done);
        (void)file->files->advise_file(file->files->self, file->parts[number].fd, at, now, advice);
    }
}
