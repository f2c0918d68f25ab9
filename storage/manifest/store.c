/* Opens a store: its manifest and a reader for its `blco` layout, checked against each other. */
#include "storage/manifest/store.h"

#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/file/block_file.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *slc_layout_name(enum slc_layout_kind layout)
{
    static const char *const names[] = {"?", "blco", "sorted", "fiber"};

    return layout >= SLC_LAYOUT_BLCO && layout <= SLC_LAYOUT_FIBER ? names[layout] : names[0];
}

uint64_t slc_manifest_file_bytes(const struct slc_manifest *manifest)
{
    uint64_t bytes = 0;
    bool fits = true;

    for (unsigned i = 0; i < manifest->layout_count; i++) {
        fits = slc_add_u64(bytes, manifest->layouts[i].file_bytes, &bytes) && fits;
    }
    for (unsigned i = 0; i < manifest->permutation_count; i++) {
        fits = slc_add_u64(bytes, manifest->permutations[i].file_bytes, &bytes) && fits;
    }
    for (unsigned i = 0; i < manifest->names_count; i++) {
        fits = slc_add_u64(bytes, manifest->names[i].file_bytes, &bytes) && fits;
    }
    return fits ? bytes : UINT64_MAX;
}

const struct slc_store_layout *slc_manifest_find(const struct slc_manifest *manifest,
                                                 enum slc_layout_kind layout,
                                                 unsigned layout_mode)
{
    for (unsigned i = 0; i < manifest->layout_count; i++) {
        const struct slc_store_layout *listed = &manifest->layouts[i];

        if (listed->layout == layout && listed->layout_mode == layout_mode) {
            return listed;
        }
    }
    return NULL;
}

const struct slc_store_permutation *slc_manifest_permutation(const struct slc_manifest *manifest,
                                                             unsigned mode)
{
    for (unsigned i = 0; i < manifest->permutation_count; i++) {
        if (manifest->permutations[i].mode == mode) {
            return &manifest->permutations[i];
        }
    }
    return NULL;
}

const struct slc_store_names *slc_manifest_names(const struct slc_manifest *manifest, unsigned mode)
{
    for (unsigned i = 0; i < manifest->names_count; i++) {
        if (manifest->names[i].mode == mode) {
            return &manifest->names[i];
        }
    }
    return NULL;
}

/* Returns a mask with one bit per relabelled mode, as in the headers of block files. */
static uint64_t relabelled_modes(const struct slc_manifest *manifest)
{
    uint64_t modes = 0;

    for (unsigned i = 0; i < manifest->permutation_count; i++) {
        modes |= UINT64_C(1) << manifest->permutations[i].mode;
    }
    return modes;
}

/* Compares sums of squares: exactly for blco, and for other layouts up to rounding, because their
 * nonzeros are added in another order. The terms are not negative, so the relative error of a sum
 * is at most 2^-53 times the number of additions after a term: the additions within its tile, one
 * per tile and one per block, together fewer than twice the number of nonzeros. The bound may be
 * generous, because the content sum detects wrong nonzeros. Sums are limited to the largest double,
 * because only one of two nearly equal sums may overflow. */
static bool same_squares(const struct slc_manifest *manifest, const struct slc_layout_info *info)
{
    double listed = fmin(manifest->sum_of_squares, DBL_MAX);
    double found = fmin(info->sum_of_squares, DBL_MAX);
    double bound = 2 * 2 * (double)info->nnz * (DBL_EPSILON / 2);

    if (info->layout == SLC_LAYOUT_BLCO) {
        return slc_bits_f64(manifest->sum_of_squares) == slc_bits_f64(info->sum_of_squares);
    }
    return fabs(listed - found) <= bound * fmax(listed, found);
}

