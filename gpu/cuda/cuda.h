/*
 * The language of gpu/: CUDA C++, compiled by nvcc or, with tests/gpu/emulation, by a C++ compiler.
 * This file hides the differences: launches, dynamic shared memory, and inline PTX, each with a
 * plain equivalent. Sources without kernels are compiled as plain C++ against CUDA's runtime
 * (meson.build) and do not use them.
 */
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

/* A statement that kernels need. Tests omit it, or replace it by a wrong one, and check that the
 * fault is detected (tests/unit/gpu/test_planted.py). Each has a unique name. */
#define SLC_PLANT(fault, statement)              statement
#define SLC_PLANT_OTHER(fault, statement, wrong) statement

/* Device memory between two parts of one piece: tests check that it is not accessed. */
static inline void slc_memory_gap(const void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
}

#ifdef __CUDACC__

/* Dynamic shared memory of the thread block as an array. */
#define SLC_DYNAMIC_SHARED(type, name)                                                             \
    extern __shared__ __align__(16) unsigned char slc_dynamic_shared[];                            \
    type *name = reinterpret_cast<type *>(slc_dynamic_shared)

/* kernel<<<grid, block, shared_bytes, stream>>>(arguments) */
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

/* Before a loop: unroll it fully, or not at all. */
#ifdef SLC_EMULATED
#define SLC_UNROLL
#define SLC_ROLL
#else
#define SLC_UNROLL _Pragma("unroll")
#define SLC_ROLL   _Pragma("unroll 1")
#endif

#define SLC_ALL_LANES 0xffffffffU

#if defined(SLC_EMULATED) || defined(__CUDACC__)

/* ---- reductions to memory without a result */

/* Adds `count` f64 at `to`, one at a time: f64 has no vector form. */
template <int count> __device__ static inline void slc_reduce_add(double *to, const double *values)
{
    for (int i = 0; i < count; i++) {
        SLC_PLANT_OTHER(plain_add_f64, atomicAdd(to + i, values[i]), to[i] += values[i]);
    }
}

#endif

#endif
