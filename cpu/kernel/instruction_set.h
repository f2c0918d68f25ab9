/* Selects the instruction set of the kernels of cpu/. */
#ifndef SLC_CPU_INSTRUCTION_SET_H
#define SLC_CPU_INSTRUCTION_SET_H

#include <stdbool.h>

/* Instruction set of the kernels: "portable", "avx2", "avx512", "neon". */
const char *slc_cpu_instruction_set(void);
/* Forces a set for tests and benchmarks; NULL: the best. False if it is not available here. */
bool slc_cpu_force_instruction_set(const char *name);

#endif
