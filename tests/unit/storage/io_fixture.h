/* Shared by the tests of block readers: files whose contents are a function of the offset, so that
 * any block can be checked alone, and a function that reads whole files in random order. */
#ifndef SLC_IO_FIXTURE_H
#define SLC_IO_FIXTURE_H

#include "base/memory/limits.h"
#include "faulty_files.h"
#include "storage/io/io.h"

#include <stdbool.h>

enum { PAGE = SLC_PAGE_BYTES, MAX_REQUESTS = 64, FILE_PAGES = 301, FEW_PAGES = 40 };

/* A kind of reader and a way to open files. */
struct variant {
    enum slc_io_kind kind;
    bool direct;
};

enum { VARIANTS = 5 };
extern const struct variant variants[VARIANTS];

/* Returns the next random number of this run. */
uint64_t next_draw(void);

bool has_pattern(const void *data, uint64_t bytes, uint64_t offset);

/* Writes `bytes` bytes of the pattern to FOLDER/NAME; returns the path in a static buffer. */
const char *make_file(const char *folder, const char *name, uint64_t bytes);

/* Opens a reader; returns NULL if io_uring is unavailable or not built in. */
struct slc_io *open_variant(const struct variant *variant,
                            const struct slc_files *files,
                            const char *path,
                            unsigned slots,
                            uint64_t slot_pages);

/* Result of reading a whole file. */
struct outcome {
    unsigned reads;
    unsigned failed;
    unsigned wrong;
    struct slc_error first; /* error of the first failure */
};

/* Reads `pages` pages as blocks of random sizes in random order, with `slots` in flight. */
struct outcome read_file(struct slc_io *io, uint64_t pages, unsigned slots, uint64_t slot_pages);

/* Asserts that nothing failed. */
void check_all_read(const struct outcome *outcome);

/* The table operation that transfers the data of this kind of reader. */
enum slc_faulty_kind read_operation(enum slc_io_kind kind);

#endif
