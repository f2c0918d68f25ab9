/* Relabels modes by frequency in two scans of the finished store. The first scan counts the
 * occurrences of each index and draws a sample. The second scan pushes all nonzeros with their new
 * coordinates to a second builder. The new store may be larger because of large permutations; the
 * second scan is then repeated without relabelling the modes of these permutations.
 *
 * Invariant: until the last step, the store in the folder is complete. The last step moves files
 * one by one and can be repeated after an interruption at any point. */
#include "convert/publish/relabel.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/build/build_memory.h"
#include "convert/build/builder.h"
#include "convert/build/resume/build_folder.h"
#include "convert/publish/frequency.h"
#include "storage/manifest/labels.h"
#include "storage/scan/store_scan.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
    SAMPLE_ROWS = 16384,
    SMALL_OBJECTS_BYTES = 256 << 10,
    /* Added to the smallest budget in messages: the next run may begin with more resident pages. */
    NEXT_BYTES = 1 << 20,
    /* A permutation is heavy if its bytes exceed 1 / HEAVY_SHARE of the bytes of all coordinates.
     * For real tensors whose store became smaller, each permutation had at most 4 % of the bytes of
     * the coordinates; for the other tensors, at least 6 %. */
    HEAVY_SHARE = 20,
    /* Bytes of the manifest entry of a permutation, rounded up. */
    MANIFEST_ENTRY_BYTES = 256
};

struct relabelling {
    const struct slc_builder_options *options;
    const char *folder;
    struct slc_builder_report *report;
    struct slc_store store;
    const struct slc_layout_info *info;
    struct slc_labels labels[SLC_MAX_ORDER]; /* `label` is NULL if a mode keeps its numbers */
    struct slc_buffer sample;
    uint64_t sampled;
    uint64_t stride; /* every stride-th nonzero is sampled */
    uint64_t seen;
    unsigned workers;
    uint64_t build_bytes; /* memory for the second builder */
    struct slc_builder *builder;
};

static uint64_t *sample_column(const struct relabelling *r, unsigned mode)
{
    return (uint64_t *)r->sample.data + (size_t)mode * SAMPLE_ROWS;
}

static bool is_renumbered(const struct relabelling *r, unsigned mode)
{
    return r->labels[mode].label != NULL;
}

/* Returns the bytes that the permutations of all renumbered modes add to the store. */
static uint64_t permutation_bytes(const struct relabelling *r)
{
    uint64_t bytes = 0;

    for (unsigned n = 0; n < r->info->order; n++) {
        if (is_renumbered(r, n)) {
            bytes += slc_labels_file_bytes(r->labels[n].length) + MANIFEST_ENTRY_BYTES;
        }
    }
    return bytes;
}

static uint64_t sample_bytes(const struct relabelling *r)
{
    return r->info->order * (uint64_t)SAMPLE_ROWS * sizeof(uint64_t);
}

/* Returns false if the permutation would be as large as all coordinates together, because smaller
 * coordinates cannot make up for it. This also saves memory for large modes with few nonzeros. */
static bool is_candidate(const struct relabelling *r, unsigned mode)
{
    uint64_t bytes = slc_labels_file_bytes(r->info->dims[mode]);

    return bytes > 0 && bytes < r->report->summary.index_bytes;
}

/* Divides the memory: first the labels, then as many workers as fit. The builder gets the rest. */
static enum slc_status divide_memory(struct relabelling *r, struct slc_error *err)
{
    struct slc_builder_options least = *r->options;
    uint64_t labels = 0;
    uint64_t need = 0;

    for (unsigned n = 0; n < r->info->order; n++) {
        labels += is_candidate(r, n) ? slc_labels_memory_bytes(r->info->dims[n]) : 0;
    }
    uint64_t fixed = labels + slc_buffer_footprint(sample_bytes(r), SLC_PAGES_SMALL) +
                     slc_frequency_memory_bytes(r->info->nnz) +
                     slc_reader_memory_bytes(r->store.reader) + SMALL_OBJECTS_BYTES;
    for (r->workers = r->options->workers; r->workers >= 1; r->workers--) {
        uint64_t scan = slc_store_scan_memory_bytes(r->info, r->workers);

        least.workers = r->workers;
        need = fixed + scan + slc_builder_memory_min(&least, r->info->order);
        if (need <= r->options->memory_bytes) {
            r->build_bytes = r->options->memory_bytes - fixed - scan;
            return SLC_OK;
        }
    }
    return slc_fail_budget(
        err, r->options->memory_bytes + r->options->caller_bytes,
        need + slc_max_u64(r->options->caller_bytes, r->options->caller_most_bytes) + NEXT_BYTES,
        "relabelling modes by frequency (%" PRIu64 " MiB for the numbers of their indices)",
        slc_div_up_u64(labels, UINT64_C(1) << 20));
}

