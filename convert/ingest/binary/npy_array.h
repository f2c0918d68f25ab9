/* NumPy arrays that form a sparse tensor: coordinates, values, and small arrays that describe the
 * tensor. Internal to binary_open.c, npy_array.c and npz.c. */
#ifndef SLC_CONVERT_NPY_ARRAY_H
#define SLC_CONVERT_NPY_ARRAY_H

#include "convert/ingest/binary/binary.h"
#include "storage/model/npy_header.h"

struct slc_npy_array {
    struct slc_npy_header header;
    uint64_t header_bytes;      /* bytes before the items */
    struct slc_bytes_view data; /* all items, readable at any offset */
};

/* Returns the number of items of an array. Needs: the product of its shape fits in 64 bits, which
 * slc_npy_array_parse checks. */
uint64_t slc_npy_items(const struct slc_npy_array *array);

/* Use of an array, which determines the types that its items may have. */
enum slc_npy_use { SLC_NPY_COORDS, SLC_NPY_VALUES };

/* Parses the header of a .npy file of `file_bytes` bytes from its first `head_bytes` bytes.
 * SLC_NPY_HEAD_BYTES suffice for any header of at most 16 dimensions. `name` is the name of the
 * file or member, for messages. Errors: those of slc_npy_header_parse_any; SLC_ERR_INPUT if the
 * file does not have the length that the header implies. */
enum { SLC_NPY_HEAD_BYTES = 4096 };
enum slc_status slc_npy_array_parse(const unsigned char *head,
                                    size_t head_bytes,
                                    uint64_t file_bytes,
                                    const char *name,
                                    struct slc_npy_array *array,
                                    struct slc_error *err) SLC_NODISCARD;

/* Checks the type of the items. Errors: SLC_ERR_INPUT for a type that `use` does not permit. */
enum slc_status slc_npy_check_use(const struct slc_npy_array *array,
                                  enum slc_npy_use use,
                                  const char *name,
                                  struct slc_error *err) SLC_NODISCARD;

/* slc_npy_lay_out_coords adds an array of coordinates to `binary`: the fields from field 0 on, and
 * their bands. The array has shape (nnz, N) if `rows` is true, otherwise (N, nnz).
 * slc_npy_lay_out_vector adds a vector of `nnz` numbers as field `field`. */
void slc_npy_lay_out_coords(struct slc_binary *binary,
                            const struct slc_npy_array *array,
                            bool rows);
void slc_npy_lay_out_vector(struct slc_binary *binary,
                            unsigned field,
                            const struct slc_npy_array *array);

/* Combines a .npy file of coordinates and a .npy file of values into `binary`. The dialect is
 * SLC_DIALECT_NPY, _NPY_ROWS or _NPY_COLUMNS. Errors: SLC_ERR_INPUT for arrays that do not match;
 * also if the dialect is SLC_DIALECT_NPY and both dimensions of the coordinates equal the number of
 * values. */
enum slc_status slc_npy_pair(const struct slc_bytes_view *coords,
                             const struct slc_bytes_view *values,
                             struct slc_binary *binary,
                             struct slc_error *err) SLC_NODISCARD;

/* Lays out the elements of a .npy file as a dense tensor. For other dialects than
 * SLC_DIALECT_NPY_DENSE, a vector or a matrix of integers is an error, because it may be values or
 * coordinates; the message asks for that dialect. Errors: SLC_ERR_INPUT, SLC_ERR_UNSUPPORTED. */
enum slc_status slc_npy_dense(const struct slc_bytes_view *elements,
                              struct slc_binary *binary,
                              struct slc_error *err) SLC_NODISCARD;

/* Decompresses the members of a .npz file of pydata/sparse (COO) or scipy.sparse (COO, CSR, CSC) to
 * `spool` through the buffer `buffer` and sets `binary`. Errors: SLC_ERR_INPUT for damaged or
 * inconsistent members, SLC_ERR_UNSUPPORTED for other arrays. */
enum slc_status slc_npz_read(const struct slc_bytes_view *file,
                             struct slc_spool *spool,
                             void *buffer,
                             size_t buffer_bytes,
                             struct slc_binary *binary,
                             struct slc_error *err) SLC_NODISCARD;

/* A .zip file whose members libzip reads sequentially, through struct slc_files. Internal to
 * zip_member.c and npz.c. */
struct slc_zip;

/* Opens a .zip file. Ownership: release with slc_zip_close, which accepts NULL. Errors:
 * SLC_ERR_INPUT for a file that is not a .zip file or has more members than any .npz file of a
 * tensor; without this limit the list of members would need unbounded memory. */
enum slc_status slc_zip_open(const struct slc_bytes_view *file,
                             struct slc_zip **zip,
                             struct slc_error *err) SLC_NODISCARD;
void slc_zip_close(struct slc_zip *zip);

/* Returns true if the file has a stored or deflated member `name`, and stores its declared
 * decompressed size in *bytes. */
bool slc_zip_find(struct slc_zip *zip, const char *name, uint64_t *bytes);

/* Closes the current member, if any, and opens an existing member at its first byte. */
enum slc_status
slc_zip_open_member(struct slc_zip *zip, const char *name, struct slc_error *err) SLC_NODISCARD;

/* Reads the next bytes of the open member. *got is less than `bytes` only at the end of the member,
 * after its checksum has been verified. Errors: SLC_ERR_INPUT for damaged data, SLC_ERR_IO. */
enum slc_status slc_zip_next(struct slc_zip *zip,
                             void *data,
                             size_t bytes,
                             size_t *got,
                             struct slc_error *err) SLC_NODISCARD;

#endif
