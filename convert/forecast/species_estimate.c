/* Estimates the number of distinct items. Hashes of items are in a table with open addressing and
 * linear probing, at most half full. */
#include "convert/forecast/species_estimate.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    /* Items that occur in more pieces than this indicate little about unseen items. */
    CLASSES = 10,
    /* Only rare items are used: those in at most 1 / RARE_SHARE of the pieces. */
    RARE_SHARE = 4,
    /* Number of compared values of parameter a (slope) and of parameter u (mixture). */
    SLOPES = 121,
    MIXTURES = 41
};

/* Compared values of parameter a: 0, and values from 10^-5 to 10 in equal logarithmic steps. */
#define SLOPE_LEAST   1e-5
#define SLOPE_DECADES 6.0
/* A model is nearly as likely as the best model if the logarithms of their likelihoods differ by at
 * most this. Twice this value is the 98th percentile of chi-square with two degrees of freedom. */
#define NEARLY_AS_LIKELY 4.0

struct slc_species_slot {
    uint64_t hash;   /* 0: free */
    uint16_t pieces; /* number of pieces in which the item started */
    uint16_t last;   /* the last of these pieces; pieces start at 1 */
    uint16_t first;  /* piece in which the item was first seen */
    uint16_t bytes;
};

/* Counts of items from which the estimate is made. */
struct classes {
    double count[CLASSES + 1]; /* count[j]: items that started in j pieces */
    double all, bytes, once_bytes;
    double late;          /* items first seen in the second half of the pieces */
    double late_expected; /* expected value of `late` if pieces are in random order */
    unsigned rare;        /* the largest j of count[j] that is used */
};

/* A model and its likelihood. */
struct model {
    double slope, mixture; /* parameters a and u of the model */
    double likelihood;     /* logarithm of the likelihood */
};

enum slc_status slc_species_create(struct slc_species *species, struct slc_error *err)
{
    *species = (struct slc_species){.limit = UINT64_MAX};
    if (slc_buffer_create(&species->memory, SLC_SPECIES_SLOTS * sizeof *species->slots,
                          SLC_PAGES_SMALL, err) != SLC_OK) {
        return SLC_ERR_MEMORY;
    }
    species->slots = species->memory.data;
    return SLC_OK;
}

void slc_species_destroy(struct slc_species *species)
{
    slc_buffer_destroy(&species->memory);
}

void slc_species_piece(struct slc_species *species, bool whole)
{
    assert(species->pieces < UINT16_MAX);
    species->pieces++;
    species->carries = !whole;
    species->opening = true;
}

/* Returns the slot that holds a hash, or else the free slot for this hash. Kept hashes are small,
 * but their low bits are uniform and select the slot. */
static struct slc_species_slot *find_slot(struct slc_species_slot *slots, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & (SLC_SPECIES_SLOTS - 1);

    while (slots[at].hash != 0 && slots[at].hash != hash) {
        at = (at + 1) & (SLC_SPECIES_SLOTS - 1);
    }
    return &slots[at];
}

/* Halves the limit, removes hashes above it, and reinserts the other hashes. */
static void halve_limit(struct slc_species *species)
{
    uint32_t begin = 0;

    species->limit >>= 1;
    species->halvings++;
    species->kept = 0;
    /* Start at a free slot, so that no sequence of used slots is visited from its middle. */
    while (species->slots[begin].hash != 0) {
        begin++;
    }
    for (uint32_t i = 0; i < SLC_SPECIES_SLOTS; i++) {
        struct slc_species_slot *slot = &species->slots[(begin + i) & (SLC_SPECIES_SLOTS - 1)];
        const struct slc_species_slot moved = *slot;

        if (moved.hash != 0) {
            slot->hash = 0;
            if (moved.hash <= species->limit) {
                *find_slot(species->slots, moved.hash) = moved;
                species->kept++;
            }
        }
    }
}

void slc_species_add(struct slc_species *species, uint64_t hash, uint64_t bytes)
{
    assert(species->pieces > 0);
    if (species->opening) {
        species->opening = false;
        species->carried = hash;
    }
    if (hash > species->limit) {
        return;
    }
    hash = hash != 0 ? hash : 1; /* 0 marks a free slot */
    struct slc_species_slot *slot = find_slot(species->slots, hash);
    if (slot->hash == 0) {
        *slot =
            (struct slc_species_slot){.hash = hash,
                                      .first = species->pieces,
                                      .bytes = (uint16_t)(bytes < UINT16_MAX ? bytes : UINT16_MAX)};
        species->kept++;
    }
    if (slot->last != species->pieces && !(species->carries && hash == species->carried)) {
        slot->last = species->pieces;
        slot->pieces++;
    }
    if (species->kept > SLC_SPECIES_KEPT_MAX) {
        halve_limit(species);
    }
}

