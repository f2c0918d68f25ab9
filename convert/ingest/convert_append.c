/* Implements `sluice append`: a conversion that adds the entries of the input to the store at its
 * output. The new store equals the store that a conversion of the old input, followed by the new
 * input, yields. The old store is read after the input, because only then is the index base of the
 * new entries known. The entries of the old store still have the lower sequence numbers.
 *
 * The new store is built next to the old store, and at the end the folders of the stores exchange
 * their names. The manifest records every append by the identity of the input file, which is known
 * before the input is read, and by a hash of the entries, which is known afterwards for any source.
 * Inputs with a recorded identity or hash are not appended again unless the user requests it. If a
 * run is killed after a long build, the same command finds the complete new store
 * (build_complete.h). A note in that store identifies the old store, so that the command does not
 * overwrite a store that has replaced the old store in the meantime. */
#include "convert/ingest/convert_internal.h"

#include "base/hash.h"
#include "base/memory/checked.h"
#include "convert/build/resume/build_folder.h"
#include "convert/ingest/csv/csv.h"
#include "convert/ingest/csv/csv_remember.h"
#include "convert/ingest/names/name_maps.h"
#include "convert/reshape/names_carry.h"
#include "convert/reshape/store_push.h"
#include "storage/manifest/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Names of the indices of the new store. */
struct names_append {
    struct slc_names_carry old;       /* names of all modes in the old store */
    const struct slc_name_maps *maps; /* borrowed; NULL if no mode has a map of names */
};

struct slc_appending {
    struct slc_store_push push;
    struct slc_conversion *conversion;
    uint64_t content; /* hash of the header of the old store's blco file */
    struct slc_store_origin origin;
    struct names_append names;
    struct slc_store_appended added;
};

/* Reads the names of a mode from its map. Names in the old store are kept, and the map must agree
 * with them. */
static enum slc_status read_names(const struct names_append *append,
                                  unsigned mode,
                                  const char *folder,
                                  struct slc_manifest *manifest,
                                  struct slc_error *err)
{
    const struct slc_names_carry *old = &append->old;
    const struct slc_store_names *listed = slc_names_carry_find(old, mode);
    struct slc_names *names = NULL;
    enum slc_status status =
        listed != NULL ? slc_names_open(old->files, old->store, listed, &names, err) : SLC_OK;

    SLC_THEN(status, slc_name_maps_attach_mode(append->maps, mode, names, folder, manifest, err));
    slc_names_close(names);
    SLC_TRY(status);
    if (manifest->titles[mode][0] == '\0') {
        memcpy(manifest->titles[mode], old->titles[mode], sizeof manifest->titles[mode]);
    }
    return SLC_OK;
}

/* Callback `attach` of the builder, which writes the names to the new store. Names of the old store
 * are kept, and a map must have a line for every index of its mode. The title in a map, if there is
 * one, replaces the old title. Errors: SLC_ERR_INPUT with file and line if map and store have
 * different names for an index. */
static enum slc_status append_names(void *context,
                                    const char *folder,
                                    struct slc_manifest *manifest,
                                    struct slc_error *err)
{
    const struct names_append *append = context;

    for (unsigned mode = 0; mode < manifest->order; mode++) {
        SLC_TRY(append->maps != NULL && append->maps->path[mode] != NULL
                    ? read_names(append, mode, folder, manifest, err)
                    : slc_names_carry_mode(&append->old, mode, folder, manifest, err));
    }
    return SLC_OK;
}

/* Returns a hash of the identity of the input file and the options of the append; 0 if the input is
 * not a regular file. */
static uint64_t input_of(const struct slc_conversion *c)
{
    struct slc_convert_options options = *c->options;
    uint64_t numbers[2] = {c->build.identity.input, 0};

    options.again = false;
    numbers[1] = slc_conversion_options_hash(&options);
    return numbers[0] != 0 ? slc_hash64(numbers, sizeof numbers) | 1 : 0;
}

/* Checks that every nonzero of the store is one entry, because a mean needs the number of old
 * entries per nonzero, which the store does not have. */
static enum slc_status check_mean(const struct slc_conversion *c, struct slc_error *err)
{
    const struct slc_store_origin *origin = &c->appending->push.store.manifest.origin;
    enum slc_dialect dialect;
    const bool counted = slc_dialect_parse(origin->dialect, &dialect) ||
                         strcmp(origin->dialect, "entries") == 0 ||
                         strcmp(origin->dialect, "generate") == 0;

