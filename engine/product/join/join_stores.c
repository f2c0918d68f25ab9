/* Joins stores: pushes the nonzeros of all parts to a builder with the options of the parts. */
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/version.h"
#include "convert/build/build_memory.h"
#include "convert/publish/build_complete.h"
#include "convert/reshape/names_carry.h"
#include "convert/reshape/store_push.h"
#include "engine/product/join/join_internal.h"

#include <stdio.h>
#include <string.h>

enum {
    /* Allowance for small objects and paths. */
    OVERHEAD_BYTES = 1 << 20
};

struct pushing {
    struct slc_joining *joining;
    struct slc_store_push push;  /* the part that is read */
    struct slc_store_push first; /* the first part, whose names are copied */
    struct slc_names_carry names;
    struct slc_builder *builder;
    uint64_t sequences; /* sequence numbers of earlier parts */
    uint64_t rows, total;
    uint64_t entries, duplicates;      /* sums of the parts' counts */
    uint64_t open_bytes, worker_bytes; /* largest memory of an open part; and of each reader */
    uint64_t budget_bytes;
};

static enum slc_status open_store(const struct pushing *pushing,
                                  unsigned part,
                                  struct slc_store_push *push,
                                  struct slc_error *err)
{
    return slc_store_push_open(push, pushing->joining->options->files,
                               pushing->joining->paths[part], pushing->budget_bytes, err);
}

/* Adds up the counts of the parts, and finds the memory of the largest part. Leaves the first part
 * open. */
static enum slc_status measure_parts(struct pushing *pushing, struct slc_error *err)
{
    for (unsigned i = 0; i < pushing->joining->count; i++) {
        struct slc_store_push *push = i == 0 ? &pushing->first : &pushing->push;

        SLC_TRY(open_store(pushing, i, push, err));
        const struct slc_manifest *manifest = &push->store.manifest;
        pushing->total += manifest->nnz;
        pushing->entries += manifest->origin.entries_read;
        pushing->duplicates += manifest->origin.duplicates;
        const uint64_t open_bytes = slc_store_push_bytes(push, 0);
        pushing->open_bytes = slc_max_u64(pushing->open_bytes, open_bytes);
        pushing->worker_bytes =
            slc_max_u64(pushing->worker_bytes, slc_store_push_bytes(push, 1) - open_bytes);
        if (i == 0) {
            continue;
        }
        const bool same = manifest->order == pushing->first.store.manifest.order &&
                          memcmp(manifest->dims, pushing->first.store.manifest.dims,
                                 manifest->order * sizeof manifest->dims[0]) == 0;
        slc_store_push_close(push);
        if (!same) {
            return slc_fail_file(err, SLC_ERR_INPUT, pushing->joining->paths[i],
                                 "the mode sizes differ from those of %s",
                                 pushing->joining->paths[0]);
        }
    }
    return SLC_OK;
}

static enum slc_status
push_rows(void *context, unsigned worker, struct slc_scan_rows *rows, struct slc_error *err)
{
    struct pushing *pushing = context;
    const struct slc_join_options *options = pushing->joining->options;
    const uint64_t seen = __atomic_add_fetch(&pushing->rows, rows->count, __ATOMIC_RELAXED);
    struct slc_entries entries = {.order = pushing->joining->report->order,
                                  .count = rows->count,
                                  .values = rows->values,
                                  .sequence = pushing->sequences + rows->sequence};

    if (worker == 0 && options->progress != NULL) {
        options->progress(options->context, "read", seen, pushing->total);
    }
    for (unsigned n = 0; n < entries.order; n++) {
        entries.coords[n] = rows->coords[n];
    }
    return slc_builder_push(pushing->builder, worker, &entries, err);
}

/* Adds what one run would have recorded to the manifest: names, and the counts of the sums. */
static enum slc_status attach_origin(void *context,
                                     const char *folder,
                                     struct slc_manifest *manifest,
                                     struct slc_error *err)
{
    struct pushing *pushing = context;
    struct slc_store_origin *origin = &manifest->origin;

    origin->entries_read = pushing->entries;
    origin->duplicates = pushing->duplicates;
    origin->explicit_zeros = pushing->entries - pushing->duplicates - manifest->nnz;
    (void)snprintf(origin->duplicate_policy, sizeof origin->duplicate_policy, "%s",
                   slc_duplicates_name(SLC_DUPLICATES_SUM));
    return slc_names_carry(&pushing->names, folder, manifest, err);
}

/* Sets the options that determine the bytes of the store, from the record of the parts. */
static enum slc_status set_options(const struct slc_joining *joining,
                                   struct slc_builder_options *build,
                                   struct slc_error *err)
{
    char codec[16] = "";
    const char *text = slc_part_record_find(&joining->record, "codec");
    const char *fibers = slc_part_record_find(&joining->record, "fibers");
    const char *relabel = slc_part_record_find(&joining->record, "relabel");
    uint64_t mode, bits;

