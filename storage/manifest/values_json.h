/* Statistics of values as JSON: the member "values" of the manifest (docs/FORMAT.md, section 9). */
#ifndef SLC_STORAGE_VALUES_JSON_H
#define SLC_STORAGE_VALUES_JSON_H

#include "storage/codec/value_stats.h"

#include <jansson.h>

/* Returns an object, or NULL if out of memory. Ownership: release with json_decref. */
json_t *slc_values_to_json(const struct slc_value_stats *stats);

/* Parses an object of slc_values_to_json. Returns false if it is not valid for `nnz` values; *stats
 * is then undefined. */
bool slc_values_from_json(const json_t *object, uint64_t nnz, struct slc_value_stats *stats);

#endif
