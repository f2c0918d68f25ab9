/*
 * The two generations of a run: which one counts, and writing the next.
 *
 * Writing: the header of the older generation is cleared, so that a run that dies here leaves
 * a file that is seen to be unfinished; sections, then the table; sync; header; sync. The order in
 * which the first writes reach the drive does not matter: what a header claims is under checksums,
 * and the other generation, which was synced before, is whole. After a write or a sync that failed
 * nobody knows what a file holds: the system may have dropped pages and then show them as clean. So
 * that file is removed, and none is written again. Files that somebody else has removed are made
 * anew: the run that they were of may have days of work in memory.
 */
#include "storage/checkpoint.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "storage/checkpoint_form.h"
#include "storage/folder_lock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct slc_checkpoint {
    const struct slc_files *files;
    char *folder;
    int lock_fd;
    bool made_folder;       /* by this run, or by one that it goes on from */
    uint32_t folder_number; /* the low bits of its inode's */
    bool made[2];           /* the file by this run */
    char *path[2];
    int fd[2];     /* for writing; -1 until space is reserved */
    int committed; /* the generation that counts, 0 or 1; -1: none */
    uint64_t generation;
    uint64_t reserved_bytes; /* of each file */
    bool folders_synced;     /* since the files were made */
    struct slc_checkpoint_reader *found;
    struct slc_error other_fault;

    struct slc_buffer memory;
    uint8_t *buffer;                /* in it */
    struct slc_hash_stream *stream; /* the same */
    unsigned target;                /* the file that is being written */
    bool begun;                     /* to write it */
    struct slc_checkpoint_info info;
    uint64_t used; /* bytes of the buffer */
    uint64_t at;   /* where in the file these go */
    struct slc_error fault;
};

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

/* Removes file `which`, where it is. */
static enum slc_status
remove_file(struct slc_checkpoint *checkpoint, unsigned which, struct slc_error *err)
{
    const struct slc_files *files = checkpoint->files;
    int rc;

    if (checkpoint->fd[which] >= 0) {
        (void)files->close(files->self, checkpoint->fd[which]);
        checkpoint->fd[which] = -1;
    }
    rc = files->unlink(files->self, checkpoint->path[which]);
    return rc < 0 && rc != -ENOENT
               ? slc_fail_errno(err, -rc, checkpoint->path[which], "removing the checkpoint")
               : SLC_OK;
}

/* The section, of no bytes, which says that a run has made the folder with this number: a later one
 * that goes on knows by it that the folder is not somebody's own. */
static void name_own_folder(uint32_t number, char name[SLC_CHECKPOINT_NAME_BYTES])
{
    (void)snprintf(name, SLC_CHECKPOINT_NAME_BYTES, "folder-%08" PRIx32, number);
}

/* Whether a generation says that the folder is the runs' own; one that cannot be read does not. */
static bool says_own_folder(const struct slc_checkpoint *checkpoint, unsigned which)
{
    struct slc_error ignored = SLC_ERROR_INIT;
    struct slc_checkpoint_reader *reader = NULL;
    char own[SLC_CHECKPOINT_NAME_BYTES];
    bool says;

    name_own_folder(checkpoint->folder_number, own);
    says = slc_checkpoint_reader_open(checkpoint->files, checkpoint->path[which], &reader,
                                      &ignored) == SLC_OK &&
           reader != NULL && slc_checkpoint_find(reader, own) != NULL;
    slc_checkpoint_reader_close(reader);
    return says;
}

/*
 * Opens both generations, and keeps the newer one. What is wrong with one does not matter while
 * the other is whole, unless a newer program wrote it, or it cannot be read: that may be another
 * day, so that it is not to be written over.
 */
static enum slc_status find(struct slc_checkpoint *checkpoint, struct slc_error *err)
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
        status = checkpoint->other_fault.status;
        if (err != NULL && err->status == SLC_OK) {
            *err = checkpoint->other_fault;
        }
    }
    for (int k = 0; k < 2; k++) {
        if (k != newest || status != SLC_OK) {
            slc_checkpoint_reader_close(readers[k]);
        }
    }
    if (status == SLC_OK && newest >= 0) {
        char own[SLC_CHECKPOINT_NAME_BYTES];

        name_own_folder(checkpoint->folder_number, own);
        checkpoint->found = readers[newest];
        checkpoint->made_folder =
            checkpoint->made_folder || slc_checkpoint_find(checkpoint->found, own) != NULL;
        checkpoint->committed = newest;
        checkpoint->generation = slc_checkpoint_reader_info(readers[newest])->generation;
    }
    return status;
}

