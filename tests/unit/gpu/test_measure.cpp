/* Ceilings of a device: every kernel stays within its memory for any sizes, and reports a rate. */
extern "C" {
#include "gpu/measure.h"
#include "slc_test.h"
}
#include "cuda_runtime.h"

#include <cstring>

static const struct slc_emulation emulation = {1, (size_t)8 << 20, 100 << 10, 2, 1};

static void every_ceiling(void)
{
    static const uint32_t row_bytes[] = {16, 64, 512};
    /* Under ThreadSanitizer, only the last sizes, because threads do the same for all. */
    const uint64_t fewest = slc_test_threads_only() ? 9 : 1;

    slc_emulation_set(&emulation);
    for (int c = SLC_GPU_CEILING_READ; c <= SLC_GPU_CEILING_REDUCE_F64_SECTORS; c++) {
        for (uint32_t row : row_bytes) {
            for (uint64_t pages = fewest; pages <= 9; pages += 8) {
                const struct slc_gpu_measurement measurement = {
                    static_cast<enum slc_gpu_ceiling>(c), pages * 4096, 40000, row, 3};
                struct slc_error err = SLC_ERROR_INIT;
                double rate = 0;

                SLC_ASSERT_OK(slc_gpu_measure(0, &measurement, &rate, &err), &err);
                CU_ASSERT(rate > 0);
            }
        }
    }
    slc_emulation_reset(); /* ends the program if anything leaks */
}

static void peaks(void)
{
    static const enum slc_value_type types[] = {SLC_F64, SLC_F32};

    slc_emulation_set(&emulation);
    for (const enum slc_value_type type : types) {
        const struct slc_gpu_peak peak = {type, 1, 2};
        struct slc_error err = SLC_ERROR_INIT;
        double rate = 0;

        SLC_ASSERT_OK(slc_gpu_measure_peak(0, &peak, &rate, &err), &err);
        CU_ASSERT(rate > 0);
    }
    CU_ASSERT_STRING_EQUAL(slc_gpu_peak_name(SLC_F64), "fma-f64");
    CU_ASSERT_STRING_EQUAL(slc_gpu_peak_name(SLC_F32), "fma-f32");
    slc_emulation_reset();
}

static void peaks_refused(void)
{
    static const struct slc_gpu_peak wrong[] = {
        {SLC_F64, 0, 1}, {SLC_F64, 1, 0}, {SLC_F64, SLC_GPU_PEAK_MOST + 1, 1}};
    const struct slc_gpu_peak right = {SLC_F64, 1, 1};
    double rate = -1;

    slc_emulation_set(&emulation);
    for (const auto &peak : wrong) {
        CU_ASSERT_EQUAL(slc_gpu_measure_peak(0, &peak, &rate, NULL), SLC_ERR_USAGE);
    }
    CU_ASSERT_EQUAL(slc_gpu_measure_peak(100, &right, &rate, NULL), SLC_ERR_SYSTEM);
    CU_ASSERT_EQUAL(rate, -1);
    slc_emulation_reset();
}

static void refused(void)
{
    static const struct slc_gpu_measurement wrong[] = {
        {SLC_GPU_CEILING_READ, 0, 4096, 16, 1},
        {SLC_GPU_CEILING_READ, 4095, 4096, 16, 1},
        {SLC_GPU_CEILING_READ, 4096, 0, 16, 1},
        {SLC_GPU_CEILING_READ, 4096, 4096, 16, 0},
        {SLC_GPU_CEILING_ROWS, 4096, 4096, 8, 1},
        {SLC_GPU_CEILING_ROWS, 4096, 4096, 48, 1},
        {SLC_GPU_CEILING_ROWS, 4096, 4096, 1024, 1},
        {SLC_GPU_CEILING_ROWS, UINT64_C(1) << 37, 4096, 16, 1},
    };
    /* More memory than any device has. */
    const struct slc_gpu_measurement large = {SLC_GPU_CEILING_COPY, UINT64_C(1) << 50, 4096, 16, 1};
    struct slc_error err = SLC_ERROR_INIT;
    double rate;

    slc_emulation_set(&emulation);
    for (const auto &measurement : wrong) {
        CU_ASSERT_EQUAL(slc_gpu_measure(0, &measurement, &rate, NULL), SLC_ERR_USAGE);
    }
    CU_ASSERT_EQUAL(slc_gpu_measure(0, &large, &rate, &err), SLC_ERR_MEMORY);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "cudaMalloc: "));
    CU_ASSERT_EQUAL(slc_gpu_measure(100, &large, &rate, NULL), SLC_ERR_SYSTEM);
    slc_emulation_reset();
}

SLC_SUITE(measure)
{
    static const struct slc_test tests[] = {
        {"every ceiling of a device is measured", every_ceiling},
        {"measurements that cannot be are refused", refused},
        {"peaks of a device are measured", peaks},
        {"peaks that cannot be are refused", peaks_refused},
    };

    return slc_test_main("gpu measure", tests, SLC_COUNT(tests), argc, argv);
}
