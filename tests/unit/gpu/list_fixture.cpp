/* Random lists of coordinates on host and device. */
#include "list_fixture.h"

extern "C" {
#include "base/random.h"
}

#include <algorithm>
#include <cstring>
#include <numeric>

/* Streams of random numbers. */
enum { PLACES, VALUES, ELEMENTS };

host_list random_list(const std::vector<uint64_t> &dims, uint64_t nnz, uint64_t seed)
{
    host_list list{dims, {}, {}};

    for (uint64_t i = 0; i < nnz; i++) {
        for (unsigned m = 0; m < dims.size(); m++) {
            list.coords.push_back(
                (uint32_t)slc_random_below(seed, PLACES, i * dims.size() + m, dims[m]));
        }
        list.values.push_back((double)slc_random_below(seed, VALUES, i, 9) - 4);
    }
    return list;
}

void sort_fibers(host_list *list, unsigned mode)
{
    const unsigned order = list->order();
    const host_list before = *list;
    std::vector<uint64_t> places(list->nnz());

    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(), [&](uint64_t a, uint64_t b) {
        for (unsigned m = 0; m < order; m++) {
            const uint32_t in_a = before.coords[a * order + m], in_b = before.coords[b * order + m];

            if (m != mode && in_a != in_b) {
                return in_a < in_b;
            }
        }
        return before.coords[a * order + mode] < before.coords[b * order + mode];
    });
    for (uint64_t i = 0; i < places.size(); i++) {
        list->values[i] = before.values[places[i]];
        for (unsigned m = 0; m < order; m++) {
            list->coords[i * order + m] = before.coords[places[i] * order + m];
        }
    }
}

oracle_list::oracle_list(const host_list &list)
{
    view = slc_coo_view{};
    view.order = list.order();
    view.nnz = list.nnz();
    view.values = list.values.data();
    for (unsigned m = 0; m < list.order(); m++) {
        for (uint64_t i = 0; i < list.nnz(); i++) {
            coords[m].push_back(list.coords[i * list.order() + m]);
        }
        view.coords[m] = coords[m].data();
    }
}

host_matrix::host_matrix(enum slc_value_type type, uint64_t rows, uint32_t cols, uint64_t seed)
{
    matrix = slc_matrix{};
    CU_ASSERT_EQUAL_FATAL(slc_matrix_create(&matrix, type, rows, cols, nullptr), SLC_OK);
    for (uint64_t i = 0; i < rows; i++) {
        for (uint32_t r = 0; r < cols; r++) {
            slc_matrix_set(&matrix, i, r,
                           (double)slc_random_below(seed, ELEMENTS, i * cols + r, 7) - 3);
        }
    }
}

host_matrix::~host_matrix()
{
    slc_matrix_destroy(&matrix);
}

emulated_device::emulated_device(unsigned seed)
{
    const slc_emulation settings = {1, (size_t)1 << 28, 160 << 10, 4, seed};

    slc_emulation_set(&settings);
    SLC_MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
}

emulated_device::~emulated_device()
{
    SLC_MUST(cudaStreamDestroy(stream));
    slc_emulation_reset();
}

device_list::device_list(const host_list &list, enum slc_value_type type, cudaStream_t stream)
{
    const std::vector<float> narrow(list.values.begin(), list.values.end());
    const void *values = list.values.data();

    if (type == SLC_F32) {
        values = narrow.data();
    }
    SLC_MUST(slc_gpu_coo_create(&coo, list.order(), list.nnz(), type));
    SLC_MUST(slc_gpu_coo_write(&coo, list.coords.data(), values, stream));
}

device_list::~device_list()
{
    slc_gpu_coo_destroy(&coo);
}

static void create(
    slc_gpu_matrix *matrix, enum slc_value_type type, uint64_t rows, uint32_t cols, cudaStream_t s)
{
    const uint32_t multiple = 16 / slc_value_bytes(type);
    const uint32_t pitch = (cols + multiple - 1) / multiple * multiple;
    const uint64_t bytes = rows * pitch * slc_value_bytes(type);

    *matrix = slc_gpu_matrix{nullptr, rows, cols, pitch, 0};
    SLC_MUST(cudaMalloc(&matrix->data, bytes + 1));
    SLC_MUST(cudaMemsetAsync(matrix->data, 0, bytes, s));
}

device_matrix::device_matrix(enum slc_value_type type,
                             uint64_t rows,
                             uint32_t cols,
                             cudaStream_t stream)
{
    create(&matrix, type, rows, cols, stream);
}

device_matrix::device_matrix(const struct slc_matrix *from, cudaStream_t stream)
{
    const uint64_t bytes = slc_value_bytes(from->type);

    create(&matrix, from->type, from->rows, from->cols, stream);
    std::vector<unsigned char> rows(from->rows * matrix.pitch * bytes);
    for (uint64_t i = 0; i < from->rows; i++) {
        memcpy(rows.data() + i * matrix.pitch * bytes,
               static_cast<const unsigned char *>(from->buffer.data) + i * from->pitch * bytes,
               from->cols * bytes);
    }
    SLC_MUST(slc_staged_to_device(matrix.data, rows.data(), rows.size(), stream));
}

device_matrix::~device_matrix()
{
    SLC_MUST(cudaFree(matrix.data));
}

std::vector<double> device_matrix::read(enum slc_value_type type, cudaStream_t stream) const
{
    std::vector<unsigned char> raw(matrix.rows * matrix.pitch * slc_value_bytes(type));
    std::vector<double> all;

    SLC_MUST(slc_staged_to_host(raw.data(), matrix.data, raw.size(), stream));
    for (uint64_t i = 0; i < matrix.rows; i++) {
        for (uint32_t r = 0; r < matrix.cols; r++) {
            const uint64_t at = i * matrix.pitch + r;

            all.push_back(type == SLC_F32 ? (double)reinterpret_cast<const float *>(raw.data())[at]
                                          : reinterpret_cast<const double *>(raw.data())[at]);
        }
    }
    return all;
}
