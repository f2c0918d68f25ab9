/*
 * Public API: the library itself, opening and verifying stores.
 */
#include "api/internal.h"
#include "base/error/log.h"
#include "base/memory/memory.h"
#include "storage/verify/verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *sluice_version(void)
{
    return SLC_VERSION;
}

const char *sluice_status_name(enum slc_status status)
{
    return slc_status_name(status);
}

/* The caller's sink: the same but for the name of the enumeration. */
static struct {
    void (*message)(void *context, enum sluice_log_level level, const char *message);
    void *context;
} sink;

static void pass_on(void *context, enum slc_log_level level, const char *message)
{
    (void)context;
    sink.message(sink.context, (enum sluice_log_level)level, message);
}

void sluice_log_to(void (*message)(void *context, enum sluice_log_level level, const char *message),
                   void *context)
{
    sink.message = message;
    sink.context = context;
    slc_log_set_sink(message != NULL ? pass_on : NULL, NULL);
}

int sluice_error_format(const struct slc_error *err, char *text, uint64_t text_bytes)
{
    return slc_error_format(err, sluice_field_name, text, text_bytes);
}

enum slc_status sluice_parse_size(const char *text, uint64_t *ret_bytes, struct slc_error *err)
{
    return text != NULL
               ? slc_parse_size(text, ret_bytes, err)
               : slc_fail(err, SLC_ERR_USAGE, "the text is NULL: give a size, such as 512MiB");
}

enum slc_status
sluice_store_open(const char *path, struct sluice_store **ret_store, struct slc_error *err)
{
    struct sluice_store *store;
    enum slc_status status = api_need_path(path, "path", err);

    if (status != SLC_OK) {
        return status;
    }
    store = slc_calloc(1, sizeof *store);
    if (store == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to open a store");
    }
    status = slc_store_open(NULL, path, &store->store, err);
    if (status != SLC_OK) {
        slc_free(store);
        return status;
    }
    *ret_store = store;
    return SLC_OK;
}

void sluice_store_close(struct sluice_store *store)
{
    if (store != NULL) {
        for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
            slc_names_close(store->names[n]);
        }
        slc_store_close(&store->store);
        slc_free(store);
    }
}

static void fill_origin(const struct slc_store_origin *origin, struct sluice_store_info *known)
{
    known->entries = origin->entries_read;
    known->duplicates = origin->duplicates;
    known->explicit_zeros = origin->explicit_zeros;
    known->index_base = origin->index_base;
    known->appended = origin->appended_count;
    (void)snprintf(known->source, sizeof known->source, "%s", origin->source);
    (void)snprintf(known->dialect, sizeof known->dialect, "%s", origin->dialect);
    (void)snprintf(known->duplicate_policy, sizeof known->duplicate_policy, "%s",
                   origin->duplicate_policy);
    (void)snprintf(known->transforms, sizeof known->transforms, "%s", origin->transforms);
    (void)snprintf(known->writer, sizeof known->writer, "%s", origin->writer);
}

enum slc_status sluice_store_appended(const struct sluice_store *store,
                                      uint32_t number,
                                      struct sluice_appended *appended,
                                      struct slc_error *err)
{
    const struct slc_store_origin *origin = &store->store.manifest.origin;
    struct sluice_appended known = {.struct_bytes = sizeof known};

    if (number >= origin->appended_count) {
        return slc_fail(err, SLC_ERR_USAGE, "input %u of %u that were appended, from 0 on", number,
                        origin->appended_count);
    }
    known.entries = origin->appended[number].entries;
    (void)snprintf(known.source, sizeof known.source, "%s", origin->appended[number].source);
    return api_give_report(appended, &known, sizeof known, "sluice_appended", err);
}

