/*
 * Estimates the number of distinct items in a file from pieces spread over the file.
 *
 * The pieces, not the items, are the sampling units. Files are sorted and grow in many ways, so
 * repetitions within a piece predict nothing about the rest of the file. Let Q_j be the number of
 * items that occur in exactly j pieces. The rate at which further pieces show new items starts from
 * Q_1 and falls depending on Q_2, Q_3 .. ([Good1956]). Good's series diverges if the file is more
 * than twice the sample. The model used here is R. A. Fisher's negative binomial model, in the form
 * of B. Efron and R. Thisted, "Estimating the number of unseen species: How many words did
 * Shakespeare know?", Biometrika 63, 1976, section 3. With the file x + 1 times the sample,
 *
 *     unseen(x) = Q_1 ((1 + u x)^(1 - a / u) - 1) / (u - a)
 *     Q_(j+1) / Q_j = (a + u (j - 1)) / (j + 1).
 *
 * a = 0: items are always new (unseen = Q_1 x); u = 0: equally likely items, some of them unseen
 * (the estimator of [Chao1984] as x grows); u = 1: the number of items grows as a power of the
 * length, like words in texts. a and u maximize the likelihood; `least` and `most` are the extremes
 * over all pairs that are nearly as likely.
 *
 * If only the beginning of a file can be read, the pieces are neighbours. Items whose occurrences
 * are close together are then in several pieces, and the model would predict few unseen items.
 * Therefore the number of new items in the second half of the pieces is compared with the
 * prediction of the model. If it is far larger, new items are assumed to continue at the observed
 * rate.
 *
 * The first item of a piece may belong to a run that started before it, as in a sorted file. Such
 * an item is not counted as new in that piece, so that a run counts once, in the piece where it
 * starts.
 */
#ifndef SLC_CONVERT_SPECIES_ESTIMATE_H
#define SLC_CONVERT_SPECIES_ESTIMATE_H

#include "base/error/error.h"
#include "base/memory/memory.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Items kept: those with the smallest hashes. The estimated number of items has a standard
     * error of 0.7 %. */
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
    bool carries;     /* the first item of the piece may have started before it */
    bool opening;     /* the piece is still empty */
    uint64_t carried; /* hash of the first item */
};

/* Estimated number and size of the distinct items in the file. */
struct slc_species_estimate {
    double seen;        /* in the sample */
    double count;       /* in the whole file */
    double least, most; /* bounds that are nearly as likely */
    double bytes_each;  /* of the items seen, on average */
    /* Average over items in one piece only, which resemble unseen items most. */
    double new_bytes_each;
};

/* Owns: slc_species_destroy, which accepts an all-zero struct. Errors: SLC_ERR_MEMORY (512 KiB). */
enum slc_status slc_species_create(struct slc_species *species,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_species_destroy(struct slc_species *species);

/* Starts the next piece (at most 65,535 pieces). `whole`: the first item starts in this piece. */
void slc_species_piece(struct slc_species *species, bool whole);

/* Adds an item by a hash with uniform bits and its length, at most 65,535. */
void slc_species_add(struct slc_species *species, uint64_t hash, uint64_t bytes);

/* Estimates the number of items in the file. `times`: file length divided by the total length of
 * all pieces, at least 1. */
void slc_species_extrapolate(const struct slc_species *species,
                             double times,
                             struct slc_species_estimate *estimate);

#endif
