/* Arithmetic that replaces subnormal numbers by 0, which processors otherwise compute many times
 * more slowly than other numbers. The setting belongs to the calling thread. */
#ifndef SLC_BASE_SUBNORMAL_H
#define SLC_BASE_SUBNORMAL_H

#include <stdint.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

/* Starts to flush subnormal numbers. Returns the settings before, for slc_subnormals_restore. Does
 * nothing on unknown processors. */
static inline uint64_t slc_subnormals_flush(void)
{
    uint64_t before = 0;

#if defined(__SSE2__)
    before = _mm_getcsr();
    _mm_setcsr((unsigned)before | 0x8040U); /* results, operands */
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | UINT64_C(1) << 24));
#endif
    return before;
}

static inline void slc_subnormals_restore(uint64_t before)
{
#if defined(__SSE2__)
    /* Flags of exceptions that were raised after slc_subnormals_flush stay set. */
    _mm_setcsr(((unsigned)before & ~0x3FU) | (_mm_getcsr() & 0x3FU));
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
#else
    (void)before;
#endif
}

#endif
