/*
 * MTTKRPs over a store in memory: one group shares rank, threads and precision, and measures its
 * variants (kernel, layout, instruction set and conflict strategy) interleaved, so that what
 * disturbs the machine disturbs all of them.
 */
#ifndef SLC_TOOLS_BENCH_MTTKRP_GROUP_H
#define SLC_TOOLS_BENCH_MTTKRP_GROUP_H

#include "tools/bench/mttkrp/mttkrp_job.h"

/*
 * Measures a group: one pass that reads the store into memory, then `warm_up` and `repeats` rounds
 * of every mode of every variant by the engine's own stream and device; before them copies per
 * mode, a list of coordinates and other layouts where a variant wants them. The factors are random.
 * Variants that ask for the best are resolved. `cells`: variant_count times SLC_MAX_ORDER, all-zero
 * before. Errors: SLC_ERR_BUDGET when the store does not fit; SLC_ERR_USAGE (the direct strategy
 * with more than one thread); those of the stream and the device.
 */
enum slc_status bench_mttkrp_measure(struct slc_session *session,
                                     struct bench_mttkrp_group *group,
                                     struct bench_mttkrp_cell (*cells)[SLC_MAX_ORDER],
                                     struct slc_error *err) SLC_NODISCARD;

#endif
