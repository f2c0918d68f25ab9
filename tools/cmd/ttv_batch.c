#include "tools/cmd/ttv_batch.h"

#include "base/memory/memory.h"
#include "report/json_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Returns the pattern with `number` instead of "%d", which begins at `mark`; NULL if memory is
 * exhausted. */
static char *output_name(const char *pattern, const char *mark, unsigned number)
{
    const size_t bytes = strlen(pattern) + 16;
    char *name = slc_malloc(bytes);

    if (name != NULL) {
        (void)snprintf(name, bytes, "%.*s%u%s", (int)(mark - pattern), pattern, number, mark + 2);
    }
    return name;
}

/* Appends a vector of `length` letters and its result. */
static enum slc_status add_vector(struct ttv_batch *batch,
                                  const char *path,
                                  size_t length,
                                  const char *pattern,
                                  const char *mark,
                                  struct slc_error *err)
{
    const unsigned r = batch->count;

    if (length == 0) {
        return slc_fail(err, SLC_ERR_USAGE, "--batch: the path of vector %u is empty", r + 1);
    }
    if (r == SLC_CONTRACT_RESULTS_MAX) {
        return slc_fail(err, SLC_ERR_USAGE, "--batch: at most %d vectors are possible",
                        SLC_CONTRACT_RESULTS_MAX);
    }
    batch->vector[r] = slc_malloc(length + 1);
    batch->output[r] = output_name(pattern, mark, r + 1);
    batch->count++;
    SLC_TRY(
        slc_check_memory(batch->vector[r] != NULL && batch->output[r] != NULL, err, "for paths"));
    memcpy(batch->vector[r], path, length);
    batch->vector[r][length] = '\0';
    return SLC_OK;
}

enum slc_status ttv_batch_create(struct ttv_batch *batch,
                                 const char *list,
                                 const char *pattern,
                                 struct slc_error *err)
{
    const char *mark = pattern != NULL ? strstr(pattern, "%d") : NULL;

    memset(batch, 0, sizeof *batch);
    if (mark == NULL || strstr(mark + 2, "%d") != NULL) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--batch needs an output with one %%d, which is replaced by the number of "
                        "the vector, such as OUT-%%d.slc");
    }
    for (const char *path = list, *end = list; path != NULL; path = *end == ',' ? end + 1 : NULL) {
        end = path + strcspn(path, ",");
        SLC_TRY(add_vector(batch, path, (size_t)(end - path), pattern, mark, err));
    }
    return SLC_OK;
}

void ttv_batch_destroy(struct ttv_batch *batch)
{
    for (unsigned r = 0; r < batch->count; r++) {
        slc_free(batch->vector[r]);
        slc_free(batch->output[r]);
    }
    batch->count = 0;
}

void ttv_batch_apply(struct ttv_batch *batch, struct slc_contract_options *contract)
{
    contract->vectors[0].path = batch->vector[0];
    contract->output = batch->output[0];
    contract->more_count = batch->count - 1;
    contract->more = batch->more;
    for (unsigned r = 1; r < batch->count; r++) {
        batch->more[r - 1].path = batch->vector[r];
        batch->more[r - 1].output = batch->output[r];
    }
}

json_t *ttv_batch_result_json(const char *output,
                              uint64_t zero_sums,
                              const struct slc_builder_report *report)
{
    json_t *result = json_object();

    slc_json_set_text(result, "output", output);
    slc_json_set_count(result, "result_nnz", report->summary.nnz);
    slc_json_set_count(result, "result_bytes", report->summary.file_bytes);
    slc_json_set_count(result, "zero_sums", zero_sums);
    slc_json_set_count(result, "dropped_sums", report->explicit_zeros);
    return result;
}
