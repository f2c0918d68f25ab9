/* Which instruction set the kernels of cpu/ run on. */
#ifndef SLC_CPU_INSTRUCTION_SET_H
#define SLC_CPU_INSTRUCTION_SET_H

#include <stdbool.h>

/* Instruction set of the kernels: "portable", "avx2", "avx512", "neon". */
const char *slc_cpu_instruction_set(void);
/* Forces one for tests and benchmarks; NULL is the best. False when not available here. */
bool slc_cpu_force_instruction_set(const char *name);

#endif