enum slc_status slc_manifest_check_layout(const struct slc_manifest *manifest,
                                          const struct slc_store_layout *layout,
                                          const struct slc_reader *reader,
                                          struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    const struct {
        const char *what;
        uint64_t listed;
        uint64_t found;
    } fields[] = {
        {"layout", layout->layout, info->layout},
        {"mode of the layout", layout->layout_mode, info->layout_mode},
        {"codec", layout->codec, info->codec},
        {"number of modes", manifest->order, info->order},
        {"set of relabelled modes (one bit per mode)", relabelled_modes(manifest),
         info->relabelled_modes},
        {"number of nonzeros", manifest->nnz, info->nnz},
        {"value type", manifest->value_type, info->value_type},
        {"content sum", manifest->content_sum, info->content_sum},
        {"file size", layout->file_bytes, info->file_bytes},
        {"number of blocks", layout->block_count, info->block_count},
        {"checksum of the header", layout->header_hash, info->header_hash},
    };
    enum slc_status status = SLC_OK;

    for (unsigned i = 0; i < sizeof fields / sizeof fields[0] && status == SLC_OK; i++) {
        if (fields[i].listed != fields[i].found) {
            status = slc_fail(err, SLC_ERR_DAMAGED,
                              "the %s is %" PRIu64 ", but %" PRIu64
                              " in the store's manifest: the files do not belong together",
                              fields[i].what, fields[i].found, fields[i].listed);
        }
    }
    if (status == SLC_OK && manifest->values.distinct > 0 &&
        info->has_zeros != (manifest->values.zeros > 0)) {
        status = slc_fail(err, SLC_ERR_DAMAGED,
                          "values of 0 are %s, but the store's manifest counts %" PRIu64
                          " of them: the files do not belong together",
                          info->has_zeros ? "allowed" : "not allowed", manifest->values.zeros);
    }
    if (status == SLC_OK && !same_squares(manifest, info)) {
        status = slc_fail(err, SLC_ERR_DAMAGED,
                          "the sum of squares is %.17g, but %.17g in the store's manifest: the "
                          "files do not belong together",
                          info->sum_of_squares, manifest->sum_of_squares);
    }
    for (unsigned mode = 0; mode < manifest->order && status == SLC_OK; mode++) {
        if (manifest->dims[mode] != info->dims[mode]) {
            status = slc_fail(err, SLC_ERR_DAMAGED,
                              "mode %u has size %" PRIu64 ", but %" PRIu64
                              " in the store's manifest: the files do not belong together",
                              mode + 1, info->dims[mode], manifest->dims[mode]);
        }
    }
    if (status != SLC_OK) {
        slc_error_locate_file(err, slc_reader_path(reader));
    }
    return status;
}

enum slc_status slc_store_open_listed(const struct slc_files *files,
                                      const char *path,
                                      uint64_t memory_bytes,
                                      struct slc_reader **reader,
                                      struct slc_error *err)
{
    struct slc_error fault = SLC_ERROR_INIT;
    enum slc_status status = slc_reader_open_within(files, path, memory_bytes, reader, &fault);

    if (status == SLC_ERR_FORMAT) {
        status = SLC_ERR_DAMAGED;
        fault.status = status;
    }
    if (status != SLC_OK) {
        slc_error_pass(err, &fault);
    }
    return status;
}

/* Opens the file of `layout` in `folder`. */
static enum slc_status open_layout(const struct slc_files *files,
                                   const char *folder,
                                   const struct slc_store_layout *layout,
                                   uint64_t memory_bytes,
                                   struct slc_reader **reader,
                                   struct slc_error *err)
{
    char *path = slc_path_join(folder, layout->file);

    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    enum slc_status status = slc_store_open_listed(files, path, memory_bytes, reader, err);
    slc_free(path);
    return status;
}

/* Opens and closes the listed file FOLDER/NAME, which `files` then keeps open, with its stripes if
 * it is a block file. Sets *whole to false if it cannot be opened. Errors: SLC_ERR_MEMORY. */
static enum slc_status open_listed(const struct slc_files *files,
                                   const char *folder,
                                   const char *name,
                                   bool blocks,
                                   bool *whole,
                                   struct slc_error *err)
{
    char *path = slc_path_join(folder, name);
    struct slc_block_file file = SLC_BLOCK_FILE_INIT;
    struct slc_error fault = SLC_ERROR_INIT;

    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    if (blocks) {
        (void)!slc_block_file_open(files, path, "opening the block file", &file, &fault);
        slc_block_file_close(&file);
    } else {
        const int fd = slc_file_open(files, path, SLC_OPEN_PLAIN);

        (void)!slc_check_call(fd, &fault, path, "opening the file");
        if (fd >= 0) {
            (void)files->close(files->self, fd);
        }
    }
    slc_free(path);
    *whole = *whole && fault.status == SLC_OK;
    return fault.status == SLC_ERR_MEMORY ? slc_error_pass(err, &fault) : SLC_OK;
}

