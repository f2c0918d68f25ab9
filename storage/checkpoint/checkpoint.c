/* Manages the folder and the files of a checkpoint: finds the newest valid generation, and reserves
 * disk space for the next generation, which checkpoint_write.c writes. */
#include "storage/checkpoint/checkpoint_internal.h"

#include "base/memory/checked.h"
#include "storage/file/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

char *slc_checkpoint_path(const char *folder, unsigned which)
{
    return slc_path_join(folder, which == 0 ? "checkpoint-1.ckpt" : "checkpoint-2.ckpt");
}

uint64_t slc_checkpoint_file_bytes(const uint64_t *section_bytes, unsigned count)
{
    uint64_t sum = SLC_CHECKPOINT_BODY_OFFSET;

    for (unsigned s = 0; s < count; s++) {
        uint64_t padded;

        if (!slc_round_up_u64(section_bytes[s], SLC_PAGE_BYTES, &padded) ||
            !slc_add_u64(sum, padded, &sum)) {
            return UINT64_MAX;
        }
    }
    return sum;
}

enum slc_status
slc_checkpoint_remove_file(struct slc_checkpoint *checkpoint, unsigned which, struct slc_error *err)
{
    const struct slc_files *files = checkpoint->files;

    if (checkpoint->fd[which] >= 0) {
        (void)files->close(files->self, checkpoint->fd[which]);
        checkpoint->fd[which] = -1;
    }
    int rc = files->unlink(files->self, checkpoint->path[which]);
    return rc < 0 && rc != -ENOENT
               ? slc_fail_errno(err, -rc, checkpoint->path[which], "removing the checkpoint")
               : SLC_OK;
}

void slc_checkpoint_name_folder(uint32_t number, char name[SLC_CHECKPOINT_NAME_BYTES])
{
    (void)snprintf(name, SLC_CHECKPOINT_NAME_BYTES, "folder-%08" PRIx32, number);
}

/* True if generation file `which` is readable and records that a run created the folder. */
static bool records_own_folder(const struct slc_checkpoint *checkpoint, unsigned which)
{
    struct slc_error ignored = SLC_ERROR_INIT;
    struct slc_checkpoint_reader *reader = NULL;
    char own[SLC_CHECKPOINT_NAME_BYTES];

    slc_checkpoint_name_folder(checkpoint->folder_number, own);
    bool says = slc_checkpoint_reader_open(checkpoint->files, checkpoint->path[which], &reader,
                                           &ignored) == SLC_OK &&
                reader != NULL && slc_checkpoint_find(reader, own) != NULL;
    slc_checkpoint_reader_close(reader);
    return says;
}

/* Opens both generations and keeps the newer one. If one generation is valid, a fault in the other
 * is ignored, unless the faulty generation was written by a newer program or cannot be read at the
 * moment. Such a generation may be readable later, so it must not be overwritten. */
static enum slc_status find_newest(struct slc_checkpoint *checkpoint, struct slc_error *err)
{
    struct slc_checkpoint_reader *readers[2] = {NULL, NULL};
    enum slc_status status = SLC_OK;
    int newest = -1;

    for (unsigned k = 0; k < 2 && status == SLC_OK; k++) {
        struct slc_error fault = SLC_ERROR_INIT;

        status =
            slc_checkpoint_reader_open(checkpoint->files, checkpoint->path[k], &readers[k], &fault);
        if (status == SLC_ERR_DAMAGED || status == SLC_ERR_FORMAT) {
            if (checkpoint->other_fault.status == SLC_OK) {
                checkpoint->other_fault = fault;
            }
            status = SLC_OK;
        } else if (status != SLC_OK && err != NULL && err->status == SLC_OK) {
            *err = fault;
        }
        if (readers[k] != NULL &&
            (newest < 0 || slc_checkpoint_reader_info(readers[k])->generation >
                               slc_checkpoint_reader_info(readers[newest])->generation)) {
            newest = (int)k;
        }
    }
    if (status == SLC_OK && newest < 0 && checkpoint->other_fault.status != SLC_OK) {
        status = slc_error_pass(err, &checkpoint->other_fault);
    }
    for (int k = 0; k < 2; k++) {
        if (k != newest || status != SLC_OK) {
            slc_checkpoint_reader_close(readers[k]);
        }
    }
    if (status == SLC_OK && newest >= 0) {
        char own[SLC_CHECKPOINT_NAME_BYTES];

        slc_checkpoint_name_folder(checkpoint->folder_number, own);
        checkpoint->found = readers[newest];
        checkpoint->created_folder =
            checkpoint->created_folder || slc_checkpoint_find(checkpoint->found, own) != NULL;
        checkpoint->committed = newest;
        checkpoint->generation = slc_checkpoint_reader_info(readers[newest])->generation;
    }
    return status;
}

