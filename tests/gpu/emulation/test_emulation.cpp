/* Tests the emulation itself: guarantees for kernels hold in every order, and violations are found.
 * With the name of a planted fault as argument, the program commits it;
 * tests/gpu/emulation/test_planted.py checks that it was reported. */
#include "cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

static unsigned checks_failed;

static void check(bool condition, const char *what)
{
    if (!condition) {
        printf("# not so: %s\n", what);
        checks_failed++;
    }
}

static void must(cudaError_t error, const char *call)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", call, cudaGetErrorName(error));
        exit(1);
    }
}
#define MUST(call) must(call, #call)

/* Registered host memory, device memory and a stream. */
struct bench {
    std::vector<unsigned> host;
    unsigned *device;
    cudaStream_t stream;
    explicit bench(size_t count) : host(count)
    {
        MUST(cudaHostRegister(host.data(), count * 4, cudaHostRegisterDefault));
        MUST(cudaMalloc(reinterpret_cast<void **>(&device), count * 4));
        MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    ~bench()
    {
        MUST(cudaStreamDestroy(stream));
        MUST(cudaFree(device));
        MUST(cudaHostUnregister(host.data()));
    }
    void to_device(void)
    {
        MUST(cudaMemcpyAsync(device, host.data(), host.size() * 4, cudaMemcpyHostToDevice, stream));
    }
    void to_host(void)
    {
        MUST(cudaMemcpyAsync(host.data(), device, host.size() * 4, cudaMemcpyDeviceToHost, stream));
        MUST(cudaStreamSynchronize(stream));
    }
};

/* ---- correct kernels */

__global__ static void warp_sums(unsigned *out)
{
    const unsigned all = 0xffffffffU;
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value = i;

    for (int lanes = 16; lanes > 0; lanes /= 2) {
        value += __shfl_xor_sync(all, value, lanes);
    }
    unsigned before = 1;
    for (unsigned delta = 1; delta < 32; delta *= 2) {
        const unsigned other = __shfl_up_sync(all, before, delta);

        before += threadIdx.x % 32 >= delta ? other : 0;
    }
    const unsigned odd = __ballot_sync(all, (int)(i % 2));
    const unsigned same = __match_any_sync(all, i % 3);
    unsigned half = 0;
    if (threadIdx.x % 32 < 16) {
        half = __reduce_add_sync(0xffffU, i);
    }
    out[i] = value + before + (odd == 0xaaaaaaaaU) + (unsigned)__popc(same) + half;
}

static unsigned warp_sums_want(unsigned i)
{
    const unsigned first = i / 32 * 32;
    unsigned want = 0, same = 0, half = 0;

    for (unsigned j = first; j < first + 32; j++) {
        want += j;
        same += j % 3 == i % 3;
        half += i % 32 < 16 && j % 32 < 16 ? j : 0;
    }
    return want + (i % 32 + 1) + 1 + same + half;
}

/* A block reverses its part through shared memory and counts its work. */
__global__ static void reversed(unsigned *data, unsigned count)
{
    SLC_DYNAMIC_SHARED(unsigned, shared);
    const unsigned first = blockIdx.x * blockDim.x;

    for (int again = 0; again < 3; again++) {
        shared[threadIdx.x] = data[first + threadIdx.x];
        __syncthreads();
        data[first + threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
        __syncthreads();
    }
    atomicAdd(&data[count], 1U);
}

/* All threads of all blocks compute the maximum of their values. */
__global__ static void largest(unsigned *data)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    atomicMax(&data[0], i * 7 % 64);
    atomicMax(reinterpret_cast<unsigned long long *>(data + 2), (i + 1ULL) << 33);
}

/* Blocks fetch pieces of work from one counter. */
__global__ static void shared_work(unsigned *data, unsigned pieces)
{
    SLC_DYNAMIC_SHARED(unsigned, next);

    for (;;) {
        if (threadIdx.x == 0) {
            next[0] = atomicAdd(&data[0], 1U);
        }
        __syncthreads();
        const unsigned piece = next[0];
        __syncthreads();
        if (piece >= pieces) {
            return;
        }
        if (threadIdx.x == 0) {
            data[1 + piece] = blockIdx.x;
        }
    }
}

static void test_warps(void)
{
    bench b(4 * 96);

    MUST(slc_launch(warp_sums, 4, 96, 0, b.stream, b.device));
    b.to_host();
    for (unsigned i = 0; i < b.host.size(); i++) {
        check(b.host[i] == warp_sums_want(i), "a collective call of a warp");
    }
}

static void test_blocks(void)
{
    const unsigned count = 5 * 100;
    bench b(count + 1);

    for (unsigned i = 0; i < count; i++) {
        b.host[i] = i;
    }
    b.host[count] = 0;
    b.to_device();
    MUST(slc_launch(reversed, 5, 100, 100 * sizeof(unsigned), b.stream, b.device, count));
    b.to_host();
    for (unsigned i = 0; i < count; i++) {
        check(b.host[i] == i / 100 * 100 + 99 - i % 100, "a reversed part");
    }
    check(b.host[count] == 500, "an atomic count");
    MUST(cudaMemsetAsync(b.device, 0, 16, b.stream));
    MUST(slc_launch(largest, 2, 32, 0, b.stream, b.device));
    b.to_host();
    check(b.host[0] == 63 && b.host[2] == 0 && b.host[3] == 128, "atomic maxima");
}

static void test_shared_work(void)
{
    bench b(1 + 64);
    unsigned of_block[4] = {0};

    b.host[0] = 0;
    b.to_device();
    MUST(slc_launch(shared_work, 3, 64, sizeof(unsigned), b.stream, b.device, 64U));
    b.to_host();
    for (unsigned i = 1; i <= 64; i++) {
        check(b.host[i] < 3, "each piece is taken");
        of_block[b.host[i] & 3U]++;
    }
    /* Under ThreadSanitizer only two blocks run simultaneously. */
    check((of_block[0] > 0) + (of_block[1] > 0) + (of_block[2] > 0) >= 2,
          "blocks run at the same time");
}

__global__ static void add_one(unsigned *data, unsigned count)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        data[i] += 1;
    }
}