static enum slc_status allocate_memory(struct relabelling *r, struct slc_error *err)
{
    enum slc_status status = slc_buffer_create(&r->sample, sample_bytes(r), SLC_PAGES_SMALL, err);

    for (unsigned n = 0; n < r->info->order && status == SLC_OK; n++) {
        if (is_candidate(r, n)) {
            status = slc_labels_create(&r->labels[n], r->info->dims[n], err);
        } else {
            r->report->relabel.verdict[n] =
                r->info->dims[n] == 1 ? SLC_RELABEL_IN_ORDER : SLC_RELABEL_TOO_LONG;
        }
    }
    r->stride = r->info->nnz / SAMPLE_ROWS + 1;
    return status;
}

static void count_indices(uint32_t *counts, const uint64_t *coords, uint32_t rows)
{
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t *counter = &counts[coords[i]];

        *counter += *counter != UINT32_MAX;
    }
}

static enum slc_status
count_rows(void *context, unsigned worker, struct slc_scan_rows *rows, struct slc_error *err)
{
    struct relabelling *r = context;
    uint64_t next = slc_div_up_u64(r->seen, r->stride) * r->stride;

    (void)worker;
    (void)err;
    for (unsigned n = 0; n < r->info->order; n++) {
        if (is_renumbered(r, n)) {
            count_indices(r->labels[n].label, rows->coords[n], rows->count);
        }
    }
    for (; next < r->seen + rows->count; next += r->stride, r->sampled++) {
        for (unsigned n = 0; n < r->info->order; n++) {
            sample_column(r, n)[r->sampled] = rows->coords[n][next - r->seen];
        }
    }
    r->seen += rows->count;
    return SLC_OK;
}

static void renumber_rows(const uint32_t *label, uint64_t *coords, uint64_t rows)
{
    for (uint64_t i = 0; i < rows && label != NULL; i++) {
        coords[i] = label[coords[i]];
    }
}

/* Converts counts to labels and renumbers the sample. Drops modes that are already in order. */
static enum slc_status number_modes(struct relabelling *r, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; n < r->info->order && status == SLC_OK; n++) {
        bool identity = false;

        if (!is_renumbered(r, n)) {
            continue;
        }
        status = slc_frequency_labels(&r->labels[n], &identity, err);
        if (status == SLC_OK && identity) {
            slc_labels_destroy(&r->labels[n]);
        }
        if (status == SLC_OK) {
            renumber_rows(r->labels[n].label, sample_column(r, n), r->sampled);
        }
        r->report->relabel.verdict[n] = identity ? SLC_RELABEL_IN_ORDER : SLC_RELABELLED;
    }
    return status;
}

static enum slc_status
push_rows(void *context, unsigned worker, struct slc_scan_rows *rows, struct slc_error *err)
{
    struct relabelling *r = context;
    struct slc_entries entries = {.order = r->info->order,
                                  .count = rows->count,
                                  .values = rows->values,
                                  .sequence = rows->sequence};

    for (unsigned n = 0; n < r->info->order; n++) {
        renumber_rows(r->labels[n].label, rows->coords[n], rows->count);
        entries.coords[n] = rows->coords[n];
    }
    return slc_builder_push(r->builder, worker, &entries, err);
}

/* Creates the second builder and passes it the renumbered sample. */
static enum slc_status
create_builder(struct relabelling *r, const char *path, struct slc_error *err)
{
    struct slc_builder_options build = *r->options;
    struct slc_entries sample = {.order = r->info->order, .count = (uint32_t)r->sampled};

    r->builder = NULL; /* the builder of an earlier attempt no longer exists */
    build.output = path;
    build.overwrite = false;
    build.duplicates = SLC_DUPLICATES_ERROR;
    build.assumed_base = 0;
    build.relabel = SLC_RELABEL_NONE;
    build.transforms.count = 0; /* these values are already transformed */
    build.attach = NULL;        /* attached files are already in the folder */
    build.layout_count = 0;
    build.publishing = NULL;
    build.progress = NULL;
    build.resumable = build.completable = false; /* only the first build is resumable */
    build.memory_bytes = r->build_bytes;
    build.workers = r->workers;
    for (unsigned n = 0; n < r->info->order; n++) {
        build.relabelled_modes |= is_renumbered(r, n) ? UINT64_C(1) << n : 0;
        sample.coords[n] = sample_column(r, n);
    }
    if (build.max_temp > 0) {
        if (r->report->summary.file_bytes >= build.max_temp) {
            return slc_fail_field(
                err, SLC_ERR_BUDGET, SLC_FIELD_MAX_TEMP,
                "relabelling modes temporarily keeps two block files, and the first has %" PRIu64
                " bytes: allow more than this number",
                r->report->summary.file_bytes);
        }
        build.max_temp -= r->report->summary.file_bytes;
    }
    SLC_TRY(slc_builder_create(&build, r->info->order, &r->builder, err));
    return slc_builder_sample(r->builder, &sample, sample.count, r->info->nnz, err);
}

