/* Described devices: devices that only have the name of a chip, for plans on a machine without such
 * a device. The functions that compute the memory of a real device also compute the memory of a
 * described device. Described devices are never opened. */
#include "gpu/gpu.h"

#include "base/memory/checked.h"
#include "gpu/memory/memory.h"
#include "gpu/product/product_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Chips: name, memory in GB, number of multiprocessors, and KiB of shared memory per thread block.
 * Sources: memory and multiprocessors are from NVIDIA's data sheets and architecture white papers
 * (A100 Tensor Core GPU, H100 SXM5, H200 SXM, HGX B200, L40S); shared memory is from the CUDA C++
 * Programming Guide, "Technical Specifications per Compute Capability" (8.0, 9.0, 9.0, 10.0, 8.9).
 * Chips below compute capability 8.0 are omitted because sluice does not run on them. */
#define CHIPS(X)                                                                                   \
    X("a100", 40, 108, 163)                                                                        \
    X("a100-80gb", 80, 108, 163)                                                                   \
    X("h100", 80, 132, 227)                                                                        \
    X("h200", 141, 132, 227)                                                                       \
    X("b200", 180, 148, 227)                                                                       \
    X("l40s", 48, 142, 99)

struct chip {
    const char *name;
    unsigned memory_gb, multiprocessors, shared_kib;
};

#define CHIP(name, gb, count, kib) {name, gb, count, kib},
#define NAME(name, gb, count, kib) name,
static const struct chip chips[] = {CHIPS(CHIP)};
const char *const slc_gpu_chip_names[] = {CHIPS(NAME) NULL};

struct described {
    struct slc_device device; /* first member, because the engine has a pointer to it */
    const struct chip *chip;
    uint64_t budget_bytes;
};

/* Returns the memory of a chip. A GB of data sheets is 10^9 bytes. For a chip of N GB, drivers
 * report between N * 10^9 and N * 2^30 bytes. */
static uint64_t memory_bytes(const struct chip *chip)
{
    return chip->memory_gb * UINT64_C(1000000000);
}

static void info(const struct slc_device *device, struct slc_device_info *info)
{
    const struct described *described = (const struct described *)device;

    *info = (struct slc_device_info){.total_bytes = memory_bytes(described->chip),
                                     .free_bytes = described->budget_bytes,
                                     .multiprocessors = described->chip->multiprocessors,
                                     .shared_bytes = described->chip->shared_kib << 10,
                                     .described = true};
    (void)snprintf(info->name, sizeof info->name, "%s", described->chip->name);
}

static enum slc_status refuse(struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_USAGE,
                    "the device is only described by the name of a chip: plans can be made for the "
                    "device, but it cannot compute");
}

static enum slc_status open_blocks(struct slc_device *device,
                                   const struct slc_device_problem *problem,
                                   struct slc_error *err)
{
    (void)device;
    (void)problem;
    return refuse(err);
}

static enum slc_status open_product(struct slc_device *device,
                                    const struct slc_device_product *product,
                                    struct slc_error *err)
{
    (void)device;
    (void)product;
    return refuse(err);
}

static void destroy(struct slc_device *device)
{
    slc_free(device);
}

/* Operations of open devices are NULL, because a described device is never opened. */
static const struct slc_device_ops operations = {
    .name = "described",
    .info = info,
    .memory = {.memory_bytes = slc_gpu_memory_bytes,
               .host_bytes = slc_gpu_host_bytes,
               .open = open_blocks},
    .product = {.memory_bytes = slc_gpu_product_memory_bytes,
                .host_bytes = slc_gpu_product_host_bytes,
                .open = open_product},
    .destroy = destroy,
};

/* Returns the chip, or NULL with an error that lists the known names. */
static const struct chip *find_chip(const char *name, struct slc_error *err)
{
    char known[128] = "";

    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++) {
        const size_t used = strlen(known);

        if (strcmp(name, chips[i].name) == 0) {
            return &chips[i];
        }
        (void)snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", chips[i].name);
    }
    (void)slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_DEVICE_NAME,
                         "unknown device '%s': use one of %s", name, known);
    return NULL;
}

enum slc_status slc_gpu_describe(const char *name,
                                 uint64_t budget_bytes,
                                 struct slc_device **device,
                                 struct slc_error *err)
{
    const uint64_t gib = UINT64_C(1) << 30;
    const struct chip *chip = find_chip(name, err);

    *device = NULL;
    if (chip == NULL) {
        return SLC_ERR_USAGE;
    }
    if (budget_bytes > chip->memory_gb * gib) {
        return slc_fail_fields(
            err, SLC_ERR_USAGE, SLC_FIELD_DEVICE_MEMORY, SLC_FIELD_DEVICE_NAME,
            "%" PRIu64
            " MiB of device memory requested, but %s has %u GB: request less, or name another chip",
            slc_div_up_u64(budget_bytes, UINT64_C(1) << 20), name, chip->memory_gb);
    }
    struct described *made = slc_calloc(1, sizeof *made);
    SLC_TRY(slc_check_memory(made != NULL, err, "to describe a device"));
    made->device.ops = &operations;
    made->chip = chip;
    made->budget_bytes = budget_bytes != 0 ? budget_bytes : memory_bytes(chip) / 10 * 9;
    *device = &made->device;
    return SLC_OK;
}
