/* Estimates the number of distinct items (such as coordinates or names) in a file from pieces that
 * are spread over the file.
 *
 * The pieces, not the items, are the sampling units. Files are sorted in many ways, so repetitions
 * within a piece predict nothing about the rest of the file. Let Q_j be the number of items that
 * occur in exactly j pieces. The rate at which further pieces contain new items begins at Q_1 and
 * then falls; Q_2, Q_3 .. determine how fast ([Good1956]). Good's series diverges if the file is
 * more than twice as large as the sample. The model used here is R. A. Fisher's negative binomial
 * model, in the form of B. Efron and R. Thisted, "Estimating the number of unseen species: How many
 * words did Shakespeare know?", Biometrika 63, 1976, section 3. If the file is x + 1 times as large
 * as the sample,
 *
 *     unseen(x) = Q_1 ((1 + u x)^(1 - a / u) - 1) / (u - a)
 *     Q_(j+1) / Q_j = (a + u (j - 1)) / (j + 1).
 *
 * If a = 0, all further items are new (unseen = Q_1 x). If u = 0, all items are equally likely, and
 * unseen(x) approaches Q_1 / a as x grows (the estimator of [Chao1984]). If u = 1, the number of
 * items grows as a power of the length, like words in texts. The chosen a and u maximize the
 * likelihood; `least` and `most` are the extremes over all pairs (a, u) that are nearly as likely.
 *
 * If only the beginning of a file can be read, the pieces are neighbours. An item whose occurrences
 * are close together is then in several pieces, and the model would predict too few unseen items.
 * Therefore the number of new items in the second half of the pieces is compared with the
 * prediction of the model. If there are far more than predicted, new items are assumed to continue
 * at the observed rate.
 *
 * In a sorted file, the first item of a piece may belong to a run of equal items that started
 * before the piece. Such an item is not counted in that piece, so that a run counts only in the
 * piece in which it starts. */
#ifndef SLC_CONVERT_SPECIES_ESTIMATE_H
#define SLC_CONVERT_SPECIES_ESTIMATE_H

#include "base/error/error.h"
#include "base/memory/memory.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Number of items that are kept: those with the smallest hashes. The standard error of the
     * estimated number of items is 0.7 %. */
    SLC_SPECIES_KEPT_MAX = 1 << 14,
    SLC_SPECIES_SLOTS = 2 * SLC_SPECIES_KEPT_MAX
};

struct slc_species_slot;

struct slc_species {
    struct slc_buffer memory;
    struct slc_species_slot *slots;
    uint64_t limit; /* larger hashes are not kept: 2^(64 - halvings) - 1 */
    unsigned halvings;
    uint32_t kept;
    uint16_t pieces;
    bool carries;     /* the first item may have started before the current piece */
    bool opening;     /* the current piece is still empty */
    uint64_t carried; /* hash of the first item of the current piece */
};

/* Estimated number and size of the distinct items in the file. */
struct slc_species_estimate {
    double seen;        /* items in the sample */
    double count;       /* items in the whole file */
    double least, most; /* smallest and largest count that is nearly as likely */
    double bytes_each;  /* average bytes of the items in the sample */
    /* Average bytes of items that are in one piece only, which resemble unseen items most. */
    double new_bytes_each;
};

/* Ownership: release with slc_species_destroy, which accepts an all-zero struct. Errors:
 * SLC_ERR_MEMORY (512 KiB). */
enum slc_status slc_species_create(struct slc_species *species,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_species_destroy(struct slc_species *species);

/* Starts the next of at most 65,535 pieces. `whole`: no item starts before the piece. */
void slc_species_piece(struct slc_species *species, bool whole);

/* Adds an item to the current piece. `hash`: a hash of the item with uniform bits. `bytes`: its
 * length, limited to 65,535. */
void slc_species_add(struct slc_species *species, uint64_t hash, uint64_t bytes);

/* Estimates the number of items in the file. `times`: file length divided by the total length of
 * all pieces, at least 1. */
void slc_species_extrapolate(const struct slc_species *species,
                             double times,
                             struct slc_species_estimate *estimate);

#endif