static enum slc_status build_relabelled(struct relabelling *r,
                                        const char *path,
                                        struct slc_builder_report *report,
                                        struct slc_error *err)
{
    struct slc_store_origin origin = r->store.manifest.origin;
    enum slc_status status = create_builder(r, path, err);

    SLC_THEN(status, slc_store_scan(&r->store, r->workers, r->options->stop, push_rows, r, err));
    if (status != SLC_OK) {
        slc_builder_abandon(r->builder);
        return status;
    }
    return slc_builder_finish_plain(r->builder, 0, r->info->dims, &origin, report, err);
}

/* Writes the permutations, and then the manifest that lists them. */
static enum slc_status
keep_relabelled(struct relabelling *r, const char *path, struct slc_error *err)
{
    struct slc_manifest *manifest = slc_malloc(sizeof *manifest);

    SLC_TRY(slc_check_memory(manifest != NULL, err, "for the manifest"));
    /* Read only the manifest: slc_store_open would reject a store without its permutations. */
    enum slc_status status = slc_manifest_read(r->store.files, path, manifest, err);
    for (unsigned n = 0; n < r->info->order && status == SLC_OK; n++) {
        if (is_renumbered(r, n)) {
            status = slc_labels_write(&r->labels[n], r->store.files, path, n,
                                      &manifest->permutations[manifest->permutation_count++], err);
        }
    }
    if (status == SLC_OK) {
        manifest->origin = r->store.manifest.origin;
        manifest->names_count = r->store.manifest.names_count;
        memcpy(manifest->names, r->store.manifest.names, sizeof manifest->names);
        memcpy(manifest->titles, r->store.manifest.titles, sizeof manifest->titles);
        status = slc_manifest_write(r->store.files, path, manifest, err);
    }
    slc_free(manifest);
    return status;
}

/* Drops a mode: its indices keep their original numbers, also in the sample. */
static void drop_mode(struct relabelling *r, unsigned mode)
{
    slc_labels_invert(&r->labels[mode]);
    renumber_rows(r->labels[mode].label, sample_column(r, mode), r->sampled);
    slc_labels_destroy(&r->labels[mode]);
    r->report->relabel.verdict[mode] = SLC_RELABEL_TOO_LARGE;
}

/* Drops the modes with heavy permutations, after the store became larger with all modes renumbered.
 * Returns true if another attempt is worthwhile: modes were dropped, and others remain. */
static bool drop_heavy_modes(struct relabelling *r)
{
    uint64_t limit = r->report->relabel.plain_index_bytes / HEAVY_SHARE;
    unsigned given_up = 0, left = 0;

    for (unsigned n = 0; n < r->info->order; n++) {
        if (is_renumbered(r, n) && slc_labels_file_bytes(r->labels[n].length) > limit) {
            drop_mode(r, n);
            given_up++;
        }
        left += is_renumbered(r, n);
    }
    return given_up > 0 && left > 0;
}

/* Builds a second store; if it is smaller, keeps it and sets *kept. */
static enum slc_status
try_relabelled(struct relabelling *r, const char *path, bool *kept, struct slc_error *err)
{
    struct slc_relabel_report *report = &r->report->relabel;
    struct slc_builder_report second;

    SLC_TRY(build_relabelled(r, path, &second, err));
    assert(second.summary.nnz == r->info->nnz);
    report->tried_bytes = second.summary.file_bytes;
    report->tried_index_bytes = second.summary.index_bytes;
    report->permutation_bytes = permutation_bytes(r);
    r->report->spill_bytes += second.spill_bytes;
    *kept = report->tried_bytes + report->permutation_bytes < report->plain_bytes;
    if (*kept) {
        r->report->summary = second.summary;
        r->report->fibers = second.fibers;
        return keep_relabelled(r, path, err);
    }
    return slc_folder_remove(r->store.files, path, err);
}

