/*
 * JSON documents on their way out. They are built without a look at every step, for jansson does
 * nothing with what it had no memory for before: a document with parts missing would be the result.
 * So the memory it is refused is noted, and no document leaves after that.
 */
#ifndef SLC_TOOLS_JSON_OUT_H
#define SLC_TOOLS_JSON_OUT_H

#include "base/error/error.h"

#include <jansson.h>

/* Before any other use of jansson: it gets its memory where refusals are noted. */
void json_out_start(void);

/*
 * The text of `object`, which is released (it may be NULL, where making it failed): in lines, or
 * in one. Owns: the caller releases *text by free, NULL after an error. Errors: SLC_ERR_MEMORY;
 * SLC_ERR_INPUT where a path or a text of a store is not UTF-8.
 */
enum slc_status
json_out_text(json_t *object, bool one_line, char **text, struct slc_error *err) SLC_NODISCARD;

/* Fails where jansson has been refused memory: what it was to make may have parts missing. */
enum slc_status json_out_complete(struct slc_error *err) SLC_NODISCARD;

/* Prints it on standard output, in lines. */
enum slc_status json_out_print(json_t *object, struct slc_error *err) SLC_NODISCARD;

#endif