enum slc_status sluice_store_info(const struct sluice_store *store,
                                  struct sluice_store_info *info,
                                  struct slc_error *err)
{
    const struct slc_manifest *manifest = &store->store.manifest;
    const struct slc_layout_info *layout = slc_reader_info(store->store.reader);
    struct sluice_store_info known = {.struct_bytes = sizeof known,
                                      .order = manifest->order,
                                      .value_type = (enum sluice_precision)manifest->value_type,
                                      .nnz = manifest->nnz,
                                      .norm = sqrt(manifest->sum_of_squares),
                                      .block_count = layout->block_count,
                                      .store_bytes = layout->file_bytes,
                                      .content_sum = manifest->content_sum,
                                      .codec = (enum sluice_codec)layout->codec,
                                      .relabelled_modes = (uint32_t)layout->relabelled_modes,
                                      .fiber_bits = layout->keys.run.bits,
                                      .fiber_mode = layout->keys.run.mode,
                                      .key_bits = layout->keys.bits,
                                      .tile_count = layout->tile_count,
                                      .max_block_bytes = layout->max_block_bytes,
                                      .total_bytes = slc_manifest_file_bytes(manifest)};

    fill_origin(&manifest->origin, &known);
    for (unsigned i = 0; i < manifest->names_count; i++) {
        known.named_modes |= 1U << manifest->names[i].mode;
    }
    memcpy(known.dims, manifest->dims, manifest->order * sizeof known.dims[0]);
    return api_give_report(info, &known, sizeof known, "sluice_store_info", err);
}

const char *sluice_store_title(const struct sluice_store *store, uint32_t mode)
{
    return mode < store->store.manifest.order ? store->store.manifest.titles[mode] : "";
}

uint64_t sluice_store_names(const struct sluice_store *store, uint32_t mode)
{
    const struct slc_store_names *listed = slc_manifest_names(&store->store.manifest, mode);

    return listed != NULL ? listed->count : 0;
}

enum slc_status sluice_store_name(struct sluice_store *store,
                                  uint32_t mode,
                                  uint64_t index,
                                  const char **ret_name,
                                  struct slc_error *err)
{
    const struct slc_manifest *manifest = &store->store.manifest;
    const struct slc_store_names *listed;
    enum slc_status status = SLC_OK;
    size_t bytes;

    if (mode >= manifest->order || index >= manifest->dims[mode]) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "index %" PRIu64 " of mode %u; the tensor has %u modes, and this one %" PRIu64
            " indices, all from 0 on",
            index, mode, manifest->order, mode < manifest->order ? manifest->dims[mode] : 0);
    }
    listed = slc_manifest_names(manifest, mode);
    if (listed == NULL) {
        *ret_name = NULL;
        return SLC_OK;
    }
    if (store->names[mode] == NULL) {
        status =
            slc_names_open(store->store.files, store->store.path, listed, &store->names[mode], err);
    }
    return status == SLC_OK ? slc_names_get(store->names[mode], index, ret_name, &bytes, err)
                            : status;
}

/* The caller's callbacks have the caller's context; of a leftover they are told the name alone. */
static void pass_fault(void *context, const struct slc_error *fault)
{
    const struct sluice_check_options *options = context;

    options->found(options->context, fault);
}

static void pass_progress(void *context, const char *phase, uint64_t done, uint64_t total)
{
    const struct sluice_check_options *options = context;

    options->progress(options->context, phase, done, total);
}

static void pass_leftover(void *context, const struct slc_leftover *leftover)
{
    const struct sluice_check_options *options = context;

    options->leftover(options->context, leftover->name);
}

enum slc_status sluice_check(const char *path,
                             const struct sluice_check_options *options,
                             uint64_t *ret_findings,
                             struct slc_error *err)
{
    struct sluice_check_options known;
    struct slc_verify_options verify = {0};
    struct slc_verify_report report = {0};
    struct slc_stop stop = {.flag = NULL};
    enum slc_status status;

    sluice_check_options_init(&known, sizeof known);
    status = api_take_options(&known, sizeof known, options, "sluice_check_options", err);
    if (status == SLC_OK) {
        status = api_need_path(path, "path", err);
    }
    if (status != SLC_OK) {
        return status;
    }
    verify.decode = known.fast == 0;
    verify.threads = api_threads(known.threads);
    verify.memory_bytes = known.memory_bytes;
    verify.max_findings = known.max_findings;
    verify.found = known.found != NULL ? pass_fault : NULL;
    verify.leftover = known.leftover != NULL ? pass_leftover : NULL;
    verify.progress = known.progress != NULL ? pass_progress : NULL;
    verify.context = &known;
    stop.flag = known.stop;
    verify.stop = &stop;
    status = slc_verify_store(path, &verify, &report, err);
    if (ret_findings != NULL) {
        *ret_findings = report.findings;
    }
    return status;
}