/* A copy on one stream, a kernel on another, and an event between them. */
static void test_streams(void)
{
    bench b(1000);
    cudaStream_t other;
    cudaEvent_t copied, computed;

    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&computed, cudaEventDisableTiming));
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 1000; i++) {
            b.host[i] = i + round;
        }
        b.to_device();
        MUST(cudaEventRecord(copied, b.stream));
        MUST(cudaStreamWaitEvent(other, copied, 0));
        MUST(slc_launch(add_one, 8, 128, 0, other, b.device, 1000U));
        MUST(cudaEventRecord(computed, other));
        MUST(cudaStreamWaitEvent(b.stream, computed, 0));
        b.to_host();
        for (unsigned i = 0; i < 1000; i++) {
            check(b.host[i] == i + round + 1, "work in the order of events");
        }
    }
    MUST(cudaEventDestroy(copied));
    MUST(cudaEventDestroy(computed));
    MUST(cudaStreamDestroy(other));
}

static void test_instructions(void)
{
    check(__dp4a(0x01ff02feU, 0x01010101U, 5) == 5 + 1 + 255 + 2 + 254, "a sum of bytes");
    check(__dp4a(0xffffffffU, 0xffffffffU, 0) == 4 * 255 * 255, "products of bytes");
    check(__funnelshift_r(0x89abcdefU, 0x01234567U, 12) == 0x56789abcU, "bits of two words");
}

/* Kernels on unordered streams, with more and more threads: the code that runs them belongs to
 * none. */
static void test_unordered_kernels(void)
{
    bench first(1024), second(1024);

    for (unsigned threads = 32; threads <= 1024; threads *= 2) {
        for (bench *b : {&first, &second}) {
            MUST(cudaMemsetAsync(b->device, 0, 4096, b->stream));
            MUST(slc_launch(add_one, 1, threads, 0, b->stream, b->device, threads));
        }
    }
    first.to_host();
    second.to_host();
    check(first.host[1023] == 1 && second.host[1023] == 1, "kernels on two streams");
}

