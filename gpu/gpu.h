/* Creates and describes CUDA devices. base/device.h has the operations of a device. */
#ifndef SLC_GPU_GPU_H
#define SLC_GPU_GPU_H

#include "base/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct slc_gpu_options {
    unsigned ordinal; /* number of the device in the machine, from 0 */
    /* Device memory that may be used. Must not exceed the free memory; 0 means nine tenths of the
     * free memory. */
    uint64_t memory_bytes;
};

/* Returns the version of the CUDA toolkit that this build used, such as 12040 for 12.4, or 0
 * without CUDA. */
int slc_gpu_toolkit(void);

/* Sets *count to the number of devices. If there are none, returns SLC_ERR_SYSTEM with the reason:
 * built without CUDA, no driver, no device, or the driver is too old. */
enum slc_status slc_gpu_count(unsigned *count, struct slc_error *err) SLC_NODISCARD;

/* Creates a device. Ownership: release with the device's `destroy`. Errors: SLC_ERR_SYSTEM as in
 * slc_gpu_count; SLC_ERR_USAGE for an ordinal that does not exist, or if memory_bytes exceeds the
 * free memory; SLC_ERR_UNSUPPORTED for a device older than this build supports; SLC_ERR_MEMORY. */
enum slc_status slc_gpu_create(const struct slc_gpu_options *options,
                               struct slc_device **device,
                               struct slc_error *err) SLC_NODISCARD;

/* Releases the memory that CUDA keeps in this process for a device that was created. These few
 * hundred MiB would otherwise reduce the memory of later plans. Needs: all slc_device objects of
 * the device are destroyed. */
void slc_gpu_release(unsigned ordinal);

/* Names of the chips that slc_gpu_describe accepts. NULL ends the list. */
extern const char *const slc_gpu_chip_names[];

/* Describes a device for plans, on any machine. The described device has the memory,
 * multiprocessors and shared memory of the chip `name`. Its memory_bytes and host_bytes, for
 * MTTKRPs and for products, return the same numbers as on a real device, but the described device
 * cannot be opened. `budget_bytes` is the device memory that may be used; 0 means nine tenths of
 * the chip's memory. Ownership: release with the device's `destroy`. Errors: SLC_ERR_USAGE for an
 * unknown name (the message lists the known names), or if budget_bytes exceeds the chip's memory;
 * SLC_ERR_MEMORY. */
enum slc_status slc_gpu_describe(const char *name,
                                 uint64_t budget_bytes,
                                 struct slc_device **device,
                                 struct slc_error *err) SLC_NODISCARD;

/* Returns slc_gpu_create, slc_gpu_describe and the other functions above as a table. */
const struct slc_device_maker *slc_gpu_maker(void);

#ifdef __cplusplus
}
#endif

#endif