/* Tries to renumber all modes, then only the modes without heavy permutations. If neither attempt
 * makes the store smaller, keeps the plain store. */
static enum slc_status
choose_smallest(struct relabelling *r, const char *path, bool *kept, struct slc_error *err)
{
    SLC_TRY(try_relabelled(r, path, kept, err));
    if (!*kept && drop_heavy_modes(r)) {
        SLC_TRY(try_relabelled(r, path, kept, err));
    }
    for (unsigned n = 0; n < r->info->order && !*kept; n++) {
        if (is_renumbered(r, n)) {
            drop_mode(r, n);
        }
    }
    return SLC_OK;
}

static enum slc_status relabel_modes(struct relabelling *r, bool *apart, struct slc_error *err)
{
    char *path = NULL;
    enum slc_status status = divide_memory(r, err);
    bool any = false;

    SLC_THEN(status, allocate_memory(r, err));
    for (unsigned n = 0; n < r->info->order; n++) {
        any = any || is_renumbered(r, n);
    }
    if (status == SLC_OK && any) {
        status = slc_store_scan(&r->store, 1, r->options->stop, count_rows, r, err);
    }
    SLC_THEN(status, number_modes(r, err));
    if (status != SLC_OK || permutation_bytes(r) == 0) {
        return status;
    }
    path = slc_path_join(r->folder, SLC_RELABELLED_NAME);
    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    status = choose_smallest(r, path, apart, err);
    slc_free(path);
    return status;
}

enum slc_status slc_relabel_store(const struct slc_builder_options *options,
                                  const char *folder,
                                  struct slc_builder_report *report,
                                  bool *apart,
                                  struct slc_error *err)
{
    struct relabelling *r = slc_calloc(1, sizeof *r);
    uint64_t start_ns = slc_clock_ns();

    *apart = false;
    SLC_TRY(slc_check_memory(r != NULL, err, "to renumber modes"));
    r->options = options;
    r->folder = folder;
    r->report = report;
    report->relabel.plain_bytes = report->summary.file_bytes;
    report->relabel.plain_index_bytes = report->summary.index_bytes;
    enum slc_status status =
        slc_store_open_within(options->files, folder, options->memory_bytes, &r->store, err);
    if (status == SLC_OK) {
        r->info = slc_reader_info(r->store.reader);
        status = relabel_modes(r, apart, err);
        slc_store_close(&r->store);
    }
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_labels_destroy(&r->labels[n]);
    }
    slc_buffer_destroy(&r->sample);
    slc_free(r);
    report->relabel.seconds = slc_seconds_since(start_ns);
    return status;
}

/* The files of a store in a folder. */
struct found {
    char names[SLC_MAX_ORDER + 2][32];
    unsigned count;
};

static int record_name(void *context, const char *name, char kind)
{
    struct found *found = context;

    if (kind == 'f' && found->count < SLC_MAX_ORDER + 2 && strlen(name) < sizeof found->names[0]) {
        memcpy(found->names[found->count++], name, strlen(name) + 1);
    }
    return 0;
}

/* Moves a file from one folder to the other and replaces an existing file. */
static enum slc_status move_file(const struct slc_files *files,
                                 const char *from,
                                 const char *to,
                                 const char *name,
                                 struct slc_error *err)
{
    char *source = slc_path_join(from, name);
    char *target = slc_path_join(to, name);
    enum slc_status status = SLC_OK;
    int code;

    if (source == NULL || target == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory for a path");
    } else {
        code = files->rename(files->self, source, target);
        status = slc_check_call(code, err, target, "moving a relabelled file in place");
    }
    slc_free(source);
    slc_free(target);
    return status;
}

enum slc_status
slc_relabel_install(const struct slc_files *files, const char *folder, struct slc_error *err)
{
    char *path = slc_path_join(folder, SLC_RELABELLED_NAME);
    struct found found = {.count = 0};
    enum slc_status status = SLC_OK;

    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    int code = files->list_folder(files->self, path, record_name, &found);
    if (code < 0 && code != -ENOENT) {
        status = slc_fail_errno(err, -code, path, "listing the folder");
    }
    for (unsigned i = 0; i < found.count && status == SLC_OK; i++) {
        status = move_file(files, path, folder, found.names[i], err);
    }
    /* Sync the new names before the old folder is removed; a power failure must not lose both. */
    if (status == SLC_OK && found.count > 0) {
        code = files->sync_folder(files->self, folder);
        status = slc_check_call(code, err, folder, "syncing the folder");
    }
    SLC_THEN(status, slc_folder_remove(files, path, err));
    slc_free(path);
    return status;
}
