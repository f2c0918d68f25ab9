/* Public functions for versions, errors and messages, and to open, describe and verify stores. */
#include "sluice/store.h"
#include "api/call.h"
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

const char *sluice_status_name(enum sluice_status status)
{
    return slc_status_name((enum slc_status)status);
}

/* The caller's message callback, which gets levels of the public enumeration. */
static struct {
    void (*message)(void *context, enum sluice_log_level level, const char *message);
    void *context;
} sink;

static void forward_message(void *context, enum slc_log_level level, const char *message)
{
    (void)context;
    sink.message(sink.context, (enum sluice_log_level)level, message);
}

void sluice_log_to(void (*message)(void *context, enum sluice_log_level level, const char *message),
                   void *context)
{
    sink.message = message;
    sink.context = context;
    slc_log_set_sink(message != NULL ? forward_message : NULL, NULL);
}

int sluice_error_format(const struct sluice_error *err, char *text, uint64_t text_bytes)
{
    static const struct sluice_error none = SLUICE_ERROR_INIT;

    err = err != NULL ? err : &none;
    text_bytes = text != NULL ? text_bytes : 0;
    const char *field = err->field != NULL ? err->field : "";
    const char *other = err->other_field != NULL ? err->other_field : "";
    const bool named = field[0] != '\0' || other[0] != '\0';
    struct slc_error known = {.status = (enum slc_status)err->status,
                              .line = err->line,
                              .column = err->column,
                              .block = err->block,
                              .offset = err->offset};
    char line[sizeof known];

    memcpy(known.file, err->file, sizeof known.file);
    memcpy(known.message, err->message, sizeof known.message);
    (void)slc_error_format(&known, NULL, line, sizeof line);
    return snprintf(text, text_bytes, "%s%s%s%s%s%s", line, named ? " (" : "", field,
                    field[0] != '\0' && other[0] != '\0' ? ", " : "", other, named ? ")" : "");
}

enum sluice_status
sluice_parse_size(const char *text, uint64_t *ret_bytes, struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"text", text}, {"ret_bytes", ret_bytes});

    return api_return(slc_parse_size(text, ret_bytes, err), err, ret_err);
}

enum sluice_status
sluice_store_open(const char *path, struct sluice_store **ret_store, struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"path", path}, {"ret_store", ret_store});
    struct sluice_store *store = slc_calloc(1, sizeof *store);
    const enum slc_status status = store != NULL
                                       ? slc_store_open(NULL, path, &store->store, err)
                                       : slc_fail(err, SLC_ERR_MEMORY, "no memory to open a store");

    if (status == SLC_OK) {
        *ret_store = store;
    } else {
        slc_free(store);
    }
    return api_return(status, err, ret_err);
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
    known->keep_zeros = origin->keeps_zeros;
    known->appended = origin->appended_count;
    (void)snprintf(known->source, sizeof known->source, "%s", origin->source);
    (void)snprintf(known->dialect, sizeof known->dialect, "%s", origin->dialect);
    (void)snprintf(known->duplicate_policy, sizeof known->duplicate_policy, "%s",
                   origin->duplicate_policy);
    (void)snprintf(known->transforms, sizeof known->transforms, "%s", origin->transforms);
    (void)snprintf(known->writer, sizeof known->writer, "%s", origin->writer);
}

static void fill_values(const struct slc_value_stats *values, struct sluice_store_info *known)
{
    known->all_integers = values->integers;
    known->listed_zeros = values->zeros;
    known->value_min = values->low;
    known->value_max = values->high;
    known->distinct_count = values->distinct;
    memcpy(known->distinct_values, values->listed, sizeof known->distinct_values);
}

enum sluice_status sluice_store_get_appended(const struct sluice_store *store,
                                             uint32_t number,
                                             struct sluice_appended *appended,
                                             struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"store", store}, {"appended", appended});
    const struct slc_store_origin *origin = &store->store.manifest.origin;
    struct sluice_appended known = {.entries = 0};
    enum slc_status status;

    if (number >= origin->appended_count) {
        status =
            slc_fail(err, SLC_ERR_USAGE,
                     "appended input %u does not exist: the store has %u, and numbers start at 0",
                     number, origin->appended_count);
    } else {
        known.entries = origin->appended[number].entries;
        (void)snprintf(known.source, sizeof known.source, "%s", origin->appended[number].source);
        status = API_FILL_REPORT(sluice_appended, appended, &known, err);
    }
    return api_return(status, err, ret_err);
}