static void test_limits(void)
{
    bench b(4);
    void *memory;

    check(cudaMalloc(&memory, (size_t)2 << 20) == cudaErrorMemoryAllocation, "memory has an end");
    check(cudaGetLastError() == cudaErrorMemoryAllocation, "the last error is kept");
    check(cudaGetLastError() == cudaSuccess, "and told once");
    check(slc_launch(add_one, 1, 2048, 0, b.stream, b.device, 4U) == cudaErrorInvalidValue,
          "a block of 2048 threads");
    check(slc_launch(add_one, 1, 32, (size_t)64 << 10, b.stream, b.device, 4U) ==
              cudaErrorInvalidValue,
          "shared memory beyond 48 KiB unasked");
    MUST(cudaFuncSetAttribute(add_one, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
    MUST(cudaFuncSetAttribute(add_one, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
    check(cudaFuncSetAttribute(add_one, cudaFuncAttributePreferredSharedMemoryCarveout, 101) ==
                  cudaErrorInvalidValue &&
              cudaGetLastError() == cudaErrorInvalidValue,
          "more than all shared memory preferred");
    MUST(cudaMemsetAsync(b.device, 0, 16, b.stream));
    MUST(slc_launch(add_one, 1, 32, (size_t)64 << 10, b.stream, b.device, 4U));
    b.to_host();
    check(b.host[3] == 1, "and asked");
    check(cudaSetDevice(2) == cudaErrorInvalidDevice, "a device that is not there");
}

/* Every call in turn fails once, and the same work succeeds afterwards. */
static void test_refused(void)
{
    const auto work = [](void) {
        unsigned host[16] = {0}, *device = nullptr;
        cudaStream_t stream = nullptr;
        cudaEvent_t event = nullptr;
        const bool known = cudaHostRegister(host, sizeof host, 0) == cudaSuccess;
        bool good = known && cudaSetDevice(1) == cudaSuccess;

        good = good && cudaMalloc(reinterpret_cast<void **>(&device), 64) == cudaSuccess &&
               cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess &&
               cudaEventCreateWithFlags(&event, cudaEventDefault) == cudaSuccess;
        good = good && cudaMemsetAsync(device, 0, 64, stream) == cudaSuccess &&
               slc_launch(add_one, 1, 32, 0, stream, device, 16U) == cudaSuccess &&
               cudaMemcpyAsync(host, device, 64, cudaMemcpyDeviceToHost, stream) == cudaSuccess &&
               cudaEventRecord(event, stream) == cudaSuccess &&
               cudaEventSynchronize(event) == cudaSuccess;
        check(!good || host[15] == 1, "what was not refused was done");
        if (event != nullptr) {
            MUST(cudaEventDestroy(event));
        }
        if (stream != nullptr) {
            (void)cudaStreamSynchronize(stream);
            MUST(cudaStreamDestroy(stream));
        }
        MUST(cudaFree(device));
        if (known) {
            MUST(cudaHostUnregister(host));
        }
        return good;
    };
    unsigned long long calls = 0;

    slc_emulation_refuse(0);
    check(work(), "nothing is refused");
    calls = slc_emulation_refusable();
    check(calls == 11, "every call that may fail is counted");
    for (unsigned long long k = 1; k < calls; k++) { /* the last call releases: it cannot fail */
        slc_emulation_refuse(k);
        check(!work(), "the call is refused");
        check(cudaGetLastError() != cudaSuccess || k == 7, "and remembered, but told by a launch");
    }
    slc_emulation_refuse(0);
    MUST(cudaSetDevice(0));
}

/* ---- planted faults */

/* A missing barrier: a thread may read a value that another has not written yet. */
__global__ static void no_block_barrier(unsigned *data)
{
    SLC_DYNAMIC_SHARED(unsigned, shared);

    shared[threadIdx.x] = threadIdx.x;
    data[threadIdx.x] = shared[(threadIdx.x + 33) % blockDim.x];
}

/* A shuffle is no barrier for memory. */
__global__ static void no_warp_barrier(unsigned *data)
{
    SLC_DYNAMIC_SHARED(unsigned, shared);

    shared[threadIdx.x] = threadIdx.x;
    (void)__shfl_sync(0xffffffffU, 1, 0);
    data[threadIdx.x] = shared[threadIdx.x ^ 1U];
}

/* One barrier is missing between two others. */
__global__ static void no_warp_barrier_between(unsigned *data)
{
    SLC_DYNAMIC_SHARED(unsigned, shared);

    __syncwarp();
    shared[threadIdx.x] = threadIdx.x;
    data[threadIdx.x] = shared[threadIdx.x ^ 1U];
    __syncwarp();
    data[threadIdx.x] += shared[threadIdx.x ^ 2U];
}

/* The next tile is written while others may still read the previous one. */
__global__ static void write_after_read(unsigned *data)
{
    SLC_DYNAMIC_SHARED(unsigned, shared);

    for (unsigned tile = 0; tile < 2; tile++) {
        shared[threadIdx.x] = tile;
        __syncthreads();
        data[threadIdx.x] = shared[(threadIdx.x + 40) % blockDim.x];
    }
}

__global__ static void plain_add(unsigned *data)
{
    data[0] += 1;
}

__global__ static void beyond_shared(unsigned *data)
{
    SLC_DYNAMIC_SHARED(unsigned, shared);

    shared[threadIdx.x + 1] = 1;
    data[threadIdx.x] = shared[threadIdx.x];
}

__global__ static void beyond_part(unsigned *data)
{
    data[threadIdx.x] = 1;
}

__global__ static void torn_warp(unsigned *data)
{
    if (threadIdx.x < 7) {
        data[threadIdx.x] = __ballot_sync(0xffffffffU, 1);
    }
}

__global__ static void torn_block(unsigned *data)
{
    if (threadIdx.x < 32) {
        __syncthreads();
        data[threadIdx.x] = 1;
    }
}

static void run_planted(void (*kernel)(unsigned *), unsigned threads)
{
    bench b(128);

    MUST(cudaMemsetAsync(b.device, 0, 512, b.stream));
    MUST(slc_launch(kernel, 1, threads, threads * sizeof(unsigned), b.stream, b.device));
    b.to_host();
}

/* Two parts of one allocation, the first of which ends at 16 numbers. */
static void between_parts(void)
{
    bench b(128);

    slc_memory_gap(b.device + 16, 64);
    MUST(slc_launch(beyond_part, 1, 17, 0, b.stream, b.device));
    b.to_host();
}

/* The kernel on another stream does not wait for the copy. */
static void missing_event(void)
{
    bench b(512);
    cudaStream_t other;

    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    MUST(cudaMemsetAsync(b.device, 1, 2048, b.stream));
    MUST(cudaStreamSynchronize(b.stream));
    MUST(cudaMemsetAsync(b.device, 0, 2048, b.stream));
    MUST(slc_launch(add_one, 4, 128, 0, other, b.device, 512U));
    MUST(cudaStreamSynchronize(other));
    b.to_host();
    /* Without a sanitizer the order itself shows the fault, for some seeds. */
    printf("%s\n", b.host[0] == 1 ? "in order" : "out of order");
    MUST(cudaStreamDestroy(other));
}

/* The host refills its buffer before the copy has read it. */
static void reused_buffer(void)
{
    bench b(512);

    b.to_device();
    b.host[0] = 77;
    MUST(cudaStreamSynchronize(b.stream));
}

/* A kernel, or a copy to the host, reads memory of which one number was never written. */
static void unwritten(bool in_kernel)
{
    bench b(64);

    MUST(cudaMemsetAsync(b.device, 0, (size_t)63 * 4, b.stream));
    if (in_kernel) {
        MUST(slc_launch(add_one, 1, 64, 0, b.stream, b.device, 64U));
    }
    b.to_host();
}

static void host_touches_device(void)
{
    bench b(4);

    b.to_device();
    MUST(cudaStreamSynchronize(b.stream));
    printf("%u\n", b.device[1]);
}

static const struct {
    const char *name;
    std::function<void()> commit;
} planted[] = {
    {"missing __syncthreads", [] { run_planted(no_block_barrier, 64); }},
    {"missing __syncwarp", [] { run_planted(no_warp_barrier, 32); }},
    {"missing __syncwarp between others", [] { run_planted(no_warp_barrier_between, 32); }},
    {"write after read", [] { run_planted(write_after_read, 64); }},
    {"plain add", [] { run_planted(plain_add, 64); }},
    {"beyond shared memory", [] { run_planted(beyond_shared, 64); }},
    {"beyond a part of memory", between_parts},
    {"torn warp", [] { run_planted(torn_warp, 64); }},
    {"torn block", [] { run_planted(torn_block, 64); }},
    {"missing event", missing_event},
    {"reused buffer", reused_buffer},
    {"host touches device", host_touches_device},
    {"kernel reads unwritten memory", [] { unwritten(true); }},
    {"copy reads unwritten memory", [] { unwritten(false); }},
};

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"collective calls of a warp", test_warps},
        {"barriers of a block, shared memory, atomic addition", test_blocks},
        {"blocks that share work", test_shared_work},
        {"streams and events", test_streams},
        {"kernels on streams that nothing orders", test_unordered_kernels},
        {"instructions", test_instructions},
        {"limits", test_limits},
        {"calls that are refused", test_refused},
    };
    slc_emulation settings = {2, (size_t)1 << 20, 100 << 10, 4, 1};

    if (argc > 1) {
        settings.seed = argc > 2 ? (unsigned)strtoul(argv[2], nullptr, 10) : 1;
        slc_emulation_set(&settings);
        for (const auto &fault : planted) {
            if (fault.name == std::string(argv[1])) {
                fault.commit();
                return 0;
            }
        }
        return 2;
    }
    printf("1..%zu\n", sizeof tests / sizeof tests[0]);
    for (size_t t = 0; t < sizeof tests / sizeof tests[0]; t++) {
        const unsigned before = checks_failed;

        for (unsigned seed = 1; seed <= 20; seed++) {
            settings.seed = seed;
            slc_emulation_set(&settings);
            tests[t].run();
            slc_emulation_reset();
        }
        printf("%s %zu - emulation: %s\n", checks_failed == before ? "ok" : "not ok", t + 1,
               tests[t].name);
    }
    return checks_failed == 0 ? 0 : 1;
}
