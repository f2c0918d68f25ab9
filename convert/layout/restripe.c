/* Moves block files to stripes and back. P is the path of a layout: a block file, or a list of its
 * stripes. During a change, temporary files exist next to P (convert/layout/restripe.h). The new
 * file or list becomes P by rename. */
#include "convert/layout/restripe.h"

#include "base/hash.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/file/block_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

/* A change of a layout from a file to stripes, from stripes to a file, or to other stripes. */
struct change {
    const struct slc_relayout *layouts;
    const struct slc_files *files;
    const struct slc_store_layout *listed;
    char *path;                 /* P */
    char *next;                 /* path of the file or list that will replace P */
    struct slc_block_file from; /* P, open */
    struct slc_stripe_list old; /* contents of P if P is a list */
    bool striped;
    bool own;     /* this store owns the stripes of P */
    bool renamed; /* the rename was done; new files must stay */
};

static void end_change(struct change *change)
{
    slc_block_file_close(&change->from);
    slc_stripe_list_clear(&change->old);
    slc_free(change->path);
    slc_free(change->next);
}

static enum slc_status start_change(const struct slc_relayout *layouts,
                                    enum slc_layout_kind kind,
                                    unsigned mode,
                                    const char *suffix,
                                    struct change *change,
                                    struct slc_error *err)
{
    *change = (struct change){.layouts = layouts,
                              .files = layouts->options.files,
                              .listed = slc_manifest_find(&layouts->store.manifest, kind, mode),
                              .from = SLC_BLOCK_FILE_INIT};
    if (change->listed == NULL) {
        return slc_fail_file(err, SLC_ERR_USAGE, layouts->options.store,
                             "the store has no layout %s-%u", slc_layout_name(kind), mode + 1);
    }
    change->path = slc_path_join(layouts->options.store, change->listed->file);
    change->next = change->path == NULL ? NULL : slc_restripe_path(change->path, suffix);
    SLC_TRY(slc_check_memory(change->next != NULL, err, "for a path"));
    SLC_TRY(slc_stripe_list_load(change->files, change->path, &change->old, &change->striped, err));
    if (change->striped) {
        SLC_TRY(
            slc_stripe_is_own(change->files, change->path, &change->old.shape, &change->own, err));
    }
    return slc_block_file_open(change->files, change->path, "opening a block file", &change->from,
                               err);
}

/* Copies the block file to the open files `to`: to stripes of shape `to_shape` or, if `to_shape` is
 * NULL, to the single file to[0]. */
static enum slc_status copy_bytes(const struct change *change,
                                  const struct slc_stripe_shape *to_shape,
                                  const struct slc_block_part *to,
                                  struct slc_error *err)
{
    const struct slc_relayout_options *options = &change->layouts->options;
    const uint64_t total = change->from.bytes;
    struct slc_buffer piece = SLC_BUFFER_INIT;
    enum slc_status status = slc_buffer_create(&piece, SLC_STRIPE_UNIT, SLC_PAGES_SMALL, err);

    for (uint64_t done = 0, now; done < total && status == SLC_OK; done += now) {
        unsigned part = 0;
        uint64_t at = done;

        now = slc_min_u64(SLC_STRIPE_UNIT, total - done);
        if (to_shape != NULL) {
            now = slc_min_u64(now, slc_stripe_place(to_shape, done, &part, &at));
        }
        if (slc_stop_wanted(options->stop)) {
            status = slc_fail(err, SLC_ERR_INTERRUPTED, "stopped while a layout was being moved");
        }
        SLC_THEN(status, slc_block_file_read(&change->from, piece.data, now, done, err));
        SLC_THEN(status, slc_file_write_at(change->files, to[part].fd, to[part].path, piece.data,
                                           now, at, err));
        if (options->progress != NULL) {
            options->progress(options->context, to_shape != NULL ? "stripe" : "gather", done + now,
                              total);
        }
    }
    slc_buffer_destroy(&piece);
    return status;
}

/* Creates a new file, with `bytes` bytes reserved if the file system supports it. */
static enum slc_status create_file(const struct slc_files *files,
                                   uint64_t bytes,
                                   struct slc_block_part *part,
                                   struct slc_error *err)
{
    part->fd = files->open(files->self, part->path,
                           O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | SLC_OPEN_OWN, 0666);
    if (part->fd == -EEXIST) {
        return slc_fail_file(err, SLC_ERR_IO, part->path,
                             "a file of this name exists already, probably of a copy of this "
                             "store: choose another folder, or remove the file");
    }
    SLC_TRY(slc_check_call(part->fd, err, part->path, "creating the file"));
    int code = files->reserve(files->self, part->fd, bytes);
    return code < 0 && code != -EOPNOTSUPP
               ? slc_fail_errno(err, -code, part->path, "reserving %" PRIu64 " bytes", bytes)
               : SLC_OK;
}

/* Syncs and closes a file made by create_file; after an error, only closes it. */
static enum slc_status finish_file(const struct slc_files *files,
                                   struct slc_block_part *part,
                                   enum slc_status status,
                                   struct slc_error *err)
{
    int code = 0;