enum sluice_status sluice_store_get_info(const struct sluice_store *store,
                                         struct sluice_store_info *info,
                                         struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"store", store}, {"info", info});
    const struct slc_manifest *manifest = &store->store.manifest;
    const struct slc_layout_info *layout = slc_reader_info(store->store.reader);
    struct sluice_store_info known = {.order = manifest->order,
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
    fill_values(&manifest->values, &known);
    for (unsigned i = 0; i < manifest->names_count; i++) {
        known.named_modes |= 1U << manifest->names[i].mode;
    }
    memcpy(known.dims, manifest->dims, manifest->order * sizeof known.dims[0]);
    return api_return(API_FILL_REPORT(sluice_store_info, info, &known, err), err, ret_err);
}

const char *sluice_store_title(const struct sluice_store *store, uint32_t mode)
{
    return store != NULL && mode < store->store.manifest.order ? store->store.manifest.titles[mode]
                                                               : "";
}

uint64_t sluice_store_name_count(const struct sluice_store *store, uint32_t mode)
{
    const struct slc_store_names *listed =
        store != NULL ? slc_manifest_names(&store->store.manifest, mode) : NULL;

    return listed != NULL ? listed->count : 0;
}

enum sluice_status sluice_store_get_name(struct sluice_store *store,
                                         uint32_t mode,
                                         uint64_t index,
                                         const char **ret_name,
                                         struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"store", store}, {"ret_name", ret_name});
    const struct slc_manifest *manifest = &store->store.manifest;
    const struct slc_store_names *listed = slc_manifest_names(manifest, mode);
    const uint64_t indices = mode < manifest->order ? manifest->dims[mode] : 0;
    enum slc_status status = SLC_OK;
    size_t bytes;

    if (index >= indices) {
        status =
            slc_fail(err, SLC_ERR_USAGE,
                     "index %" PRIu64
                     " of mode %u does not exist: the tensor has %u modes, this mode has %" PRIu64
                     " indices, and numbers start at 0",
                     index, mode, manifest->order, indices);
    } else if (listed == NULL) {
        *ret_name = NULL;
    } else {
        struct slc_names **names = &store->names[mode];

        if (*names == NULL) {
            status = slc_names_open(store->store.files, store->store.path, listed, names, err);
        }
        SLC_THEN(status, slc_names_get(*names, index, ret_name, &bytes, err));
    }
    return api_return(status, err, ret_err);
}

/* Context of the callbacks of a check. The run must be the first member, because API_SET_RUN uses
 * it as the context. */
struct checking {
    struct api_run run;
    struct sluice_check_options known;
};

static void report_fault(void *context, const struct slc_error *fault)
{
    const struct checking *checking = context;
    const struct sluice_error known = api_public_error(fault);

    checking->known.found(checking->run.options.context, &known);
}

static void report_leftover(void *context, const struct slc_leftover *leftover)
{
    const struct checking *checking = context;

    checking->known.leftover(checking->run.options.context, leftover->name);
}

enum sluice_status sluice_check(const char *path,
                                const struct sluice_check_options *options,
                                uint64_t *ret_findings,
                                struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"path", path});
    struct checking checking = {.known = {0}};
    struct slc_verify_options verify = {0};
    struct slc_verify_report report = {0};
    enum slc_status status = API_READ_OPTIONS(sluice_check_options, &checking.known, options, err);

    if (status == SLC_OK) {
        api_run_init(&checking.run, &checking.known.run);
        API_SET_RUN(&verify, &checking.run);
        verify.threads = api_run_threads(&checking.run);
        verify.memory_bytes = checking.run.options.memory_bytes;
        verify.decode = checking.known.fast == 0;
        verify.max_findings = checking.known.max_findings;
        verify.found = checking.known.found != NULL ? report_fault : NULL;
        verify.leftover = checking.known.leftover != NULL ? report_leftover : NULL;
        status = slc_verify_store(path, &verify, &report, err);
        if (ret_findings != NULL) {
            *ret_findings = report.findings;
        }
    }
    return api_return(status, err, ret_err);
}
