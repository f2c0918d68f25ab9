/* A block file that is divided over several folders, on several drives (docs/FORMAT.md, section
 * 15). In the store, the block file is replaced with a list of folders; each folder has a stripe,
 * which is a file with its own header. Sections of `unit` bytes are distributed round-robin over
 * the stripes, starting with stripe 0.
 * A list names only folders. The name of a stripe follows from the list's identity, and a file with
 * that name is read or removed only if its header identifies it as that stripe. A forged list
 * therefore cannot make sluice read or remove other files. List and headers state the store folder
 * that owns the stripes. A copy of the list in another folder can read them, but not remove
 * them. */
#ifndef SLC_STORAGE_STRIPES_H
#define SLC_STORAGE_STRIPES_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SLC_MAX_STRIPES = 16,
    SLC_MAX_STRIPE_FOLDER = 4000,   /* bytes of a folder's path; 16 folders fit into 16 pages */
    SLC_MAX_STRIPE_LIST = 17 * 4096 /* bytes of a list */
};

#define SLC_STRIPE_LIST_MAGIC "\x89SLCSTR\n"
#define SLC_STRIPE_MAGIC      "\x89SLCSTP\n"

/* Stripe unit of new files: about half a block, so that consecutive blocks, and usually the two
 * halves of a block, are on several drives. It is large enough to read drives at their full
 * rate. */
#define SLC_STRIPE_UNIT (UINT64_C(2) << 20)

/* Environment variable: colon-separated folders that are searched first for stripes. */
#define SLC_STRIPES_VARIABLE "SLUICE_STRIPES"

/* The store folder that owns stripes: only this folder may remove them. Renaming the folder keeps
 * this identity; a copy of the folder has another one. `inode` is 0 if the owner is unknown. */
struct slc_stripe_owner {
    uint64_t inode;
    uint64_t file_system; /* 0 if unknown */
    uint64_t born_ns;     /* time of birth; 0 if unknown */
};

/* How a block file is divided into stripes. */
struct slc_stripe_shape {
    uint64_t id;          /* identity of this set of stripes */
    uint64_t file_bytes;  /* size of the block file */
    uint64_t header_hash; /* hash of the header of the block file */
    uint64_t unit;        /* multiple of a page */
    struct slc_stripe_owner owner;
    unsigned count;
};

struct slc_stripe_list {
    struct slc_stripe_shape shape;
    char *folders[SLC_MAX_STRIPES]; /* absolute, or relative to the store's folder */
};

/* Returns the bytes of the block file in stripe `ordinal`, without the stripe's header. */
uint64_t slc_stripe_bytes(const struct slc_stripe_shape *shape, unsigned ordinal);
/* Maps byte `offset` of the block file to a stripe and the offset `at` in the stripe's file;
 * returns the number of contiguous bytes from there (all remaining bytes if there is one
 * stripe). */
uint64_t slc_stripe_place(const struct slc_stripe_shape *shape,
                          uint64_t offset,
                          unsigned *ordinal,
                          uint64_t *at);

/* True if the first `bytes` bytes of a file start with the magic number of a list. */
bool slc_stripe_list_is(const void *data, uint64_t bytes);

/* Encodes a list; the caller frees *data with slc_free. Errors: SLC_ERR_MEMORY; SLC_ERR_USAGE if
 * the path of a folder is too long. */
enum slc_status slc_stripe_list_encode(const struct slc_stripe_list *list,
                                       uint8_t **data,
                                       uint64_t *bytes,
                                       struct slc_error *err) SLC_NODISCARD;
/* Decodes and checks a list. Ownership: release with slc_stripe_list_clear, which accepts an
 * all-zero list. Errors: the statuses of FORMAT.md, section 15.1, with the offset of the field but
 * not the file name. */
enum slc_status slc_stripe_list_decode(const uint8_t *data,
                                       uint64_t bytes,
                                       struct slc_stripe_list *list,
                                       struct slc_error *err) SLC_NODISCARD;
void slc_stripe_list_clear(struct slc_stripe_list *list);

/* Encodes the header page of stripe `ordinal`. */
void slc_stripe_header_encode(const struct slc_stripe_shape *shape,
                              unsigned ordinal,
                              uint8_t *page);
/* Checks that `page` is the header of stripe `ordinal`. Errors: SLC_ERR_DAMAGED, without the name
 * of the file. */
enum slc_status slc_stripe_header_check(const struct slc_stripe_shape *shape,
                                        unsigned ordinal,
                                        const uint8_t *page,
                                        struct slc_error *err) SLC_NODISCARD;

/* Returns the path of stripe `ordinal` in `folder`, which is relative to the folder of `list_path`
 * unless it is absolute. Returns NULL if out of memory. Ownership: release with slc_free. */
char *slc_stripe_path(const struct slc_stripe_shape *shape,
                      const char *list_path,
                      const char *folder,
                      unsigned ordinal);

/* Sets *owner to the identity of the folder that contains `list_path`. Errors: SLC_ERR_IO,
 * SLC_ERR_MEMORY. */
enum slc_status slc_stripe_owner_find(const struct slc_files *files,
                                      const char *list_path,
                                      struct slc_stripe_owner *owner,
                                      struct slc_error *err) SLC_NODISCARD;

/* Sets *own to true if the folder that contains the list at `list_path` owns its stripes. Errors:
 * those of slc_stripe_owner_find. */
enum slc_status slc_stripe_is_own(const struct slc_files *files,
                                  const char *list_path,
                                  const struct slc_stripe_shape *shape,
                                  bool *own,
                                  struct slc_error *err) SLC_NODISCARD;

/* Logs that the stripes of the list at `list_path` are kept, because another folder owns them. */
void slc_stripe_note_kept(const char *list_path, const struct slc_stripe_list *list);

/* Reads the list at `path`. *found is false if the file is not a list (a plain block file, or
 * missing). Errors: those of file operations and of slc_stripe_list_decode. */
enum slc_status slc_stripe_list_load(const struct slc_files *files,
                                     const char *path,
                                     struct slc_stripe_list *list,
                                     bool *found,
                                     struct slc_error *err) SLC_NODISCARD;

/* Opens the file at `path` if it is the complete stripe `ordinal`. Ownership: files->close on *fd.
 * Errors: SLC_ERR_IO, SLC_ERR_DAMAGED (another stripe, or truncated), with the path of the file. */
enum slc_status slc_stripe_open(const struct slc_files *files,
                                const struct slc_stripe_shape *shape,
                                unsigned ordinal,
                                const char *path,
                                int *fd,
                                struct slc_error *err) SLC_NODISCARD;

#endif
