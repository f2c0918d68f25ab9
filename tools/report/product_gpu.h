/*
 * Tiles that a GPU multiplies for a command (engine/product/products.h): which one, what of its
 * memory that takes, and what it and the CPU have done.
 */
#ifndef SLC_TOOLS_PRODUCT_GPU_H
#define SLC_TOOLS_PRODUCT_GPU_H

#include "engine/product/products.h"
#include "tools/session/session.h"

#include <jansson.h>
#include <stdio.h>

/* The device that the options ask for. Owns and errors: as slc_products_choose. */
enum slc_status product_gpu_choose(const struct session_options *options,
                                   struct slc_products_choice *choice,
                                   struct slc_error *err) SLC_NODISCARD;

/* What there is to tell. */
struct product_gpu {
    const struct slc_products_choice *choice;
    const struct slc_error *refused; /* why the device was not used */
    const struct slc_plan_gpu *plan;
    unsigned threads;                         /* that multiply beside it */
    const struct slc_products_report *report; /* NULL: nothing has been done */
};

/* "device", and "shares" of a report, or why there are none. Nothing for the CPU alone. */
void product_gpu_print(const struct product_gpu *told, FILE *out);
/* The same as an object; null where the device is not used. */
json_t *product_gpu_json(const struct product_gpu *told);

#endif