    SLC_TRY(slc_join_number(joining, "block bytes", UINT64_MAX, &build->block_bytes, err));
    SLC_TRY(slc_join_number(joining, "fiber mode", SLC_MAX_ORDER, &mode, err));
    SLC_TRY(slc_join_number(joining, "fiber bits", SLC_MAX_KEY_BITS, &bits, err));
    if (text != NULL) {
        (void)snprintf(codec, sizeof codec, "%.*s", (int)strcspn(text, "\n"), text);
    }
    if (!slc_codec_parse(codec, &build->codec) || fibers == NULL || relabel == NULL || mode == 0) {
        return slc_fail_file(err, SLC_ERR_FORMAT, joining->paths[0],
                             "the record of the part has no valid codec, fibers or relabel");
    }
    build->fibers = fibers[0] == 'a'   ? SLC_FIBERS_AUTO
                    : fibers[0] == 'n' ? SLC_FIBERS_NONE
                                       : SLC_FIBERS_GIVEN;
    build->run = (struct slc_fiber_run){(unsigned)mode - 1, (unsigned)bits};
    build->relabel = relabel[0] == 'n' ? SLC_RELABEL_NONE : SLC_RELABEL_FREQUENCY;
    return SLC_OK;
}

/* Divides the memory between the builder and as many readers as fit. */
static enum slc_status
divide_memory(struct pushing *pushing, struct slc_builder_options *build, struct slc_error *err)
{
    const unsigned order = pushing->joining->report->order;
    uint64_t need = 0;

    for (build->workers = pushing->joining->options->threads; build->workers >= 1;
         build->workers--) {
        build->caller_bytes = slc_memory_resident() + OVERHEAD_BYTES +
                              slc_names_carry_bytes(&pushing->names) + pushing->open_bytes +
                              build->workers * pushing->worker_bytes;
        need = build->caller_bytes + slc_builder_memory_min(build, order);
        if (need <= pushing->budget_bytes) {
            build->memory_bytes = pushing->budget_bytes - build->caller_bytes;
            return SLC_OK;
        }
    }
    return slc_fail_budget(err, pushing->budget_bytes, need + (UINT64_C(1) << 20),
                           "joining these parts");
}

static enum slc_status push_parts(struct pushing *pushing, unsigned workers, struct slc_error *err)
{
    const struct slc_joining *joining = pushing->joining;

    for (unsigned i = 0; i < joining->count; i++) {
        struct slc_store_push *push = i == 0 ? &pushing->first : &pushing->push;

        if (i > 0) {
            SLC_TRY(open_store(pushing, i, push, err));
        }
        enum slc_status status =
            slc_store_push_scan(push, workers, joining->options->stop, push_rows, pushing, err);
        pushing->sequences += slc_store_scan_sequences(push->info);
        if (i == 0) {
            slc_store_push_free(push); /* its names are copied after the sort */
        } else {
            slc_store_push_close(push);
        }
        SLC_TRY(status);
    }
    return SLC_OK;
}

static enum slc_status build_store(struct pushing *pushing, struct slc_error *err)
{
    struct slc_joining *joining = pushing->joining;
    const struct slc_join_options *options = joining->options;
    struct slc_join_report *report = joining->report;
    struct slc_builder_options build = {.files = options->files,
                                        .output = options->output,
                                        .stop = options->stop,
                                        .attach = attach_origin,
                                        .attached = pushing,
                                        .progress = options->progress,
                                        .context = options->context,
                                        .temp_folder = options->temp_folder,
                                        .overwrite = options->overwrite,
                                        .value = SLC_VALUE_AUTO,
                                        .duplicates = SLC_DUPLICATES_ERROR,
                                        .max_temp = options->max_temp};
    struct slc_store_origin origin = {.writer = "sluice " SLC_VERSION};

    SLC_TRY(set_options(joining, &build, err));
    SLC_TRY(measure_parts(pushing, err));
    const struct slc_manifest *manifest = &pushing->first.store.manifest;
    report->order = manifest->order;
    memcpy(report->dims, manifest->dims, sizeof report->dims);
    memcpy(origin.source, manifest->origin.source, sizeof origin.source);
    memcpy(origin.dialect, manifest->origin.dialect, sizeof origin.dialect);
    slc_names_carry_init(&pushing->names, pushing->first.store.files, joining->paths[0], manifest);
    pushing->names.stop = options->stop;
    SLC_TRY(divide_memory(pushing, &build, err));
    SLC_TRY(slc_check_open_files(err));
    SLC_TRY(slc_builder_create(&build, report->order, &pushing->builder, err));
    const enum slc_status status = push_parts(pushing, build.workers, err);
    if (status != SLC_OK) {
        slc_builder_abandon(pushing->builder);
        return status;
    }
    return slc_builder_finish(pushing->builder, 0, report->dims, &origin, &report->build, err);
}

enum slc_status slc_join_stores(struct slc_joining *joining, struct slc_error *err)
{
    const uint64_t memory = joining->options->memory_bytes;
    struct pushing *pushing = slc_calloc(1, sizeof *pushing);

    SLC_TRY(slc_check_memory(pushing != NULL, err, "to join parts"));
    pushing->joining = joining;
    pushing->budget_bytes = memory != 0 ? memory : slc_memory_total() / 5 * 4;
    const enum slc_status status = build_store(pushing, err);
    slc_store_push_close(&pushing->push);
    slc_store_push_close(&pushing->first);
    slc_free(pushing);
    return status;
}
