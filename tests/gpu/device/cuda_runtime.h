/* For running the tests of gpu/ on a real device: CUDA's own header, and no-op versions of the
 * functions that control the emulation (tests/gpu/emulation/cuda_runtime.h). SLC_EMULATED excludes
 * cases that need an emulated device. */
#ifndef SLC_DEVICE_CUDA_RUNTIME_H
#define SLC_DEVICE_CUDA_RUNTIME_H

#include_next <cuda_runtime.h>

#include <cstddef>

struct slc_emulation {
    int devices;
    size_t memory_bytes, shared_bytes;
    int multiprocessors;
    unsigned seed;
};

struct slc_emulation_counts {
    unsigned long long launches, bytes_to_device, bytes_to_host, bytes_between;
    size_t memory_peak;
};

static inline void slc_emulation_set(const struct slc_emulation *)
{
}

static inline void slc_emulation_reset(void)
{
}

static inline void slc_emulation_refuse(unsigned long long)
{
}

static inline unsigned long long slc_emulation_refusable(void)
{
    return 0;
}

static inline void slc_emulation_counted(struct slc_emulation_counts *counts)
{
    *counts = slc_emulation_counts();
}

#endif
