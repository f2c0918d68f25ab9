/* A store whose blocks go to a fake device (fake_device.h): opened, planned and streamed as by the
 * engine's callers. */
#ifndef SLC_TEST_DEVICE_RUN_H
#define SLC_TEST_DEVICE_RUN_H

#include "cp_fixture.h"
#include "fake_device.h"

#include "engine/executor/gpu_executor.h"

struct device_run {
    struct slc_store store;
    struct slc_layouts layouts;
    struct slc_plan plan;
    struct slc_stream *stream;
    struct slc_device *device;
    bool open;
};

/* Integers 1 to 9, which need no memory besides their blocks, and tiles small enough for many. */
void device_run_tensor(struct fixture_tensor *tensor, uint64_t draws);

/* The store and a device with this much memory; every copy is delayed by at most `late_us`. */
void device_run_store(struct device_run *run,
                      const char *path,
                      const struct slc_files *files,
                      uint64_t device_bytes,
                      unsigned late_us);
/* Plans for the device, and opens stream and device. */
enum slc_status device_run_start(struct device_run *run,
                                 const struct slc_plan_request *request,
                                 struct slc_error *err);
void device_run_stop(struct device_run *run);
void device_run_close(struct device_run *run);

/* The smallest sufficient memory of a device, and the memory in which all blocks are resident if
 * their values do not expand. */
void device_run_limits(const char *path,
                       const struct slc_plan_request *request,
                       uint64_t *least,
                       uint64_t *all);

/* Progress callback: sets the int `context` after some blocks, as a signal would. */
void device_run_raise_stop(void *context, uint64_t done, uint64_t blocks, uint64_t bytes);

#endif