/* Opens all listed files. Sets *whole to false if a file cannot be opened. */
static enum slc_status open_all_listed(const struct slc_files *files,
                                       const char *folder,
                                       const struct slc_manifest *manifest,
                                       bool *whole,
                                       struct slc_error *err)
{
    for (unsigned i = 0; i < manifest->layout_count; i++) {
        SLC_TRY(open_listed(files, folder, manifest->layouts[i].file, true, whole, err));
    }
    for (unsigned i = 0; i < manifest->permutation_count; i++) {
        SLC_TRY(open_listed(files, folder, manifest->permutations[i].file, false, whole, err));
    }
    for (unsigned i = 0; i < manifest->names_count; i++) {
        SLC_TRY(open_listed(files, folder, manifest->names[i].file, false, whole, err));
    }
    return SLC_OK;
}

/* One attempt of slc_store_hold. Sets *changed if the store was replaced or changed meanwhile. */
static enum slc_status hold_once(const struct slc_files *files,
                                 const char *path,
                                 struct slc_held_folder **held,
                                 struct slc_manifest *manifest,
                                 bool *changed,
                                 struct slc_error *err)
{
    char *manifest_path = slc_path_join(path, SLC_MANIFEST_NAME);
    struct slc_error unopened = SLC_ERROR_INIT;

    *changed = false;
    SLC_TRY(slc_check_memory(manifest_path != NULL, err, "for a path"));
    enum slc_status status = slc_held_folder_open(files, path, held, &unopened);
    if (status == SLC_OK) {
        status = slc_manifest_read(slc_held_folder_files(*held), path, manifest, err);
    } else if (status == SLC_ERR_IO) {
        /* slc_manifest_read has better messages for a path that is not a store. */
        status = slc_manifest_read(files, path, manifest, err);
        status = status == SLC_OK ? slc_error_pass(err, &unopened) : status;
    } else {
        status = slc_error_pass(err, &unopened);
    }
    bool whole = status == SLC_OK;
    SLC_THEN(status, open_all_listed(slc_held_folder_files(*held), path, manifest, &whole, err));
    if (*held != NULL) {
        /* Every change of the layouts replaces the manifest, so it suffices to check the manifest
         * if all files were opened. Otherwise any changed file may be the reason for the
         * failure. */
        *changed = slc_held_folder_changed(*held, whole ? manifest_path : NULL);
        slc_held_folder_seal(*held);
    }
    slc_free(manifest_path);
    return status;
}

enum slc_status slc_store_hold(const struct slc_files *files,
                               const char *path,
                               struct slc_held_folder **held,
                               struct slc_manifest *manifest,
                               struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    bool changed = true;

    *held = NULL;
    for (unsigned attempt = 0; attempt < SLC_HELD_ATTEMPTS && changed; attempt++) {
        struct slc_error fault = SLC_ERROR_INIT;

        slc_held_folder_close(*held);
        *held = NULL;
        status = hold_once(files, path, held, manifest, &changed, &fault);
        if (status != SLC_OK && (!changed || attempt + 1 == SLC_HELD_ATTEMPTS)) {
            return slc_error_pass(err, &fault);
        }
    }
    return status;
}

enum slc_status slc_store_open_within(const struct slc_files *files,
                                      const char *path,
                                      uint64_t memory_bytes,
                                      struct slc_store *store,
                                      struct slc_error *err)
{
    struct slc_store opened = {.path = NULL};
    enum slc_status status;

