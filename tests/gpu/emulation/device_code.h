/* The language of CUDA kernels for a C++ compiler: qualifiers, vector types, built-in variables,
 * and warp and block functions as calls of the scheduler (scheduler.h). */
#ifndef SLC_EMULATION_DEVICE_CODE_H
#define SLC_EMULATION_DEVICE_CODE_H

#include <cstdint>
#include <cstring>

/* The functions of <cmath> that kernels call. That header has 20,000 lines, half of the compile
 * time of most files of gpu/ in tests. */
extern "C" {
double fabs(double x) noexcept;
double fma(double x, double y, double z) noexcept;
float fmaf(float x, float y, float z) noexcept;
double frexp(double x, int *exponent) noexcept;
double ldexp(double x, int exponent) noexcept;
double rint(double x) noexcept;
}
#ifndef NAN
#define NAN (__builtin_nanf(""))
#endif

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __constant__     static const
#define __align__(bytes) alignas(bytes)

/* ---- vector types */

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};
struct uint3 {
    unsigned x, y, z;
};
struct alignas(8) ushort4 {
    unsigned short x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};

static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return uint2{x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return uint4{x, y, z, w};
}
static inline float2 make_float2(float x, float y)
{
    return float2{x, y};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return float4{x, y, z, w};
}
static inline double2 make_double2(double x, double y)
{
    return double2{x, y};
}

/* ---- the running thread */

struct slc_emulated_thread {
    uint3 thread_index, block_index;
    dim3 block_size, grid_size;
    unsigned lane;
    unsigned char *shared; /* dynamic shared memory of its block */
};
extern struct slc_emulated_thread *slc_emulated_here; /* NULL outside kernels */

/* extern __shared__ TYPE name[]; under CUDA. */
/* A declaration: NOLINTBEGIN(bugprone-macro-parentheses) */
#define SLC_DYNAMIC_SHARED(type, name)                                                             \
    type *name = reinterpret_cast<type *>(slc_emulated_here->shared)
/* NOLINTEND(bugprone-macro-parentheses) */

#define threadIdx (slc_emulated_here->thread_index)
#define blockIdx  (slc_emulated_here->block_index)
#define blockDim  (slc_emulated_here->block_size)
#define gridDim   (slc_emulated_here->grid_size)
static const int warpSize = 32;

/* The upper half of a product. */
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}

/* ---- barriers and warps */

enum slc_warp_call {
    SLC_WARP_SYNC,
    SLC_WARP_SHUFFLE,
    SLC_WARP_SHUFFLE_UP,
    SLC_WARP_SHUFFLE_DOWN,
    SLC_WARP_SHUFFLE_XOR,
    SLC_WARP_BALLOT,
    SLC_WARP_MATCH,
    SLC_WARP_ADD,
    SLC_WARP_MIN,
    SLC_WARP_MAX,
    SLC_WARP_OR
};

/* Meets the other threads of `mask`: `value` is this thread's, `parameter` and `width` are those
 * of shuffles. */
uint64_t slc_emulated_warp(
    enum slc_warp_call call, unsigned mask, uint64_t value, unsigned parameter, unsigned width);
void slc_emulated_block(void);

static inline void __syncthreads(void)
{
    slc_emulated_block();
}
static inline void __syncwarp(unsigned mask = 0xffffffffU)
{
    slc_emulated_warp(SLC_WARP_SYNC, mask, 0, 0, 32);
}
/* Atomic functions and plain stores have one order for all threads here, so a fence does
 * nothing. Code that uses a fence instead of a barrier is not detected. */
static inline void __threadfence(void)
{
}

template <typename T>
static inline T
slc_emulated_shuffle(enum slc_warp_call call, unsigned mask, T value, unsigned parameter, int width)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles are of 4 or 8 bytes");
    uint64_t bits = 0;
    T result;

    memcpy(&bits, &value, sizeof value);
    bits = slc_emulated_warp(call, mask, bits, parameter, (unsigned)width);
    memcpy(&result, &bits, sizeof result);
    return result;
}
template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32)
{
    return slc_emulated_shuffle(SLC_WARP_SHUFFLE, mask, value, (unsigned)source, width);
}
template <typename T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
    return slc_emulated_shuffle(SLC_WARP_SHUFFLE_UP, mask, value, delta, width);
}
template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
    return slc_emulated_shuffle(SLC_WARP_SHUFFLE_DOWN, mask, value, delta, width);
}
template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32)
{
    return slc_emulated_shuffle(SLC_WARP_SHUFFLE_XOR, mask, value, (unsigned)lanes, width);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    return (unsigned)slc_emulated_warp(SLC_WARP_BALLOT, mask, predicate != 0, 0, 32);
}
static inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, !predicate) == 0;
}
template <typename T> static inline unsigned __match_any_sync(unsigned mask, T value)
{
    uint64_t bits = 0;

    memcpy(&bits, &value, sizeof value);
    return (unsigned)slc_emulated_warp(SLC_WARP_MATCH, mask, bits, 0, 32);
}
static inline unsigned __reduce_add_sync(unsigned mask, unsigned value)
{
    return (unsigned)slc_emulated_warp(SLC_WARP_ADD, mask, value, 0, 32);
}
static inline unsigned __reduce_min_sync(unsigned mask, unsigned value)
{
    return (unsigned)slc_emulated_warp(SLC_WARP_MIN, mask, value, 0, 32);
}
static inline unsigned __reduce_max_sync(unsigned mask, unsigned value)
{
    return (unsigned)slc_emulated_warp(SLC_WARP_MAX, mask, value, 0, 32);
}
static inline unsigned __reduce_or_sync(unsigned mask, unsigned value)
{
    return (unsigned)slc_emulated_warp(SLC_WARP_OR, mask, value, 0, 32);
}

