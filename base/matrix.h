/* Dense row-major matrices: factors, MTTKRP outputs, vectors.
 *
 * Rows of 64 bytes or more start on 64-byte boundaries. Columns `cols` to `pitch` - 1 are padding
 * and always zero, so that kernels can process rows in whole vectors, without a scalar loop for the
 * last columns. */
#ifndef SLC_BASE_MATRIX_H
#define SLC_BASE_MATRIX_H

#include "base/error/error.h"
#include "base/memory/memory.h"

#include <stdint.h>

enum slc_value_type { SLC_F32 = 1, SLC_F64 = 2 };

static inline uint32_t slc_value_bytes(enum slc_value_type type)
{
    return type == SLC_F32 ? 4 : 8;
}

/* Rows `first` to `end` - 1 of a matrix. */
struct slc_row_span {
    uint64_t first, end;
};

struct slc_matrix {
    enum slc_value_type type;
    uint64_t rows;
    uint32_t cols;
    uint32_t pitch; /* numbers from the start of a row to the start of the next row, >= cols */
    struct slc_buffer buffer;
};

/* Returns the pitch of a matrix with `cols` columns. The size of a padded row is a power of two up
 * to 64 bytes, and above 64 bytes a multiple of 64 bytes (8 f64 or 16 f32). */
uint32_t slc_matrix_pitch(enum slc_value_type type, uint32_t cols);

/* Returns the bytes of memory that slc_matrix_create will map, for plans; UINT64_MAX on
 * overflow. */
uint64_t slc_matrix_footprint(enum slc_value_type type, uint64_t rows, uint32_t cols);

/* Allocates a zeroed matrix, in huge pages if it needs 4 MiB or more. `rows` may be 0. Ownership:
 * release with slc_matrix_destroy, which accepts an all-zero struct. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_matrix_create(struct slc_matrix *matrix,
                                  enum slc_value_type type,
                                  uint64_t rows,
                                  uint32_t cols,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_matrix_destroy(struct slc_matrix *matrix);

static inline double *slc_matrix_row_f64(const struct slc_matrix *m, uint64_t row)
{
    return (double *)m->buffer.data + row * m->pitch;
}

static inline float *slc_matrix_row_f32(const struct slc_matrix *m, uint64_t row)
{
    return (float *)m->buffer.data + row * m->pitch;
}

/* Records and returns SLC_ERR_INPUT for a number that is not finite in the type of the matrix; the
 * message states the position of the number. In an MTTKRP such a number would make every sum that
 * contains it NaN or infinite, even if it is multiplied by 0. */
enum slc_status slc_matrix_refuse(const struct slc_matrix *m,
                                  uint64_t row,
                                  uint64_t col,
                                  double value,
                                  struct slc_error *err) SLC_NODISCARD;

/* Creates a matrix from rows x cols contiguous numbers. Ownership: release with slc_matrix_destroy.
 * Errors: SLC_ERR_MEMORY; SLC_ERR_INPUT for a number that is not finite (slc_matrix_refuse). After
 * an error the struct is all zero. */
enum slc_status slc_matrix_create_from(struct slc_matrix *matrix,
                                       enum slc_value_type type,
                                       uint64_t rows,
                                       uint32_t cols,
                                       const double *from,
                                       struct slc_error *err) SLC_NODISCARD;

/* Copies `count` rows, starting with `first`, to contiguous numbers. */
void slc_matrix_get_rows(const struct slc_matrix *m, uint64_t first, uint64_t count, double *to);

/* These functions read and write one element of a matrix of any type, for tests and cold paths. */
double slc_matrix_get(const struct slc_matrix *m, uint64_t row, uint32_t col);
void slc_matrix_set(struct slc_matrix *m, uint64_t row, uint32_t col, double value);

#endif
