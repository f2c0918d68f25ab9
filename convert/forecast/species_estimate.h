/*
 * How many different things a file has, judged by pieces from all over it.
 *
 * A piece is what is drawn: that a thing comes often within one tells nothing of the rest, for
 * files are sorted and grown in many ways. Q_j things occur in j of the pieces. As pieces go on,
 * new things come at the rate Q_1 per piece drawn, which falls as Q_2, Q_3 .. say: I. J. Good and
 * G. H. Toulmin, "The number of new species, and the increase in population coverage, when a sample
 * is increased", Biometrika 43, 1956. Their series diverges where the file is more than twice the
 * sample; B. Efron and R. Thisted, "Estimating the number of unseen species: How many words did
 * Shakespeare know?", Biometrika 63, 1976, section 3, give the model that this uses, R. A. Fisher's
 * negative binomial one: with the file x + 1 times the sample,
 *
 *     unseen(x) = Q_1 ((1 + u x)^(1 - a / u) - 1) / (u - a),   Q_(j+1) / Q_j = (a + u (j - 1)) / (j
 * + 1).
 *
 * a = 0: always new ones (unseen = Q_1 x); u = 0: a number of things as likely each, of which some
 * are left (A. Chao's estimator as x grows); u = 1: as words come in texts, by a power of the
 * length. a and u are those of the greatest likelihood, least and most the extremes of all those
 * that are nearly as likely.
 *
 * Where pieces are neighbours, as at the beginning of a file that cannot be read elsewhere, things
 * that stay near where they began occur in several, and would seem to be all there are. So the new
 * ones of the second half are compared with those that the model expects there; where they are far
 * more, things go on to come as they did.
 *
 * What a piece begins with may be a run that began before it, as in a sorted file: such a thing is
 * seen, but not counted as new there, so that a run counts where it begins, and once.
 */
#ifndef SLC_CONVERT_SPECIES_ESTIMATE_H
#define SLC_CONVERT_SPECIES_ESTIMATE_H

#include "base/error/error.h"
#include "base/memory/memory.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Things that are kept, those of the least hashes: 0.7 % is the standard error of their number.
     */
    SLC_SPECIES_KEPT_MAX = 1 << 14,
    SLC_SPECIES_SLOTS = 2 * SLC_SPECIES_KEPT_MAX
};

struct slc_species_slot;

struct slc_species {
    struct slc_buffer memory;
    struct slc_species_slot *slots;
    uint64_t limit; /* hashes above it are not kept: 2^(64 - halvings) - 1 */
    unsigned halvings;
    uint32_t kept;
    uint16_t pieces;
    bool carries;     /* what the piece begins with may have begun before it */
    bool opening;     /* nothing of the piece was added yet */
    uint64_t carried; /* hash of what it begins with */
};

/* What a file of which the pieces are a part has. */
struct slc_species_estimate {
    double seen;           /* in the sample */
    double count;          /* in the whole file */
    double least, most;    /* that are nearly as likely */
    double bytes_each;     /* of those that were seen, on average */
    double new_bytes_each; /* of those that occur in one piece, which are most like the others */
};

/* Owns: slc_species_destroy, which takes one that is all zeros. Errors: SLC_ERR_MEMORY (512 KiB).
 */
enum slc_status slc_species_create(struct slc_species *species,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_species_destroy(struct slc_species *species);

/* Begins the next piece, at most 65,535 of them; `whole`: what comes begins there. */
void slc_species_piece(struct slc_species *species, bool whole);

/* A thing, by a hash of which all bits are even, and a length, which is 65,535 at most. */
void slc_species_add(struct slc_species *species, uint64_t hash, uint64_t bytes);

/* `times`: the length of the file over that of all pieces, at least 1. */
void slc_species_judge(const struct slc_species *species,
                       double times,
                       struct slc_species_estimate *estimate);

#endif
