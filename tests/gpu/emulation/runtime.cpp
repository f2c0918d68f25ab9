/* The runtime API except streams and events: devices, memory with exact bounds, copies, and
 * kernels, which the scheduler runs. */
#include "cuda_runtime.h"

#include "scheduler.h"
#include "streams.h"
#include "written.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sys/mman.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

/* Initial contents of device memory. */
static const unsigned char memory_pattern = 0x5a;
/* Limit of dynamic shared memory without cudaFuncSetAttribute. */
static const size_t plain_shared_bytes = 48 << 10;

struct allocation {
    size_t bytes;
    int device;
};

static slc_emulation settings = {1, (size_t)1 << 30, 227 << 10, 4, 1};
static slc_emulation_counts counts;
static std::map<unsigned char *, allocation> device_memory;
static std::map<unsigned char *, size_t> registered;
static std::map<const void *, size_t> shared_allowed;
static std::map<unsigned char *, size_t> gaps;
static std::vector<size_t> used_bytes(64); /* bytes of memory in use on each device */
static unsigned long long refused_call, calls;
static thread_local int current_device;
const char *const slc_emulated_fault = getenv("SLC_EMULATION_FAULT");
static thread_local cudaError_t last_error;
/* With the fault "context", the runtime needs this much host memory for each device in use, so much
 * that a plan must account for it. */
static const size_t context_bytes = (size_t)64 << 20;
static std::map<int, void *> contexts;

cudaError_t slc_emulation_remember(cudaError_t error)
{
    if (error != cudaSuccess) {
        last_error = error;
    }
    return error;
}

static bool has_fault(const char *name)
{
    return slc_emulated_fault != nullptr && strcmp(slc_emulated_fault, name) == 0;
}

bool slc_emulation_refused(cudaError_t error)
{
    calls++;
    return calls == refused_call && slc_emulation_remember(error) != cudaSuccess;
}

int slc_emulation_device(void)
{
    return current_device;
}

/* ---- device memory, inaccessible to the host */

void slc_device_memory_open(bool open)
{
#if defined(__SANITIZE_ADDRESS__)
    for (const auto &piece : device_memory) {
        if (open) {
            __asan_unpoison_memory_region(piece.first, piece.second.bytes);
        } else {
            __asan_poison_memory_region(piece.first, piece.second.bytes);
        }
    }
    for (const auto &gap : gaps) {
        __asan_poison_memory_region(gap.first, gap.second);
    }
#else
    (void)open;
#endif
}

void slc_memory_gap(const void *memory, size_t bytes)
{
    slc_emulation_guard lock;

    gaps[static_cast<unsigned char *>(const_cast<void *>(memory))] = bytes;
}

static bool holds(const std::map<unsigned char *, size_t> &pieces, const void *memory, size_t bytes)
{
    unsigned char *first = static_cast<unsigned char *>(const_cast<void *>(memory));
    auto after = pieces.upper_bound(first);

    if (after == pieces.begin()) {
        return false;
    }
    --after;
    return first + bytes <= after->first + after->second;
}

static bool on_device(const void *memory, size_t bytes)
{
    unsigned char *first = static_cast<unsigned char *>(const_cast<void *>(memory));
    auto after = device_memory.upper_bound(first);

    if (after == device_memory.begin()) {
        return false;
    }
    --after;
    return first + bytes <= after->first + after->second.bytes;
}

/* ---- devices */

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "cudaSuccess";
    case cudaErrorInvalidValue:
        return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
        return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidDevice:
        return "cudaErrorInvalidDevice";
    case cudaErrorNoDevice:
        return "cudaErrorNoDevice";
    case cudaErrorNotReady:
        return "cudaErrorNotReady";
    case cudaErrorLaunchFailure:
        return "cudaErrorLaunchFailure";
    default:
        return "another error";
    }
}

