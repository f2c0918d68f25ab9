/* Converts between JSON text and jansson values, with reliable errors when memory runs out. jansson
 * often reports invalid text when memory runs out, and silently drops members for which it has no
 * memory. However, a failed allocation sets errno, which these functions check. When jansson parses
 * a number, it resets errno and thereby hides an earlier failure; a program should therefore also
 * call slc_json_record_failures. */
#ifndef SLC_STORAGE_JSON_TEXT_H
#define SLC_STORAGE_JSON_TEXT_H

#include "base/error/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses `bytes` bytes of arbitrary text; rejects duplicate members of an object. Messages start
 * with `what`, for example "the manifest". Ownership: the caller releases *ret_root. Errors: the
 * status `unsound`, with the line, if the text is not valid JSON; SLC_ERR_MEMORY. */
enum slc_status slc_json_read(const char *text,
                              uint64_t bytes,
                              const char *what,
                              enum slc_status unsound,
                              json_t **ret_root,
                              struct slc_error *err) SLC_NODISCARD;

/* Makes jansson allocate with slc_malloc for the rest of the process, and counts the allocations
 * that fail. jansson does not check the growth of a string that it parses: when memory runs out, it
 * drops characters or ends the process by an assertion. After a failure, further allocations of
 * jansson are therefore served from a reserve of 64 KiB. Call this function before any other use of
 * jansson. A library must not call it, because its user may use jansson too. */
void slc_json_record_failures(void);

/* Returns the number of failed allocations since slc_json_record_failures. */
uint64_t slc_json_failures(void);

/* Starts building a document. Until slc_json_whole, the caller may only call jansson functions. */
void slc_json_begin(void);

/* Checks that everything built since slc_json_begin is complete. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_json_whole(const char *what, struct slc_error *err) SLC_NODISCARD;

/* Serializes `object` with line breaks, and numbers with 17 digits. Ownership: the caller releases
 * *ret_text with free. Errors: SLC_ERR_MEMORY, also if memory ran out since slc_json_begin;
 * SLC_ERR_INPUT if `object` contains text that is not UTF-8. */
enum slc_status slc_json_write(const json_t *object,
                               const char *what,
                               char **ret_text,
                               struct slc_error *err) SLC_NODISCARD;

/* Makes a JSON string of arbitrary bytes, for paths and command-line words: each byte that is not
 * UTF-8 becomes U+FFFD. Returns NULL if `text` is NULL. If out of memory, returns NULL and sets
 * errno, as jansson does. */
json_t *slc_json_string(const char *text);

/* Sets member NAME to a path, as slc_json_string does; to null if `path` is NULL. If the path is
 * not UTF-8, also sets member NAME_bytes to its bytes in hexadecimal, so that no byte is lost. */
void slc_json_set_path(json_t *object, const char *name, const char *path);

/* Sets member NAME to an array of paths. If one of them is not UTF-8, also sets NAME_bytes to an
 * array with the bytes of each path in hexadecimal, null for a path that is UTF-8. */
void slc_json_set_paths(json_t *object, const char *name, unsigned count, const char *const *paths);

/* Reads a path that slc_json_set_path wrote to memory for `capacity` bytes. Returns false, and
 * leaves `path` unchanged, if the path is missing, too long or not valid. */
bool slc_json_get_path(const json_t *object, const char *name, char *path, size_t capacity);

/* Returns a member that is a positive integer; 0 if it is missing or something else. */
uint64_t slc_json_count(const json_t *object, const char *name);

#endif
