/* Several vectors of one mode in one run of `sluice ttv`: --batch V1.npy,V2.npy with an operand
 * such as OUT-%d.slc. */
#ifndef SLC_TOOLS_TTV_BATCH_H
#define SLC_TOOLS_TTV_BATCH_H

#include "engine/product/contract.h"

#include <jansson.h>

/* Paths of the vectors and of the results. */
struct ttv_batch {
    unsigned count; /* number of vectors */
    char *vector[SLC_CONTRACT_RESULTS_MAX];
    char *output[SLC_CONTRACT_RESULTS_MAX];
    struct slc_contract_more more[SLC_CONTRACT_RESULTS_MAX];
};

/* Splits the list of vectors at commas. Result r of `pattern` has the number r + 1 instead of "%d".
 * Ownership: ttv_batch_destroy, also after an error. Errors: SLC_ERR_USAGE for an empty path, for
 * more than SLC_CONTRACT_RESULTS_MAX vectors, and for a pattern (NULL: not given) without exactly
 * one "%d"; SLC_ERR_MEMORY. */
enum slc_status ttv_batch_create(struct ttv_batch *batch,
                                 const char *list,
                                 const char *pattern,
                                 struct slc_error *err) SLC_NODISCARD;
void ttv_batch_destroy(struct ttv_batch *batch);

/* Sets vectors and outputs of a contraction, which borrows the batch. */
void ttv_batch_apply(struct ttv_batch *batch, struct slc_contract_options *contract);

/* Returns an object with the size of a result. */
json_t *ttv_batch_result_json(const char *output,
                              uint64_t zero_sums,
                              const struct slc_builder_report *report);

#endif
