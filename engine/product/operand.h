/* A vector of a contraction (contract.h) in memory.
 *
 * If few indices of the vector's mode are used, the vector is shortened to the used indices ([SPTV]
 * section 3.2). A first pass over the tiles marks the used indices; then the elements of these
 * indices are read:
 *
 *     init -> (if short: allocate_used -> mark tiles by several threads -> slc_used_count)
 *          -> load -> destroy
 *
 * Memory of a short vector: 8 bytes per used index, and a quarter of a byte per index between the
 * first and the last used index, instead of 8 bytes per index of the mode. */
#ifndef SLC_ENGINE_OPERAND_H
#define SLC_ENGINE_OPERAND_H

#include "base/block.h"
#include "base/hash.h"
#include "base/matrix.h"
#include "base/memory/memory.h"
#include "base/used.h"
#include "storage/block/reader.h"
#include "storage/file/files.h"
#include "storage/manifest/labels.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_operand {
    unsigned mode;
    uint64_t length;          /* size of the mode */
    uint64_t first, last;     /* smallest and largest used index, as numbered by the store */
    struct slc_used used;     /* all zero unless the vector is short */
    struct slc_buffer words;  /* memory of used.words */
    struct slc_matrix vector; /* slc_used_elements(&used, length) elements in f64 */
};

/* Where the elements of a vector come from. Borrowed. */
struct slc_operand_source {
    const struct slc_files *files;
    const char *path;                /* .npy file; NULL: use `values` */
    const double *values;            /* elements by index of the input */
    const struct slc_labels *labels; /* input index -> store index; NULL if they are equal */
    struct slc_hash_stream *hash;    /* receives all elements by index of the input; may be NULL */
};

/* Prepares the vector of `mode` for the layout of `reader`. Decides from the entries of blocks
 * whether the vector is short; sets used.count to an upper bound. */
void slc_operand_init(struct slc_operand *operand, const struct slc_reader *reader, unsigned mode);
static inline bool slc_operand_is_short(const struct slc_operand *operand)
{
    return operand->used.end > 0;
}

/* Returns an upper bound for the bytes of the vector and of the map of used indices. */
uint64_t slc_operand_bytes(const struct slc_operand *operand);

/* Allocates the map of used indices of a short vector. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_operand_allocate_used(struct slc_operand *operand,
                                          struct slc_error *err) SLC_NODISCARD;
/* Decodes a tile and marks its indices in the modes of all short vectors among `count` operands as
 * used. Threads: any number at once, each with its own tile. Errors: those of decoding. */
enum slc_status slc_operands_mark(const struct slc_operand *operands,
                                  unsigned count,
                                  struct slc_tile_view *tile,
                                  struct slc_error *err) SLC_NODISCARD;

/* Reads the elements, in the order of the store's indices. All elements are read and checked; a
 * short vector keeps only those of used indices. Errors: SLC_ERR_INPUT, with file and position, if
 * the length is wrong or a number is not finite; SLC_ERR_IO; SLC_ERR_MEMORY. */
enum slc_status slc_operand_load(struct slc_operand *operand,
                                 const struct slc_operand_source *source,
                                 struct slc_error *err) SLC_NODISCARD;

/* Releases the memory. Accepts an all-zero struct. */
void slc_operand_destroy(struct slc_operand *operand);

#endif