    if (c->options->duplicates != SLC_DUPLICATES_MEAN ||
        (counted && origin->duplicates == 0 && origin->explicit_zeros == 0)) {
        return SLC_OK;
    }
    enum slc_status status = slc_fail_field(
        err, SLC_ERR_INPUT, SLC_FIELD_DUPLICATES,
        "the mean of old and new entries is unknown, because nonzeros of the store may each "
        "combine several entries, and the store does not record how many: convert all inputs "
        "together");
    slc_error_locate_file(err, c->options->output);
    return status;
}

enum slc_status slc_conversion_open_old(struct slc_conversion *c, struct slc_error *err)
{
    struct slc_appending *a = slc_calloc(1, sizeof *a);
    enum slc_status status = SLC_OK;

    SLC_TRY(slc_check_memory(a != NULL, err, "to append to a store"));
    a->conversion = c;
    c->appending = a;
    SLC_TRY(c->forecast == NULL
                ? slc_build_folder_restore(c->options->files, c->options->output, err)
                : SLC_OK);
    status =
        slc_store_push_open(&a->push, c->options->files, c->options->output, c->memory_bytes, err);
    if (status == SLC_OK && a->push.store.manifest.origin.transforms[0] != '\0') {
        status = slc_fail_file(
            err, SLC_ERR_INPUT, c->options->output,
            "the values of the store are transformed (%s), and appended values would not match: "
            "append to a store of untransformed values and apply the transform with sluice slice",
            a->push.store.manifest.origin.transforms);
    }
    SLC_THEN(status, check_mean(c, err));
    if (status == SLC_OK && c->options->names != NULL) {
        status = slc_name_maps_check_order(c->options->names, a->push.info->order, err);
    }
    if (status == SLC_OK) {
        const struct slc_manifest *manifest = &a->push.store.manifest;

        a->content = a->push.info->header_hash;
        a->origin = manifest->origin;
        c->build.keep_zeros = manifest->origin.keeps_zeros;
        c->report->keeps_zeros = manifest->origin.keeps_zeros;
        slc_names_carry_init(&a->names.old, c->options->files, c->options->output, manifest);
        a->names.old.stop = c->options->stop;
        a->names.maps = c->options->names;
        c->build.attach = append_names;
        c->build.attached = &a->names;
        a->added.input = input_of(c);
        (void)snprintf(a->added.source, sizeof a->added.source, "%s", c->options->input);
        for (unsigned i = 0; i < manifest->layout_count && !c->options->drop_layouts; i++) {
            const struct slc_store_layout *layout = &manifest->layouts[i];

            if (layout->layout != SLC_LAYOUT_BLCO) {
                c->build.layouts[c->build.layout_count++] =
                    (struct slc_build_layout){layout->layout, layout->layout_mode};
            }
        }
        c->report->layouts_dropped = manifest->layout_count - 1;
        c->report->old_nnz = manifest->nnz;
        c->report->order = manifest->order;
        memcpy(c->report->old_dims, manifest->dims, sizeof manifest->dims);
        memcpy(c->report->dims, manifest->dims, sizeof manifest->dims);
        c->build.codec = slc_manifest_find(manifest, SLC_LAYOUT_BLCO, 0)->codec;
        c->build.relabel =
            manifest->permutation_count > 0 ? SLC_RELABEL_FREQUENCY : SLC_RELABEL_NONE;
        c->job.hashes_content = true;
        c->job.first_sequence = slc_store_scan_sequences(a->push.info);
    }
    return status;
}

void slc_conversion_close_old(struct slc_conversion *c)
{
    if (c->appending != NULL) {
        slc_store_push_close(&c->appending->push);
        slc_free(c->appending);
        c->appending = NULL;
    }
}

enum slc_status slc_conversion_fit_old(struct slc_conversion *c, struct slc_error *err)
{
    const struct slc_layout_info *info = c->appending->push.info;

