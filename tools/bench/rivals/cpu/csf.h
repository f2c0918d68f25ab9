/* Compressed sparse fibers (CSF): a tensor as slice, fiber and element arrays, the input of the
 * kernels of [XPLAT] (xplat.h).
 *
 * A fiber is the nonzeros that agree in all modes but the fiber mode; a slice is the fibers with
 * one index in the slice mode. The paper defines the arrays for three modes, where a fiber of a
 * slice has one index. With N modes it has N - 2 here, and the depth of the arrays does not grow.
 * All arrays but the values have 32 bits, as in the paper. */
#ifndef SLC_RIVALS_CSF_H
#define SLC_RIVALS_CSF_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "base/memory/limits.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Nonzeros in host memory. The arrays are borrowed. */
struct slc_csf_list {
    unsigned order;
    const uint64_t *dims;
    uint64_t nnz;
    const uint32_t *coords; /* nonzero i, mode m: element i * order + m */
    enum slc_value_type type;
    const void *values; /* values, of type `type` */
};

struct slc_csf {
    unsigned order, fiber_mode;
    unsigned slice_mode; /* equal to `order` if there are no slices */
    uint64_t dims[SLC_MAX_ORDER];
    enum slc_value_type type;
    uint64_t slices; /* size of the slice mode, so empty slices count; 0 if there are no slices */
    uint64_t fibers; /* nonempty fibers */
    uint64_t nnz;
    uint32_t *slice_begin; /* first fiber of each slice, then the number of fibers; or NULL */
    uint32_t *fiber_begin; /* first nonzero of each fiber, then nnz */
    /* index of each fiber in the modes other than the fiber mode and the slice mode; those two are
     * NULL */
    uint32_t *fiber_index[SLC_MAX_ORDER];
    uint32_t *index; /* index of each nonzero in the fiber mode */
    void *values;    /* per nonzero, of type `type` */
    struct slc_buffer memory;
};

/* Returns an upper bound of the bytes of memory that the list, and building and keeping the arrays,
 * need. Reads no nonzeros. */
uint64_t slc_csf_bytes(const struct slc_csf_list *list, bool slices);

/* Builds the arrays for TTM: fibers of `fiber_mode` in the order of the list, without slices. In
 * the list, the nonzeros of a fiber must be adjacent, as in layout fiber-n; otherwise a fiber
 * occurs several times. Needs: *csf is all-zero. The caller must call slc_csf_destroy, also after
 * an error. Cost: two passes over the list. Errors: SLC_ERR_USAGE for a missing mode;
 * SLC_ERR_UNSUPPORTED for 2^32 - 1 nonzeros or more, and for a mode above 2^32; SLC_ERR_MEMORY. */
enum slc_status slc_csf_create_fibers(struct slc_csf *csf,
                                      const struct slc_csf_list *list,
                                      unsigned fiber_mode,
                                      struct slc_error *err) SLC_NODISCARD;

/* Builds the arrays for the MTTKRP of `slice_mode`, from a list in any order. As in the paper, the
 * nonzeros are sorted by the slice mode and then by the other modes in their order, and the last of
 * these is the fiber mode. Cost: in addition, one or two passes over the list per mode, which
 * access memory nearly in order if the list has the order of layout sorted-n; one thread. Needs,
 * errors: as above; SLC_ERR_USAGE for a tensor of fewer than 3 modes. */
enum slc_status slc_csf_create_slices(struct slc_csf *csf,
                                      const struct slc_csf_list *list,
                                      unsigned slice_mode,
                                      struct slc_error *err) SLC_NODISCARD;

/* Releases the memory. *csf may be all-zero. */
void slc_csf_destroy(struct slc_csf *csf);

#ifdef __cplusplus
}
#endif

#endif
