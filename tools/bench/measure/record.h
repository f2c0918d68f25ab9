/*
 * The record of a benchmark: one JSON object with schema, options, versions and machine, to which
 * the benchmark adds its figures. `--json` prints it and nothing else; otherwise tables are printed
 * from it (table.h). Names of members end in their unit.
 */
#ifndef SLC_TOOLS_BENCH_RECORD_H
#define SLC_TOOLS_BENCH_RECORD_H

#include "base/error/error.h"
#include "report/json_parts.h"
#include "storage/manifest/store.h"
#include "tools/options/options.h"

#include <jansson.h>
#include <stdint.h>

/*
 * Starts a record: "schema" ("sluice-bench-1"), "bench" (the name of the subcommand), "options",
 * "versions", "machine". Owns: json_decref. Errors: SLC_ERR_MEMORY.
 */
enum slc_status bench_record_start(const struct command *command,
                                   const void *values,
                                   json_t **record,
                                   struct slc_error *err) SLC_NODISCARD;

/* A member, as slc_json_set_real; null if not finite: JSON has no infinity. */
void bench_set_real(json_t *object, const char *name, double number);

/* Path, dims, nnz, value type and bytes of a store. Owns: as json_object. */
json_t *bench_tensor_to_json(const struct slc_store *store);

/* The same as "tensor" of the record of a benchmark of one store. */
void bench_set_tensor(json_t *record, const struct slc_store *store);

struct slc_device_info;

/* A GPU as "device" of the record. */
void bench_set_device(json_t *record, const struct slc_device_info *info);

/* Prints the record to standard output. Errors: SLC_ERR_MEMORY. */
enum slc_status bench_record_print(const json_t *record, struct slc_error *err) SLC_NODISCARD;

#endif