const char *cudaGetErrorString(cudaError_t error)
{
    return cudaGetErrorName(error);
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = last_error;

    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    *count = settings.devices;
    return settings.devices > 0 ? cudaSuccess : slc_emulation_remember(cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    if (device < 0 || device >= settings.devices) {
        return slc_emulation_remember(cudaErrorInvalidDevice);
    }
    *properties = cudaDeviceProp{};
    snprintf(properties->name, sizeof properties->name, "emulated device %d", device);
    properties->totalGlobalMem = settings.memory_bytes;
    properties->sharedMemPerBlockOptin = settings.shared_bytes;
    properties->multiProcessorCount = settings.multiprocessors;
    properties->major = has_fault("old") ? 7 : 9;
    properties->l2CacheSize = 4 << 20;
    properties->maxThreadsPerMultiProcessor = 2048;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    if (device < 0 || device >= settings.devices) {
        return slc_emulation_remember(cudaErrorInvalidDevice);
    }
    current_device = device;
    /* Mapped, unlike malloc, so that the system gets it back at once when it is released. */
    if (has_fault("context") && contexts.count(device) == 0) {
        contexts[device] = mmap(nullptr, context_bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceReset(void)
{
    slc_emulation_guard lock;

    for (const auto &piece : device_memory) {
        if (piece.second.device == current_device) {
            slc_emulation_fail("cudaDeviceReset while memory of the device is in use");
        }
    }
    if (contexts.count(current_device) != 0) {
        (void)munmap(contexts[current_device], context_bytes);
        contexts.erase(current_device);
    }
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current_device;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    *total_bytes = settings.memory_bytes;
    *free_bytes = settings.memory_bytes - used_bytes[(size_t)current_device];
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    *can = device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    (void)flags;
    return peer == current_device ? slc_emulation_remember(cudaErrorInvalidDevice) : cudaSuccess;
}

/* ---- memory */

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    slc_emulation_guard lock;
    size_t *used = &used_bytes[(size_t)current_device];
    size_t all = 0;
    unsigned char *data;

    if (slc_emulation_refused(cudaErrorMemoryAllocation)) {
        return cudaErrorMemoryAllocation;
    }
    if (settings.devices == 0) {
        return slc_emulation_remember(cudaErrorNoDevice);
    }
    /* "memory": another process has allocated memory since it was counted. */
    if (bytes > settings.memory_bytes - *used || has_fault("memory")) {
        return slc_emulation_remember(cudaErrorMemoryAllocation);
    }
    data = slc_written_allocate(bytes);
    if (data == nullptr) {
        return slc_emulation_remember(cudaErrorMemoryAllocation);
    }
    memset(data, memory_pattern, bytes);
    *used += bytes;
    for (size_t on_one : used_bytes) {
        all += on_one;
    }
    counts.memory_peak = all > counts.memory_peak ? all : counts.memory_peak;
    device_memory[data] = allocation{bytes, current_device};
#if defined(__SANITIZE_ADDRESS__)
    __asan_poison_memory_region(data, (bytes + 255) / 256 * 256);
#endif
    *memory = data;
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    slc_emulation_guard lock;
    auto found = device_memory.find(static_cast<unsigned char *>(memory));

    if (memory == nullptr) {
        return cudaSuccess;
    }
    if (found == device_memory.end()) {
        slc_emulation_fail("cudaFree of memory that is not the device's");
    }
    /* As on a device, all earlier work ends first. */
    slc_streams_drain(found->second.device, "cudaFree");
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(memory, (found->second.bytes + 255) / 256 * 256);
#endif
    gaps.erase(gaps.lower_bound(found->first),
               gaps.lower_bound(found->first + found->second.bytes));
    used_bytes[(size_t)found->second.device] -= found->second.bytes;
    slc_written_release(found->first, found->second.bytes);
    device_memory.erase(found);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorMemoryAllocation)) {
        return cudaErrorMemoryAllocation;
    }
    (void)flags;
    if (registered.count(static_cast<unsigned char *>(memory)) != 0) {
        return slc_emulation_remember(cudaErrorHostMemoryAlreadyRegistered);
    }
    registered[static_cast<unsigned char *>(memory)] = bytes;
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory)
{
    slc_emulation_guard lock;

    return registered.erase(static_cast<unsigned char *>(memory)) == 1
               ? cudaSuccess
               : slc_emulation_remember(cudaErrorHostMemoryNotRegistered);
}

/* `outside`: host memory, which must be registered. */
static void check_range(const void *memory, size_t bytes, bool outside, const char *what)
{
    if (outside ? !holds(registered, memory, bytes) : !on_device(memory, bytes)) {
        slc_emulation_fail("%s of %zu bytes: %p is not all %s", what, bytes, memory,
                           outside ? "in registered memory of the host" : "in memory of a device");
    }
}

cudaError_t
cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    check_range(to, bytes, kind == cudaMemcpyDeviceToHost, "cudaMemcpyAsync to");
    check_range(from, bytes, kind == cudaMemcpyHostToDevice, "cudaMemcpyAsync from");
    slc_stream_put(stream, [=] {
        slc_written_check(from, bytes);
        slc_written_mark(to, bytes);
        memcpy(to, from, bytes);
        (kind == cudaMemcpyHostToDevice   ? counts.bytes_to_device
         : kind == cudaMemcpyDeviceToHost ? counts.bytes_to_host
                                          : counts.bytes_between) += bytes;
    });
    return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(
    void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream)
{
    (void)to_device;
    (void)from_device;
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    check_range(to, bytes, false, "cudaMemsetAsync");
    slc_stream_put(stream, [=] {
        slc_written_mark(to, bytes);
        memset(to, value, bytes);
    });
    return cudaSuccess;
}

/* ---- kernels */

cudaError_t slc_emulated_func_attribute(const void *kernel, cudaFuncAttribute attribute, int value)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout && value >= -1 &&
        value <= 100) {
        return cudaSuccess; /* the carveout is only a hint, in percent */
    }
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        (size_t)value > settings.shared_bytes) {
        return slc_emulation_remember(cudaErrorInvalidValue);
    }
    shared_allowed[kernel] = (size_t)value;
    return cudaSuccess;
}

