/*
 * The language of gpu/: CUDA C++ as nvcc compiles it, and as tests/gpu/emulation does with a compiler
 * of C++. What differs between the two is here: launches, dynamic shared memory, and pieces of
 * inline PTX, each with a plain twin. Sources that have no kernels are compiled as plain C++
 * against CUDA's runtime (meson.build) and see nothing of these.
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

/*
 * What tests leave out, or replace by something wrong, to see that it is noticed
 * (tests/unit/gpu/test_planted.py): a statement that kernels are not right without. Each has a name
 * of its own.
 */
#define SLC_PLANT(fault, statement)              statement
#define SLC_PLANT_OTHER(fault, statement, wrong) statement

/* Device memory between two parts of one piece: tests see to it that nobody touches it. */
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

/* Before a loop: every turn has code of its own, or all have the same. */
#ifdef SLC_EMULATED
#define SLC_UNROLL
#define SLC_ROLL
#else
#define SLC_UNROLL _Pragma("unroll")
#define SLC_ROLL   _Pragma("unroll 1")
#endif

#define SLC_ALL_LANES 0xffffffffU

#if defined(SLC_EMULATED) || defined(__CUDACC__)

/* ---- reductions to memory that return nothing */

/* Adds `count` f64 at `to`, each by itself: f64 has no vector form. */
template <int count> __device__ static inline void slc_reduce_add(double *to, const double *values)
{
    for (int i = 0; i < count; i++) {
        SLC_PLANT_OTHER(plain_add_f64, atomicAdd(to + i, values[i]), to[i] += values[i]);
    }
}

#endif

#endif
