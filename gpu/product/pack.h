/* A pack: the elements of a matrix row that a thread loads at once. Device code, included by
 * kernels. */
#ifndef SLC_GPU_PACK_H
#define SLC_GPU_PACK_H

#include "gpu/cuda/cuda.h"

/* 16 bytes of a row: two f64, or four f32. */
template <typename Element> struct slc_pack;
template <> struct slc_pack<double> {
    enum { COUNT = 2 };
    double2 wide;
    __device__ double operator[](int k) const
    {
        return k == 0 ? wide.x : wide.y;
    }
};
template <> struct slc_pack<float> {
    enum { COUNT = 4 };
    float4 wide;
    __device__ float operator[](int k) const
    {
        return k == 0 ? wide.x : k == 1 ? wide.y : k == 2 ? wide.z : wide.w;
    }
};

#endif