/* The folder, for this process alone; it is made where it is missing. */
static enum slc_status
take_folder(struct slc_checkpoint *checkpoint, const char *folder, struct slc_error *err)
{
    const struct slc_files *files = checkpoint->files;
    int rc = files->make_folder(files->self, folder);
    struct slc_file_stat stat;
    enum slc_status status;
    bool taken;

    if (rc < 0 && rc != -EEXIST) {
        return slc_fail_errno(err, -rc, folder, "making the folder of the checkpoint");
    }
    checkpoint->made_folder = rc >= 0;
    status = slc_folder_lock(files, folder,
                             "another sluice computes what this run would, and keeps its "
                             "checkpoint here: wait for it, or name another output or --checkpoint",
                             &checkpoint->lock_fd, &taken, err);
    if (status != SLC_OK) {
        return status;
    }
    rc = files->stat_fd(files->self, checkpoint->lock_fd, &stat);
    if (rc < 0) {
        return slc_fail_errno(err, -rc, folder, "looking at the folder of the checkpoint");
    }
    checkpoint->folder_number = (uint32_t)stat.inode;
    return SLC_OK;
}

enum slc_status slc_checkpoint_open(const struct slc_files *files,
                                    const char *folder,
                                    bool restart,
                                    struct slc_checkpoint **checkpoint,
                                    struct slc_error *err)
{
    struct slc_checkpoint *fresh = slc_calloc(1, sizeof *fresh);
    enum slc_status status;

    if (fresh == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a checkpoint");
    }
    fresh->files = slc_files_or_system(files);
    fresh->lock_fd = fresh->fd[0] = fresh->fd[1] = -1;
    fresh->committed = -1;
    slc_error_clear(&fresh->other_fault);
    slc_error_clear(&fresh->fault);
    fresh->folder = slc_strdup(folder);
    fresh->path[0] = slc_checkpoint_path(folder, 0);
    fresh->path[1] = slc_checkpoint_path(folder, 1);
    if (fresh->folder == NULL || fresh->path[0] == NULL || fresh->path[1] == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory for the names of a checkpoint");
    } else {
        status = take_folder(fresh, folder, err);
    }
    for (unsigned k = 0; k < 2 && restart && status == SLC_OK; k++) {
        fresh->made_folder = fresh->made_folder || says_own_folder(fresh, k);
        status = remove_file(fresh, k, err);
    }
    if (status == SLC_OK) {
        status = find(fresh, err);
    }
    if (status != SLC_OK) {
        slc_checkpoint_close(fresh);
        return status;
    }
    *checkpoint = fresh;
    return SLC_OK;
}

