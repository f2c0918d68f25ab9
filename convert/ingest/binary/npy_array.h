/* NumPy arrays as parts of a sparse tensor: coordinates, values, and the small arrays that describe
 * it. Internal to binary_open.c, npy_array.c and npz.c. */
#ifndef SLC_CONVERT_NPY_ARRAY_H
#define SLC_CONVERT_NPY_ARRAY_H

#include "convert/ingest/binary/binary.h"
#include "storage/model/npy_header.h"

struct slc_npy_array {
    struct slc_npy_header header;
    uint64_t header_bytes;      /* before the items */
    struct slc_bytes_view data; /* all items, readable at any offset */
};

/* Number of items of an array. Needs: the product of its shape fits 64 bits, which parsing checks.
 */
uint64_t slc_npy_items(const struct slc_npy_array *array);

/* Use of an array, which determines the permitted types. */
enum slc_npy_use { SLC_NPY_COORDS, SLC_NPY_VALUES };

/*
 * Parses the header of a .npy file of `file_bytes` bytes from its first `head_bytes`, which suffice
 * for any header of at most two dimensions. `name`: of the file or member, for messages. Errors:
 * SLC_ERR_INPUT if the file does not have the length that the header implies; as
 * slc_npy_header_parse_any.
 */
enum { SLC_NPY_HEAD_BYTES = 4096 };
enum slc_status slc_npy_array_parse(const unsigned char *head,
                                    size_t head_bytes,
                                    uint64_t file_bytes,
                                    const char *name,
                                    struct slc_npy_array *array,
                                    struct slc_error *err) SLC_NODISCARD;

/* Errors: SLC_ERR_INPUT for an array of the wrong type. */
enum slc_status slc_npy_check_use(const struct slc_npy_array *array,
                                  enum slc_npy_use use,
                                  const char *name,
                                  struct slc_error *err) SLC_NODISCARD;

/* Sets fields and bands of the coordinates, from field 0 on, for an array of shape (N, nnz), or
 * (nnz, N) if `rows`. slc_npy_lay_out_vector: field `field`, from a vector of `nnz` numbers. */
void slc_npy_lay_out_coords(struct slc_binary *binary,
                            const struct slc_npy_array *array,
                            bool rows);
void slc_npy_lay_out_vector(struct slc_binary *binary,
                            unsigned field,
                            const struct slc_npy_array *array);

/*
 * Combines two .npy files, coordinates and values, into `binary`; dialect is SLC_DIALECT_NPY,
 * _NPY_ROWS or _NPY_COLUMNS. Errors: SLC_ERR_INPUT, also if both dimensions of the coordinates
 * could be the number of nonzeros.
 */
enum slc_status slc_npy_pair(const struct slc_bytes_view *coords,
                             const struct slc_bytes_view *values,
                             struct slc_binary *binary,
                             struct slc_error *err) SLC_NODISCARD;

/*
 * Decompresses the members of a .npz file of pydata/sparse (COO) or scipy.sparse (COO, CSR, CSC) to
 * `spool` through the buffer `buffer` and sets `binary`. Errors: SLC_ERR_INPUT for damaged or
 * inconsistent members, SLC_ERR_UNSUPPORTED for other arrays.
 */
enum slc_status slc_npz_read(const struct slc_bytes_view *file,
                             struct slc_spool *spool,
                             void *buffer,
                             size_t buffer_bytes,
                             struct slc_binary *binary,
                             struct slc_error *err) SLC_NODISCARD;

/* Members of a .zip file, read sequentially by libzip through the table of file operations.
 * Internal to zip_member.c and npz.c. */
struct slc_zip;

/* Owns: slc_zip_close, which accepts NULL. Errors: SLC_ERR_INPUT for a file that is not a .zip
 * file, or that has more members than any .npz file needs (the list of members would need
 * unbounded memory). */
enum slc_status slc_zip_open(const struct slc_bytes_view *file,
                             struct slc_zip **zip,
                             struct slc_error *err) SLC_NODISCARD;
void slc_zip_close(struct slc_zip *zip);

/* True if a stored or deflated member is called `name`. *bytes: its declared decompressed size. */
bool slc_zip_find(struct slc_zip *zip, const char *name, uint64_t *bytes);

/* Starts reading an existing member from its start and ends reading the previous member. */
enum slc_status
slc_zip_open_member(struct slc_zip *zip, const char *name, struct slc_error *err) SLC_NODISCARD;

/* Reads the next bytes of the member; *got is less than `bytes` only at its end, after its checksum
 * has been verified. Errors: SLC_ERR_INPUT for damage, SLC_ERR_IO. */
enum slc_status slc_zip_next(struct slc_zip *zip,
                             void *data,
                             size_t bytes,
                             size_t *got,
                             struct slc_error *err) SLC_NODISCARD;

#endif
