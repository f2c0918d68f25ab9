/* Prints JSON documents. Documents are built without checking every step, because jansson ignores
 * NULL arguments: after a failed allocation the result would be a document with missing parts.
 * Failed allocations are therefore recorded, and no document is printed after a failed
 * allocation. */
#ifndef SLC_TOOLS_JSON_OUT_H
#define SLC_TOOLS_JSON_OUT_H

#include "base/error/error.h"

#include <jansson.h>

/* Formats `object` on several lines or on one line, and releases it. `object` is NULL if building
 * it failed. The caller must free *text, which is NULL after an error. Errors: SLC_ERR_MEMORY;
 * SLC_ERR_INPUT if a path or a text of a store is not UTF-8. */
enum slc_status
json_out_text(json_t *object, bool one_line, char **text, struct slc_error *err) SLC_NODISCARD;

/* Fails if a jansson allocation has failed, because parts of documents may be missing. */
enum slc_status json_out_complete(struct slc_error *err) SLC_NODISCARD;

/* Prints the object on standard output, on several lines, and releases it. */
enum slc_status json_out_print(json_t *object, struct slc_error *err) SLC_NODISCARD;

/* These functions print a long list element by element, without a tree of the whole list.
 * json_out_value prints a value on one line. json_out_open prints the members of `object` and the
 * start of one more member, `list`; the caller prints the elements and "]}". Both release their
 * object. */
enum slc_status json_out_value(json_t *value, struct slc_error *err) SLC_NODISCARD;
enum slc_status
json_out_open(json_t *object, const char *list, struct slc_error *err) SLC_NODISCARD;

#endif