enum slc_status slc_checkpoint_open_folder(struct slc_checkpoint *checkpoint,
                                           const char *folder,
                                           struct slc_error *err)
{
    const struct slc_files *files = checkpoint->files;
    int rc = files->make_folder(files->self, folder);
    struct slc_file_stat stat;
    bool in_use;

    if (rc < 0 && rc != -EEXIST) {
        return slc_fail_errno(err, -rc, folder, "creating the folder of the checkpoint");
    }
    checkpoint->created_folder = rc >= 0;
    SLC_TRY(slc_folder_lock(files, folder,
                            "another sluice process computes the same result and uses this "
                            "checkpoint folder: wait until it ends, or choose another output or "
                            "checkpoint folder",
                            &checkpoint->lock_fd, &in_use, err));
    rc = files->stat_fd(files->self, checkpoint->lock_fd, &stat);
    SLC_TRY(slc_check_call(rc, err, folder, "inspecting the folder of the checkpoint"));
    checkpoint->folder_number = (uint32_t)stat.inode;
    return SLC_OK;
}

enum slc_status slc_checkpoint_open(const struct slc_files *files,
                                    const char *folder,
                                    bool restart,
                                    struct slc_checkpoint **checkpoint,
                                    struct slc_error *err)
{
    struct slc_checkpoint *created = slc_calloc(1, sizeof *created);
    enum slc_status status;

    SLC_TRY(slc_check_memory(created != NULL, err, "for a checkpoint"));
    created->files = slc_files_or_system(files);
    created->lock_fd = created->fd[0] = created->fd[1] = -1;
    created->committed = -1;
    slc_error_clear(&created->other_fault);
    slc_error_clear(&created->fault);
    created->folder = slc_strdup(folder);
    created->path[0] = slc_checkpoint_path(folder, 0);
    created->path[1] = slc_checkpoint_path(folder, 1);
    if (created->folder == NULL || created->path[0] == NULL || created->path[1] == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory for the paths of a checkpoint");
    } else {
        status = slc_checkpoint_open_folder(created, folder, err);
    }
    for (unsigned k = 0; k < 2 && restart && status == SLC_OK; k++) {
        created->created_folder = created->created_folder || records_own_folder(created, k);
        status = slc_checkpoint_remove_file(created, k, err);
    }
    SLC_THEN(status, find_newest(created, err));
    if (status != SLC_OK) {
        slc_checkpoint_close(created);
        return status;
    }
    *checkpoint = created;
    return SLC_OK;
}

void slc_checkpoint_close(struct slc_checkpoint *checkpoint)
{
    if (checkpoint == NULL) {
        return;
    }
    const struct slc_files *files = checkpoint->files;
    slc_checkpoint_reader_close(checkpoint->found);
    for (unsigned k = 0; k < 2; k++) {
        if (checkpoint->fd[k] >= 0) {
            (void)files->close(files->self, checkpoint->fd[k]);
            checkpoint->fd[k] = -1;
        }
        if (checkpoint->made[k] && checkpoint->committed < 0) {
            (void)files->unlink(files->self, checkpoint->path[k]);
        }
    }
    /* The system refuses to remove a folder that is not empty. */
    if (checkpoint->created_folder && checkpoint->committed < 0) {
        (void)files->remove_folder(files->self, checkpoint->folder);
    }
    slc_folder_unlock(files, &checkpoint->lock_fd);
    slc_buffer_destroy(&checkpoint->memory);
    slc_free(checkpoint->path[0]);
    slc_free(checkpoint->path[1]);
    slc_free(checkpoint->folder);
    slc_free(checkpoint);
}

struct slc_checkpoint_reader *slc_checkpoint_found(const struct slc_checkpoint *checkpoint)
{
    return checkpoint->found;
}

const struct slc_error *slc_checkpoint_fault(const struct slc_checkpoint *checkpoint)
{
    return &checkpoint->other_fault;
}

const char *slc_checkpoint_folder(const struct slc_checkpoint *checkpoint)
{
    return checkpoint->folder;
}

