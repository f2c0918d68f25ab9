/*
 * Members of a .zip file, read one after the other by libzip through the table of file operations.
 * Internal to convert/ingest/binary/zip_member.c and npz.c.
 */
#ifndef SLC_CONVERT_ZIP_MEMBER_H
#define SLC_CONVERT_ZIP_MEMBER_H

#include "convert/ingest/binary/binary.h"

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