    if (part->fd < 0) {
        return status;
    }
    if (status == SLC_OK && (code = files->sync(files->self, part->fd)) < 0) {
        status = slc_fail_errno(err, -code, part->path, "syncing the file");
    }
    code = files->close(files->self, part->fd);
    SLC_TRY(status);
    SLC_TRY(slc_check_call(code, err, part->path, "closing the file"));
    return SLC_OK;
}

static enum slc_status write_list(const struct change *change,
                                  const struct slc_stripe_list *list,
                                  const char *path,
                                  struct slc_error *err)
{
    uint8_t *data = NULL;
    uint64_t bytes = 0;
    enum slc_status status = slc_stripe_list_encode(list, &data, &bytes, err);

    SLC_THEN(status, slc_file_replace(change->files, path, data, bytes, err));
    slc_free(data);
    return status;
}

/* If P is a list of stripes that this store owns, records that they must be removed when P has been
 * replaced. */
static enum slc_status record_leaving(const struct change *change, struct slc_error *err)
{
    char *path = slc_restripe_path(change->path, SLC_STRIPES_LEAVING);
    enum slc_status status = slc_check_memory(path != NULL, err, "for a path");

    if (status == SLC_OK && change->own) {
        status = write_list(change, &change->old, path, err);
    }
    slc_free(path);
    return status;
}

/* Writes all stripes of a list, and syncs them and their names. */
static enum slc_status write_stripes(const struct change *change,
                                     const struct slc_stripe_list *list,
                                     struct slc_error *err)
{
    struct slc_block_part parts[SLC_MAX_STRIPES] = {{.fd = -1}};
    uint8_t page[SLC_PAGE_BYTES];
    unsigned made = 0;
    enum slc_status status = SLC_OK;

    for (; made < list->shape.count && status == SLC_OK; made++) {
        parts[made] = (struct slc_block_part){
            slc_stripe_path(&list->shape, change->path, list->folders[made], made), -1};
        status =
            parts[made].path == NULL
                ? slc_fail(err, SLC_ERR_MEMORY, "no memory for a path")
                : create_file(change->files, SLC_PAGE_BYTES + slc_stripe_bytes(&list->shape, made),
                              &parts[made], err);
        if (status == SLC_OK) {
            slc_stripe_header_encode(&list->shape, made, page);
            status = slc_file_write_at(change->files, parts[made].fd, parts[made].path, page,
                                       sizeof page, 0, err);
        }
    }
    SLC_THEN(status, copy_bytes(change, &list->shape, parts, err));
    for (unsigned k = 0; k < made; k++) {
        status = finish_file(change->files, &parts[k], status, err);
        SLC_THEN(status, slc_name_sync(change->files, parts[k].path, err));
        slc_free(parts[k].path);
    }
    return status;
}

/* Checks that the file or list that will replace P is the layout that the manifest lists. */
static enum slc_status check_next(const struct change *change, struct slc_error *err)
{
    struct slc_reader *reader = NULL;
    enum slc_status status = slc_reader_open(change->files, change->next, &reader, err);

    SLC_THEN(status, slc_manifest_check_layout(&change->layouts->store.manifest, change->listed,
                                               reader, err));
    slc_reader_close(reader);
    return status;
}

/* Renames the new file or list to P, which completes the change, and removes the old stripes of
 * P. */
static enum slc_status commit_stripes(struct change *change, struct slc_error *err)
{
    int code = change->files->rename(change->files->self, change->next, change->path);

    SLC_TRY(slc_check_call(code, err, change->path, "moving the layout in place"));
    change->renamed = true;
    if (change->striped && !change->own) {
        slc_stripe_note_kept(change->path, &change->old);
    }
    SLC_TRY(slc_name_sync(change->files, change->path, err));
    return slc_restripe_clean_list(change->files, change->path, SLC_STRIPES_LEAVING, err);
}

/* Removes the new files after an error. If this fails, the next change removes them. */
static void abandon_change(const struct change *change)
{
    struct slc_error ignored = SLC_ERROR_INIT;

    if (change->renamed || change->path == NULL) {
        return;
    }
    if (slc_restripe_clean_list(change->files, change->path, SLC_STRIPES_COMING, &ignored) ==
        SLC_OK) {
        (void)change->files->unlink(change->files->self, change->next);
    }
    (void)(slc_restripe_clean_list(change->files, change->path, SLC_STRIPES_LEAVING, &ignored) ==
           SLC_OK);
}

/* Sets *there to true if all stripes that P lists are in the folders of `list` and this store owns
 * them. */
static enum slc_status are_in_folders(const struct change *change,
                                      const struct slc_stripe_list *list,
                                      bool *there,
                                      struct slc_error *err)
{
    *there = change->own && change->old.shape.count == list->shape.count;
    for (unsigned k = 0; *there && k < list->shape.count; k++) {
        char *path = slc_stripe_path(&change->old.shape, change->path, list->folders[k], k);
        struct slc_error ignored = SLC_ERROR_INIT;
        int fd = -1;

        SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
        *there =
            slc_stripe_open(change->files, &change->old.shape, k, path, &fd, &ignored) == SLC_OK;
        if (fd >= 0) {
            (void)change->files->close(change->files->self, fd);
        }
        slc_free(path);
    }
    return SLC_OK;
}

