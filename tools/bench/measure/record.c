/* The record of a benchmark; see record.h. */
#include "tools/bench/measure/record.h"

#include "base/device.h"
#include "report/json_parts.h"
#include "tools/session/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bench_set(json_t *object, const char *name, json_t *value)
{
    (void)json_object_set_new(object, name, value);
}

void bench_set_text(json_t *object, const char *name, const char *text)
{
    bench_set(object, name, json_string(text));
}

void bench_set_count(json_t *object, const char *name, uint64_t number)
{
    bench_set(object, name, json_integer((json_int_t)number));
}

void bench_set_real(json_t *object, const char *name, double number)
{
    bench_set(object, name, isfinite(number) ? json_real(number) : json_null());
}

json_t *bench_tensor_to_json(const struct slc_store *store)
{
    const struct slc_manifest *manifest = &store->manifest;
    json_t *object = json_object();

    bench_set_text(object, "path", store->path);
    bench_set(object, "dims", slc_json_dims(manifest->order, manifest->dims));
    bench_set_count(object, "nnz", manifest->nnz);
    bench_set_text(object, "value_type", manifest->value_type == SLC_F32 ? "f32" : "f64");
    bench_set_count(object, "store_bytes", session_store_bytes(manifest));
    return object;
}

void bench_set_tensor(json_t *record, const struct slc_store *store)
{
    bench_set(record, "tensor", bench_tensor_to_json(store));
}

void bench_set_device(json_t *record, const struct slc_device_info *info)
{
    json_t *device = json_object();

    bench_set(record, "device", device);
    bench_set_text(device, "name", info->name);
    bench_set_count(device, "total_bytes", info->total_bytes);
    bench_set_count(device, "free_bytes", info->free_bytes);
    bench_set_count(device, "multiprocessors", info->multiprocessors);
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
    bench_set_text(object, "bench", short_name(command));
    bench_set(object, "options", options_to_json(command, values));
    bench_set(object, "versions", slc_json_versions());
    bench_set(object, "machine", slc_json_machine());
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
