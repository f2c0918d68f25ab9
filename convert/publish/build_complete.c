#include "convert/publish/build_complete.h"

#include "base/error/clock.h"
#include "base/error/log.h"
#include "base/hash.h"
#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "convert/build/builder_internal.h"
#include "convert/publish/build_layouts.h"
#include "convert/publish/relabel.h"
#include "storage/file/folder_lock.h"

#include <errno.h>
#include <string.h>

/* A build whose store is written. Pointers are borrowed. */
struct complete {
    const struct slc_builder_options *options; /* `output` is ignored */
    struct slc_build_folder *folder;
    enum slc_complete_stage stage;
    struct slc_builder_report *report;
    const struct slc_state *note; /* fields of the caller; NULL: none */
    bool recorded;                /* complete.state is written */
};

/* Writes or reads those members of the report whose values the store does not record. */
static void pass_report(struct slc_state *state, bool reading, struct slc_builder_report *report)
{
    struct slc_fiber_report *fibers = &report->fibers;
    struct slc_relabel_report *relabel = &report->relabel;
    uint64_t *const counts[] = {
        &report->entries,     &report->duplicates, &report->explicit_zeros, &report->rounded_values,
        &report->spill_bytes, &report->buckets,    &report->recursions};
    uint64_t *const sizes[] = {&relabel->plain_bytes, &relabel->plain_index_bytes,
                               &relabel->tried_bytes, &relabel->tried_index_bytes,
                               &relabel->permutation_bytes};

    for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        slc_state_pass_number(state, reading, counts[i]);
    }
    fibers->chosen = slc_state_pass(state, reading, fibers->chosen, 1) != 0;
    fibers->mode = (unsigned)slc_state_pass(state, reading, fibers->mode, SLC_MAX_ORDER - 1);
    if (reading) {
        slc_state_get_bytes(state, &fibers->piece_nnz, sizeof fibers->piece_nnz);
    } else {
        slc_state_put_bytes(state, &fibers->piece_nnz, sizeof fibers->piece_nnz);
    }
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        relabel->verdict[n] = (enum slc_relabel_verdict)slc_state_pass(
            state, reading, relabel->verdict[n], SLC_RELABEL_TOO_LARGE);
    }
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        slc_state_pass_number(state, reading, sizes[i]);
    }
}

/* Returns true if a fault makes the state unusable: files are missing or damaged. */
static bool is_unusable(const struct slc_error *fault)
{
    return fault->status == SLC_ERR_FORMAT || fault->status == SLC_ERR_DAMAGED ||
           fault->status == SLC_ERR_UNSUPPORTED ||
           (fault->status == SLC_ERR_IO &&
            (fault->system_errno == ENOENT || fault->system_errno == ENOTDIR));
}

static enum slc_status
pass_fault(const struct slc_error *fault, enum slc_status status, struct slc_error *err)
{
    if (status != SLC_OK) {
        slc_error_pass(err, fault);
    }
    return status;
}

/* Sets *hash to the hash of the manifest in `folder`, or to 0 if there is no usable manifest. */
static enum slc_status hash_manifest(const struct slc_files *files,
                                     const char *folder,
                                     uint64_t *hash,
                                     struct slc_error *err)
{
    struct slc_error fault = SLC_ERROR_INIT;
    char *path = slc_path_join(folder, SLC_MANIFEST_NAME);
    void *text = NULL;
    uint64_t bytes = 0;

    *hash = 0;
    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    enum slc_status status =
        slc_file_load(files, path, SLC_MANIFEST_MAX_BYTES, &text, &bytes, &fault);
    if (status == SLC_OK) {
        *hash = slc_hash64(text, bytes);
    } else if (is_unusable(&fault)) {
        status = SLC_OK;
    }
    slc_free(text);
    slc_free(path);
    return pass_fault(&fault, status, err);
}

/* Writes complete.state, and syncs it, its name and the name of its folder. */
static enum slc_status write_state(const struct complete *complete, struct slc_error *err)
{
    const struct slc_build_identity *identity = &complete->options->identity;
    const struct slc_build_folder *folder = complete->folder;
    const bool apart = complete->stage == SLC_COMPLETE_APART;
    char *inner = slc_path_join(folder->part, SLC_RELABELLED_NAME);
    struct slc_state state = {.bytes = NULL};
    uint64_t hash;