    if (c->header.order != info->order) {
        return slc_fail(err, SLC_ERR_INPUT, "the input has %u modes, but %s has %u",
                        c->header.order, c->options->output, info->order);
    }
    for (unsigned n = 0; n < info->order; n++) {
        if (c->options->fixed_modes[n] && c->job.dims_declared &&
            c->job.lengths[n] > info->dims[n]) {
            return slc_fail_field(err, SLC_ERR_INPUT, SLC_FIELD_FIXED_MODES,
                                  "mode %u has %" PRIu64 " indices in the input, but %" PRIu64
                                  " in %s, and this mode must not grow",
                                  n + 1, c->job.lengths[n], info->dims[n], c->options->output);
        }
        if (c->options->fixed_modes[n]) {
            c->job.lengths[n] = slc_min_u64(c->job.lengths[n], info->dims[n]);
        }
    }
    return SLC_OK;
}

int slc_conversion_old_base(const struct slc_conversion *c)
{
    const struct slc_store_origin *origin = &c->appending->origin;

    /* Another format may have another index base; for example, coordinates of NumPy arrays start at
     * 0. */
    return strcmp(origin->dialect, slc_dialect_name(c->header.dialect)) == 0
               ? (int)origin->index_base
               : -1;
}

bool slc_conversion_old_is_table(const struct slc_conversion *c)
{
    return c->appending != NULL && c->appending->origin.table[0] != '\0';
}

enum slc_status
slc_conversion_old_table(struct slc_conversion *c, struct slc_csv_old *old, struct slc_error *err)
{
    if (c->options->names != NULL) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "names cannot be given for a table: its columns contain the names");
    }
    old->store = c->options->output;
    old->manifest = &c->appending->push.store.manifest;
    enum slc_status status =
        slc_conversion_old_is_table(c)
            ? slc_csv_recall(c->appending->origin.table, &c->recalled, old->lowest, err)
            : slc_fail(err, SLC_ERR_INPUT,
                       "the store does not record the columns of a table: it was made from another "
                       "format, by an older version, or by slicing; append a tensor instead");
    if (status == SLC_OK && c->recalled.order != old->manifest->order) {
        status = slc_fail(err, SLC_ERR_FORMAT, "the store has %u modes, but its table has %u",
                          old->manifest->order, c->recalled.order);
    }
    for (unsigned m = 0; status == SLC_OK && m < c->recalled.order; m++) {
        const uint64_t above = old->manifest->dims[m] - 1; /* number of bins after the first bin */

        if (above > INT64_MAX || old->lowest[m] > INT64_MAX - (int64_t)above) {
            status = slc_fail(err, SLC_ERR_FORMAT,
                              "mode %u of the store has %" PRIu64 " bins that start at bin %" PRId64
                              ", which exceeds the range of bin numbers",
                              m + 1, old->manifest->dims[m], old->lowest[m]);
        }
    }
    slc_error_locate_file(err, c->options->output);
    c->recalled.missing_fixed = true;
    return status;
}

/* Returns true, and fills in the report, if the store records an earlier append whose input file
 * has the hash `input`, or whose entries have the hash `content` (0 means unknown). Returns false
 * if options->again is set. */
static bool remembers(struct slc_conversion *c, uint64_t input, uint64_t content)
{
    const struct slc_store_origin *origin = &c->appending->origin;

    for (unsigned i = 0; i < origin->appended_count && !c->options->again; i++) {
        const struct slc_store_appended *known = &origin->appended[i];

        if ((input != 0 && known->input == input) || (content != 0 && known->content == content)) {
            c->report->appended_before = true;
            c->report->layouts_dropped = 0;
            c->report->entries = known->entries;
            memcpy(c->report->dims, c->report->old_dims, sizeof c->report->dims);
            return true;
        }
    }
    return false;
}

bool slc_conversion_knows_input(struct slc_conversion *c)
{
    return c->appending != NULL && remembers(c, c->appending->added.input, 0);
}

bool slc_conversion_knows_content(struct slc_conversion *c)
{
    struct slc_store_appended *added = &c->appending->added;

    added->content = slc_parse_content(&c->job, &added->entries);
    c->report->entries = added->entries;
    return remembers(c, 0, added->content);
}

void slc_conversion_add_origin(const struct slc_conversion *c, struct slc_store_origin *origin)
{
    *origin = c->appending->origin;
    if (origin->appended_count == SLC_MAX_APPENDED) {
        origin->appended_count--;
        memmove(&origin->appended[0], &origin->appended[1],
                origin->appended_count * sizeof origin->appended[0]);
    }
    origin->appended[origin->appended_count++] = c->appending->added;
}

/* Seconds of a trial that decodes the old store. */
#define TRIAL_SECONDS 0.05

