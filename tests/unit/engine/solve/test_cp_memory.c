/* The budget holds: a decomposition planned with the smallest budget never exceeds it in resident
 * size, including libraries and BLAS. One test per process, so that the peak is this test's own. */
#include "base/memory/memory.h"
#include "cp_fixture.h"
#include "slc_test.h"

#include <inttypes.h>
#include <stdio.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

/* Resets the peak to the current resident size; returns false if the system does not allow it. */
static bool reset_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    bool done;

    if (file == NULL) {
        return false;
    }
    done = fputs("5", file) >= 0;
    return fclose(file) == 0 && done;
}

/* Decomposes with the smallest budget plus `extra` bytes and checks the peak. */
static void run_within(const char *path, struct slc_plan_request request, uint64_t extra)
{
    struct slc_cp_options options = fixture_options(request.rank, 2);
    struct fixture_run run;
    struct slc_cp_result result;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t peak;

    options.deterministic = request.deterministic;
    if (!reset_peak()) {
        slc_test_skip("the peak of this process cannot be reset");
        return;
    }
    if (fixture_open_beyond(&run, path, &request, extra, &err) == SLC_ERR_UNSUPPORTED) {
        fixture_close(&run);
        return;
    }
    SLC_ASSERT_OK(err.status, &err);
    SLC_ASSERT_OK(
        slc_cp_run(&run.store, run.stream, run.backend, &run.plan, &options, &result, &err), &err);
    peak = slc_memory_peak();
    printf("# rank %" PRIu32 ", %s, %u threads: peak %" PRIu64 " KiB of %" PRIu64
           " KiB, process %" PRIu64 " KiB\n",
           request.rank, slc_io_name(request.io), run.plan.threads, peak >> 10,
           request.memory_bytes >> 10, run.plan.process_bytes >> 10);
    CU_ASSERT_TRUE(peak <= request.memory_bytes);
    slc_cp_result_destroy(&result);
    fixture_close(&run);
}

static void the_budget_holds(void)
{
    static const uint64_t dims[3] = {30000, 4000, 500};
    static const enum slc_io_kind kinds[] = {SLC_IO_PREAD, SLC_IO_MMAP, SLC_IO_URING};
    struct fixture_tensor tensor;
    char path[512];

#ifdef SANITIZED
    slc_test_skip("sanitizers have memory of their own");
    return;
#endif
    fixture_random(&tensor, 3, dims, 700000, slc_test_seed());
    fixture_store(&tensor, slc_test_folder(), "budget", SLC_CODEC_BLCO, UINT64_C(2) << 20, path);
    fixture_destroy(&tensor);
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        for (unsigned variant = 0; variant < 4; variant++) {
            struct slc_plan_request request = fixture_request(variant % 2 == 0 ? 16 : 100);

            request.io = kinds[k];
            request.threads = 1 + variant;
            request.deterministic = variant >= 2;
            run_within(path, request, variant == 3 ? UINT64_C(6) << 20 : 0);
        }
    }
}

SLC_SUITE(cp_memory)
{
    static const struct slc_test tests[] = {
        {"the smallest budget holds", the_budget_holds},
    };

    return slc_test_main("engine: cp_memory", tests, SLC_COUNT(tests), argc, argv);
}