static void count_classes(const struct slc_species *species, struct classes *classes)
{
    const unsigned rare = species->pieces / RARE_SHARE;

    *classes = (struct classes){.rare = rare < 2 ? 2 : rare > CLASSES ? CLASSES : rare};
    for (uint32_t i = 0; i < SLC_SPECIES_SLOTS; i++) {
        const struct slc_species_slot *slot = &species->slots[i];

        if (slot->hash != 0) {
            classes->all++;
            classes->late += slot->first > species->pieces / 2;
            classes->late_expected += ldexp(1, -(slot->pieces < 32 ? slot->pieces : 32));
            classes->bytes += slot->bytes;
            classes->once_bytes += slot->pieces == 1 ? slot->bytes : 0;
            if (slot->pieces <= CLASSES) {
                classes->count[slot->pieces]++;
            }
        }
    }
}

/* Returns the logarithm of the likelihood of the counts, given that items are rare. */
static double likelihood_of(const struct classes *classes, double slope, double mixture)
{
    double weight[CLASSES + 1] = {0, 1}, sum = 1, likelihood = 0;

    for (unsigned j = 1; j < classes->rare; j++) {
        weight[j + 1] = weight[j] * (slope + mixture * (j - 1)) / (j + 1);
        sum += weight[j + 1];
    }
    for (unsigned j = 1; j <= classes->rare; j++) {
        if (classes->count[j] > 0) {
            likelihood += weight[j] > 0 ? classes->count[j] * log(weight[j] / sum) : -INFINITY;
        }
    }
    return likelihood;
}

/* Returns unseen(x) / Q_1 under the model. */
static double growth(const struct model *model, double x)
{
    const double a = model->slope, u = model->mixture;

    if (a * x < 1e-9) {
        return x;
    }
    if (u * x < 1e-9) {
        return -expm1(-a * x) / a;
    }
    if (fabs(u - a) < 1e-9 * u) {
        return log1p(u * x) / u;
    }
    return expm1((1 - a / u) * log1p(u * x)) / (u - a);
}

static struct model model_of(const struct classes *classes, unsigned slope, unsigned mixture)
{
    struct model model = {.mixture = (double)mixture / (MIXTURES - 1)};

    if (slope > 0) {
        model.slope =
            SLOPE_LEAST * pow(10, SLOPE_DECADES * (double)(slope - 1) / (double)(SLOPES - 2));
    }
    model.likelihood = likelihood_of(classes, model.slope, model.mixture);
    return model;
}

/* Computes unseen(x) / Q_1 under the most likely model (*best), and the extremes under all models
 * that are nearly as likely (*least, *most). */
static void
compare_models(const struct classes *classes, double x, double *best, double *least, double *most)
{
    struct model likeliest = model_of(classes, 0, 0);

    for (unsigned s = 0; s < SLOPES; s++) {
        for (unsigned m = 0; m < MIXTURES; m++) {
            const struct model model = model_of(classes, s, m);

            if (model.likelihood > likeliest.likelihood) {
                likeliest = model;
            }
        }
    }
    *best = *least = *most = growth(&likeliest, x);
    for (unsigned s = 0; s < SLOPES; s++) {
        for (unsigned m = 0; m < MIXTURES; m++) {
            const struct model model = model_of(classes, s, m);

            if (model.likelihood >= likeliest.likelihood - NEARLY_AS_LIKELY) {
                *least = fmin(*least, growth(&model, x));
                *most = fmax(*most, growth(&model, x));
            }
        }
    }
}

/* Returns, from 0 to 1, how much the order of the pieces matters. If the occurrences of an item are
 * close together and the pieces are neighbours, far more items are new in the second half of the
 * pieces than the model predicts. */
static double drift_of(const struct classes *classes)
{
    const double spread = 3 * sqrt(classes->late_expected) + 3;
    const double more = classes->late - classes->late_expected - spread;

    return more > 0 && classes->late_expected > 0 ? fmin(1, 2 * more / classes->late_expected) : 0;
}

void slc_species_extrapolate(const struct slc_species *species,
                             double times,
                             struct slc_species_estimate *estimate)
{
    const double scale = ldexp(1, (int)species->halvings);
    const double x = times - 1;
    struct classes classes;
    double best = 0, least = 0, most = 0, once, spread, drift, onward;

    count_classes(species, &classes);
    once = classes.count[1];
    /* The sampling error of the count of items in one piece only. */
    spread = 2 * sqrt(once);
    if (x > 0) {
        compare_models(&classes, x, &best, &least, &most);
    }
    /* If the order matters, assume that new items continue at the rate of the second half. */
    drift = drift_of(&classes);
    onward = fmax(2 * x * classes.late, once * best);
    most = fmax((once + spread + 3) * most, drift > 0 ? onward : 0);
    *estimate = (struct slc_species_estimate){
        .seen = scale * classes.all,
        .count = scale * (classes.all + (1 - drift) * once * best + drift * onward),
        .least = scale * (classes.all + fmax(once - spread, 0) * least),
        .most = scale * (classes.all + most),
        .bytes_each = classes.all > 0 ? classes.bytes / classes.all : 0};
    estimate->new_bytes_each = once > 0 ? classes.once_bytes / once : estimate->bytes_each;
}