enum slc_status slc_conversion_forecast_old(struct slc_conversion *c, struct slc_error *err)
{
    const struct slc_appending *a = c->appending;
    const struct slc_manifest *manifest = &a->push.store.manifest;
    const struct slc_layout_info *info = a->push.info;
    struct slc_convert_forecast *f = c->forecast;
    struct slc_store_trial trial;

    SLC_TRY(slc_store_trial(a->push.store.reader, TRIAL_SECONDS, NULL, &trial, err));
    f->old_bytes = info->file_bytes;
    f->old_seconds = trial.decode_seconds * (double)f->old_nnz / f->workers;
    if (f->old_nnz > 0) {
        const double growth = (double)(f->old_nnz + f->entries) / (double)f->old_nnz;
        uint64_t bytes = info->file_bytes;

        for (unsigned i = 0; i < manifest->layout_count && !c->options->drop_layouts; i++) {
            if (manifest->layouts[i].layout != SLC_LAYOUT_BLCO) {
                bytes += manifest->layouts[i].file_bytes;
                f->layouts++;
            }
        }
        f->store_bytes = (uint64_t)(growth * (double)bytes) + f->names_bytes;
        f->store_most_bytes = f->store_bytes - f->names_bytes + f->names_most_bytes;
    }
    return SLC_OK;
}

uint64_t slc_conversion_old_bytes(const struct slc_conversion *c, unsigned workers)
{
    return c->appending != NULL ? slc_store_push_bytes(&c->appending->push, workers) +
                                      slc_names_carry_bytes(&c->appending->names.old)
                                : 0;
}

uint64_t slc_conversion_old_content(const struct slc_conversion *c)
{
    return c->appending != NULL ? c->appending->content : 0;
}

void slc_conversion_count_layouts(const struct slc_conversion *c, bool placed)
{
    struct slc_convert_report *report = c->report;

    report->layouts_dropped = placed ? 0 : report->layouts_dropped - report->build.layout_count;
}

static enum slc_status
push_rows(void *context, unsigned worker, struct slc_scan_rows *rows, struct slc_error *err)
{
    const struct slc_conversion *c = context;
    struct slc_entries entries = {.order = c->header.order,
                                  .count = rows->count,
                                  .values = rows->values,
                                  .sequence = rows->sequence};

    for (unsigned n = 0; n < entries.order; n++) {
        for (uint32_t i = 0; i < rows->count; i++) {
            rows->coords[n][i] += (uint64_t)c->job.index_base;
        }
        entries.coords[n] = rows->coords[n];
    }
    return slc_builder_push(c->job.builder, worker, &entries, err);
}

/* Checks that the store is still the store that was opened. Called after the builder has locked the
 * store. */
static enum slc_status check_unchanged(const struct slc_appending *a, struct slc_error *err)
{
    const struct slc_conversion *c = a->conversion;
    struct slc_store_push now = {.info = NULL};
    enum slc_status status =
        slc_store_push_open(&now, c->options->files, c->options->output, c->memory_bytes, err);

    if (status == SLC_OK && now.info->header_hash != a->content) {
        status = slc_fail_file(err, SLC_ERR_IO, c->options->output,
                               "another run has changed the store: append again");
    }
    slc_store_push_close(&now);
    return status;
}

enum slc_status
slc_conversion_push_old(struct slc_conversion *c, uint64_t *dims, struct slc_error *err)
{
    struct slc_appending *a = c->appending;
    enum slc_status status = check_unchanged(a, err);

    for (unsigned n = 0; n < c->header.order && status == SLC_OK; n++) {
        if (c->options->fixed_modes[n] && dims[n] > a->push.info->dims[n]) {
            return slc_conversion_locate_fault(
                c,
                slc_fail_field(err, SLC_ERR_INPUT, SLC_FIELD_FIXED_MODES,
                               "mode %u has %" PRIu64 " indices in the input, but %" PRIu64
                               " in the store, and this mode must not grow",
                               n + 1, dims[n], a->push.info->dims[n]),
                err);
        }
        dims[n] = slc_max_u64(dims[n], a->push.info->dims[n]);
        c->report->dims[n] = dims[n];
    }
    SLC_THEN(status,
             slc_store_push_scan(&a->push, c->job.workers, c->options->stop, push_rows, c, err));
    /* The memory for reading the old store is freed before the sort. */
    slc_store_push_close(&a->push);
    return status;
}
