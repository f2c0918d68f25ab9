/*
 * What the tests of block readers share: files whose contents are a function of the offset, so that
 * any block can be checked alone, and a way to read them whole in random order.
 */
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

/* Random numbers of this run, one after the other. */
uint64_t next_draw(void);

bool has_pattern(const void *data, uint64_t bytes, uint64_t offset);

/* Writes `bytes` bytes of the pattern to FOLDER/NAME; the path is static. */
const char *make_file(const char *folder, const char *name, uint64_t bytes);

/* Opens a reader; NULL where io_uring is refused or not built in. */
struct slc_io *open_variant(const struct variant *variant,
                            const struct slc_files *files,
                            const char *path,
                            unsigned slots,
                            uint64_t slot_pages);

/* What came of reading a whole file. */
struct outcome {
    unsigned reads;
    unsigned failed;
    unsigned wrong;
    struct slc_error first; /* the first failure */
};

/* Reads `pages` pages as blocks of random sizes in random order, `slots` at a time. */
struct outcome read_file(struct slc_io *io, uint64_t pages, unsigned slots, uint64_t slot_pages);

/* Asserts that nothing failed. */
void check_all_read(const struct outcome *outcome);

/* The operation of the table that carries the results of a kind's reads. */
enum slc_faulty_kind read_operation(enum slc_io_kind kind);

#endif
