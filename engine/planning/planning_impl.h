/* Declarations shared by the files of the planner. Private to engine/planning. */
#ifndef SLC_ENGINE_PLANNING_IMPL_H
#define SLC_ENGINE_PLANNING_IMPL_H

#include "base/memory/checked.h"
#include "engine/plan/plan_sizes.h"
#include "engine/planning/planning.h"

/* Returns SLC_ERR_USAGE, naming the part of the request that is not possible, if there is one. */
enum slc_status slc_plan_check_request(const struct slc_layout_info *info,
                                       const struct slc_plan_request *request,
                                       struct slc_error *err) SLC_NODISCARD;

/*
 * Like slc_plan_make, with passes that update two modes: the modes set in `fusion` begin these
 * passes, over the layouts from which they are read, in the order `mode_order`. With NULL, plans
 * plain passes in the order of the request.
 */
enum slc_status slc_plan_make_fused(const struct slc_layouts *layouts,
                                    const struct slc_plan_request *request,
                                    const struct slc_plan_fusion *fusion,
                                    const unsigned *mode_order,
                                    struct slc_plan *plan,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Chooses, among the plans with passes that update two modes, the one that reads the fewest bytes,
 * over some of `layouts`. *layout_count is the number of layouts read (1: `blco` alone). Modes with
 * fewer than `ranges_least` ranges begin no such pass. Errors: those of slc_plan_make;
 * SLC_ERR_USAGE if no layout has ranges that fit in the ring; SLC_ERR_BUDGET if there are such
 * ranges but the plan does not fit. After an error *reason is set.
 */
enum slc_status slc_plan_choose_fused(const struct slc_layouts *layouts,
                                      const struct slc_plan_request *request,
                                      unsigned ranges_least,
                                      struct slc_plan *plan,
                                      unsigned *layout_count,
                                      enum slc_fusion_reason *reason,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * Counts, for every layout, the passes per iteration once passes repeat, and determines the second
 * modes.
 */
void slc_plan_count_passes(unsigned order, struct slc_plan *plan);

/* Sets the first mode and the end of the modes that will be computed. */
void slc_plan_modes(const struct slc_layout_info *info,
                    const struct slc_plan_request *request,
                    unsigned *first,
                    unsigned *end);

/* Chooses the strategy of every mode and counts the largest kernel scratch. `frugal` selects the
 * strategy with the least scratch instead of the fastest, if the backend has a choice. */
void slc_plan_kernels(const struct slc_layouts *layouts, struct slc_plan *plan, bool frugal);

/* Padded bytes of all blocks of a layout. */
uint64_t slc_plan_store_bytes(const struct slc_reader *reader);

/* Keeps as many blocks of the plan's layouts resident in GPU memory as fit in `available`, and sets
 * the additional bytes into which their values may expand. */
void slc_plan_residents(const struct slc_layouts *layouts,
                        struct slc_plan *plan,
                        uint64_t available);

/* Divides the budget of GPU memory. Errors: SLC_ERR_BUDGET, naming the smallest sufficient budget,
 * which is then also set in *plan. */
enum slc_status slc_plan_gpu_make(const struct slc_layouts *layouts,
                                  struct slc_plan *plan,
                                  struct slc_error *err) SLC_NODISCARD;

/* Caches as many blocks of the plan's layouts as fit in `available`. */
void slc_plan_cache(const struct slc_layouts *layouts, struct slc_plan *plan, uint64_t available);

#endif
