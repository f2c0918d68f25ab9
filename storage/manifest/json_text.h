/*
 * Converts between JSON text and jansson values, with reliable errors when memory runs out. jansson
 * reports out of memory as invalid text in many cases, and silently drops members for which it has
 * no memory. However, a failed allocation sets errno, which nothing else in jansson does.
 */
#ifndef SLC_STORAGE_JSON_TEXT_H
#define SLC_STORAGE_JSON_TEXT_H

#include "base/error/error.h"

#include <jansson.h>
#include <stdint.h>

/*
 * Parses `bytes` bytes of arbitrary text; rejects duplicate members of an object. `what` starts the
 * message: "the manifest". Owns: the caller releases *ret_root. Errors: `unsound`, with the line,
 * if it is not valid JSON; SLC_ERR_MEMORY.
 */
enum slc_status slc_json_read(const char *text,
                              uint64_t bytes,
                              const char *what,
                              enum slc_status unsound,
                              json_t **ret_root,
                              struct slc_error *err) SLC_NODISCARD;

/* Call before building a document; until slc_json_whole only jansson functions may be called. */
void slc_json_begin(void);

/* Checks that everything built since slc_json_begin is complete. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_json_whole(const char *what, struct slc_error *err) SLC_NODISCARD;

/*
 * Serializes `object` with line breaks, and numbers with 17 digits. Owns: the caller releases
 * *ret_text with free. Errors: SLC_ERR_MEMORY, also if slc_json_begin was called and something is
 * missing; SLC_ERR_INPUT if it contains text that is not UTF-8.
 */
enum slc_status slc_json_write(const json_t *object,
                               const char *what,
                               char **ret_text,
                               struct slc_error *err) SLC_NODISCARD;

/*
 * Makes a JSON string of arbitrary bytes, for paths and command-line words: each byte that is not
 * UTF-8 becomes U+FFFD. Returns NULL for NULL and if out of memory, which sets errno like jansson
 * does.
 */
json_t *slc_json_string(const char *text);

#endif