void slc_checkpoint_close(struct slc_checkpoint *checkpoint)
{
    const struct slc_files *files;

    if (checkpoint == NULL) {
        return;
    }
    files = checkpoint->files;
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
    /* One that holds anything stays, as the system sees to. */
    if (checkpoint->made_folder && checkpoint->committed < 0) {
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

/* Where the file system cannot reserve: zeros from the file's end on. */
static enum slc_status write_zeros(struct slc_checkpoint *checkpoint,
                                   unsigned which,
                                   uint64_t from,
                                   uint64_t end,
                                   struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    memset(checkpoint->buffer, 0, SLC_CHECKPOINT_BUFFER_BYTES);
    for (uint64_t at = from, more; at < end && status == SLC_OK; at += more) {
        more = slc_min_u64(end - at, SLC_CHECKPOINT_BUFFER_BYTES);
        status = slc_file_write_at(checkpoint->files, checkpoint->fd[which],
                                   checkpoint->path[which], checkpoint->buffer, more, at, err);
    }
    return status;
}

/* Opens file `which`, and sets `bytes` aside for it. */
static enum slc_status reserve_file(struct slc_checkpoint *checkpoint,
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
    if (rc < 0) {
        return slc_fail_errno(err, -rc, path, "asking for the checkpoint's size");
    }
    rc = files->reserve(files->self, checkpoint->fd[which], bytes);
    if (rc == -EOPNOTSUPP) {
        return write_zeros(checkpoint, which, stat.bytes, bytes, err);
    }
    return rc < 0 ? slc_fail_errno(err, -rc, path,
                                   "reserving %" PRIu64 " bytes for a checkpoint; name "
                                   "another place (--checkpoint DIR) or do without (--checkpoint "
                                   "none)",
                                   bytes)
                  : SLC_OK;
}

enum slc_status
slc_checkpoint_reserve(struct slc_checkpoint *checkpoint, uint64_t bytes, struct slc_error *err)
{
    const struct slc_files *files = checkpoint->files;
    enum slc_status status = slc_buffer_create(
        &checkpoint->memory, SLC_CHECKPOINT_BUFFER_BYTES + sizeof(struct slc_hash_stream),
        SLC_PAGES_SMALL, err);

    if (status != SLC_OK) {
        return status;
    }
    checkpoint->reserved_bytes = bytes;
    checkpoint->buffer = checkpoint->memory.data;
    checkpoint->stream =
        (struct slc_hash_stream *)(checkpoint->buffer + SLC_CHECKPOINT_BUFFER_BYTES);
    for (unsigned k = 0; k < 2 && status == SLC_OK; k++) {
        status = reserve_file(checkpoint, k, bytes, err);
    }
    if (status == SLC_OK && checkpoint->committed >= 0) {
        const int rc = files->sync(files->self, checkpoint->fd[checkpoint->committed]);

        if (rc < 0) {
            status = slc_fail_errno(err, -rc, checkpoint->path[checkpoint->committed],
                                    "syncing the checkpoint to go on from");
        }
    }
    return status;
}

/* Writes to the target unless something has failed; what fails is kept. */
static void
write_at(struct slc_checkpoint *checkpoint, const void *data, uint64_t bytes, uint64_t offset)
{
    const unsigned k = checkpoint->target;
    enum slc_status status = checkpoint->fault.status;

    if (status == SLC_OK) {
        status = slc_file_write_at(checkpoint->files, checkpoint->fd[k], checkpoint->path[k], data,
                                   bytes, offset, &checkpoint->fault);
    }
    /* What has failed is in the record, so that nothing is lost here. */
    assert(status == checkpoint->fault.status);
    (void)status;
}

/* Writes what the buffer holds. */
static void flush(struct slc_checkpoint *checkpoint)
{
    slc_hash_stream_add(checkpoint->stream, checkpoint->buffer, checkpoint->used);
    write_at(checkpoint, checkpoint->buffer, checkpoint->used, checkpoint->at);
    checkpoint->at += checkpoint->used;
    checkpoint->used = 0;
}

static void sync_target(struct slc_checkpoint *checkpoint)
{
    const struct slc_files *files = checkpoint->files;
    int rc;

    if (checkpoint->fault.status != SLC_OK) {
        return;
    }
    rc = files->sync(files->self, checkpoint->fd[checkpoint->target]);
    if (rc < 0) {
        (void)slc_fail_errno(&checkpoint->fault, -rc, checkpoint->path[checkpoint->target],
                             "syncing the checkpoint");
    }
}

/* Whether the open file, or folder, is what is at `path`. */
static bool is_at(struct slc_checkpoint *checkpoint, int fd, const char *path)
{
    const struct slc_files *files = checkpoint->files;
    struct slc_file_stat open, named;
    int rc = fd < 0 ? -EBADF : files->stat_fd(files->self, fd, &open);

    if (rc >= 0) {
        rc = files->stat_path(files->self, path, &named);
    }
    if (rc < 0 && rc != -ENOENT && rc != -ENOTDIR && checkpoint->fault.status == SLC_OK) {
        (void)slc_fail_errno(&checkpoint->fault, -rc, path, "looking for the checkpoint");
    }
    return rc >= 0 && open.inode == named.inode && open.device == named.device;
}

/* Makes anew what has been removed since it was reserved. */
static void make_again(struct slc_checkpoint *checkpoint)
{
    const struct slc_files *files = checkpoint->files;
    enum slc_status status = SLC_OK;
    bool gone[2];

    for (unsigned k = 0; k < 2; k++) {
        gone[k] = !is_at(checkpoint, checkpoint->fd[k], checkpoint->path[k]);
    }
    if (checkpoint->fault.status != SLC_OK || (!gone[0] && !gone[1])) {
        return;
    }
    slc_log(SLC_LOG_WARNING,
            "the checkpoint in %s was removed while the run went on: it is made anew",
            checkpoint->folder);
    if (!is_at(checkpoint, checkpoint->lock_fd, checkpoint->folder)) {
        slc_folder_unlock(files, &checkpoint->lock_fd);
        status = take_folder(checkpoint, checkpoint->folder, &checkpoint->fault);
    }
    for (unsigned k = 0; k < 2 && status == SLC_OK; k++) {
        if (gone[k]) {
            (void)files->close(files->self, checkpoint->fd[k]);
            checkpoint->committed = checkpoint->committed == (int)k ? -1 : checkpoint->committed;
            status = reserve_file(checkpoint, k, checkpoint->reserved_bytes, &checkpoint->fault);
        }
    }
    checkpoint->folders_synced = false;
}

void slc_checkpoint_begin(struct slc_checkpoint *checkpoint)
{
    assert(checkpoint->buffer != NULL);
    slc_checkpoint_reader_close(checkpoint->found);
    checkpoint->found = NULL;
    checkpoint->begun = false;
    if (checkpoint->fault.status == SLC_OK) {
        make_again(checkpoint);
    }
    if (checkpoint->fault.status != SLC_OK) {
        return;
    }
    checkpoint->target = checkpoint->committed == 0 ? 1 : 0;
    checkpoint->begun = true;
    memset(&checkpoint->info, 0, sizeof checkpoint->info);
    checkpoint->info.generation = checkpoint->generation + 1;
    checkpoint->at = SLC_CHECKPOINT_BODY_OFFSET;
    checkpoint->used = 0;
    memset(checkpoint->buffer, 0, SLC_PAGE_BYTES);
    write_at(checkpoint, checkpoint->buffer, SLC_PAGE_BYTES, 0);
}

/* Pads the section that is being written, if there is one, and notes what it has become. */
static void end_section(struct slc_checkpoint *checkpoint)
{
    struct slc_checkpoint_section *section;
    uint64_t padding;

    if (checkpoint->info.section_count == 0) {
        return;
    }
    section = &checkpoint->info.sections[checkpoint->info.section_count - 1];
    section->bytes = checkpoint->at + checkpoint->used - section->offset;
    padding = -checkpoint->used % SLC_PAGE_BYTES; /* the buffer is of whole pages */
    memset(checkpoint->buffer + checkpoint->used, 0, padding);
    checkpoint->used += padding;
    flush(checkpoint);
    section->hash = slc_hash_stream_end(checkpoint->stream);
}

void slc_checkpoint_section(struct slc_checkpoint *checkpoint, const char *name)
{
    struct slc_checkpoint_section *section;

    if (checkpoint->fault.status != SLC_OK) {
        return;
    }
    end_section(checkpoint);
    assert(checkpoint->info.section_count < SLC_CHECKPOINT_SECTIONS);
    assert(strlen(name) < SLC_CHECKPOINT_NAME_BYTES);
    section = &checkpoint->info.sections[checkpoint->info.section_count++];
    (void)snprintf(section->name, sizeof section->name, "%s", name);
    section->offset = checkpoint->at;
    slc_hash_stream_begin(checkpoint->stream);
}

void slc_checkpoint_put(struct slc_checkpoint *checkpoint, const void *data, uint64_t bytes)
{
    const uint8_t *from = data;

    for (uint64_t done = 0, more; done < bytes && checkpoint->fault.status == SLC_OK;
         done += more) {
        more = slc_min_u64(bytes - done, SLC_CHECKPOINT_BUFFER_BYTES - checkpoint->used);
        memcpy(checkpoint->buffer + checkpoint->used, from + done, more);
        checkpoint->used += more;
        if (checkpoint->used == SLC_CHECKPOINT_BUFFER_BYTES) {
            flush(checkpoint);
        }
    }
}

void slc_checkpoint_put_u64(struct slc_checkpoint *checkpoint, uint64_t value)
{
    uint8_t bytes[8];

    slc_store_u64(bytes, value);
    slc_checkpoint_put(checkpoint, bytes, sizeof bytes);
}

void slc_checkpoint_put_f64(struct slc_checkpoint *checkpoint, double value)
{
    slc_checkpoint_put_u64(checkpoint, slc_bits_f64(value));
}

/* The entries of the files in their folder, and of that in its own, once. */
static void sync_folders(struct slc_checkpoint *checkpoint)
{
    const struct slc_files *files = checkpoint->files;
    char *parent;
    int rc;

    if (checkpoint->fault.status != SLC_OK || checkpoint->folders_synced) {
        return;
    }
    parent = slc_path_parent(checkpoint->folder);
    if (parent == NULL) {
        (void)slc_fail(&checkpoint->fault, SLC_ERR_MEMORY, "no memory for the name of a folder");
        return;
    }
    rc = files->sync_folder(files->self, checkpoint->folder);
    if (rc >= 0) {
        rc = files->sync_folder(files->self, parent);
    }
    if (rc < 0) {
        (void)slc_fail_errno(&checkpoint->fault, -rc, checkpoint->folder,
                             "syncing the folder of the checkpoint");
    }
    checkpoint->folders_synced = true;
    slc_free(parent);
}

enum slc_status slc_checkpoint_commit(struct slc_checkpoint *checkpoint, struct slc_error *err)
{
    uint8_t *table = checkpoint->buffer;
    uint8_t *header = checkpoint->buffer + SLC_PAGE_BYTES;
    char own[SLC_CHECKPOINT_NAME_BYTES];

    if (checkpoint->made_folder) {
        name_own_folder(checkpoint->folder_number, own);
        slc_checkpoint_section(checkpoint, own);
    }
    if (checkpoint->fault.status == SLC_OK) {
        end_section(checkpoint);
        checkpoint->info.file_bytes = checkpoint->at;
    }
    slc_checkpoint_table_encode(&checkpoint->info, table);
    slc_checkpoint_header_encode(&checkpoint->info, table, header);
    write_at(checkpoint, table, SLC_PAGE_BYTES, SLC_CHECKPOINT_TABLE_OFFSET);
    sync_target(checkpoint);
    sync_folders(checkpoint);
    write_at(checkpoint, header, SLC_PAGE_BYTES, 0);
    sync_target(checkpoint);
    if (checkpoint->fault.status != SLC_OK) {
        /* Before anything was written the target may still be the generation that counts. */
        if (checkpoint->begun && checkpoint->fd[checkpoint->target] >= 0) {
            (void)remove_file(checkpoint, checkpoint->target, NULL);
        }
        checkpoint->begun = false;
        if (err != NULL && err->status == SLC_OK) {
            *err = checkpoint->fault;
        }
        return checkpoint->fault.status;
    }
    checkpoint->committed = (int)checkpoint->target;
    checkpoint->generation = checkpoint->info.generation;
    return SLC_OK;
}

enum slc_status slc_checkpoint_remove(struct slc_checkpoint *checkpoint, struct slc_error *err)
{
    const struct slc_files *files = checkpoint->files;
    enum slc_status status = SLC_OK;

    slc_checkpoint_reader_close(checkpoint->found);
    checkpoint->found = NULL;
    /* The older one first: what an interruption leaves is the end of the run. */
    for (unsigned k = 0; k < 2; k++) {
        const enum slc_status removed =
            remove_file(checkpoint, checkpoint->committed == 0 ? 1 - k : k, err);

        status = status == SLC_OK ? removed : status;
    }
    checkpoint->made[0] = checkpoint->made[1] = false;
    if (checkpoint->made_folder) {
        (void)files->remove_folder(files->self, checkpoint->folder);
    }
    checkpoint->committed = status == SLC_OK ? -1 : checkpoint->committed;
    return status;
}
