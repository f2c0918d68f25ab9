/* A race that racecheck of compute-sanitizer must find; otherwise its silence about kernels means
 * nothing: threads read values that their neighbours write to shared memory, without a barrier in
 * between. */
#include <cuda_runtime.h>

#include <cstdio>

enum { THREADS = 256 };

__global__ static void reverse(unsigned *numbers)
{
    __shared__ unsigned turned[THREADS];

    turned[threadIdx.x] = numbers[threadIdx.x];
    numbers[threadIdx.x] = turned[THREADS - 1 - threadIdx.x];
}

int main()
{
    unsigned *numbers = nullptr;
    cudaError_t error = cudaMalloc(&numbers, THREADS * sizeof *numbers);

    if (error == cudaSuccess) {
        error = cudaMemset(numbers, 0, THREADS * sizeof *numbers);
    }
    if (error == cudaSuccess) {
        reverse<<<1, THREADS>>>(numbers);
        error = cudaDeviceSynchronize();
    }
    (void)cudaFree(numbers);
    printf("%s\n", cudaGetErrorString(error));
    return error == cudaSuccess ? 0 : 1;
}