    SLC_TRY(slc_check_memory(inner != NULL, err, "for a path"));
    enum slc_status status = hash_manifest(folder->files, apart ? inner : folder->part, &hash, err);
    slc_free(inner);
    SLC_TRY(status);
    slc_state_put(&state, identity->input);
    slc_state_put(&state, identity->options);
    slc_state_put(&state, complete->stage);
    slc_state_put(&state, hash);
    pass_report(&state, false, complete->report);
    if (complete->note != NULL) {
        slc_state_put_bytes(&state, complete->note->bytes, complete->note->count);
        state.bad = state.bad || complete->note->bad;
    }
    status = slc_state_save(&state, folder->files, folder->part, SLC_COMPLETE_STATE_NAME, err);
    slc_state_destroy(&state);
    /* If there was no commit, a power failure could still remove the name of the folder. */
    SLC_TRY(status);
    return slc_name_sync(folder->files, folder->part, err);
}

/* Removes a relabelled store that was rejected or is unfinished. */
static enum slc_status remove_inner(const struct slc_build_folder *folder, struct slc_error *err)
{
    static const char *const names[] = {SLC_RELABELLED_NAME, SLC_RELABELLED_NAME ".part"};
    enum slc_status status = SLC_OK;

    for (unsigned i = 0; i < sizeof names / sizeof names[0] && status == SLC_OK; i++) {
        char *path = slc_path_join(folder->part, names[i]);

        status = path == NULL ? slc_fail(err, SLC_ERR_MEMORY, "no memory for a path")
                              : slc_folder_remove(folder->files, path, err);
        slc_free(path);
    }
    return status;
}

/* Tries to relabel the store, and then updates complete.state if it was written. */
static enum slc_status renumber_store(struct complete *complete, struct slc_error *err)
{
    bool apart = false;
    enum slc_status status = remove_inner(complete->folder, err);

    SLC_THEN(status, slc_relabel_store(complete->options, complete->folder->part, complete->report,
                                       &apart, err));
    if (status == SLC_OK && complete->options->publishing != NULL) {
        complete->options->publishing();
    }
    complete->stage = apart ? SLC_COMPLETE_APART : SLC_COMPLETE_WHOLE;
    return status == SLC_OK && complete->recorded ? write_state(complete, err) : status;
}

/* Adds layouts, and updates the hash of the manifest in complete.state if it was written. */
static enum slc_status add_layouts(struct complete *complete, struct slc_error *err)
{
    enum slc_status status =
        slc_build_layouts(complete->options, complete->folder->part, complete->report, err);

    complete->stage = SLC_COMPLETE_WHOLE;
    return status == SLC_OK && complete->recorded && complete->report->layout_count > 0
               ? write_state(complete, err)
               : status;
}

/* Relabels the store if requested, builds additional layouts, and renames the store to its final
 * name. Errors: those of slc_relabel_store, slc_build_layouts and slc_build_folder_publish; after
 * an error, complete.state remains. */
static enum slc_status finish_steps(struct complete *complete, struct slc_error *err)
{
    const struct slc_build_folder *folder = complete->folder;
    const struct slc_files *files = folder->files;
    char *path = slc_path_join(folder->output, SLC_COMPLETE_STATE_NAME);
    enum slc_status status = SLC_OK;
    int code;

    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    if (complete->stage == SLC_COMPLETE_PLAIN) {
        status = renumber_store(complete, err);
    } else if (complete->options->publishing != NULL) {
        complete->options->publishing();
    }
    if (status == SLC_OK && complete->stage == SLC_COMPLETE_APART) {
        status = slc_relabel_install(files, folder->part, err);
    }
    SLC_THEN(status, add_layouts(complete, err));
    SLC_THEN(status, slc_build_folder_publish(complete->folder, err));
    if (status == SLC_OK && complete->recorded) {
        /* The store already has its final name, and an additional file in it does no harm. */
        code = files->unlink(files->self, path);
        if (code < 0) {
            slc_log(SLC_LOG_WARNING, "%s is left over and can be removed: %s", path,
                    strerror(-code));
        }
    }
    slc_free(path);
    return status;
}

