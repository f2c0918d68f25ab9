/* NumPy .npy files (format 1.0) with matrices of f4 and f8, for factors, weights and outputs.
 * Reading accepts C and Fortran order, both byte orders, and one or two dimensions. */
#ifndef SLC_STORAGE_NPY_H
#define SLC_STORAGE_NPY_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "storage/file/files.h"

#include <stdint.h>

/* Writes `matrix` as a C-order array of shape (rows, cols), atomically. */
enum slc_status slc_npy_write(const struct slc_files *files,
                              const char *path,
                              const struct slc_matrix *matrix,
                              struct slc_error *err) SLC_NODISCARD;

/* Writes `count` doubles as a one-dimensional f8 array. */
enum slc_status slc_npy_write_vector(const struct slc_files *files,
                                     const char *path,
                                     const double *values,
                                     uint64_t count,
                                     struct slc_error *err) SLC_NODISCARD;

/* Reads an array of shape (rows, cols), or (rows,) as one column, of dtype f4/f8/i4/i8 into a new
 * matrix of `type`. If the shape is not `expect_rows` x `expect_cols`, fails with SLC_ERR_INPUT and
 * states both shapes; an expected number of 0 accepts any number. If a number is not finite as
 * `type`, fails with SLC_ERR_INPUT and states its row and column. Allocates memory only after the
 * shape is known to match the file size.
 * Ownership: the caller destroys *matrix. */
enum slc_status slc_npy_read(const struct slc_files *files,
                             const char *path,
                             enum slc_value_type type,
                             uint64_t expect_rows,
                             uint32_t expect_cols,
                             struct slc_matrix *matrix,
                             struct slc_error *err) SLC_NODISCARD;

/* Reads only the shape of an array. Errors: those of slc_npy_read. */
enum slc_status slc_npy_shape(const struct slc_files *files,
                              const char *path,
                              uint64_t expect_rows,
                              uint64_t *rows,
                              uint32_t *cols,
                              struct slc_error *err) SLC_NODISCARD;

/* An open array of any size, of which the caller reads a range of rows at a time. */
struct slc_npy_rows;

/* Opens an array and checks its shape. Ownership: release with slc_npy_rows_close, which accepts
 * NULL. Errors: those of slc_npy_read. */
enum slc_status slc_npy_rows_open(const struct slc_files *files,
                                  const char *path,
                                  uint64_t expect_rows,
                                  uint32_t expect_cols,
                                  struct slc_npy_rows **rows,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_npy_rows_close(struct slc_npy_rows *rows);

/* Returns the shape of the array, and a type for its numbers: SLC_F32 for f4, else SLC_F64. */
void slc_npy_rows_shape(const struct slc_npy_rows *rows,
                        uint64_t *count,
                        uint32_t *cols,
                        enum slc_value_type *type);

/* Reads rows first .. first + count - 1, which must exist, contiguously into `values` (count x
 * cols). Threads: one at a time. Errors: SLC_ERR_INPUT if a number is not finite; errors of
 * reading. */
enum slc_status slc_npy_rows_read(struct slc_npy_rows *rows,
                                  uint64_t first,
                                  uint64_t count,
                                  double *values,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
