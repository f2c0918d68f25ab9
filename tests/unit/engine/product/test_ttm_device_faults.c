/* TTM on CPU and device together with faults: the first fault is reported, waiting threads are
 * woken, the device is closed, and an earlier result is unchanged. */
#include "faulty_files.h"
#include "product_device.h"
#include "slc_test.h"
#include "ttm_fixture.h"

#include "base/error/fault.h"

#include <errno.h>

static const uint64_t dims[3] = {200, 30, 150};

static const struct slc_hybrid_wish wishes[] = {{SLC_HYBRID_NONE, 0},
                                                {SLC_HYBRID_STATIC, 0.5},
                                                {SLC_HYBRID_ADAPTIVE, 0},
                                                {SLC_HYBRID_QUEUE, 0}};

/* A problem, a device, and a result of the CPU in the problem's folder. */
struct scene {
    struct ttm_problem problem;
    struct slc_device *device;
    uint64_t hash; /* hash of that result, which was made with a different matrix */
    double value;  /* the element in which the matrices differ */
};

static enum slc_status multiply(struct scene *scene,
                                struct ttm_shape shape,
                                const struct slc_files *files,
                                const volatile int *stop,
                                struct slc_error *err)
{
    struct slc_ttm_report report;
    struct ttm_run run;
    enum slc_status status = ttm_run_open(&run, &scene->problem, &shape, err);

    if (status == SLC_OK) {
        run.options.files = files != NULL ? files : run.options.files;
        run.options.stop = stop;
        status = ttm_run_multiply(&run, &report, err);
    }
    ttm_run_close(&run);
    return status;
}

static struct ttm_shape shape_of(const struct scene *scene, const struct slc_hybrid_wish *wish)
{
    return (struct ttm_shape){
        .threads = 2, .least = true, .device = scene->device, .hybrid = *wish, .streams = 3};
}

/* Makes the earlier result on the CPU. */
static void multiply_earlier(struct scene *scene)
{
    struct slc_error err = SLC_ERROR_INIT;

    slc_matrix_set(&scene->problem.matrix, 3, 3, scene->value);
    SLC_ASSERT_OK(multiply(scene, (struct ttm_shape){.threads = 2}, NULL, NULL, &err), &err);
    slc_matrix_set(&scene->problem.matrix, 3, 3, 77.0);
}

static void open_scene(struct scene *scene)
{
    struct ttm_result result;

    ttm_problem_create(&scene->problem, 3, dims, 1, 20000, 700, 20, SLC_F64, true);
    scene->device = product_device_create(1 << 30, 10);
    scene->value = slc_matrix_get(&scene->problem.matrix, 3, 3);
    multiply_earlier(scene);
    CU_ASSERT_FATAL(ttm_result_read(scene->problem.folder, &result));
    scene->hash = result.hash;
    ttm_result_destroy(&result);
}

/* Whether the folder holds exactly the earlier result, or otherwise exactly the new one. */
static bool has_earlier_result(const struct scene *scene)
{
    struct ttm_result result;
    bool same = ttm_result_read(scene->problem.folder, &result);

    CU_ASSERT(same && ttm_folder_names(scene->problem.folder) == 2);
    same = same && result.hash == scene->hash;
    ttm_result_destroy(&result);
    return same;
}

static void close_scene(struct scene *scene)
{
    const struct product_device_counts *counts = product_device_counts(scene->device);

    CU_ASSERT_EQUAL(counts->wrongs, 0);
    CU_ASSERT_EQUAL(counts->opened, counts->closed);
    scene->device->ops->destroy(scene->device);
    ttm_problem_destroy(&scene->problem);
}

static void the_device_refuses(void)
{
    struct scene scene;

    open_scene(&scene);
    for (size_t w = 0; w < SLC_COUNT(wishes); w++) {
        for (unsigned k = 1; k < 14; k += k < 4 ? 1 : 5) {
            struct slc_error err = SLC_ERROR_INIT;
            /* With a split that depends on time, the device may be called less often. */
            const bool certain = w < 2 || k < 4;
            enum slc_status status;

            product_device_refuse(scene.device, k);
            status = multiply(&scene, shape_of(&scene, &wishes[w]), NULL, NULL, &err);
            if (status == SLC_OK && !certain) {
                CU_ASSERT(!has_earlier_result(&scene));
                product_device_refuse(scene.device, 0);
                multiply_earlier(&scene);
                continue;
            }
            SLC_ASSERT_FAILS(status, SLC_ERR_SYSTEM, &err, "refused");
            CU_ASSERT(has_earlier_result(&scene));
        }
    }
    product_device_refuse(scene.device, 0);
    close_scene(&scene);
}

