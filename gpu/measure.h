/* Measures the peak memory and compute rates of a device, which are the ceilings that benchmarks
 * compare kernels with. */
#ifndef SLC_GPU_MEASURE_H
#define SLC_GPU_MEASURE_H

#include "base/error/error.h"
#include "base/matrix.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum slc_gpu_ceiling {
    SLC_GPU_CEILING_READ, /* reads a working set repeatedly from front to back */
    /* copies one half of the working set to the other; counts bytes read and written */
    SLC_GPU_CEILING_COPY,
    SLC_GPU_CEILING_TO_DEVICE, /* copies from registered host memory */
    SLC_GPU_CEILING_TO_HOST,   /* copies to registered host memory */
    SLC_GPU_CEILING_ROWS,      /* reads rows at random positions of a working set */
    /* Adds to rows of f64 at random positions. REDUCE_F64: each thread adds two neighbouring
     * numbers, so an instruction of a warp accesses half of each sector. REDUCE_F64_SECTORS:
     * neighbouring threads add neighbouring numbers, so an instruction accesses whole sectors. */
    SLC_GPU_CEILING_REDUCE_F64,
    SLC_GPU_CEILING_REDUCE_F64_SECTORS
};
const char *slc_gpu_ceiling_name(enum slc_gpu_ceiling ceiling); /* "read", "to-device" */

struct slc_gpu_measurement {
    enum slc_gpu_ceiling ceiling;
    uint64_t working_bytes; /* a multiple of 4096; for ROWS and REDUCE, size of all rows */
    /* minimum number of bytes that a run moves; a run ends only after a whole sweep over the
     * working set or, with ROWS and REDUCE, after an equal number of rows per thread */
    uint64_t moved_bytes;
    uint32_t row_bytes; /* used with ROWS and REDUCE: a power of two from 16 to 512 */
    /* number of timed runs, after one warm-up; the median rate is returned */
    unsigned repeats;
};

/* Measures a ceiling in bytes per second. During the call, working_bytes of device memory are
 * allocated, and for TO_DEVICE and TO_HOST the same amount of host memory. Errors: SLC_ERR_SYSTEM;
 * SLC_ERR_MEMORY; SLC_ERR_USAGE for sizes outside the limits above. */
enum slc_status slc_gpu_measure(unsigned ordinal,
                                const struct slc_gpu_measurement *measurement,
                                double *bytes_per_second,
                                struct slc_error *err) SLC_NODISCARD;

/* Largest number of operations per run. The peak compute rate is measured with fused multiply-adds
 * in registers. */
#define SLC_GPU_PEAK_MOST UINT64_C(1000000000000000)
struct slc_gpu_peak {
    enum slc_value_type type;
    /* minimum number of operations per run, from 1 to SLC_GPU_PEAK_MOST. A fused multiply-add
     * counts as two operations. */
    uint64_t operations;
    unsigned repeats; /* number of timed runs, after one warm-up; the highest rate is returned */
};
const char *slc_gpu_peak_name(enum slc_value_type type); /* "fma-f64" */

/* Measures the peak compute rate in operations per second. Errors: SLC_ERR_SYSTEM; SLC_ERR_MEMORY;
 * SLC_ERR_USAGE for numbers outside the limits above. */
enum slc_status slc_gpu_measure_peak(unsigned ordinal,
                                     const struct slc_gpu_peak *peak,
                                     double *per_second,
                                     struct slc_error *err) SLC_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
