/* Declarations shared by the files of the planner. Private to engine/planning. */
#ifndef SLC_ENGINE_PLANNING_IMPL_H
#define SLC_ENGINE_PLANNING_IMPL_H

#include "base/memory/checked.h"
#include "engine/plan/plan_sizes.h"
#include "engine/planning/planning.h"

/* Returns SLC_OK, or SLC_ERR_USAGE with a message about the first invalid or conflicting member. */
enum slc_status slc_plan_check_request(const struct slc_layout_info *info,
                                       const struct slc_plan_request *request,
                                       struct slc_error *err) SLC_NODISCARD;

/* Like slc_plan_make, but with passes that update two modes. The modes set in `fusion` begin these
 * passes, each over the layout from which it is read; modes are updated in the order `mode_order`.
 * If both arguments are NULL, plans plain passes in the order of the request. */
enum slc_status slc_plan_make_fused(const struct slc_layouts *layouts,
                                    const struct slc_plan_request *request,
                                    const struct slc_plan_fusion *fusion,
                                    const unsigned *mode_order,
                                    struct slc_plan *plan,
                                    struct slc_error *err) SLC_NODISCARD;

/* Among the plans with passes that update two modes, chooses the plan that reads the fewest bytes.
 * Sets *layout_count to the number of layouts that this plan reads (1: `blco` alone). A mode with
 * fewer than `ranges_least` ranges begins no such pass. Errors: those of slc_plan_make;
 * SLC_ERR_USAGE if no layout has ranges that fit in the ring; SLC_ERR_BUDGET if such ranges exist
 * but no plan fits in the budget. After an error *reason is set. */
enum slc_status slc_plan_choose_fused(const struct slc_layouts *layouts,
                                      const struct slc_plan_request *request,
                                      unsigned ranges_least,
                                      struct slc_plan *plan,
                                      unsigned *layout_count,
                                      enum slc_fusion_reason *reason,
                                      struct slc_error *err) SLC_NODISCARD;

/* Counts the passes per iteration over every layout, and sets the modes that are updated as second
 * modes of a pass. The first iterations, which may differ, are not counted. */
void slc_plan_count_passes(unsigned order, struct slc_plan *plan);

/* Sets the range of modes that will be computed: from *first to *end - 1. */
void slc_plan_modes(const struct slc_layout_info *info,
                    const struct slc_plan_request *request,
                    unsigned *first,
                    unsigned *end);

/* Chooses the strategy of every mode and counts the largest kernel scratch. `frugal` selects the
 * strategy with the least scratch instead of the fastest, if the backend has a choice. */
void slc_plan_kernels(const struct slc_layouts *layouts, struct slc_plan *plan, bool frugal);

/* Plan updates of rows from their nonzeros, and do nothing if the request does not need them.
 * slc_plan_rows_prepare counts the memory that is always needed. slc_plan_rows_buffers enlarges the
 * buffers of workers, and the memory for gathered nonzeros, if `available` bytes are left for them,
 * for further slots and for the cache. slc_plan_rows_slots returns the largest useful number of
 * slots, at least `useful`, if `available` bytes are left for slots. slc_plan_rows_finish is called
 * when slots and cache have been chosen from `available` bytes; it adds the bytes that are read
 * again. Errors: SLC_ERR_MEMORY; SLC_ERR_UNSUPPORTED. */
enum slc_status slc_plan_rows_prepare(const struct slc_layouts *layouts,
                                      struct slc_plan *plan,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_plan_rows_buffers(const struct slc_layouts *layouts,
                           struct slc_plan *plan,
                           uint64_t available);
unsigned slc_plan_rows_slots(const struct slc_layouts *layouts,
                             struct slc_plan *plan,
                             uint64_t available,
                             unsigned useful);
enum slc_status slc_plan_rows_finish(const struct slc_layouts *layouts,
                                     struct slc_plan *plan,
                                     uint64_t available,
                                     struct slc_error *err) SLC_NODISCARD;
/* Returns the cost of an iteration, in bytes read from a drive. */
double slc_plan_rows_cost(const struct slc_plan *plan);

/* Returns the padded bytes of all blocks of a layout. */
uint64_t slc_plan_store_bytes(const struct slc_reader *reader);

/* Keeps as many blocks of the plan's layouts resident in the memory of all GPUs as fit in
 * `available`, and sets the memory that the GPU with the most resident blocks needs for them and
 * for their expanded values. owners[l][b] is the GPU that owns block b of layout l; owners[l] is
 * NULL if there is one GPU. */
void slc_plan_residents(const struct slc_layouts *layouts,
                        struct slc_plan *plan,
                        uint32_t *const *owners,
                        uint64_t available);

/* Enlarges the memory for resident blocks, so that it also holds all other blocks of the layouts
 * that are read. */
void slc_plan_keep_all(const struct slc_layouts *layouts, struct slc_plan *plan);

/* Divides the budget of GPU memory. Errors: SLC_ERR_BUDGET, with the smallest sufficient budget in
 * the message and in *plan. */
enum slc_status slc_plan_gpu_make(const struct slc_layouts *layouts,
                                  struct slc_plan *plan,
                                  struct slc_error *err) SLC_NODISCARD;

/* Caches as many blocks of the plan's layouts as fit in `available`. */
void slc_plan_cache(const struct slc_layouts *layouts, struct slc_plan *plan, uint64_t available);

#endif
