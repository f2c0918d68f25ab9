/* Recognizes files of other formats that are given where text is expected. */
#ifndef SLC_CONVERT_FOREIGN_H
#define SLC_CONVERT_FOREIGN_H

#include "convert/ingest/input/input.h"

/* Checks that an input may be text. Call this function before any read. If `json` is true, JSON is
 * an error, too. Errors: SLC_ERR_INPUT if the first bytes identify another format (Parquet, Arrow,
 * HDF5, ZIP, NumPy, UTF-16 and others); the message names the format and a way to read such a
 * file. */
enum slc_status
slc_input_check_text(struct slc_input *input, bool json, struct slc_error *err) SLC_NODISCARD;

/* Returns the bytes of a UTF-8 byte order mark at the start of a text: 3, or 0 without a mark. */
static inline size_t slc_byte_order_mark_bytes(const char *text, size_t bytes)
{
    return bytes >= 3 && text[0] == '\xef' && text[1] == '\xbb' && text[2] == '\xbf' ? 3 : 0;
}

#endif
