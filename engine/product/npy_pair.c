/* Writes pairs of .npy files. Each file begins with space for its header. The header contains the
 * number of fibers and is therefore written last. To replace an earlier pair, both of its files are
 * renamed first, so that a reader never finds the coordinates of one result and the rows of
 * another, even after a crash. */
#include "engine/product/npy_pair.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/file/folder_lock.h"
#include "storage/model/npy_header.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { COORDS, ROWS, FILES };

static const char *const names[FILES] = {SLC_PAIR_COORDS, SLC_PAIR_ROWS};

struct slc_npy_pair {
    const struct slc_files *files;
    char *folder;
    bool made_folder;
    /* descriptor of the folder, which is locked while the pair exists; -1 if not locked */
    int lock;
    char *path[FILES];
    char *backup[FILES]; /* path of the earlier file while it is being replaced */
    struct slc_npy_header header[FILES];
    struct slc_output_ring *ring[FILES];
};

static enum slc_status make_paths(struct slc_npy_pair *pair, struct slc_error *err)
{
    for (unsigned f = 0; f < FILES; f++) {
        char name[32];

        (void)snprintf(name, sizeof name, "%s.old", names[f]);
        pair->path[f] = slc_path_join(pair->folder, names[f]);
        pair->backup[f] = slc_path_join(pair->folder, name);
        SLC_TRY(slc_check_memory(pair->path[f] != NULL && pair->backup[f] != NULL, err,
                                 "for the paths of a result"));
    }
    return SLC_OK;
}

static enum slc_status make_folder(struct slc_npy_pair *pair, struct slc_error *err)
{
    const int rc = pair->files->make_folder(pair->files->self, pair->folder);

    pair->made_folder = rc >= 0;
    if (rc < 0 && rc != -EEXIST) {
        return slc_fail_errno(err, -rc, pair->folder, "creating the folder of the result");
    }
    /* A folder that already exists is synced too, because a killed run may have just created it. */
    return slc_name_sync(pair->files, pair->folder, err);
}

/* Locks the folder, because another run would write unfinished files with the same names. */
static enum slc_status lock_folder(struct slc_npy_pair *pair, struct slc_error *err)
{
    bool taken;
    enum slc_status status = slc_folder_lock(
        pair->files, pair->folder,
        "another run is writing this result: wait until it is done, or name another folder",
        &pair->lock, &taken, err);

    if (taken) {
        pair->made_folder = false; /* the folder is not removed: it belongs to the other run now */
    }
    return status;
}

/* Fills both headers except the number of fibers. */
static void make_headers(struct slc_npy_pair *pair, const struct slc_npy_pair_options *options)
{
    const bool big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

    pair->header[COORDS] = (struct slc_npy_header){.kind = 'i',
                                                   .item_bytes = sizeof(int64_t),
                                                   .big_endian = big_endian,
                                                   .dimensions = 2,
                                                   .shape = {0, options->modes}};
    pair->header[ROWS] =
        (struct slc_npy_header){.kind = 'f',
                                .item_bytes = (uint8_t)slc_value_bytes(options->type),
                                .big_endian = big_endian,
                                .dimensions = 2,
                                .shape = {0, options->cols}};
}

/* Creates the output ring of a file and writes space for the file's header. */
static enum slc_status open_ring(struct slc_npy_pair *pair,
                                 unsigned file,
                                 const struct slc_npy_pair_options *options,
                                 struct slc_error *err)
{
    static const uint8_t place[SLC_NPY_STORED_BYTES];
    const struct slc_output_ring_options ring = {
        .files = pair->files,
        .path = pair->path[file],
        .buffer_bytes = options->buffer_bytes,
        .buffer_count = file == COORDS ? options->coord_buffers : options->row_buffers};

    SLC_TRY(slc_output_ring_create(&ring, &pair->ring[file], err));
    return slc_output_ring_fill(pair->ring[file], 0, place, sizeof place, err);
}

enum slc_status slc_npy_pair_create(const struct slc_npy_pair_options *options,
                                    struct slc_npy_pair **result,
                                    struct slc_error *err)
{
    struct slc_npy_pair *pair = slc_calloc(1, sizeof *pair);

    SLC_TRY(slc_check_memory(pair != NULL, err, "for a result"));
    pair->files = slc_files_or_system(options->files);
    pair->lock = -1;
    pair->folder = slc_strdup(options->folder);
    make_headers(pair, options);
    enum slc_status status =
        pair->folder != NULL ? make_paths(pair, err)
                             : slc_fail(err, SLC_ERR_MEMORY, "no memory for the paths of a result");
    SLC_THEN(status, make_folder(pair, err));
    SLC_THEN(status, lock_folder(pair, err));
    for (unsigned f = 0; f < FILES && status == SLC_OK; f++) {
        status = open_ring(pair, f, options, err);
    }
    if (status != SLC_OK) {
        slc_npy_pair_destroy(pair);
        return status;
    }
    *result = pair;
    return SLC_OK;
}

static uint64_t row_bytes(const struct slc_npy_pair *pair, unsigned file)
{
    return pair->header[file].shape[1] * pair->header[file].item_bytes;
}

static enum slc_status write_part(struct slc_npy_pair *pair,
                                  unsigned file,
                                  uint64_t first,
                                  const struct slc_output_rows *rows,
                                  struct slc_error *err)
{
    return slc_output_ring_fill_rows(pair->ring[file],
                                     SLC_NPY_STORED_BYTES + first * rows->row_bytes, rows, err);
}

