/*
 * A block file whose bytes lie in several folders, on several drives (docs/FORMAT.md, section 12):
 * in its place in the store stands a list of folders, and in each of these a stripe, a file with a
 * header of its own. Pieces of `unit` bytes go around the stripes, the first to stripe 0.
 *
 * A list names folders only. The name of a stripe follows from the list's identity, and a file of
 * that name is only read, or removed, if its header says that it is that stripe: so whatever a list
 * says, nothing but stripes is touched.
 */
#ifndef SLC_STORAGE_STRIPES_H
#define SLC_STORAGE_STRIPES_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SLC_MAX_STRIPES = 16,
    SLC_MAX_STRIPE_FOLDER = 4000,   /* bytes of a folder's path: all of them in 16 pages */
    SLC_MAX_STRIPE_LIST = 17 * 4096 /* bytes of a list */
};

#define SLC_STRIPE_LIST_MAGIC "\x89SLCSTR\n"
#define SLC_STRIPE_MAGIC      "\x89SLCSTP\n"

/*
 * The unit of new stripes. About half a block, so that consecutive blocks, and mostly the pieces of
 * one, lie on several drives; long enough for drives to read at their full rate.
 */
#define SLC_STRIPE_UNIT (UINT64_C(2) << 20)

/* Environment variable: folders, with colons between, where stripes are looked for first. */
#define SLC_STRIPES_VARIABLE "SLUICE_STRIPES"

/* How a block file is cut. */
struct slc_stripe_shape {
    uint64_t id;          /* of this set of stripes */
    uint64_t file_bytes;  /* of the block file */
    uint64_t header_hash; /* of the block file */
    uint64_t unit;        /* multiple of a page */
    unsigned count;
};

struct slc_stripe_list {
    struct slc_stripe_shape shape;
    char *folders[SLC_MAX_STRIPES]; /* absolute, or from the store's folder on */
};

/* Bytes of the block file in stripe `ordinal`, without the stripe's header. */
uint64_t slc_stripe_bytes(const struct slc_stripe_shape *shape, unsigned ordinal);
/*
 * Where byte `offset` of the block file lies: in which stripe, where in its file, and how many
 * bytes from there on are contiguous (of one stripe: all).
 */
uint64_t slc_stripe_place(const struct slc_stripe_shape *shape,
                          uint64_t offset,
                          unsigned *ordinal,
                          uint64_t *at);

/* Whether these first bytes of a file are a list's. */
bool slc_stripe_list_is(const void *data, uint64_t bytes);

/* A list as a file; slc_free on *data. Errors: SLC_ERR_MEMORY; SLC_ERR_USAGE: a folder too long. */
enum slc_status slc_stripe_list_encode(const struct slc_stripe_list *list,
                                       uint8_t **data,
                                       uint64_t *bytes,
                                       struct slc_error *err) SLC_NODISCARD;
/*
 * Takes a list apart and checks it. Owns: slc_stripe_list_clear, which takes an all-zero one.
 * Errors: the statuses of FORMAT.md, section 12.1, with the offset of the field but not the file.
 */
enum slc_status slc_stripe_list_decode(const uint8_t *data,
                                       uint64_t bytes,
                                       struct slc_stripe_list *list,
                                       struct slc_error *err) SLC_NODISCARD;
void slc_stripe_list_clear(struct slc_stripe_list *list);

/* The header page of stripe `ordinal`. */
void slc_stripe_header_encode(const struct slc_stripe_shape *shape,
                              unsigned ordinal,
                              uint8_t *page);
/* Whether `page` is the header of stripe `ordinal`. Errors: SLC_ERR_DAMAGED, without the file. */
enum slc_status slc_stripe_header_check(const struct slc_stripe_shape *shape,
                                        unsigned ordinal,
                                        const uint8_t *page,
                                        struct slc_error *err) SLC_NODISCARD;

/*
 * The path of stripe `ordinal` in `folder`, which is taken from the folder of `list_path` on unless
 * it is absolute. In fresh memory (slc_free), or NULL without memory.
 */
char *slc_stripe_path(const struct slc_stripe_shape *shape,
                      const char *list_path,
                      const char *folder,
                      unsigned ordinal);

/*
 * Reads the list at `path`. *found: false where the file there is none (a plain block file, or
 * nothing). Errors: those of files and of slc_stripe_list_decode.
 */
enum slc_status slc_stripe_list_load(const struct slc_files *files,
                                     const char *path,
                                     struct slc_stripe_list *list,
                                     bool *found,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * Opens the file at `path` if it is stripe `ordinal`, whole. Owns: files->close on *fd.
 * Errors: SLC_ERR_IO, SLC_ERR_DAMAGED (another stripe, cut), naming it.
 */
enum slc_status slc_stripe_open(const struct slc_files *files,
                                const struct slc_stripe_shape *shape,
                                unsigned ordinal,
                                const char *path,
                                int *fd,
                                struct slc_error *err) SLC_NODISCARD;

#endif