    files = slc_files_or_system(files);
    if (files->held != NULL && slc_held_folder_is(files->held, path)) {
        opened.files = files;
        status = slc_manifest_read(files, path, &opened.manifest, err);
    } else {
        status = slc_store_hold(files, path, &opened.held, &opened.manifest, err);
        opened.files = status == SLC_OK ? slc_held_folder_files(opened.held) : NULL;
    }
    const struct slc_store_layout *layout =
        status == SLC_OK ? slc_manifest_find(&opened.manifest, SLC_LAYOUT_BLCO, 0) : NULL;
    if (status == SLC_OK && layout == NULL) {
        status = slc_fail_file(err, SLC_ERR_UNSUPPORTED, path,
                               "the store has no layout \"blco\", which this version needs");
    }
    if (status == SLC_OK) {
        opened.path = slc_strdup(path);
        status = slc_check_memory(opened.path != NULL, err, "for a path");
    }
    SLC_THEN(status, open_layout(opened.files, path, layout, memory_bytes, &opened.reader, err));
    SLC_THEN(status, slc_manifest_check_layout(&opened.manifest, layout, opened.reader, err));
    if (status != SLC_OK) {
        slc_store_close(&opened);
        return status;
    }
    *store = opened;
    return SLC_OK;
}

enum slc_status slc_store_open(const struct slc_files *files,
                               const char *path,
                               struct slc_store *store,
                               struct slc_error *err)
{
    return slc_store_open_within(files, path, UINT64_MAX, store, err);
}

enum slc_status slc_store_check_keys(const struct slc_key_layout *content_keys,
                                     const struct slc_reader *reader,
                                     struct slc_error *err)
{
    const struct slc_fiber_run *run = &slc_reader_info(reader)->content_keys.run;

    if (slc_fiber_run_same(*run, content_keys->run)) {
        return SLC_OK;
    }
    return slc_fail_file(
        err, SLC_ERR_DAMAGED, slc_reader_path(reader),
        "the content sum of the file uses fiber runs of %u bits in mode %u, but another layout of "
        "the store uses %u bits in mode %u: the files do not belong together",
        run->bits, run->mode + 1, content_keys->run.bits, content_keys->run.mode + 1);
}

enum slc_status slc_store_open_layout(const struct slc_store *store,
                                      enum slc_layout_kind layout,
                                      unsigned layout_mode,
                                      uint64_t memory_bytes,
                                      struct slc_reader **reader,
                                      struct slc_error *err)
{
    const struct slc_store_layout *listed =
        slc_manifest_find(&store->manifest, layout, layout_mode);
    struct slc_reader *opened = NULL;

    if (listed == NULL) {
        return slc_fail_file(err, SLC_ERR_USAGE, store->path,
                             "the store has no layout \"%s\" of mode %u", slc_layout_name(layout),
                             layout_mode + 1);
    }
    enum slc_status status =
        open_layout(store->files, store->path, listed, memory_bytes, &opened, err);
    SLC_THEN(status, slc_manifest_check_layout(&store->manifest, listed, opened, err));
    SLC_THEN(status,
             slc_store_check_keys(&slc_reader_info(store->reader)->content_keys, opened, err));
    if (status != SLC_OK) {
        slc_reader_close(opened);
        return status;
    }
    *reader = opened;
    return SLC_OK;
}

enum slc_status slc_store_open_fibers(const struct slc_store *store,
                                      unsigned mode,
                                      uint64_t memory_bytes,
                                      struct slc_reader **reader,
                                      struct slc_error *err)
{
    if (slc_manifest_find(&store->manifest, SLC_LAYOUT_FIBER, mode) != NULL) {
        return slc_store_open_layout(store, SLC_LAYOUT_FIBER, mode, memory_bytes, reader, err);
    }
    *reader =
        slc_key_layout_fibers(&slc_reader_info(store->reader)->keys, mode) ? store->reader : NULL;
    return SLC_OK;
}

void slc_store_close_layout(const struct slc_store *store, struct slc_reader *reader)
{
    if (reader != store->reader) {
        slc_reader_close(reader);
    }
}

void slc_store_close(struct slc_store *store)
{
    slc_reader_close(store->reader);
    slc_held_folder_close(store->held);
    slc_free(store->path);
    store->files = NULL;
    store->reader = NULL;
    store->held = NULL;
    store->path = NULL;
}