/* Sets those members of the report whose values the store records. */
static void report_store(const struct slc_store *store, struct slc_builder_report *report)
{
    const struct slc_layout_info *info = slc_reader_info(store->reader);
    const struct slc_store_layout *listed = slc_manifest_find(&store->manifest, SLC_LAYOUT_BLCO, 0);

    report->kept_nnz = info->nnz;
    report->fibers.run = info->keys.run;
    report->summary = (struct slc_writer_summary){.nnz = info->nnz,
                                                  .block_count = info->block_count,
                                                  .tile_count = info->tile_count,
                                                  .file_bytes = info->file_bytes,
                                                  .index_bytes = listed->index_bytes,
                                                  .sum_of_squares = info->sum_of_squares,
                                                  .content_sum = info->content_sum,
                                                  .header_hash = info->header_hash,
                                                  .value_type = info->value_type,
                                                  .values = store->manifest.values};
}

/* Sets *whole to true if the manifest in `folder` has this hash, and all files that it lists exist
 * and have valid headers. */
static enum slc_status is_whole(const struct slc_builder_options *options,
                                const char *folder,
                                uint64_t manifest_hash,
                                struct slc_builder_report *report,
                                bool *whole,
                                struct slc_error *err)
{
    const struct slc_files *files = slc_files_or_system(options->files);
    struct slc_error fault = SLC_ERROR_INIT;
    uint64_t hash;
    enum slc_status status = hash_manifest(files, folder, &hash, err);

    *whole = false;
    if (status != SLC_OK || hash != manifest_hash) {
        return status;
    }
    struct slc_store *store = slc_calloc(1, sizeof *store);
    SLC_TRY(slc_check_memory(store != NULL, err, "for the manifest"));
    status = slc_store_open_within(files, folder, options->memory_bytes, store, &fault);
    *whole = status == SLC_OK;
    for (unsigned i = 0; i < store->manifest.permutation_count && *whole; i++) {
        char *path = slc_path_join(folder, store->manifest.permutations[i].file);
        struct slc_file_stat stat;

        *whole = path != NULL && files->stat_path(files->self, path, &stat) >= 0 &&
                 stat.kind == 'f' && stat.bytes == store->manifest.permutations[i].file_bytes;
        slc_free(path);
    }
    if (status == SLC_OK) {
        report_store(store, report);
        slc_store_close(store);
    } else if (is_unusable(&fault)) {
        status = SLC_OK;
    }
    slc_free(store);
    return pass_fault(&fault, status, err);
}

/* Reads complete.state in `folder`. *sound becomes true if the state is valid and belongs to this
 * build. */
static enum slc_status read_state(struct slc_complete_left *left,
                                  const char *folder,
                                  uint64_t *manifest_hash,
                                  bool *sound,
                                  struct slc_error *err)
{
    const struct slc_builder_options *options = left->options;
    struct slc_state state = {.bytes = NULL};
    enum slc_status status = slc_state_load(&state, slc_files_or_system(options->files), folder,
                                            SLC_COMPLETE_STATE_NAME, sound, err);

    if (status == SLC_OK && *sound && slc_identity_differs(&state, &options->identity) == NULL) {
        left->stage = (enum slc_complete_stage)slc_state_get(&state, SLC_COMPLETE_APART);
        *manifest_hash = slc_state_get(&state, UINT64_MAX);
        left->report = (struct slc_builder_report){.resumed = true};
        pass_report(&state, true, &left->report);
        slc_state_put_bytes(&left->note, state.bytes + state.at, state.count - state.at);
        *sound = !state.bad && !left->note.bad &&
                 (left->stage == SLC_COMPLETE_WHOLE || options->relabel != SLC_RELABEL_NONE);
    } else {
        *sound = false;
    }
    slc_state_destroy(&state);
    return status;
}

/* Sets *taken to true if complete.state in `folder` belongs to this build and the store is
 * complete. */
