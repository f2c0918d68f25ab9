/* Linked into every test for a real device: without a device, the program says so before its first
 * test and skips all of them. */
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

__attribute__((constructor)) static void skip_without_device(void)
{
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);

    if (error == cudaSuccess && count > 0) {
        return;
    }
    printf("1..0 # SKIP no CUDA device: %s\n",
           error == cudaSuccess ? "there is none" : cudaGetErrorString(error));
    fflush(stdout);
    _Exit(0);
}