enum slc_status slc_npy_pair_write_coords(struct slc_npy_pair *pair,
                                          uint64_t first,
                                          uint64_t count,
                                          const int64_t *coords,
                                          struct slc_error *err)
{
    const uint64_t bytes = row_bytes(pair, COORDS);
    const struct slc_output_rows rows = {
        .first = coords, .count = count, .row_bytes = bytes, .stride_bytes = bytes};

    return write_part(pair, COORDS, first, &rows, err);
}

enum slc_status slc_npy_pair_write_rows(struct slc_npy_pair *pair,
                                        uint64_t first,
                                        uint64_t count,
                                        const void *rows,
                                        uint64_t stride_bytes,
                                        struct slc_error *err)
{
    const struct slc_output_rows view = {.first = rows,
                                         .count = count,
                                         .row_bytes = row_bytes(pair, ROWS),
                                         .stride_bytes = stride_bytes};

    return write_part(pair, ROWS, first, &view, err);
}

void slc_npy_pair_abort(struct slc_npy_pair *pair)
{
    for (unsigned f = 0; f < FILES; f++) {
        slc_output_ring_abort(pair->ring[f]);
    }
}

enum slc_status
slc_npy_pair_finish(struct slc_npy_pair *pair, uint64_t fibers, struct slc_error *err)
{
    for (unsigned f = 0; f < FILES; f++) {
        uint8_t head[SLC_NPY_STORED_BYTES];

        pair->header[f].shape[0] = fibers;
        slc_npy_header_store(&pair->header[f], head);
        SLC_TRY(slc_output_ring_finish(pair->ring[f],
                                       SLC_NPY_STORED_BYTES + fibers * row_bytes(pair, f), head,
                                       sizeof head, err));
    }
    return SLC_OK;
}

static enum slc_status sync_names(const struct slc_npy_pair *pair, struct slc_error *err)
{
    const int rc = pair->files->sync_folder(pair->files->self, pair->folder);

    return slc_check_call(rc, err, pair->folder, "syncing the folder");
}

/* Renames an earlier file to its backup path. Sets *moved to true if there was a file. */
static enum slc_status
move_to_backup(const struct slc_npy_pair *pair, unsigned file, bool *moved, struct slc_error *err)
{
    const int rc = pair->files->rename(pair->files->self, pair->path[file], pair->backup[file]);

    *moved = rc >= 0;
    return rc < 0 && rc != -ENOENT
               ? slc_fail_errno(err, -rc, pair->path[file], "renaming the earlier result")
               : SLC_OK;
}

/* Restores the earlier files. If there was no earlier file, removes the new file if it is one of
 * the first `published` files. */
static void roll_back(const struct slc_npy_pair *pair, const bool *moved, unsigned published)
{
    const struct slc_files *files = pair->files;

    for (unsigned f = 0; f < FILES; f++) {
        if (moved[f]) {
            (void)files->rename(files->self, pair->backup[f], pair->path[f]);
        } else if (f < published) {
            (void)files->unlink(files->self, pair->path[f]);
        }
    }
}

enum slc_status slc_npy_pair_publish(struct slc_npy_pair *pair, struct slc_error *err)
{
    bool moved[FILES] = {false};
    enum slc_status status = SLC_OK;
    unsigned published = 0;

    for (unsigned f = 0; f < FILES && status == SLC_OK; f++) {
        status = move_to_backup(pair, f, &moved[f], err);
    }
    if (status == SLC_OK && (moved[COORDS] || moved[ROWS])) {
        /* Without this sync, a power failure could leave one earlier file and one new file in the
         * folder. */
        status = sync_names(pair, err);
    }
    while (published < FILES && status == SLC_OK) {
        status = slc_output_ring_publish(pair->ring[published], err);
        published += status == SLC_OK;
    }
    SLC_THEN(status, sync_names(pair, err));
    if (status != SLC_OK) {
        roll_back(pair, moved, published);
        return status;
    }
    pair->made_folder = false;
    for (unsigned f = 0; f < FILES; f++) {
        /* Also removes backups that a killed run left. */
        (void)pair->files->unlink(pair->files->self, pair->backup[f]);
    }
    return SLC_OK;
}

void slc_npy_pair_stats(struct slc_npy_pair *pair, struct slc_output_ring_stats *stats)
{
    struct slc_output_ring_stats rows;

    slc_output_ring_stats(pair->ring[COORDS], stats);
    slc_output_ring_stats(pair->ring[ROWS], &rows);
    stats->bytes += rows.bytes;
    stats->write_seconds = stats->write_seconds + rows.write_seconds;
    stats->wait_seconds += rows.wait_seconds;
}

void slc_npy_pair_destroy(struct slc_npy_pair *pair)
{
    if (pair == NULL) {
        return;
    }
    for (unsigned f = 0; f < FILES; f++) {
        slc_output_ring_destroy(pair->ring[f]);
        slc_free(pair->path[f]);
        slc_free(pair->backup[f]);
    }
    if (pair->made_folder) {
        (void)pair->files->remove_folder(pair->files->self, pair->folder);
    }
    slc_folder_unlock(pair->files, &pair->lock);
    slc_free(pair->folder);
    slc_free(pair);
}