static enum slc_status
check_store(struct slc_complete_left *left, const char *folder, bool *taken, struct slc_error *err)
{
    const struct slc_files *files = slc_files_or_system(left->options->files);
    uint64_t hash = 0;
    enum slc_status status = read_state(left, folder, &hash, taken, err);
    int code = 0;

    if (status != SLC_OK || !*taken) {
        return status;
    }
    /* Sync the folder, because this run relies on files that a killed run may not have synced. */
    SLC_TRY(slc_name_sync(files, folder, err));
    code = files->sync_folder(files->self, folder);
    SLC_TRY(code < 0 ? slc_fail_errno(err, -code, folder, "syncing the folder") : SLC_OK);
    if (left->stage == SLC_COMPLETE_APART) {
        SLC_TRY(slc_relabel_install(files, folder, err));
    }
    return is_whole(left->options, folder, hash, &left->report, taken, err);
}

/* Returns OUTPUT + suffix, newly allocated, or NULL if out of memory. */
static char *output_path(const struct slc_builder_options *options, const char *suffix)
{
    size_t length = strlen(options->output);
    char *path = slc_malloc(length + strlen(suffix) + 1);

    while (length > 1 && options->output[length - 1] == '/') {
        length--;
    }
    if (path != NULL) {
        memcpy(path, options->output, length);
        memcpy(path + length, suffix, strlen(suffix) + 1);
    }
    return path;
}

/* Looks for a store that already has its final name. */
static enum slc_status
find_placed(struct slc_complete_left *left, bool *found, struct slc_error *err)
{
    const struct slc_files *files = slc_files_or_system(left->options->files);
    char *output = output_path(left->options, "");
    bool taken;
    enum slc_status status = slc_state_exists(files, output, SLC_COMPLETE_STATE_NAME, found, err);

    if (status == SLC_OK && *found) {
        status =
            slc_folder_lock(files, output, "another run is changing this store: wait until it ends",
                            &left->lock, &taken, err);
    }
    if (status == SLC_OK && *found) {
        left->placed = true;
        status = check_store(left, output, found, err);
    }
    slc_free(output);
    return status;
}

static enum slc_status find_part(struct slc_complete_left *left, bool *found, struct slc_error *err)
{
    const struct slc_builder_options *options = left->options;
    const struct slc_files *files = slc_files_or_system(options->files);
    char *part = output_path(options, ".part");
    enum slc_status status = slc_state_exists(files, part, SLC_COMPLETE_STATE_NAME, found, err);

    slc_free(part);
    if (status == SLC_OK && *found) {
        status = slc_build_folder_create(&left->folder, files, options->output, options->overwrite,
                                         true, err);
    }
    return status == SLC_OK && *found ? check_store(left, left->folder.part, found, err) : status;
}

enum slc_status slc_complete_find(const struct slc_builder_options *options,
                                  struct slc_complete_left *left,
                                  bool *found,
                                  struct slc_error *err)
{
    *left = (struct slc_complete_left){.options = options, .lock = -1};
    *found = false;
    if ((!options->resumable && !options->completable) || options->restart) {
        return SLC_OK;
    }
    enum slc_status status = find_placed(left, found, err);
    if (status == SLC_OK && !*found) {
        slc_complete_left_end(left);
        *left = (struct slc_complete_left){.options = options, .lock = -1};
        status = find_part(left, found, err);
    }
    if (status != SLC_OK || !*found) {
        slc_complete_left_end(left);
    }
    return status;
}

void slc_complete_left_end(struct slc_complete_left *left)
{
    if (left->options != NULL) {
        slc_folder_unlock(slc_files_or_system(left->options->files), &left->lock);
        slc_build_folder_end(&left->folder);
        slc_state_destroy(&left->note);
        left->options = NULL;
    }
}

enum slc_status slc_complete_clean_up(const struct slc_builder_options *options,
                                      struct slc_error *err)
{
    const struct slc_files *files = slc_files_or_system(options->files);
    static const char *const suffixes[] = {".part", ".old"};
    enum slc_status status = slc_name_sync(files, options->output, err);

