/*
 * Arrays of NumPy as the lists that a sparse tensor consists of: coordinates, values, and the small
 * ones that describe it. Internal to convert/ingest/binary/binary_open.c, npy_array.c and npz.c.
 */
#ifndef SLC_CONVERT_NPY_ARRAY_H
#define SLC_CONVERT_NPY_ARRAY_H

#include "convert/ingest/binary/binary.h"
#include "storage/model/npy_header.h"

struct slc_npy_array {
    struct slc_npy_header header;
    uint64_t header_bytes;      /* in front of the items */
    struct slc_bytes_view data; /* all of its items, where they can be read */
};

/* Items of an array; its shape is known to fit 64 bits. */
uint64_t slc_npy_items(const struct slc_npy_array *array);

/* Which of an array's items are numbers that coordinates, or values, can be. */
enum slc_npy_use { SLC_NPY_COORDS, SLC_NPY_VALUES };

/*
 * Parses the header of a .npy file of `file_bytes` bytes from its first `head_bytes`, of which
 * there are enough for every header of at most two dimensions. Errors: SLC_ERR_INPUT where the file
 * has not the length that the header asks for; as slc_npy_header_parse_any. `name`: of the file or
 * member, for messages.
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

/*
 * The fields and bands of coordinates, from field 0 on, of an array of shape (N, nnz), or (nnz, N)
 * where `rows`. Those of a vector of `nnz` numbers as field `field`.
 */
void slc_npy_lay_coords(struct slc_binary *binary, const struct slc_npy_array *array, bool rows);
void slc_npy_lay_vector(struct slc_binary *binary,
                        unsigned field,
                        const struct slc_npy_array *array);

/* Two .npy files, coordinates and values, become `binary`; dialect is SLC_DIALECT_NPY, _NPY_ROWS or
 * _NPY_COLUMNS. Errors: SLC_ERR_INPUT, also where it is not clear which of two lengths is that of
 * the nonzeros. */
enum slc_status slc_npy_pair(const struct slc_bytes_view *coords,
                             const struct slc_bytes_view *values,
                             struct slc_binary *binary,
                             struct slc_error *err) SLC_NODISCARD;

/*
 * The members of a .npz file of pydata/sparse (COO) or scipy.sparse (COO, CSR, CSC) are
 * decompressed into `spool` by way of `room` and become `binary`. Errors: SLC_ERR_INPUT for damaged
 * members and such that do not fit together, SLC_ERR_UNSUPPORTED for other arrays.
 */
enum slc_status slc_npz_read(const struct slc_bytes_view *file,
                             struct slc_spool *spool,
                             void *room,
                             size_t room_bytes,
                             struct slc_binary *binary,
                             struct slc_error *err) SLC_NODISCARD;

/*
 * Members of a .zip file, read one after the other by libzip through the table of file operations.
 * Internal to convert/ingest/binary/zip_member.c and npz.c.
 */
struct slc_zip;

/*
 * Owns: slc_zip_close, which takes NULL. Errors: SLC_ERR_INPUT for what is no .zip file, or one of
 * more members than any .npz has, whose list would take memory without end.
 */
enum slc_status slc_zip_open(const struct slc_bytes_view *file,
                             struct slc_zip **zip,
                             struct slc_error *err) SLC_NODISCARD;
void slc_zip_close(struct slc_zip *zip);

/* Whether there is a member of that name, stored or deflated; *bytes: as it says, decompressed. */
bool slc_zip_find(struct slc_zip *zip, const char *name, uint64_t *bytes);

/* Begins to read a member that is there, from its start. Ends the one before. */
enum slc_status
slc_zip_begin(struct slc_zip *zip, const char *name, struct slc_error *err) SLC_NODISCARD;

/*
 * The next bytes of the member; *got is fewer than `bytes` only at its end, where its checksum has
 * been compared. Errors: SLC_ERR_INPUT for damage, SLC_ERR_IO.
 */
enum slc_status slc_zip_next(struct slc_zip *zip,
                             void *data,
                             size_t bytes,
                             size_t *got,
                             struct slc_error *err) SLC_NODISCARD;

#endif
