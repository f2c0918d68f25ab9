#include "base/loss.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const char *const loss_names[] = {"ls", "poisson", "bernoulli", "gamma", "huber"};
static const char *const unlisted_names[] = {"zero", "unknown"};

/* Returns the position of `name` in `names`, or `count`. */
static unsigned find_name(const char *const *names, unsigned count, const char *name)
{
    unsigned found = 0;

    while (found < count && strcmp(names[found], name) != 0) {
        found++;
    }
    return found;
}

const char *slc_loss_name(enum slc_loss loss)
{
    return (unsigned)loss <= SLC_LOSS_HUBER ? loss_names[loss] : "?";
}

bool slc_loss_parse(const char *name, enum slc_loss *loss)
{
    const unsigned found = find_name(loss_names, SLC_LOSS_HUBER + 1, name);

    if (found > SLC_LOSS_HUBER) {
        return false;
    }
    *loss = (enum slc_loss)found;
    return true;
}

const char *slc_unlisted_name(enum slc_unlisted unlisted)
{
    return (unsigned)unlisted <= SLC_UNLISTED_UNKNOWN ? unlisted_names[unlisted] : "?";
}

bool slc_unlisted_parse(const char *name, enum slc_unlisted *unlisted)
{
    const unsigned found = find_name(unlisted_names, SLC_UNLISTED_UNKNOWN + 1, name);

    if (found > SLC_UNLISTED_UNKNOWN) {
        return false;
    }
    *unlisted = (enum slc_unlisted)found;
    return true;
}

bool slc_loss_accepts(enum slc_loss loss, double x)
{
    switch (loss) {
    case SLC_LOSS_LS:
    case SLC_LOSS_HUBER:
        break;
    case SLC_LOSS_POISSON:
        return x >= 0.0 && x == floor(x);
    case SLC_LOSS_BERNOULLI:
        return x == 0.0 || x == 1.0;
    case SLC_LOSS_GAMMA:
        return x > 0.0;
    }
    return true;
}

bool slc_loss_is_nonnegative(enum slc_loss loss)
{
    return loss == SLC_LOSS_POISSON || loss == SLC_LOSS_GAMMA;
}

const char *slc_loss_values(enum slc_loss loss)
{
    switch (loss) {
    case SLC_LOSS_LS:
    case SLC_LOSS_HUBER:
        break;
    case SLC_LOSS_POISSON:
        return "counts (0, 1, 2, ..)";
    case SLC_LOSS_BERNOULLI:
        return "0 and 1";
    case SLC_LOSS_GAMMA:
        return "numbers above 0";
    }
    return "numbers";
}

double slc_loss_mean(enum slc_loss loss, double m)
{
    switch (loss) {
    case SLC_LOSS_LS:
    case SLC_LOSS_POISSON:
    case SLC_LOSS_GAMMA:
    case SLC_LOSS_HUBER:
        break;
    case SLC_LOSS_BERNOULLI:
        return 1.0 / (1.0 + exp(-m));
    }
    return m;
}

/* Returns x log(x / y), with its limit 0 at x = 0. */
static double x_log_ratio(double x, double y)
{
    return x > 0.0 ? x * log(x / y) : 0.0;
}

double slc_loss_deviance(enum slc_loss loss, double delta, double x, double m)
{
    const double error = x - m;

    switch (loss) {
    case SLC_LOSS_LS:
        break;
    case SLC_LOSS_POISSON:
        m = fmax(m, SLC_LOSS_LEAST_MODEL);
        return 2.0 * fmax(x_log_ratio(x, m) - (x - m), 0.0);
    case SLC_LOSS_BERNOULLI:
        /* log(1 + e^-|m|) does not overflow. */
        return 2.0 * (log1p(exp(-fabs(m))) + fmax(m, 0.0) - x * m);
    case SLC_LOSS_GAMMA:
        m = fmax(m, SLC_LOSS_LEAST_MODEL);
        return 2.0 * fmax(x / m - 1.0 - log(x / m), 0.0);
    case SLC_LOSS_HUBER:
        return fabs(error) <= delta ? error * error : delta * (2.0 * fabs(error) - delta);
    }
    return error * error;
}
