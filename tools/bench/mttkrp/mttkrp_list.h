/*
 * A store as a list of coordinates in memory, for the baselines of tools/bench/rivals/cpu/coo.h,
 * and what sorting it for them takes.
 */
#ifndef SLC_TOOLS_BENCH_MTTKRP_LIST_H
#define SLC_TOOLS_BENCH_MTTKRP_LIST_H

#include "tools/bench/mttkrp/mttkrp_job.h"
#include "tools/bench/rivals/cpu/coo.h"

/*
 * Decodes the store of a session that is started into `coo`, within what the session's plan leaves
 * of the budget, and where a variant of the group visits permuted makes the permutations of the
 * group's modes, group->repeats times: group->permute_seconds is the median of the sum over modes.
 * Needs: *coo all-zero. Owns: slc_coo_destroy, also after an error. Errors: SLC_ERR_BUDGET; those
 * of slc_coo_create, of decoding and of slc_coo_permute.
 */
enum slc_status bench_list_load(struct slc_session *session,
                                struct bench_mttkrp_group *group,
                                struct slc_coo *coo,
                                struct slc_error *err) SLC_NODISCARD;

#endif