/* ---- atomic functions: they order no other accesses */

template <typename T> static inline T slc_emulated_add(T *to, T value)
{
    T before, after;

    __atomic_load(to, &before, __ATOMIC_RELAXED);
    do {
        after = before + value;
    } while (
        !__atomic_compare_exchange(to, &before, &after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return before;
}
static inline float atomicAdd(float *to, float value)
{
    return slc_emulated_add(to, value);
}
static inline double atomicAdd(double *to, double value)
{
    return slc_emulated_add(to, value);
}
static inline int atomicAdd(int *to, int value)
{
    return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}
static inline unsigned atomicAdd(unsigned *to, unsigned value)
{
    return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}
static inline unsigned long long atomicAdd(unsigned long long *to, unsigned long long value)
{
    return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}
static inline unsigned atomicOr(unsigned *to, unsigned value)
{
    return __atomic_fetch_or(to, value, __ATOMIC_RELAXED);
}
static inline unsigned atomicExch(unsigned *to, unsigned value)
{
    return __atomic_exchange_n(to, value, __ATOMIC_RELAXED);
}
static inline unsigned atomicCAS(unsigned *to, unsigned expected, unsigned value)
{
    __atomic_compare_exchange_n(to, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
static inline unsigned atomicMin(unsigned *to, unsigned value)
{
    unsigned before = __atomic_load_n(to, __ATOMIC_RELAXED);

    while (value < before && !__atomic_compare_exchange_n(to, &before, value, false,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return before;
}
template <typename T> static inline T slc_emulated_max(T *to, T value)
{
    T before = __atomic_load_n(to, __ATOMIC_RELAXED);

    while (value > before && !__atomic_compare_exchange_n(to, &before, value, false,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return before;
}
static inline unsigned atomicMax(unsigned *to, unsigned value)
{
    return slc_emulated_max(to, value);
}
static inline unsigned long long atomicMax(unsigned long long *to, unsigned long long value)
{
    return slc_emulated_max(to, value);
}

/* ---- planted faults */

/* Name of the planted fault in SLC_EMULATION_FAULT, if any (tests/unit/gpu/test_planted.py). */
extern const char *const slc_emulated_fault;

#define SLC_PLANT_OTHER(fault, statement, wrong)                                                   \
    do {                                                                                           \
        if (slc_emulated_fault == nullptr || strcmp(slc_emulated_fault, #fault) != 0) {            \
            statement;                                                                             \
        } else {                                                                                   \
            wrong;                                                                                 \
        }                                                                                          \
    } while (0)
#define SLC_PLANT(fault, statement) SLC_PLANT_OTHER(fault, statement, (void)0)

/* ---- instructions */

template <typename T> static inline T __ldg(const T *from)
{
    return *from;
}
template <typename T> static inline T __ldcs(const T *from)
{
    return *from;
}
template <typename T> static inline void __stcs(T *to, T value)
{
    *to = value;
}
static inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}
static inline int __popcll(unsigned long long bits)
{
    return __builtin_popcountll(bits);
}
static inline int __ffs(unsigned bits)
{
    return __builtin_ffs((int)bits);
}
static inline int __clz(unsigned bits)
{
    return bits == 0 ? 32 : __builtin_clz(bits);
}
static inline int __clzll(unsigned long long bits)
{
    return bits == 0 ? 64 : __builtin_clzll(bits);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)((((uint64_t)high << 32) | low) >> (shift & 31U));
}
/* Adds the products of the bytes of `a` and `b` to `sum`. */
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum)
{
    for (int shift = 0; shift < 32; shift += 8) {
        sum += (a >> shift & 0xffU) * (b >> shift & 0xffU);
    }
    return sum;
}
static inline unsigned __brev(unsigned bits)
{
    unsigned reversed = 0;

    for (int b = 0; b < 32; b++) {
        reversed |= (bits >> b & 1U) << (31 - b);
    }
    return reversed;
}

#endif
