/*
 * The CPU backend: tuned kernels behind the table of base/backend.h.
 */
#ifndef SLC_CPU_CPU_H
#define SLC_CPU_CPU_H

#include "base/backend.h"

#include <stdbool.h>

/* Creates the backend. Owns: backend->ops->destroy. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_cpu_backend_create(struct slc_backend **backend,
                                       struct slc_error *err) SLC_NODISCARD;

/* The table alone, for plans that need no device yet. */
const struct slc_backend_ops *slc_cpu_backend_ops(void);

/* Instruction set of the kernels: "portable", "avx2", "avx512", "neon". */
const char *slc_cpu_instruction_set(void);
/* Forces one for tests and benchmarks; NULL is the best. False when not available here. */
bool slc_cpu_force_instruction_set(const char *name);

#endif
