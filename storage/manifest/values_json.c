#include "storage/manifest/values_json.h"

#include <math.h>
#include <string.h>

json_t *slc_values_to_json(const struct slc_value_stats *stats)
{
    json_t *object =
        json_pack("{s:f, s:f, s:b, s:I}", "minimum", stats->low, "maximum", stats->high, "integers",
                  (int)stats->integers, "zeros", (json_int_t)stats->zeros);
    json_t *list = stats->distinct <= SLC_DISTINCT_MAX ? json_array() : NULL;
    bool ok = object != NULL;

    for (unsigned i = 0; i < stats->distinct && list != NULL && ok; i++) {
        ok = json_array_append_new(list, json_real(stats->listed[i])) == 0;
    }
    if (ok && stats->distinct <= SLC_DISTINCT_MAX) {
        ok = json_object_set(object, "distinct", list) == 0;
    }
    json_decref(list);
    if (!ok) {
        json_decref(object);
        object = NULL;
    }
    return object;
}

/* Parses the list of distinct values; without a list, there are too many to list. */
static bool parse_distinct(const json_t *list, struct slc_value_stats *stats)
{
    const size_t count = json_array_size(list);
    bool sound = json_is_array(list) && count >= 1 && count <= SLC_DISTINCT_MAX;

    if (list == NULL) {
        stats->distinct = SLC_DISTINCT_MAX + 1;
        return true;
    }
    for (unsigned i = 0; i < count && sound; i++) {
        const json_t *value = json_array_get(list, i);

        stats->listed[i] = json_number_value(value);
        sound = json_is_number(value) && (i == 0 || stats->listed[i] > stats->listed[i - 1]);
    }
    stats->distinct = (unsigned)count;
    return sound && stats->listed[0] == stats->low && stats->listed[count - 1] == stats->high;
}

bool slc_values_from_json(const json_t *object, uint64_t nnz, struct slc_value_stats *stats)
{
    const json_t *low = json_object_get(object, "minimum");
    const json_t *high = json_object_get(object, "maximum");
    const json_t *integers = json_object_get(object, "integers");
    const json_t *zeros = json_object_get(object, "zeros");
    const json_int_t count = json_integer_value(zeros);

    memset(stats, 0, sizeof *stats);
    stats->low = json_number_value(low);
    stats->high = json_number_value(high);
    stats->integers = json_is_true(integers);
    stats->zeros = count < 0 ? 0 : (uint64_t)count;
    return json_is_number(low) && json_is_number(high) && json_is_boolean(integers) &&
           json_is_integer(zeros) && count >= 0 && stats->zeros <= nnz && nnz > 0 &&
           stats->low <= stats->high &&
           (stats->zeros == 0 || (stats->low <= 0 && stats->high >= 0)) &&
           parse_distinct(json_object_get(object, "distinct"), stats);
}
