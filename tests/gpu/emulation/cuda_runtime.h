/* Replaces the header of the CUDA toolkit when gpu/ is compiled for tests: the part of the runtime
 * API that gpu/ uses, kernels that run as fibers on one processor, and streams whose work runs late
 * and in an order constrained only by events.
 *
 * The emulation is stricter than a device, so that faults show without one:
 * - Threads of a warp that meet in a collective call must make the same call with the same mask,
 *   which has all of them and no thread that has ended.
 * - Only __syncthreads and __syncwarp order accesses of different threads; atomic functions order
 *   no other accesses. ThreadSanitizer reports code that relies on another order.
 * - Shared memory and device memory begin with a pattern. Under AddressSanitizer both have their
 *   exact size, and the host may not access device memory.
 * - In builds without a sanitizer, kernels and copies may not read device memory that was never
 *   written (written.h).
 * - Work on a stream runs only when a caller waits for it or queries it. Work of all streams then
 *   runs in a random order. Host memory of asynchronous copies must be registered.
 *
 * Not emulated: speed, coalescing, occupancy, inline PTX. */
#ifndef SLC_EMULATION_CUDA_RUNTIME_H
#define SLC_EMULATION_CUDA_RUNTIME_H

#define SLC_EMULATED 1
/* The toolkit version of the interface: 13.0. */
#define CUDART_VERSION 13000

#include "device_code.h"

#include <cstddef>

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNotReady = 600,
    cudaErrorPeerAccessAlreadyEnabled = 704,
    cudaErrorHostMemoryAlreadyRegistered = 712,
    cudaErrorHostMemoryNotRegistered = 713,
    cudaErrorLaunchFailure = 719
};

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    size_t sharedMemPerBlockOptin;
    int multiProcessorCount;
    int major, minor;
    int l2CacheSize;
    int maxThreadsPerMultiProcessor;
};

typedef struct slc_emulated_stream *cudaStream_t;
typedef struct slc_emulated_event *cudaEvent_t;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice
};
enum { cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventDisableTiming = 2 };
enum { cudaHostRegisterDefault = 0, cudaHostRegisterPortable = 1 };
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);

cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *memory);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
/* Priorities are accepted but have no effect: work runs in any order. */
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);

cudaError_t
cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyPeerAsync(
    void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);

/* A kernel may use more than 48 KiB of dynamic shared memory only after this call. */
cudaError_t slc_emulated_func_attribute(const void *kernel, cudaFuncAttribute attribute, int value);
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel *kernel, cudaFuncAttribute attribute, int value)
{
    return slc_emulated_func_attribute(reinterpret_cast<const void *>(kernel), attribute, value);
}

/* Marks bytes of device memory as inaccessible: a gap between two parts of one allocation makes
 * overruns of the first part visible (AddressSanitizer). */
void slc_memory_gap(const void *memory, size_t bytes);

/* A kernel and its arguments; whoever runs it releases them with `destroy`. A std::function
 * would add half a second to the compilation of every file. */
struct slc_kernel_call {
    void *closure;
    void (*run)(const void *closure);
    void (*destroy)(void *closure);
};

/* Becomes the owner of `call`, on success and on failure. */
cudaError_t slc_emulated_launch(const void *kernel,
                                dim3 grid,
                                dim3 block,
                                size_t shared_bytes,
                                cudaStream_t stream,
                                const slc_kernel_call &call);

/* kernel<<<grid, block, shared_bytes, stream>>>(arguments): the arguments are copied now. As on
 * a device, it reports an error of an earlier call that was not queried. */
template <typename... Parameters, typename... Arguments>
cudaError_t slc_launch(void (*kernel)(Parameters...),
                       dim3 grid,
                       dim3 block,
                       size_t shared_bytes,
                       cudaStream_t stream,
                       Arguments... arguments)
{
    auto body = [=] { kernel(static_cast<Parameters>(arguments)...); };
    using closure = decltype(body);
    const slc_kernel_call call = {new closure(body),
                                  [](const void *self) { (*static_cast<const closure *>(self))(); },
                                  [](void *self) { delete static_cast<closure *>(self); }};

    (void)slc_emulated_launch(reinterpret_cast<const void *>(kernel), grid, block, shared_bytes,
                              stream, call);
    return cudaGetLastError();
}

/* ---- control of the emulation by tests */

struct slc_emulation {
    int devices;         /* number of devices; 0: as without a driver */
    size_t memory_bytes; /* bytes of memory of each device */
    size_t shared_bytes; /* maximum bytes of shared memory of a block */
    int multiprocessors;
    unsigned seed; /* seed of the order of all work whose order is not constrained */
};

/* Must be called before the first call of the runtime, or after slc_emulation_reset. */
void slc_emulation_set(const struct slc_emulation *emulation);
/* Ends the test program if memory, streams or events of devices leak. */
void slc_emulation_reset(void);

/* Makes the k-th following fallible call of the runtime (k from 1) fail without any effect; 0:
 * none. Calls that release something never fail. */
void slc_emulation_refuse(unsigned long long k);
/* Returns the number of fallible calls since the last call of slc_emulation_refuse. */
unsigned long long slc_emulation_refusable(void);

/* Counts of work so far. */
struct slc_emulation_counts {
    unsigned long long launches;
    unsigned long long bytes_to_device, bytes_to_host, bytes_between;
    size_t memory_peak; /* the largest sum over all devices */
};
void slc_emulation_counted(struct slc_emulation_counts *counts);

#endif