static bool same_folders(const struct slc_stripe_list *a, const struct slc_stripe_list *b)
{
    bool same = a->shape.count == b->shape.count;

    for (unsigned k = 0; same && k < a->shape.count; k++) {
        same = strcmp(a->folders[k], b->folders[k]) == 0;
    }
    return same;
}

/* Returns the identity of new stripes, which becomes part of their file names: a hash of contents,
 * store, owner and folders. Stripes of different stores therefore have different names. */
static uint64_t identity(const struct change *change, const struct slc_stripe_list *list)
{
    uint64_t numbers[] = {list->shape.file_bytes,   list->shape.header_hash,
                          list->shape.unit,         list->shape.count,
                          list->shape.owner.inode,  list->shape.owner.file_system,
                          list->shape.owner.born_ns};
    uint64_t id =
        slc_hash64(numbers, sizeof numbers) ^ slc_hash64(change->path, strlen(change->path));

    for (unsigned k = 0; k < list->shape.count; k++) {
        const uint64_t pair[] = {id, slc_hash64(list->folders[k], strlen(list->folders[k]))};

        id = slc_hash64(pair, sizeof pair);
    }
    return change->striped && id == change->old.shape.id ? id + 1 : id;
}

static enum slc_status make_list(const struct change *change,
                                 const char *const *folders,
                                 unsigned count,
                                 struct slc_stripe_list *list,
                                 struct slc_error *err)
{
    const uint64_t unit = change->layouts->options.stripe_unit;

    if (count == 0 || count > SLC_MAX_STRIPES) {
        return slc_fail(err, SLC_ERR_USAGE, "%u folders for stripes: there must be 1 to %d", count,
                        (int)SLC_MAX_STRIPES);
    }
    list->shape = (struct slc_stripe_shape){.file_bytes = change->from.bytes,
                                            .header_hash = change->listed->header_hash,
                                            .unit = unit != 0 ? unit : SLC_STRIPE_UNIT,
                                            .count = count};
    SLC_TRY(slc_stripe_owner_find(change->files, change->path, &list->shape.owner, err));
    for (unsigned k = 0; k < count; k++) {
        list->folders[k] = slc_strdup(folders[k]);
        SLC_TRY(slc_check_memory(list->folders[k] != NULL, err, "for a path"));
    }
    list->shape.id = identity(change, list);
    return SLC_OK;
}

/* Writes the stripes of `list` and replaces P with the list. */
static enum slc_status
install_stripes(struct change *change, const struct slc_stripe_list *list, struct slc_error *err)
{
    SLC_TRY(write_list(change, list, change->next, err));
    SLC_TRY(write_stripes(change, list, err));
    SLC_TRY(check_next(change, err));
    SLC_TRY(record_leaving(change, err));
    return commit_stripes(change, err);
}

enum slc_status slc_relayout_stripe(struct slc_relayout *layouts,
                                    enum slc_layout_kind kind,
                                    unsigned mode,
                                    const char *const *folders,
                                    unsigned count,
                                    bool *changed,
                                    struct slc_error *err)
{
    struct slc_stripe_list list = {.shape = {0}};
    struct change change;
    bool there = false;
    enum slc_status status = start_change(layouts, kind, mode, SLC_STRIPES_COMING, &change, err);

    *changed = false;
    SLC_THEN(status, make_list(&change, folders, count, &list, err));
    SLC_THEN(status, are_in_folders(&change, &list, &there, err));
    if (status == SLC_OK && there && !same_folders(&change.old, &list)) {
        /* The user moved the stripes, so only the list changes. */
        list.shape = change.old.shape;
        status = write_list(&change, &list, change.next, err);
        SLC_THEN(status, commit_stripes(&change, err));
    } else if (status == SLC_OK && !there) {
        status = install_stripes(&change, &list, err);
        *changed = status == SLC_OK;
        if (status != SLC_OK) {
            abandon_change(&change);
        }
    }
    slc_stripe_list_clear(&list);
    end_change(&change);
    return status;
}

enum slc_status slc_relayout_gather(struct slc_relayout *layouts,
                                    enum slc_layout_kind kind,
                                    unsigned mode,
                                    bool *changed,
                                    struct slc_error *err)
{
    struct change change;
    struct slc_block_part part = {.fd = -1};
    enum slc_status status = start_change(layouts, kind, mode, SLC_STRIPES_GATHERED, &change, err);

    *changed = false;
    if (status == SLC_OK && change.striped) {
        part.path = change.next;
        status = record_leaving(&change, err);
        SLC_THEN(status, create_file(change.files, change.from.bytes, &part, err));
        SLC_THEN(status, copy_bytes(&change, NULL, &part, err));
        status = finish_file(change.files, &part, status, err);
        SLC_THEN(status, check_next(&change, err));
        SLC_THEN(status, commit_stripes(&change, err));
        *changed = status == SLC_OK;
        if (status != SLC_OK) {
            abandon_change(&change);
        }
    }
    end_change(&change);
    return status;
}
