/* Shared by the tests of inputs: text in a file, compressed or not, and reading the whole file. */
#ifndef SLC_INPUT_FIXTURE_H
#define SLC_INPUT_FIXTURE_H

#include "convert/ingest/input/input.h"
#include "convert/ingest/text/text.h"

#include <archive.h>
#include <stdbool.h>

enum { INPUT_PIECE = 2 * SLC_LINE_BYTES_MAX, INPUT_FILTERS = 5 };

struct input_filter {
    const char *name;
    int (*add)(struct archive *);
};
extern const struct input_filter input_filters[INPUT_FILTERS];

/* Path of the file written by input_write, in one folder for the whole program, because some
 * cases write thousands of files. */
extern char input_path[256];
void input_write(const void *data, size_t bytes);

/* Lines of random lengths and digits, so that a lost or moved byte is detected; release with
 * free(). */
char *input_text(size_t bytes, bool final_newline, uint64_t seed);

/* Reads the whole file in pieces of `capacity`; checks that pieces end at line ends. */
enum slc_status input_read_all(const struct slc_files *files,
                               size_t capacity,
                               char *text,
                               size_t text_bytes,
                               size_t *total,
                               struct slc_error *err);

/* Compresses `text`; returns the compressed size. */
size_t
input_compress(size_t filter, const char *text, size_t bytes, unsigned char *out, size_t out_bytes);

#endif
