/* Adds and drops layouts. A layout is built in NAME-K.blk.tmp, checked, renamed to NAME-K.blk and
 * then listed by replacing the manifest; a layout is dropped by the reverse steps. Files listed in
 * the manifest therefore always exist. A file that is not listed comes from an interrupted change.
 * The next build resumes or replaces the file. If its journal, which is removed last, shows that it
 * is finished, the build lists it. */
#include "convert/layout/relayout.h"

#include "base/memory/memory.h"
#include "convert/layout/restripe.h"
#include "storage/file/folder_lock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Allowance for the allocator, for buffers of standard output, and for pages of the program
     * that are not resident yet. */
    OVERHEAD_BYTES = 3 << 20,
    THREAD_BYTES = 128 << 10
};

/* Names of a layout's files in the store. */
struct names {
    char file[SLC_STORE_FILE_BYTES]; /* name in the manifest */
    char *path;                      /* path of the finished file */
    char *part;                      /* path of the unfinished file */
    char *journal; /* path of the journal of the unfinished file (storage/block/writer.h) */
};

static void release_names(struct names *names)
{
    slc_free(names->path);
    slc_free(names->part);
    slc_free(names->journal);
    *names = (struct names){.path = NULL};
}

static enum slc_status make_names(const char *folder,
                                  enum slc_layout_kind kind,
                                  unsigned mode,
                                  struct names *names,
                                  struct slc_error *err)
{
    char part[72], journal[96];

    (void)snprintf(names->file, sizeof names->file, "%s-%u.blk", slc_layout_name(kind), mode + 1);
    (void)snprintf(part, sizeof part, "%s.tmp", names->file);
    (void)snprintf(journal, sizeof journal, "%s.journal", part);
    names->path = slc_path_join(folder, names->file);
    names->part = slc_path_join(folder, part);
    names->journal = slc_path_join(folder, journal);
    if (names->path == NULL || names->part == NULL || names->journal == NULL) {
        release_names(names);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for paths");
    }
    return SLC_OK;
}

static enum slc_status sync_store(const struct slc_relayout *layouts, struct slc_error *err)
{
    const struct slc_relayout_options *options = &layouts->options;
    int code = options->files->sync_folder(options->files->self, options->store);

    return slc_check_call(code, err, options->store, "syncing the folder");
}

/* Removes a file that may not exist; sets *found if it existed. */
static enum slc_status
remove_file(const struct slc_files *files, const char *path, bool *found, struct slc_error *err)
{
    int code = files->unlink(files->self, path);

    *found = *found || code >= 0;
    return code < 0 && code != -ENOENT ? slc_fail_errno(err, -code, path, "removing the file")
                                       : SLC_OK;
}

/* Removes journals of listed layouts. A run that was killed may have left them. */
static enum slc_status remove_journals(const struct slc_relayout *layouts, struct slc_error *err)
{
    const struct slc_manifest *manifest = &layouts->store.manifest;
    bool found = false;
    enum slc_status status = SLC_OK;

    for (unsigned i = 0; i < manifest->layout_count && status == SLC_OK; i++) {
        const struct slc_store_layout *listed = &manifest->layouts[i];
        struct names names = {.path = NULL};

        if (listed->layout != SLC_LAYOUT_BLCO) {
            status = make_names(layouts->options.store, listed->layout, listed->layout_mode, &names,
                                err);
        }
        if (status == SLC_OK && names.path != NULL) {
            status = remove_file(layouts->options.files, names.journal, &found, err);
        }
        release_names(&names);
    }
    return status;
}

enum slc_status slc_relayout_open(const struct slc_relayout_options *options,
                                  struct slc_relayout *layouts,
                                  struct slc_error *err)
{
    struct slc_relayout opened = {.options = *options, .lock = -1};
    bool taken;

    opened.options.files = slc_files_or_system(options->files);
    /* Read the manifest first: this call has the error message for a folder that is not a store. */
    enum slc_status status =
        slc_manifest_read(opened.options.files, options->store, &opened.store.manifest, err);
    if (status == SLC_OK && !options->reads_only && !options->locked) {
        status = slc_folder_lock(opened.options.files, options->store,
                                 "another run is changing the layouts of this store, or replacing "
                                 "it: wait until it ends",
                                 &opened.lock, &taken, err);
    }
    if (status == SLC_OK && !options->reads_only && !options->locked) {
        status = slc_check_open_files(err);
    }
    if (status == SLC_OK && !options->reads_only) {
        /* An earlier run may have been killed before its last change of the folder was on the
         * drive. Sync that change, because this run depends on it. */
        status = sync_store(&opened, err);
    }
    if (status == SLC_OK && !options->reads_only) {
        status = slc_restripe_clean(opened.options.files, options->store, err);
    }
    if (status == SLC_OK) {
        /* Open the store again, because another run may have changed it before this run held the
         * lock. */
        status = slc_store_open_within(opened.options.files, options->store, options->memory_bytes,
                                       &opened.store, err);
    }
    if (status == SLC_OK && !options->reads_only) {
        status = remove_journals(&opened, err);
    }
    if (status != SLC_OK) {
        slc_relayout_close(&opened);
        return status;
    }
    *layouts = opened;
    return SLC_OK;
}

