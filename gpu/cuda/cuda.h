/* The language of gpu/: CUDA C++, compiled by nvcc or, with tests/gpu/emulation, by a C++ compiler.
 * This file hides the differences between the two compilers: kernel launches, dynamic shared memory
 * and inline PTX each have an equivalent in plain C++. Sources without kernels do not use these
 * constructs; they are compiled as plain C++ against the CUDA runtime (meson.build). */
#ifndef SLC_GPU_CUDA_H
#define SLC_GPU_CUDA_H

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

extern "C" {
#include "base/device.h"
#include "gpu/cuda/records.h"
}

#ifndef SLC_EMULATED

/* A statement that is needed for correct results. tests/unit/gpu/test_planted.py omits the
 * statement, or replaces it with a wrong one, and checks that tests detect the fault. `fault` is a
 * unique name for the omission or replacement. */
#define SLC_PLANT(fault, statement)              statement
#define SLC_PLANT_OTHER(fault, statement, wrong) statement

/* Marks unused device memory between two parts of a piece; tests check that kernels do not access
 * the unused memory. */
static inline void slc_memory_gap(const void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
}

#ifdef __CUDACC__

/* Declares `name` as the thread block's dynamic shared memory, an array of `type`. */
#define SLC_DYNAMIC_SHARED(type, name)                                                             \
    extern __shared__ __align__(16) unsigned char slc_dynamic_shared[];                            \
    type *name = reinterpret_cast<type *>(slc_dynamic_shared)

/* Launches kernel<<<grid, block, shared_bytes, stream>>>(arguments). */
template <typename... Parameters, typename... Arguments>
static inline cudaError_t slc_launch(void (*kernel)(Parameters...),
                                     dim3 grid,
                                     dim3 block,
                                     size_t shared_bytes,
                                     cudaStream_t stream,
                                     Arguments... arguments)
{
    kernel<<<grid, block, shared_bytes, stream>>>(static_cast<Parameters>(arguments)...);
    return cudaGetLastError();
}

#endif
#endif

/* Placed before a loop: SLC_UNROLL unrolls the loop fully, SLC_ROLL keeps the loop rolled. */
#ifdef SLC_EMULATED
#define SLC_UNROLL
#define SLC_ROLL
#else
#define SLC_UNROLL _Pragma("unroll")
#define SLC_ROLL   _Pragma("unroll 1")
#endif

#define SLC_ALL_LANES 0xffffffffU

#if defined(SLC_EMULATED) || defined(__CUDACC__)

/* ---- atomic additions that return nothing */

/* Adds a number to the number at `to`. The instruction for atomic additions has no vector form for
 * f64. */
__device__ static inline void slc_reduce_add(double *to, double value)
{
    SLC_PLANT_OTHER(plain_add_f64, atomicAdd(to, value), *to += value);
}

#endif

#endif
