/* The CPU backend, which implements the table of base/backend.h with tuned kernels. */
#ifndef SLC_CPU_CPU_H
#define SLC_CPU_CPU_H

#include "base/backend.h"
#include "cpu/kernel/instruction_set.h"

/* Creates the backend. Ownership: release with backend->ops->destroy. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_cpu_backend_create(struct slc_backend **backend,
                                       struct slc_error *err) SLC_NODISCARD;

/* Returns the table of the CPU backend, for plans that are made before there is a backend. */
const struct slc_backend_ops *slc_cpu_backend_ops(void);

#endif