void slc_relayout_close(struct slc_relayout *layouts)
{
    if (layouts->options.files != NULL) {
        slc_folder_unlock(layouts->options.files, &layouts->lock);
        slc_store_close(&layouts->store);
    }
    layouts->options.files = NULL;
}

static struct slc_sorted_options build_options(const struct slc_relayout *layouts,
                                               enum slc_layout_kind kind,
                                               unsigned mode,
                                               const char *path)
{
    const struct slc_relayout_options *options = &layouts->options;
    /* The resident memory already includes the index of the open store. */
    uint64_t used = slc_memory_resident() + OVERHEAD_BYTES + options->workers * THREAD_BYTES;

    return (struct slc_sorted_options){
        .files = options->files,
        .reader = layouts->store.reader,
        .layout = kind,
        .mode = mode,
        .path = path,
        .keep_journal = true,
        .workers = options->workers,
        .memory_bytes = options->memory_bytes > used ? options->memory_bytes - used : 0,
        .budget_bytes = options->memory_bytes,
        .caller_bytes = used,
        .stop = options->stop,
        .progress = options->progress,
        .context = options->context,
        .planned = options->planned,
        .planned_context = options->planned_context};
}

enum slc_status slc_relayout_plan(const struct slc_relayout *layouts,
                                  enum slc_layout_kind kind,
                                  unsigned mode,
                                  struct slc_sorted_plan *plan,
                                  struct slc_error *err)
{
    struct slc_sorted_options options = build_options(layouts, kind, mode, NULL);

    return slc_sorted_plan_make(&options, plan, err);
}

/* Inserts a layout into the manifest, sorted by kind, then by mode. */
static void insert_layout(struct slc_manifest *manifest, const struct slc_store_layout *layout)
{
    unsigned at = manifest->layout_count++;

    for (; at > 0; at--) {
        const struct slc_store_layout *before = &manifest->layouts[at - 1];

        if (before->layout < layout->layout ||
            (before->layout == layout->layout && before->layout_mode < layout->layout_mode)) {
            break;
        }
        manifest->layouts[at] = *before;
    }
    manifest->layouts[at] = *layout;
}

/* Checks that the finished file matches the manifest. */
static enum slc_status check_file(const struct slc_relayout *layouts,
                                  const struct slc_store_layout *layout,
                                  const char *path,
                                  struct slc_error *err)
{
    struct slc_reader *reader = NULL;
    enum slc_status status = slc_reader_open(layouts->options.files, path, &reader, err);

    SLC_THEN(status, slc_manifest_check_layout(&layouts->store.manifest, layout, reader, err));
    SLC_THEN(status, slc_store_check_keys(&slc_reader_info(layouts->store.reader)->content_keys,
                                          reader, err));
    slc_reader_close(reader);
    return status;
}

static enum slc_status
move_in_place(const struct slc_relayout *layouts, const struct names *names, struct slc_error *err)
{
    const struct slc_files *files = layouts->options.files;
    int code = files->rename(files->self, names->part, names->path);

    SLC_TRY(slc_check_call(code, err, names->path, "moving the finished layout in place"));
    return sync_store(layouts, err);
}

/* Replaces the manifest of the store, on the drive and in memory. */
static enum slc_status write_manifest(struct slc_relayout *layouts,
                                      const struct slc_manifest *manifest,
                                      struct slc_error *err)
{
    SLC_TRY(slc_manifest_write(layouts->options.files, layouts->options.store, manifest, err));
    layouts->store.manifest = *manifest;
    return SLC_OK;
}

/* Removes an invalid layout file, finished or unfinished, and its journal. */
static void remove_all(const struct slc_relayout *layouts, const struct names *names)
{
    const struct slc_files *files = layouts->options.files;

    (void)files->unlink(files->self, names->part);
    (void)files->unlink(files->self, names->path);
    (void)files->unlink(files->self, names->journal);
}

/* Renames the finished file to its final name, if necessary, and lists it in the manifest. */
static enum slc_status publish_layout(struct slc_relayout *layouts,
                                      const struct names *names,
                                      const struct slc_store_layout *layout,
                                      bool in_place,
                                      struct slc_error *err)
{
    struct slc_manifest *manifest = slc_malloc(sizeof *manifest);
    bool found = false;

