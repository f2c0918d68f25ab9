/*
 * Measures the peak memory and compute rates of a device: the ceilings that benchmarks compare
 * kernels with.
 */
#ifndef SLC_GPU_MEASURE_H
#define SLC_GPU_MEASURE_H

#include "base/error/error.h"
#include "base/matrix.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum slc_gpu_ceiling {
    SLC_GPU_CEILING_READ,      /* a working set, front to back, repeatedly */
    SLC_GPU_CEILING_COPY,      /* from one half of it to the other: bytes read and written */
    SLC_GPU_CEILING_TO_DEVICE, /* from registered memory of the host */
    SLC_GPU_CEILING_TO_HOST,   /* to registered memory of the host */
    SLC_GPU_CEILING_ROWS,      /* rows at random positions of a working set */
    /*
     * Additions to rows of f64 at random positions. F64: each thread adds two neighbouring numbers,
     * so one instruction of a warp touches half of each sector. SECTORS: neighbouring threads add
     * neighbouring numbers, so it covers whole sectors.
     */
    SLC_GPU_CEILING_REDUCE_F64,
    SLC_GPU_CEILING_REDUCE_F64_SECTORS
};
const char *slc_gpu_ceiling_name(enum slc_gpu_ceiling ceiling); /* "read", "to-device" */

struct slc_gpu_measurement {
    enum slc_gpu_ceiling ceiling;
    uint64_t working_bytes; /* a multiple of 4096; for ROWS and REDUCE the memory of the rows */
    uint64_t moved_bytes;   /* by one run, or a little more */
    uint32_t row_bytes;     /* ROWS, REDUCE: a power of two from 16 to 512 */
    unsigned repeats;       /* timed runs, after one warm-up; the median is returned */
};

/*
 * Bytes per second. Allocates working_bytes of the device's memory, and of the host's for copies,
 * during the call. Errors: SLC_ERR_SYSTEM, SLC_ERR_MEMORY; SLC_ERR_USAGE for sizes outside the
 * limits above.
 */
enum slc_status slc_gpu_measure(unsigned ordinal,
                                const struct slc_gpu_measurement *measurement,
                                double *bytes_per_second,
                                struct slc_error *err) SLC_NODISCARD;

/* Peak compute rate, by fused multiply-adds in registers. */
#define SLC_GPU_PEAK_MOST UINT64_C(1000000000000000)
struct slc_gpu_peak {
    enum slc_value_type type;
    /* least operations per run, up to SLC_GPU_PEAK_MOST; an addition counts as one */
    uint64_t operations;
    unsigned repeats; /* timed runs, after one warm-up; the fastest counts */
};
const char *slc_gpu_peak_name(enum slc_value_type type); /* "fma-f64" */

/*
 * Operations per second. Errors: SLC_ERR_SYSTEM, SLC_ERR_MEMORY; SLC_ERR_USAGE for other numbers.
 */
enum slc_status slc_gpu_measure_peak(unsigned ordinal,
                                     const struct slc_gpu_peak *peak,
                                     double *per_second,
                                     struct slc_error *err) SLC_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
