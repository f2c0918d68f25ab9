/* Writes the next generation of a checkpoint.
 *
 * Steps: clear the header of the older generation, so that a crash leaves a file that is visibly
 * unfinished; write the sections, then the table; sync; write the header; sync. The writes before
 * the first sync may reach the drive in any order: if the old header is still on the drive,
 * checksums detect the changed sections, and the other generation, which was synced before, is
 * valid. After a failed write or sync the contents of a file are unknown: the system may have
 * dropped pages and still report them as clean. The file is therefore removed, and no file is
 * written again. Files that another process has removed are created again, because the run may have
 * days of work in memory. */
#include "storage/checkpoint/checkpoint_internal.h"

#include "base/error/log.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "storage/file/folder_lock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Writes to the target unless a write has failed before; keeps the first failure. */
static void
write_at(struct slc_checkpoint *checkpoint, const void *data, uint64_t bytes, uint64_t offset)
{
    const unsigned k = checkpoint->target;
    enum slc_status status = checkpoint->fault.status;

    SLC_THEN(status, slc_file_write_at(checkpoint->files, checkpoint->fd[k], checkpoint->path[k],
                                       data, bytes, offset, &checkpoint->fault));
    /* checkpoint->fault has the status, so it is not returned. */
    assert(status == checkpoint->fault.status);
    (void)status;
}

/* Hashes and writes the contents of the buffer. */
static void flush_buffer(struct slc_checkpoint *checkpoint)
{
    slc_hash_stream_add(checkpoint->stream, checkpoint->buffer, checkpoint->used);
    write_at(checkpoint, checkpoint->buffer, checkpoint->used, checkpoint->at);
    checkpoint->at += checkpoint->used;
    checkpoint->used = 0;
}

static void sync_target(struct slc_checkpoint *checkpoint)
{
    const struct slc_files *files = checkpoint->files;

    if (checkpoint->fault.status != SLC_OK) {
        return;
    }
    int rc = files->sync(files->self, checkpoint->fd[checkpoint->target]);
    if (rc < 0) {
        (void)slc_fail_errno(&checkpoint->fault, -rc, checkpoint->path[checkpoint->target],
                             "syncing the checkpoint");
    }
}

/* True if the open file or folder is still at `path`. */
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

/* Creates files and folders again that another process has removed. */
static void create_removed_files(struct slc_checkpoint *checkpoint)
{
    const struct slc_files *files = checkpoint->files;
    enum slc_status status = SLC_OK;
    bool removed[2];

    for (unsigned k = 0; k < 2; k++) {
        removed[k] = !is_at(checkpoint, checkpoint->fd[k], checkpoint->path[k]);
    }
    if (checkpoint->fault.status != SLC_OK || (!removed[0] && !removed[1])) {
        return;
    }
    slc_log(SLC_LOG_WARNING, "the checkpoint in %s was removed during the run and is created again",
            checkpoint->folder);
    if (!is_at(checkpoint, checkpoint->lock_fd, checkpoint->folder)) {
        slc_folder_unlock(files, &checkpoint->lock_fd);
        status = slc_checkpoint_open_folder(checkpoint, checkpoint->folder, &checkpoint->fault);
    }
    for (unsigned k = 0; k < 2 && status == SLC_OK; k++) {
        if (removed[k]) {
            (void)files->close(files->self, checkpoint->fd[k]);
            checkpoint->committed = checkpoint->committed == (int)k ? -1 : checkpoint->committed;
            status = slc_checkpoint_reserve_file(checkpoint, k, checkpoint->reserved_bytes,
                                                 &checkpoint->fault);
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
        create_removed_files(checkpoint);
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

/* Pads the section being written, if any, and records its size and hash. */
static void end_section(struct slc_checkpoint *checkpoint)
{
    uint64_t padding;

    if (checkpoint->info.section_count == 0) {
        return;
    }
    struct slc_checkpoint_section *section =
        &checkpoint->info.sections[checkpoint->info.section_count - 1];
    section->bytes = checkpoint->at + checkpoint->used - section->offset;
    padding = -checkpoint->used % SLC_PAGE_BYTES; /* the buffer has whole pages */
    memset(checkpoint->buffer + checkpoint->used, 0, padding);
    checkpoint->used += padding;
    flush_buffer(checkpoint);
    section->hash = slc_hash_stream_end(checkpoint->stream);
}

void slc_checkpoint_section(struct slc_checkpoint *checkpoint, const char *name)
{
    if (checkpoint->fault.status != SLC_OK) {
        return;
    }
    end_section(checkpoint);
    assert(checkpoint->info.section_count < SLC_CHECKPOINT_SECTIONS);
    assert(strlen(name) < SLC_CHECKPOINT_NAME_BYTES);
    struct slc_checkpoint_section *section =
        &checkpoint->info.sections[checkpoint->info.section_count++];
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
            flush_buffer(checkpoint);
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

/* Syncs the folder of the files and its parent, once per run. */
static void sync_folders(struct slc_checkpoint *checkpoint)
{
    const struct slc_files *files = checkpoint->files;

    if (checkpoint->fault.status != SLC_OK || checkpoint->folders_synced) {
        return;
    }
    char *parent = slc_path_parent(checkpoint->folder);
    if (parent == NULL) {
        (void)slc_fail(&checkpoint->fault, SLC_ERR_MEMORY, "no memory for the name of a folder");
        return;
    }
    int rc = files->sync_folder(files->self, checkpoint->folder);
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

    if (checkpoint->created_folder) {
        slc_checkpoint_name_folder(checkpoint->folder_number, own);
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
        /* If writing has not begun, `target` may be the file of the valid generation: keep it. */
        if (checkpoint->begun && checkpoint->fd[checkpoint->target] >= 0) {
            (void)!slc_checkpoint_remove_file(checkpoint, checkpoint->target, NULL);
        }
        checkpoint->begun = false;
        return slc_error_pass(err, &checkpoint->fault);
    }
    checkpoint->committed = (int)checkpoint->target;
    checkpoint->generation = checkpoint->info.generation;
    return SLC_OK;
}
