/* Declarations shared by all executors. Private to engine/executor. */
#ifndef SLC_ENGINE_EXECUTOR_IMPL_H
#define SLC_ENGINE_EXECUTOR_IMPL_H

#include "engine/executor/executor.h"

typedef enum slc_status slc_executor_create_fn(const struct slc_executor_setup *setup,
                                               struct slc_executor **executor,
                                               struct slc_error *err);
slc_executor_create_fn slc_cpu_executor_create;
slc_executor_create_fn slc_cpu_groups_executor_create;
slc_executor_create_fn slc_gpu_executor_create; /* one GPU, with or without the CPU */
slc_executor_create_fn slc_gpu_group_executor_create;

/* Allocates a struct of `bytes` bytes whose first member is an slc_executor. Errors:
 * SLC_ERR_MEMORY. */
enum slc_status slc_executor_allocate(const struct slc_executor_ops *ops,
                                      const struct slc_executor_setup *setup,
                                      size_t bytes,
                                      void *executor,
                                      struct slc_error *err) SLC_NODISCARD;

/* Operations of executors without memory of their own: the first does nothing (read_output,
 * read_factor), the second only frees the struct (destroy). */
enum slc_status slc_executor_read_nothing(struct slc_executor *executor,
                                          unsigned mode,
                                          struct slc_error *err) SLC_NODISCARD;
void slc_executor_free(struct slc_executor *executor);

/* Returns the output in host memory with the shape of factor `mode`. */
struct slc_matrix slc_executor_output(const struct slc_executor *executor, unsigned mode);
/* Returns the job with which a backend computes a pass's MTTKRP from the factors in host memory. */
struct slc_mttkrp_job slc_executor_job(const struct slc_executor *executor,
                                       const struct slc_executor_pass *pass,
                                       struct slc_matrix *output);

#endif