static void a_tile_is_damaged(void)
{
    struct scene scene;

    open_scene(&scene);
    for (size_t w = 0; w < SLC_COUNT(wishes); w++) {
        struct slc_error err = SLC_ERROR_INIT;
        /* If the device has a static half of the tiles, it certainly gets this tile. With splits
         * that depend on time, it may not get it. */
        const bool certain = w < 2;
        enum slc_status status;

        product_device_damage(scene.device, 13);
        status = multiply(&scene, shape_of(&scene, &wishes[w]), NULL, NULL, &err);
        CU_ASSERT(status == SLC_ERR_DAMAGED || (status == SLC_OK && !certain));
        if (status == SLC_ERR_DAMAGED) {
            CU_ASSERT(err.block != SLC_NOWHERE);
            CU_ASSERT(has_earlier_result(&scene));
        } else {
            CU_ASSERT(!has_earlier_result(&scene));
            break;
        }
    }
    close_scene(&scene);
}

static void the_disk_is_full(void)
{
    struct slc_faulty faulty;
    struct scene scene;

    open_scene(&scene);
    slc_faulty_init(&faulty);
    for (size_t w = 0; w < SLC_COUNT(wishes); w++) {
        for (uint64_t room = 0; room < 2000000; room += 900000) {
            struct slc_error err = SLC_ERROR_INIT;

            slc_faulty_limit_room(&faulty, room);
            SLC_ASSERT_FAILS(
                multiply(&scene, shape_of(&scene, &wishes[w]), &faulty.table, NULL, &err),
                SLC_ERR_NOSPACE, &err, "writing");
            CU_ASSERT(has_earlier_result(&scene));
        }
    }
    close_scene(&scene);
}

static void a_signal_stops(void)
{
    static const volatile int stop = 2;
    struct scene scene;

    open_scene(&scene);
    for (size_t w = 0; w < SLC_COUNT(wishes); w++) {
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_FAILS(multiply(&scene, shape_of(&scene, &wishes[w]), NULL, &stop, &err),
                         SLC_ERR_INTERRUPTED, &err, "stopped");
        CU_ASSERT(has_earlier_result(&scene));
    }
    close_scene(&scene);
}

static void memory_and_threads_fail(void)
{
    struct scene scene;

    open_scene(&scene);
    for (enum slc_fault_kind kind = SLC_FAULT_ALLOCATION; kind < SLC_FAULT_KINDS; kind++) {
        const struct ttm_shape shape = shape_of(&scene, &wishes[1]);
        struct slc_error opened = SLC_ERROR_INIT;
        enum slc_status status = SLC_ERR_MEMORY;
        struct ttm_run run;

        SLC_ASSERT_OK(ttm_run_open(&run, &scene.problem, &shape, &opened), &opened);
        for (uint64_t k = 1; status != SLC_OK && k < 200; k++) {
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_ttm_report report;

            slc_fault_arm(kind, k);
            status = ttm_run_multiply(&run, &report, &err);
            slc_fault_arm(kind, 0);
            CU_ASSERT_EQUAL(err.status, status);
        }
        SLC_ASSERT_OK(status, NULL);
        CU_ASSERT(!has_earlier_result(&scene));
        ttm_run_close(&run);
    }
    close_scene(&scene);
}

static const struct slc_test tests[] = {
    {"the device refuses", the_device_refuses},
    {"a tile is damaged", a_tile_is_damaged},
    {"the disk is full", the_disk_is_full},
    {"a signal stops", a_signal_stops},
    {"memory and threads fail", memory_and_threads_fail},
};

SLC_SUITE(ttm_device_faults)
{
    return slc_test_main("ttm_device_faults", tests, SLC_COUNT(tests), argc, argv);
}