    SLC_TRY(slc_check_memory(manifest != NULL, err, "for the manifest"));
    *manifest = layouts->store.manifest;
    insert_layout(manifest, layout);
    enum slc_status status = check_file(layouts, layout, in_place ? names->path : names->part, err);
    if (status == SLC_ERR_DAMAGED) {
        remove_all(layouts, names);
    }
    if (status == SLC_OK && !in_place) {
        status = move_in_place(layouts, names, err);
    }
    SLC_THEN(status, write_manifest(layouts, manifest, err));
    slc_free(manifest);
    /* The journal is no longer needed. If a power failure brings it back, remove_journals removes
     * it. */
    SLC_TRY(status);
    return remove_file(layouts->options.files, names->journal, &found, err);
}

/* Looks for a file that an earlier run finished. Sets *in_place if the file has its final name. */
static enum slc_status find_finished(const struct slc_sorted_options *options,
                                     const struct names *names,
                                     struct slc_sorted_report *report,
                                     bool *in_place,
                                     bool *finished,
                                     struct slc_error *err)
{
    enum slc_status status = slc_sorted_finished(options, names->path, report, finished, err);

    *in_place = *finished;
    SLC_TRY(status);
    if (!*finished) {
        SLC_TRY(slc_sorted_finished(options, names->part, report, finished, err));
    }
    return SLC_OK;
}

enum slc_status slc_relayout_add(struct slc_relayout *layouts,
                                 enum slc_layout_kind kind,
                                 unsigned mode,
                                 struct slc_sorted_report *report,
                                 struct slc_error *err)
{
    struct names names = {.path = NULL};
    bool in_place = false, finished = false;

    SLC_TRY(make_names(layouts->options.store, kind, mode, &names, err));
    struct slc_sorted_options options = build_options(layouts, kind, mode, names.part);
    /* A list of stripes at this path belongs to a dropped layout, so it is not usable. */
    enum slc_status status = slc_restripe_discard(layouts->options.files, names.path, err);
    SLC_THEN(status, find_finished(&options, &names, report, &in_place, &finished, err));
    if (status == SLC_OK && !finished) {
        status = slc_sorted_build(&options, report, err);
    }
    if (status == SLC_OK) {
        struct slc_store_layout layout = {.layout = kind,
                                          .layout_mode = mode,
                                          .codec = slc_reader_info(layouts->store.reader)->codec,
                                          .file_bytes = report->summary.file_bytes,
                                          .block_count = report->summary.block_count,
                                          .index_bytes = report->summary.index_bytes,
                                          .header_hash = report->summary.header_hash};

        memcpy(layout.file, names.file, sizeof layout.file);
        status = publish_layout(layouts, &names, &layout, in_place, err);
    }
    release_names(&names);
    return status;
}

/* Removes a layout from the manifest. Returns false if the layout is not listed. */
static bool unlist_layout(struct slc_manifest *manifest, enum slc_layout_kind kind, unsigned mode)
{
    const struct slc_store_layout *listed = slc_manifest_find(manifest, kind, mode);

    if (listed == NULL) {
        return false;
    }
    size_t at = (size_t)(listed - manifest->layouts);
    manifest->layout_count--;
    memmove(&manifest->layouts[at], &manifest->layouts[at + 1],
            (manifest->layout_count - at) * sizeof manifest->layouts[0]);
    return true;
}

enum slc_status slc_relayout_drop(struct slc_relayout *layouts,
                                  enum slc_layout_kind kind,
                                  unsigned mode,
                                  struct slc_error *err)
{
    const struct slc_files *files = layouts->options.files;
    struct slc_manifest *manifest = slc_malloc(sizeof *manifest);
    struct names names = {.path = NULL};
    bool found = false;

    SLC_TRY(slc_check_memory(manifest != NULL, err, "for the manifest"));
    *manifest = layouts->store.manifest;
    enum slc_status status = make_names(layouts->options.store, kind, mode, &names, err);
    if (status == SLC_OK && unlist_layout(manifest, kind, mode)) {
        found = true;
        status = write_manifest(layouts, manifest, err);
    }
    slc_free(manifest);
    SLC_THEN(status, slc_restripe_discard(files, names.path, err));
    SLC_THEN(status, remove_file(files, names.path, &found, err));
    SLC_THEN(status, remove_file(files, names.part, &found, err));
    SLC_THEN(status, remove_file(files, names.journal, &found, err));
    if (status == SLC_OK && !found) {
        status = slc_fail(err, SLC_ERR_USAGE, "the store has no layout %s-%u",
                          slc_layout_name(kind), mode + 1);
    }
    release_names(&names);
    return status;
}
