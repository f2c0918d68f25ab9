/* The record of a benchmark; see record.h. */
#include "tools/bench/measure/record.h"

#include "base/device.h"
#include "report/json_parts.h"
#include "tools/session/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bench_set_real(json_t *object, const char *name, double number)
{
    slc_json_set(object, name, isfinite(number) ? json_real(number) : json_null());
}

json_t *bench_tensor_to_json(const struct slc_store *store)
{
    const struct slc_manifest *manifest = &store->manifest;
    json_t *object = json_object();

    slc_json_set_text(object, "path", store->path);
    slc_json_set(object, "dims", slc_json_dims(manifest->order, manifest->dims));
    slc_json_set_count(object, "nnz", manifest->nnz);
    slc_json_set_text(object, "value_type", manifest->value_type == SLC_F32 ? "f32" : "f64");
    slc_json_set_count(object, "store_bytes", session_store_bytes(manifest));
    return object;
}

void bench_set_tensor(json_t *record, const struct slc_store *store)
{
    slc_json_set(record, "tensor", bench_tensor_to_json(store));
}

void bench_set_device(json_t *record, const struct slc_device_info *info)
{
    json_t *device = json_object();

    slc_json_set(record, "device", device);
    slc_json_set_text(device, "name", info->name);
    slc_json_set_count(device, "total_bytes", info->total_bytes);
    slc_json_set_count(device, "free_bytes", info->free_bytes);
    slc_json_set_count(device, "multiprocessors", info->multiprocessors);
}

/* The last word of the command's name: "stream" of "bench stream". */
static const char *short_name(const struct command *command)
{
    const char *space = strrchr(command->name, ' ');

    return space != NULL ? space + 1 : command->name;
}

enum slc_status bench_record_start(const struct command *command,
                                   const void *values,
                                   json_t **record,
                                   struct slc_error *err)
{
    json_t *object = json_pack("{s:s}", "schema", "sluice-bench-1");

    if (object == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the record of a benchmark");
    }
    slc_json_set_text(object, "bench", short_name(command));
    slc_json_set(object, "options", options_to_json(command, values));
    slc_json_set(object, "versions", slc_json_versions());
    slc_json_set(object, "machine", slc_json_machine());
    *record = object;
    return SLC_OK;
}

enum slc_status bench_record_print(const json_t *record, struct slc_error *err)
{
    char *text = json_dumps(record, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));

    if (text == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the record of a benchmark");
    }
    printf("%s\n", text);
    free(text);
    return SLC_OK;
}