/* Writes zeros after the end of the file, for file systems that cannot reserve disk space. */
static enum slc_status write_zeros(struct slc_checkpoint *checkpoint,
                                   unsigned which,
                                   uint64_t from,
                                   uint64_t end,
                                   struct slc_error *err)
{
    memset(checkpoint->buffer, 0, SLC_CHECKPOINT_BUFFER_BYTES);
    for (uint64_t at = from, more; at < end; at += more) {
        more = slc_min_u64(end - at, SLC_CHECKPOINT_BUFFER_BYTES);
        SLC_TRY(slc_file_write_at(checkpoint->files, checkpoint->fd[which], checkpoint->path[which],
                                  checkpoint->buffer, more, at, err));
    }
    return SLC_OK;
}

enum slc_status slc_checkpoint_reserve_file(struct slc_checkpoint *checkpoint,
                                            unsigned which,
                                            uint64_t bytes,
                                            struct slc_error *err)
{
    const struct slc_files *files = checkpoint->files;
    const char *path = checkpoint->path[which];
    struct slc_file_stat stat;
    int rc = files->stat_path(files->self, path, &stat);

    if (rc < 0 && rc != -ENOENT) {
        return slc_fail_errno(err, -rc, path, "looking for the checkpoint");
    }
    checkpoint->made[which] = rc == -ENOENT;
    checkpoint->fd[which] = files->open(files->self, path, O_RDWR | O_CREAT | SLC_OPEN_OWN, 0666);
    if (checkpoint->fd[which] < 0) {
        return slc_fail_errno(err, -checkpoint->fd[which], path, "creating the checkpoint");
    }
    rc = files->stat_fd(files->self, checkpoint->fd[which], &stat);
    SLC_TRY(slc_check_call(rc, err, path, "getting the size of the checkpoint"));
    rc = files->reserve(files->self, checkpoint->fd[which], bytes);
    if (rc == -EOPNOTSUPP) {
        return write_zeros(checkpoint, which, stat.bytes, bytes, err);
    }
    if (rc >= 0) {
        return SLC_OK;
    }
    enum slc_status status = slc_fail_errno(
        err, -rc, path,
        "reserving %" PRIu64
        " bytes for a checkpoint; choose another checkpoint folder or run without checkpoints",
        bytes);
    slc_error_set_field(err, SLC_FIELD_CHECKPOINT);
    return status;
}

enum slc_status
slc_checkpoint_reserve(struct slc_checkpoint *checkpoint, uint64_t bytes, struct slc_error *err)
{
    const struct slc_files *files = checkpoint->files;

    SLC_TRY(slc_buffer_create(&checkpoint->memory,
                              SLC_CHECKPOINT_BUFFER_BYTES + sizeof(struct slc_hash_stream),
                              SLC_PAGES_SMALL, err));
    checkpoint->reserved_bytes = bytes;
    checkpoint->buffer = checkpoint->memory.data;
    checkpoint->stream =
        (struct slc_hash_stream *)(checkpoint->buffer + SLC_CHECKPOINT_BUFFER_BYTES);
    for (unsigned k = 0; k < 2; k++) {
        SLC_TRY(slc_checkpoint_reserve_file(checkpoint, k, bytes, err));
    }
    if (checkpoint->committed >= 0) {
        const int rc = files->sync(files->self, checkpoint->fd[checkpoint->committed]);

        SLC_TRY(slc_check_call(rc, err, checkpoint->path[checkpoint->committed],
                               "syncing the checkpoint from which the run resumes"));
    }
    return SLC_OK;
}

enum slc_status slc_checkpoint_remove(struct slc_checkpoint *checkpoint, struct slc_error *err)
{
    const struct slc_files *files = checkpoint->files;
    enum slc_status status = SLC_OK;

    slc_checkpoint_reader_close(checkpoint->found);
    checkpoint->found = NULL;
    /* Remove the older generation first: an interruption then leaves the newer generation. */
    for (unsigned k = 0; k < 2; k++) {
        const enum slc_status removed =
            slc_checkpoint_remove_file(checkpoint, checkpoint->committed == 0 ? 1 - k : k, err);

        status = status == SLC_OK ? removed : status;
    }
    checkpoint->made[0] = checkpoint->made[1] = false;
    if (checkpoint->created_folder) {
        (void)files->remove_folder(files->self, checkpoint->folder);
    }
    checkpoint->committed = status == SLC_OK ? -1 : checkpoint->committed;
    return status;
}

enum slc_status
slc_checkpoint_discard(const struct slc_files *files, const char *folder, struct slc_error *err)
{
    struct slc_checkpoint *checkpoint = NULL;
    enum slc_status status = slc_checkpoint_open(files, folder, true, &checkpoint, err);

    SLC_THEN(status, slc_checkpoint_remove(checkpoint, err));
    slc_checkpoint_close(checkpoint);
    return status;
}
