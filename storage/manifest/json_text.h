/*
 * JSON between texts and jansson's values. jansson tells want of memory from bad text only in part,
 * and does nothing with what it had no memory for before, so that a document may come to lack
 * members; but a refused allocation sets errno, which nothing else in jansson does.
 */
#ifndef SLC_STORAGE_JSON_TEXT_H
#define SLC_STORAGE_JSON_TEXT_H

#include "base/error/error.h"

#include <jansson.h>
#include <stdint.h>

/*
 * Reads `bytes` bytes of text, which may hold anything; no member may stand twice in an object.
 * `what` begins the message: "the manifest". Owns: the caller releases *ret_root. Errors:
 * `unsound`, with the line, where it is not JSON; SLC_ERR_MEMORY.
 */
enum slc_status slc_json_read(const char *text,
                              uint64_t bytes,
                              const char *what,
                              enum slc_status unsound,
                              json_t **ret_root,
                              struct slc_error *err) SLC_NODISCARD;

/* Before a document is made: nothing but jansson may be called between this and the next. */
void slc_json_begin(void);

/* Whether all that was made since has been made whole. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_json_whole(const char *what, struct slc_error *err) SLC_NODISCARD;

/*
 * The text of `object`, in lines, numbers with 17 digits. Owns: the caller releases *ret_text by
 * free. Errors: SLC_ERR_MEMORY, also where slc_json_begin was called and something is missing;
 * SLC_ERR_INPUT where it holds text that is not UTF-8.
 */
enum slc_status slc_json_write(const json_t *object,
                               const char *what,
                               char **ret_text,
                               struct slc_error *err) SLC_NODISCARD;

/*
 * A string of any bytes, for paths and words of command lines: of what is not UTF-8 each byte
 * becomes U+FFFD. NULL for NULL, and without memory, which is then noted as of jansson's own.
 */
json_t *slc_json_string(const char *text);

#endif
