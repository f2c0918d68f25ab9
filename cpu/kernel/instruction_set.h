/* Selects the instruction set of the kernels of cpu/. */
#ifndef SLC_CPU_INSTRUCTION_SET_H
#define SLC_CPU_INSTRUCTION_SET_H

#include <stdbool.h>

/* Returns the instruction set of the kernels: "portable", "avx2", "avx512" or "neon". */
const char *slc_cpu_instruction_set(void);
/* Forces an instruction set for tests and benchmarks; NULL selects the best. Returns false if this
 * machine does not support the instruction set. */
bool slc_cpu_force_instruction_set(const char *name);

#endif