    for (unsigned i = 0; i < 2 && status == SLC_OK && options->overwrite; i++) {
        char *old_path = output_path(options, suffixes[i]);

        status = old_path == NULL ? slc_fail(err, SLC_ERR_MEMORY, "no memory for a path")
                                  : slc_build_leftover_remove(files, old_path, err);
        slc_free(old_path);
    }
    return status == SLC_OK ? slc_state_remove(files, options->output, SLC_COMPLETE_STATE_NAME, err)
                            : status;
}

static enum slc_status finish_part(struct slc_complete_left *left, struct slc_error *err)
{
    static const char *const states[] = {SLC_PUSHED_STATE_NAME, SLC_SORTED_STATE_NAME,
                                         SLC_BLCO_NAME ".journal", SLC_SPILL_NAME};
    struct complete complete = {.options = left->options,
                                .folder = &left->folder,
                                .stage = left->stage,
                                .report = &left->report,
                                .note = &left->note,
                                .recorded = true};

    for (unsigned i = 0; i < sizeof states / sizeof states[0]; i++) {
        SLC_TRY(slc_state_remove(left->folder.files, left->folder.part, states[i], err));
    }
    if (left->stage == SLC_COMPLETE_WHOLE) {
        SLC_TRY(remove_inner(&left->folder, err));
    }
    return finish_steps(&complete, err);
}

enum slc_status slc_complete_left_finish(struct slc_complete_left *left, struct slc_error *err)
{
    enum slc_status status =
        left->placed ? slc_complete_clean_up(left->options, err) : finish_part(left, err);

    if (status == SLC_ERR_DAMAGED) {
        left->folder.keep = false;
    } else if (status != SLC_OK && left->folder.made) {
        slc_log(SLC_LOG_NOTE, "progress is kept in %s: the same command resumes from it",
                left->folder.part);
    }
    slc_complete_left_end(left);
    return status;
}

/* Returns true if the store is worth the syncs that protect it from a crash: there was a commit,
 * the caller requests it, or the build lasted at least as long as the time between commits. */
static bool is_worth_recording(const struct slc_builder *builder)
{
    return builder->completable &&
           (builder->folder.keep || builder->options.note_complete ||
            slc_seconds_since(builder->start_ns) >= slc_build_interval(builder));
}

/* Records that the store is complete. If there was a commit, recording must succeed, because the
 * commit is dropped next. Otherwise a failure is ignored, because it matters only if a later step
 * fails. */
static enum slc_status record_if_worthwhile(const struct slc_builder *builder,
                                            struct complete *complete,
                                            struct slc_error *err)
{
    struct slc_error fault = SLC_ERROR_INIT;

    if (!is_worth_recording(builder)) {
        return SLC_OK;
    }
    if (builder->folder.keep) {
        complete->recorded = true;
        return write_state(complete, err);
    }
    complete->recorded = write_state(complete, &fault) == SLC_OK;
    if (!complete->recorded) {
        /* Remove a partly written state, so that it does not become part of the store. */
        (void)!slc_state_remove(complete->folder->files, complete->folder->part,
                                SLC_COMPLETE_STATE_NAME, &fault);
    }
    return SLC_OK;
}

enum slc_status slc_builder_finish(struct slc_builder *builder,
                                   unsigned index_base,
                                   const uint64_t *dims,
                                   struct slc_store_origin *origin,
                                   struct slc_builder_report *report,
                                   struct slc_error *err)
{
    struct slc_builder_options options = builder->options;
    const bool relabels = options.relabel != SLC_RELABEL_NONE;
    struct complete complete = {.options = &options,
                                .folder = &builder->folder,
                                .stage = relabels ? SLC_COMPLETE_PLAIN : SLC_COMPLETE_WHOLE,
                                .report = report,
                                .note = builder->last_note};

    *report = (struct slc_builder_report){.resumed = builder->resumed};
    /* The second sort uses the memory and the temporary folder of the first sort. */
    options.temp_folder = builder->temp_folder;
    enum slc_status status = slc_build_store(builder, index_base, dims, origin, report, err);
    SLC_THEN(status, record_if_worthwhile(builder, &complete, err));
    SLC_THEN(status, slc_build_drop_spill(builder, complete.recorded, err));
    SLC_THEN(status, finish_steps(&complete, err));
    report->commit_seconds = builder->commit_cost_seconds;
    slc_builder_end(builder, status);
    return status;
}