cudaError_t slc_emulated_launch(const void *kernel,
                                dim3 grid,
                                dim3 block,
                                size_t shared_bytes,
                                cudaStream_t stream,
                                const slc_kernel_call &call)
{
    std::shared_ptr<void> closure(call.closure, call.destroy);
    slc_emulation_guard lock;
    auto allowed = shared_allowed.find(kernel);

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    if (shared_bytes > (allowed == shared_allowed.end() ? plain_shared_bytes : allowed->second) ||
        grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535 ||
        block.x * block.y * block.z == 0 || block.x * block.y * block.z > 1024) {
        return slc_emulation_remember(cudaErrorInvalidValue);
    }
    counts.launches++;
    slc_stream_put(stream, [=] {
        slc_grid_run(
            grid, block, shared_bytes, [=] { call.run(closure.get()); }, slc_emulation_draw);
    });
    return cudaSuccess;
}

/* ---- control of the emulation by tests */

void slc_emulation_set(const slc_emulation *emulation)
{
    slc_emulation_guard lock;

    settings = *emulation;
    slc_emulation_sow(settings.seed);
    counts = slc_emulation_counts{};
}

void slc_emulation_reset(void)
{
    slc_emulation_guard lock;

    if (slc_streams_left() != 0 || slc_events_left() != 0 || !device_memory.empty() ||
        !registered.empty()) {
        slc_emulation_fail("left: %zu streams, %zu events, %zu pieces of device memory, %zu "
                           "registered",
                           slc_streams_left(), slc_events_left(), device_memory.size(),
                           registered.size());
    }
    shared_allowed.clear();
    last_error = cudaSuccess;
    refused_call = 0;
    counts = slc_emulation_counts{};
}

void slc_emulation_refuse(unsigned long long k)
{
    slc_emulation_guard lock;

    refused_call = k;
    calls = 0;
}

unsigned long long slc_emulation_refusable(void)
{
    slc_emulation_guard lock;

    return calls;
}

void slc_emulation_counted(slc_emulation_counts *result)
{
    slc_emulation_guard lock;

    *result = counts;
}
